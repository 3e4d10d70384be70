//! Parameters of a PFC case: the sets of priorities, the times, the frames and the storm.

use std::fmt;
use std::ops::RangeInclusive;

use pfc_ebpf::units::{LineRate, Priority, Quanta};

use super::PfcCase;
use super::planning::listed;
use crate::cases::parameters::{
    CaseTable, DurationsTable, Misfit, PlanTables, RepetitionTable, StormTable, above_zero,
};
use crate::plan::{Durations, INTERVALS, Nanos};
use crate::quantity::Span;

/// Parameters of a PFC case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcParameters {
    /// Times. A case has no resume phase where its document has no such step, whatever stands here.
    pub durations: Durations,
    /// Length of the test frames in octets, without FCS.
    pub frame: usize,
    /// The storm's frames.
    pub storm: Storm,
    /// Repetitions; at least one, each once.
    pub repetitions: Vec<PlannedRepetition>,
    /// True: on a DUT whose lossless set is fixed, no more repetitions than these.
    pub short: bool,
}

/// The storm's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storm {
    /// Pause time in each, not 0.
    pub quanta: Quanta,
    /// Time from one to the next; `None`: a third of the pause time.
    pub interval: Option<Nanos>,
}

/// One set of priorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRepetition {
    /// Lossless priorities in ascending order.
    pub lossless: Vec<Priority>,
    /// The priorities that are stormed, in ascending order; perhaps none. `None`: the lossless ones.
    pub storm: Option<Vec<Priority>>,
}

/// Shortest interval between pause frames that software can keep. A third of the longest pause is
/// above it at every line rate.
const LEAST_INTERVAL: Nanos = 5_000;

/// A storm that cannot be had: no sender keeps its interval, or the interval would leave gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct IntervalError {
    /// Interval asked for, or that follows from the pause time.
    interval: Nanos,
    /// Pause time of one frame.
    pause: Nanos,
    /// Speed of the port.
    line_rate: LineRate,
}

impl fmt::Display for IntervalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pause, found, line_rate) = (Span(self.pause), Span(self.interval), self.line_rate);
        if self.interval < LEAST_INTERVAL {
            let least = Span(LEAST_INTERVAL);
            write!(
                f,
                "expected an interval of at least {least}, found {found} (the pause time is \
                 {pause} at {line_rate}; `storm.quanta` sets it, `storm.interval` is a third of it \
                 by default)"
            )
        } else {
            write!(
                f,
                "expected an interval below the pause time, which is {pause} at {line_rate}; found \
                 {found}"
            )
        }
    }
}

impl Storm {
    /// The interval between frames on a port of that speed.
    pub fn interval_at(&self, line_rate: LineRate) -> Result<Nanos, IntervalError> {
        let pause = self.quanta.nanos(line_rate);
        let interval = self.interval.unwrap_or(pause / INTERVALS);
        if (LEAST_INTERVAL..pause).contains(&interval) {
            return Ok(interval);
        }
        Err(IntervalError {
            interval,
            pause,
            line_rate,
        })
    }
}

/// Sets of priorities that make sense in a case, and the reason.
pub(super) struct Sets {
    /// Number of lossless priorities.
    pub(super) lossless: RangeInclusive<usize>,
    /// The reason.
    pub(super) why: &'static str,
    /// The choice that a plan has of the storm.
    pub(super) storm: StormChoice,
}

impl Sets {
    /// Every set beside which there is a lossy priority, in a case that consists of its probe.
    pub(super) const OF_PROBE: Self = Self {
        lossless: 1..=7,
        why: "the case needs lossy priorities beside lossless ones",
        storm: StormChoice::Without,
    };
}

/// The choice that a plan has of the stormed priorities.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StormChoice {
    /// Nothing: the case has no storm, and consists of its probe.
    Without,
    /// Nothing: the case has no storm, and consists of its traffic.
    Traffic,
    /// Nothing: the case says itself what is stormed.
    OfCase,
    /// Some of the lossless priorities.
    Some,
    /// Some of them, or none.
    SomeOrNone,
    /// Some of all priorities.
    Any,
}

