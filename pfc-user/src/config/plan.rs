//! The plan file: which cases, with which repetitions, for how long.

use std::ops::RangeInclusive;

use pfc_ebpf::units::{LineRate, Priority, Quanta};
use serde::Deserialize;

use super::ConfigError;
use super::checks::{positive, priority_set};
use super::document::Document;
use super::testbed::Testbed;
use crate::plan::rc::RcParameters;
use crate::plan::{Durations, Nanos};
use crate::quantity::Span;

/// Cases to run, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// Cases; at least one, each once.
    pub cases: Vec<PlannedCase>,
}

/// A case with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCase {
    /// Case id.
    pub id: String,
    /// Its parameters.
    pub parameters: Parameters,
}

/// Parameters of a case, by family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameters {
    /// Of a PFC case.
    Pfc(PfcParameters),
    /// Of a MAD case: all that it needs is in the testbed.
    Mad,
    /// Of an RC case: its repetitions, at least one.
    Rc(Vec<RcParameters>),
}

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
    /// Those of them that are stormed, in ascending order, where that is not all.
    pub storm: Option<Vec<Priority>>,
}

/// A storm that would leave gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an interval below the pause time, which is {} at {line_rate}; found {}", Span(*.pause), Span(*.interval))]
pub struct IntervalTooLong {
    /// Interval asked for.
    pub interval: Nanos,
    /// Pause time of one frame.
    pub pause: Nanos,
    /// Speed of the port.
    pub line_rate: LineRate,
}

impl Storm {
    /// The interval between frames on a port of that speed.
    pub fn interval_at(&self, line_rate: LineRate) -> Result<Nanos, IntervalTooLong> {
        let pause = self.quanta.nanos(line_rate);
        match self.interval {
            None => Ok((pause / 3).max(1)),
            Some(interval) if interval < pause => Ok(interval),
            Some(interval) => Err(IntervalTooLong {
                interval,
                pause,
                line_rate,
            }),
        }
    }
}

