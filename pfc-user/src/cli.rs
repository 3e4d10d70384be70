//! Arguments; no I/O.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::agent::args::AgentArgs;
use crate::config::{BUILT_IN_PLANS, DEFAULT_PLAN, PlanChoice};
use crate::dut::requester::args::RequesterArgs;
use crate::dut::sma::args::SmaArgs;
use crate::dut::switch::args::SwitchArgs;
use crate::output::Format;
use crate::watch::args::WatchArgs;

/// An open conformance tester for lossless networks (PFC and PAUSE).
#[derive(Debug, Parser)]
#[command(name = "validator", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Start with (as root, on network namespaces of its own):
  validator run --testbed configs/testbeds/sim.toml --plan smoke

Exit codes:
    0  at least one case passed, and every other passed or was not applicable
    1  some case failed
    2  usage or configuration error
    3  none failed, but some were inconclusive or an error, or none applied
  130  interrupted; what was measured is reported";

const CHECK_EXIT_CODES: &str = "\
Only --fix changes anything. The self-test attaches a program to both ports for a moment and sends
eight PFC frames with time 0 each way, which pause nothing.

Exit codes:
    0  no problem
    1  a problem that makes verdicts impossible
    2  usage or configuration error
    3  no problem, but something that cannot be told";

const REPORT_EXIT_CODES: &str = "\
The exit codes are those of `validator run`; with --compare:
    0  the verdict on no check is worse
    1  a regression: the verdict on some check is worse
    2  usage error, or runs without a check of the same repetition";

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show every case: id, requirement, source document, checks.
    List(ListArgs),
    /// Check the ports of a testbed, and say what to type to mend what is wrong.
    #[command(after_help = CHECK_EXIT_CODES)]
    Check(CheckArgs),
    /// Run cases on a testbed and judge them.
    Run(RunArgs),
    /// Judge the evidence of an earlier run again.
    Judge(StoredArgs),
    /// Write the reports of an earlier run again, from its evidence; or compare two runs.
    #[command(after_help = REPORT_EXIT_CODES)]
    Report(ReportArgs),
    /// Count live traffic by DSCP, priority, PFC and RoCEv2, and judge loss between two ports.
    Watch(Box<WatchArgs>),
    /// Run a simulated device under test, on existing interfaces or on sockets.
    #[command(subcommand)]
    Dut(DutCommand),
    /// Serve the tester of the RC cases on the DUT's host, with real queue pairs by verbs.
    Agent(AgentArgs),
    /// Serve the Open Traffic Generator API (snappi, otgen) on ports of this machine.
    #[cfg(feature = "otg")]
    Otg(crate::otg::args::OtgArgs),
}

/// Arguments of `validator list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `validator check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Testbed file: the ports and the DUT.
    #[arg(long, value_name = "FILE", required_unless_present = "undo")]
    pub testbed: Option<PathBuf>,
    /// Plan whose cases the ports are to serve: a built-in plan or a plan file.
    #[arg(long, value_name = "FILE|NAME", default_value = DEFAULT_PLAN)]
    pub plan: String,
    /// Change a value of the testbed, such as testbed.ports.xdp=skb.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Attach no program and send no frame: without the self-test.
    #[arg(long)]
    pub passive: bool,
    /// Set the offloads that are a problem, and keep them so until `--undo`.
    #[arg(long, conflicts_with = "passive")]
    pub fix: bool,
    /// Put back what `--fix` has set on this machine.
    #[arg(long, conflicts_with_all = ["testbed", "plan", "set", "passive", "fix"])]
    pub undo: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `validator run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Testbed file: the ports and the DUT; configs/testbeds has examples.
    #[arg(long, value_name = "FILE")]
    pub testbed: PathBuf,
    #[arg(long, value_name = "FILE|NAME", default_value = DEFAULT_PLAN, help = plan_help())]
    plan: String,
    /// Run only these cases of the plan; `validator list` shows the ids.
    #[arg(long, value_name = "ID", num_args = 1..)]
    case: Vec<String>,
    /// Directory for report.html, report.json, junit.xml, evidence.json and captures of decisive
    /// frames: a new or empty one, or one of an earlier run, whose results are replaced.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write into --out also where it has other files.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Change a value, such as testbed.limits.max_response=2ms or plan.durations.traffic=2s.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Say what the programs do with frames, at most 100 lines a second for each CPU: in trace.log
    /// of --out, else on standard error. Not for measurements: it slows the programs down.
    #[arg(long)]
    pub trace: bool,
    /// Print the steps and send nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Show the checks and figures of every case, also of those that passed.
    #[arg(long, short)]
    pub verbose: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `validator judge`.
#[derive(Debug, Args)]
pub struct StoredArgs {
    /// The directory that was given to `validator run --out`.
    pub dir: PathBuf,
    /// Show the checks and figures of every case, also of those that passed.
    #[arg(long, short)]
    pub verbose: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `validator report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The directory that was given to `validator run --out`.
    #[arg(required_unless_present = "compare")]
    pub dir: Option<PathBuf>,
    /// Write the page to look at into FILE, and nothing into the directory.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Say what changed from the run in directory A to that in B: verdicts and figures.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["dir", "html"])]
    pub compare: Vec<PathBuf>,
    /// Show the checks and figures of every case, also of those that passed.
    #[arg(long, short, conflicts_with = "compare")]
    pub verbose: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Simulated devices.
