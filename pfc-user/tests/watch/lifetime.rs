//! Ports that change or disappear while they are watched, and the traces that the command leaves at
//! each kind of end.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use aya::programs::{SchedClassifier, TcAttachType};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use pcap_file::pcapng::{Block, PcapNgReader};
use pfc_ebpf::wire::mac_control::MacControl;

use crate::common::{need_root, need_tool};
use crate::roce_frames::Request;
use crate::watch::exposition::{listening, of_t0, scrape};
use crate::watch::lab::{BEYOND, Lab, PATIENCE, refused};

/// Programs on the ports of the tester: XDP, and tcx on t0 in both directions.
fn attached(lab: &Lab) -> usize {
    let links = lab.ip(&lab.tester, "link show");
    let query = |kind| {
        lab.tester
            .run(move || SchedClassifier::query_tcx("t0", kind))
            .unwrap()
            .unwrap()
            .1
            .len()
    };
    // One that was removed has none.
    let tcx = if links.contains(" t0@") {
        query(TcAttachType::Ingress) + query(TcAttachType::Egress)
    } else {
        0
    };
    links.matches("prog/xdp").count() + tcx
}

#[test]
fn root_an_interface_that_is_removed_ends_and_the_last_ends_the_command() {
    if !need_root("root_an_interface_that_is_removed_ends_and_the_last_ends_the_command") {
        return;
    }
    let lab = Lab::new();
    let mut running = lab.watch("t0 t1 --interval 50ms");
    lab.device_port().send(&Request::new(7).octets()).unwrap();
    running.wait_for("a frame", |object| {
        object["interface"] == "t0" && object["total"]["frames"] == 1
    });
    lab.ip(&lab.tester, "link delete t0");
    let event = running.event("removed");
    assert_eq!(event["interface"], "t0");
    assert!(
        event["message"].as_str().unwrap().contains("is gone"),
        "{event}"
    );
    running.wait_for("the other goes on", |object| {
        object["type"] == "counters" && object["interface"] == "t1"
    });
    lab.ip(&lab.tester, "link delete t1");
    assert_eq!(running.event("removed")["interface"], "t1");
    let (objects, code) = running.end();
    assert_eq!(code, Some(3));
    let summary = objects
        .iter()
        .find(|object| object["type"] == "summary" && object["interface"] == "t0")
        .unwrap();
    assert_eq!(summary["total"]["frames"], 1, "what it counted stays");
}

/// XOFF for priority 3.
fn xoff() -> Vec<u8> {
    let control = MacControl::Pfc {
        vector: 8,
        quanta: [0xffff; 8],
    };
    control.emit([2; 6]).to_vec()
}

#[test]
fn root_an_interface_that_comes_back_is_counted_on_and_its_series_end_meanwhile() {
    const NAME: &str =
        "root_an_interface_that_comes_back_is_counted_on_and_its_series_end_meanwhile";
    if !need_root(NAME) {
        return;
    }
    for more in ["t1", "t1 --attach tc", ""] {
        let lab = Lab::new();
        let (mut running, address) = listening(&lab, format!("t0 --interval 20ms {more}").trim());
        let held = of_t0("pfc_xoff_frames_total", &[("priority", "3")]);
        let await_held = |count: f64| {
            let begin = Instant::now();
            while scrape(&lab, address).get(&held) != Some(&count) {
                assert!(begin.elapsed() < PATIENCE, "{count}");
            }
        };
        lab.device_port().send(&xoff()).unwrap();
        await_held(1.0);
        lab.ip(&lab.tester, "link delete t0");
        running.event("removed");
        let series = scrape(&lab, address);
        let of_port = series.iter().filter(|((_, labels), _)| {
            labels
                .get("interface")
                .is_some_and(|interface| interface == "t0")
        });
        assert_eq!(
            of_port.collect::<Vec<_>>(),
            [(&of_t0("port_up", &[]), &0.0)]
        );
        // As udev gives an interface its name.
        lab.pair("new", 0);
        lab.ip(&lab.tester, "link set dev new down");
        lab.ip(&lab.tester, "link set dev new name t0");
        lab.ip(&lab.tester, "link set dev t0 up");
        assert_eq!(running.event("counted-again")["interface"], "t0");
        assert_eq!(scrape(&lab, address)[&of_t0("port_up", &[])], 1.0);
        for _ in 0..9 {
            lab.device_port().send(&xoff()).unwrap();
        }
        await_held(10.0);
        assert_eq!(running.summary("t0")["pfc_xoff_frames"]["3"], 10);
    }
}

