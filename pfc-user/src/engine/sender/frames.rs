//! The frames of a port's flows: how they are made and stamped, and the counts of those that left.

use std::sync::Arc;

use pfc_ebpf::flow_stamp::FlowStamp;
use pfc_ebpf::stamp::MASK_40;
use pfc_ebpf::units::{LineRate, Nanos, Priority};
use pfc_ebpf::wire::{mac_control, neighbour};
use validator_core::engine::packet::Template;
use validator_core::engine::plan::Length;
use validator_core::engine::port::fast::Offloaded;
use validator_core::engine::port::{Due, PortSchedule};
use validator_core::engine::queue::Holds;
use validator_core::engine::response::Responses;
use validator_core::engine::storm::Storm;
use validator_core::evidence::pfc::Departure;

use super::SenderFlow;
use super::kernel::{FastFlow, Kind};
use crate::driver::bpf::flow::Place;
use crate::driver::sender::batch::Slot;
use crate::engine::published::{FlowState, PortState, ResponseState};

/// Offset of a MAC control frame's opcode, and of the class-enable vector of PFC.
const OPCODE: usize = 14;
const VECTOR: usize = 16;

/// Frames of each flow: how they are made, and counts of those that left.
pub struct Frames {
    pub flows: Vec<Flow>,
    line_rate: LineRate,
    /// State that the port publishes.
    pub port: Arc<PortState>,
    /// The last version that a flow got.
    versions: u64,
    /// `None` until the first look, and without flows that anything holds.
    responses: Option<Responses>,
}

/// A flow, and what its frames are made of.
pub struct Flow {
    /// `None` of pause frames.
    queue: Option<Priority>,
    template: Template,
    one_length: bool,
    /// `Some` of pause frames.
    storm: Option<Storm>,
    place: Place,
    /// Sequence numbers that no frame has, of frames that the kernel did not send.
    pub skipped: u64,
    started: Nanos,
    pub state: Arc<FlowState>,
    /// Version of its frames; no other flow has it, nor has this one had it before.
    version: u64,
}

/// A frame of the batch.
#[derive(Default)]
pub struct Note {
    pub due: Option<Due>,
    /// The version of the flow whose constant frame is there.
    has: Option<u64>,
}

impl Frames {
    pub fn new(port: Arc<PortState>, line_rate: LineRate) -> Self {
        Self {
            flows: Vec::new(),
            line_rate,
            port,
            versions: 0,
            responses: None,
        }
    }

    /// These are the flows, on a line of that rate.
    pub fn install(&mut self, flows: Vec<SenderFlow>, line_rate: LineRate) {
        self.line_rate = line_rate;
        self.flows.clear();
        self.responses = None;
        for flow in flows {
            self.versions += 1;
            self.flows.push(Flow {
                queue: flow.queue,
                storm: flow.queue.is_none().then(|| Storm::new(line_rate)),
                template: flow.template,
                one_length: flow.one_length,
                place: Place {
                    flow: 0,
                    generation: 0,
                },
                skipped: 0,
                started: 0,
                state: flow.state,
                version: self.versions,
            });
        }
    }

    /// Looks at what is held, and tells how fast that was obeyed.
    pub fn look(&mut self, now: Nanos, holds: &Holds) {
        if self.flows.iter().all(|flow| flow.queue.is_none()) {
            return;
        }
        let so_far = || self.port.responses.each_ref().map(ResponseState::read);
        let begin = || Responses::new(now, holds, so_far());
        let responses = self.responses.get_or_insert_with(begin);
        if responses.look(now, holds) {
            publish(responses, &self.port);
        }
    }

    /// The kernel sends flows of these queues from the last look on, and counts their holds.
    pub fn offload(&mut self, queues: impl Iterator<Item = Priority>) {
        if let Some(responses) = &mut self.responses {
            queues.for_each(|queue| responses.offload(queue));
        }
    }

    /// The kernel no longer sends.
    pub fn take_back(&mut self, now: Nanos, holds: &Holds) {
        if let Some(responses) = &mut self.responses
            && responses.take_back(now, holds)
        {
            publish(responses, &self.port);
        }
    }

    /// A flow starts by an order that was given at `at`.
    pub fn start(&mut self, flow: usize, place: Place, template: Option<Box<Template>>, at: Nanos) {
        let flow = &mut self.flows[flow];
        flow.place = place;
        flow.skipped = 0;
        flow.started = at;
        flow.state.clear();
        if let Some(storm) = &mut flow.storm {
            *storm = Storm::new(self.line_rate);
        }
        if let Some(template) = template {
            flow.template = *template;
            self.versions += 1;
            flow.version = self.versions;
        }
    }

    /// A flow is held or goes on by an order: the time in between is no gap.
    pub fn interrupt(&mut self, flow: usize) {
        if let Some(storm) = &mut self.flows[flow].storm {
            storm.interrupt();
        }
    }

