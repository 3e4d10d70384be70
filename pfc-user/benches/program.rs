//! Measures the cost of a frame in the XDP program by BPF_PROG_TEST_RUN, beside a program that only
//! drops. Rounds are interleaved, and short enough to be disturbed seldom. `cargo bench -p pfc-user
//! --bench program`, as root, after `cargo xtask build-ebpf`.

#[path = "common/mod.rs"]
mod common;
#[path = "../../pfc-ebpf/tests/frames/mod.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
mod frames;

use std::path::Path;

use aya::maps::{Array, PerCpuArray, ProgramArray};
use aya::programs::{Program, ProgramFd, TestRun, Xdp};
use aya::{Ebpf, TestRunOptions};
use common::{Report, Spread};
use frames::TestFrame;
use pfc_ebpf::abi::account::{Clock, Config, FlowConfig};
use pfc_ebpf::abi::{self, Trust};
use pfc_ebpf::stamp::{MASK_40, Phase, Stamp};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::{AccountProgram, Sizes};
use validator::driver::kernel::clock;

const REPORT: Report = Report("program");

const OBJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ebpf-object/bench");
const ACCOUNT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ebpf-object/account");
const WATCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ebpf-object/watch");
const RESPONDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../target/ebpf-object/responder"
);
/// Each test run waits some milliseconds before its first frame.
const ROUNDS: usize = 51;
/// Runs per round: less than a time slice of the scheduler.
const RUNS: u32 = 2000;
const DSCP: u8 = 3;

/// Counting modes: name, clock, exclusive, verify_every.
const MODES: [(&str, Clock, u8, u64); 5] = [
    ("exact", Clock::Exact, 0, 1),
    ("exact, exclusive", Clock::Exact, 1, 1),
    ("exact, exclusive, 1 in 16", Clock::Exact, 1, 16),
    ("batched, 1 in 16", Clock::Batched, 0, 16),
    ("batched, exclusive, 1 in 16", Clock::Batched, 1, 16),
];

/// The programs of the object `bench`. The first of them hands frames on to a target.
struct Bench(Ebpf);

impl Bench {
    fn load() -> Self {
        let octets = std::fs::read(OBJECT).expect("`cargo xtask build-ebpf` makes it");
        let mut object = Ebpf::load(&octets).expect("root is needed");
        for name in ["drop", "restamp"] {
            let program: &mut Xdp = object
                .program_mut(name)
                .expect("in the object")
                .try_into()
                .expect("an XDP program");
            program.load().expect("the kernel takes it");
        }
        Self(object)
    }

    fn program(&self, name: &str) -> &Xdp {
        self.0
            .program(name)
            .expect("in the object")
            .try_into()
            .expect("an XDP program")
    }

    fn run(&self, name: &str, frame: &[u8]) -> f64 {
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat: RUNS,
            ..TestRunOptions::new()
        };
        self.program(name)
            .test_run(options)
            .expect("a test run")
            .duration
            .as_nanos() as f64
    }

    /// Makes `restamp` produce frames of `flows` flows, a power of two, sent just now, and hand
    /// them to `target`. A fixed time would be one of the future for half of the 18 minutes that
    /// stamps tell apart, and no reading of [`Clock::Batched`] would serve its frames.
    fn aim(&mut self, flows: u32, target: &ProgramFd) {
        let state = self.0.map_mut("STATE").expect("in the object");
        let mut state: Array<_, [u64; 3]> = state.try_into().expect("an array");
        let mask = u64::from(flows) - 1;
        state.set(0, [0, mask, clock::now()], 0).expect("an entry");
        let targets = self.0.map_mut("TARGET").expect("in the object");
        let mut targets: ProgramArray<_> = targets.try_into().expect("an array of programs");
        targets.set(0, target, 0).expect("an entry");
    }

    fn to_drop(flows: u32) -> Self {
        let mut bench = Self::load();
        let fd = bench
            .program("drop")
            .fd()
            .expect("loaded")
            .try_clone()
            .expect("a descriptor");
        bench.aim(flows, &fd);
        bench
    }

    fn to(account: &AccountProgram, flows: u32) -> Self {
        let mut bench = Self::load();
        bench.aim(flows, account.program().expect("loaded"));
        bench
    }
}

fn config((_, clock, exclusive, verify_every): (&str, Clock, u8, u64)) -> Config {
    Config {
        epoch: clock::now(),
        window: 100_000_000,
        windows: 64,
        run: 7,
        trust: Trust::Dscp as u8,
        clock: clock as u8,
        line_rate: 100_000_000_000,
        storm_source: [2, 0, 0, 0, 0, 9],
        exclusive,
        verify_every,
        dscp_to_priority: std::array::from_fn(|dscp| dscp as u8 % 8),
        ..Config::default()
    }
}

