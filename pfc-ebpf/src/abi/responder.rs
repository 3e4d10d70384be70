//! The contract between the XDP program `responder` and userspace: the silent responder of the RC
//! cases.

/// Raised whenever a layout below changes.
pub const ABI_VERSION: u32 = 1;
/// Octets kept of a packet: all of a READ request behind two tags and IPv6.
pub const SNAP_LEN: usize = 256;

/// Names of the maps in the object.
pub mod name {
    /// `Array<Config>`, one entry.
    pub const CONFIG: &str = "CONFIG";
    /// `PerCpuArray<Counters>`, one entry.
    pub const COUNTERS: &str = "COUNTERS";
    /// Ring buffer of [`super::Record`].
    pub const RECORDS: &str = "RECORDS";
}

/// Configuration of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// [`ABI_VERSION`] of the writer; 0 (never written) lets everything pass.
    pub abi: u32,
    /// The tester's queue pair (24 bits): RoCEv2 packets for it are dropped and recorded, all else
    /// passes.
    pub queue_pair: u32,
}

/// Counts on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Packets for the tester's queue pair: dropped, and recorded unless lost.
    pub dropped: u64,
    /// Dropped packets for whose record there was no room.
    pub lost: u64,
    /// RoCEv2 packets for other queue pairs, which passed.
    pub other: u64,
    /// All other frames, which passed.
    pub passed: u64,
}

counts!(Counters);

/// A packet that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// CLOCK_MONOTONIC in nanoseconds.
    pub time: u64,
    /// Octets of the frame, without FCS.
    pub length: u32,
    /// Octets of it in `octets`.
    pub captured: u32,
    /// The frame's first octets.
    pub octets: [u8; SNAP_LEN],
}
