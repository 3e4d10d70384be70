//! Tests without an adapter: the ABI against the kernel's own header, sysfs as a made-up tree, and
//! the transport with a socket in place of the file.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};

use super::*;
use crate::mad::{AttributeId, Status, Tid};
use crate::requester::{Outcome, Requester, StrayKind};
use crate::smp::Route;

const FOREVER: Duration = Duration::from_secs(600);

/// Prints the values that `abi` must have, one per line.
const ORACLE: &str = r#"
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/ioctl.h>
#include <rdma/ib_user_mad.h>
static void print(const void *p, size_t n) {
    for (size_t i = 0; i < n; i++) printf("%02x", ((const unsigned char *)p)[i]);
    printf("\n");
}
int main(void) {
    struct ib_user_mad_hdr h;
    struct ib_user_mad_reg_req r;
    memset(&h, 0, sizeof h);
    h.id = 3; h.status = 110; h.timeout_ms = 0x01020304; h.lid = htons(0x1234);
    print(&h, sizeof h);
    memset(&r, 0, sizeof r);
    r.method_mask[0] = 1ul << 5; r.mgmt_class = 0x81; r.mgmt_class_version = 1;
    print(&r, sizeof r);
    printf("%lu %lu %u\n", (unsigned long)IB_USER_MAD_REGISTER_AGENT,
           (unsigned long)IB_USER_MAD_ENABLE_PKEY, IB_USER_MAD_ABI_VERSION);
    return 0;
}
"#;

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Returns the output of the compiled oracle, or why there is none: no compiler or no header.
fn oracle(folder: &Path) -> Result<Vec<String>, String> {
    let program = folder.join("oracle");
    let gcc = Command::new("gcc")
        .args(["-xc", "-", "-o"])
        .arg(&program)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut gcc = gcc.map_err(|error| format!("needs gcc: {error}"))?;
    gcc.stdin
        .take()
        .expect("piped")
        .write_all(ORACLE.as_bytes())
        .expect("gcc reads it");
    let built = gcc.wait_with_output().expect("gcc ends");
    let messages = String::from_utf8_lossy(&built.stderr);
    if messages.contains("rdma/ib_user_mad.h: No such file") {
        return Err("needs <rdma/ib_user_mad.h> (linux-libc-dev)".into());
    }
    assert!(built.status.success(), "{messages}");
    let run = Command::new(program).output().expect("it was just built");
    Ok(String::from_utf8(run.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect())
}

/// Reports a skip in the same way as the tests of `pfc-user`.
fn skip(test: &str, reason: &str) {
    let line = format!("{test}: {reason}\n");
    match std::env::var_os("VALIDATOR_SKIPS") {
        Some(file) => OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap(),
        None => print!("skipped: {line}"),
    }
}

#[test]
fn the_abi_is_that_of_the_kernels_header() {
    let folder = tempfile::tempdir().unwrap();
    let lines = match oracle(folder.path()) {
        Ok(lines) => lines,
        Err(reason) => return skip("the_abi_is_that_of_the_kernels_header", &reason),
    };
    let header = Header {
        agent: 3,
        status: abi::TIMED_OUT,
        timeout_ms: 0x0102_0304,
        lid: Lid(0x1234),
    };
    assert_eq!(lines[0], hex(&header.octets()));
    assert_eq!(Header::parse(&header.octets()), header);
    let request = RegRequest::new(CLASS_SUBN_DIRECTED, &[Method::TRAP]);
    // SAFETY: a packed structure of integers has no octet that is not initialised.
    let octets = unsafe {
        std::slice::from_raw_parts((&raw const request).cast::<u8>(), size_of_val(&request))
    };
    assert_eq!(lines[1], hex(octets));
    let [register, enable_pkey] = abi::REQUESTS;
    assert_eq!(
        lines[2],
        format!("{register} {enable_pkey} {}", abi::VERSION)
    );
}

/// Makes a sysfs of these files and contents.
fn sysfs(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join("class").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{content}\n")).unwrap();
    }
    let path = folder.path().to_owned();
    (folder, path)
}

