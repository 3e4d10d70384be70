//! Exit codes, and which part of the tool does what the command line says.

// `eprintln!` panics where standard error has no reader; `output::note` does not.
#![deny(clippy::print_stderr)]

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use serde_json::json;
use validator::cli::{
    CheckArgs, Cli, Command, DutCommand, ListArgs, ReportArgs, RunArgs, StoredArgs,
};
use validator::config::{self, Config, PlanChoice, TraceTo};
use validator::driver::bringup::journal::Journal;
use validator::driver::kernel::descriptors;
use validator::driver::kernel::interrupt::{self, Interrupt};
use validator::output::Format;
use validator::port_check::{self, Depth};
use validator::report::{self, Folder, progress::Progress};
use validator::{agent, dut, error_text, output, run, watch};
use validator_core::cases;
use validator_core::evidence::Evidence;
use validator_core::verdict::{CaseResult, Exit};

fn main() -> ExitCode {
    interrupt::outlive_file_limits();
    let outcome = match Cli::try_parse() {
        Ok(cli) => descriptors::ensure()
            .map_err(anyhow::Error::from)
            .and_then(|()| perform(cli.command)),
        Err(error) => explain(&error),
    };
    // As the process ends, the rest of standard output's buffer is written and its errors are lost.
    let outcome = outcome.and_then(|exit| match exit {
        // A failure to write it may have been reported already.
        Exit::Usage => Ok(exit),
        exit => Ok(output::stdout().flush().map(|()| exit)?),
    });
    let exit = outcome.unwrap_or_else(|error| {
        output::note(format_args!("validator: {}", error_text::in_words(&error)));
        Exit::Usage
    });
    output::finish();
    ExitCode::from(exit as u8)
}

/// Shows help or the version, or says what is wrong with the command line.
fn explain(error: &clap::Error) -> Result<Exit> {
    let text = |colour: bool| match colour {
        true => error.render().ansi().to_string(),
        false => error.render().to_string(),
    };
    if error.use_stderr() {
        output::Stderr.write_all(text(report::colour(&io::stderr())).as_bytes())?;
        return Ok(Exit::Usage);
    }
    output::stdout().write_all(text(report::colour(&io::stdout())).as_bytes())?;
    Ok(Exit::Passed)
}

/// Does what the command line says.
fn perform(command: Command) -> Result<Exit> {
    match command {
        Command::List(args) => list(&args),
        Command::Check(args) => check_ports(&args),
        Command::Run(args) => run_cases(&args),
        Command::Judge(args) => judge(&args),
        Command::Report(args) => report(&args),
        Command::Watch(args) => watch::session::main(&args),
        Command::Dut(device) => done(simulate(device)),
        Command::Agent(args) => done(agent::process::main(&args, output::stdout())),
        #[cfg(feature = "otg")]
        Command::Otg(args) => done(validator::otg::process::main(&args, output::stdout())),
    }
}

/// Runs a simulated device until its standard input ends.
fn simulate(device: DutCommand) -> Result<()> {
    let (input, output) = (io::stdin(), output::stdout());
    match device {
        DutCommand::Switch(args) => dut::switch::process::main(args, input, output),
        DutCommand::Sma(args) => dut::sma::process::main(args, input, output),
        DutCommand::Requester(args) => dut::requester::process::main(args, input, output),
    }
}

/// The end of a process that judges nothing.
fn done(outcome: Result<()>) -> Result<Exit> {
    outcome.map(|()| Exit::Passed)
}

fn list(args: &ListArgs) -> Result<Exit> {
    let text = match args.format {
        Format::Text => report::list::text(&cases::all()),
        Format::Json => report::list::json(&cases::all())?,
    };
    output::stdout().write_all(text.as_bytes())?;
    Ok(Exit::Passed)
}