    /// A flow's frames have other lengths.
    pub fn set_length(&mut self, flow: usize, length: &Length) {
        let flow = &mut self.flows[flow];
        flow.one_length = matches!(length, Length::Fixed(_));
        self.versions += 1;
        flow.version = self.versions;
    }

    /// Returns the kind of a flow's frames of `length` octets with FCS; `None`: the kernel cannot
    /// send them.
    pub fn kind(&self, flow: usize, length: u32) -> Option<Kind> {
        Kind::of(&self.flows[flow].template, without_fcs(length))
    }

    /// A flow for the kernel to go on with.
    pub fn fast(&self, offloaded: Offloaded, queue: Priority) -> Option<FastFlow> {
        let flow = &self.flows[offloaded.flow];
        let length = without_fcs(offloaded.steady.length);
        let mut frame = Vec::new();
        flow.template.render(0, length, &mut frame);
        Some(FastFlow {
            flow: offloaded.flow,
            steady: offloaded.steady,
            kind: Kind::of(&flow.template, length)?,
            frame,
            queue,
            place: flow.place,
            skipped: flow.skipped,
            started: flow.started,
            state: flow.state.clone(),
        })
    }

    /// Says what state a flow is in.
    pub fn publish(&self, flow: usize, schedule: &PortSchedule) {
        self.flows[flow].state.set(schedule.progress(flow).state);
    }

    /// Makes a frame, without its stamp.
    pub fn make(&self, due: Due, slot: &mut Slot<Note>) {
        let flow = &self.flows[due.flow];
        let constant = flow.one_length && flow.template.is_constant();
        let has = Some(flow.version);
        if !constant || slot.note.has != has {
            let length = without_fcs(due.frame.length);
            flow.template
                .render(due.frame.number, length, &mut slot.frame);
            slot.note.has = has.filter(|_| constant);
        }
        slot.note.due = Some(due);
    }

    /// Stamps frames that leave at `time`.
    pub fn stamp(&self, slots: &mut [Slot<Note>], time: Nanos) {
        for slot in slots {
            let Some(due) = &slot.note.due else { continue };
            let flow = &self.flows[due.flow];
            let stamp = FlowStamp {
                flow: flow.place.flow,
                generation: flow.place.generation,
                sequence: (due.frame.number + flow.skipped) & MASK_40,
                time: time & MASK_40,
            };
            flow.template.stamp(&mut slot.frame, &stamp);
        }
    }

    /// Counts frames that left, then says what state their flows are in.
    pub fn left(&mut self, slots: &[Slot<Note>], departure: Departure, schedule: &PortSchedule) {
        for slot in slots {
            if let Some(due) = &slot.note.due {
                self.count(due, &slot.frame, departure);
            }
        }
        let mut last = None;
        for due in slots.iter().filter_map(|slot| slot.note.due.as_ref()) {
            if last != Some(due.flow) {
                self.publish(due.flow, schedule);
                last = Some(due.flow);
            }
        }
    }

    /// Counts a frame that left.
    fn count(&mut self, due: &Due, frame: &[u8], departure: Departure) {
        let (flow, port) = (&mut self.flows[due.flow], &self.port);
        let octets = u64::from(due.frame.length);
        if due.frame.number == 0 {
            flow.state
                .set_first(departure.before.saturating_sub(flow.started));
        }
        flow.state.sent.add(octets);
        let Some(storm) = &mut flow.storm else {
            if let (Some(queue), Some(responses)) = (flow.queue, &mut self.responses) {
                responses.left(queue, octets, departure.after);
            }
            // The receiving port cannot tell them from a host's, and counts neither.
            let is_uncounted = flow.template.stamp_form().is_none() && neighbour::is_message(frame);
            let count = if is_uncounted {
                &flow.state.uncounted
            } else {
                &port.data
            };
            return count.add(octets);
        };
        port.control.add(octets);
        storm.left(frame, departure);
        flow.state.set_gaps(storm.gaps());
        pause_left(port, frame, octets);
    }
}

/// Says how fast pause frames were obeyed.
fn publish(responses: &Responses, port: &PortState) {
    for (queue, state) in Priority::all().zip(&port.responses) {
        state.set(&responses.of(queue));
    }
}

/// Octets of a frame without its FCS.
const fn without_fcs(length: u32) -> usize {
    length as usize - LineRate::FCS as usize
}

/// Counts a MAC control frame that left, by its class.
fn pause_left(port: &PortState, frame: &[u8], octets: u64) {
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    match word(OPCODE) {
        mac_control::PAUSE => port.pause.add(octets),
        mac_control::PFC => {
            let vector = word(VECTOR);
            for (class, sent) in port.pfc.iter().enumerate() {
                if vector & 1 << class != 0 {
                    sent.add(octets);
                }
            }
        }
        _ => {}
    }
}
