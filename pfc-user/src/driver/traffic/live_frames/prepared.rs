//! The flows as the program wants them.

use pfc_ebpf::abi::generate::{BATCH, BLOCK, Flow, Lanes, SHORT_BATCH, Settings, Worker};
use pfc_ebpf::pacing::{Bucket, BurstMeter, SECOND, Share as Part};
use pfc_ebpf::stamp::{MAGIC, flow_and_phase};
use pfc_ebpf::units::Nanos;
use validator_core::pacing::pacer::{Paced, max_lateness, stagger};
use validator_core::pacing::workers::{Deal, rates};
use validator_core::test_frame::FrameTemplate;

use super::super::{Burst, TrafficError, TrafficPlan};
use crate::driver::bpf::CaseGenerator;

/// All that does not change from burst to burst.
pub struct Prepared {
    /// The longest frame, of which the program makes all: a pattern.
    pub frame: Vec<u8>,
    /// Flows, by worker.
    pub flows: Vec<PreparedFlow>,
    /// Workers.
    pub shares: Vec<Share>,
    settings: Settings,
    max_lateness: Nanos,
    honoured: u64,
}

/// The flows of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The worker's CPU.
    pub cpu: usize,
    /// Its first flow.
    pub first: usize,
    /// The one after its last.
    pub end: usize,
    /// Sum of their rates.
    pub rate: u64,
    /// Runs of the program in a batch.
    pub batch: u32,
}

/// Frames a second up to which a core has the time for short batches, which cost it a seventh of
/// its rate.
const LEAVES_TIME: u64 = 3_000_000;

/// Runs in a batch for `frames` frames a second: no more than the rate needs, for in a batch no
/// other thread gets the CPU, the storm's neither.
fn batch(frames: u64) -> u32 {
    if frames <= LEAVES_TIME {
        SHORT_BATCH
    } else {
        BATCH
    }
}

/// A flow.
pub struct PreparedFlow {
    /// Index in the stamp.
    pub id: u16,
    paced: Paced,
    /// Its first frame waits for so much of the time from one to the next.
    wait: Part,
    run: u16,
    stamp_at: usize,
    entry: Flow,
}

impl Prepared {
    pub fn new(
        plan: &TrafficPlan<'_>,
        cpus: &[usize],
        honoured: bool,
    ) -> Result<Self, TrafficError> {
        let templates = plan.paced()?;
        let paced: Vec<_> = templates.iter().map(|(_, paced, _)| *paced).collect();
        let max_lateness = max_lateness(&paced, plan.line_rate, plan.max_burst)?;
        let waits = stagger(&paced);
        equal_headers(&templates)?;
        let frame = longest(&templates);
        let mut flows = Vec::with_capacity(templates.len());
        let mut shares = Vec::with_capacity(cpus.len());
        let deal = Deal::new(&rates(plan.flows), cpus.len());
        for (worker, (&cpu, &frames)) in cpus.iter().zip(&deal.frames).enumerate() {
            let first = flows.len();
            let all = templates.iter().zip(&waits).zip(&deal.workers);
            let dealt = all.filter(|(_, dealt_to)| **dealt_to == worker);
            flows.extend(dealt.map(|(((id, paced, template), wait), _)| {
                PreparedFlow::new(plan.run, *id, *paced, *wait, template, frame.len())
            }));
            shares.push(Share {
                cpu,
                first,
                end: flows.len(),
                rate: flows[first..].iter().map(|flow| flow.paced.rate).sum(),
                batch: batch(frames),
            });
        }
        let settings = Settings {
            stop: 0,
            to: 0,
            epoch: plan.epoch,
            width: plan.width,
            windows: plan.windows as u64,
        };
        let honoured = if honoured { 0xff } else { 0 };
        Ok(Self {
            max_lateness,
            honoured,
            frame,
            flows,
            shares,
            settings,
        })
    }

