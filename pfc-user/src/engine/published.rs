//! State that senders' threads publish while they send: each word has one writer, and any thread
//! reads it without waiting.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use pfc_ebpf::units::{Nanos, Priority};
use validator_core::engine::snapshot::{Count, Response, Transmit};
use validator_core::engine::storm::Gaps;

/// A count of frames that left.
#[derive(Debug, Default)]
pub struct Sent {
    frames: AtomicU64,
    octets: AtomicU64,
}

impl Sent {
    /// Adds a frame of `octets` octets with FCS.
    pub fn add(&self, octets: u64) {
        // One writer: no addition is lost.
        self.set(self.read() + Count { frames: 1, octets });
    }

    /// Sets the count.
    pub fn set(&self, count: Count) {
        self.octets.store(count.octets, Ordering::Relaxed);
        self.frames.store(count.frames, Ordering::Relaxed);
    }

    /// The count.
    pub fn read(&self) -> Count {
        Count {
            frames: self.frames.load(Ordering::Relaxed),
            octets: self.octets.load(Ordering::Relaxed),
        }
    }
}

/// A flow.
#[derive(Debug, Default)]
pub struct FlowState {
    /// Frames that left since its start.
    pub sent: Sent,
    /// Frames among these that no port counts: ARP and Neighbour Discovery without a stamp.
    pub uncounted: Sent,
    transmit: AtomicU8,
    /// Nanoseconds from the order to the first frame, plus 1; 0: there was none.
    first: AtomicU64,
    gaps: AtomicU64,
    longest_gap: AtomicU64,
    /// Times that it ended as its frames had become too long for the interface.
    pub too_long: AtomicU64,
}

impl FlowState {
    /// Starts anew.
    pub fn clear(&self) {
        self.sent.set(Count::default());
        self.uncounted.set(Count::default());
        self.first.store(0, Ordering::Relaxed);
        self.set_gaps(Gaps::default());
    }

    /// The gaps of pause frames so far.
    pub fn set_gaps(&self, gaps: Gaps) {
        self.longest_gap.store(gaps.longest, Ordering::Relaxed);
        self.gaps.store(gaps.count, Ordering::Relaxed);
    }

    /// The gaps of pause frames so far.
    pub fn gaps(&self) -> Gaps {
        Gaps {
            count: self.gaps.load(Ordering::Relaxed),
            longest: self.longest_gap.load(Ordering::Relaxed),
        }
    }

    /// Its state. What left before is counted when this is seen.
    pub fn set(&self, transmit: Transmit) {
        self.transmit.store(transmit as u8, Ordering::Release);
    }

    /// Its state.
    pub fn transmit(&self) -> Transmit {
        match self.transmit.load(Ordering::Acquire) {
            1 => Transmit::Started,
            2 => Transmit::Paused,
            _ => Transmit::Stopped,
        }
    }

    /// The first frame left at `after` from the order.
    pub fn set_first(&self, after: Nanos) {
        self.first.store(after + 1, Ordering::Relaxed);
    }

    /// Nanoseconds from the order to the first frame.
    pub fn first(&self) -> Option<Nanos> {
        self.first.load(Ordering::Relaxed).checked_sub(1)
    }
}

/// Responses of a queue's sender to what held it.
#[derive(Debug, Default)]
pub struct ResponseState {
    holds: AtomicU64,
    after: Sent,
    longest: AtomicU64,
}

impl ResponseState {
    /// These are all so far.
    pub fn set(&self, response: &Response) {
        self.after.set(response.after);
        self.longest.store(response.longest, Ordering::Relaxed);
        self.holds.store(response.holds, Ordering::Relaxed);
    }

    /// All so far.
    pub fn read(&self) -> Response {
        Response {
            holds: self.holds.load(Ordering::Relaxed),
            after: self.after.read(),
            longest: self.longest.load(Ordering::Relaxed),
        }
    }
}

/// A port.
#[derive(Debug, Default)]
pub struct PortState {
    /// Frames of data that left by the port's thread, without those that no port counts.
    pub data: Sent,
    /// Frames of data that the kernel sent.
    pub fast: Sent,
    /// Frames that left of flows of pause frames.
    pub control: Sent,
    /// PAUSE frames among these.
    pub pause: Sent,
    /// PFC frames among these, by class.
    pub pfc: [Sent; Priority::COUNT],
    /// Time of data that was due and never left, as the thread sends no faster, nanoseconds.
    pub forgotten: AtomicU64,
    /// Time of data that was due and never left, as the kernel sends no faster, nanoseconds.
    pub fast_forgotten: AtomicU64,
    /// Times that the interface began to refuse every frame. Each of the port's senders adds.
    pub stalls: AtomicU64,
    /// Responses of the port's thread to what held its queues.
    pub responses: [ResponseState; Priority::COUNT],
    /// Responses of the kernel to what held the queues.
    pub fast_responses: [ResponseState; Priority::COUNT],
}

impl PortState {
    /// Frames that left, of all flows, without those that no port counts.
    pub fn sent(&self) -> Count {
        self.data.read() + self.fast.read() + self.control.read()
    }

    /// Time of data that was due and never left, of all that sends.
    pub fn all_forgotten(&self) -> Nanos {
        let all = [&self.forgotten, &self.fast_forgotten];
        all.map(|time| time.load(Ordering::Relaxed)).iter().sum()
    }

    /// Responses to what held its queues, of all that sends.
    pub fn all_responses(&self) -> [Response; Priority::COUNT] {
        std::array::from_fn(|queue| {
            let [thread, kernel] = [&self.responses, &self.fast_responses];
            thread[queue].read() + kernel[queue].read()
        })
    }
}

const _: () = assert!(Transmit::Started as u8 == 1 && Transmit::Paused as u8 == 2);