/// The parameters of `case` in its table.
pub(in crate::cases) fn read(
    case: &PfcCase,
    table: CaseTable,
    plan: &PlanTables,
) -> Result<PfcParameters, Misfit> {
    table.refuse_queue_pairs()?;
    table.refuse_key_bits()?;
    Ok(PfcParameters {
        durations: durations(table.durations, plan.durations)?,
        frame: plan.frame,
        storm: storm(table.storm, plan)?,
        repetitions: repetitions(&case.sets, table.repetitions.unwrap_or_default())?,
        short: plan.short,
    })
}

/// The length of the shortest test frame: headers and stamp, in octets without FCS; and of what it
/// is the shortest.
pub fn shortest_frame(is_ipv4: bool, is_tagged: bool) -> (usize, &'static str) {
    match (is_ipv4, is_tagged) {
        (true, false) => (60, "IPv4"),
        (true, true) => (64, "IPv4 behind a tag"),
        (false, false) => (80, "IPv6"),
        (false, true) => (84, "IPv6 behind a tag"),
    }
}

/// The length of the test frames; `given` is that of the plan, in octets without FCS. Errors name
/// the [shortest](shortest_frame).
pub fn frame(given: Option<usize>, (shortest, family): (usize, &str)) -> Result<usize, Misfit> {
    const DEFAULT: usize = 1024;
    match given.unwrap_or(DEFAULT) {
        frame if (shortest..=3400).contains(&frame) => Ok(frame),
        found => Err(Misfit::at(
            false,
            "traffic.frame",
            format!("expected {shortest} to 3400 octets without FCS for {family}, found {found}"),
        )),
    }
}

fn durations(case: DurationsTable, plan: DurationsTable) -> Result<Durations, Misfit> {
    const MS: Nanos = 1_000_000;
    let pick = |name: &str, own: Option<Span>, common: Option<Span>, default: Nanos| {
        let Some(given) = own.or(common) else {
            return Ok(default);
        };
        above_zero(given)
            .map_err(str::to_owned)
            .and_then(bounded)
            .map_err(|problem| Misfit::at(own.is_some(), &format!("durations.{name}"), problem))
    };
    Ok(Durations {
        baseline: pick("baseline", case.baseline, plan.baseline, 300 * MS)?,
        lead: pick("lead", case.lead, plan.lead, 1000 * MS)?,
        traffic: pick("traffic", case.traffic, plan.traffic, 1000 * MS)?,
        tail: pick("tail", case.tail, plan.tail, 200 * MS)?,
        resume: pick("resume", case.resume, plan.resume, 1000 * MS)?,
        drain_max: pick("drain_max", case.drain_max, plan.drain_max, 2000 * MS)?,
    })
}

/// A duration in which something can be measured, and that someone waits for.
fn bounded(found: Nanos) -> Result<Nanos, String> {
    const RANGE: RangeInclusive<Nanos> = 1_000_000..=3_600_000_000_000;
    if RANGE.contains(&found) {
        return Ok(found);
    }
    let (least, most) = (Span(*RANGE.start()), Span(*RANGE.end()));
    Err(format!("expected {least} to {most}, found {}", Span(found)))
}

fn storm(case: StormTable, plan: &PlanTables) -> Result<Storm, Misfit> {
    let given = case.quanta.or(plan.storm.quanta);
    let given = given.unwrap_or(Quanta::MAX.0.into());
    let wrong_quanta = |problem| Misfit::at(case.quanta.is_some(), "storm.quanta", problem);
    let quanta = match u16::try_from(given) {
        Ok(quanta @ 1..) => Quanta(quanta),
        _ => {
            let problem = format!("expected 1 to 65535 (time 0 would be an XON), found {given}");
            return Err(wrong_quanta(problem));
        }
    };
    let wrong = |problem: String| Misfit::at(case.interval.is_some(), "storm.interval", problem);
    let interval = case.interval.or(plan.storm.interval);
    let interval = interval.map(above_zero).transpose();
    let storm = Storm {
        quanta,
        interval: interval.map_err(|problem| wrong(problem.into()))?,
    };
    match plan.line_rate.map(|rate| storm.interval_at(rate)) {
        Some(Err(error)) if storm.interval.is_none() => Err(wrong_quanta(error.to_string())),
        Some(Err(error)) => Err(wrong(error.to_string())),
        _ => Ok(storm),
    }
}

