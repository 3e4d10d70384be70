//! Measures the frames per second that the sender in the kernel makes on one CPU, beside a loop
//! that only stamps constant frames, and the exactness of its pacing. Root; `cargo bench --bench
//! sender`.
//!
//! The receiver is a bare XDP_DROP at the other end of a veth pair, on the same CPU. The measure is
//! the CPU time of the thread, so other load on the machine counts for little. Repeats are
//! interleaved.

#[path = "common/mod.rs"]
mod common;

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;

use common::{Extent, Report, Spread};
use nix::time::{ClockId, clock_gettime};
use pfc_ebpf::abi::generate::{BATCH, LOOK, Worker};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Dscp, LineRate, Priority};
use validator::driver::bpf::{AccountProgram, CaseGenerator, Constant, Sizes, XdpMode};
use validator::driver::kernel::{clock, realtime};
use validator::driver::traffic::live_frames::LiveFrames;
use validator::driver::traffic::{Addresses, Burst, Source, TrafficPlan};
use validator_core::plan::{FlowPlan, Nanos, PortName, Role};

const UNIT: &str = "Mframe/s";
const REPORT: Report = Report("sender");
const MS: Nanos = 1_000_000;
/// Frames per call of the sender, and per measurement.
const CALL: u32 = 2048 * BATCH;
const FRAMES: u32 = 20 * CALL;
const LINE: u64 = 1_600_000_000_000;
/// A rate that no sender reaches.
const SATURATED: u64 = 100_000_000;

fn main() {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
        .expect("root may make a network namespace");
    for arguments in [
        "link add name a mtu 3400 type veth peer name b mtu 3400",
        "link set dev a up",
        "link set dev b up",
    ] {
        assert!(
            Command::new("ip")
                .args(arguments.split(' '))
                .status()
                .expect("iproute2 is installed")
                .success()
        );
    }
    let _drop = drop_all("b");
    let cpu = realtime::last_cpu().expect("a CPU");
    assert!(realtime::pin(cpu));
    realtime::be_preferred();
    println!(
        "{:<44} {:>9} {:>9} {:>9}  {:>6}",
        "Mframe/s on one CPU", "median", "min", "max", "ratio"
    );
    for (flows, length) in [
        (1, 64),
        (1, 1024),
        (1, 3400),
        (8, 64),
        (64, 64),
        (512, 64),
        (4096, 64),
    ] {
        saturated(cpu, flows, length);
    }
    println!();
    println!(
        "{:<34} {:>10} {:>10} {:>10} {:>8}",
        "paced, 1 s", "frames", "target", "burst us", "stalls"
    );
    for (flows, frames) in [
        (1, 100_000),
        (1, 1_000_000),
        (64, 1_000_000),
        (4096, 1_000_000),
    ] {
        paced(cpu, flows, frames);
    }
}

/// Measures saturated sending beside constant frames: with a reading of the clock for each, and
/// with as few as the sender's.
fn saturated(cpu: usize, flows: u16, length: usize) {
    let mut bench = Bench::open(cpu, flows, length, SATURATED);
    let mut results: [Vec<f64>; 3] = Default::default();
    for _ in 0..Extent::asked().pick(3, 7) {
        for (result, kind) in results.iter_mut().zip([
            Kind::Generate,
            Kind::Constant { mask: LOOK - 1 },
            Kind::Constant { mask: 0 },
        ]) {
            result.push(bench.measure(kind));
        }
    }
    let name = |what: &str| format!("{what}, {flows} flows, {length} B");
    for (what, values) in ["sender", "constant", "constant, clock each frame"]
        .into_iter()
        .zip(&results)
    {
        // Ratios are taken between neighbouring measurements: what slows the machine slows both.
        let (figures, ratio) = (Spread::of(values), Spread::of_ratios(values, &results[1]));
        let name = name(what);
        println!(
            "{name:<44} {:>9.2} {:>9.2} {:>9.2}  {:>6.2}",
            figures.median, figures.min, figures.max, ratio.median
        );
    }
    REPORT.figure(&name("constant"), UNIT, &results[1]);
    REPORT.beside(
        &name("sender"),
        UNIT,
        &results[0],
        &name("constant"),
        &results[1],
    );
    REPORT.beside(
        &name("constant, clock each frame"),
        UNIT,
        &results[2],
        &name("constant"),
        &results[1],
    );
}

/// Sends for a second at a rate that can be kept.
fn paced(cpu: usize, flows: u16, frames: u64) {
    let mut bench = Bench::open(cpu, flows, 64, frames);
    let from = clock::now() + 5 * MS;
    bench
        .sender
        .start(Burst {
            phase: Phase::Baseline,
            from,
            to: from + 1000 * MS,
            load: 100,
        })
        .expect("a burst");
    bench.sender.wait(Nanos::MAX).expect("its end");
    let sent = bench.sender.report().expect("its account").report;
    let left: u64 = sent.flows.iter().map(|flow| flow.frames).sum();
    let stalls: Nanos = sent.stalls.iter().map(|stall| stall.to - stall.from).sum();
    let burst =
        sent.max_burst as f64 * LINE as f64 / (frames * LineRate::frame_bits(64)) as f64 / 1e3;
    let name = format!("{flows} flows, {frames} frame/s");
    println!(
        "{name:<34} {left:>10} {frames:>10} {burst:>10.1} {:>5} ms",
        stalls / MS
    );
    REPORT.beside(
        &name,
        UNIT,
        &[left as f64 / 1e6],
        "target",
        &[frames as f64 / 1e6],
    );
}