    /// Writes all that the program goes by. No worker may be running.
    pub fn begin(&mut self, burst: Burst, generator: &CaseGenerator) {
        for (index, flow) in self.flows.iter_mut().enumerate() {
            flow.begin(burst, burst.from);
            generator.flows.set(index, &flow.entry);
        }
        generator.own.lanes.set(
            0,
            &Lanes {
                at: burst.from,
                ..Lanes::default()
            },
        );
        generator.settings.set(
            0,
            &Settings {
                to: burst.to,
                ..self.settings
            },
        );
        // A CPU that is no worker's has no flows.
        for cpu in 0..generator.workers.entries() {
            generator.workers.set(cpu, &Worker::default());
        }
        for (index, share) in self.shares.iter().enumerate() {
            let worker = Worker {
                first: share.first as u64,
                end: share.end as u64,
                cursor: share.first as u64,
                batch_runs: share.batch.into(),
                leads: u64::from(index == 0),
                now: burst.from,
                max_lateness: self.max_lateness,
                honoured: self.honoured,
                excess: BurstMeter::new(share.rate),
                ..Worker::default()
            };
            generator.workers.set(share.cpu, &worker);
        }
    }
}

/// The longest frame: behind the block that the program writes, all flows share its octets.
fn longest(templates: &[(u16, Paced, FrameTemplate)]) -> Vec<u8> {
    let templates = templates.iter().map(|(_, _, template)| template);
    let longest = templates.max_by_key(|template| template.length());
    longest.map_or(Vec::new(), |template| template.octets().0.to_vec())
}

/// The filling goes by the place behind the stamp, which the shared octets have at one place alone.
fn equal_headers(templates: &[(u16, Paced, FrameTemplate)]) -> Result<(), TrafficError> {
    let mut stamps = templates.iter().map(|(_, _, template)| template.octets().1);
    let Some(first) = stamps.next() else {
        return Ok(());
    };
    match stamps.find(|stamp| *stamp != first) {
        Some(other) => Err(TrafficError::Headers { first, other }),
        None => Ok(()),
    }
}

impl PreparedFlow {
    fn new(
        run: u16,
        id: u16,
        paced: Paced,
        wait: Part,
        template: &FrameTemplate,
        longest: usize,
    ) -> Self {
        let (octets, stamp_at) = template.octets();
        let mut block = [0u8; BLOCK];
        for (at, octet) in block.iter_mut().enumerate() {
            *octet = octets.get(at).copied().unwrap_or(at as u8);
        }
        block[stamp_at..stamp_at + 2].copy_from_slice(&MAGIC.to_be_bytes());
        block[stamp_at + 2..stamp_at + 4].copy_from_slice(&run.to_be_bytes());
        let entry = Flow {
            priority: paced.priority.get().into(),
            cost: paced.bits * SECOND,
            length: octets.len() as u16,
            trim: (longest - octets.len()) as u16,
            stamp_at: stamp_at as u16,
            block: std::array::from_fn(|word| {
                u64::from_ne_bytes(
                    block[8 * word..8 * word + 8]
                        .try_into()
                        .expect("eight octets"),
                )
            }),
            ..Flow::default()
        };
        Self {
            id,
            paced,
            wait,
            run,
            stamp_at,
            entry,
        }
    }

    /// Readies the flow for the burst. Its sequence number goes on.
    fn begin(&mut self, burst: Burst, from: Nanos) {
        let flow = flow_and_phase(self.id, burst.phase);
        for (at, octet) in (self.stamp_at + 4..).zip(flow.to_be_bytes()) {
            let mut word = self.entry.block[at / 8].to_ne_bytes();
            word[at % 8] = octet;
            self.entry.block[at / 8] = u64::from_ne_bytes(word);
        }
        self.entry.sum = [MAGIC, self.run, flow].into_iter().map(u64::from).sum();
        let Paced { bits, rate, .. } = self.paced;
        self.entry.bucket = Bucket::staggered(from, bits, rate, burst.load, self.wait);
        (self.entry.first, self.entry.last) = (0, 0);
    }

    /// Takes over what the program made of it; returns how many frames left since the last time.
    pub fn update(&mut self, entry: Flow) -> u64 {
        let frames = entry.sequence - self.entry.sequence;
        self.entry = entry;
        frames
    }
}