#[test]
fn root_a_reader_that_stalls_holds_up_neither_the_end_nor_the_metrics() {
    if !need_root("root_a_reader_that_stalls_holds_up_neither_the_end_nor_the_metrics") {
        return;
    }
    let lab = Lab::new();
    let (mut running, address) = listening(&lab, "t0 t1 --interval 1ms");
    // Nobody reads from here on: the pipe and the queue are full after some hundred lines.
    let dropped = ("validator_output_dropped_total".to_owned(), BTreeMap::new());
    let begin = Instant::now();
    let lost = loop {
        let lost = scrape(&lab, address)[&dropped];
        if lost > 100.0 {
            break lost;
        }
        assert!(begin.elapsed() < PATIENCE, "nothing is dropped");
    };
    // Once somebody reads, the output says what is missing.
    running.wait_for("what was dropped", |event| {
        let message = event["message"].as_str().unwrap_or_default();
        let reported = message
            .strip_suffix(" dropped")
            .and_then(|rest| rest.rsplit(' ').next()?.parse().ok());
        event["event"] == "output-dropped" && reported >= Some(lost)
    });
    let later = scrape(&lab, address)[&dropped];
    while scrape(&lab, address)[&dropped] == later {
        assert!(begin.elapsed() < PATIENCE, "the rest was taken");
    }
    running.signal(Signal::SIGTERM);
    let (code, errors) = running.unread_end();
    assert_eq!(code, Some(130), "{errors}");
    assert!(errors.contains("was too slow"), "{errors}");
    wait_until_detached(&lab);

    let running = lab.watch("t0 t1 --interval 1ms --duration 3s");
    let (code, errors) = running.unread_end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("and the last ones"), "{errors}");
}

#[test]
fn root_carrier_and_mtu_are_noted_and_it_goes_on() {
    if !need_root("root_carrier_and_mtu_are_noted_and_it_goes_on") {
        return;
    }
    let lab = Lab::new();
    let (mut running, address) = listening(&lab, "t0 --interval 50ms");
    let carrier = || scrape(&lab, address)[&of_t0("port_carrier", &[])];
    assert_eq!(carrier(), 1.0);
    lab.ip(&lab.device, "link set dev d0 down");
    assert_eq!(running.event("carrier-lost")["interface"], "t0");
    assert_eq!(carrier(), 0.0);
    lab.ip(&lab.device, "link set dev d0 up");
    running.event("carrier-up");
    assert_eq!(carrier(), 1.0);
    lab.ip(&lab.tester, "link set dev t0 mtu 1400");
    assert_eq!(
        running.event("mtu")["message"],
        "MTU changed from 1500 to 1400"
    );
    lab.device_port().send(&Request::new(7).octets()).unwrap();
    running.wait_for("a frame", |object| object["total"]["roce_packets"] == 1);
    assert_eq!(running.summary("t0")["frames"], 1);
    wait_until_detached(&lab);
}

#[test]
fn root_each_signal_ends_it_with_what_was_measured_and_leaves_nothing() {
    if !need_root("root_each_signal_ends_it_with_what_was_measured_and_leaves_nothing") {
        return;
    }
    let lab = Lab::new();
    for (signal, arguments) in [
        (Signal::SIGINT, "t0"),
        (Signal::SIGTERM, "t0 --attach tc"),
        (Signal::SIGHUP, "--loss t0:t1"),
    ] {
        let running = lab.watch(arguments);
        assert!(attached(&lab) > 0, "{arguments}");
        running.signal(signal);
        let (objects, code) = running.end();
        assert_eq!(code, Some(130), "{signal}");
        assert!(
            objects.iter().any(|object| object["type"] == "summary"),
            "{objects:?}"
        );
        wait_until_detached(&lab);
    }
}

#[test]
fn root_nothing_stays_attached_when_it_is_killed() {
    if !need_root("root_nothing_stays_attached_when_it_is_killed") {
        return;
    }
    let lab = Lab::new();
    for (arguments, count) in [
        ("t0 t1", 2),
        ("t0 t1 --attach tc --loss t0:t1", 2),
        ("--loss t0:t1", 2),
    ] {
        let running = lab.watch(arguments);
        assert_eq!(attached(&lab), count, "{arguments}");
        running.signal(Signal::SIGKILL);
        assert_eq!(running.end().1, None);
        wait_until_detached(&lab);
    }
}