fn repetitions(
    sets: &Sets,
    tables: Vec<RepetitionTable>,
) -> Result<Vec<PlannedRepetition>, Misfit> {
    if tables.is_empty() {
        let problem = "expected at least one repetition, found none";
        return Err(Misfit::of_case("repetitions", problem));
    }
    let mut repetitions: Vec<PlannedRepetition> = Vec::new();
    for (index, table) in tables.into_iter().enumerate() {
        let at = format!("repetitions[{index}]");
        let repetition = PlannedRepetition {
            lossless: lossless(&format!("{at}.lossless"), sets, &table)?,
            storm: stormed(&format!("{at}.storm"), sets, &table)?,
        };
        if repetitions.contains(&repetition) {
            return Err(Misfit::of_case(at, "the same repetition is listed twice"));
        }
        repetitions.push(repetition);
    }
    Ok(repetitions)
}

fn lossless(key: &str, sets: &Sets, table: &RepetitionTable) -> Result<Vec<Priority>, Misfit> {
    let count = table.lossless.len();
    if count > 0 {
        let lossless = set(key, &table.lossless)?;
        if sets.lossless.contains(&count) {
            return Ok(lossless);
        }
    }
    let wanted = match (sets.lossless.start(), sets.lossless.end()) {
        (_, 1) => "one lossless priority".to_owned(),
        (least, most) => format!("{least} to {most} lossless priorities"),
    };
    let problem = format!("expected {wanted}, found {count}: {}", sets.why);
    Err(Misfit::of_case(key, problem))
}

/// The stormed priorities, where they are not all lossless ones.
fn stormed(
    key: &str,
    sets: &Sets,
    table: &RepetitionTable,
) -> Result<Option<Vec<Priority>>, Misfit> {
    let Some(storm) = &table.storm else {
        return Ok(None);
    };
    match sets.storm {
        StormChoice::Without | StormChoice::Traffic => {
            return Err(Misfit::of_case(key, "this case has no storm"));
        }
        StormChoice::OfCase => {
            return Err(Misfit::of_case(
                key,
                "this case says itself what is stormed; pfc.pause-multi-lossless, \
                 pfc.enable-vector, pfc.class-map, pfc.sizes and pfc.victim take it",
            ));
        }
        StormChoice::SomeOrNone if storm.is_empty() => return Ok(Some(Vec::new())),
        StormChoice::Some | StormChoice::SomeOrNone | StormChoice::Any => {}
    }
    let (storm, lossless) = (set(key, storm)?, set(key, &table.lossless)?);
    let may_be_lossy = sets.storm == StormChoice::Any;
    match storm
        .iter()
        .find(|priority| !may_be_lossy && !lossless.contains(priority))
    {
        Some(lossy) => Err(Misfit::of_case(
            key,
            format!(
                "priority {lossy} is not lossless here; expected a subset of {}",
                listed(&lossless, ",")
            ),
        )),
        None => Ok(Some(storm).filter(|storm| *storm != lossless)),
    }
}

/// `given` in ascending order.
fn set(key: &str, given: &[Priority]) -> Result<Vec<Priority>, Misfit> {
    sorted_set(given).map_err(|problem| Misfit::of_case(key, problem))
}

/// `given` in ascending order; an error where a priority is in it twice, or none at all.
pub fn sorted_set(given: &[Priority]) -> Result<Vec<Priority>, String> {
    let mut set = given.to_vec();
    set.sort();
    if let Some(pair) = set.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("priority {} is listed twice", pair[0]));
    }
    if set.is_empty() {
        return Err("expected at least one priority (0 to 7), found none".into());
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl PfcParameters {
        /// Parameters with the longest pause and times that are all as long as `each`.
        pub(in crate::cases::pfc) fn of(
            each: Nanos,
            frame: usize,
            interval: Option<Nanos>,
            repetitions: Vec<PlannedRepetition>,
        ) -> Self {
            Self {
                durations: Durations {
                    baseline: each,
                    lead: each,
                    traffic: each,
                    tail: each,
                    resume: each,
                    drain_max: each,
                },
                frame,
                storm: Storm {
                    quanta: Quanta::MAX,
                    interval,
                },
                repetitions,
                short: false,
            }
        }
    }
}
