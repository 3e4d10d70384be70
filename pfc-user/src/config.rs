//! Testbed and plan files -> typed and checked; the only reader of files.

mod address;
pub mod arguments;
mod constraints;
mod document;
mod mistakes;
#[cfg(feature = "otg")]
pub mod otg;
mod plan;
mod testbed;

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use plan::{IntervalError, PLAN, PfcParameters, Plan, PlannedCase, PlannedRepetition, Storm};
pub use testbed::{
    Addresses, Destination, Dut, Facts, Hooks, MadTestbed, MadTransport, PfcTestbed, Port, Ports,
    Qos, RcDut, RcTestbed, Sender, Switched, TESTBED, Testbed, Tolerances, XdpMode,
};

use document::Document;

/// The plans that the tool brings along, by name.
pub const BUILT_IN_PLANS: [(&str, &str); 8] = [
    ("all", include_str!("../plans/all.toml")),
    ("mad", include_str!("../plans/mad.toml")),
    ("mad-full", include_str!("../plans/mad-full.toml")),
    ("mad-siblings", include_str!("../plans/mad-siblings.toml")),
    ("pfc", include_str!("../plans/pfc.toml")),
    ("pfc-further", include_str!("../plans/pfc-further.toml")),
    ("rc", include_str!("../plans/rc.toml")),
    ("smoke", include_str!("../plans/smoke.toml")),
];

/// The plan that is run when none is asked for.
pub const DEFAULT_PLAN: &str = "all";

/// Cases to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanChoice {
    /// A built-in plan by its name, or a plan file by its path.
    Plan(String),
    /// These cases of a plan.
    Cases {
        /// The plan, as above.
        plan: String,
        /// Ids of the cases.
        ids: Vec<String>,
    },
}

impl PlanChoice {
    /// The plan, of which perhaps only some cases are run.
    fn plan(&self) -> &str {
        match self {
            Self::Plan(plan) | Self::Cases { plan, .. } => plan,
        }
    }
}

/// A testbed and a plan that fit each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The ports and the DUT.
    pub testbed: Testbed,
    /// Cases to run, with their parameters.
    pub plan: Plan,
    /// The programs say what they do with each frame.
    pub trace: Option<TraceTo>,
    /// The folder of the results, where there is one.
    pub out: Option<PathBuf>,
}

impl Config {
    /// The PFC part of the testbed; `None` also where no case of the plan uses it.
    pub fn pfc(&self) -> Option<&PfcTestbed> {
        let used = self.plans(|case| matches!(case, PlannedCase::Pfc(..)));
        self.testbed.pfc.as_ref().filter(|_| used)
    }

    /// The MAD part, likewise.
    pub fn mad(&self) -> Option<&MadTestbed> {
        let used = self.plans(|case| matches!(case, PlannedCase::Mad(..)));
        self.testbed.mad.as_ref().filter(|_| used)
    }

    /// The RC part, likewise.
    pub fn rc(&self) -> Option<&RcTestbed> {
        let used = self.plans(|case| matches!(case, PlannedCase::Rc(..)));
        self.testbed.rc.as_ref().filter(|_| used)
    }

    /// True if the plan has a case of that family.
    fn plans(&self, family: fn(&PlannedCase) -> bool) -> bool {
        self.plan.cases.iter().any(family)
    }
}

/// Destination of the lines that programs write about frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceTo {
    /// Standard error.
    Terminal,
    /// A file that is not there yet.
    File(PathBuf),
}

/// An error in the configuration, with its place.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that cannot be read.
    #[error("{file}: cannot be read: {error}")]
    Unreadable {
        /// File as it was named.
        file: String,
        /// The system's answer.
        error: io::Error,
    },
    /// Something in a file, or in a `--set` argument that changes it.
    #[error("{place}: {problem}")]
    At {
        /// `file:line:column`, or the `--set` argument.
        place: String,
        /// Key, expected value and found value.
        problem: String,
        /// The key; empty for the whole file.
        key: String,
    },
    /// Several mistakes in a file, one a line.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<ConfigError>),
    /// A command line argument.
    #[error("{argument}: {problem}")]
    Argument {
        /// The argument as it was written.
        argument: String,
        /// Expected value and found value.
        problem: String,
    },
}

