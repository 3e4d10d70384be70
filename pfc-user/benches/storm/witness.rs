//! A witness of the machine. It records when a CPU stood still, and when the CPU was in the kernel
//! for another process.
//!
//! A timer interrupt of the kernel (the software event `cpu-clock`) samples the clock on every CPU,
//! and waits for no thread and no softirq: nothing that the tool runs can delay it. If a sample is
//! late, the CPU itself was away: taken by the machine's host, or with interrupts off. If it is in
//! time, it names the process that it interrupted. A kernel without preemption (PREEMPT_NONE, or
//! PREEMPT_VOLUNTARY) lets no thread in before a system call ends or yields, whatever the priority.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use validator::driver::kernel::realtime;
use validator_core::evidence::pfc::Gap;
use validator_core::plan::Nanos;

/// Shortest sampling period: a sample takes 5 us of the CPU on a virtual machine.
const SHORTEST_STEP: Nanos = 40_000;
/// Tolerated lateness of a sample: taking one lasts a microsecond or two.
const LATE: Nanos = 5_000;
/// Octets of samples that the kernel keeps per CPU: 5 s at the shortest period.
const ROOM: usize = 1 << 22;
/// PERF_RECORD_MISC_CPUMODE_MASK and PERF_RECORD_MISC_KERNEL of perf_event_open(2).
const MODE: u16 = 7;
const KERNEL: u16 = 1;
const IDLE: u32 = 0;

/// Samples while it lives.
pub struct Witness {
    step: Nanos,
    watches: Vec<(usize, Sampler)>,
}

impl Witness {
    /// Samples every half of `pause`, but not more often than the shortest period. A sender's
    /// interval is a third of the pause, so a gap means that it stood still for the other two
    /// thirds, longer than the time between two samples.
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

    /// Returns `None` if the kernel left out samples (it throttles costly ones): a missing sample
    /// would look like a CPU that stood still, and excuse the tool.
    pub fn end(self) -> Result<Option<Seen>> {
        let mut seen = BTreeMap::new();
        for (cpu, mut watch) in self.watches {
            watch.disable()?;
            let mut looks = Vec::new();
            while let Some(record) = watch.next_record() {
                let kernel = record.misc() & MODE == KERNEL;
                let Record::Sample(sample) = record.parse_record()? else {
                    println!(
                        "  unwatched: of the looks at the clock of CPU {cpu} some are missing \
                         (record {})",
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

/// Cause of a sender's delay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keeper {
    /// The machine: the CPU stood still.
    Host,
    /// The kernel, at work for another process, or the host and the kernel together.
    Kernel,
    /// Neither of them.
    Ours,
}

/// Samples by CPU.
pub struct Seen(BTreeMap<usize, Looks>);

impl Seen {
    /// Names the cause that delayed the sender on `cpu` so long that `gap` would not have exceeded
    /// `pause` without it.
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
    /// The sample interrupted the kernel at work for another process.
    elsewhere: bool,
}

/// Samples in order of time, one period apart while the CPU was there.
struct Looks {
    step: Nanos,
    looks: Vec<Look>,
}

impl Looks {
    /// Returns how much of `gap` the CPU stood still, and how much it did so or was elsewhere.
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
            // A late sample explains its lateness, and at most the period before it.
            let late = to > from + self.step + LATE;
            still += if late { length } else { 0 };
            kept += match (late, pair[0].elsewhere, pair[1].elsewhere) {
                (true, ..) | (_, true, true) => length,
                (_, false, false) => 0,
                // The CPU went there, or came back, at some time in between.
                _ => length / 2,
            };
        }
        (still, kept)
    }
}
