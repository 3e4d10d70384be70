//! Cases, checks and verdicts: the vocabulary of what is decided.

use std::fmt;

use pfc_ebpf::units::{Nanos, Priority};
use serde::{Deserialize, Serialize, Serializer};

/// The outcome of a case, a check or an assertion. Where verdicts are combined the greatest counts:
/// the last one here.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The requirement makes no sense on this DUT.
    #[default]
    NotApplicable,
    /// A check that it depends on did not pass.
    Skipped,
    /// The requirement was seen to hold.
    Pass,
    /// The measurement does not allow a verdict; the reason says which figure is at fault.
    Inconclusive,
    /// The tester or its surroundings failed.
    Error,
    /// The requirement was seen to be violated.
    Fail,
}

impl Verdict {
    /// The word as it stands in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
            Self::Error => "error",
            Self::NotApplicable => "not-applicable",
            Self::Skipped => "skipped",
        }
    }

    /// The verdict on a whole from those on its parts; not applicable when there are none.
    pub fn of_parts(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().max().unwrap_or_default()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One row of a case's table: what is checked, and under which conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name, such as `paused`.
    pub id: &'static str,
    /// Steps or sections of the source document, by number or name; empty where the check is ours.
    pub steps: &'static [&'static str],
    /// True: not asked by the document, but expected by its users.
    #[serde(rename = "beyond")]
    pub extra: bool,
    /// Condition for a pass.
    pub passes_when: &'static str,
    /// Tolerance and its source; empty when exact.
    pub tolerance: &'static str,
    /// Preconditions; where one is not met the check is inconclusive.
    pub preconditions: &'static [&'static str],
    /// Checks of the same repetition without whose pass this one is skipped.
    pub depends_on: &'static [&'static str],
    /// Fault of the simulated DUT that makes it fail.
    pub fault: &'static str,
}

/// A step of the source document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Protect bits of the subcases that have it; empty: all.
    pub of: &'static [u8],
    /// Number, such as `init 1` or `12`; empty for a phase of ours.
    pub number: &'static str,
    /// Its words.
    pub what: &'static str,
}

impl Step {
    /// A step of every repetition.
    pub const fn new(number: &'static str, what: &'static str) -> Self {
        let of = &[];
        Self { of, number, what }
    }

    /// A step of the subcases with these protect bits.
    pub const fn of(of: &'static [u8], number: &'static str, what: &'static str) -> Self {
        Self { of, number, what }
    }

    /// A phase that the document does not number.
    pub const fn phase(what: &'static str) -> Self {
        Self::new("", what)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of: Vec<_> = self.of.iter().map(u8::to_string).collect();
        if !of.is_empty() {
            write!(f, "{}: ", of.join(", "))?;
        }
        if !self.number.is_empty() {
            write!(f, "{}  ", self.number)?;
        }
        f.write_str(self.what)
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The description of a case.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Case {
    /// Case id, such as `pfc.pause-single-lossless`.
    pub id: &'static str,
    /// Title in the source document.
    pub title: &'static str,
    /// The DUT's duty.
    pub requirement: &'static str,
    /// Source document.
    pub document: &'static str,
    /// Steps of the document, with what the tool does for each.
    pub steps: &'static [Step],
    /// Assertions that the document names; empty where it names none.
    pub assertions: &'static [DocumentAssertion],
    /// The table of its checks.
    pub checks: &'static [Check],
}

/// An assertion of the source document, by its id there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentAssertion {
    /// Id, such as `v1c14-024.1.1#10.04`.
    pub id: &'static str,
    /// Repetitions that it is about, by their names; empty: all.
    pub repetitions: &'static [&'static str],
    /// Checks that decide it; empty where no step of the document exercises it.
    pub checks: &'static [&'static str],
}

/// The outcome of an assertion of the source document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssertionResult {
    /// Its id.
    pub id: String,
    /// Pass: every check that decides it passed or is not applicable, and one passed. Else the
    /// worst of them, a skipped one counting as inconclusive. `None`: not exercised.
    pub verdict: Option<Verdict>,
    /// Checks that decide it.
    pub checks: Vec<String>,
    /// Their comparisons.
    pub comparisons: Vec<Assertion>,
}

impl AssertionResult {
    /// The verdict's word, or `not-exercised`.
    pub fn outcome(&self) -> &'static str {
        self.verdict.map_or("not-exercised", Verdict::word)
    }
}

/// The outcome of a step of the source document in one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// Repetition.
    pub repetition: String,
    /// Its number, such as `init 1` or `12`.
    pub step: String,
    /// Its words.
    pub what: String,
    /// The finding, with values; why it was not reached, where it was not.
    pub found: String,
    /// Pass: done, or held. Skipped: not reached.
    pub verdict: Verdict,
}

/// The judgement of one repetition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// A result for each check of the case's table, in its order.
    pub checks: Vec<CheckResult>,
    /// Each numbered step of the document, in its order; empty where the steps are the phases of
    /// the repetition.
    pub steps: Vec<StepResult>,
    /// Figures that are not judged.
    pub figures: Vec<Figure>,
}

/// Something in the evidence that a comparison is about, by its time there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The exchange whose request was sent then.
    Exchange(Nanos),
    /// The packet that came then.
    Packet(Nanos),
    /// The completion that was reported then.
    Completion(Nanos),
    /// The test frame of that priority that came then.
    Frame(Priority, Nanos),
}

