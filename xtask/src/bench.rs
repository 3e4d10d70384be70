//! `cargo xtask bench`: runs every benchmark and collects the figures in one file and one table.
//! BENCHMARKS.md explains them.
//!
//! A benchmark is a `[[bench]]` target of any package of the workspace. Its output is free; it
//! appends figures for the table to the file named by `VALIDATOR_BENCH_JSON`, one JSON object per
//! line (see [`figure`]). Criterion's figures are read from criterion's own files. `--quick` and
//! `--long` set `VALIDATOR_BENCH_QUICK` and `VALIDATOR_BENCH_LONG`.

mod against;
mod criterion;
mod demo;
mod figure;
mod machine;
mod table;
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use self::figure::{Figure, Line, Skipped};
use self::machine::Machine;
use self::targets::Target;
use crate::build_ebpf;
use crate::setup::{self, Group};
use crate::step::{self, step};

/// Schema version of the file.
const SCHEMA: u32 = 1;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Bench {
    #[command(subcommand)]
    what: Option<What>,
    /// Run only this benchmark; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Few and short repeats: checks that everything works, and gives rough figures
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// Include the run of 10 minutes
    #[arg(long)]
    long: bool,
    /// File for all figures (default target/bench/bench.json)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Compare with the figures in the file of an earlier run
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    #[command(flatten)]
    setup: setup::Install,
}

#[derive(clap::Subcommand)]
enum What {
    /// Run the demo again and again, and count how it ends (as root)
    Demo(demo::Demos),
}

/// Results of one run of the benchmarks.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Results {
    schema: u32,
    machine: Machine,
    /// `quick`, `full` or `long`.
    extent: String,
    figures: Vec<Figure>,
    skipped: Vec<Skipped>,
    /// Benchmarks that failed.
    failed: Vec<String>,
}

/// Builds the workspace with the XDP programs and runs the benchmarks one after the other.
pub fn run(root: &Path, options: &Bench) -> Result<ExitCode> {
    if let Some(What::Demo(demos)) = &options.what {
        return demo::run(root, demos);
    }
    let earlier = options.against.as_deref().map(read).transpose()?;
    let mut machine = Machine::describe(root);
    setup::run(&[Group::Build], &options.setup)?;
    setup::offer(Group::Bench, &options.setup);
    build_ebpf::object(root)?;
    let targets = targets::select(targets::find(root)?, &options.only)?;
    step("benchmarks are built", || {
        step::run(targets::build(&targets).current_dir(root))
    })?;

    machine.measure_load();
    machine
        .warnings()
        .iter()
        .for_each(|warning| println!("warning: {warning}"));
    let extent = if options.quick {
        "quick"
    } else if options.long {
        "long"
    } else {
        "full"
    };
    let mut results = Results {
        schema: SCHEMA,
        machine,
        extent: extent.to_owned(),
        figures: Vec::new(),
        skipped: Vec::new(),
        failed: Vec::new(),
    };
    for target in &targets {
        if let Err(error) = step(&format!("benchmark {target}"), || {
            run_one(root, target, extent, &mut results)
        }) {
            println!("    {error:#}");
            results.failed.push(target.to_string());
        }
    }

    let out = options
        .out
        .clone()
        .unwrap_or_else(|| root.join("target/bench/bench.json"));
    write(&out, &results)?;
    print!("{}", table::of(&results));
    if let (Some(earlier), Some(file)) = (&earlier, &options.against) {
        print!(
            "{}",
            against::table(&file.display().to_string(), earlier, &results)
        );
    }
    println!("figures: {}", out.display());
    Ok(step::exit_code(results.failed.is_empty()))
}

/// Runs a benchmark and takes its figures, even those printed before an error.
fn run_one(root: &Path, target: &Target, extent: &str, results: &mut Results) -> Result<()> {
    let folder = root
        .join("target/bench")
        .join(&target.package)
        .join(&target.name);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let (lines, criterion) = (folder.join("figures.jsonl"), folder.join("criterion"));
    let mut cargo = step::cargo();
    cargo
        .args([
            "bench",
            "--package",
            &target.package,
            "--bench",
            &target.name,
        ])
        .args(target.features())
        .current_dir(root);
    cargo
        .env("VALIDATOR_BENCH_JSON", &lines)
        .env("CRITERION_HOME", &criterion);
    for (word, variable) in [
        ("quick", "VALIDATOR_BENCH_QUICK"),
        ("long", "VALIDATOR_BENCH_LONG"),
    ] {
        cargo.env_remove(variable);
        if word == extent {
            cargo.env(variable, "1");
        }
    }
    let done = step::run(&mut cargo);
    for line in figure::read(&lines)? {
        match line {
            Line::Figure(figure) => results.figures.push(figure),
            Line::Skipped(skipped) => results.skipped.push(skipped),
        }
    }
    results
        .figures
        .extend(criterion::figures(&target.name, &criterion)?);
    done
}

fn read(file: &Path) -> Result<Results> {
    let what = || {
        format!(
            "{}: expected figures that `cargo xtask bench` wrote",
            file.display()
        )
    };
    let text = fs::read_to_string(file).with_context(what)?;
    let results: Results = serde_json::from_str(&text).with_context(what)?;
    if results.schema != SCHEMA {
        bail!(
            "{}: layout {}, this version reads {SCHEMA}",
            file.display(),
            results.schema
        );
    }
    Ok(results)
}

fn write(file: &Path, results: &Results) -> Result<()> {
    let what = || format!("cannot write {}", file.display());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(what)?;
    }
    fs::write(file, serde_json::to_string_pretty(results)? + "\n").with_context(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn results(figures: Vec<Figure>) -> Results {
        Results {
            schema: SCHEMA,
            machine: Machine::default(),
            extent: "full".into(),
            figures,
            skipped: Vec::new(),
            failed: Vec::new(),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/b.json");
        let mut written = results(vec![figure::tests::figure("storm", "gap", 3.0, Some(1.5))]);
        written.skipped.push(Skipped {
            bench: "wire".into(),
            name: "trafgen".into(),
            skipped: "not installed".into(),
        });
        written.failed.push("pfc-user wire".into());
        write(&file, &written).unwrap();
        assert_eq!(read(&file).unwrap(), written);
    }

    #[test]
    fn another_layout_is_refused_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("old.json");
        write(
            &file,
            &Results {
                schema: 7,
                ..results(Vec::new())
            },
        )
        .unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("layout 7"));
        fs::write(&file, "{}").unwrap();
        assert!(
            read(&file)
                .unwrap_err()
                .to_string()
                .contains("expected figures")
        );
    }
}
