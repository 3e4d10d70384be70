//! Attaching to interfaces. Each test runs in a network namespace that ends with its thread.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use pfc_ebpf::abi::Trust;
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::{AccountProgram, Sizes, XdpError, XdpMode};
use validator::driver::kernel::packet::PacketSocket;

use crate::frames::TestFrame;
use crate::xdp::{config, flows, stamp};

const SIZES: Sizes = Sizes {
    flows: 8,
    windows: 8,
};
/// Longest wait for a frame that was sent: only a failure takes as long.
const PATIENCE: Duration = Duration::from_secs(60);

fn ip(arguments: &str) -> String {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .expect("iproute2 is needed");
    assert!(
        output.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs `test` in a new network namespace with a veth pair `a`, `b`.
fn with_veth(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("root is needed");
            ip("link add name a type veth peer name b");
            ip("link set dev a up");
            ip("link set dev b up");
            test();
        });
    });
}

fn send(interface: &str, frames: &[Vec<u8>]) {
    let socket = PacketSocket::open(interface).unwrap();
    for frame in frames {
        socket.send(frame).unwrap();
    }
}

fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !reached() {
        assert!(begin.elapsed() < PATIENCE, "{what} was not reached");
        std::thread::yield_now();
    }
}

fn frames() -> Vec<Vec<u8>> {
    let mut frames: Vec<_> = (0..10)
        .map(|sequence| {
            TestFrame {
                payload: 982,
                ..TestFrame::new(stamp(3, sequence))
            }
            .octets()
        })
        .collect();
    frames.push(
        TestFrame {
            tags: vec![(0x8100, 3 << 13)],
            ..TestFrame::new(stamp(3, 10))
        }
        .octets(),
    );
    frames.push(
        MacControl::Pfc {
            vector: 8,
            quanta: [9; 8],
        }
        .emit([2, 0, 0, 0, 0, 5])
        .to_vec(),
    );
    frames
}

/// Frames from `a` are counted at `b`, in full.
fn counts(account: &mut AccountProgram) {
    account.configure(&config(Trust::Dscp), &flows(8)).unwrap();
    send("a", &frames());
    wait_until("a PFC frame at b", || {
        account.port().unwrap().pfc_frames == 1
    });
    let flow = account.flows().unwrap().remove(0);
    assert_eq!(
        (
            flow.frames,
            flow.corrupt,
            flow.remarked,
            flow.reordered,
            flow.duplicate
        ),
        (11, 0, 0, 0, 0)
    );
    assert_eq!(
        account.port_counters().unwrap().tagged(),
        1,
        "a tag stands in the frame"
    );
}

fn error(interface: &str, mode: XdpMode) -> XdpError {
    match AccountProgram::attach(interface, mode, SIZES) {
        Ok(_) => panic!("attached to {interface} in {mode:?}"),
        Err(error) => error,
    }
}

#[test]
fn root_frames_on_a_wire_are_counted_in_both_modes() {
    for (mode, word) in [
        (XdpMode::Auto, "driver"),
        (XdpMode::Driver, "driver"),
        (XdpMode::Skb, "skb"),
    ] {
        with_veth(move || {
            let mut account = AccountProgram::attach("b", mode, SIZES).unwrap();
            assert_eq!(account.mode(), word);
            assert!(ip("link show dev b").contains("prog/xdp"));
            counts(&mut account);
            drop(account);
            // A link is taken down after the last descriptor is closed, not while.
            wait_until("an interface without a program", || {
                !ip("link show dev b").contains("prog/xdp")
            });
        });
    }
}

#[test]
fn root_atomics_are_spared_where_one_queue_is_all_there_is() {
    let wanted = pfc_ebpf::abi::account::Config {
        exclusive: 1,
        ..config(Trust::Dscp)
    };
    let granted = |interface: &str, mode| {
        let mut account = AccountProgram::attach(interface, mode, SIZES).unwrap();
        account.configure(&wanted, &flows(8)).unwrap();
        account.configured().exclusive
    };
    with_veth(|| {
        ip("link add name c numrxqueues 2 numtxqueues 2 type veth \
             peer name d numrxqueues 2 numtxqueues 2");
        assert_eq!(
            (
                granted("b", XdpMode::Driver),
                granted("a", XdpMode::Skb),
                granted("d", XdpMode::Driver)
            ),
            (1, 0, 0)
        );
    });
}

#[test]
fn root_the_log_is_read_whole_while_it_is_written() {
    let pfc = |quanta| {
        MacControl::Pfc {
            vector: 0xff,
            quanta: [quanta; 8],
        }
        .emit([2, 0, 0, 0, 0, 5])
        .to_vec()
    };
    with_veth(move || {
        let mut account = AccountProgram::attach("b", XdpMode::Driver, SIZES).unwrap();
        account.configure(&config(Trust::Dscp), &flows(8)).unwrap();
        let mut quanta = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| send("a", &(1..=1000).map(pfc).collect::<Vec<_>>()));
            wait_until("a thousand PFC frames", || {
                let controls = account.take_rings().unwrap().controls;
                assert!(
                    controls
                        .iter()
                        .all(|record| record.quanta == [record.quanta[0]; 8])
                );
                quanta.extend(controls.iter().map(|record| record.quanta[0]));
                quanta.len() == 1000
            });
        });
        quanta.sort();
        assert!(quanta.into_iter().eq(1..=1000), "each was taken once");
    });
}

#[test]
fn root_without_support_by_the_driver_the_mode_is_skb() {
    with_veth(|| {
        assert_eq!(
            AccountProgram::attach("lo", XdpMode::Auto, SIZES)
                .unwrap()
                .mode(),
            "skb"
        );
        let error = error("lo", XdpMode::Driver);
        assert!(
            matches!(error, XdpError::Refused { mode: "driver", .. }),
            "{error}"
        );
    });
}

#[test]
fn root_a_program_that_is_attached_is_named_and_stays() {
    for (first, second) in [
        (XdpMode::Driver, XdpMode::Auto),
        (XdpMode::Driver, XdpMode::Skb),
        (XdpMode::Skb, XdpMode::Driver),
        (XdpMode::Skb, XdpMode::Skb),
    ] {
        with_veth(move || {
            let mut account = AccountProgram::attach("b", first, SIZES).unwrap();
            let message = error("b", second).to_string();
            assert!(
                message.contains("`b` already has an XDP program, `account` (id "),
                "{message}"
            );
            counts(&mut account);
        });
    }
}

#[test]
fn root_an_interface_that_does_not_exist_is_named() {
    with_veth(|| {
        assert!(
            error("nowhere", XdpMode::Auto)
                .to_string()
                .contains("no interface `nowhere`")
        )
    });
}
