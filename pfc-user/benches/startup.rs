//! Measures the start-up: `watch` on many ports until all of them count, the programs of a tx port
//! until its first frame could go, and the commands `watch` and `run` from their start. Root, after
//! `cargo xtask build-ebpf`; `cargo bench -p pfc-user --bench startup`.
//!
//! The peer of ports that share their programs is a set of ports that each load their own, in the
//! same rounds.

#[path = "common/mod.rs"]
mod common;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{Extent, Report, Spread};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{Config, FlowConfig};
use pfc_ebpf::units::Priority;
use validator::driver::bpf::watch::{Point, Settings, Watch};
use validator::driver::bpf::{AccountProgram, Sizes, XdpMode};
use validator::driver::kernel::clock;
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;
use validator::report;

const REPORT: Report = Report("startup");
const UNIT: &str = "ms";
/// Flows and windows of a long repetition with many flows.
const SIZES: Sizes = Sizes {
    flows: 64,
    windows: 4000,
};

fn main() {
    println!(
        "{:<44} {:>9} {:>9} {:>9}  {:>6}",
        "ms", "median", "min", "max", "ratio"
    );
    for ports in [1, 8, 32] {
        watch(ports);
    }
    account();
    for ports in [8, 32] {
        watch_command(ports);
    }
    run_command();
}

/// The time that `work` takes, in ms.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begin = Instant::now();
    let done = work();
    (begin.elapsed().as_secs_f64() * 1e3, done)
}

/// A namespace with that many ports, and their peers in another one.
fn ports(count: usize) -> (Namespace, Namespace, Vec<String>) {
    let new = || Namespace::new().expect("root may make a network namespace");
    let (tester, device) = (new(), new());
    let names: Vec<_> = (0..count).map(|port| format!("p{port}")).collect();
    for (port, name) in names.iter().enumerate() {
        let end = |namespace, far: u8| End {
            namespace,
            name,
            mac: [2, 0, 0, 0, far, port as u8],
        };
        create_veth(end(&tester, 0), end(&device, 1), 1500).expect("a pair of ports");
    }
    (tester, device, names)
}

fn watch(count: usize) {
    let settings = Settings {
        trust: Trust::Dscp,
        dscp_map: std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8)),
        line_rate: None,
        capture: false,
        flows: 0,
    };
    let point = Point::Xdp(XdpMode::Auto);
    let (tester, _device, names) = ports(count);
    let together = || {
        let mut watches = Watch::of_ports(&vec![settings; count]).expect("the programs");
        let places: Vec<_> = names.iter().map(|name| (name.as_str(), point)).collect();
        for attached in Watch::attach_all(&mut watches, &places).expect("the programs") {
            attached.expect("a port");
        }
        watches
    };
    let apart = || -> Vec<Watch> {
        let attach = |name: &String| Watch::attach(name, point, &settings).expect("a port");
        names.iter().map(attach).collect()
    };
    let (mut shared, mut own) = (Vec::new(), Vec::new());
    for _ in 0..Extent::asked().pick(3, 9) {
        let measure = |samples: &mut Vec<f64>, attach: &(dyn Fn() -> Vec<Watch> + Sync)| {
            let (time, watches) = tester.run(|| timed(attach)).expect("the namespace");
            samples.push(time);
            drop(watches);
        };
        measure(&mut shared, &together);
        measure(&mut own, &apart);
    }
    row(&format!("watch, {count} ports"), &shared, Some(&own));
}

/// `validator watch`, from its start to the event `watching`.
fn watch_command(count: usize) {
    let (tester, _device, names) = ports(count);
    let mut samples = Vec::new();
    for _ in 0..Extent::asked().pick(5, 15) {
        // For a second the kernel frees what the command before has left, and takes longer to
        // attach. No event says when it is done.
        thread::sleep(Duration::from_secs(1));
        let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
        command
            .args(["watch", "--format", "json"])
            .args(&names)
            .stdout(Stdio::piped());
        let began = Instant::now();
        let child = tester.run(|| command.spawn()).expect("the namespace");
        let mut child = child.expect("the program");
        let out = child.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(out).lines().map(|line| line.expect("text"));
        let watching = |line: &String| line.contains("\"event\":\"watching\"");
        lines.find(watching).expect("the event `watching`");
        samples.push(began.elapsed().as_secs_f64() * 1e3);
        interrupt(child);
    }
    row(&format!("validator watch, {count} ports"), &samples, None);
}

/// `validator run`, from its start to the first frame of the first case.
fn run_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut samples = Vec::new();
    for _ in 0..Extent::asked().pick(5, 15) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
        command
            .args(["run", "--plan", "smoke", "--case", "pfc.global-pause"])
            .arg("--testbed")
            .arg(root.join("configs/testbeds/sim.toml"))
            .arg("--out")
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let began = clock::now();
        let mut child = command.spawn().expect("the program");
        child.wait().expect("its end");
        let evidence = report::read_evidence(folder.path()).expect("evidence");
        let first = evidence.cases[0].repetitions[0].pfc().expect("frames");
        let from = first.phases.iter().map(|span| span.from).min();
        samples.push((from.expect("a phase") - began) as f64 / 1e6);
    }
    row("validator run, the first frame", &samples, None);
}

/// Ends a command as Ctrl-C does.
fn interrupt(mut child: Child) {
    let pid = Pid::from_raw(child.id().try_into().expect("a process"));
    signal::kill(pid, Signal::SIGINT).expect("a signal");
    child.wait().expect("its end");
}

fn account() {
    let (tester, _device, names) = ports(1);
    let config = Config {
        epoch: clock::now(),
        window: 1_000_000,
        windows: SIZES.windows,
        line_rate: 100_000_000_000,
        verify_every: 1,
        ..Config::default()
    };
    let flow = FlowConfig {
        mark: 3,
        log_phases: 0,
        priority: 3,
        ..FlowConfig::default()
    };
    let flows = vec![flow; SIZES.flows as usize];
    let (mut loaded, mut sends, mut configured) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..Extent::asked().pick(5, 15) {
        let attach = || AccountProgram::attach(&names[0], XdpMode::Auto, SIZES);
        let (time, account) = tester.run(|| timed(attach)).expect("the namespace");
        let mut account = account.expect("the program");
        loaded.push(time);
        sends.push(timed(|| account.generator().expect("the sender")).0);
        // The first zeroes nothing, as nothing was used before.
        for _ in 0..2 {
            let (time, done) = timed(|| account.configure(&config, &flows));
            done.expect("a configuration");
            configured.push(time);
        }
        configured.remove(configured.len() - 2);
    }
    row("account, attached", &loaded, None);
    row("the sender in the kernel, ready", &sends, None);
    row("the next repetition, 64 flows of 4 s", &configured, None);
}

fn row(name: &str, samples: &[f64], own: Option<&[f64]>) {
    let Spread { median, min, max } = Spread::of(samples);
    match own {
        Some(own) => {
            let ratio = Spread::of_ratios(samples, own).median;
            println!("{name:<44} {median:9.1} {min:9.1} {max:9.1}  {ratio:6.3}");
            REPORT.beside(name, UNIT, samples, "a program for each", own);
            row(&format!("{name}, a program for each"), own, None);
        }
        None => {
            println!("{name:<44} {median:9.1} {min:9.1} {max:9.1}");
            REPORT.figure(name, UNIT, samples);
        }
    }
}
