//! Reading what the program counted, put together over all CPUs.

use aya::maps::{MapData, RingBuf};
use pfc_ebpf::abi::account::{
    Arrival as ArrivalRecord, ClassCounters, Control, FlowCounters, LATENCY_BUCKETS, LastControl,
    Offence, OffenceKind, PortCounters, SNAP_LEN, WindowCounters, counts_index,
};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Nanos;
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::Deviation;
use validator_core::evidence::pfc::{
    Arrival, ClassReceived, ControlReceived, FlowReceived, PortReceived,
};

use crate::driver::bpf::pod::Plain;
use crate::driver::bpf::{AccountProgram, XdpError};

/// Records of single frames, in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Rings {
    /// Arrivals of the flows and phases that are logged.
    pub arrivals: Vec<Arrival>,
    /// Arrivals that did not fit.
    pub arrivals_lost: u64,
    /// PAUSE and PFC frames; how many did not fit is in [`PortReceived::controls_lost`].
    pub controls: Vec<ControlReceived>,
    /// Offending frames; how many did not fit is in [`PortReceived::offences_lost`].
    pub offences: Vec<OffendingFrame>,
}

/// A frame that may make a check fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffendingFrame {
    /// Time of arrival.
    pub time: Nanos,
    /// The reason for keeping it.
    pub kind: OffenceKind,
    /// The defect, where it could not be read.
    pub malformed: Option<Malformed>,
    /// Its length, without FCS.
    pub length: u16,
    /// Its first octets.
    pub octets: Vec<u8>,
}

impl Rings {
    /// Adds later ones.
    pub fn append(&mut self, later: Self) {
        self.arrivals.extend(later.arrivals);
        self.arrivals_lost = later.arrivals_lost;
        self.controls.extend(later.controls);
        self.offences.extend(later.offences);
    }
}

impl AccountProgram {
    /// Arrivals by flow and phase, without those that have none.
    ///
    /// For evidence it is read when no more frames come: a copy made while a frame is counted may
    /// have any part of that frame, such as its verified checksum and not yet the frame, which
    /// a judge takes for a contradiction. Each count by itself is never too high.
    pub fn flows(&self) -> Result<Vec<FlowReceived>, XdpError> {
        let mut flows = Vec::new();
        for flow in 0..self.used.flows as u16 {
            for phase in Phase::ALL {
                let cpus = self.counts.get(&counts_index(flow, phase), 0)?;
                let sum = cpus
                    .iter()
                    .fold(FlowCounters::default(), |sum, cpu| add_flow(sum, &cpu.0));
                if sum.received + sum.duplicate + sum.beyond_window > 0 {
                    flows.push(flow_received(flow, phase, &sum));
                }
            }
        }
        Ok(flows)
    }

    /// Distinct frames of `phase` that arrived, of these flows.
    pub fn received(
        &self,
        phase: Phase,
        flows: impl Iterator<Item = u16>,
    ) -> Result<u64, XdpError> {
        let mut received = 0;
        for flow in flows {
            received += self
                .counts
                .get(&counts_index(flow, phase), 0)?
                .iter()
                .map(|cpu| cpu.0.received)
                .sum::<u64>();
        }
        Ok(received)
    }

    /// Distinct frames by window of their arrival and by priority. Frames may arrive meanwhile, but
    /// not in ever new windows: that is an error.
    pub fn windows(&self) -> Result<Vec<[u32; 8]>, XdpError> {
        let window = |index| {
            let cpus = self.windows.get(&index, 0)?;
            Ok(std::array::from_fn(|priority| {
                cpus.iter().map(|cpu| cpu.0.frames[priority]).sum()
            }))
        };
        let ended = || (0..self.used.windows).map(window).collect();
        let present = || {
            Ok(self
                .port
                .get(&0, 0)?
                .iter()
                .map(|cpu| (cpu.0.local.window, cpu.0.local.present))
                .collect())
        };
        windows(present, ended)
    }

    /// Counts of the port beside the flows. Its `controls` are empty:
    /// [`AccountProgram::take_rings`] gives them.
    pub fn port(&self) -> Result<PortReceived, XdpError> {
        let sum = self.port_counters()?;
        Ok(PortReceived {
            frames: sum.frames(),
            test_frames: sum.test_frames,
            // The reader of the evidence knows which flow goes where.
            misdelivered: 0,
            foreign_run: sum.foreign_run,
            other: sum.other,
            by_priority: sum.by_priority(self.configured()),
            pause: class_received(&sum.pause),
            pfc_frames: sum.pfc.frames(),
            pfc_empty: sum.pfc.empty,
            pfc: sum.pfc.classes().each_ref().map(class_received),
            own_control: sum.own_control,
            malformed: occurred(Malformed::ALL, sum.malformed),
            damaged: occurred(Malformed::ALL, sum.damaged),
            deviations: occurred(Deviation::ALL, sum.deviations),
            controls: Vec::new(),
            controls_lost: sum.controls_lost,
            offences_lost: sum.offences_lost,
        })
    }

