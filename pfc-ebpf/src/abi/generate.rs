//! The contract between the XDP program `generate`, which makes test frames in the kernel, and
//! userspace; and the part of its work that is arithmetic alone, which userspace shares.
//!
//! The objects `account` and `flow` have the program. The maps that only one of them has, and the
//! fields that only one uses, say so.
//!
//! The program runs once for every frame that may leave (BPF_PROG_RUN with live frames), in batches
//! of [`BATCH`]. A worker is a CPU that runs it; the flows of a worker lie side by side and are its
//! alone. All values are made of 64-bit words, so that userspace reads and writes them through
//! memory.

use crate::pacing::{Bucket, BurstMeter};

/// Runs in a batch: what the program lets go in one reaches the device at its end at the latest.
pub const BATCH: u32 = 64;
/// Runs in a batch where the rate leaves the time for it; divides [`BATCH`]. Between two batches
/// others may have the CPU.
pub const SHORT_BATCH: u32 = 8;
/// Runs after which the program looks at the clock, and for PFC that has come; also whenever
/// nothing was due. Divides both batches, so that each begins with a look: between batches others
/// may have had the CPU.
pub const LOOK: u64 = 8;
const _: () = assert!(BATCH.is_power_of_two() && SHORT_BATCH.is_power_of_two());
const _: () =
    assert!(BATCH.is_multiple_of(SHORT_BATCH) && (SHORT_BATCH as u64).is_multiple_of(LOOK));
/// Flows that a run looks at before it lets the frame go unsent.
pub const SCAN: u64 = 16;
/// Lateness of a sender or a simulated DUT above it is a stall; up to it, not yet worth a word.
/// Nanoseconds.
pub const STALL: u64 = 500_000;
/// Octets at the start of a frame that the program writes every time: all headers and the stamp of
/// a case's frame fit, up to IPv6 behind a tag.
pub const BLOCK: usize = 88;
/// The shortest frame: IPv4, no tag, a stamp. With its FCS the shortest of Ethernet.
pub const SHORTEST: usize = 60;
/// The longest frame: a page less the headroom and the kernel's own records.
pub const LONGEST: usize = 3408;

/// Names of the maps in the object.
pub mod name {
    /// `Array<Settings>`, one entry; memory-mapped.
    pub const SETTINGS: &str = "GENERATE";
    /// `Array<Flow>`, flows by worker; memory-mapped.
    pub const FLOWS: &str = "GENERATE_FLOWS";
    /// `Array<Worker>` by CPU; memory-mapped.
    pub const WORKERS: &str = "GENERATE_CPUS";
    /// `Array<Lanes>`, one entry; memory-mapped. In `account`.
    pub const LANES: &str = "GENERATE_LANES";
    /// `Array<[u64; 8]>`: frames by window of their stamp and by priority; memory-mapped. In
    /// `account`.
    pub const OFFERED: &str = "GENERATE_OFFER";
    /// Ring buffer of [`super::Span`]. In `account`.
    pub const SPANS: &str = "GENERATE_SPANS";
    /// `Array<u64>` by flow: frames that were let go and that the device did not take;
    /// memory-mapped. In `flow`.
    pub const LOST: &str = "GENERATE_LOST";
}

/// Settings of all workers during a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Settings {
    /// Not 0: nothing more leaves.
    pub stop: u64,
    /// No frame is stamped at or after this time.
    pub to: u64,
    /// Start of window 0.
    pub epoch: u64,
    /// Width of a window, not 0.
    pub width: u64,
    /// Windows, not 0; frames after the last count in the last.
    pub windows: u64,
}