/// Until the last program of a pair is attached, at tcx egress of t0.
pub fn wait_until_attached(lab: &Lab) {
    let begin = Instant::now();
    let at_egress = || {
        lab.tester
            .run(|| SchedClassifier::query_tcx("t0", TcAttachType::Egress))
            .unwrap()
            .unwrap()
            .1
            .len()
    };
    while at_egress() == 0 {
        assert!(
            begin.elapsed() < PATIENCE,
            "nothing is attached at tcx egress"
        );
    }
}

#[test]
fn root_a_signal_ends_the_wait_before_a_window_at_once() {
    if !need_root("root_a_signal_ends_the_wait_before_a_window_at_once") {
        return;
    }
    let lab = Lab::new();
    let running = lab.start("--loss t0:t1 --max-latency 60min --duration 1s");
    wait_until_attached(&lab);
    running.signal(Signal::SIGINT);
    wait_until_detached(&lab);
    let (objects, code) = running.end();
    assert_eq!(code, Some(130));
    assert!(
        objects
            .iter()
            .any(|object| object["type"] == "summary" && object["interface"] == "t1"),
        "{objects:?}"
    );
    assert!(
        objects.iter().all(|object| object["type"] != "loss"),
        "no window, no judgement: {objects:?}"
    );
}

/// A link is taken down after the last descriptor is closed, not while.
pub fn wait_until_detached(lab: &Lab) {
    let begin = Instant::now();
    while attached(lab) > 0 {
        assert!(begin.elapsed() < PATIENCE, "a program is still attached");
    }
}

#[test]
fn root_the_duration_ends_it() {
    if !need_root("root_the_duration_ends_it") {
        return;
    }
    let (objects, code) = Lab::new()
        .watch("t0 --duration 100ms --interval 20ms")
        .end();
    assert_eq!(code, Some(0));
    assert!(objects.iter().any(|object| object["type"] == "counters"));
    assert_eq!(objects.last().unwrap()["type"], "summary");
}

/// The command with a pipe that nobody reads.
fn unread(arguments: &str) -> Command {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
    command.arg("watch").args(arguments.split(' '));
    command.stdout(writer).stderr(Stdio::piped());
    command
}

