//! The kernel of a namespace resolves the addresses of a tester's port, which the port itself does
//! not have.
//!
//! lane: waiting

use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::promiscuous::Promiscuous;
use validator::driver::neighbour::Responder;
use validator_core::neighbour::Station;

use crate::common;

/// The port's MAC address, and another one that it answers with.
const PORT: &str = "02:00:00:00:00:0a";
const ANSWERED: &str = "02:00:00:00:00:02";
/// A neighbour is asked three times, a second apart.
const PATIENCE: Duration = Duration::from_secs(10);

/// A namespace in which `host` has addresses, and `port`, cabled to it, has none.
fn namespace() -> Namespace {
    let namespace = Namespace::new().unwrap();
    for line in [
        &format!("link add port address {PORT} type veth peer name host"),
        "link set lo up",
        "link set port up",
        "link set host up",
        "address add 198.18.0.9/24 dev host",
        "address add 2001:db8::9/64 dev host nodad",
    ] {
        ip(&namespace, line);
    }
    namespace
}

/// Runs `ip` there; its output.
fn ip(namespace: &Namespace, arguments: &str) -> String {
    let output = namespace
        .run(|| Command::new("ip").args(arguments.split(' ')).output())
        .unwrap()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Has the kernel send a datagram to `address`, and waits until it knows what its neighbour said;
/// the entry of `ip neighbour`.
fn resolve(namespace: &Namespace, address: &str) -> String {
    let send = || {
        let any = if address.contains(':') {
            "[::]:0"
        } else {
            "0.0.0.0:0"
        };
        let socket = UdpSocket::bind(any).unwrap();
        // The entry says what came of it.
        let _ = socket.send_to(b"anybody there?", (address, 9));
    };
    namespace.run(send).unwrap();
    let end = Instant::now() + PATIENCE;
    loop {
        let entry = ip(namespace, &format!("neighbour show to {address} dev host"));
        if entry.contains("lladdr") || entry.contains("FAILED") || Instant::now() > end {
            return entry;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn answers(test: &str, address: &str, other: &str) {
    if !common::need_root(test) || !common::need_tool(test, "ip") {
        return;
    }
    let namespace = namespace();
    let _promiscuous = namespace
        .run(|| Promiscuous::hold("port"))
        .unwrap()
        .unwrap();
    // Nobody answers by himself.
    assert!(resolve(&namespace, address).contains("FAILED"));
    let station = Station {
        mac: [2, 0, 0, 0, 0, 2],
        ip: address.parse().unwrap(),
    };
    let responder = Responder::start(&namespace, "port", station).unwrap();
    let entry = resolve(&namespace, address);
    assert!(entry.contains(&format!("lladdr {ANSWERED}")), "{entry}");
    let entry = resolve(&namespace, other);
    assert!(entry.contains("FAILED"), "{entry}");
    drop(responder);
    ip(&namespace, "neighbour flush dev host");
    let entry = resolve(&namespace, address);
    assert!(entry.contains("FAILED"), "{entry}");
}

#[test]
fn root_the_kernel_resolves_an_ipv4_address_by_arp() {
    answers(
        "root_the_kernel_resolves_an_ipv4_address_by_arp",
        "198.18.0.2",
        "198.18.0.3",
    );
}

#[test]
fn root_the_kernel_resolves_an_ipv6_address_by_neighbour_discovery() {
    answers(
        "root_the_kernel_resolves_an_ipv6_address_by_neighbour_discovery",
        "2001:db8::2",
        "2001:db8::3",
    );
}

#[test]
fn root_the_kernel_finds_that_an_address_is_taken() {
    let test = "root_the_kernel_finds_that_an_address_is_taken";
    if !common::need_root(test) || !common::need_tool(test, "ip") {
        return;
    }
    let namespace = namespace();
    let _promiscuous = namespace
        .run(|| Promiscuous::hold("port"))
        .unwrap()
        .unwrap();
    let station = Station {
        mac: [2, 0, 0, 0, 0, 2],
        ip: "2001:db8::2".parse().unwrap(),
    };
    let _responder = Responder::start(&namespace, "port", station).unwrap();
    // Duplicate address detection asks all nodes.
    ip(&namespace, "address add 2001:db8::2/64 dev host");
    let end = Instant::now() + PATIENCE;
    loop {
        let addresses = ip(&namespace, "address show dev host");
        if addresses.contains("dadfailed") {
            return;
        }
        assert!(Instant::now() < end, "{addresses}");
        thread::sleep(Duration::from_millis(20));
    }
}
