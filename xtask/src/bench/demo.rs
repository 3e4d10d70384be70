//! `cargo xtask bench demo`: how often the demo decides, on the idle machine and beside a load.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::machine::CpuTime;
use crate::demo::{self, table};
use crate::{setup, step};

/// Folder of the results, one in it for each run, from the root of the repository.
const OUT: &str = "target/bench/demo";

/// Share of the runs on an idle machine that have to end with exit code 0.
const DECIDED: f64 = 0.95;

#[derive(clap::Args)]
pub struct Demos {
    /// Demos in a row
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Beside a busy loop on each CPU: none may fail
    #[arg(long)]
    loaded: bool,
    #[command(flatten)]
    setup: setup::Install,
}

/// Runs the demos one after the other, and counts their exit codes.
pub fn run(root: &Path, options: &Demos) -> Result<ExitCode> {
    demo::prepare(root, &options.setup)?;
    let load = options.loaded.then(Load::on_each_cpu);
    let mut ends = BTreeMap::<u8, u32>::new();
    for number in 1..=options.runs {
        let out = Path::new(OUT).join(number.to_string());
        let (began, before) = (Instant::now(), CpuTime::read()?);
        let status = demo::validator(root)
            .arg("--out")
            .arg(&out)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .context("cannot run target/release/validator")?;
        let Some(code) = status.code().and_then(|code| u8::try_from(code).ok()) else {
            bail!("the demo was ended: {status}");
        };
        *ends.entry(code).or_default() += 1;
        let seconds = began.elapsed().as_secs_f64();
        let stolen = 100.0 * CpuTime::read()?.stolen_since(before);
        println!(
            "demo {number}/{}: exit code {code}, {seconds:.0} s, {stolen:.1} % of the CPUs' time \
             taken by the host",
            options.runs
        );
        if code != 0 {
            let report = table::read(&root.join(&out).join(demo::REPORT))?;
            print!("{}", table::not_passed(&report));
        }
    }
    drop(load);
    print!("{}", table(&ends));
    Ok(step::exit_code(is_good(&ends, options.loaded)))
}

/// The exit codes with their number and share.
fn table(ends: &BTreeMap<u8, u32>) -> String {
    let runs: u32 = ends.values().sum();
    let line = |(code, count): (&u8, &u32)| {
        let meaning = match code {
            0 => "passed",
            1 => "failed",
            2 => "was refused",
            3 => "was not decided",
            _ => "ended otherwise",
        };
        let share = 100.0 * f64::from(*count) / f64::from(runs.max(1));
        format!("exit code {code}: {count} of {runs} ({share:.0} %) {meaning}\n")
    };
    ends.iter().map(line).collect()
}

/// On an idle machine nearly all pass; beside a load none fails.
fn is_good(ends: &BTreeMap<u8, u32>, loaded: bool) -> bool {
    if loaded {
        return ends.keys().all(|code| [0, 3].contains(code));
    }
    let runs: u32 = ends.values().sum();
    let passed = ends.get(&0).copied().unwrap_or(0);
    f64::from(passed) >= DECIDED * f64::from(runs)
}

/// A busy loop on each CPU, until it is dropped.
struct Load {
    stop: &'static AtomicBool,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    fn on_each_cpu() -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let busy = |_| {
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        Self {
            stop,
            threads: (0..cpus).map(busy).collect(),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A loop cannot panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nineteen_of_twenty_have_to_pass_and_beside_a_load_none_may_fail() {
        let ends = |list: &[(u8, u32)]| BTreeMap::from_iter(list.iter().copied());
        assert!(is_good(&ends(&[(0, 19), (3, 1)]), false));
        assert!(!is_good(&ends(&[(0, 18), (3, 2)]), false));
        assert!(is_good(&ends(&[(0, 1), (3, 19)]), true));
        assert!(!is_good(&ends(&[(0, 19), (1, 1)]), true));
        assert_eq!(
            table(&ends(&[(0, 3), (3, 1)])),
            "exit code 0: 3 of 4 (75 %) passed\nexit code 3: 1 of 4 (25 %) was not decided\n"
        );
    }
}