/// Two adapters: `mlx5_0` with an InfiniBand and an Ethernet port, and `hfi1_0`, whose umad is
/// missing.
const TREE: [(&str, &str); 13] = [
    ("infiniband/mlx5_0/ports/1/link_layer", "InfiniBand"),
    ("infiniband/mlx5_0/ports/2/link_layer", "Ethernet"),
    ("infiniband/hfi1_0/ports/1/link_layer", "InfiniBand"),
    ("infiniband_mad/abi_version", "5"),
    ("infiniband_mad/issm0/ibdev", "mlx5_0"),
    ("infiniband_mad/issm0/port", "1"),
    ("infiniband_mad/umad0/ibdev", "mlx4_0"),
    ("infiniband_mad/umad0/port", "1"),
    ("infiniband_mad/umad1/ibdev", "mlx5_0"),
    ("infiniband_mad/umad1/port", "2"),
    ("infiniband_mad/umad7/ibdev", "mlx5_0"),
    ("infiniband_mad/umad7/port", "1"),
    ("infiniband/mlx5_0/node_type", "1: CA"),
];

#[test]
fn a_port_is_found_by_device_and_number() {
    let (_folder, sysfs) = sysfs(&TREE);
    assert_eq!(discover::umad("mlx5_0", 1, &sysfs).unwrap(), "umad7");
}

#[test]
fn what_stands_in_the_way_is_named_with_what_to_do() {
    let (_folder, tree) = sysfs(&TREE);
    let (_other, newer) = sysfs(
        &[
            &TREE[..3],
            &[("infiniband_mad/abi_version", "6")],
            &TREE[4..],
        ]
        .concat(),
    );
    let (_nothing, nothing) = sysfs(&[]);
    for (device, port, sysfs, message) in [
        (
            "mlx5_1",
            1,
            &tree,
            "there is no RDMA device \"mlx5_1\": choose one of hfi1_0, mlx5_0",
        ),
        (
            "../infiniband/mlx5_0",
            1,
            &tree,
            "there is no RDMA device \"../infiniband/mlx5_0\": choose one of hfi1_0, mlx5_0",
        ),
        (
            "mlx5_0",
            1,
            &nothing,
            "there is no RDMA device \"mlx5_0\": nothing is there; load the adapter's driver",
        ),
        (
            "mlx5_0",
            3,
            &tree,
            "device mlx5_0 has no port 3: choose one of 1, 2",
        ),
        (
            "mlx5_0",
            2,
            &tree,
            "port 2 of mlx5_0 has link layer Ethernet, and only InfiniBand has subnet management \
             packets: choose another port, or set this one to InfiniBand",
        ),
        (
            "hfi1_0",
            1,
            &tree,
            "port 1 of hfi1_0 has no umad: load the kernel module ib_umad (`modprobe ib_umad`)",
        ),
        (
            "mlx5_0",
            1,
            &newer,
            "umad has ABI version 6, and this tool knows version 5: use a kernel that has it",
        ),
    ] {
        assert_eq!(
            UmadTransport::open(device, port, sysfs)
                .unwrap_err()
                .to_string(),
            message
        );
    }
}

#[test]
fn a_device_file_that_is_not_there_is_named() {
    let (_folder, sysfs) = sysfs(&TREE.map(|(path, content)| {
        if path.starts_with("infiniband_mad/umad7") {
            ("infiniband_mad/unused", "")
        } else {
            (path, content)
        }
    }));
    for file in ["ibdev", "port"] {
        let folder = sysfs.join("class/infiniband_mad/umad4711");
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join(file),
            if file == "port" { "1" } else { "mlx5_0" },
        )
        .unwrap();
    }
    assert_eq!(
        UmadTransport::open("mlx5_0", 1, &sysfs)
            .unwrap_err()
            .to_string(),
        "/dev/infiniband/umad4711 does not exist, although sysfs has it: udev makes it, and a \
         container has to be given it"
    );
}

#[test]
fn a_subnet_manager_on_the_port_keeps_the_traps() {
    let mut asked = Vec::new();
    let mut port = |taken: bool| {
        agents(|request: RegRequest| {
            let (class, mask) = (request.class, request.method_mask[0]);
            asked.push((class, mask));
            if taken && mask != 0 {
                Err(Errno::EINVAL)
            } else {
                Ok(asked.len() as u32)
            }
        })
    };
    assert_eq!(port(false), Ok([1, 2]));
    assert_eq!(port(true), Ok([4, 5]));
    assert_eq!(
        asked,
        [
            (0x01, 1 << 5),
            (0x81, 0),
            (0x01, 1 << 5),
            (0x01, 0),
            (0x81, 0)
        ]
    );
    // QP 0 does not exist, as on Ethernet.
    assert_eq!(
        agents(|_| Err(Errno::EPROTONOSUPPORT)),
        Err((0x01, Errno::EPROTONOSUPPORT))
    );
}

