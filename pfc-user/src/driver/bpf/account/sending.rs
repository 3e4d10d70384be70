//! The part of the object that sends: the maps that only `account` has.

use std::sync::{Mutex, PoisonError};

use aya::EbpfLoader;
use aya::maps::{MapData, RingBuf};
use pfc_ebpf::abi::generate::{Lanes, Span, name};

use super::Sizes;
use crate::driver::bpf::XdpError;
use crate::driver::bpf::generate::{self, Generator, Table};
use crate::driver::bpf::object::Program;
use crate::driver::bpf::pod::Plain;

/// The generator of the cases.
pub type CaseGenerator = Generator<CaseMaps>;

/// Maps of what verdicts rest on.
pub struct CaseMaps {
    /// Clocks of the priorities.
    pub lanes: Table<Lanes>,
    /// Frames by window and priority.
    pub offered: Table<[u64; 8]>,
    spans: Mutex<RingBuf<MapData>>,
}

/// Sets the number of entries of the generator's maps.
pub fn size(loader: &mut EbpfLoader<'_>, sizes: Sizes) -> Result<(), XdpError> {
    loader.map_max_entries(name::OFFERED, sizes.windows);
    generate::size(loader, sizes.flows)
}

impl CaseMaps {
    pub(super) fn open(program: &mut Program, sizes: Sizes) -> Result<Self, XdpError> {
        Ok(Self {
            lanes: Table::open(program, name::LANES, 1)?,
            offered: Table::open(program, name::OFFERED, sizes.windows as usize)?,
            spans: Mutex::new(program.map(name::SPANS)?),
        })
    }

    /// Takes the spans recorded so far.
    pub fn take_spans(&self) -> Vec<Span> {
        let mut ring = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spans = Vec::new();
        while let Some(record) = ring.next() {
            spans.extend(Plain::<Span>::read(&record));
        }
        spans
    }
}