/// For flows of frames of `length` octets: others would count as resized.
fn configure(
    account: &mut AccountProgram,
    mode: (&str, Clock, u8, u64),
    flows: u32,
    length: usize,
) {
    let flow = FlowConfig {
        mark: DSCP,
        log_phases: 0,
        priority: 3,
        length: length as u16,
        ..FlowConfig::default()
    };
    account
        .configure(&config(mode), &vec![flow; flows as usize])
        .expect("a configuration");
}

fn account(mode: (&str, Clock, u8, u64), flows: u32, length: usize) -> AccountProgram {
    let mut account = AccountProgram::load(Sizes { flows, windows: 64 })
        .expect("root, and the object of `cargo xtask build-ebpf`");
    configure(&mut account, mode, flows, length);
    account
}

/// The program without the cost of the clock: each reading is replaced by one of the kernel's
/// ticks, which is a load.
fn without_clock() -> AccountProgram {
    const READING: [u8; 8] = [0x85, 0, 0, 0, 5, 0, 0, 0];
    const TICKS: [u8; 8] = [0x85, 0, 0, 0, 118, 0, 0, 0];
    let mut octets = std::fs::read(ACCOUNT).expect("`cargo xtask build-ebpf` makes it");
    let mut replaced = 0;
    for instruction in octets
        .as_chunks_mut()
        .0
        .iter_mut()
        .filter(|instruction| **instruction == READING)
    {
        *instruction = TICKS;
        replaced += 1;
    }
    assert!(replaced > 0, "the program calls bpf_ktime_get_ns");
    let mut account = AccountProgram::load_object(
        &octets,
        Sizes {
            flows: 1,
            windows: 64,
        },
    )
    .expect("the kernel takes it as well");
    configure(&mut account, MODES[0], 1, 64);
    account
}

/// Reports a figure beside that of the bare program in the same rounds.
fn line(name: &str, samples: &[f64], drop: &[f64]) {
    let (Spread { median, min, max }, ratio) =
        (Spread::of(samples), Spread::of_ratios(samples, drop).median);
    println!("{name:56} {median:7.0} {min:7.0} {max:7.0} {ratio:7.1}");
    REPORT.beside(name, "ns", samples, "drop", drop);
}

fn test_frame(length: usize, v6: bool) -> Vec<u8> {
    let stamp = Stamp {
        run: 7,
        flow: 0,
        phase: Phase::Storm,
        sequence: 0,
        time: clock::now() & MASK_40,
    };
    let headers = if v6 { 62 } else { 42 };
    TestFrame {
        traffic_class: DSCP << 2 | 1,
        v6,
        payload: length - headers,
        ..TestFrame::new(stamp)
    }
    .octets()
}

fn with(mut frame: Vec<u8>, at: usize, octets: &[u8]) -> Vec<u8> {
    frame[at..at + octets.len()].copy_from_slice(octets);
    frame
}

/// A frame like a test frame, without its stamp: with the stamp it is one whatever its headers say.
fn unstamped(length: usize, v6: bool) -> Vec<u8> {
    let mut frame = test_frame(length, v6);
    frame[if v6 { 62 } else { 42 }..].fill(0);
    frame
}

/// Frames that are sent unchanged, again and again.
fn constant_frames() -> Vec<(&'static str, Vec<u8>)> {
    // Another protocol, with the header's checksum adjusted.
    let tcp = {
        let mut frame = with(unstamped(64, false), 23, &[6]);
        let sum = u16::from_be_bytes([frame[24], frame[25]]) + 11;
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame
    };
    let tagged = [&tcp[..12], &[0x81, 0x00, 0x60, 0x05], &tcp[12..]].concat();
    let pfc = |vector| {
        MacControl::Pfc {
            vector,
            quanta: [0xffff; 8],
        }
        .emit([2, 0, 0, 0, 0, 5])
        .to_vec()
    };
    vec![
        ("other, IPv4 TCP", tcp),
        (
            "other, IPv4 UDP, foreign port",
            with(unstamped(64, false), 36, &[0, 53]),
        ),
        ("other, IPv4 TCP, VLAN tag", tagged),
        (
            "other, IPv6 UDP, foreign port",
            with(unstamped(84, true), 56, &[0, 53]),
        ),
        ("PFC, 1 class", pfc(8)),
        ("PFC, 8 classes", pfc(0xff)),
        (
            "PAUSE",
            MacControl::Pause { quanta: 9 }
                .emit([2, 0, 0, 0, 0, 5])
                .to_vec(),
        ),
    ]
}

