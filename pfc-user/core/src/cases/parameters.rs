//! Tables of a plan file, before their values are checked. Each family takes its own keys and
//! refuses those of the others.

use pfc_ebpf::units::{LineRate, Priority};
use serde::Deserialize;

use crate::keys;
use crate::quantity::Span;

keys::table! {
    /// A case to run; each case once, in the order of the file.
    #[derive(Debug, Deserialize)]
    pub struct CaseTable: "[case]", "" {
        /// Case id. Mandatory.
        pub id: String = "text", "";
        /// Only of PFC cases.
        #[serde(default)]
        pub durations: DurationsTable = "table", "the plan's";
        /// Only of PFC cases.
        #[serde(default)]
        pub storm: StormTable = "table", "the plan's";
        /// Sets of priorities. Mandatory for PFC cases, and only there.
        pub repetitions: Option<Vec<RepetitionTable>> = "list of tables", "";
        /// Queue pairs. Only of RC cases.
        pub queue_pairs: Option<Vec<QueuePairTable>> = "list of tables", "that of the document";
        /// True: a wrong M_Key for each of the 64 bits, and not for eight of them that each run
        /// draws. Only of `mad.c14-016-get`.
        pub all_key_bits: Option<bool> = "true or false", "false";
    }
}

keys::table! {
    /// Times of the PFC cases, each 1ms to 60min. A case may have a table `durations` of its own.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
    pub struct DurationsTable: "durations", "durations." {
        /// Data before the storm.
        pub(super) baseline: Option<Span> = "time", "\"300ms\"";
        /// The storm before the data.
        pub(super) lead: Option<Span> = "time", "\"1s\"";
        /// Data during the storm, or, in `pfc.oversubscription`, more than the DUT can send.
        pub(super) traffic: Option<Span> = "time", "\"1s\"";
        /// The storm after the data.
        pub(super) tail: Option<Span> = "time", "\"200ms\"";
        /// Data after the storm, where the case has such a phase.
        pub(super) resume: Option<Span> = "time", "\"1s\"";
        /// Longest wait for what the DUT still holds.
        pub(super) drain_max: Option<Span> = "time", "\"2s\"";
    }
}

keys::table! {
    /// Pause frames of the PFC cases. A case may have a table `storm` of its own.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
    pub struct StormTable: "storm", "storm." {
        /// Pause time of each frame, 1 to 65535. A third of it, the default interval, must be at
        /// least 5us.
        pub(super) quanta: Option<i64> = "number", "65535";
        /// Time from one frame to the next; at least 5us, and below the pause time.
        pub(super) interval: Option<Span> = "time", "a third of the pause time";
    }
}

keys::table! {
    /// One repetition of a PFC case.
    #[derive(Debug, Deserialize)]
    pub struct RepetitionTable: "case.repetitions", "" {
        /// Lossless priorities. Mandatory.
        pub(super) lossless: Vec<Priority> = "list of priorities", "";
        /// Priorities that are stormed: some of these in `pfc.pause-multi-lossless`, `pfc.victim`
        /// and `pfc.enable-vector`, where the list may be empty; any in `pfc.class-map` and
        /// `pfc.sizes`.
        pub(super) storm: Option<Vec<Priority>> = "list of priorities", "all of them";
    }
}

keys::table! {
    /// One repetition of an RC case.
    #[derive(Clone, Copy, Debug, Deserialize)]
    pub struct QueuePairTable: "case.queue_pairs", "" {
        /// 0 to 7.
        pub(super) retry_count: Option<i64> = "number", "2";
        /// Local ACK time-out n, 1 to 31: 4.096 us * 2^n.
        pub(super) timeout: Option<i64> = "number", "18";
        /// 256, 512, 1024, 2048 or 4096 octets.
        pub(super) path_mtu: Option<i64> = "number", "1024";
    }
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