/// The flow that a comparison is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Its id in the plan of the repetition.
    pub id: u16,
    /// Its name in `what`, such as `flow 3 (DSCP 11)`.
    pub name: String,
}

/// Relation that a found number must have to those that are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Equal to the only one.
    Exactly,
    /// Not above the first.
    AtMost,
    /// Not below the first.
    AtLeast,
    /// Above the first.
    Above,
    /// Neither below the first nor above the second.
    Between,
}

/// The numbers of both sides of a comparison, as they are shown there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sides {
    /// Numbers of the value that would pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Number>,
    /// Numbers of the value that was found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actual: Vec<Number>,
}

impl Sides {
    fn is_empty(&self) -> bool {
        self.expected.is_empty() && self.actual.is_empty()
    }
}

/// A single comparison of what was expected with what was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    /// The quantity that is compared.
    pub what: String,
    /// Its flow, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// The value that would pass.
    pub expected: String,
    /// The value that was found.
    pub actual: String,
    /// Relation that the first number found must have to those that are expected; `None` where
    /// words are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// The numbers in both values.
    #[serde(skip_deserializing, skip_serializing_if = "Sides::is_empty")]
    pub numbers: Sides,
    /// Outcome.
    pub verdict: Verdict,
    /// Its subject, where that is a packet: drawings mark it.
    #[serde(skip)]
    pub about: Vec<Subject>,
}

/// A check's outcome in one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Check id.
    pub check: String,
    /// Repetition.
    pub repetition: String,
    /// Outcome.
    pub verdict: Verdict,
    /// Why, in a sentence with the figure; empty on a plain pass.
    pub reason: String,
    /// The comparisons that it rests on.
    pub assertions: Vec<Assertion>,
    /// Where it is inconclusive or an error: the parts of the reason, whichever attempt gave them.
    #[serde(skip)]
    pub causes: Vec<Cause>,
}

/// Cause that left a check open.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// The finding, in a sentence with the figure.
    pub found: String,
    /// The remedy.
    pub remedy: &'static str,
}

/// The outcome of one of several attempts at a repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptResult {
    /// Repetition.
    pub repetition: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// A result for each check of the case's table, in its order.
    pub checks: Vec<CheckResult>,
}

/// The name of the figure that says what a check which passed would have found.
pub fn least_found(check: &str) -> String {
    format!("least that `{check}` would find")
}

/// A figure that is reported and not judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Repetition.
    pub repetition: String,
    /// Its name.
    pub name: String,
    /// Value with its unit.
    pub value: String,
    /// The numbers in the value, as they are shown there.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<Number>,
    /// The value with `#` for each number.
    #[serde(skip)]
    pub form: String,
}

/// A number in a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Number {
    /// Number of units.
    pub value: f64,
    /// Unit, such as `ms` or `frames`; empty where the text says what is counted.
    pub unit: &'static str,
}

/// A case's outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// Case id.
    pub case: String,
    /// The greatest of its checks.
    pub verdict: Verdict,
    /// Reason of the verdict if no check gives it: the error, or why the case is not applicable.
    pub reason: String,
    /// Checks, repetition by repetition, in the order of the table.
    pub checks: Vec<CheckResult>,
    /// Each attempt at a repetition that was measured more than once.
    pub attempts: Vec<AttemptResult>,
    /// Assertions of the document, in its order.
    pub assertions: Vec<AssertionResult>,
    /// Steps of the document, repetition by repetition.
    pub steps: Vec<StepResult>,
    /// Informational figures.
    pub figures: Vec<Figure>,
}

impl CaseResult {
    /// The verdict on `check` over all repetitions; `None` if it was judged in none.
    pub fn check(&self, check: &str) -> Option<Verdict> {
        let mut results = self
            .checks
            .iter()
            .filter(|result| result.check == check)
            .peekable();
        results.peek()?;
        Some(Verdict::of_parts(results.map(|result| result.verdict)))
    }
}

/// Process exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// At least one case passed and every other passed or was not applicable.
    Passed = 0,
    /// Some case failed.
    Failed = 1,
    /// Usage or configuration error.
    Usage = 2,
    /// None failed, but some inconclusive or error, or none applied.
    Undecided = 3,
    /// Interrupted; what was measured is still reported.
    Interrupted = 130,
}

impl Exit {
    /// The exit code for a run with these cases.
    pub fn of(results: &[CaseResult], interrupted: bool) -> Self {
        if interrupted {
            return Self::Interrupted;
        }
        match Verdict::of_parts(results.iter().map(|result| result.verdict)) {
            Verdict::Fail => Self::Failed,
            Verdict::Pass => Self::Passed,
            _ => Self::Undecided,
        }
    }
}

/// An event of a run, for display.
#[derive(Clone, Debug)]
pub enum Event {
    /// A case begins with that many repetitions.
    CaseBegins {
        /// Case.
        case: &'static Case,
        /// Repetitions.
        repetitions: usize,
    },
    /// A repetition begins.
    RepetitionBegins {
        /// Its name.
        name: String,
        /// Shortest duration, in seconds.
        seconds: f64,
    },
    /// A part of a repetition begins, such as `storm`.
    PhaseBegins {
        /// Its name.
        phase: &'static str,
    },
    /// A repetition is over.
    RepetitionEnds,
    /// A case has been judged.
    CaseEnds {
        /// Outcome.
        result: CaseResult,
    },
    /// Something that the user should know.
    Note(String),
}