fn constant() {
    let bare = Bench::load();
    let mut accounts = [account(MODES[0], 1, 64), without_clock()];
    for (name, frame) in constant_frames() {
        let control = MacControl::parse(&frame[..]).is_ok();
        let (mut drop, mut samples) = (Vec::new(), [const { Vec::new() }; 2]);
        for round in 0..ROUNDS {
            drop.push(bare.run("drop", &frame));
            for (account, samples) in accounts.iter_mut().zip(&mut samples) {
                // The log of control frames has room for 16 rounds.
                if round % 16 == 0 {
                    configure(account, MODES[0], 1, 64);
                    account.test_run(&frame, 1).expect("a test run");
                }
                samples.push(
                    account
                        .test_run(&frame, RUNS)
                        .expect("a test run")
                        .duration
                        .as_nanos() as f64,
                );
            }
        }
        let [whole, timeless] = samples;
        for account in &accounts {
            assert_eq!(account.port().expect("counts").malformed, [], "{name}");
        }
        line(name, &whole, &drop);
        if control {
            line(
                &format!("{name}, without reading the clock"),
                &timeless,
                &drop,
            );
        }
    }
}

/// Measures a test frame in each mode, without the cost of making the frames.
fn tests(name: &str, frame: &[u8], flows: u32, modes: &[(&'static str, Clock, u8, u64)]) {
    let bare = Bench::load();
    let maker = Bench::to_drop(flows);
    let counted: Vec<_> = modes
        .iter()
        .map(|&mode| (mode, account(mode, flows, frame.len())))
        .collect();
    let aimed: Vec<_> = counted
        .iter()
        .map(|(_, account)| Bench::to(account, flows))
        .collect();
    let mut drop = Vec::new();
    let mut samples = vec![Vec::new(); modes.len()];
    for _ in 0..ROUNDS {
        let dropped = bare.run("drop", frame);
        let making = maker.run("restamp", frame) - dropped;
        drop.push(dropped);
        for (samples, bench) in samples.iter_mut().zip(&aimed) {
            samples.push(bench.run("restamp", frame) - making);
        }
    }
    for (((mode, account), samples), runs) in counted
        .iter()
        .zip(&samples)
        .zip(std::iter::repeat(ROUNDS as u64 * u64::from(RUNS)))
    {
        let received = account.flows().expect("counts");
        let sum = received
            .iter()
            .map(|flow| {
                let damaged = flow.corrupt + flow.altered + flow.resized;
                (flow.frames, damaged + flow.duplicate + flow.remarked)
            })
            .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        assert_eq!(sum, (runs, 0), "each frame is counted once");
        line(&format!("{name}: {}", mode.0), samples, &drop);
    }
}

/// Measures the programs beside other builds of them in the same rounds: the cost of a change.
fn beside(before: &Path) {
    println!(
        "{:36} {:>7} {:>7} {:>7}",
        "ns a frame, median", "before", "after", "ratio"
    );
    watch_beside(&before.join("watch"));
    responder_beside(&before.join("responder"));
    account_beside(&before.join("account"));
}

/// Prints a row with the ratio of samples taken in the same rounds.
fn row_beside(name: &str, before: &[f64], after: &[f64]) {
    let ratio = Spread::of_ratios(after, before).median;
    let [earlier, later] = [before, after].map(|samples| Spread::of(samples).median);
    println!("{name:36} {earlier:7.0} {later:7.0} {ratio:7.3}");
    REPORT.beside(&format!("{name}, after"), "ns", after, "before", before);
}

fn watch_beside(before: &Path) {
    let builds = [before, Path::new(WATCH)];
    let frames: Vec<_> = constant_frames()
        .into_iter()
        .chain([("test frame, 1024 B", test_frame(1024, false))])
        .collect();
    for hook in [Hook::Xdp, Hook::Tc] {
        let builds = builds.map(|path| Watching::load(path, hook));
        let mut frames_run = 0;
        for (name, frame) in &frames {
            let mut samples = [const { Vec::new() }; 2];
            for _ in 0..ROUNDS {
                for (build, samples) in builds.iter().zip(&mut samples) {
                    samples.push(build.run(frame));
                }
            }
            let name = format!("{}: {name}", hook.counts());
            row_beside(&name, &samples[0], &samples[1]);
            frames_run += ROUNDS as u64 * u64::from(RUNS);
            for counted in builds.iter().filter_map(Watching::counted) {
                assert_eq!(counted, frames_run, "each frame is counted once");
            }
        }
    }
}

/// Where `watch` counts.
#[derive(Clone, Copy)]
enum Hook {
    Xdp,
    Tc,
}

impl Hook {
    /// The program that counts.
    fn counts(self) -> &'static str {
        match self {
            Self::Xdp => "watch",
            Self::Tc => "watch_tc",
        }
    }

    /// The program of the first port, which hands frames on to the one that counts; and the array
    /// by which it does.
    fn entry(self) -> (&'static str, &'static str) {
        match self {
            Self::Xdp => ("watch_0", abi::watch::name::XDP),
            Self::Tc => ("watch_tc_0", abi::watch::name::TC),
        }
    }
}

/// A build of `watch` that counts by DSCP and captures nothing.
struct Watching {
    object: Ebpf,
    hook: Hook,
}

/// Loads a program of a build.
fn load(object: &mut Ebpf, name: &str) -> ProgramFd {
    let fd = match object.program_mut(name).expect("in the object") {
        Program::Xdp(program) => program.load().and_then(|()| program.fd()),
        Program::SchedClassifier(program) => program.load().and_then(|()| program.fd()),
        _ => panic!("{name} is of XDP or tc"),
    };
    let fd = fd.expect("the kernel takes it");
    fd.try_clone().expect("a descriptor")
}

impl Watching {
    fn load(path: &Path, hook: Hook) -> Self {
        let octets = std::fs::read(path).expect("VALIDATOR_BEFORE names a folder of objects");
        let mut object = Ebpf::load(&octets).expect("root is needed");
        let (entry, array) = hook.entry();
        load(&mut object, entry);
        let counts = load(&mut object, hook.counts());
        let programs = object.map_mut(array).expect("in the object");
        let mut programs: ProgramArray<_> = programs.try_into().expect("an array of programs");
        programs.set(0, &counts, 0).expect("an entry");
        let version = object.map(abi::ABI_SECTION).expect("in the object");
        let version: Array<_, u32> = version.try_into().expect("an array");
        let built_with = version.get(&0, 0).expect("an entry");
        let config = abi::watch::Config {
            abi: built_with,
            trust: Trust::Dscp as u8,
            capture: 0,
            sketch: 0,
            flows: 0,
            first_flow: 0,
            line_rate: 100_000_000_000,
            dscp_to_priority: std::array::from_fn(|dscp| dscp as u8 % 8),
        };
        let map = object
            .map_mut(abi::watch::name::CONFIG)
            .expect("in the object");
        let mut map: Array<_, [u8; size_of::<abi::watch::Config>()]> =
            map.try_into().expect("an array");
        // SAFETY: plain data without gaps.
        let octets: [u8; size_of::<abi::watch::Config>()] = unsafe { std::mem::transmute(config) };
        map.set(0, octets, 0).expect("an entry");
        Self { object, hook }
    }

    fn run(&self, frame: &[u8]) -> f64 {
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat: RUNS,
            ..TestRunOptions::new()
        };
        let result = match self.object.program(self.hook.entry().0) {
            Some(Program::Xdp(entry)) => entry.test_run(options),
            Some(Program::SchedClassifier(entry)) => entry.test_run(options),
            _ => panic!("in the object"),
        };
        result.expect("a test run").duration.as_nanos() as f64
    }

    /// Frames that it counted; `None` where its counters have another layout.
    fn counted(&self) -> Option<u64> {
        const WORDS: usize = size_of::<abi::watch::Counters>() / size_of::<u64>();
        let map = self.object.map(abi::watch::name::COUNTERS);
        let map = map.expect("in the object");
        let map: PerCpuArray<_, [u64; WORDS]> = map.try_into().ok()?;
        // The first word is the number of all frames.
        let cpus = map.get(&0, 0).expect("an entry");
        Some(cpus.iter().map(|words| words[0]).sum())
    }
}