/// Makes a transport, and the kernel's end of the socket that stands for its file.
fn pair() -> (UmadTransport, OwnedFd) {
    let (file, kernel) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_NONBLOCK,
    )
    .unwrap();
    (
        UmadTransport::new(file.into(), "umad mlx5_0 port 1".into(), [3, 4]),
        kernel,
    )
}

fn request(route: &Route) -> Smp {
    Smp::request(Method::GET, AttributeId::NODE_INFO, 0, route)
}

fn directed() -> Route {
    Route::Directed("0,1".parse().unwrap())
}

/// Reads the header and MAD written last.
fn written(kernel: &OwnedFd) -> (Header, Smp) {
    let mut packet = [0; 1024];
    let length = recv(kernel.as_raw_fd(), &mut packet, MsgFlags::empty()).unwrap();
    let (header, octets) = packet[..length].split_first_chunk().unwrap();
    (Header::parse(header), Smp::parse(octets).unwrap())
}

/// The outcome of the next request.
fn outcome(requester: &mut Requester<UmadTransport>) -> Outcome {
    let exchange = requester.exchange(request(&directed()), &directed(), FOREVER);
    exchange.unwrap().outcome
}

fn give(kernel: &OwnedFd, status: u32, octets: &[u8]) {
    let packet = [
        &Header {
            agent: 4,
            status,
            ..Header::default()
        }
        .octets()[..],
        octets,
    ]
    .concat();
    assert_eq!(
        send(kernel.as_raw_fd(), &packet, MsgFlags::empty()),
        Ok(packet.len())
    );
}

#[test]
fn requests_are_written_for_the_agent_of_their_class_and_never_repeated() {
    let (mut umad, kernel) = pair();
    for (route, to, header) in [
        (
            Route::Lid(Lid(7)),
            Lid(7),
            Header {
                agent: 3,
                status: 0,
                timeout_ms: 2 + TICK_MS,
                lid: Lid(7),
            },
        ),
        (
            directed(),
            Lid(7),
            Header {
                agent: 4,
                status: 0,
                timeout_ms: 2 + TICK_MS,
                lid: Lid::PERMISSIVE,
            },
        ),
    ] {
        let smp = request(&route);
        umad.send(&smp, to, Duration::from_micros(1500)).unwrap();
        assert_eq!(written(&kernel), (header, smp));
    }
    // Retries are octets 12 to 15.
    assert_eq!(
        Header {
            timeout_ms: 9,
            ..Header::default()
        }
        .octets()[12..16],
        [0; 4]
    );
}

#[test]
fn an_answer_is_matched_although_the_kernel_has_written_half_of_the_tid() {
    let (umad, kernel) = pair();
    let mut requester = Requester::new(Box::new(umad), 0x77);
    let mut answer = request(&directed());
    answer.set_method(Method::GET_RESP);
    answer.set_tid(Tid(0x0000_0042_0000_0077));
    give(&kernel, 0, answer.octets());
    let outcome = outcome(&mut requester);
    assert!(matches!(outcome, Outcome::Answered { smp, .. } if smp == answer));
    assert_eq!(written(&kernel).1.tid().0, 0x77);
}

