//! The user's hooks: what each is told, and that the DUT is put back.

mod program;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pfc_ebpf::units::Priority;
use serde::Serialize;
use serde_json::Value;
use validator_core::evidence::hooks::HookOutput;
use validator_core::evidence::preflight::Way;
use validator_core::plan::{PortName, RepetitionPlan};

use crate::config::PfcTestbed;
use crate::driver::bringup::journal::{Journal, RestoreNote, STATE_VARIABLE};
use crate::driver::kernel::process;
use crate::output;

/// Occasion that a hook is run for.
#[derive(Clone, Copy)]
struct Moment<'a> {
    /// `prepare`, `before`, `after` or `restore`.
    phase: &'static str,
    /// Case and repetition; empty where the hook is run for none.
    case: &'a str,
    repetition: &'a str,
    lossless: &'a [Priority],
}

impl<'a> Moment<'a> {
    fn of_run(phase: &'static str, testbed: &'a PfcTestbed) -> Self {
        Self {
            phase,
            case: "",
            repetition: "",
            lossless: &testbed.qos.lossless,
        }
    }

    fn of(phase: &'static str, case: &'a str, plan: &'a RepetitionPlan) -> Self {
        Self {
            phase,
            case,
            repetition: &plan.name,
            lossless: &plan.lossless,
        }
    }

    fn variables(
        &self,
        testbed: &PfcTestbed,
        out: Option<&Path>,
        state: &str,
    ) -> Vec<(String, String)> {
        let lossless: Vec<String> = self.lossless.iter().map(Priority::to_string).collect();
        let out = out.map_or(String::new(), |out| out.display().to_string());
        let [tx, rx] = [PortName::TX, PortName::RX].map(|port| testbed.dut.port_name(&port));
        let ports = testbed
            .ports
            .names()
            .map(|port| testbed.dut.port_name(port));
        let ports: Vec<&str> = ports.filter(|name| !name.is_empty()).collect();
        [
            ("VALIDATOR_PHASE", self.phase),
            ("VALIDATOR_CASE", self.case),
            ("VALIDATOR_REPETITION", self.repetition),
            ("VALIDATOR_LOSSLESS", &lossless.join(",")),
            ("VALIDATOR_TX_PORT", tx),
            ("VALIDATOR_RX_PORT", rx),
            ("VALIDATOR_PORTS", &ports.join(",")),
            ("VALIDATOR_OUT", &out),
            (STATE_VARIABLE, state),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }
}

/// A hook that a run will call.
#[derive(Serialize)]
pub struct Planned {
    /// Its name.
    pub hook: &'static str,
    /// Its command.
    pub command: String,
    /// Its variables.
    pub variables: Vec<(String, String)>,
}

/// Stand-in for the folder of notes where none is made.
const A_FOLDER: &str = "a folder that the run makes";

/// The command of a hook, where there is one.
fn command<'t>(testbed: &'t PfcTestbed, hook: &str) -> Option<&'t String> {
    let hooks = &testbed.hooks;
    match hook {
        "prepare" => hooks.prepare.as_ref(),
        "configure" => hooks.configure.as_ref(),
        "counters" => hooks.counters.as_ref(),
        _ => hooks.restore.as_ref(),
    }
}

/// The hooks around a whole run, as they will be called.
pub fn around_run(testbed: &PfcTestbed, out: Option<&Path>) -> Vec<Planned> {
    let moment = |hook| (hook, Moment::of_run(hook, testbed));
    planned(testbed, out, ["prepare", "restore"].map(moment))
}

/// The hooks around one repetition, as they will be called.
pub fn around(
    testbed: &PfcTestbed,
    out: Option<&Path>,
    case: &str,
    plan: &RepetitionPlan,
) -> Vec<Planned> {
    let hooks = [
        ("configure", "before"),
        ("counters", "before"),
        ("counters", "after"),
    ];
    let moment = |(hook, phase)| (hook, Moment::of(phase, case, plan));
    planned(testbed, out, hooks.map(moment))
}

fn planned<const N: usize>(
    testbed: &PfcTestbed,
    out: Option<&Path>,
    hooks: [(&'static str, Moment<'_>); N],
) -> Vec<Planned> {
    let state = testbed.hooks.restore.as_ref().map_or("", |_| A_FOLDER);
    let given = hooks.into_iter().filter_map(|(hook, moment)| {
        Some(Planned {
            hook,
            command: command(testbed, hook)?.clone(),
            variables: moment.variables(testbed, out, state),
        })
    });
    given.collect()
}

/// The programs of the hooks, of which none is run.
pub fn programs(testbed: &PfcTestbed) -> Vec<Way> {
    let timeout = Duration::from_nanos(testbed.hooks.timeout);
    let hooks = ["prepare", "configure", "counters", "restore"].into_iter();
    let given = hooks.filter_map(|hook| {
        let (key, command) = (format!("hooks.{hook}"), command(testbed, hook)?);
        let found = program::look(&key, command, timeout);
        Some(Way {
            what: "program",
            table: key,
            place: command.clone(),
            usable: found.as_ref().copied().unwrap_or_default(),
            error: found.err(),
        })
    });
    given.collect()
}

