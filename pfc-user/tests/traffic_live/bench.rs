//! A veth pair in a network namespace of its own, with the accounting program at both ends.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{Config, FlowConfig};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::LineRate;
use validator::driver::bpf::{AccountProgram, Sizes, XdpMode};
use validator::driver::kernel::clock;
use validator::driver::traffic::live_frames::LiveFrames;
use validator::driver::traffic::{Addresses, Burst, Sent, Source, TrafficError, TrafficPlan};
use validator_core::plan::{FlowPlan, Nanos};

use crate::traffic_wire::wire;
pub use crate::traffic_wire::{endless, flow, priority, v4, v6};

pub const MS: Nanos = 1_000_000;
pub const HOUR: Nanos = 3_600_000 * MS;
pub const RUN: u16 = 0x5678;
pub const WINDOWS: u32 = 64;
pub const WIDTH: Nanos = 10 * MS;
/// As fast as the sender knows.
pub const LINE: u64 = 1_600_000_000_000;

/// Runs `test` in a thread with a network namespace of its own that has a veth pair, `a` and `b`,
/// both up, with an MTU for long frames. The namespace ends with the thread and its descriptors.
pub fn on_a_wire<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    wire::on_a_wire(|| {
        wire::ip("link set dev a mtu 3390");
        wire::ip("link set dev b mtu 3390");
        test()
    })
}

/// The rate of so many frames a second.
pub fn rate(frames: u64, length: usize) -> u64 {
    frames * LineRate::frame_bits(length)
}

/// The programs at both ends, and a sender at `a`.
pub struct Wire {
    pub tx: AccountProgram,
    pub rx: AccountProgram,
    pub sender: LiveFrames,
    pub epoch: Nanos,
}

/// Parameters that differ from test to test.
pub struct Setup<'a> {
    pub flows: &'a [FlowPlan],
    pub addresses: Addresses,
    pub line: u64,
    /// The line rate that pause times are taken at.
    pub pause_line: u64,
    pub max_burst: Nanos,
    pub cpus: &'a [usize],
    /// Number of further flows that the program has room for.
    pub room: u32,
    /// The far end lets frames pass to the stack, for a capture.
    pub passes: bool,
    /// The far end keeps a record of each arrival of this phase.
    pub logged: Option<Phase>,
}

impl<'a> Setup<'a> {
    pub fn new(flows: &'a [FlowPlan]) -> Self {
        Self {
            flows,
            addresses: v4(),
            line: LINE,
            pause_line: LINE,
            max_burst: 4 * MS,
            cpus: &[0],
            room: 0,
            passes: false,
            logged: None,
        }
    }

    pub fn open(&self) -> Result<Wire, TrafficError> {
        let sizes = Sizes {
            flows: self.flows.len() as u32,
            windows: WINDOWS,
        };
        let mut tx = AccountProgram::attach(
            "a",
            XdpMode::Driver,
            Sizes {
                flows: sizes.flows + self.room,
                ..sizes
            },
        )
        .unwrap();
        let mut rx = AccountProgram::attach("b", XdpMode::Driver, sizes).unwrap();
        let epoch = clock::now();
        configure(&mut tx, self.flows, self.pause_line, epoch, None);
        if !self.passes {
            configure(&mut rx, self.flows, self.pause_line, epoch, self.logged);
        }
        let generator = tx.generator().unwrap();
        let sender = LiveFrames::open(&self.plan(epoch), generator, self.cpus, None)?;
        Ok(Wire {
            tx,
            rx,
            sender,
            epoch,
        })
    }

    pub fn plan(&self, epoch: Nanos) -> TrafficPlan<'a> {
        TrafficPlan {
            interface: "a",
            run: RUN,
            flows: self.flows,
            addresses: self.addresses,
            receivers: &[],
            line_rate: LineRate::from_bits_per_second(self.line).unwrap(),
            max_burst: self.max_burst,
            epoch,
            width: WIDTH,
            windows: WINDOWS as usize,
            cpus: &[],
        }
    }
}

