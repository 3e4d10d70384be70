//! The plan file: which cases, with which repetitions, for how long. The parameters of a case are
//! its family's; here they get their place in the file.

use serde::Deserialize;
pub use validator_core::cases::PlannedCase;
use validator_core::cases::parameters::{
    CaseTable, DurationsTable, Misfit, PlanTables, QueuePairTable, RepetitionTable, StormTable,
};
use validator_core::cases::pfc::parameters;
pub use validator_core::cases::pfc::parameters::{
    IntervalError, PfcParameters, PlannedRepetition, Storm,
};
use validator_core::cases::{self, Known};
use validator_core::keys;

use super::ConfigError;
use super::document::Document;
use super::testbed::{PfcTestbed, Testbed};

/// Tables of a plan.
pub const PLAN: &[keys::Table] = &[
    keys::table! {
        /// A plan has a name and at least one `[[case]]`.
        "", "" {
            /// Its name in reports. Mandatory.
            name = "text", "";
            /// On an external DUT without `hooks.configure`, whose lossless set stands in the place
            /// of the plan's, a case has no more repetitions than are listed.
            short = "`true`, `false`", "`false`";
        }
    },
    DurationsTable::TABLE,
    TrafficTable::TABLE,
    StormTable::TABLE,
    CaseTable::TABLE,
    RepetitionTable::TABLE,
    QueuePairTable::TABLE,
];

/// Cases to run, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// The file's text, and the `--set` arguments.
    pub toml: String,
    /// Cases; at least one, each once.
    pub cases: Vec<PlannedCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    short: bool,
    #[serde(default)]
    durations: DurationsTable,
    #[serde(default)]
    traffic: TrafficTable,
    #[serde(default)]
    storm: StormTable,
    case: Vec<CaseTable>,
}

keys::table! {
    /// Test frames of the PFC cases.
    #[derive(Default, Deserialize)]
    struct TrafficTable: "traffic", "traffic." {
        /// Length in octets without FCS: 60 to 3400 for IPv4, 80 to 3400 for IPv6; 4 more for a
        /// tag.
        frame: Option<usize> = "number", "1024";
    }
}

/// The plan in `document`, checked against the testbed.
pub(super) fn read(document: &Document, testbed: &Testbed) -> Result<Plan, ConfigError> {
    let file: File = document.decode()?;
    if file.case.is_empty() {
        return Err(document.error("case", "expected at least one [[case]], found none"));
    }
    let of_plan = |misfit: Misfit| document.error(&misfit.key, misfit.problem);
    let untagged = || parameters::shortest_frame(true, false);
    let pfc = testbed.pfc.as_ref();
    let shortest = pfc.map_or_else(untagged, PfcTestbed::shortest_frame);
    let tables = PlanTables {
        durations: file.durations,
        storm: file.storm,
        short: file.short,
        frame: parameters::frame(file.traffic.frame, shortest).map_err(of_plan)?,
        line_rate: pfc.and_then(|pfc| pfc.ports.line_rate),
    };
    let mut cases: Vec<PlannedCase> = Vec::new();
    for (index, table) in file.case.into_iter().enumerate() {
        let at = format!("case[{index}]");
        let id = format!("{at}.id");
        let known = find(&table.id).map_err(|problem| document.error(&id, problem))?;
        if cases.iter().any(|case| case.case().id == table.id) {
            return Err(document.error(&id, format!("case `{}` is listed twice", table.id)));
        }
        let case = known.read(table, &tables).map_err(|misfit| {
            let key = match misfit.in_case {
                true => format!("{at}.{}", misfit.key),
                false => misfit.key,
            };
            document.error(&key, misfit.problem)
        })?;
        cases.push(case);
    }
    Ok(Plan {
        name: file.name,
        toml: document.record(),
        cases,
    })
}

/// The case of that id.
fn find(id: &str) -> Result<Known, String> {
    cases::find(id).ok_or_else(|| format!("unknown case `{id}`; {}", expected(id, &known())))
}

/// Ids of all cases.
pub(super) fn known() -> Vec<&'static str> {
    cases::all().iter().map(|case| case.id).collect()
}

/// The expectation in place of an unknown id: all ids, and the nearest one if one is near.
pub(super) fn expected(id: &str, known: &[&str]) -> String {
    let all = format!("expected one of {}", known.join(", "));
    match cases::nearest(id, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`? {all}"),
        None => all,
    }
}
