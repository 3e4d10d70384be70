//! A setting of an interface as it was before a run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::driver::kernel::link::{self, Feature, LinkError, Property};
use crate::driver::kernel::netns::{Namespace, NamespaceError};

/// A setting of an interface.
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
    #[serde(flatten)]
    pub(super) value: Value,
}

/// A value that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Value {
    /// An offload, on or off.
    Feature { feature: Feature, was: bool },
    /// A property of the link.
    Link { link: Property },
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

impl Value {
    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Feature { feature, .. } => feature.name(),
            Self::Link { link } => link.word(),
        }
    }

    /// Returns the same as it is at `interface`.
    pub(super) fn at(self, namespace: &Namespace, interface: &str) -> Result<Self, LinkError> {
        Ok(match self {
            Self::Feature { feature, .. } => Self::Feature {
                feature,
                was: link::feature(namespace, interface, feature)?,
            },
            Self::Link { link } => Self::Link {
                link: link.of(&link::state(namespace, interface)?),
            },
        })
    }

    pub(super) fn set(self, namespace: &Namespace, interface: &str) -> Result<(), LinkError> {
        match self {
            Self::Feature { feature, was } => link::set_feature(namespace, interface, feature, was),
            Self::Link { link } => link::set(namespace, interface, link),
        }
    }
}

impl Setting {
    pub(super) fn new(
        namespace: &Namespace,
        interface: &str,
        value: Value,
    ) -> Result<Self, LinkError> {
        Ok(Self {
            namespace: namespace.name().map(str::to_owned),
            inode: namespace.inode()?,
            interface: interface.to_owned(),
            index: link::state(namespace, interface)?.index,
            value,
        })
    }

    pub(super) fn file_name(&self) -> String {
        format!("{}-{}-{}", self.inode, self.interface, self.value.name())
    }

    pub(super) fn reach(&self) -> Result<Reach, NamespaceError> {
        let name = self.namespace.as_deref();
        let namespace = match Namespace::open(name) {
            Err(NamespaceError::Unknown { .. }) => return Ok(Reach::Gone),
            other => other?,
        };
        Ok(match namespace.inode()? == self.inode {
            true => Reach::Here(namespace),
            false if name.is_some() => Reach::Gone,
            false => Reach::Elsewhere,
        })
    }

    /// Puts it back, also under a new name of the interface. An error that the interface is not
    /// known where it is gone, even if another has its name now.
    pub(super) fn undo(&self, namespace: &Namespace) -> Result<(), LinkError> {
        let interface = match self.index {
            0 => link::state(namespace, &self.interface).map(|_| Some(self.interface.clone()))?,
            index => link::name_at(namespace, index)?,
        };
        let interface = interface.ok_or_else(|| LinkError::Unknown {
            interface: self.interface.clone(),
            namespace: namespace.to_string(),
            known: Vec::new(),
        })?;
        let set = self.value.set(namespace, &interface);
        if self.comes_back(&set) { Ok(()) } else { set }
    }

    /// True if the feature comes back by itself: the kernel has noted that it is wanted, and
    /// drivers hold offloads that merge frames off only while a program is attached.
    pub(super) fn comes_back(&self, set: &Result<(), LinkError>) -> bool {
        let merging = matches!(
            self.value,
            Value::Feature { feature, was: true } if Feature::MERGING.contains(&feature)
        );
        merging && matches!(set, Err(LinkError::Fixed { .. }))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interface = &self.interface;
        match self.value {
            Value::Feature { feature, was } => {
                let value = if was { "on" } else { "off" };
                write!(f, "{interface}: {} is {value} again", feature.name())
            }
            Value::Link { link } => write!(f, "{interface}: {link} again"),
        }
    }
}