    /// All counters of the port.
    pub fn port_counters(&self) -> Result<PortCounters, XdpError> {
        let cpus = self.port.get(&0, 0)?;
        let counters = cpus.iter().map(|cpu| &cpu.0.counters);
        Ok(counters.fold(PortCounters::ZERO, add_port))
    }

    /// Takes the records of single frames; later calls give later ones.
    pub fn take_rings(&mut self) -> Result<Rings, XdpError> {
        let mut rings = Rings {
            arrivals_lost: self.port_counters()?.arrivals_lost,
            ..Rings::default()
        };
        drain(&mut self.arrivals, |octets| {
            rings.arrivals.extend(Plain::read(octets).and_then(arrival))
        });
        rings
            .controls
            .extend(self.controls.take().into_iter().map(control));
        drain(&mut self.offences, |octets| {
            rings
                .offences
                .extend(Plain::read(octets).and_then(|record| offence(&record)))
        });
        // Several CPUs take their time before they take their place in a ring; of the log each has
        // its own part.
        rings.arrivals.sort_by_key(|record| record.time);
        rings.controls.sort_by_key(|record| record.time);
        rings.offences.sort_by_key(|record| record.time);
        Ok(rings)
    }
}

/// The kinds that occurred, with their counts.
fn occurred<T, const N: usize>(kinds: [T; N], counts: [u64; N]) -> Vec<(T, u64)> {
    let counts = kinds.into_iter().zip(counts);
    counts.filter(|(_, count)| *count > 0).collect()
}

/// Attempts to read the windows: it is an error if one ends during each of them. A window is longer
/// by far than it takes to read them.
const READINGS: u32 = 8;

/// Windows that have ended, by [`WindowCounters`] of all CPUs, and what each CPU has of its present
/// one.
///
/// A CPU's present window moves to those that have ended when it ends: where that may have been
/// meanwhile, which its number tells, all is read again.
fn windows(
    mut present: impl FnMut() -> Result<Vec<(u32, WindowCounters)>, XdpError>,
    mut ended: impl FnMut() -> Result<Vec<[u32; 8]>, XdpError>,
) -> Result<Vec<[u32; 8]>, XdpError> {
    let numbers = |present: &[(u32, WindowCounters)]| {
        present
            .iter()
            .map(|(number, _)| *number)
            .collect::<Vec<_>>()
    };
    let mut before = present()?;
    for _ in 0..READINGS {
        let mut windows = ended()?;
        let after = present()?;
        if numbers(&before) == numbers(&after) {
            // The counts of `before` are added: a window that was just ending may have lost them
            // already, but then its number has changed since.
            for (number, counters) in before {
                if let Some(window) = windows.get_mut(number as usize) {
                    *window = std::array::from_fn(|priority| {
                        window[priority] + counters.frames[priority]
                    });
                }
            }
            return Ok(windows);
        }
        before = after;
    }
    Err(XdpError::Restless { readings: READINGS })
}

fn drain(ring: &mut RingBuf<MapData>, mut take: impl FnMut(&[u8])) {
    while let Some(record) = ring.next() {
        take(&record);
    }
}

fn arrival(record: ArrivalRecord) -> Option<Arrival> {
    let phase = Phase::from_number(record.phase)?;
    Some(Arrival {
        time: record.time,
        flow: record.flow,
        phase,
        latency: record.latency,
    })
}

fn control(record: Control) -> ControlReceived {
    ControlReceived {
        time: record.time,
        opcode: record.opcode,
        vector: record.vector,
        quanta: record.quanta(),
    }
}

fn offence(record: &Offence) -> Option<OffendingFrame> {
    let kind = OffenceKind::from_number(record.kind)?;
    let malformed = match kind {
        OffenceKind::Malformed => Malformed::from_number(record.detail),
        _ => None,
    };
    let octets = record.snap[..(record.kept as usize).min(SNAP_LEN)].to_vec();
    Some(OffendingFrame {
        time: record.time,
        kind,
        malformed,
        length: record.length,
        octets,
    })
}

fn flow_received(flow: u16, phase: Phase, sum: &FlowCounters) -> FlowReceived {
    FlowReceived {
        flow,
        phase,
        frames: sum.received,
        octets: sum.octets,
        duplicate: sum.duplicate,
        reordered: sum.reordered,
        beyond_window: sum.beyond_window,
        verified: Some(sum.verified),
        corrupt: sum.corrupt,
        altered: sum.altered,
        resized: sum.resized,
        remarked: sum.remarked,
        untagged: sum.untagged,
        first: sum.first,
        last: sum.last,
        latency_max: sum.latency_max,
        latency_mean: sum.latency_sum.checked_div(sum.received).unwrap_or(0),
        latency: sum.latency,
    }
}

/// Times are in quanta of 16 bits, as they were in the frame.
fn class_received(sum: &ClassCounters) -> ClassReceived {
    ClassReceived {
        xoff: sum.xoff,
        xon: sum.xon,
        last_quanta: sum.last.quanta as u16,
    }
}