#[test]
fn root_a_closed_stdout_changes_no_exit_code_and_ends_only_what_has_no_other_end() {
    const NAME: &str =
        "root_a_closed_stdout_changes_no_exit_code_and_ends_only_what_has_no_other_end";
    if !need_root(NAME) {
        return;
    }
    let lab = Lab::new();
    let ends = |arguments: &str| {
        let output = lab.tester.run(|| unread(arguments).output());
        let output = output.unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments}");
        output.status.code()
    };
    assert_eq!(ends("t0"), Some(0));
    assert_eq!(ends("t0 --json"), Some(0));
    // Nothing was judged when nobody read on.
    assert_eq!(ends("--loss t0:t1"), Some(3));
    // Nothing comes back of what is sent, a frame every millisecond.
    let judged = "--loss t0:t1 --duration 100ms --max-latency 10ms";
    let ended = AtomicBool::new(false);
    let sender = lab.sender(26);
    thread::scope(|scope| {
        scope.spawn(|| {
            let begin = Instant::now();
            while !ended.load(Ordering::Relaxed) && begin.elapsed() < PATIENCE {
                sender.send_to(&[0; 100], (BEYOND, 9)).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let codes = [lab.watch(judged).end().1, ends(judged)];
        ended.store(true, Ordering::Relaxed);
        assert_eq!(codes, [Some(1); 2]);
    });

    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("frames.pcapng");
    let arguments = format!("t0 --interval 20ms --pcap {}", capture.display());
    let started = Instant::now();
    let mut child = lab
        .tester
        .run(|| unread(&arguments).spawn())
        .unwrap()
        .unwrap();
    // PFC with time 0, which the file takes.
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 1]);
    frame[12..16].copy_from_slice(&[0x88, 0x08, 0x01, 0x01]);
    while fs::metadata(&capture).map_or(0, |file| file.len()) < 4096 {
        assert!(started.elapsed() < PATIENCE, "no frame is in the capture");
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        lab.device_port().send(&frame).unwrap();
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn root_a_capture_that_cannot_begin_is_an_error() {
    if !need_root("root_a_capture_that_cannot_begin_is_an_error") {
        return;
    }
    let lab = Lab::new();
    let (code, message) = refused(&lab, "t0 --duration 300ms --pcap /dev/full");
    assert!(message.contains("--pcap: cannot write"), "{message}");
    assert_eq!(code, Some(2));
}

#[test]
fn root_a_capture_leads_to_no_other_file_and_waits_for_no_reader() {
    if !need_root("root_a_capture_leads_to_no_other_file_and_waits_for_no_reader") {
        return;
    }
    let lab = Lab::new();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious"), "kept").unwrap();
    symlink(at("precious"), at("link")).unwrap();
    mkfifo(&at("fifo"), Mode::S_IRWXU).unwrap();
    for (name, found) in [
        ("link", "found a symbolic link"),
        ("fifo", "found a FIFO that nobody reads"),
    ] {
        let arguments = format!("t0 --duration 300ms --pcap {}", at(name).display());
        let (code, message) = refused(&lab, &arguments);
        assert_eq!(code, Some(2), "{name}: {message}");
        assert!(message.contains(found), "{message}");
    }
    assert_eq!(fs::read(at("precious")).unwrap(), b"kept");

    // A descriptor that a shell passes is a link too.
    let script = "exec 3>\"$0\"; exec \"$1\" watch t0 --duration 100ms --pcap /dev/fd/3";
    let run = || {
        Command::new("sh")
            .args(["-c", script])
            .arg(at("passed"))
            .arg(env!("CARGO_BIN_EXE_validator"))
            .output()
    };
    let output = lab.tester.run(run).unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    PcapNgReader::new(File::open(at("passed")).unwrap()).unwrap();
}

/// Makes a FIFO that holds a page. Returns its reader, which has taken nothing yet.
fn unread_fifo(path: &Path) -> File {
    mkfifo(path, Mode::S_IRWXU).unwrap();
    let mut options = OpenOptions::new();
    // Without waiting for the writer.
    options.read(true).custom_flags(OFlag::O_NONBLOCK.bits());
    let reader = options.open(path).unwrap();
    fcntl(&reader, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    reader
}

#[test]
fn root_a_capture_whose_reader_stalls_holds_up_nobody_and_counts_what_is_missing() {
    const NAME: &str =
        "root_a_capture_whose_reader_stalls_holds_up_nobody_and_counts_what_is_missing";
    if !need_root(NAME) {
        return;
    }
    let lab = Lab::new();
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let mut reader = unread_fifo(&fifo);
    let arguments = format!("t0 --interval 50ms --pcap {}", fifo.display());
    let (running, address) = listening(&lab, &arguments);
    let count = |name: &str, labels: &[(&str, &str)]| scrape(&lab, address)[&of_t0(name, labels)];
    let (port, begin, mut sent) = (lab.device_port(), Instant::now(), 0_u32);
    // So few at a time that the kernel's buffer has room for all between two looks at it.
    while count("control_records_lost_total", &[]) == 0.0 {
        assert!(begin.elapsed() < PATIENCE, "nothing is missing of {sent}");
        (0..30).for_each(|_| port.send(&xoff()).unwrap());
        sent += 30;
    }
    while count("pfc_xoff_frames_total", &[("priority", "3")]) < f64::from(sent) {
        assert!(begin.elapsed() < PATIENCE, "not all of {sent} came");
    }
    let taken = thread::spawn(move || {
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
        let mut octets = Vec::new();
        reader.read_to_end(&mut octets).unwrap();
        octets
    });
    let missing = running.summary("t0")["control_records_lost"].as_u64();
    // Each block is whole, and each frame is in one or counted as missing.
    let octets = taken.join().unwrap();
    let mut blocks = PcapNgReader::new(&octets[..]).unwrap();
    let mut frames = 0;
    while let Some(block) = blocks.next_block() {
        frames += u64::from(matches!(block.unwrap(), Block::EnhancedPacket(_)));
    }
    assert_eq!(
        missing.map(|missing| missing + frames),
        Some(u64::from(sent))
    );
}

#[test]
fn root_a_capture_that_nobody_takes_holds_up_no_end() {
    if !need_root("root_a_capture_that_nobody_takes_holds_up_no_end") {
        return;
    }
    let lab = Lab::new();
    for (more, signal, expected) in [
        (" --duration 3s", None, 0),
        ("", Some(Signal::SIGTERM), 130),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let _reader = unread_fifo(&fifo);
        let arguments = format!("t0 --interval 50ms --pcap {}{more}", fifo.display());
        let mut running = lab.watch(&arguments);
        let port = lab.device_port();
        (0..100).for_each(|_| port.send(&xoff()).unwrap());
        running.wait_for("all frames", |object| object["total"]["frames"] == 100);
        if let Some(signal) = signal {
            running.signal(signal);
        }
        let (code, errors) = running.unread_end();
        assert_eq!(code, Some(expected), "{errors}");
        let message =
            "the reader of the capture was too slow: 0 frames were dropped, and the last ones";
        assert!(errors.contains(message), "{errors}");
    }
}

#[test]
fn root_a_capture_on_a_full_disk_ends_alone_and_is_no_success() {
    if !need_root("root_a_capture_on_a_full_disk_ends_alone_and_is_no_success") {
        return;
    }
    let lab = Lab::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("frames.pcapng");
    // Beyond the limit comes SIGXFSZ, and then the error.
    let arguments = format!("t0 --interval 50ms --pcap {}", file.display());
    let mut running = lab.limited(2048, &arguments);
    running.event("watching");
    let mut pfc = vec![0; 60];
    pfc[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 1]);
    pfc[12..16].copy_from_slice(&[0x88, 0x08, 0x01, 0x01]);
    (0..40).for_each(|_| lab.device_port().send(&pfc).unwrap());
    let ended = running.event("capture-ended");
    let message = ended["message"].as_str().unwrap();
    assert!(message.contains("--pcap: cannot be written"), "{message}");
    lab.device_port().send(&pfc).unwrap();
    running.wait_for("all frames", |object| object["total"]["frames"] == 41);
    let (message, code) = running.interrupted();
    assert!(message.contains("File too large"), "{message}");
    assert_eq!(code, Some(2));
}

#[test]
fn root_standard_output_on_a_full_disk_ends_alone_and_is_no_success() {
    if !need_root("root_standard_output_on_a_full_disk_ends_alone_and_is_no_success") {
        return;
    }
    let lab = Lab::new();
    let folder = tempfile::tempdir().unwrap();
    let ends = |arguments: &str| {
        let run = || {
            let full = fs::File::options().write(true).open("/dev/full").unwrap();
            Command::new(env!("CARGO_BIN_EXE_validator"))
                .arg("watch")
                .args(arguments.split(' '))
                .stdout(full)
                .output()
        };
        let output = lab.tester.run(run).unwrap().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            errors.matches("standard output cannot be written").count(),
            1,
            "{errors}"
        );
        output.status.code()
    };
    let capture = folder.path().join("frames.pcapng");
    for arguments in [
        "t0 --duration 300ms --interval 50ms",
        "t0 --interval 50ms",
        &format!("t0 --duration 300ms --pcap {}", capture.display()),
    ] {
        assert_eq!(ends(arguments), Some(2), "{arguments}");
    }
    assert!(
        fs::metadata(&capture).unwrap().len() > 0,
        "the rest went on"
    );
}

#[test]
fn root_interfaces_go_by_other_names_and_change_them() {
    if !need_root("root_interfaces_go_by_other_names_and_change_them") {
        return;
    }
    let lab = Lab::new();
    let other = "an-alternative-name-longer-than-fifteen";
    lab.ip(
        &lab.tester,
        &format!("link property add dev t0 altname {other}"),
    );
    let mut running = lab.watch(&format!("{other} --interval 50ms"));
    lab.ip(&lab.tester, "link set dev t0 down");
    lab.ip(&lab.tester, "link set dev t0 name renamed");
    assert_eq!(running.event("renamed")["interface"], "t0");
    lab.ip(&lab.tester, "link set dev renamed up");
    running.event("carrier-up");
    lab.device_port().send(&[0xff; 60]).unwrap();
    let counted = running.wait_for("a frame", |object| {
        object["total"]["frames"]
            .as_u64()
            .is_some_and(|frames| frames > 0)
    });
    assert_eq!(counted["interface"], "t0", "under one label");
    running.stopped();
}

#[test]
fn root_without_perfmon_the_capability_is_named() {
    if !need_root("root_without_perfmon_the_capability_is_named") {
        return;
    }
    let lab = Lab::new();
    let run = || {
        Command::new("setpriv")
            .args(["--bounding-set", "-all,+bpf,+net_admin,+net_raw"])
            .args([env!("CARGO_BIN_EXE_validator"), "watch", "t0"])
            .output()
    };
    let output = lab.tester.run(run).unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("lacks CAP_PERFMON"), "{errors}");
}

