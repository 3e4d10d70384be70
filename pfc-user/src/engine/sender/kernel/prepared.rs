//! Flows as the program wants them, and what became of them.

use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pfc_ebpf::abi::generate::{self, BATCH, BLOCK, Flow, HELD, SHORT_BATCH, Settings, Worker};
use pfc_ebpf::flow_stamp::{Form, MAGIC, short_place};
use pfc_ebpf::pacing::{Bucket, BurstMeter};
use pfc_ebpf::units::{LineRate, Nanos, Priority, SECOND};
use validator_core::engine::flow::{Fine, Steady, fine, whole};
use validator_core::engine::packet::{Payload, Template};
use validator_core::engine::port::{BURST, MEMORY};
use validator_core::engine::snapshot::{Count, Response, Transmit};

use super::{Back, Run};
use crate::driver::bpf::flow::{FlowGenerator, Place};
use crate::engine::published::{FlowState, PortState, ResponseState};
use crate::engine::snapshot::with_fcs;

/// Frames a second up to which there is time for short batches.
const LEAVES_TIME: u64 = 3_000_000;

/// Words of a flow in the map.
const SEQUENCE: usize = offset_of!(Flow, sequence) / size_of::<u64>();
const FIRST: usize = offset_of!(Flow, first) / size_of::<u64>();
const BUCKET: usize = offset_of!(Flow, bucket) / size_of::<u64>();

/// Frames of one kind are the same but for the block and the stamp: the program writes no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Octets without FCS.
    length: usize,
    /// Octets of the headers; what stands behind them counts from here.
    headers: usize,
    payload: Payload,
    stamp_at: usize,
    form: Form,
}

impl Kind {
    /// Returns the kind of a flow whose frames have `length` octets without FCS; `None` where the
    /// program cannot make them: they have to be the same but for their stamps, with their headers
    /// in the block.
    pub fn of(template: &Template, length: usize) -> Option<Self> {
        let headers = template.header_octets();
        let fits = headers <= BLOCK && length <= generate::LONGEST;
        (template.is_constant() && fits).then_some(())?;
        Some(Self {
            length,
            headers,
            payload: template.payload().clone(),
            stamp_at: template.stamp_at(length)?,
            form: template.stamp_form()?,
        })
    }
}

/// A flow that the program is to send.
pub struct FastFlow {
    /// Its place among those of the port.
    pub flow: usize,
    /// State by which it goes on.
    pub steady: Steady,
    /// Its kind.
    pub kind: Kind,
    /// A frame, without its stamp.
    pub frame: Vec<u8>,
    /// Its queue.
    pub queue: Priority,
    /// Values in its stamps.
    pub place: Place,
    /// Its next frame's sequence number less that frame's own.
    pub skipped: u64,
    /// Time at which the order to start it was given.
    pub started: Nanos,
    /// State that the flow publishes.
    pub state: Arc<FlowState>,
}

/// A run.
pub struct Prepared {
    /// A frame of the kind.
    pub frame: Vec<u8>,
    /// Runs in a batch.
    pub batch: u32,
    flows: Vec<Begun>,
    settings: Settings,
    cpu: usize,
    worker: Worker,
    /// Count of the port's frames in runs before, and how fast pause frames were obeyed.
    before: Count,
    responses_before: [Response; Priority::COUNT],
    /// Time of what was left out in runs before.
    forgotten_before: Nanos,
}

/// A flow of a run.
struct Begun {
    flow: FastFlow,
    entry: Flow,
    /// Count of its frames in runs before.
    before: Count,
    /// All its frames have left.
    is_over: bool,
}

impl Prepared {
    /// Returns a run from `from` on, when each queue had been held for `held_before`; frames leave
    /// on `cpu`.
    pub fn new(
        run: Run,
        cpu: usize,
        from: Nanos,
        held_before: [Nanos; Priority::COUNT],
        state: &PortState,
    ) -> Self {
        let frames: u128 = run
            .flows
            .iter()
            .map(|flow| fine(SECOND) / flow.steady.interval.max(1))
            .sum();
        let short = frames <= u128::from(LEAVES_TIME);
        let batch = if short { SHORT_BATCH } else { BATCH };
        let line = run.line_rate.bits_per_second();
        let worker = Worker {
            end: run.flows.len() as u64,
            batch_runs: batch.into(),
            leads: 1,
            now: from,
            max_lateness: MEMORY,
            honoured: run.honoured,
            // The first look is for what holds a queue already.
            paused: 1,
            excess: BurstMeter::new(line),
            most: line * BURST,
            held_before,
            behind: std::array::from_fn(|queue| if run.held & 1 << queue != 0 { HELD } else { 0 }),
            answers: run
                .flows
                .iter()
                .fold(0, |bits, flow| bits | 1 << flow.queue.get()),
            ..Worker::default()
        };
        let frame = run.flows.first().map(|flow| flow.frame.clone());
        Self {
            frame: frame.unwrap_or_default(),
            batch,
            flows: run.flows.into_iter().map(Begun::new).collect(),
            settings: Settings {
                to: run.to,
                ..Settings::default()
            },
            cpu,
            worker,
            before: state.fast.read(),
            responses_before: state.fast_responses.each_ref().map(ResponseState::read),
            forgotten_before: state.fast_forgotten.load(Ordering::Relaxed),
        }
    }