fn configure(
    account: &mut AccountProgram,
    flows: &[FlowPlan],
    line: u64,
    epoch: Nanos,
    logged: Option<Phase>,
) {
    let log_phases = logged.map_or(0, Phase::bit);
    let config = Config {
        epoch,
        window: WIDTH,
        windows: WINDOWS,
        run: RUN,
        trust: Trust::Dscp as u8,
        line_rate: line,
        dscp_to_priority: std::array::from_fn(|dscp| dscp as u8 % 8),
        verify_every: 1,
        ..Config::default()
    };
    let flows: Vec<_> = flows
        .iter()
        .map(|flow| FlowConfig {
            mark: flow.dscp.get(),
            log_phases,
            priority: flow.priority.get(),
            length: flow.untagged_length() as u16,
            ..FlowConfig::default()
        })
        .collect();
    account.configure(&config, &flows).unwrap();
}

impl Wire {
    /// Frames of a flow that have arrived.
    pub fn received(&self, flow: u16) -> u64 {
        let received = self.rx.flows().unwrap();
        let of_it = received.iter().filter(|received| received.flow == flow);
        of_it.map(|received| received.frames).sum()
    }

    /// Runs a burst of that length to its end. On a busy machine it may be over before a frame has
    /// left.
    pub fn burst(&mut self, phase: Phase, length: Nanos) -> Burst {
        let from = clock::now() + MS;
        let burst = Burst {
            phase,
            from,
            to: from + length,
            load: 100,
        };
        self.sender.start(burst).unwrap();
        assert!(self.sender.wait(clock::now() + HOUR).unwrap());
        burst
    }

    /// Sends until `frames` of each flow have been let go.
    pub fn send(&mut self, phase: Phase, frames: u64) -> Burst {
        let generator = self.tx.generator().unwrap();
        let let_go = || {
            (0..generator.flows.entries())
                .map(|flow| generator.flows.get(flow).sequence)
                .min()
                .unwrap()
        };
        let wanted = let_go() + frames;
        let burst = endless(phase, clock::now() + MS);
        self.sender.start(burst).unwrap();
        until(|| let_go() >= wanted);
        self.sender.stop().unwrap();
        burst
    }
}

/// Waits for an event that has to come.
pub fn until(mut event: impl FnMut() -> bool) {
    let end = clock::now() + HOUR;
    while !event() {
        assert!(clock::now() < end);
        // The map that tells of it cannot be waited for; the sender needs the CPU.
        clock::sleep_until(clock::now() + MS / 5);
    }
}

/// Asserts that every frame sent was received once and in order, or is reported as lost.
pub fn assert_exact(wire: &Wire, sent: &Sent) {
    let missing = lost(sent);
    let received = || wire.rx.flows().unwrap();
    // Frames in the last batch may still be on their way.
    until(|| received().iter().map(|flow| flow.frames).sum::<u64>() >= total(sent) - missing);
    let received = received();
    for flow in &received {
        let left = sent
            .report
            .flows
            .iter()
            .find(|sent| (sent.flow, sent.phase) == (flow.flow, flow.phase))
            .expect("it was sent");
        assert_eq!(
            (
                flow.duplicate,
                flow.reordered,
                flow.beyond_window,
                flow.corrupt,
                flow.remarked
            ),
            (0, 0, 0, 0, 0),
            "{flow:?}"
        );
        assert!(flow.frames <= left.frames, "{flow:?} {left:?}");
        assert!(left.first <= flow.first, "{flow:?} {left:?}");
        if missing == 0 {
            assert_eq!(flow.frames, left.frames);
            assert!(left.last <= flow.last, "{flow:?} {left:?}");
        }
    }
    assert_eq!(
        received.iter().map(|flow| flow.frames).sum::<u64>(),
        total(sent) - missing
    );
    let offered: u64 = sent
        .offered
        .iter()
        .flatten()
        .map(|frames| u64::from(*frames))
        .sum();
    assert_eq!(offered, total(sent));
}

/// Frames let go, in all.
pub fn total(sent: &Sent) -> u64 {
    sent.report.flows.iter().map(|flow| flow.frames).sum()
}

/// Frames that the kernel lost.
pub fn lost(sent: &Sent) -> u64 {
    sent.lost.iter().map(|(_, lost)| lost).sum()
}