#[test]
fn an_answer_after_its_wait_is_a_stray_for_as_long_as_the_request_is_kept() {
    let (umad, kernel) = pair();
    let mut requester = Requester::new(Box::new(umad), 1);
    let (wait, keep) = (Duration::from_millis(1), Duration::from_secs(10));
    let kept = requester
        .exchange_kept(request(&directed()), &directed(), wait, keep)
        .unwrap();
    assert!(matches!(kept.outcome, Outcome::TimedOut));
    assert_eq!(
        [kept.deadline, kept.kept].map(|end| end - kept.sent),
        [wait, keep]
    );
    let (header, smp) = written(&kernel);
    assert_eq!(header.timeout_ms, 10_000 + TICK_MS);
    // It comes while another is under way, and the kernel gives the request back after that.
    give(&kernel, 0, smp.response(Status::OK).octets());
    give(&kernel, abi::TIMED_OUT, &smp.octets()[..24]);
    let mut next = request(&directed());
    next.set_tid(Tid(2));
    give(&kernel, 0, next.response(Status::OK).octets());
    let other = requester
        .exchange(request(&directed()), &directed(), FOREVER)
        .unwrap();
    assert!(matches!(other.outcome, Outcome::Answered { .. }));
    assert_eq!(other.kept, other.deadline);
    let kinds: Vec<_> = requester.take_strays().iter().map(|s| s.kind).collect();
    assert_eq!(kinds, [StrayKind::Late(Tid(1))]);
}

#[test]
fn a_request_given_back_at_its_time_ends_the_wait_and_is_no_packet() {
    let (umad, kernel) = pair();
    let mut requester = Requester::new(Box::new(umad), 1);
    let mut header = request(&directed());
    header.set_tid(Tid(1));
    // The kernel returns the first 24 octets of the MAD.
    give(&kernel, abi::TIMED_OUT, &header.octets()[..24]);
    assert!(matches!(outcome(&mut requester), Outcome::TimedOut));
    assert_eq!(requester.take_strays(), []);
}

#[test]
fn a_request_of_earlier_that_is_given_back_ends_no_wait() {
    let (mut umad, kernel) = pair();
    let mut smp = request(&directed());
    smp.set_tid(Tid(1));
    umad.send(&smp, Lid::PERMISSIVE, Duration::ZERO).unwrap();
    give(&kernel, abi::TIMED_OUT, &smp.octets()[..24]);
    let mut trap = Smp::request(Method::TRAP, AttributeId::NOTICE, 0, &Route::Lid(Lid(1)));
    trap.set_tid(Tid(0x0900_0000));
    give(&kernel, 0, trap.octets());
    let received = umad.receive(FOREVER).unwrap().unwrap();
    assert_eq!(received.octets, trap.octets());
}

#[test]
fn another_status_and_a_refused_write_say_that_the_request_was_not_sent() {
    let (umad, kernel) = pair();
    let mut requester = Requester::new(Box::new(umad), 1);
    let mut header = request(&directed());
    header.set_tid(Tid(1));
    give(&kernel, 5, &header.octets()[..24]);
    let found = outcome(&mut requester);
    let by_status = matches!(found, Outcome::NotSent(SendError::Status { status: 5, .. }));
    assert!(by_status, "{found:?}");
    drop(kernel);
    let found = outcome(&mut requester);
    let by_system = matches!(found, Outcome::NotSent(SendError::System { .. }));
    assert!(by_system, "{found:?}");
}

#[test]
fn a_header_cut_short_and_a_device_that_is_gone_are_errors() {
    let (mut umad, kernel) = pair();
    assert_eq!(
        send(kernel.as_raw_fd(), &[0; 63], MsgFlags::empty()),
        Ok(63)
    );
    assert_eq!(
        umad.receive(FOREVER).unwrap_err().to_string(),
        "cannot receive by umad mlx5_0 port 1: a header of 64 octets expected, found 63"
    );
    drop(kernel);
    let error = umad.receive(FOREVER).unwrap_err();
    assert!(
        matches!(
            &error,
            ReceiveError::System { source, .. } if source.raw_os_error() == Some(libc::ENODEV)
        ),
        "{error}"
    );
}

#[test]
fn nothing_comes_at_the_deadline_and_a_wake_ends_every_wait() {
    let (mut umad, kernel) = pair();
    assert_eq!(umad.receive(Duration::from_millis(1)).unwrap(), None);
    let (wake, waker) = std::io::pipe().unwrap();
    umad.set_wake(Some(wake.into()));
    give(&kernel, 0, request(&directed()).octets());
    assert!(umad.receive(Duration::ZERO).unwrap().is_some());
    let mut waker = waker;
    waker.write_all(&[1]).unwrap();
    for _ in 0..2 {
        assert!(matches!(
            umad.receive(FOREVER),
            Err(ReceiveError::Interrupted)
        ));
    }
    umad.set_wake(None);
    assert_eq!(umad.receive(Duration::ZERO).unwrap(), None);
}