    /// Writes all that the program goes by. It may not be running.
    pub fn begin(&self, generator: &FlowGenerator) {
        for (place, begun) in self.flows.iter().enumerate() {
            generator.flows.set(place, &begun.entry);
            generator.own.lost.set(place, &0);
        }
        generator.settings.set(0, &self.settings);
        // A CPU that sends nothing has no flows.
        for cpu in 0..generator.workers.entries() {
            generator.workers.set(cpu, &Worker::default());
        }
        generator.workers.set(self.cpu, &self.worker);
    }

    /// Says what left so far, which nothing adds to meanwhile; true: all that ever will.
    pub fn publish(
        &mut self,
        generator: &FlowGenerator,
        worker: &Worker,
        port: &PortState,
    ) -> bool {
        let (mut all, mut over, mut forgotten) = (self.before, true, 0);
        for (place, begun) in self.flows.iter_mut().enumerate() {
            let left = begun.left(place, generator);
            let count = Count {
                frames: left,
                octets: left * u64::from(begun.flow.steady.length),
            };
            begun.publish(place, count, generator);
            all += count;
            over &= begun.is_over;
            // They are late together, as the program takes them in turn.
            forgotten = begun.left_out(place, left, generator).max(forgotten);
        }
        port.fast.set(all);
        let forgotten = self.forgotten_before + whole(forgotten);
        port.fast_forgotten.store(forgotten, Ordering::Relaxed);
        self.publish_responses(worker, port);
        over
    }

    /// The program does not run from `now` on, for a while or for good: what it let go has left,
    /// which it did not see itself.
    pub fn rest(&self, generator: &FlowGenerator, port: &PortState, now: Nanos) {
        let mut worker = generator.workers.get(self.cpu);
        rest(&mut worker, now);
        generator.workers.set(self.cpu, &worker);
        self.publish_responses(&worker, port);
    }

    /// Says how fast pause frames were obeyed so far.
    fn publish_responses(&self, worker: &Worker, port: &PortState) {
        let before = self.responses_before.iter().zip(&port.fast_responses);
        for (response, (before, state)) in worker.responses.iter().zip(before) {
            let response = Response {
                holds: response.holds,
                after: with_fcs(response.frames, response.octets),
                longest: response.longest,
            };
            state.set(&(*before + response));
        }
    }

    /// The flows after the run, which was over at `now` and in which each queue was held for so
    /// long.
    pub fn end(
        self,
        generator: &FlowGenerator,
        port: &PortState,
        now: Nanos,
        held: &[Nanos; Priority::COUNT],
    ) -> Vec<Back> {
        self.rest(generator, port, now);
        let honoured = self.worker.honoured;
        let back = |(place, begun): (usize, Begun)| {
            let entry = generator.flows.get(place);
            let queue = begun.flow.queue.index();
            let held = if honoured & 1 << queue != 0 {
                held[queue]
            } else {
                0
            };
            Back {
                flow: begun.flow.flow,
                left: begun.left(place, generator),
                skipped: generator.own.lost.word(place, 0),
                due: entry.bucket.fine() + fine(held),
            }
        };
        self.flows.into_iter().enumerate().map(back).collect()
    }
}

impl Begun {
    fn new(flow: FastFlow) -> Self {
        let steady = &flow.steady;
        let sequence = steady.number + flow.skipped;
        let short = match flow.kind.form {
            Form::Whole => 0,
            Form::Short => generate::SHORT,
        };
        let entry = Flow {
            bucket: Bucket::of_fine(steady.due, steady.interval as u64),
            sequence,
            priority: flow.queue.get().into(),
            length: flow.kind.length as u16,
            stamp_at: flow.kind.stamp_at as u16 | short,
            cost: LineRate::frame_bits(flow.kind.length) * SECOND,
            sum: constant_words(&flow).into_iter().map(u64::from).sum(),
            own: steady.left.map_or(u64::MAX, |left| sequence + left),
            ..Flow::default()
        };
        Self {
            before: flow.state.sent.read(),
            entry: stamped(entry, &flow),
            flow,
            is_over: false,
        }
    }

