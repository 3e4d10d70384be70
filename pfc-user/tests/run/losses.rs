//! Losses of the tester's own sender in the middle of the traffic: no check is judged by what they
//! may explain.

use std::fs;
use std::os::fd::AsRawFd;
use std::process::Child;
use std::time::Duration;

use nix::sys::socket::{MsgFlags, recv};

use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::realtime;
use validator::report;
use validator_core::evidence::Repetition;

use crate::common;
use crate::napi;
use crate::packet_socket::packet_socket;
use crate::run::external::External;
use crate::run::lab::{Lab, ip, wait_until};
use crate::run::outcome::{Outcome, set};

/// The sender's words for frames that the port did not take.
const NOT_TAKEN: &str = "live frames the driver did not take";
/// Least number of frames that the port loses.
const LOST: u64 = 1000;
/// Longest wait for a frame of the storm.
const PATIENCE: Duration = Duration::from_secs(20);
/// The DUT's port that receives the frames.
const PORT: &str = "p0";

/// A run with live frames through a Linux bridge, at the time of the storm's data. It measures
/// once, for a further attempt would be without the disturbance.
struct Disturbed {
    external: External,
    run: Child,
}

impl Disturbed {
    fn new(lab: &mut Lab) -> Self {
        let external = External::new(lab);
        let dut = &external.dut;
        ip(&format!(
            "-n {dut} link add name bridge type bridge mcast_snooping 0"
        ));
        ip(&format!("-n {dut} link set dev bridge up"));
        for port in [PORT, "p1"] {
            // A veth accepts frames from XDP while its other end is up and has GRO.
            ip(&format!("netns exec {dut} ethtool -K {port} gro on"));
            ip(&format!("-n {dut} link set dev {port} master bridge"));
        }
        let dut = Namespace::named(dut).unwrap();
        let storm = dut.run(|| packet_socket("p1", PATIENCE)).unwrap();
        let testbed = lab.file("testbed.toml", &external.testbed("[3]", ""));
        let plan = lab.plan("3s", &[("pause-lossy", "lossless = [3]")]);
        let run = lab.start(&format!(
            "--testbed {testbed} --plan {plan} --format json --set testbed.ports.sender=live-frames \
             --set testbed.limits.attempts=1"
        ));
        let mut disturbed = Self { external, run };
        // Each of the three probes that come first has one pause frame.
        let mut pauses = 0;
        let mut frame = [0; 64];
        while pauses < 5 {
            let received = recv(storm.as_raw_fd(), &mut frame, MsgFlags::empty());
            let Ok(length) = received else {
                panic!("no storm: {:?}", disturbed.end());
            };
            pauses += u32::from(length == 60 && frame[12..14] == [0x88, 0x08]);
        }
        let data = || dut.run(|| counter(PORT, RECEIVED)).unwrap();
        let before = data();
        wait_until("data in the storm", || {
            data() > before + 200 || disturbed.run.try_wait().unwrap().is_some()
        });
        if disturbed.run.try_wait().unwrap().is_some() {
            panic!("it ended before: {:?}", disturbed.end());
        }
        disturbed
    }

    fn end(self) -> Outcome {
        Outcome::of(self.run.wait_with_output().unwrap())
    }
}

/// Columns of /proc/net/dev.
const RECEIVED: usize = 1;
const TX_DROPPED: usize = 11;

/// Reads a counter of a port in the calling thread's network namespace.
fn counter(port: &str, column: usize) -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = table
        .lines()
        .find_map(|line| line.trim().strip_prefix(port)?.strip_prefix(':'))
        .unwrap();
    line.split_ascii_whitespace()
        .nth(column)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn root_live_frames_that_the_driver_does_not_take_leave_the_checks_undecided() {
    let test = "root_live_frames_that_the_driver_does_not_take_leave_the_checks_undecided";
    let Some([_, cpu]) = common::need_two_cpus(test) else {
        return;
    };
    let Some(mut lab) = Lab::new(test).filter(|_| common::need_tool(test, "ethtool")) else {
        return;
    };
    let mut disturbed = Disturbed::new(&mut lab);
    let (External { tester, dut }, run) = (&disturbed.external, &mut disturbed.run);
    // Frames wait for a kernel thread, which has to wait for one of the test: its ring overflows.
    Namespace::named(dut)
        .unwrap()
        .run(|| napi::receive_on(PORT, cpu))
        .unwrap()
        .unwrap();
    let hog = || {
        assert!(realtime::pin(cpu) && realtime::enter_fifo(realtime::STORM));
        while counter("tx", TX_DROPPED) < LOST && run.try_wait().unwrap().is_none() {}
    };
    Namespace::named(tester).unwrap().run(hog).unwrap();
    let ended = disturbed.end();
    let report = ended.report();
    assert_eq!(
        (ended.code, report.checks("fail"), report.checks("error")),
        (Some(3), set(&[]), set(&[])),
        "{}",
        report.reasons("fail")
    );

    let evidence = report::read_evidence(&lab.out()).unwrap();
    assert_eq!(evidence.cases[0].error, None);
    let measured = evidence.cases[0]
        .repetitions
        .first()
        .and_then(Repetition::pfc)
        .unwrap();
    assert_eq!(measured.sender.method, "live frames, 1 core");
    let [sent, received] = [
        measured
            .sender
            .flows
            .iter()
            .map(|flow| flow.frames)
            .sum::<u64>(),
        measured.received.iter().map(|flow| flow.frames).sum(),
    ];
    // A veth counts the same frames twice; they are reported once.
    let of = |name: &str| {
        measured
            .accounting
            .iter()
            .find(|counter| counter.counter == name)
            .map_or(0, |counter| counter.rise)
    };
    let lost = of(NOT_TAKEN).max(of("tx_dropped"));
    assert!(
        lost >= LOST && sent >= received + lost,
        "{:?}, {sent} sent, {received} received",
        measured.accounting
    );
    let undecided = report.reasons("inconclusive");
    assert!(
        undecided.contains("accounting: drops on the tester's own side: "),
        "{undecided}"
    );
    assert!(
        [NOT_TAKEN, "tx_dropped"]
            .iter()
            .any(|name| undecided.contains(&format!("{name} +{lost}"))),
        "{undecided}"
    );
    // All checks that rest on frames that should have arrived.
    let open = report.checks("inconclusive");
    assert!(
        set(&["lossy test-traffic", "lossy background", "lossy no-dip"]).is_subset(&open),
        "{open:?}"
    );
}

#[test]
fn root_live_frames_that_the_port_takes_no_more_end_the_case_with_the_reason() {
    let test = "root_live_frames_that_the_port_takes_no_more_end_the_case_with_the_reason";
    let Some(mut lab) = Lab::new(test).filter(|_| common::need_tool(test, "ethtool")) else {
        return;
    };
    // The port reports it (NDO_XMIT), and the kernel hands it nothing more.
    let disturbed = Disturbed::new(&mut lab);
    ip(&format!(
        "netns exec {} ethtool -K {PORT} gro off",
        disturbed.external.dut
    ));
    let ended = disturbed.end();
    let report = ended.report();
    assert_eq!((ended.code, report.checks("fail")), (Some(3), set(&[])));
    let case = report.case("pause-lossy");
    let reason = "lossless 3: cannot send on tx: Operation not supported (os error 95)";
    assert_eq!(
        (case["verdict"].as_str(), case["reason"].as_str()),
        (Some("error"), Some(reason))
    );
}
