//! The result for CI systems: `junit.xml`, with a test suite per case and a test case per check and
//! repetition. What did not pass stands first.

use std::io::{self, Write};
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::findings::{self, sentence};
use super::{fixed_set, flows, identity, plain};
use crate::evidence::{Evidence, Planned};
use crate::verdict::{CaseResult, CheckResult, Verdict};

/// Writes the report.
pub fn write(out: impl Write, evidence: &Evidence, results: &[CaseResult]) -> io::Result<()> {
    let mut report = Report::new("validator");
    report.set_time(duration(evidence.seconds));
    if let Some(started) = identity::time(evidence.started) {
        report.set_timestamp(started);
    }
    let results = plain::results(results);
    let mut ordered: Vec<&CaseResult> = results.iter().collect();
    ordered.sort_by_key(|result| findings::rank(result.verdict));
    report.add_test_suites(ordered.into_iter().map(|result| suite(evidence, result)));
    report.serialize(out).map_err(io::Error::other)
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn suite(evidence: &Evidence, result: &CaseResult) -> TestSuite {
    let mut suite = TestSuite::new(&result.case);
    for (name, value) in identity::of(evidence) {
        suite.add_property(Property::new(name, plain::text(&value)));
    }
    let host = plain::text(&evidence.host.name);
    if !host.is_empty() {
        suite.extra.insert("hostname".into(), host.into());
    }
    let times = &evidence.invocation.cases;
    if let Some(time) = times.iter().find(|time| time.case == result.case) {
        suite.set_time(duration(time.seconds));
        if let Some(started) = identity::time(time.started) {
            suite.set_timestamp(started);
        }
    }
    let of_case = evidence.cases.iter().find(|case| case.case == result.case);
    let fixed = of_case.and_then(|case| case.fixed_set.as_ref());
    if let Some(set) = fixed.filter(|set| !set.not_done.is_empty()) {
        let reason = fixed_set::reason(&set.lossless);
        let not_done = format!("{reason}: {}", set.not_done.join("; "));
        suite.add_property(Property::new("not-done", plain::text(&not_done)));
    }
    let planned = of_case.iter().flat_map(|case| &case.planned);
    for property in planned.flat_map(traffic) {
        suite.add_property(property);
    }
    // A reason that concerns the whole case would be lost among the checks.
    if !result.reason.is_empty() || result.checks.is_empty() {
        let (verdict, reason) = (result.verdict, &result.reason);
        suite.add_test_case(test_case(&result.case, "case", verdict, reason, ""));
    }
    let mut ordered: Vec<&CheckResult> = result.checks.iter().collect();
    ordered.sort_by_key(|check| findings::rank(check.verdict));
    suite.add_test_cases(ordered.into_iter().map(|check| {
        let name = format!("{} [{}]", check.check, check.repetition);
        let (found, description) = (findings::found(check), description(check));
        test_case(&result.case, &name, check.verdict, &found, &description)
    }));
    suite
}

/// Test frames of a repetition as planned, a property for the flows of each role.
fn traffic(planned: &Planned) -> Vec<Property> {
    let Planned::Pfc { plan, limits } = planned else {
        return Vec::new();
    };
    let roles = flows::by_role(plan, limits.line_rate).into_iter();
    let property = |(role, flows): (&str, String)| {
        let name = format!("{role} [{}]", plan.name);
        Property::new(plain::text(&name), plain::text(&flows))
    };
    roles.map(property).collect()
}

fn test_case(
    class: &str,
    name: &str,
    verdict: Verdict,
    reason: &str,
    description: &str,
) -> TestCase {
    let mut status = match verdict {
        Verdict::Pass => TestCaseStatus::success(),
        Verdict::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Inconclusive | Verdict::Error => {
            TestCaseStatus::non_success(NonSuccessKind::Error)
        }
        Verdict::Skipped | Verdict::NotApplicable => TestCaseStatus::skipped(),
    };
    let reason = match reason {
        "" => verdict.word(),
        reason => reason,
    };
    status.set_type(verdict.word()).set_message(reason);
    if !description.is_empty() {
        status.set_description(description);
    }
    let mut case = TestCase::new(name, status);
    case.set_classname(class);
    case
}

/// The comparisons, one per line.
fn description(check: &CheckResult) -> String {
    check
        .assertions
        .iter()
        .map(|assertion| format!("{}  {}\n", assertion.verdict, sentence(assertion)))
        .collect()
}
