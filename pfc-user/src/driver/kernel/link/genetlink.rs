//! Generic netlink: families are found by name, attributes are octets.

use std::io;

use netlink_packet_core::{DecodeError, Emitable, ParseableParametrized};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;

use super::netlink::ask;

/// A command and its attributes.
#[derive(Clone, Debug)]
struct Command {
    command: u8,
    attributes: Vec<u8>,
}

impl GenlFamily for Command {
    /// No name: [`query`] finds the number of the family that it asks.
    fn family_name() -> &'static str {
        ""
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Command {
    fn buffer_len(&self) -> usize {
        self.attributes.len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        buffer[..self.attributes.len()].copy_from_slice(&self.attributes);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Command {
    fn parse_with_param(octets: &[u8], header: GenlHeader) -> Result<Self, DecodeError> {
        Ok(Self {
            command: header.cmd,
            attributes: octets.to_vec(),
        })
    }
}

/// Asks `family`; the attributes of its answer. `ENOENT` where the kernel has no such family.
pub(super) fn query(family: &str, command: u8, attributes: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut message = GenlMessage::from_payload(Command {
        command,
        attributes,
    });
    message.set_resolved_family_id(family_id(family)?);
    Ok(ask(NETLINK_GENERIC, message)?.payload.attributes)
}

fn family_id(name: &str) -> io::Result<u16> {
    let request = GenlCtrl {
        cmd: GenlCtrlCmd::GetFamily,
        nlas: vec![GenlCtrlAttrs::FamilyName(name.to_owned())],
    };
    let answer: GenlMessage<GenlCtrl> = ask(NETLINK_GENERIC, GenlMessage::from_payload(request))?;
    let id = attribute!(answer.payload.nlas, GenlCtrlAttrs::FamilyId).copied();
    id.ok_or_else(|| io::Error::other(format!("generic netlink: the family {name} has no number")))
}
