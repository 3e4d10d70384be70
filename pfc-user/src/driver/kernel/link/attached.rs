//! The XDP program of an interface, by whatever means it was attached. Asked by rtnetlink.

use std::fmt;

use aya::programs::loaded_programs;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage, LinkXdp};

use super::carrier::by_index;
use super::{LinkError, netlink};
use crate::driver::kernel::netns::Namespace;

/// A program attached to an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its id.
    pub id: u32,
    /// Its name, where it has one.
    pub name: Option<String>,
}

impl fmt::Display for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` (id {})", self.id),
            None => write!(f, "id {}", self.id),
        }
    }
}

/// The program of the interface with that index in the calling thread's network namespace.
pub fn program(interface: u32) -> Result<Option<Attached>, LinkError> {
    let link = netlink(
        &Namespace::current()?,
        "cannot read the XDP program of an interface",
        async |handle, _| by_index(&handle, interface).await,
    )?;
    Ok(program_id(&link).map(|id| Attached {
        id,
        name: program_name(id),
    }))
}

fn program_name(id: u32) -> Option<String> {
    let program = loaded_programs()
        .filter_map(Result::ok)
        .find(|program| program.id() == id)?;
    program
        .name_as_str()
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}

fn program_id(link: &LinkMessage) -> Option<u32> {
    let xdp = attribute!(link.attributes, LinkAttribute::Xdp)?;
    xdp.iter().find_map(|fact| match fact {
        // Several programs have a kind each: driver, generic and offloaded.
        LinkXdp::ProgId(id)
        | LinkXdp::DrvProgId(id)
        | LinkXdp::SkbProgId(id)
        | LinkXdp::HwProgId(id) => Some(*id),
        _ => None,
    })
}