/// The hooks of a run. Dropping it puts the DUT back, unless that was done.
pub struct Hooks<'c> {
    testbed: &'c PfcTestbed,
    out: Option<PathBuf>,
    note: Option<RestoreNote>,
    /// State of the PFC watchdog, as `prepare` says or as declared, where it is known.
    pub watchdog: Option<String>,
    /// Output of `prepare`.
    outputs: Vec<HookOutput>,
}

impl<'c> Hooks<'c> {
    /// Notes the hook `restore`, and runs `prepare`.
    ///
    /// # Errors
    /// If `prepare` fails, or says something of the watchdog that cannot be.
    pub fn begin(testbed: &'c PfcTestbed, out: Option<&Path>, journal: &Journal) -> Result<Self> {
        let note = testbed.hooks.restore.as_ref().map(|restore| {
            let moment = Moment::of_run("restore", testbed);
            journal.note_restore(restore, testbed.hooks.timeout, |state| {
                moment.variables(testbed, out, state)
            })
        });
        let mut hooks = Self {
            testbed,
            out: out.map(Path::to_owned),
            note: note.transpose()?,
            watchdog: testbed.facts.watchdog.map(|state| state.word().into()),
            outputs: Vec::new(),
        };
        if let Some(output) = hooks.run("prepare", &Moment::of_run("prepare", testbed))? {
            if let Some(failure) = output.failure() {
                bail!("{failure}");
            }
            if let Some(state) = watchdog(&output.stdout)? {
                hooks.watchdog = Some(state);
            }
            hooks.outputs.push(output);
        }
        Ok(hooks)
    }

    /// Runs `configure`, where there is one.
    pub fn configure(&self, case: &str, plan: &RepetitionPlan) -> Result<Option<HookOutput>> {
        self.run("configure", &Moment::of("before", case, plan))
    }

    /// Runs `counters`, where there is one; `phase` is `before` or `after`.
    pub fn counters(
        &self,
        phase: &'static str,
        case: &str,
        plan: &RepetitionPlan,
    ) -> Result<Option<HookOutput>> {
        self.run("counters", &Moment::of(phase, case, plan))
    }

    fn run(&self, hook: &str, moment: &Moment) -> Result<Option<HookOutput>> {
        let Some(command) = command(self.testbed, hook) else {
            return Ok(None);
        };
        let state = self.note.as_ref().map_or(String::new(), RestoreNote::state);
        let variables = moment.variables(self.testbed, self.out.as_deref(), &state);
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let timeout = Duration::from_nanos(self.testbed.hooks.timeout);
        let output = process::run_hook(hook, moment.phase, command, &variables, timeout);
        output
            .map(Some)
            .with_context(|| format!("the hook `{hook}` could not be run"))
    }

    /// Runs `restore`, where there is one. Returns what it said, and in words that the DUT is not
    /// put back.
    fn restore(&mut self) -> (Option<HookOutput>, Option<String>) {
        let Some(note) = self.note.take() else {
            return (None, None);
        };
        let (output, failure) = match note.restore() {
            Ok(output) => {
                let failure = output.failure();
                (Some(output), failure)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        let note = failure.map(|failure| {
            format!("the DUT is NOT put back: {failure}; the next run tries it again")
        });
        (output, note)
    }

    /// Puts the DUT back, or leaves it to the next run. Returns what the hooks around the run said,
    /// and in words that the DUT is not put back.
    pub fn finish(&mut self, leave: bool) -> (Vec<HookOutput>, Option<String>) {
        let mut all = std::mem::take(&mut self.outputs);
        if leave {
            let note = "the DUT is NOT put back, as the user asked twice to stop: the next run \
                        does it, or `validator check --undo`";
            return (all, self.note.take().map(|_| note.to_owned()));
        }
        let (output, note) = self.restore();
        all.extend(output);
        (all, note)
    }
}

impl Drop for Hooks<'_> {
    fn drop(&mut self) {
        if let (_, Some(note)) = self.restore() {
            output::note(note);
        }
    }
}

/// The state of the watchdog in JSON that `prepare` printed; `None` where it says nothing of it.
fn watchdog(printed: &str) -> Result<Option<String>> {
    let json: Value = serde_json::from_str(printed).unwrap_or_default();
    match json.get("watchdog") {
        None => Ok(None),
        Some(Value::String(state)) if ["off", "on"].contains(&state.as_str()) => {
            Ok(Some(state.clone()))
        }
        Some(other) => bail!(
            "the hook `prepare` printed \"watchdog\": {other}; expected \"off\" or \"on\", or nothing"
        ),
    }
}

/// A repetition for which the hook `configure` failed: it is left out, and the others go on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotConfigured(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_read_from_json_alone() {
        let read = |text: &str| watchdog(text).map_err(|error| error.to_string());
        assert_eq!(
            read("{\"watchdog\": \"off\", \"x\": 1}"),
            Ok(Some("off".into()))
        );
        assert_eq!(read("{\"watchdog\": \"on\"}"), Ok(Some("on".into())));
        for nothing in ["", "the watchdog is off", "{}", "[1]", "\"watchdog\""] {
            assert_eq!(read(nothing), Ok(None), "{nothing}");
        }
        for wrong in ["true", "\"maybe\"", "0", "null"] {
            let error = read(&format!("{{\"watchdog\": {wrong}}}")).unwrap_err();
            assert!(error.contains("expected \"off\" or \"on\""), "{error}");
        }
    }
}