/// A flow: what is sent, when, and what was. Three cache lines, of which the first tells when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// The schedule, by the clock of its priority.
    pub bucket: Bucket,
    /// Sequence number of the next frame.
    pub sequence: u64,
    /// Stamp of the burst's first frame; 0 when none.
    pub first: u64,
    /// Priority, 0 to 7.
    pub priority: u16,
    /// Octets of a frame.
    pub length: u16,
    /// Octets that its frames are shorter than the longest.
    pub trim: u16,
    /// Offset of the stamp; in `account`, all of it is within the block. In `flow`, with [`SHORT`]
    /// where the stamp is a short one.
    pub stamp_at: u16,
    /// Stamp of the last frame.
    pub last: u64,
    /// Bits of layer 1 in a frame, times [`crate::pacing::SECOND`].
    pub cost: u64,
    /// The stamp's first eight octets as they stand in memory, where it may reach beyond the block:
    /// in `flow`.
    pub head: u64,
    /// Sum of the stamp's words before the sequence number. A short stamp has one.
    pub sum: u64,
    /// The first octets of a frame, as they stand in memory.
    pub block: [u64; BLOCK / 8],
    /// In `flow`, the sequence number of the first frame that is not sent.
    pub own: u64,
}

/// In [`Flow::stamp_at`]: the stamp is a short one.
pub const SHORT: u16 = 1 << 15;

/// Octets of a stamp that differ from frame to frame: sequence number, time and check.
pub const VARIABLE: usize = 12;

/// The state of a worker. What changes with every frame comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Worker {
    /// The one after its last flow; 0: no worker.
    pub end: u64,
    /// Flow to look at next.
    pub cursor: u64,
    /// Runs so far.
    pub runs: u64,
    /// Not 0: the next run looks, whichever that is.
    pub look: u64,
    /// Not 0: the burst is over.
    pub over: u64,
    /// Time of the last look.
    pub now: u64,
    /// Sum of the three words of that time.
    pub now_sum: u64,
    /// Frames let go that have not reached the device yet.
    pub pending: u64,
    /// Lag of each priority's clock behind `now`; [`HELD`]: it is paused.
    pub behind: [u64; 8],
    /// Largest burst of its flows.
    pub excess: BurstMeter,
    /// The most that a flow may catch up with, in nanoseconds at its rate.
    pub max_lateness: u64,
    /// Bit per priority that PFC is honoured for.
    pub honoured: u64,
    /// First of its flows.
    pub first: u64,
    /// Its runs in a batch: [`BATCH`] or [`SHORT_BATCH`].
    pub batch_runs: u64,
    /// Not 0: it keeps the clocks of the priorities, which the others read.
    pub leads: u64,
    /// Bit per priority: paused at the last look.
    pub paused: u64,
    /// Frames that left in this batch, by priority: [`batch::frames`] and [`batch::octets`] in one
    /// word, for each frame counts.
    pub batch: [u64; 8],
    /// Frames that left in the batch before, by priority, in the same form.
    pub batch_before: [u64; 8],
    /// Frames of the present window by priority that are not yet in OFFERED; those of the batch
    /// are not among them.
    pub offered: [u64; 8],
    /// Begin of the batch.
    pub batch_from: u64,
    /// Window of the last look.
    pub window: u64,
    /// Begin of the next one.
    pub window_ends: u64,
    /// The pause that `overrun` is about, by priority: when it began.
    pub overrun_since: [u64; 8],
    /// Octets that may have left after it had begun.
    pub overrun: [u64; 8],
    /// The largest of these of all pauses.
    pub overrun_largest: [u64; 8],
    /// Frames that the device took.
    pub delivered: u64,
    /// Frames that the device did not take.
    pub dropped: u64,
    /// Frames that the kernel did not hand to the device.
    pub refused: u64,
    /// The last error of those, a positive errno.
    pub error: u64,
    /// Records that did not fit into SPANS.
    pub spans_lost: u64,
    /// In `flow`: the level of `excess` from which the line takes no more.
    pub most: u64,
    /// In `flow`: frames let go.
    pub let_go: u64,
    /// In `flow`: by number of the frame modulo [`QUEUE`], the flows of the frames that are
    /// pending.
    pub queue: [u64; QUEUE],
    /// In `flow`: by queue, for how long it had been held when the run began.
    pub held_before: [u64; 8],
    /// In `flow`: bit per queue whose responses are counted.
    pub answers: u64,
    /// In `flow`: bit per queue that was found held in this batch, with frames that leave by the
    /// end of the batch.
    pub stopping: u64,
    /// In `flow`: by queue, when the pause frame that holds it had arrived.
    pub held_since: [u64; 8],
    /// In `flow`: by queue, how fast it obeyed in this run.
    pub responses: [Response; 8],
}