#[test]
fn too_few_descriptors_are_told() {
    let ends = |limit: &str, arguments: &str| {
        let program = env!("CARGO_BIN_EXE_validator");
        let command = format!("ulimit {limit}; exec {program} {arguments}");
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), errors)
    };
    for arguments in ["watch nowhere", "agent --listen 127.0.0.1:0", "list"] {
        let (code, errors) = ends("-n 8", arguments);
        assert_eq!(code, Some(2), "{errors}");
        assert!(
            errors.contains("may open 8 files at a time, expected at least 128"),
            "{errors}"
        );
    }
    assert_eq!(
        ends("-Sn 8", "list").0,
        Some(0),
        "raised where that is allowed"
    );
}

#[test]
fn root_what_cannot_be_watched_is_a_usage_error() {
    if !need_root("root_what_cannot_be_watched_is_a_usage_error") {
        return;
    }
    let lab = Lab::new();
    lab.ip(&lab.tester, "tuntap add dev tun9 mode tun");
    for (arguments, expected) in [
        ("nowhere", "there is no interface \"nowhere\""),
        ("nowhere", "there are: lo, t0, t1, tun9"),
        ("t0 t0", "t0 is named twice"),
        ("tun9", "tun9 carries packets without Ethernet headers"),
        (
            "t0 --pcap /nowhere/pause.pcapng",
            "--pcap: cannot write /nowhere/pause.pcapng",
        ),
        (
            "t0 --prometheus 192.0.2.77:9",
            "--prometheus: cannot listen on 192.0.2.77:9",
        ),
        ("t0 --interval 0s", "expected a time above 0"),
        ("t0 --loss t0", "expected two different interfaces"),
        (
            "lo --attach driver",
            "`lo` takes no XDP program in driver mode",
        ),
    ] {
        let (code, errors) = refused(&lab, arguments);
        assert_eq!(code, Some(2), "{arguments}: {errors}");
        assert!(errors.contains(expected), "{arguments}: {errors}");
    }
    assert_eq!(attached(&lab), 0);
}

