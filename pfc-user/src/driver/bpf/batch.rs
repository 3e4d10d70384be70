//! BPF_MAP_UPDATE_BATCH (Linux 5.6; on arrays by CPU 5.13): many values written by one system call.
//!
//! Written out because aya writes one value a call, and allocates for each.

use std::os::fd::{AsFd, AsRawFd};

use aya::Pod;
use aya::maps::{IterableMap, MapData, PerCpuArray, PerCpuValues};

use super::XdpError;
use super::object::cpus;
use super::syscall::bpf;

/// `BPF_MAP_UPDATE_BATCH` of `enum bpf_cmd`, `linux/bpf.h`.
const UPDATE_BATCH: libc::c_long = 26;
/// Octets of values in one call, about.
const CHUNK: usize = 1 << 20;

/// The part of `union bpf_attr` for `BPF_MAP_*_BATCH`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

/// Zeroes the first `entries` entries of an array on all CPUs.
pub fn zero<V: Pod>(array: &PerCpuArray<MapData, V>, entries: u32) -> Result<(), XdpError> {
    let map = IterableMap::<u32, PerCpuValues<V>>::map(array).fd().as_fd();
    // Each CPU's value begins at a multiple of eight octets.
    let entry = size_of::<V>().next_multiple_of(8) * cpus()?;
    let most = (CHUNK / entry).max(1).min(entries as usize);
    let zeroes = vec![0_u64; most * entry / 8];
    let keys: Vec<u32> = (0..entries).collect();
    for keys in keys.chunks(most.max(1)) {
        let mut attributes = Attributes {
            keys: keys.as_ptr() as u64,
            values: zeroes.as_ptr() as u64,
            count: keys.len() as u32,
            map: map.as_raw_fd() as u32,
            ..Attributes::default()
        };
        // SAFETY: the kernel reads so many keys and values, which outlive the call, and writes the
        // number of those that it took into the attributes alone.
        unsafe { bpf(UPDATE_BATCH, &mut attributes) }.map_err(XdpError::Clear)?;
    }
    Ok(())
}