/// Responses of a queue to what held it. Frames and times are what they may have been at most: when
/// a frame of a batch left is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Response {
    /// Number of times that it was found held, having been free before.
    pub holds: u64,
    /// Frames that left after the pause frame had arrived.
    pub frames: u64,
    /// Their octets, without FCS.
    pub octets: u64,
    /// The longest time from a pause frame's arrival to the last frame that left after it.
    pub longest: u64,
}

/// More frames than can be pending: the kernel hands them to the device by 16
/// (XDP_BULK_QUEUE_SIZE), when the next one has been let go.
pub const QUEUE: usize = 32;

/// Frames and octets of a batch in one word.
pub mod batch {
    /// A frame of `length` octets.
    pub const fn frame(length: u16) -> u64 {
        (length as u64) << 32 | 1
    }

    /// Frames in such a sum.
    pub const fn frames(sum: u64) -> u64 {
        sum & 0xffff_ffff
    }

    /// Octets in such a sum.
    pub const fn octets(sum: u64) -> u64 {
        sum >> 32
    }
}

/// [`Worker::behind`] of a priority that is paused: none of its frames is ever due.
pub const HELD: u64 = 1 << 62;

/// Clocks of the priorities, which stand still while PFC pauses a priority: what the DUT asked us
/// not to send is not owed afterwards. Kept by one worker, so that all are of one mind on how long
/// that was (see [`crate::pacing::withheld`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Lanes {
    /// Time up to which the clocks are kept; later, nothing stood still since. Written after
    /// `behind` and read before it: a reader of both in between waits longer, not shorter.
    pub at: u64,
    /// Time for which each has stood still.
    pub behind: [u64; 8],
    /// Begin of a span up to `at` whose record is still to be made; 0 without one.
    pub open: [u64; 8],
}

/// A span of time for the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Span {
    /// A priority that was held back; [`Span::STALL`]: the worker did not run.
    pub what: u64,
    /// Begin.
    pub from: u64,
    /// End.
    pub to: u64,
}

impl Span {
    /// No priority: a stall.
    pub const STALL: u64 = 8;
}

/// Sum of the three low words of a number.
#[inline(always)]
pub const fn words(value: u64) -> u64 {
    (value >> 32 & 0xffff) + (value >> 16 & 0xffff) + (value & 0xffff)
}

/// The last [`VARIABLE`] octets of a stamp: what stands in its first eight, and what stands in its
/// last eight. `sum` is that of the words before, `time_sum` that of the low 40 bits of `time`.
#[inline(always)]
pub const fn variable(sum: u64, sequence: u64, time: u64, time_sum: u64) -> [u64; 2] {
    // The 40 bits of the sequence number begin at a word, and end in the middle of one.
    let sum = sum + words(sequence << 8) + time_sum;
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let time = time << 24;
    [
        (sequence << 24 | time >> 40).to_be(),
        (sequence << 56 | time >> 8 | !sum & 0xffff).to_be(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::{LEN, MASK_40, Phase, Stamp};

    #[test]
    fn the_variable_octets_are_those_of_the_stamp() {
        for i in 0..10_000u64 {
            let sequence = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & MASK_40;
            let time = i.wrapping_mul(0xd1b5_4a32_d192_ed03) & MASK_40;
            let whole = Stamp {
                run: i as u16,
                flow: 4095,
                phase: Phase::Probe,
                sequence,
                time,
            }
            .emit();
            let sum = whole[..LEN - VARIABLE]
                .chunks(2)
                .map(|word| u64::from(word[0]) << 8 | u64::from(word[1]))
                .sum();
            let [head, tail] = variable(sum, sequence, time, words(time)).map(u64::to_ne_bytes);
            let mut made = whole;
            made[LEN - VARIABLE..].fill(0xaa);
            made[LEN - VARIABLE..][..8].copy_from_slice(&head);
            made[LEN - 8..].copy_from_slice(&tail);
            assert_eq!(made, whole);
        }
    }
}