#[test]
fn root_a_terminal_is_drawn_over_and_keeps_the_last_table() {
    const NAME: &str = "root_a_terminal_is_drawn_over_and_keeps_the_last_table";
    if !need_root(NAME) || !need_tool(NAME, "script") {
        return;
    }
    let lab = Lab::new();
    let command = format!(
        "stty cols 80 rows 24; {} watch t0 --duration 300ms --interval 50ms",
        env!("CARGO_BIN_EXE_validator")
    );
    let run = || {
        Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .stdin(Stdio::null())
            .output()
    };
    let output = lab.tester.run(run).unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text:?}");
    // The cursor moves up at least once by the four lines that were drawn: the port watched, the
    // columns, the port's title, and one row.
    assert!(text.contains("\x1b[4A"), "{text:?}");
    let last = text.rsplit("\x1b").next().unwrap();
    assert!(
        last.contains("t0 (xdp driver), DSCP sonic by default, 10 Gbit/s by the driver"),
        "{text:?}"
    );
    assert!(
        last.lines()
            .any(|line| line.split_whitespace().take(3).eq(["all", "0", "0"])),
        "{text:?}"
    );
}

#[test]
fn root_elsewhere_it_writes_a_line_a_port_and_interval_and_the_table_last() {
    if !need_root("root_elsewhere_it_writes_a_line_a_port_and_interval_and_the_table_last") {
        return;
    }
    let lab = Lab::new();
    let run = || {
        Command::new(env!("CARGO_BIN_EXE_validator"))
            .args("watch t0 t1 --duration 220ms --interval 100ms".split(' '))
            .output()
    };
    let output = lab.tester.run(run).unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.starts_with("watching t0 (xdp driver): priority by DSCP"),
        "{text}"
    );
    for port in ["t0", "t1"] {
        assert!(
            text.contains(&format!("{port} (xdp driver) | 0 frame/s | 0 bit/s\n")),
            "{text}"
        );
        assert!(
            text.contains(&format!("\n{port} (xdp driver), DSCP sonic by default")),
            "{text}"
        );
    }
    assert!(!text.contains('\x1b'), "{text:?}");
}
