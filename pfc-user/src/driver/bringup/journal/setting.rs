//! A NIC's setting as it was before a run.

use serde::{Deserialize, Serialize};

use crate::driver::kernel::link::{self, Feature, LinkError};
use crate::driver::kernel::netns::{Namespace, NamespaceError};

/// A setting of a NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Setting {
    /// Name of the namespace in /run/netns, if it has one.
    pub(super) namespace: Option<String>,
    /// Number of the namespace: names come again.
    pub(super) inode: u64,
    pub(super) interface: String,
    /// Index of the interface, which it keeps under another name; 0 in older entries.
    #[serde(default)]
    pub(super) index: u32,
    pub(super) feature: Feature,
    pub(super) was: bool,
}

/// Place of a setting's interface, as seen from this process.
pub(super) enum Reach {
    /// The interface is in this namespace.
    Here(Namespace),
    /// Its namespace is gone.
    Gone,
    /// The interface is in a namespace without a name that is not this one.
    Elsewhere,
}

/// The place of what was changed in the namespace of that name and number.
pub(super) fn reach(name: Option<&str>, inode: u64) -> Result<Reach, NamespaceError> {
    let namespace = match name {
        None => Namespace::current()?,
        Some(name) => match Namespace::named(name) {
            Err(NamespaceError::Unknown { .. }) => return Ok(Reach::Gone),
            other => other?,
        },
    };
    Ok(match namespace.inode()? == inode {
        true => Reach::Here(namespace),
        false if name.is_some() => Reach::Gone,
        false => Reach::Elsewhere,
    })
}

impl Setting {
    pub(super) fn new(
        namespace: &Namespace,
        interface: &str,
        feature: Feature,
        was: bool,
    ) -> Result<Self, LinkError> {
        let name = namespace.name().map(str::to_owned);
        Ok(Self {
            namespace: name,
            inode: namespace.inode()?,
            interface: interface.to_owned(),
            index: link::state(namespace, interface)?.index,
            feature,
            was,
        })
    }

    pub(super) fn file_name(&self) -> String {
        format!("{}-{}-{}", self.inode, self.interface, self.feature.name())
    }

    pub(super) fn reach(&self) -> Result<Reach, NamespaceError> {
        reach(self.namespace.as_deref(), self.inode)
    }

    /// Puts it back, also under a new name of the interface. An error that the interface is not
    /// known where it is gone, even if another has its name now.
    pub(super) fn undo(&self, namespace: &Namespace) -> Result<(), LinkError> {
        let renamed = match self.index {
            0 => None,
            index => link::name_at(namespace, index)?,
        };
        let interface = renamed.as_deref().unwrap_or(&self.interface);
        let state = link::state(namespace, interface)?;
        if self.index != 0 && state.index != self.index {
            return Err(LinkError::Unknown {
                interface: interface.to_owned(),
                namespace: namespace.to_string(),
                known: Vec::new(),
            });
        }
        let set = link::set_feature(namespace, interface, self.feature, self.was);
        if self.comes_back(&set) { Ok(()) } else { set }
    }
}

impl Setting {
    /// True if the feature comes back by itself: the kernel has noted that it is wanted, and
    /// drivers hold offloads that merge frames off only while a program is attached.
    pub(super) fn comes_back(&self, set: &Result<(), LinkError>) -> bool {
        let merging = self.was && Feature::MERGING.contains(&self.feature);
        merging && matches!(set, Err(LinkError::Fixed { .. }))
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = if self.was { "on" } else { "off" };
        write!(
            f,
            "{}: {} is {value} again",
            self.interface,
            self.feature.name()
        )
    }
}