#[derive(Debug, Subcommand)]
pub enum DutCommand {
    /// A lossless switch between two interfaces.
    Switch(SwitchArgs),
    /// A subnet management agent behind ibsim's sockets.
    Sma(SmaArgs),
    /// An RC requester behind the agent's protocol.
    Requester(RequesterArgs),
}

fn plan_help() -> String {
    let names = BUILT_IN_PLANS.map(|(name, _)| name).join(", ");
    format!("Cases and their parameters: a built-in plan ({names}) or a plan file")
}

impl RunArgs {
    /// The chosen plan or cases.
    pub fn choice(&self) -> PlanChoice {
        if self.case.is_empty() {
            PlanChoice::Plan(self.plan.clone())
        } else {
            PlanChoice::Cases {
                plan: self.plan.clone(),
                ids: self.case.clone(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    fn run(line: &str) -> RunArgs {
        match parse(line).unwrap().command {
            Command::Run(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_names_every_built_in_plan() {
        let command = Cli::command();
        let run = command.find_subcommand("run").unwrap();
        let plan = run
            .get_arguments()
            .find(|argument| argument.get_id() == "plan");
        let help = plan.unwrap().get_help().unwrap().to_string();
        for (name, _) in BUILT_IN_PLANS {
            assert!(help.contains(name), "{name} is not in: {help}");
        }
    }

    #[test]
    fn without_a_plan_everything_is_run() {
        let args = run("validator run --testbed t.toml");
        assert_eq!(
            (args.choice(), args.format, args.dry_run),
            (PlanChoice::Plan("all".into()), Format::Text, false)
        );
    }

    #[test]
    fn cases_and_settings_may_be_repeated() {
        let args = run(
            "validator run --testbed t.toml --plan smoke --case a b --case c --set x=1 --set y=2 --out o \
             --dry-run --format json",
        );
        assert_eq!(
            args.choice(),
            PlanChoice::Cases {
                plan: "smoke".into(),
                ids: ["a", "b", "c"].map(str::to_owned).to_vec()
            }
        );
        assert_eq!(
            (args.set, args.out, args.dry_run, args.format),
            (
                vec!["x=1".into(), "y=2".into()],
                Some("o".into()),
                true,
                Format::Json
            )
        );
    }

    #[test]
    fn misuse_ends_with_exit_code_2() {
        for (line, kind) in [
            ("validator run", ErrorKind::MissingRequiredArgument),
            (
                "validator run --testbed t --speed 3",
                ErrorKind::UnknownArgument,
            ),
            ("validator check", ErrorKind::MissingRequiredArgument),
            (
                "validator check --testbed t --undo",
                ErrorKind::ArgumentConflict,
            ),
            (
                "validator check --testbed t --fix --passive",
                ErrorKind::ArgumentConflict,
            ),
            ("validator list --format xml", ErrorKind::InvalidValue),
            ("validator judge", ErrorKind::MissingRequiredArgument),
            ("validator report", ErrorKind::MissingRequiredArgument),
            (
                "validator report --compare a",
                ErrorKind::WrongNumberOfValues,
            ),
            (
                "validator report --compare a b c",
                ErrorKind::ArgumentConflict,
            ),
            (
                "validator report --compare a b --html f",
                ErrorKind::ArgumentConflict,
            ),
            ("validator frobnicate", ErrorKind::InvalidSubcommand),
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!((error.kind(), error.exit_code()), (kind, 2), "{line}");
        }
    }
}
