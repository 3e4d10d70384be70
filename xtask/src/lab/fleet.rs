//! `cargo xtask lab fleet`: Debian's Prometheus watches 20 exporters with the published
//! configuration, and its alerts fire for what is planted, for nothing else, and clear.
//!
//! Prometheus runs the rules of `configs/prometheus` with each duration divided by 15. With
//! `--cost` it runs them as they are, and the lab reads what a fleet of 1,000 costs.

mod cost;
mod hosts;
mod network;
mod plants;
mod scale;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::hosts::{Exporter, Traffic};
use self::network::{HOSTS, Host, Network};
use self::plants::PLANTS;
use self::server::Server;
use super::archive::cannot_write;
use super::script;
use crate::setup::{self, Group};
use crate::step::{self, step};
use crate::{build_ebpf, lab};

/// Time between two looks at what Prometheus knows.
const LOOK: Duration = Duration::from_millis(200);
/// For what is waited for. Each alert fires within 30 s on a machine that is not busy.
const LIMIT: Duration = Duration::from_secs(120);
/// Prometheus' data and all logs.
const FOLDER: &str = "target/lab/fleet";

#[derive(clap::Args)]
pub struct FleetLab {
    #[command(flatten)]
    setup: setup::Install,
    /// Read what Prometheus and an exporter cost in a fleet of 1,000, scraped each 15 s
    #[arg(long)]
    cost: bool,
    /// With --cost: seconds for which it is read, best a multiple of 15
    #[arg(long, default_value_t = 60, requires = "cost")]
    seconds: u64,
}

/// Builds, and ends with a line like libtest's, or with a table.
pub fn run(root: &Path, options: &FleetLab) -> Result<ExitCode> {
    if !step::is_root() {
        bail!("the fleet needs root for network namespaces; run it with sudo or as root");
    }
    setup::run(&[Group::Build, Group::Test], &options.setup)?;
    if options.cost {
        step::explain_cargo(build_ebpf::run(root), root)?;
        let prometheus = server::program()?;
        lab::network::in_namespace(|| cost::measure(root, &prometheus, options.seconds))?;
        return Ok(ExitCode::SUCCESS);
    }
    test(root)
}

/// Part of `cargo xtask test --full`.
pub fn test(root: &Path) -> Result<ExitCode> {
    step::explain_cargo(build_ebpf::run(root), root)?;
    let mut tally = Tally::default();
    let prometheus = server::program()?;
    let tried = lab::network::in_namespace(|| alerts(root, &prometheus, &mut tally));
    if let Err(error) = tried {
        println!("    logs: {}", root.join(FOLDER).display());
        tally.failed.push(format!("{error:#}"));
    }
    script::close(tally.passed, &tally.failed)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
}

impl Tally {
    fn check(&mut self, name: &str, holds: bool, found: impl FnOnce() -> String) {
        if holds {
            self.passed += 1;
            println!("test {name} ... ok");
        } else {
            self.failed.push(format!("{name}: {}", found()));
            println!("test {name} ... FAILED");
        }
    }
}

/// Everything that runs. Dropped in this order.
pub struct Fleet<'a> {
    root: &'a Path,
    prometheus: &'a Path,
    folder: PathBuf,
    server: Option<Server>,
    traffic: Traffic,
    exporters: Vec<Exporter>,
    network: Network,
}

impl<'a> Fleet<'a> {
    /// Starts exporters and traffic. The namespace of this thread becomes Prometheus'.
    fn start(root: &'a Path, prometheus: &'a Path) -> Result<Self> {
        let folder = root.join(FOLDER);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| cannot_write(&folder))?;
        }
        fs::create_dir_all(&folder).with_context(|| cannot_write(&folder))?;
        let network = step("network namespaces", Network::make)?;
        let exporters = Host::all()
            .map(|host| Exporter::start(root, &network, host, &folder))
            .collect::<Result<_>>()?;
        let traffic = Traffic::start(&network)?;
        let mut fleet = Self {
            root,
            prometheus,
            folder,
            server: None,
            traffic,
            exporters,
            network,
        };
        step(&format!("{HOSTS} exporters"), || {
            Host::all().try_for_each(|host| fleet.await_exporter(host))
        })?;
        Ok(fleet)
    }

    /// Waits until an exporter answers.
    fn await_exporter(&mut self, host: Host) -> Result<()> {
        wait_for("metrics of an exporter", || {
            self.exporter(host).check()?;
            let answer = server::get(host.address().into(), "/metrics");
            Ok(answer.map(drop).map_err(|error| format!("{error:#}")))
        })
    }

    fn exporter(&mut self, host: Host) -> &mut Exporter {
        &mut self.exporters[host.number() - 1]
    }

    /// Starts a host's exporter again.
    fn restart(&mut self, host: Host) -> Result<()> {
        *self.exporter(host) = Exporter::start(self.root, &self.network, host, &self.folder)?;
        self.await_exporter(host)
    }

    /// Starts Prometheus with the published configuration, its durations divided.
    fn start_server(&mut self, factor: u64) -> Result<&mut Server> {
        let published = self.root.join("configs/prometheus");
        scale::copy(&published, &self.folder, factor)?;
        let server = Server::start(self.prometheus, &self.network, &self.folder)?;
        Ok(self.server.insert(server))
    }

    fn server(&mut self) -> &mut Server {
        self.server.as_mut().expect("started")
    }
}