fn add_flow(sum: FlowCounters, cpu: &FlowCounters) -> FlowCounters {
    FlowCounters {
        received: sum.received + cpu.received,
        octets: sum.octets + cpu.octets,
        first: [sum.first, cpu.first]
            .into_iter()
            .filter(|time| *time > 0)
            .min()
            .unwrap_or(0),
        last: sum.last.max(cpu.last),
        latency_sum: sum.latency_sum + cpu.latency_sum,
        latency_max: sum.latency_max.max(cpu.latency_max),
        verified: sum.verified + cpu.verified,
        corrupt: sum.corrupt + cpu.corrupt,
        altered: sum.altered + cpu.altered,
        resized: sum.resized + cpu.resized,
        latency: std::array::from_fn::<_, LATENCY_BUCKETS, _>(|bucket| {
            sum.latency[bucket] + cpu.latency[bucket]
        }),
        duplicate: sum.duplicate + cpu.duplicate,
        reordered: sum.reordered + cpu.reordered,
        beyond_window: sum.beyond_window + cpu.beyond_window,
        remarked: sum.remarked + cpu.remarked,
        untagged: sum.untagged + cpu.untagged,
    }
}

/// The later of two records.
fn later(sum: &LastControl, cpu: &LastControl) -> LastControl {
    if cpu.at >= sum.at { *cpu } else { *sum }
}

/// Adds up; the last frame of a class is the latest of all CPUs'.
fn add_port(mut sum: PortCounters, cpu: &PortCounters) -> PortCounters {
    let pause = later(&sum.pause.last, &cpu.pause.last);
    let pfc = std::array::from_fn(|class| later(&sum.pfc.last[class], &cpu.pfc.last[class]));
    sum.merge(cpu);
    (sum.pause.last, sum.pfc.last) = (pause, pfc);
    sum
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Two CPUs as the program has them: the present windows, and those that have ended.
    struct Cpus {
        present: Vec<(u32, WindowCounters)>,
        ended: Vec<[u32; 8]>,
    }

    impl Cpus {
        /// Each CPU has counted one frame of priority 3 in window 0, which is its present one.
        fn new() -> Self {
            let counters = WindowCounters {
                frames: [0, 0, 0, 1, 0, 0, 0, 0],
            };
            Self {
                present: vec![(0, counters); 2],
                ended: vec![[0; 8]; 8],
            }
        }

        /// A frame of priority 3 comes to a CPU in a later window.
        fn late(&mut self, cpu: usize) {
            let (number, counters) = &mut self.present[cpu];
            self.ended[*number as usize][3] += counters.frames[3];
            *number += 1;
            counters.frames[3] = 1;
        }
    }

    #[test]
    fn a_window_that_ends_while_windows_are_read_keeps_its_frames() {
        let cpus = RefCell::new(Cpus::new());
        let mut late = [1, 0, 1].into_iter();
        let ended = || {
            let ended = cpus.borrow().ended.clone();
            late.next()
                .into_iter()
                .for_each(|cpu| cpus.borrow_mut().late(cpu));
            Ok(ended)
        };
        let read = windows(|| Ok(cpus.borrow().present.clone()), ended).unwrap();
        assert_eq!(
            read.iter().map(|window| window[3]).collect::<Vec<_>>(),
            [2, 2, 1, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn where_a_window_ends_at_each_reading_there_is_an_error() {
        let cpus = RefCell::new(Cpus {
            ended: vec![[0; 8]; 100],
            ..Cpus::new()
        });
        let ended = || {
            cpus.borrow_mut().late(0);
            Ok(cpus.borrow().ended.clone())
        };
        let error = windows(|| Ok(cpus.borrow().present.clone()), ended).unwrap_err();
        assert!(
            matches!(error, XdpError::Restless { readings: READINGS }),
            "{error}"
        );
    }

    #[test]
    fn cpus_add_up_and_the_latest_time_wins() {
        let class = |at, quanta| ClassCounters {
            xoff: 1,
            xon: 0,
            last: LastControl { quanta, at },
        };
        let port = |pause| PortCounters {
            pause,
            ..PortCounters::ZERO
        };
        let pause = ClassCounters {
            xoff: 2,
            ..class(5, 7)
        };
        for [one, other] in [[(5, 7), (4, 9)], [(4, 9), (5, 7)]] {
            let [one, other] = [one, other].map(|(at, quanta)| port(class(at, quanta)));
            assert_eq!(add_port(one, &other), port(pause));
        }
        let flow = |first, last| FlowCounters {
            received: 1,
            first,
            last,
            ..FlowCounters::default()
        };
        let sum = [flow(7, 9), FlowCounters::default(), flow(3, 4)]
            .iter()
            .fold(FlowCounters::default(), add_flow);
        assert_eq!(
            sum,
            FlowCounters {
                received: 2,
                first: 3,
                last: 9,
                ..FlowCounters::default()
            }
        );
    }
}
