//! The part of the object that sends: the maps that only `flow` has.

use pfc_ebpf::abi::generate::name;

use crate::driver::bpf::XdpError;
use crate::driver::bpf::generate::{Generator, Table};
use crate::driver::bpf::object::Program;

/// The generator of the engine.
pub type FlowGenerator = Generator<FlowMaps>;

/// Maps of an exact account.
pub struct FlowMaps {
    /// By flow, frames that were let go and did not leave.
    pub lost: Table<u64>,
}

impl FlowMaps {
    pub(super) fn open(program: &Program, flows: u32) -> Result<Self, XdpError> {
        Ok(Self {
            lost: Table::open(program, name::LOST, flows as usize)?,
        })
    }
}