/// Polls until there is a result. `look` says what it has seen instead.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Result<Result<T, String>>) -> Result<T> {
    let start = Instant::now();
    loop {
        match look()? {
            Ok(found) => return Ok(found),
            Err(seen) if start.elapsed() > LIMIT => {
                bail!(
                    "{what}: waited for {} s, last seen: {seen}",
                    LIMIT.as_secs()
                )
            }
            Err(_) => thread::sleep(LOOK),
        }
    }
}

/// Waits until a query has this many results.
fn await_count(server: &mut Server, query: &str, count: usize) -> Result<()> {
    let what = format!("{count} x {query}");
    wait_for(&what, || {
        let found = server.query(query)?.len();
        Ok((found == count).then_some(()).ok_or(format!("{found}")))
    })
}

fn alerts(root: &Path, prometheus: &Path, tally: &mut Tally) -> Result<()> {
    let fleet = &mut Fleet::start(root, prometheus)?;
    step("Prometheus finds its targets", || discovery(fleet))?;
    tally.check(
        "targets are found in files, also in new ones",
        true,
        String::new,
    );
    healthy(fleet, tally)?;
    let expected: BTreeSet<String> = PLANTS.iter().filter_map(plants::Plant::alert).collect();
    for plant in &PLANTS {
        println!("    planted: {}", plant.what);
        plant.plant(fleet)?;
    }
    let fired = step("alerts fire", || firing(fleet, &expected))?;
    PLANTS.iter().try_for_each(|plant| plant.clear(fleet))?;
    let cleared = step("alerts clear", || clearing(fleet, &expected))?;
    for alert in &expected {
        println!(
            "    {alert}: fired after {:.1} s, cleared after {:.1} s",
            fired[alert].as_secs_f64(),
            cleared[alert].as_secs_f64()
        );
        tally.check(&format!("{alert}, and clears"), true, String::new);
    }
    let ever = fleet.server().fired_ever()?;
    tally.check("nothing else has fired", ever == expected, || {
        format!("expected {expected:?}, found {ever:?}")
    });
    Ok(())
}

/// Half of the targets are written before Prometheus starts, half while it runs.
fn discovery(fleet: &mut Fleet<'_>) -> Result<()> {
    let targets: Vec<_> = Host::all().map(|host| (host, None)).collect();
    let (first, second) = targets.split_at(HOSTS / 2);
    let server = fleet.start_server(scale::FACTOR)?;
    server.add_targets("rack-1.json", first)?;
    await_count(server, "up == 1", first.len())?;
    server.add_targets("rack-2.json", second)?;
    await_count(server, "up == 1", HOSTS)
}

/// The third port of each host receives as much as the pair: it is none of the pair's.
fn healthy(fleet: &mut Fleet<'_>, tally: &mut Tally) -> Result<()> {
    let server = fleet.server();
    let lossless = "validator:pair_lost:ratio1m{pair=\"eth0:eth1\",priority=\"3\"} < 0.001";
    step("figures of every host", || {
        await_count(server, lossless, HOSTS)
    })?;
    let (pending, firing) = server.alerts()?;
    tally.check(
        "no alert where nothing is planted",
        pending.is_empty() && firing.is_empty(),
        || format!("found {pending:?} pending and {firing:?} firing"),
    );
    Ok(())
}

/// Waits until all that is expected fires, and what has no alert shows; returns when each fired.
fn firing(
    fleet: &mut Fleet<'_>,
    expected: &BTreeSet<String>,
) -> Result<BTreeMap<String, Duration>> {
    let server = fleet.server();
    let (start, mut times) = (Instant::now(), BTreeMap::new());
    wait_for("alerts that fire", || {
        let (_, firing) = server.alerts()?;
        for alert in &firing {
            times.entry(alert.clone()).or_insert(start.elapsed());
        }
        let missing: Vec<_> = expected.difference(&firing).collect();
        Ok(missing
            .is_empty()
            .then_some(())
            .ok_or(format!("missing: {missing:?}")))
    })?;
    for query in PLANTS.iter().filter_map(plants::Plant::shows) {
        await_count(server, &query, 1)?;
    }
    Ok(times)
}

/// Waits until none fires and none waits for its time; returns when each was gone.
fn clearing(
    fleet: &mut Fleet<'_>,
    expected: &BTreeSet<String>,
) -> Result<BTreeMap<String, Duration>> {
    let server = fleet.server();
    let (start, mut times) = (Instant::now(), BTreeMap::new());
    wait_for("alerts that clear", || {
        let (pending, firing) = server.alerts()?;
        let left: BTreeSet<_> = pending.union(&firing).cloned().collect();
        for alert in expected.difference(&left) {
            times.entry(alert.clone()).or_insert(start.elapsed());
        }
        Ok(left
            .is_empty()
            .then_some(())
            .ok_or(format!("left: {left:?}")))
    })?;
    Ok(times)
}
