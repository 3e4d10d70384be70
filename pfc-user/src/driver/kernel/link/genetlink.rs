//! Generic netlink: families are found by name, attributes are octets.

use std::io;
use std::marker::PhantomData;

use netlink_packet_core::{DecodeError, Emitable, ParseableParametrized};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;

use super::netlink::ask;

/// A family of generic netlink.
pub(super) trait Family {
    /// Its name.
    const NAME: &'static str;
}

/// A command and its attributes.
#[derive(Clone, Debug)]
struct Command<F> {
    command: u8,
    attributes: Vec<u8>,
    family: PhantomData<F>,
}

impl<F: Family> GenlFamily for Command<F> {
    fn family_name() -> &'static str {
        F::NAME
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        1
    }
}

impl<F> Emitable for Command<F> {
    fn buffer_len(&self) -> usize {
        self.attributes.len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        buffer[..self.attributes.len()].copy_from_slice(&self.attributes);
    }
}

impl<F> ParseableParametrized<[u8], GenlHeader> for Command<F> {
    fn parse_with_param(octets: &[u8], header: GenlHeader) -> Result<Self, DecodeError> {
        Ok(Self {
            command: header.cmd,
            attributes: octets.to_vec(),
            family: PhantomData,
        })
    }
}

/// Asks the family `F`; the attributes of its answer. `ENOENT` where the kernel has no such family.
pub(super) fn query<F: Family + std::fmt::Debug>(
    command: u8,
    attributes: Vec<u8>,
) -> io::Result<Vec<u8>> {
    let mut message = GenlMessage::from_payload(Command::<F> {
        command,
        attributes,
        family: PhantomData,
    });
    message.set_resolved_family_id(family_id(F::NAME)?);
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