fn check_ports(args: &CheckArgs) -> Result<Exit> {
    let Some(file) = &args.testbed else {
        return undo(args.format);
    };
    let choice = PlanChoice::Plan(args.plan.clone());
    let config = config::load(file, &choice, &args.set)?;
    let testbed = &config.testbed;
    let depth = if args.passive {
        Depth::Passive
    } else {
        Depth::Active
    };
    let mut found = port_check::check(&config, depth)?;
    if args.fix {
        let done = port_check::fix(testbed, &found)?;
        for line in &done {
            output::note(line);
        }
        if !done.is_empty() {
            found = port_check::check(&config, depth)?;
        }
    }
    found.unfit = run::unfit(&config, &found.ports);
    found
        .ways
        .extend(run::ways(&config, depth == Depth::Active));
    let left = Journal::open().left();
    left.iter().for_each(output::note);
    let (record, mut out) = (testbed.record(), output::stdout());
    match args.format {
        Format::Text => out.write_all(
            report::preflight::text(&record, &found, report::colour(&io::stdout())).as_bytes(),
        )?,
        Format::Json => report::preflight::json(&mut out, &record, &found, &left)?,
    }
    Ok(report::preflight::exit(&found))
}

/// Puts back what killed runs and `check --fix` left changed.
fn undo(format: Format) -> Result<Exit> {
    let (done, all) = Journal::open().undo()?;
    let mut out = output::stdout();
    match format {
        Format::Text if done.is_empty() => writeln!(
            out,
            "nothing that `validator check --fix` or a killed run has changed is left"
        )?,
        Format::Text => {
            let plain = |line: &String| report::plain::lines(line);
            done.iter()
                .try_for_each(|line| writeln!(out, "{}", plain(line)))?;
        }
        Format::Json => writeln!(out, "{}", json!({ "done": done, "complete": all }))?,
    }
    Ok(if all { Exit::Passed } else { Exit::Failed })
}

fn run_cases(args: &RunArgs) -> Result<Exit> {
    let mut config = config::load(&args.testbed, &args.choice(), &args.set)?;
    config.out = args.out.as_ref().map(std::path::absolute).transpose()?;
    if args.dry_run {
        return dry_run(&config, args.format);
    }
    let mut out = match &args.out {
        Some(dir) => Some(Folder::examine(dir, args.force)?),
        None => None,
    };
    let mut interrupt = Interrupt::install()?;
    let mut progress = Progress::on_stderr();
    let mut events = |event| progress.show(&event);
    if args.trace {
        config.trace = Some(match &mut out {
            // Lines are written from the beginning, when the run may yet be refused.
            Some(folder) => TraceTo::File(folder.stage(report::TRACE)?),
            None => TraceTo::Terminal,
        });
    }
    let prepared = run::prepare(&config, &mut events)?;
    if let Some(folder) = &mut out {
        folder.begin()?;
    }
    let evidence = run::run(prepared, &mut interrupt, &mut events)?;
    // Evidence is kept before it is judged: whatever becomes of the reports, it can be judged
    // again.
    let kept = match &mut out {
        Some(folder) => report::write_evidence(folder, &evidence),
        None => Ok(()),
    };
    let results = cases::judge(&evidence);
    // Results that could not be kept are no success, and what is shown says so.
    let exit = match kept {
        Ok(()) => Exit::of(&results, evidence.interrupted),
        Err(_) => Exit::Usage,
    };
    // The results are shown whatever became of the files.
    let rendered = match &mut out {
        Some(folder) => report::render(folder, &evidence, &results, exit),
        None => Ok(()),
    };
    // A reader that stalls is no reason to stay: from here on signals end the process.
    interrupt.release()?;
    let exit = if rendered.is_ok() { exit } else { Exit::Usage };
    let shown = show((args.format, args.verbose), &evidence, &results, exit);
    kept.and(rendered)?;
    let exit = shown?;
    match (&args.out, args.format) {
        (Some(dir), format) => name_page(dir, format)?,
        (None, Format::Text) => writeln!(output::stdout(), "{GONE}")?,
        (None, Format::Json) => output::note(GONE),
    }
    Ok(exit)
}