/// Reads testbed and plan, applies the `--set key=value` arguments in `sets`, and checks the whole.
pub fn load(testbed: &Path, choice: &PlanChoice, sets: &[String]) -> Result<Config, ConfigError> {
    let testbed_file = testbed.display().to_string();
    let testbed_text = read(&testbed_file)?;
    let (plan_file, plan_text) = find_plan(choice.plan())?;
    let documents = (
        Document::parse(&testbed_file, &testbed_text)?,
        Document::parse(&plan_file, &plan_text)?,
    );
    let of = |sets: &[&str]| {
        let (mut testbed, mut plan) = documents.clone();
        for argument in sets {
            apply(argument, &mut testbed, &mut plan)?;
        }
        let testbed = mistakes::all(testbed, testbed::read)?;
        let mut plan = mistakes::all(plan, |plan| plan::read(plan, &testbed))?;
        if let PlanChoice::Cases { ids, .. } = choice {
            plan.cases = select(&plan, ids)?;
        }
        Ok(Config {
            testbed,
            plan,
            trace: None,
            out: None,
        })
    };
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let config = of(&sets)?;
    for (index, argument) in sets.iter().enumerate() {
        let others = [&sets[..index], &sets[index + 1..]].concat();
        // Where the others alone make no sense, it changes something.
        if of(&others).is_ok_and(|without| is_same(&without, &config)) {
            return Err(ConfigError::Argument {
                argument: format!("--set {argument}"),
                problem: "it changes nothing: that is the value already, another key or argument \
                          takes its place, or no case of the plan uses it; leave it out"
                    .to_owned(),
            });
        }
    }
    Ok(config)
}

/// True if the cases of the plan do the same with both, however it is written.
fn is_same(one: &Config, other: &Config) -> bool {
    used(one) == used(other)
}

/// The same, with what no case of the plan uses left out or at a fixed value.
fn used(config: &Config) -> Config {
    let mut used = config.clone();
    (used.testbed.toml, used.plan.toml) = Default::default();
    used.testbed.pfc = config.pfc().cloned();
    used.testbed.mad = config.mad().cloned();
    used.testbed.rc = config.rc().cloned();
    let is_fixed = config.pfc().is_some_and(PfcTestbed::is_fixed);
    let mut has_throughput = false;
    for case in &mut used.plan.cases {
        if let PlannedCase::Pfc(case, parameters) = case {
            has_throughput |= case.has_check("throughput");
            *parameters = case.used(parameters, is_fixed);
        }
    }
    if let Some(pfc) = &mut used.testbed.pfc {
        if !has_throughput {
            pfc.limits.min_throughput = 0.0;
        }
        if !pfc.hooks.any() {
            pfc.hooks.timeout = 0;
        }
    }
    used
}

fn read(file: &str) -> Result<String, ConfigError> {
    fs::read_to_string(file).map_err(|error| ConfigError::Unreadable {
        file: file.to_owned(),
        error,
    })
}

/// A plan's name in errors, and its text.
fn find_plan(name: &str) -> Result<(String, Cow<'static, str>), ConfigError> {
    if let Some((_, text)) = BUILT_IN_PLANS.iter().find(|(known, _)| *known == name) {
        return Ok((format!("built-in plan {name}"), Cow::Borrowed(text)));
    }
    match read(name) {
        Ok(text) => Ok((name.to_owned(), Cow::Owned(text))),
        Err(ConfigError::Unreadable { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            Err(ConfigError::Argument {
                argument: format!("--plan {name}"),
                problem: format!(
                    "neither a file nor a built-in plan ({})",
                    BUILT_IN_PLANS.map(|(name, _)| name).join(", ")
                ),
            })
        }
        Err(other) => Err(other),
    }
}

fn apply<'a>(
    argument: &'a str,
    testbed: &mut Document<'a>,
    plan: &mut Document<'a>,
) -> Result<(), ConfigError> {
    let wrong = |problem: &str| ConfigError::Argument {
        argument: format!("--set {argument}"),
        problem: problem.to_owned(),
    };
    let (key, value) = argument
        .split_once('=')
        .ok_or_else(|| wrong("expected key=value, such as testbed.limits.max_response=2ms"))?;
    match key.split_once('.') {
        Some(("testbed", path)) => testbed.set(path, value, argument),
        Some(("plan", path)) => plan.set(path, value, argument),
        _ => Err(wrong(
            "the key must begin with `testbed.` or `plan.`, such as plan.durations.traffic=2s",
        )),
    }
}

/// The first built-in plan that has that case.
fn built_in_with(case: &str) -> Option<&'static str> {
    let line = format!("id = \"{case}\"");
    let mut plans = BUILT_IN_PLANS.into_iter();
    plans.find_map(|(name, text)| text.lines().any(|of_it| of_it == line).then_some(name))
}

fn select(plan: &Plan, ids: &[String]) -> Result<Vec<PlannedCase>, ConfigError> {
    let cases = &plan.cases;
    if let Some(unknown) = ids
        .iter()
        .find(|id| !cases.iter().any(|case| case.case().id == **id))
    {
        let problem = if let Some(other) = built_in_with(unknown) {
            format!("no case of the plan {}; `--plan {other}` has it", plan.name)
        } else if plan.name == DEFAULT_PLAN {
            format!("unknown case; {}", plan::expected(unknown, &plan::known()))
        } else {
            let of_plan: Vec<_> = cases.iter().map(|case| case.case().id).collect();
            let expected = plan::expected(unknown, &of_plan);
            format!("no case of the plan {}; {expected}", plan.name)
        };
        return Err(ConfigError::Argument {
            argument: format!("--case {unknown}"),
            problem,
        });
    }
    Ok(cases
        .iter()
        .filter(|case| ids.iter().any(|id| id == case.case().id))
        .cloned()
        .collect())
}
