//! Frames made, stamped and sent together, and the counts of those that left.

use std::sync::Arc;

use pfc_ebpf::flow_stamp::{FlowStamp, TIME_MASK};
use pfc_ebpf::units::{LineRate, Nanos};
use pfc_ebpf::wire::mac_control;
use validator_core::engine::packet::Template;
use validator_core::engine::plan::Length;
use validator_core::engine::port::{Due, PortSchedule};
use validator_core::engine::storm::Storm;

use super::SenderFlow;
use crate::driver::bpf::flow::Place;
use crate::driver::kernel::clock;
use crate::driver::kernel::packet::{BATCH, PacketError, PacketSocket};
use crate::engine::published::{FlowState, PortState};

/// Offset of a MAC control frame's opcode, and of the class-enable vector of PFC.
const OPCODE: usize = 14;
const VECTOR: usize = 16;

/// The frames of a batch, and the flows that they are of.
pub struct Batch {
    flows: Vec<Flow>,
    slots: Vec<Slot>,
    /// Slots in use.
    count: usize,
    line_rate: LineRate,
    port: Arc<PortState>,
}

struct Flow {
    template: Template,
    one_length: bool,
    /// `Some` of pause frames.
    storm: Option<Storm>,
    place: Place,
    started: Nanos,
    state: Arc<FlowState>,
    /// Raised when frames are made in another way than before.
    version: u64,
}

/// Room for a frame.
#[derive(Default)]
struct Slot {
    due: Option<Due>,
    frame: Vec<u8>,
    /// The flow, and its version, whose constant frame it has.
    has: Option<(usize, u64)>,
}

impl Batch {
    pub fn new(port: Arc<PortState>, line_rate: LineRate) -> Self {
        Self {
            flows: Vec::new(),
            slots: (0..BATCH).map(|_| Slot::default()).collect(),
            count: 0,
            line_rate,
            port,
        }
    }

    /// These are the flows, on a line of that rate.
    pub fn install(&mut self, flows: Vec<SenderFlow>, line_rate: LineRate) {
        self.line_rate = line_rate;
        self.count = 0;
        for slot in &mut self.slots {
            slot.has = None;
        }
        let flow = |flow: SenderFlow| Flow {
            storm: flow.queue.is_none().then(|| Storm::new(line_rate)),
            template: flow.template,
            one_length: flow.one_length,
            place: Place {
                flow: 0,
                generation: 0,
            },
            started: 0,
            state: flow.state,
            version: 0,
        };
        self.flows = flows.into_iter().map(flow).collect();
    }

    /// A flow starts by an order that was given at `at`.
    pub fn start(&mut self, flow: usize, place: Place, template: Option<Box<Template>>, at: Nanos) {
        let flow = &mut self.flows[flow];
        flow.place = place;
        flow.started = at;
        flow.state.clear();
        if let Some(storm) = &mut flow.storm {
            *storm = Storm::new(self.line_rate);
        }
        if let Some(template) = template {
            flow.template = *template;
            flow.version += 1;
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
        flow.version += 1;
    }

    /// Says what state a flow is in.
    pub fn publish(&self, flow: usize, schedule: &PortSchedule) {
        self.flows[flow].state.set(schedule.progress(flow).state);
    }

    /// True if there may be more that is due.
    pub fn is_full(&self) -> bool {
        self.count == BATCH
    }

    /// Makes the frames that are due, without their stamps.
    pub fn fill(&mut self, schedule: &mut PortSchedule, now: Nanos) {
        self.count = 0;
        while self.count < BATCH
            && let Some(due) = schedule.take(now)
        {
            let (slot, flow) = (&mut self.slots[self.count], &self.flows[due.flow]);
            let constant = flow.one_length && flow.template.is_constant();
            let has = Some((due.flow, flow.version));
            if !constant || slot.has != has {
                let length = due.frame.length as usize - LineRate::FCS as usize;
                flow.template
                    .render(due.frame.number, length, &mut slot.frame);
                slot.has = has.filter(|_| constant);
            }
            slot.due = Some(due);
            self.count += 1;
        }
    }

    /// Stamps and sends the frames; true: the port had no room for all of them. Those that did not
    /// leave are due as before, with the numbers that they had. An error means that none left.
    pub fn send(
        &mut self,
        socket: &PacketSocket,
        schedule: &mut PortSchedule,
    ) -> Result<bool, PacketError> {
        if self.count == 0 {
            return Ok(false);
        }
        let time = clock::now();
        for slot in &mut self.slots[..self.count] {
            let Some(due) = slot.due else { continue };
            let flow = &self.flows[due.flow];
            let stamp = FlowStamp {
                flow: flow.place.flow,
                generation: flow.place.generation,
                sequence: due.frame.number as u32,
                time: time & TIME_MASK,
            };
            flow.template.stamp(&mut slot.frame, &stamp);
        }
        let frames = self.slots[..self.count]
            .iter()
            .map(|slot| slot.frame.as_slice());
        let outcome = socket.send_batch(frames);
        let left = outcome.as_ref().map_or(0, |outcome| outcome.left);
        let span = [time, clock::now()];
        for slot in self.slots[left..self.count].iter().rev() {
            if let Some(due) = &slot.due {
                schedule.give_back(due);
            }
        }
        for slot in &self.slots[..left] {
            if let Some(due) = &slot.due {
                Self::left(
                    &mut self.flows[due.flow],
                    &self.port,
                    due,
                    &slot.frame,
                    span,
                );
            }
        }
        self.tell(schedule);
        Ok(outcome?.refused)
    }

    /// Ends the flow of the batch's first frame.
    pub fn end_first(&mut self, schedule: &mut PortSchedule) {
        if let Some(due) = &self.slots[0].due {
            schedule.stop(due.flow);
            self.publish(due.flow, schedule);
        }
    }

    /// Counts a frame that left between these times.
    fn left(flow: &mut Flow, port: &PortState, due: &Due, frame: &[u8], [from, to]: [Nanos; 2]) {
        let octets = u64::from(due.frame.length);
        if due.frame.number == 0 {
            flow.state.set_first(from.saturating_sub(flow.started));
        }
        flow.state.sent.add(octets);
        port.sent.add(octets);
        if let Some(storm) = &mut flow.storm {
            storm.left(frame, from, to);
            flow.state.set_gaps(storm.gaps());
            Self::pause_left(port, frame, octets);
        }
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

    /// Says what state the flows of the batch are in, now that their frames are counted.
    fn tell(&self, schedule: &PortSchedule) {
        let mut last = None;
        for slot in &self.slots[..self.count] {
            let flow = slot.due.as_ref().map(|due| due.flow);
            if let Some(flow) = flow
                && last != Some(flow)
            {
                self.publish(flow, schedule);
                last = Some(flow);
            }
        }
    }
}
