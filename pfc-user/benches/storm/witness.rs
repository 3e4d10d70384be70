//! A witness of the machine: when did a CPU stand still, and when was it in the kernel for another process?
//!
//! A timer interrupt of the kernel's own (the software event `cpu-clock`) looks at the clock on every CPU. It waits for no thread and
//! no softirq, so that nothing which the tool runs keeps it: where it comes late the CPU itself was away, taken by the machine's host,
//! or its interrupts were off. Where it comes in time it says whom it interrupted. A kernel that is not preempted (PREEMPT_NONE, or
//! PREEMPT_VOLUNTARY) lets no thread in before a system call ends or gives way, whatever the priority.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use validator::driver::kernel::realtime;
use validator::evidence::pfc::Gap;
use validator::plan::Nanos;

/// The shortest time from one look to the next: a look takes 5 us of the CPU on a virtual machine.
const SHORTEST_STEP: Nanos = 40_000;
/// A look that is late by less is on time: it takes itself a microsecond or two.
const LATE: Nanos = 5_000;
/// Octets of looks that the kernel keeps for a CPU: those of 5 s at the shortest step.
const ROOM: usize = 1 << 22;
/// PERF_RECORD_MISC_CPUMODE_MASK and PERF_RECORD_MISC_KERNEL of perf_event_open(2).
const MODE: u16 = 7;
const KERNEL: u16 = 1;
const IDLE: u32 = 0;

/// Looks on while it lives.
pub struct Witness {
    step: Nanos,
    watches: Vec<(usize, Sampler)>,
}

impl Witness {
    /// Looks every half of `pause`, where that is not too short: a sender whose interval is a third of it is missed where it stands
    /// still for the other two, and that does not pass between two looks.
    pub fn begin(pause: Nanos) -> Result<Self> {
        let step = SHORTEST_STEP.max(pause / 2);
        let watch = |cpu| {
            let mut watch = Builder::new(Software::CPU_CLOCK)
                .any_pid()
                .one_cpu(cpu)
                // A CPU that works in the kernel does not stand still.
                .include_kernel()
                .include_hv()
                .sample_period(step)
                .clockid(Clock::MONOTONIC)
                .sample(SampleFlag::TID | SampleFlag::TIME)
                .build()
                .and_then(|counter| counter.sampled(ROOM))?;
            watch.enable()?;
            anyhow::Ok((cpu, watch))
        };
        let watches: Result<_> = realtime::allowed_cpus().into_iter().map(watch).collect();
        let watches = watches
            .context("the kernel's cpu-clock, by which the benchmark tells whose gaps there are")?;
        Ok(Self { step, watches })
    }

    /// `None` where the kernel left looks out (it throttles what takes it too long): what is missing would pass for a CPU that stood
    /// still, and excuse the tool.
    pub fn end(self) -> Result<Option<Seen>> {
        let mut seen = BTreeMap::new();
        for (cpu, mut watch) in self.watches {
            watch.disable()?;
            let mut looks = Vec::new();
            while let Some(record) = watch.next_record() {
                let kernel = record.misc() & MODE == KERNEL;
                let Record::Sample(sample) = record.parse_record()? else {
                    println!(
                        "  unwatched: of the looks at the clock of CPU {cpu} some are missing (record {})",
                        record.ty()
                    );
                    return Ok(None);
                };
                let (Some(time), Some(process)) = (sample.time(), sample.pid()) else {
                    bail!("a look at the clock without the time")
                };
                looks.push(Look {
                    time,
                    elsewhere: kernel && process != IDLE && process != std::process::id(),
                });
            }
            seen.insert(
                cpu,
                Looks {
                    step: self.step,
                    looks,
                },
            );
        }
        Ok(Some(Seen(seen)))
    }
}

/// Who kept a sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keeper {
    /// The machine: the CPU stood still.
    Host,
    /// The kernel, at work for another process, or the machine and it together.
    Kernel,
    /// Neither.
    Ours,
}

/// What was seen of each CPU.
pub struct Seen(BTreeMap<usize, Looks>);

impl Seen {
    /// Who kept the sender on `cpu` so long that without that `gap` would not have been above `pause`.
    pub fn keeper(&self, gap: &Gap, pause: Nanos, cpu: usize) -> Keeper {
        let Some(looks) = self.0.get(&cpu) else {
            return Keeper::Ours;
        };
        let excess = gap.length().saturating_sub(pause);
        match looks.kept(gap) {
            (still, _) if still >= excess => Keeper::Host,
            (_, kept) if kept >= excess => Keeper::Kernel,
            _ => Keeper::Ours,
        }
    }
}

#[derive(Clone, Copy)]
struct Look {
    time: Nanos,
    /// It found the kernel at work for another process.
    elsewhere: bool,
}

/// In their order, a step apart where the CPU was there.
struct Looks {
    step: Nanos,
    looks: Vec<Look>,
}

impl Looks {
    /// How long in `gap` the CPU stood still, and how long it did or was elsewhere.
    fn kept(&self, gap: &Gap) -> (Nanos, Nanos) {
        let first = self
            .looks
            .partition_point(|look| look.time <= gap.from)
            .saturating_sub(1);
        let (mut still, mut kept) = (0, 0);
        for pair in self.looks[first..]
            .windows(2)
            .take_while(|pair| pair[0].time < gap.to)
        {
            let [from, to] = [pair[0].time, pair[1].time];
            let length = to.min(gap.to).saturating_sub(from.max(gap.from));
            // A late look explains its lateness, and at most the step before it.
            let late = to > from + self.step + LATE;
            still += if late { length } else { 0 };
            kept += match (late, pair[0].elsewhere, pair[1].elsewhere) {
                (true, ..) | (_, true, true) => length,
                (_, false, false) => 0,
                // It went there, or came back, at some time in between.
                _ => length / 2,
            };
        }
        (still, kept)
    }
}
