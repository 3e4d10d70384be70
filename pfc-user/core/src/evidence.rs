//! Measurements of a run: data only, written to `evidence.json` and judged from there again.
//!
//! Every field is written, even where it is empty, so that [`whole`] finds one that is missing. A
//! new field, or another meaning of one, is a new [`SCHEMA`].

pub mod digest;
pub mod hooks;
pub mod mac;
pub mod mad;
pub mod numbers;
pub mod pfc;
pub mod preflight;
pub mod rc;
pub mod whole;
pub mod xdp;

use pfc_ebpf::units::Priority;
use serde::{Deserialize, Serialize};

use crate::plan::mad::MadPlan;
use crate::plan::rc::RcPlan;
use crate::plan::{Limits, RepetitionPlan};

/// Layout version of `evidence.json`.
pub const SCHEMA: u32 = 9;

/// Everything that a run recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Version of the tool.
    pub version: String,
    /// Start of the run, seconds since 1970 (UTC).
    pub started: u64,
    /// Length of the run in seconds.
    pub seconds: f64,
    /// Kernel release, machine name, CPUs.
    pub host: Host,
    /// Name of the testbed, and its file as it was read.
    pub testbed: Testbed,
    /// Plan and command line, and when each case ran. Nothing is judged by it.
    pub invocation: Invocation,
    /// Facts about the ports before the run.
    pub preflight: Option<preflight::Preflight>,
    /// Ids of the cases that were to run, in their order.
    pub planned: Vec<String>,
    /// Output of the hooks `prepare` and `restore`.
    pub hooks: Vec<hooks::HookOutput>,
    /// Cases in the order they ran.
    pub cases: Vec<CaseEvidence>,
    /// The run was interrupted before its end.
    pub interrupted: bool,
}

/// The plan and command line of a run, and the times of its cases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// Name of the plan.
    pub plan: String,
    /// The plan's TOML text.
    pub toml: String,
    /// The command line, an argument each.
    pub command: Vec<String>,
    /// Times of the cases, in the order they ran.
    pub cases: Vec<CaseTime>,
}

/// When a case ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseTime {
    /// Case id.
    pub case: String,
    /// Its begin, seconds since 1970 (UTC).
    pub started: u64,
    /// Its length in seconds.
    pub seconds: f64,
}

