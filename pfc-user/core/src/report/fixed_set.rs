//! The repetitions of a plan that were not done because the DUT's lossless set is fixed: listed
//! once, in the head of each report.

use pfc_ebpf::units::Priority;
use serde::Serialize;

use crate::cases::pfc::planning::join;
use crate::evidence::{Evidence, FixedSet};

/// The DUT's set, and the repetitions that need another.
#[derive(Serialize)]
pub struct NotDone<'a> {
    /// The DUT's lossless priorities.
    lossless: &'a [Priority],
    /// The repetitions by case.
    not_done: Vec<OfCase<'a>>,
}

/// Repetitions of one case.
#[derive(Serialize)]
struct OfCase<'a> {
    case: &'a str,
    repetitions: &'a [String],
}

/// Returns the repetitions that a run did not do; `None` where the DUT's set is not fixed.
pub fn of_run(evidence: &Evidence) -> Option<NotDone<'_>> {
    let cases = evidence.cases.iter();
    of(cases.map(|case| (case.case.as_str(), case.fixed_set.as_ref())))
}

/// Returns the repetitions not done of these cases, done or only planned; `None` where the DUT's
/// set is not fixed.
pub fn of<'a>(cases: impl Iterator<Item = (&'a str, Option<&'a FixedSet>)>) -> Option<NotDone<'a>> {
    let fixed: Vec<(&str, &FixedSet)> =
        cases.filter_map(|(case, set)| Some((case, set?))).collect();
    let (_, FixedSet { lossless, .. }) = fixed.first()?;
    let not_done = fixed.iter().filter(|(_, set)| !set.not_done.is_empty());
    Some(NotDone {
        lossless,
        not_done: not_done
            .map(|(case, set)| OfCase {
                case,
                repetitions: &set.not_done,
            })
            .collect(),
    })
}

impl NotDone<'_> {
    /// The whole in a sentence; `None` where nothing was left out.
    pub fn sentence(&self) -> Option<String> {
        let cases = self.not_done.iter();
        let cases = cases.map(|of| format!("{} [{}]", of.case, of.repetitions.join("; ")));
        let cases: Vec<String> = cases.collect();
        (!cases.is_empty()).then(|| format!("{}: {}", reason(self.lossless), cases.join(", ")))
    }
}

/// Reason for which repetitions with another set are not done.
pub fn reason(lossless: &[Priority]) -> String {
    format!("the DUT's lossless set is fixed ({})", join(lossless))
}