    /// Frames that left in the run.
    fn left(&self, place: usize, generator: &FlowGenerator) -> u64 {
        let sequence = generator.flows.word(place, SEQUENCE);
        sequence - self.entry.sequence - generator.own.lost.word(place, 0)
    }

    /// Time for which its frames were left out in the run, as the kernel sent no faster.
    fn left_out(&self, place: usize, left: u64, generator: &FlowGenerator) -> Fine {
        let words = std::array::from_fn(|word| generator.flows.word(place, BUCKET + word));
        left_out(&self.flow.steady, left, Bucket::fine_of(words))
    }

    fn publish(&mut self, place: usize, count: Count, generator: &FlowGenerator) {
        let left = count.frames;
        let state = &self.flow.state;
        if left > 0 && self.before.frames == 0 && state.first().is_none() {
            let first = generator.flows.word(place, FIRST);
            state.set_first(first.saturating_sub(self.flow.started));
        }
        state.sent.set(self.before + count);
        if self.flow.steady.left == Some(left) && !self.is_over {
            state.set(Transmit::Stopped);
            self.is_over = true;
        }
    }
}

/// Time by which a flow's next frame is due later than after `left` frames: others were left out
/// (see [`Bucket::take`]).
fn left_out(steady: &Steady, left: u64, due: Fine) -> Fine {
    due.saturating_sub(steady.due + Fine::from(left) * steady.interval)
}

/// Ends the worker's batch, and leaves none before the next one.
fn rest(worker: &mut Worker, now: Nanos) {
    for queue in (0..Priority::COUNT).filter(|queue| worker.stopping & 1 << queue != 0) {
        let longest = &mut worker.responses[queue].longest;
        *longest = (*longest).max(now.saturating_sub(worker.held_since[queue]));
    }
    worker.stopping = 0;
    worker.batch = [0; Priority::COUNT];
    worker.batch_before = [0; Priority::COUNT];
}

/// The first words of the flow's stamps, which are the same in all of them.
fn constant_words(flow: &FastFlow) -> Vec<u16> {
    let Place {
        flow: place,
        generation,
    } = flow.place;
    match flow.kind.form {
        Form::Whole => vec![MAGIC, place, generation],
        Form::Short => vec![short_place(place, generation)],
    }
}

/// The flow's entry with what all its frames have.
fn stamped(mut entry: Flow, flow: &FastFlow) -> Flow {
    let mut frame = flow.frame.clone();
    let at = flow.kind.stamp_at;
    for (place, word) in constant_words(flow).into_iter().enumerate() {
        frame[at + 2 * place..][..2].copy_from_slice(&word.to_be_bytes());
    }
    let word = |from: usize| {
        let octets = std::array::from_fn(|octet| frame.get(from + octet).copied().unwrap_or(0));
        u64::from_ne_bytes(octets)
    };
    entry.block = std::array::from_fn(|index| word(8 * index));
    entry.head = word(at);
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_frames_that_are_left_out_is_told_and_that_of_others_is_not() {
        let interval = fine(1000) + 123;
        let steady = Steady {
            number: 0,
            due: fine(5000) + 7,
            interval,
            length: 64,
            left: None,
            end: Nanos::MAX,
        };
        let mut bucket = Bucket::of_fine(steady.due, interval as u64);
        for _ in 0..100 {
            bucket.take(bucket.ready() + MEMORY - 1, MEMORY);
        }
        assert_eq!(left_out(&steady, 100, bucket.fine()), 0);
        bucket.take(bucket.ready() + MEMORY + 5_000_000, MEMORY);
        // Whole frames of 1001 ns, as the program reckons.
        let expected = fine(5_000_000 / 1001 * 1001);
        assert_eq!(left_out(&steady, 101, bucket.fine()), expected);
        bucket.suspend();
        assert_eq!(left_out(&steady, 101, bucket.fine()), expected);
        bucket.give_back();
        assert_eq!(left_out(&steady, 100, bucket.fine()), expected);
    }

    #[test]
    fn a_rest_ends_the_batch_and_no_frame_of_it_counts_as_sent_after_a_later_pause() {
        let mut worker = Worker {
            stopping: 1 << 3,
            held_since: [1000; Priority::COUNT],
            batch: [5; Priority::COUNT],
            batch_before: [7; Priority::COUNT],
            ..Worker::default()
        };
        worker.responses[3].longest = 200;
        worker.responses[4].longest = 300;
        rest(&mut worker, 1500);
        let longest = worker.responses.map(|response| response.longest);
        assert_eq!(longest, [0, 0, 0, 500, 300, 0, 0, 0]);
        assert_eq!((worker.batch, worker.batch_before), ([0; 8], [0; 8]));
        // A longer hold of the queue is no response any more.
        rest(&mut worker, 9000);
        assert_eq!(worker.responses[3].longest, 500);
    }
}
