//! State of a link before a run: up or down, and how long its packets were.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::setting::{Reach, reach};
use super::{Journal, JournalError, What, write};
use crate::driver::kernel::link::{self, LinkError, Property};
use crate::driver::kernel::netns::{Namespace, NamespaceError};

/// A property of a link as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LinkSetting {
    /// Name of the namespace in /run/netns, if it has one.
    namespace: Option<String>,
    /// Number of the namespace: names come again.
    inode: u64,
    interface: String,
    index: u32,
    /// The property as it was.
    link: Property,
}

/// A changed property; put back when dropped.
#[derive(Debug)]
pub struct LinkChange {
    namespace: Namespace,
    setting: LinkSetting,
    path: PathBuf,
    is_back: bool,
}

impl LinkSetting {
    pub(super) fn reach(&self) -> Result<Reach, NamespaceError> {
        reach(self.namespace.as_deref(), self.inode)
    }

    /// Puts it back, also under a new name of the interface. An error that the interface is not
    /// known where it is gone, even if another has its name now.
    pub(super) fn undo(&self, namespace: &Namespace) -> Result<(), LinkError> {
        match link::name_at(namespace, self.index)? {
            Some(interface) => link::set(namespace, &interface, self.link),
            None => Err(LinkError::Unknown {
                interface: self.interface.clone(),
                namespace: namespace.to_string(),
                known: Vec::new(),
            }),
        }
    }
}

impl fmt::Display for LinkSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} again", self.interface, self.link)
    }
}

impl Journal {
    /// Sets a property of a link; `None` when it was so already.
    pub fn change_link(
        &self,
        namespace: &Namespace,
        interface: &str,
        property: Property,
    ) -> Result<Option<LinkChange>, JournalError> {
        let state = link::state(namespace, interface)?;
        let was = property.of(&state);
        if was == property {
            return Ok(None);
        }
        let setting = LinkSetting {
            namespace: namespace.name().map(str::to_owned),
            inode: namespace.inode()?,
            interface: interface.to_owned(),
            index: state.index,
            link: was,
        };
        let name = format!("{}-{interface}-{}", setting.inode, property.word());
        let path = write(&self.settings, &name, What::Link(setting.clone()), false)?;
        let change = LinkChange {
            namespace: namespace.try_clone()?,
            setting,
            path,
            is_back: false,
        };
        // Dropping `change` on an error takes the entry away.
        link::set(namespace, interface, property)?;
        Ok(Some(change))
    }
}

impl LinkChange {
    /// Returns the property as it was.
    pub const fn was(&self) -> Property {
        self.setting.link
    }

    /// Changes it once more; what it was at first is still put back.
    pub fn set(&self, property: Property) -> Result<(), LinkError> {
        link::set(&self.namespace, &self.setting.interface, property)
    }

    /// Puts it back now. On an error the entry stays, for another try or for the next run.
    pub fn undo(&mut self) -> Result<(), LinkError> {
        match self.setting.undo(&self.namespace) {
            // An interface that is gone needs nothing.
            Ok(()) | Err(LinkError::Unknown { .. }) => {}
            error => return error,
        }
        self.is_back = true;
        // Putting it back once more would change nothing.
        let _ = fs::remove_file(&self.path);
        Ok(())
    }
}

impl Drop for LinkChange {
    fn drop(&mut self) {
        if !self.is_back {
            // No caller is left to get the error.
            let _ = self.undo();
        }
    }
}