fn responder_beside(before: &Path) {
    const QUEUE_PAIR: u32 = 0x123;
    let builds = [before, Path::new(RESPONDER)].map(|path| responding(path, QUEUE_PAIR));
    // A READ request from the BTH on, behind the UDP header of RoCEv2.
    let of = |queue_pair: u32| {
        let frame = with(test_frame(128, false), 36, &4791_u16.to_be_bytes());
        let bth = [&[0x0c, 0, 0xff, 0xff][..], &queue_pair.to_be_bytes()].concat();
        with(frame, 42, &bth)
    };
    let requests = [
        ("READ request of others", of(QUEUE_PAIR + 1)),
        // Nobody reads the records: most find no room.
        ("READ request, dropped", of(QUEUE_PAIR)),
    ];
    for (name, frame) in constant_frames().into_iter().take(4).chain(requests) {
        let mut samples = [const { Vec::new() }; 2];
        for _ in 0..ROUNDS {
            for (build, samples) in builds.iter().zip(&mut samples) {
                samples.push(build.run("responder", &frame));
            }
        }
        row_beside(&format!("responder: {name}"), &samples[0], &samples[1]);
    }
    let each = ROUNDS as u64 * u64::from(RUNS);
    for build in &builds {
        let map = build.0.map(abi::responder::name::COUNTERS);
        let map = map.expect("in the object");
        let map: PerCpuArray<_, [u64; 4]> = map.try_into().expect("an array by CPU");
        let counts = map.get(&0, 0).expect("an entry");
        let sum = |word: usize| counts.iter().map(|of_cpu| of_cpu[word]).sum::<u64>();
        let found = [0, 2, 3].map(sum);
        assert_eq!(
            found,
            [each, each, 4 * each],
            "dropped, of others, and all else"
        );
    }
}

