//! BPF_MAP_UPDATE_BATCH (Linux 5.6; on arrays by CPU 5.13): many values written by one system call.
//!
//! Written out because aya writes one value a call, and allocates for each.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use aya::Pod;
use aya::maps::{IterableMap, MapData, PerCpuArray, PerCpuValues};
use aya::util::nr_cpus;

use super::XdpError;

/// `BPF_MAP_UPDATE_BATCH` of `enum bpf_cmd`, `linux/bpf.h`.
const UPDATE_BATCH: libc::c_long = 26;
/// Octets of values in one call, about.
const CHUNK: usize = 1 << 20;

/// The part of `union bpf_attr` for `BPF_MAP_*_BATCH`.
#[repr(C)]
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
    let cpus = nr_cpus().map_err(|(_, error)| XdpError::Map(error.into()))?;
    let map = IterableMap::<u32, PerCpuValues<V>>::map(array).fd().as_fd();
    // Each CPU's value begins at a multiple of eight octets.
    let entry = size_of::<V>().next_multiple_of(8) * cpus;
    let most = (CHUNK / entry).max(1).min(entries as usize);
    let zeroes = vec![0; most * entry / 8];
    let keys: Vec<u32> = (0..entries).collect();
    for keys in keys.chunks(most.max(1)) {
        update(map, keys, &zeroes).map_err(XdpError::Clear)?;
    }
    Ok(())
}

/// Writes a value for each key; `values` has at least as many.
fn update(map: BorrowedFd, keys: &[u32], values: &[u64]) -> io::Result<()> {
    let mut attributes = Attributes {
        in_batch: 0,
        out_batch: 0,
        keys: keys.as_ptr() as u64,
        values: values.as_ptr() as u64,
        count: keys.len() as u32,
        map: map.as_raw_fd() as u32,
        element_flags: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads so many keys and values, which outlive the call, and writes the
    // number of those that it took into the attributes, which nothing else refers to.
    let done = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            UPDATE_BATCH,
            &raw mut attributes,
            size_of::<Attributes>(),
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
