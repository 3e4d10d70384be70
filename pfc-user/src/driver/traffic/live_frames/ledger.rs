//! The account of all bursts: read from the program's maps when a burst is over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pfc_ebpf::abi::generate::{Span, batch};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Nanos, Priority};
use validator_core::evidence::pfc::{FlowSent, SenderReport, Withheld};
use validator_core::pacing::history::History;
use validator_core::plan::PortName;

use super::super::{Burst, NOT_TAKEN, Sent, TrafficError, TrafficPlan};
use super::prepared::Prepared;
use crate::driver::bpf::CaseGenerator;

/// The account of all bursts so far.
pub struct Ledger {
    honours_pfc: String,
    line_rate: LineRate,
    windows: usize,
    flows: BTreeMap<(u16, Phase), FlowSent>,
    /// Frames of windows that had not ended when a burst did.
    offered: Vec<[u64; Priority::COUNT]>,
    after_xoff: [u64; Priority::COUNT],
    max_burst: Nanos,
    dropped: u64,
    refused: u64,
    /// Frames whose end is not known.
    unaccounted: u64,
    /// Filled with what the program recorded, while it runs and afterwards.
    history: Arc<Mutex<History>>,
}

impl Ledger {
    /// An empty one; what the program had counted before is gone.
    pub fn new(plan: &TrafficPlan<'_>, generator: &CaseGenerator, unaware: Option<String>) -> Self {
        for window in 0..plan.windows {
            generator.own.offered.set(window, &[0; Priority::COUNT]);
        }
        drop(generator.own.take_spans());
        Self {
            honours_pfc: unaware.unwrap_or_else(|| "software (XDP)".into()),
            line_rate: plan.line_rate,
            windows: plan.windows,
            flows: BTreeMap::new(),
            offered: vec![[0; Priority::COUNT]; plan.windows],
            after_xoff: [0; Priority::COUNT],
            max_burst: 0,
            dropped: 0,
            refused: 0,
            unaccounted: 0,
            history: Arc::default(),
        }
    }

    /// The history to which a worker adds while the program runs (see [`take_spans`]).
    pub fn history(&self) -> Arc<Mutex<History>> {
        self.history.clone()
    }

    /// Adds a burst that is over. An error where its record is not whole.
    pub fn add(
        &mut self,
        burst: Burst,
        generator: &CaseGenerator,
        prepared: &mut Prepared,
    ) -> Result<(), TrafficError> {
        for (index, flow) in prepared.flows.iter_mut().enumerate() {
            let entry = generator.flows.get(index);
            let frames = flow.update(entry);
            if frames > 0 {
                self.left(FlowSent {
                    flow: flow.id,
                    phase: burst.phase,
                    frames,
                    first: entry.first,
                    last: entry.last,
                });
            }
        }
        let (mut largest, mut after_xoff, mut lost) = (0, [0; Priority::COUNT], 0);
        for share in &prepared.shares {
            let worker = generator.workers.get(share.cpu);
            // Each worker's largest may have been at another time: together they are an upper
            // bound.
            largest += worker.excess.largest(self.line_rate.bits_per_second());
            add(&mut after_xoff, &worker.overrun_largest);
            add(&mut self.offered[worker.window as usize], &worker.offered);
            add(
                &mut self.offered[worker.window as usize],
                &worker.batch.map(batch::frames),
            );
            self.dropped += worker.dropped;
            self.refused += worker.refused;
            if generator.uncounted().is_none() {
                self.unaccounted += worker.pending;
            }
            lost += worker.spans_lost;
        }
        self.max_burst = self.max_burst.max(largest);
        self.after_xoff =
            std::array::from_fn(|priority| self.after_xoff[priority].max(after_xoff[priority]));
        take_spans(&self.history, generator, burst.phase);
        if lost > 0 {
            Err(TrafficError::SpansLost { lost })
        } else {
            Ok(())
        }
    }

    fn left(&mut self, sent: FlowSent) {
        let flow = self
            .flows
            .entry((sent.flow, sent.phase))
            .or_insert(FlowSent { frames: 0, ..sent });
        flow.frames += sent.frames;
        flow.last = sent.last;
    }

    /// All so far, by that many workers.
    pub fn sent(&self, generator: &CaseGenerator, workers: usize) -> Sent {
        let offered = (0..self.windows).map(|window| {
            let mut frames = generator.own.offered.get(window);
            add(&mut frames, &self.offered[window]);
            frames.map(|frames| frames as u32)
        });
        let history = self
            .history
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let cores = if workers == 1 {
            "1 core".into()
        } else {
            format!("{workers} cores")
        };
        let uncounted = generator.uncounted().map_or(String::new(), |reason| {
            format!("; losses on the way to the port not counted: {reason}")
        });
        Sent {
            report: SenderReport {
                method: format!("live frames, {cores}{uncounted}"),
                honours_pfc: self.honours_pfc.clone(),
                flows: self.flows.values().copied().collect(),
                withheld: history.withheld,
                withheld_left_out: history.withheld_left_out,
                after_xoff: self.after_xoff,
                stalls: history.stalls,
                stalls_left_out: history.stalls_left_out,
                errors: 0,
                waits: 0,
                max_burst: self.max_burst,
            },
            offered: offered.collect(),
            lost: vec![
                (NOT_TAKEN, self.dropped),
                ("live frames the kernel refused", self.refused),
                ("live frames unaccounted for", self.unaccounted),
            ],
        }
    }
}

/// Takes over what the program has recorded so far.
pub fn take_spans(history: &Mutex<History>, generator: &CaseGenerator, phase: Phase) {
    let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
    for Span { what, from, to } in generator.own.take_spans() {
        match what {
            Span::STALL => history.stall(from, to),
            priority => history.withheld(Withheld {
                port: PortName::TX,
                priority: Priority::from_low_bits(priority as u8),
                phase,
                from,
                to,
            }),
        }
    }
}

fn add(sum: &mut [u64; Priority::COUNT], more: &[u64; Priority::COUNT]) {
    sum.iter_mut()
        .zip(more)
        .for_each(|(sum, more)| *sum += more);
}