/// The machine that the tester runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// `uname -n`. Nothing is judged by it.
    pub name: String,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -m`.
    pub machine: String,
    /// CPUs that may be used.
    pub cpus: usize,
    /// Time of day when CLOCK_MONOTONIC was 0, in nanoseconds since 1970 (UTC).
    pub clock: u64,
}

/// The testbed that was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Testbed {
    /// Its name.
    pub name: String,
    /// Kind of DUT: `sim`, `bridge` or `external`.
    pub dut: String,
    /// The DUT as the testbed describes it. Nothing is judged by it.
    pub identity: Identity,
    /// The TOML text.
    pub toml: String,
}

/// A DUT by its maker's words; empty where the testbed does not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Maker.
    pub vendor: String,
    /// Model.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// Operating system or firmware, with its version.
    pub software: String,
}

impl Identity {
    /// Returns the known fields, each with its name.
    pub fn known(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("vendor", &self.vendor),
            ("model", &self.model),
            ("serial", &self.serial),
            ("software", &self.software),
        ];
        let all = all.into_iter().map(|(name, value)| (name, value.as_str()));
        all.filter(|(_, value)| !value.is_empty())
    }
}

/// Records of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseEvidence {
    /// Case id.
    pub case: String,
    /// Repetitions that were to be done, in their order.
    pub planned: Vec<Planned>,
    /// Repetitions that were done: every attempt at each, in the order they were made.
    pub repetitions: Vec<Repetition>,
    /// The number of these attempts, counted as each ended.
    pub attempts: u64,
    /// Repetitions of the plan that were not done, and why.
    pub omitted: Vec<Omitted>,
    /// The DUT's lossless set, where it cannot be changed and the repetitions follow it.
    pub fixed_set: Option<FixedSet>,
    /// The reason why the case could not go on: a fault of the tester or its surroundings.
    pub error: Option<String>,
}

impl Evidence {
    /// Evidence of a run of these cases, of whose time, host and testbed nothing is known.
    pub fn of(cases: Vec<CaseEvidence>) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").into(),
            started: 0,
            seconds: 0.0,
            host: Host::default(),
            testbed: Testbed::default(),
            invocation: Invocation::default(),
            preflight: None,
            planned: cases.iter().map(|case| case.case.clone()).collect(),
            hooks: Vec::new(),
            cases,
            interrupted: false,
        }
    }
}

impl CaseEvidence {
    /// Evidence of a case whose plan was what these repetitions did.
    pub fn of(case: &str, repetitions: Vec<Repetition>) -> Self {
        Self {
            case: case.into(),
            planned: repetitions
                .iter()
                .filter(|repetition| repetition.attempt() == 1)
                .map(Repetition::planned)
                .collect(),
            attempts: repetitions.len() as u64,
            repetitions,
            omitted: Vec::new(),
            fixed_set: None,
            error: None,
        }
    }
}

/// A repetition that was planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Planned {
    /// One of a PFC case.
    Pfc {
        /// Its plan.
        plan: Box<RepetitionPlan>,
        /// Limits for its judgement.
        limits: Limits,
    },
    /// One of a MAD case.
    Mad {
        /// Its plan.
        plan: MadPlan,
    },
    /// One of an RC case.
    Rc {
        /// Its plan.
        plan: RcPlan,
    },
    /// One that could not be planned.
    Omitted {
        /// Its name, and why.
        omitted: Omitted,
    },
}

impl Planned {
    /// Its name, unique in its case.
    pub fn name(&self) -> &str {
        match self {
            Self::Pfc { plan, .. } => &plan.name,
            Self::Mad { plan } => &plan.name,
            Self::Rc { plan } => &plan.name,
            Self::Omitted { omitted } => &omitted.name,
        }
    }
}

/// A repetition that was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omitted {
    /// Name of the repetition.
    pub name: String,
    /// Reason.
    pub reason: String,
    /// True: it makes no sense here (no DSCP for the priority); false: it could not be done, so
    /// its checks are inconclusive.
    pub not_applicable: bool,
}

/// The lossless set of a DUT that the tester cannot configure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedSet {
    /// Its priorities, in ascending order.
    pub lossless: Vec<Priority>,
    /// Names of the plan's repetitions that need another set. They touch no verdict.
    pub not_done: Vec<String>,
}

/// Records of one repetition, by family of cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Repetition {
    /// Evidence of a PFC case.
    Pfc(Box<pfc::PfcEvidence>),
    /// Evidence of a MAD case.
    Mad(Box<mad::MadEvidence>),
    /// Evidence of an RC case.
    Rc(Box<rc::RcEvidence>),
}

impl Repetition {
    /// The fault of the tester or its surroundings that ended it early.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Mad(evidence) => evidence.error.as_deref(),
            Self::Pfc(_) | Self::Rc(_) => None,
        }
    }

    /// True if the user ended it.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Pfc(evidence) => evidence.interrupted,
            Self::Mad(evidence) => evidence.interrupted,
            Self::Rc(evidence) => evidence.interrupted,
        }
    }

    /// Number of the attempt at it, from 1.
    pub fn attempt(&self) -> u32 {
        match self {
            Self::Pfc(evidence) => evidence.attempt,
            Self::Mad(_) | Self::Rc(_) => 1,
        }
    }

    /// Its name, unique in its case.
    pub fn name(&self) -> &str {
        match self {
            Self::Pfc(evidence) => &evidence.plan.name,
            Self::Mad(evidence) => &evidence.plan.name,
            Self::Rc(evidence) => &evidence.plan.name,
        }
    }

    /// The plan that it was done by.
    pub fn planned(&self) -> Planned {
        match self {
            Self::Pfc(evidence) => Planned::Pfc {
                plan: Box::new(evidence.plan.clone()),
                limits: evidence.limits.clone(),
            },
            Self::Mad(evidence) => Planned::Mad {
                plan: evidence.plan.clone(),
            },
            Self::Rc(evidence) => Planned::Rc {
                plan: evidence.plan.clone(),
            },
        }
    }

    /// Records of a PFC case.
    pub fn pfc(&self) -> Option<&pfc::PfcEvidence> {
        if let Self::Pfc(evidence) = self {
            Some(evidence)
        } else {
            None
        }
    }
}