fn list(priorities: &[Priority]) -> String {
    priorities
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    durations: DurationsTable,
    #[serde(default)]
    traffic: TrafficTable,
    #[serde(default)]
    storm: StormTable,
    case: Vec<CaseTable>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct DurationsTable {
    baseline: Option<Span>,
    lead: Option<Span>,
    traffic: Option<Span>,
    tail: Option<Span>,
    resume: Option<Span>,
    drain_max: Option<Span>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrafficTable {
    frame: Option<usize>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct StormTable {
    quanta: Option<i64>,
    interval: Option<Span>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseTable {
    id: String,
    #[serde(default)]
    durations: DurationsTable,
    #[serde(default)]
    storm: StormTable,
    repetitions: Option<Vec<RepetitionTable>>,
    queue_pairs: Option<Vec<QueuePairTable>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueuePairTable {
    retry_count: Option<i64>,
    timeout: Option<i64>,
    path_mtu: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepetitionTable {
    lossless: Vec<Priority>,
    storm: Option<Vec<Priority>>,
}

/// Which sets of priorities make sense in a case, and why.
struct Sets {
    lossless: RangeInclusive<usize>,
    why: &'static str,
    storm_subset: bool,
}

fn sets(case: &str) -> Sets {
    match case {
        "pfc.pause-single-lossless" => Sets {
            lossless: 1..=1,
            why: "the case is about a single lossless priority",
            storm_subset: false,
        },
        "pfc.pause-multi-lossless" => Sets {
            lossless: 2..=7,
            why: "the case is about several lossless priorities beside at least one lossy",
            storm_subset: true,
        },
        "pfc.pause-lossy" => Sets {
            lossless: 1..=7,
            why: "the case needs lossy priorities to storm beside lossless ones",
            storm_subset: false,
        },
        _ => Sets {
            lossless: 1..=8,
            why: "there are eight priorities",
            storm_subset: false,
        },
    }
}

/// The plan in `document`, checked against the cases that there are and the testbed.
pub(super) fn read(
    document: &Document,
    known_cases: &[&str],
    testbed: &Testbed,
) -> Result<Plan, ConfigError> {
    let file: File = document.decode()?;
    if file.case.is_empty() {
        return Err(document.error("case", "expected at least one [[case]], found none"));
    }
    let frame = frame(document, file.traffic.frame, testbed)?;
    let mut cases: Vec<PlannedCase> = Vec::new();
    for (index, table) in file.case.into_iter().enumerate() {
        let at = format!("case[{index}]");
        let id = format!("{at}.id");
        if !known_cases.contains(&table.id.as_str()) {
            return Err(document.error(
                &id,
                format!(
                    "unknown case `{}`; expected one of {}",
                    table.id,
                    known_cases.join(", ")
                ),
            ));
        }
        if cases.iter().any(|case| case.id == table.id) {
            return Err(document.error(&id, format!("case `{}` is listed twice", table.id)));
        }
        let family = table.id.split('.').next().unwrap_or_default();
        if family != "rc" && table.queue_pairs.is_some() {
            return Err(document.error(&format!("{at}.queue_pairs"), "only RC cases take it"));
        }
        let parameters = if family == "mad" {
            without_parameters(document, &at, &table)?;
            Parameters::Mad
        } else if family == "rc" {
            without_parameters(document, &at, &table)?;
            Parameters::Rc(queue_pairs(document, &at, table.queue_pairs)?)
        } else {
            let line_rate = testbed.pfc.as_ref().and_then(|pfc| pfc.line_rate);
            Parameters::Pfc(PfcParameters {
                durations: durations(document, &at, table.durations, file.durations)?,
                frame,
                storm: storm(document, &at, table.storm, file.storm, line_rate)?,
                repetitions: repetitions(
                    document,
                    &at,
                    &sets(&table.id),
                    table.repetitions.unwrap_or_default(),
                )?,
            })
        };
        cases.push(PlannedCase {
            id: table.id,
            parameters,
        });
    }
    Ok(Plan {
        name: file.name,
        cases,
    })
}

/// Queue pairs of an RC case; without any, that of its document.
fn queue_pairs(
    document: &Document,
    at: &str,
    tables: Option<Vec<QueuePairTable>>,
) -> Result<Vec<RcParameters>, ConfigError> {
    let Some(tables) = tables else {
        return Ok(vec![RcParameters::default()]);
    };
    if tables.is_empty() {
        return Err(document.error(
            &format!("{at}.queue_pairs"),
            "expected at least one, such as { retry_count = 2 }; found none",
        ));
    }
    let mut all: Vec<RcParameters> = Vec::new();
    for (index, table) in tables.into_iter().enumerate() {
        let at = format!("{at}.queue_pairs[{index}]");
        let within = |key: &str,
                      given: Option<i64>,
                      allowed: &dyn Fn(i64) -> bool,
                      expected: &str,
                      default: i64| {
            let value = given.unwrap_or(default);
            if allowed(value) {
                Ok(value)
            } else {
                Err(document.error(
                    &format!("{at}.{key}"),
                    format!("expected {expected}, found {value}"),
                ))
            }
        };
        let document_value = RcParameters::default();
        let retry_count = within(
            "retry_count",
            table.retry_count,
            &|count| (0..=7).contains(&count),
            "0 to 7",
            document_value.retry_count.into(),
        )?;
        let timeout = within(
            "timeout",
            table.timeout,
            &|timeout| (1..=31).contains(&timeout),
            "1 to 31: 4.096 us * 2^n (0 would never end)",
            document_value.timeout.into(),
        )?;
        let path_mtu = within(
            "path_mtu",
            table.path_mtu,
            &|mtu| [256, 512, 1024, 2048, 4096].contains(&mtu),
            "256, 512, 1024, 2048 or 4096",
            document_value.path_mtu.into(),
        )?;
        let parameters = RcParameters {
            retry_count: retry_count as u8,
            timeout: timeout as u8,
            path_mtu: path_mtu as u16,
        };
        if all.contains(&parameters) {
            return Err(document.error(&at, "the same queue pair is listed twice"));
        }
        all.push(parameters);
    }
    Ok(all)
}

fn without_parameters(document: &Document, at: &str, table: &CaseTable) -> Result<(), ConfigError> {
    for (key, given) in [
        ("durations", table.durations != DurationsTable::default()),
        ("storm", table.storm != StormTable::default()),
        ("repetitions", table.repetitions.is_some()),
    ] {
        if given {
            return Err(
                document.error(&format!("{at}.{key}"), format!("`{}` takes none", table.id))
            );
        }
    }
    Ok(())
}

fn frame(
    document: &Document,
    given: Option<usize>,
    testbed: &Testbed,
) -> Result<usize, ConfigError> {
    const DEFAULT: usize = 1024;
    const IPV6_EXTRA: usize = 20;
    let (family, shortest) = if testbed
        .pfc
        .as_ref()
        .is_none_or(|pfc| pfc.addresses.source_ip.is_ipv4())
    {
        ("IPv4", 71)
    } else {
        ("IPv6", 71 + IPV6_EXTRA)
    };
    match given.unwrap_or(DEFAULT) {
        frame if (shortest..=3400).contains(&frame) => Ok(frame),
        found => Err(document.error(
            "traffic.frame",
            format!("expected {shortest} to 3400 octets without FCS for {family}, found {found}"),
        )),
    }
}

fn durations(
    document: &Document,
    at: &str,
    case: DurationsTable,
    plan: DurationsTable,
) -> Result<Durations, ConfigError> {
    const MS: Nanos = 1_000_000;
    let pick = |name: &str, own: Option<Span>, common: Option<Span>, default: Nanos| {
        let key = if own.is_some() {
            format!("{at}.durations.{name}")
        } else {
            format!("durations.{name}")
        };
        positive(document, &key, own.or(common), default)
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

fn storm(
    document: &Document,
    at: &str,
    case: StormTable,
    plan: StormTable,
    line_rate: Option<LineRate>,
) -> Result<Storm, ConfigError> {
    let key = |name: &str, own: bool| {
        if own {
            format!("{at}.storm.{name}")
        } else {
            format!("storm.{name}")
        }
    };
    let quanta = case.quanta.or(plan.quanta).unwrap_or(Quanta::MAX.0.into());
    let quanta = u16::try_from(quanta)
        .map(Quanta)
        .ok()
        .filter(|quanta| *quanta != Quanta::ZERO)
        .ok_or_else(|| {
            let problem = format!("expected 1 to 65535 (time 0 would be an XON), found {quanta}");
            document.error(&key("quanta", case.quanta.is_some()), problem)
        })?;
    let key = key("interval", case.interval.is_some());
    let interval = case.interval.or(plan.interval);
    let storm = Storm {
        quanta,
        interval: interval
            .map(|given| positive(document, &key, Some(given), 0))
            .transpose()?,
    };
    if let Some(Err(error)) = line_rate.map(|rate| storm.interval_at(rate)) {
        return Err(document.error(&key, error.to_string()));
    }
    Ok(storm)
}

fn repetitions(
    document: &Document,
    at: &str,
    sets: &Sets,
    tables: Vec<RepetitionTable>,
) -> Result<Vec<PlannedRepetition>, ConfigError> {
    if tables.is_empty() {
        return Err(document.error(
            &format!("{at}.repetitions"),
            "expected at least one repetition, found none",
        ));
    }
    let mut repetitions: Vec<PlannedRepetition> = Vec::new();
    for (index, table) in tables.into_iter().enumerate() {
        let at = format!("{at}.repetitions[{index}]");
        let repetition = repetition(document, &at, sets, &table)?;
        if repetitions.contains(&repetition) {
            return Err(document.error(&at, "the same repetition is listed twice"));
        }
        repetitions.push(repetition);
    }
    Ok(repetitions)
}

fn repetition(
    document: &Document,
    at: &str,
    sets: &Sets,
    table: &RepetitionTable,
) -> Result<PlannedRepetition, ConfigError> {
    let key = format!("{at}.lossless");
    let count = table.lossless.len();
    let (least, most) = (*sets.lossless.start(), *sets.lossless.end());
    let wanted = if most == 1 {
        "one lossless priority".to_owned()
    } else {
        format!("{least} to {most} lossless priorities")
    };
    let wrong = || {
        document.error(
            &key,
            format!("expected {wanted}, found {count}: {}", sets.why),
        )
    };
    if count == 0 {
        return Err(wrong());
    }
    let lossless = priority_set(document, &key, &table.lossless)?;
    if !sets.lossless.contains(&count) {
        return Err(wrong());
    }
    let key = format!("{at}.storm");
    let storm = match &table.storm {
        None => None,
        Some(_) if !sets.storm_subset => {
            return Err(document.error(
                &key,
                "this case says itself what is stormed; only pfc.pause-multi-lossless takes it",
            ));
        }
        Some(storm) => {
            let storm = priority_set(document, &key, storm)?;
            if let Some(lossy) = storm.iter().find(|priority| !lossless.contains(priority)) {
                return Err(document.error(
                    &key,
                    format!(
                        "priority {lossy} is not lossless here; expected a subset of {}",
                        list(&lossless)
                    ),
                ));
            }
            Some(storm).filter(|storm| *storm != lossless)
        }
    };
    Ok(PlannedRepetition { lossless, storm })
}
