//! The values of the maps as plain old data.

use std::ptr;

use aya::Pod;
use pfc_ebpf::abi::account::{
    Arrival, Config, Control, FlowConfig, FlowCounters, Offence, PauseState, Port, WindowCounters,
};
use pfc_ebpf::abi::{flow, generate, responder, watch};

/// A value of a map; its type is another crate's, as is the trait.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Plain<T>(pub T);

macro_rules! plain {
    ($($value:ty)*) => {$(
        // SAFETY: `repr(C)`, made of integers alone, without padding between them: any octets are
        // a value.
        unsafe impl Pod for Plain<$value> {}
    )*};
}

plain!(Arrival Config Control FlowConfig FlowCounters Offence PauseState Port WindowCounters);
plain!(u64 [u64; 8] generate::Flow generate::Lanes generate::Settings generate::Span generate::Worker);
plain!(responder::Config responder::Counters responder::Record);
plain!(watch::Config watch::Control watch::Counters watch::FlowState);
plain!(watch::PauseClock watch::Sketch flow::Pauses flow::Port flow::Received);

impl<T: Copy> Plain<T>
where
    Self: Pod,
{
    /// The value in the octets of a record; `None` where they are too few.
    pub fn read(octets: &[u8]) -> Option<T> {
        if octets.len() < size_of::<T>() {
            return None;
        }
        // SAFETY: the octets are there, and any are a value.
        Some(unsafe { ptr::read_unaligned(octets.as_ptr().cast()) })
    }

    /// The octets of a value.
    pub fn octets(value: &T) -> &[u8] {
        // SAFETY: a value is made of integers without padding: all its octets are set.
        unsafe { std::slice::from_raw_parts(ptr::from_ref(value).cast(), size_of::<T>()) }
    }
}