struct Bench {
    _tx: AccountProgram,
    generator: Arc<CaseGenerator>,
    constant: Constant,
    sender: LiveFrames,
    cpu: usize,
    port: u32,
    frame: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Kind {
    Generate,
    Constant { mask: u64 },
}

impl Bench {
    fn open(cpu: usize, flows: u16, length: usize, frames: u64) -> Self {
        let rate = frames * LineRate::frame_bits(length) / u64::from(flows);
        let flow = |id: u16| FlowPlan {
            from: PortName::TX,
            to: PortName::RX,
            id,
            role: Role::Test,
            priority: Priority::from_low_bits(id as u8),
            dscp: Dscp::new(id as u8 % 64).expect("below 64"),
            pcp: None,
            rate: rate.min(LINE / u64::from(flows)),
            length,
        };
        let flows: Vec<_> = (0..flows).map(flow).collect();
        let mut tx = AccountProgram::attach(
            "a",
            XdpMode::Driver,
            Sizes {
                flows: flows.len() as u32,
                windows: 1,
            },
        )
        .expect("a program");
        let generator = tx.generator().expect("the sender's programs");
        let constant = tx.constant().expect("the reference's program");
        let plan = TrafficPlan {
            interface: "a",
            run: 1,
            flows: &flows,
            addresses: Addresses {
                source_mac: [2, 0, 0, 0, 0, 1],
                destination_mac: [2, 0, 0, 0, 0, 2],
                source_ip: Ipv4Addr::new(192, 0, 2, 1).into(),
                destination_ip: Ipv4Addr::new(192, 0, 2, 2).into(),
            },
            receivers: &[],
            line_rate: LineRate::from_bits_per_second(LINE).expect("in range"),
            max_burst: 4 * MS,
            epoch: clock::now(),
            width: 10 * MS,
            windows: 1,
            cpus: &[],
        };
        let sender = LiveFrames::open(&plan, generator.clone(), &[cpu], None).expect("a sender");
        let port = nix::net::if_::if_nametoindex("a").expect("it exists");
        Self {
            _tx: tx,
            generator,
            constant,
            sender,
            cpu,
            port,
            frame: (0..length).map(|at| at as u8).collect(),
        }
    }

    /// Returns million frames per second of CPU time.
    fn measure(&mut self, kind: Kind) -> f64 {
        let share = self.generator.flows.entries() as u64;
        // A burst without end; this thread sends it instead of the worker.
        self.sender.prepare(Burst {
            phase: Phase::Baseline,
            from: clock::now(),
            to: u64::MAX,
            load: 100,
        });
        let worker = self.generator.workers.get(self.cpu);
        assert_eq!(worker.end, share);
        let run = |runs| match kind {
            Kind::Generate => {
                self.generator
                    .run(self.port, &self.frame, runs, worker.batch_runs as u32)
            }
            Kind::Constant { mask } => {
                self.generator.workers.set(
                    self.cpu,
                    &Worker {
                        look: mask,
                        end: 1,
                        ..Worker::default()
                    },
                );
                self.constant.run(self.port, &self.frame, runs)
            }
        };
        run(BATCH * 100).expect("live frames");
        let (before, started) = (self.frames(), cpu_time());
        match kind {
            // In calls, as the sender does, which may be stopped between two of them.
            Kind::Generate => (0..FRAMES / CALL).for_each(|_| run(CALL).expect("live frames")),
            Kind::Constant { .. } => run(FRAMES).expect("live frames"),
        }
        let (frames, passed) = (self.frames() - before, cpu_time() - started);
        assert!(
            frames > u64::from(FRAMES) / 2,
            "{frames} frames left in {FRAMES} runs: not saturated"
        );
        frames as f64 * 1e3 / passed as f64
    }

    fn frames(&self) -> u64 {
        (0..self.generator.flows.entries())
            .map(|flow| self.generator.flows.get(flow).sequence)
            .sum()
    }
}

fn cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("it exists");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Attaches a program that does nothing but XDP_DROP.
fn drop_all(interface: &str) -> [OwnedFd; 2] {
    /// `r0 = XDP_DROP; exit`.
    const CODE: [u64; 2] = [0x0000_0001_0000_00b7, 0x95];
    const PROG_LOAD: libc::c_long = 5;
    const LINK_CREATE: libc::c_long = 28;
    const XDP: u32 = 6;
    const ATTACH_XDP: u32 = 37;
    const DRIVER: u32 = 1 << 2;
    let license = c"GPL";
    let load: [u64; 4] = [
        u64::from(XDP) | 2 << 32,
        CODE.as_ptr() as u64,
        license.as_ptr() as u64,
        0,
    ];
    let call = |command: libc::c_long, attributes: *const u8, length: usize| {
        // SAFETY: the kernel reads as many octets as it is told, of values that outlive the call.
        let fd = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, length) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: a new descriptor with no other owner.
        unsafe { OwnedFd::from_raw_fd(fd as i32) }
    };
    let program = call(PROG_LOAD, load.as_ptr().cast(), size_of_val(&load));
    let index = nix::net::if_::if_nametoindex(interface).expect("it exists");
    let attach = [program.as_raw_fd() as u32, index, ATTACH_XDP, DRIVER];
    let link = call(LINK_CREATE, attach.as_ptr().cast(), size_of_val(&attach));
    [program, link]
}
