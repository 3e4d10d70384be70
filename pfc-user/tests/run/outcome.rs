//! Outcome of a run of the program.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

/// Exit code and output.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn of(output: Output) -> Self {
        assert_ne!(output.status.signal(), Some(libc::SIGSEGV));
        let text = |octets| String::from_utf8(octets).unwrap();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Asserts that the program refused to begin, with this message and without a result.
    pub fn assert_refused(&self, message: &str) {
        assert_eq!(
            (self.code, self.stdout.as_str(), self.stderr.trim_end()),
            (Some(2), "", format!("validator: {message}").as_str())
        );
    }

    /// Asserts of a run with `--format json` that it measured to its end, whatever it found: where
    /// an external DUT is a process of this machine, its stalls beside other tests count as its own.
    pub fn assert_measured(&self) {
        assert!(matches!(self.code, Some(0 | 1 | 3)), "{}", self.stderr);
        let report = self.report();
        let errors = report.checks("error");
        assert_eq!(errors, set(&[]), "{}", report.reasons("error"));
        assert!(!report.outcomes().is_empty());
    }

    /// Asserts of a run with `--format json` that nothing fails, and that it is undecided only
    /// where one of its checks is, as stalls of this machine may leave one.
    pub fn assert_none_fails(&self) -> Report {
        let report = self.report();
        for verdict in ["fail", "error"] {
            assert_eq!(
                report.checks(verdict),
                set(&[]),
                "{}",
                report.reasons(verdict)
            );
        }
        let is_decided = report.checks("inconclusive").is_empty();
        let code = if is_decided { 0 } else { 3 };
        assert_eq!(
            self.code,
            Some(code),
            "{}{}",
            report.reasons("inconclusive"),
            self.stderr
        );
        report
    }

    /// Parses the result of `--format json`.
    pub fn report(&self) -> Report {
        Report(
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}")),
        )
    }
}

/// A `report.json`.
pub struct Report(pub Value);

impl Report {
    pub fn read(out: &Path) -> Self {
        Self(
            serde_json::from_str(&std::fs::read_to_string(out.join("report.json")).unwrap())
                .unwrap(),
        )
    }

    pub fn case(&self, id: &str) -> &Value {
        let mut cases = self.0["cases"].as_array().unwrap().iter();
        cases
            .find(|case| case["case"] == format!("pfc.{id}"))
            .unwrap_or_else(|| panic!("no case {id} in {}", self.0))
    }

    /// All checks with that verdict in any repetition, such as `single paused`: the case's word,
    /// and the check.
    pub fn checks(&self, verdict: &str) -> BTreeSet<String> {
        let wanted = |(_, _, found): &(String, String, String)| found == verdict;
        let name = |(case, check, _): (String, String, String)| {
            format!(
                "{} {}",
                word_of(case.trim_start_matches("pfc.")),
                check.split(' ').next().unwrap()
            )
        };
        self.outcomes()
            .into_iter()
            .filter(wanted)
            .map(name)
            .collect()
    }

    /// Case, `check [repetition]` and verdict of each check.
    pub fn outcomes(&self) -> BTreeSet<(String, String, String)> {
        let list = |value: &Value| value.as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut found = BTreeSet::new();
        for case in list(&self.0["cases"]) {
            for check in list(&case["checks"]) {
                for outcome in list(&check["repetitions"]) {
                    let name = format!(
                        "{} [{}]",
                        text(&check["check"]),
                        text(&outcome["repetition"])
                    );
                    found.insert((text(&case["case"]), name, text(&outcome["verdict"])));
                }
            }
        }
        found
    }

    /// Everything with that verdict and its reason, for messages.
    pub fn reasons(&self, verdict: &str) -> String {
        let mut text = String::new();
        for case in self.0["cases"].as_array().unwrap() {
            for check in case["checks"].as_array().unwrap() {
                for outcome in check["repetitions"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|outcome| outcome["verdict"] == verdict)
                {
                    text += &format!(
                        "{} {} {}: {}\n",
                        case["case"], check["check"], outcome["repetition"], outcome["reason"]
                    );
                }
            }
        }
        text
    }
}

/// Converts `expected` to a set.
pub fn set(expected: &[&str]) -> BTreeSet<String> {
    expected.iter().map(|text| text.to_string()).collect()
}

/// The word for a case: `single` for `pause-single-lossless`.
pub fn word_of(case: &str) -> &str {
    case.trim_start_matches("pause-")
        .trim_start_matches("no-")
        .split('-')
        .next()
        .unwrap()
}
