//! Frames that scapy made: field layouts, lengths and checksums are another implementation's.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::LazyLock;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::wire::Malformed;
use validator::driver::bpf::AccountProgram;

use crate::xdp::{DROP, loaded};

/// Debian's own interpreter, for which its package python3-scapy is.
const PYTHON: &str = "/usr/bin/python3";

static FRAMES: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(|| {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/xdp/scapy_frames.py");
    let output = Command::new(PYTHON)
        .arg(script)
        .output()
        .expect("Debian's python3 is needed");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "Debian's package python3-scapy is needed: {stderr}"
    );
    let line = |line: &str| {
        let (name, octets) = line.split_once(' ').unwrap();
        let octet = |at| u8::from_str_radix(&octets[at..at + 2], 16).unwrap();
        (
            name.to_owned(),
            (0..octets.len()).step_by(2).map(octet).collect(),
        )
    };
    stdout.lines().map(line).collect()
});

/// The frames whose names begin so went through a program.
fn counted(prefix: &str) -> (AccountProgram, usize) {
    let account = loaded(Trust::Dscp);
    let chosen: Vec<_> = FRAMES
        .iter()
        .filter(|(name, _)| name.starts_with(prefix))
        .collect();
    for (name, octets) in &chosen {
        assert_eq!(account.test_run(octets, 1).unwrap().action, DROP, "{name}");
    }
    (account, chosen.len())
}

fn malformed(name: &str) -> Vec<(Malformed, u64)> {
    let port = counted(name).0.port().unwrap();
    assert_eq!(
        (port.frames, port.pause.xoff, port.pfc_frames, port.other),
        (1, 0, 0, 0)
    );
    port.malformed
}

#[test]
fn root_test_frames_of_scapy_are_accounted() {
    let (account, count) = counted("test-");
    let flows = account.flows().unwrap();
    assert_eq!(flows.len(), 1);
    assert_eq!((count, flows[0].frames), (10, 10));
    assert_eq!(
        (flows[0].corrupt, flows[0].remarked),
        (1, 1),
        "only those that were made so"
    );
    assert_eq!(account.port().unwrap().malformed, []);
    assert_eq!(account.port_counters().unwrap().tagged(), 3);
}

#[test]
fn root_corrupt_and_remarked_frames_of_scapy_are_told() {
    let flow = |name| counted(name).0.flows().unwrap().remove(0);
    assert_eq!(
        (
            flow("test-checksum-wrong").corrupt,
            flow("test-checksum-wrong").remarked
        ),
        (1, 0)
    );
    assert_eq!(
        (
            flow("test-remarked").corrupt,
            flow("test-remarked").remarked
        ),
        (0, 1)
    );
}

#[test]
fn root_pause_frames_of_scapy_are_counted() {
    let port = counted("pause-x").0.port().unwrap();
    assert_eq!(
        (
            port.frames,
            port.pause.xoff,
            port.pause.xon,
            port.pfc_frames
        ),
        (2, 1, 1, 0)
    );
    assert_eq!(
        counted("pause-xoff").0.port().unwrap().pause.last_quanta,
        0x1234
    );
}

#[test]
fn root_pfc_frames_of_scapy_are_counted_by_priority() {
    let classes = |name| {
        let port = counted(name).0.port().unwrap();
        assert_eq!(
            (port.frames, port.pfc_frames, port.malformed.len()),
            (1, 1, 0)
        );
        (
            port.pfc_empty,
            port.pfc
                .map(|class| (class.xoff, class.xon, class.last_quanta)),
        )
    };
    let mut expected = [(0, 0, 0); 8];
    assert_eq!(classes("pfc-zero-vector"), (1, expected));
    expected[3] = (1, 0, 0xffff);
    assert_eq!(classes("pfc-xoff"), (0, expected));
    expected[3] = (0, 1, 0);
    assert_eq!(classes("pfc-xon"), (0, expected));
    assert_eq!(
        classes("pfc-all"),
        (
            0,
            std::array::from_fn(|priority| (1, 0, 100 + priority as u16))
        )
    );
}

#[test]
fn root_broken_control_frames_of_scapy_are_counted_by_reason() {
    assert_eq!(
        malformed("pfc-truncated"),
        [(Malformed::ControlTruncated, 1)]
    );
    assert_eq!(
        malformed("pause-truncated"),
        [(Malformed::ControlTruncated, 1)]
    );
    assert_eq!(malformed("wrong-opcode"), [(Malformed::ControlOpcode, 1)]);
    assert_eq!(malformed("pfc-tagged"), [(Malformed::ControlTagged, 1)]);
    assert_eq!(
        malformed("pfc-unicast"),
        [(Malformed::ControlDestination, 1)]
    );
}