/// Note at the end of a run without a folder for its results.
const GONE: &str = "nothing was kept: without --out DIR the evidence of a run is gone";

/// Names the page in `dir`, where people read.
fn name_page(dir: &Path, format: Format) -> Result<()> {
    let page = dir.join(report::PAGE).display().to_string();
    if format == Format::Text {
        let page = report::plain::text(&page);
        writeln!(output::stdout(), "the page to look at: {page}")?;
    }
    Ok(())
}

fn dry_run(config: &Config, format: Format) -> Result<Exit> {
    let line_rate = run::planned_line_rate(config)?;
    let cases = run::plan(config, line_rate)?;
    let mut out = output::stdout();
    if format == Format::Json {
        run::dry_run::json(&mut out, config, line_rate, &cases)?;
        return Ok(Exit::Passed);
    }
    let mut text = run::dry_run::heading(&config.testbed.record(), &config.plan.name, line_rate);
    text += &run::dry_run::not_done(&cases);
    text += &run::dry_run::hooks(&run::hooks_around_run(config));
    for planned in cases {
        for plan in &planned.repetitions {
            text += &format!("\n{}", run::dry_run::steps(config, plan));
        }
        for omitted in &planned.omitted {
            text += &format!(
                "\n{} [{}]\n      not done: {}\n",
                planned.case.id, omitted.name, omitted.reason
            );
        }
    }
    out.write_all(report::plain::lines(&text).as_bytes())?;
    Ok(Exit::Passed)
}

/// Judges the evidence of an earlier run again.
fn judge(args: &StoredArgs) -> Result<Exit> {
    let (evidence, results, exit) = stored(&args.dir)?;
    show((args.format, args.verbose), &evidence, &results, exit)
}

/// Writes the reports of an earlier run again, or compares two.
fn report(args: &ReportArgs) -> Result<Exit> {
    let Some(dir) = &args.dir else {
        return compare(&args.compare, args.format);
    };
    let (evidence, results, exit) = stored(dir)?;
    match &args.html {
        Some(file) => report::write_page(file, &evidence, &results, exit)?,
        None => {
            let mut folder = Folder::of_evidence(dir)?;
            report::render(&mut folder, &evidence, &results, exit)?;
        }
    }
    show((args.format, args.verbose), &evidence, &results, exit)?;
    if args.html.is_none() {
        name_page(dir, args.format)?;
    }
    Ok(exit)
}

/// The evidence of an earlier run, judged again.
fn stored(dir: &Path) -> Result<(Evidence, Vec<CaseResult>, Exit)> {
    let evidence = report::read_evidence(dir)?;
    let results = cases::judge(&evidence);
    let exit = Exit::of(&results, evidence.interrupted);
    Ok((evidence, results, exit))
}

fn compare(dirs: &[PathBuf], format: Format) -> Result<Exit> {
    let [before, after] = dirs else {
        bail!("expected two directories to compare, found {}", dirs.len());
    };
    let (before, after) = (stored(before)?, stored(after)?);
    let comparison = report::compare::compare((&before.0, &before.1), (&after.0, &after.1))?;
    let mut out = output::stdout();
    match format {
        Format::Text => {
            let colour = report::colour(&io::stdout());
            out.write_all(report::compare::text(&comparison, colour).as_bytes())?;
        }
        Format::Json => report::compare::json(&mut out, &comparison)?,
    }
    Ok(comparison.exit())
}

/// Shows the result; `true` asks for the details of what passed too.
fn show(
    (format, verbose): (Format, bool),
    evidence: &Evidence,
    results: &[CaseResult],
    exit: Exit,
) -> Result<Exit> {
    let mut out = output::stdout();
    match format {
        Format::Text => {
            let colour = report::colour(&io::stdout());
            let text = if verbose {
                report::text::verbose(evidence, results, exit, colour)
            } else {
                report::text::summary(evidence, results, exit, colour)
            };
            out.write_all(text.as_bytes())?;
        }
        Format::Json => report::json::write(&mut out, evidence, results, exit)?,
    }
    Ok(exit)
}
