//! Tables of a plan file, before their values are checked. Each family takes its own keys and
//! refuses those of the others.

use pfc_ebpf::units::{LineRate, Priority};
use serde::Deserialize;

use crate::quantity::Span;

/// A table `[[case]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseTable {
    /// Case id.
    pub id: String,
    /// Times, where they are not those of the whole plan.
    #[serde(default)]
    pub durations: DurationsTable,
    /// The storm, where it is not that of the whole plan.
    #[serde(default)]
    pub storm: StormTable,
    /// Repetitions of a PFC case.
    pub repetitions: Option<Vec<RepetitionTable>>,
    /// Repetitions of an RC case.
    pub queue_pairs: Option<Vec<QueuePairTable>>,
    /// Wrong keys for all bits of an M_Key.
    pub all_key_bits: Option<bool>,
}

/// A table `durations`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DurationsTable {
    pub(super) baseline: Option<Span>,
    pub(super) lead: Option<Span>,
    pub(super) traffic: Option<Span>,
    pub(super) tail: Option<Span>,
    pub(super) resume: Option<Span>,
    pub(super) drain_max: Option<Span>,
}

/// A table `storm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StormTable {
    pub(super) quanta: Option<i64>,
    pub(super) interval: Option<Span>,
}

/// An entry of `repetitions`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepetitionTable {
    pub(super) lossless: Vec<Priority>,
    pub(super) storm: Option<Vec<Priority>>,
}

/// An entry of `queue_pairs`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuePairTable {
    pub(super) retry_count: Option<i64>,
    pub(super) timeout: Option<i64>,
    pub(super) path_mtu: Option<i64>,
}

/// The tables of a whole plan that PFC cases share.
#[derive(Clone, Copy, Debug)]
pub struct PlanTables {
    /// Times.
    pub durations: DurationsTable,
    /// The storm.
    pub storm: StormTable,
    /// Length of the test frames in octets, without FCS.
    pub frame: usize,
    /// True: on a DUT whose lossless set is fixed, a case has no more repetitions than are listed.
    pub short: bool,
    /// Speed of the testbed's ports, where its file says it.
    pub line_rate: Option<LineRate>,
}

/// A value that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// True: the key is one of the case's table; else of the plan.
    pub in_case: bool,
    /// Its key, such as `storm.quanta`.
    pub key: String,
    /// The expectation, and the value that was found.
    pub problem: String,
}

impl Misfit {
    /// A value in the case's table.
    pub(super) fn of_case(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            in_case: true,
            key: key.into(),
            problem: problem.into(),
        }
    }

    /// A value in the case's table if it has one, else in the plan's.
    pub(super) fn at(in_case: bool, key: &str, problem: impl Into<String>) -> Self {
        Self {
            in_case,
            ..Self::of_case(key, problem)
        }
    }
}

/// Refuses a key that is given.
fn refuse(given: bool, key: &str, problem: &str) -> Result<(), Misfit> {
    if given {
        return Err(Misfit::of_case(key, problem));
    }
    Ok(())
}

impl CaseTable {
    /// Refuses the keys of PFC cases.
    pub(super) fn refuse_pfc_keys(&self) -> Result<(), Misfit> {
        let problem = format!("`{}` takes none", self.id);
        let durations = self.durations != DurationsTable::default();
        refuse(durations, "durations", &problem)?;
        refuse(self.storm != StormTable::default(), "storm", &problem)?;
        refuse(self.repetitions.is_some(), "repetitions", &problem)
    }

    /// Refuses the key of the case that tries wrong M_Keys, in any other case.
    pub(super) fn refuse_key_bits(&self) -> Result<(), Misfit> {
        let given = self.all_key_bits.is_some() && self.id != "mad.c14-016-get";
        refuse(given, "all_key_bits", "only `mad.c14-016-get` takes it")
    }

    /// Refuses the key of RC cases.
    pub(super) fn refuse_queue_pairs(&self) -> Result<(), Misfit> {
        let given = self.queue_pairs.is_some();
        refuse(given, "queue_pairs", "only RC cases take it")
    }
}

/// The nanoseconds of `given`; an error where that is no time at all.
pub(super) fn above_zero(given: Span) -> Result<u64, &'static str> {
    match given {
        Span(0) => Err("expected a time above 0"),
        Span(nanos) => Ok(nanos),
    }
}