/// A build of `responder` that drops what is for that queue pair.
fn responding(path: &Path, queue_pair: u32) -> Bench {
    let octets = std::fs::read(path).expect("VALIDATOR_BEFORE names a folder of objects");
    let mut object = Ebpf::load(&octets).expect("root is needed");
    load(&mut object, "responder");
    let map = object
        .map_mut(abi::responder::name::CONFIG)
        .expect("in the object");
    let mut map: Array<_, [u32; 2]> = map.try_into().expect("an array");
    map.set(0, [abi::responder::ABI_VERSION, queue_pair], 0)
        .expect("an entry");
    Bench(object)
}

fn account_beside(before: &Path) {
    let sizes = Sizes {
        flows: 1,
        windows: 64,
    };
    let object = std::fs::read(before).expect("VALIDATOR_BEFORE names a folder of objects");
    let before = match AccountProgram::load_object(&object, sizes) {
        Ok(before) => before,
        Err(error) => return println!("account is not compared: {error}"),
    };
    let mut builds = [
        before,
        AccountProgram::load(sizes).expect("root, and the object of `cargo xtask build-ebpf`"),
    ];
    let mut compare = |name: &str, frame: &[u8], restamps: bool, mode| {
        builds
            .iter_mut()
            .for_each(|build| configure(build, mode, 1, frame.len()));
        let aimed = [Bench::to(&builds[0], 1), Bench::to(&builds[1], 1)];
        let mut samples = [const { Vec::new() }; 2];
        for round in 0..ROUNDS {
            for (index, build) in builds.iter_mut().enumerate() {
                // The log of control frames has room for 16 rounds.
                if round % 16 == 0 {
                    configure(build, mode, 1, frame.len());
                }
                let nanos = if restamps {
                    aimed[index].run("restamp", frame)
                } else {
                    let run = build.test_run(frame, RUNS).expect("a test run");
                    run.duration.as_nanos() as f64
                };
                samples[index].push(nanos);
            }
        }
        row_beside(name, &samples[0], &samples[1]);
    };
    for (name, frame) in constant_frames() {
        compare(name, &frame, false, MODES[0]);
    }
    for mode in MODES {
        let name = format!("made and counted: {}", mode.0);
        compare(&name, &test_frame(1024, false), true, mode);
    }
}

fn main() {
    if let Some(before) = std::env::var_os("VALIDATOR_BEFORE") {
        return beside(before.as_ref());
    }
    println!(
        "{:56} {:>7} {:>7} {:>7} {:>7}",
        format!("ns a frame, {ROUNDS} rounds of {RUNS}"),
        "median",
        "min",
        "max",
        "x drop"
    );
    let bare = Bench::load();
    let drop: Vec<_> = (0..ROUNDS)
        .map(|_| bare.run("drop", &test_frame(64, false)))
        .collect();
    line("drop", &drop, &drop);
    constant();
    for length in [64, 128, 512, 1024, 1500, 3400] {
        tests(
            &format!("test frame, {length} B"),
            &test_frame(length, false),
            1,
            &MODES,
        );
    }
    for flows in [8, 64, 512, 4096] {
        tests(
            &format!("test frame, 64 B, {flows} flows"),
            &test_frame(64, false),
            flows,
            &[MODES[0], MODES[4]],
        );
    }
}
