//! Properties that can be set of any link: up or down, and its MTU.

use std::fmt;

use rtnetlink::LinkUnspec;
use serde::{Deserialize, Serialize};

use super::{LinkError, LinkState, netlink};
use crate::driver::kernel::netns::Namespace;

/// A property of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// The link is set up, or down.
    Up(bool),
    /// Largest layer-3 packet in octets.
    Mtu(u32),
}

impl Property {
    /// Returns the same property as it is in that state.
    pub const fn of(self, state: &LinkState) -> Self {
        match self {
            Self::Up(_) => Self::Up(state.up),
            Self::Mtu(_) => Self::Mtu(state.mtu),
        }
    }

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Up(_) => "up",
            Self::Mtu(_) => "mtu",
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up(true) => f.write_str("the link is up"),
            Self::Up(false) => f.write_str("the link is down"),
            Self::Mtu(mtu) => write!(f, "the MTU is {mtu}"),
        }
    }
}

/// Sets a property of a link.
pub fn set(namespace: &Namespace, interface: &str, property: Property) -> Result<(), LinkError> {
    let link = LinkUnspec::new_with_name(interface);
    let message = match property {
        Property::Up(true) => link.up(),
        Property::Up(false) => link.down(),
        Property::Mtu(mtu) => link.mtu(mtu),
    }
    .build();
    netlink(
        namespace,
        &format!("cannot change {interface} in {namespace} so that {property}"),
        async |handle, _| handle.link().change(message).execute().await,
    )
}
