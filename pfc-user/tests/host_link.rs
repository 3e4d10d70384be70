//! Namespaces, links, their counters and the journal, on veths in namespaces of their own.
//!
//! lane: waiting

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, recv, send};
use std::os::fd::{AsRawFd, OwnedFd};
use validator::driver::bringup::journal::Journal;
use validator::driver::kernel::link::{self, End, Feature, LinkError, create_bridge, create_veth};
use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::packet::PacketSocket;
use validator::driver::kernel::process::Child;

use crate::common;
use crate::packet_socket::packet_socket;

const LONG: Duration = Duration::from_secs(20);
/// Set in the process that a test starts from its own program in order to kill it.
const VICTIM: &str = "VALIDATOR_TEST_VICTIM";
const MAC_A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const MAC_B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];
/// IEEE 802.3x: the address of PAUSE and PFC frames, which bridges do not forward.
const MAC_CONTROL: [u8; 6] = [1, 0x80, 0xc2, 0, 0, 1];

/// Two namespaces with a veth between them: `a` in the first, `b` in the second.
fn wire() -> (Namespace, Namespace) {
    let (a, b) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    create_veth(
        End {
            namespace: &a,
            name: "a",
            mac: MAC_A,
        },
        End {
            namespace: &b,
            name: "b",
            mac: MAC_B,
        },
        1500,
    )
    .unwrap();
    (a, b)
}

/// A raw packet socket on `interface`, whose reads end after [`LONG`].
fn packets(namespace: &Namespace, interface: &str) -> OwnedFd {
    namespace.run(|| packet_socket(interface, LONG)).unwrap()
}

/// A frame of an EtherType for local experiments.
fn frame(to: [u8; 6], number: u8, length: usize) -> Vec<u8> {
    let mut frame = [&to[..], &MAC_A, &[0x88, 0xb5, number]].concat();
    frame.resize(length, 0x5a);
    frame
}

fn transmit(socket: &OwnedFd, frame: &[u8]) {
    assert_eq!(
        send(socket.as_raw_fd(), frame, MsgFlags::empty()),
        Ok(frame.len())
    );
}

fn receive(socket: &OwnedFd) -> nix::Result<Vec<u8>> {
    let mut buffer = [0; 2048];
    let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
    Ok(buffer[..length].to_vec())
}

/// Starts this program again to do only `test`, in `namespace`, and waits until it prints `ready`.
fn victim(namespace: &Namespace, test: &str, value: &str) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    let test = format!("host_link::{test}");
    command
        .args(["--exact", &test, "--nocapture"])
        .env(VICTIM, value);
    let mut victim = Child::spawn(Some(namespace), command).unwrap();
    while !victim.read_line(LONG).unwrap().ends_with("ready") {}
    victim
}

fn ready_to_die() -> ! {
    println!("ready");
    loop {
        std::thread::park();
    }
}

fn ip(namespace: &Namespace, arguments: &str) {
    let run = || Command::new("ip").args(arguments.split(' ')).status();
    assert!(
        namespace.run(run).unwrap().unwrap().success(),
        "{arguments}"
    );
}

#[test]
fn root_a_veth_carries_the_first_frame_and_none_of_the_kernels() {
    if !common::need_root("root_a_veth_carries_the_first_frame_and_none_of_the_kernels") {
        return;
    }
    let (a, b) = wire();
    let (sender, receiver) = (packets(&a, "a"), packets(&b, "b"));
    for (number, to) in [MAC_B, MAC_CONTROL].into_iter().enumerate() {
        let sent = frame(to, number as u8, 1514);
        transmit(&sender, &sent);
        assert_eq!(receive(&receiver), Ok(sent));
    }
    for (namespace, name, mac) in [(&a, "a", MAC_A), (&b, "b", MAC_B)] {
        let state = link::state(namespace, name).unwrap();
        assert_eq!(
            (state.driver.as_str(), state.kind.as_deref()),
            ("veth", Some("veth"))
        );
        assert_eq!(
            (state.mac, state.mtu, state.up, state.carrier),
            (mac, 1500, true, true)
        );
        assert_eq!(state.speed, Some(10_000_000_000));
        for feature in [
            Feature::TxVlan,
            Feature::RxVlan,
            Feature::Gro,
            Feature::Gso,
            Feature::Tso,
            Feature::TxChecksum,
        ] {
            assert!(
                !link::feature(namespace, name, feature).unwrap(),
                "{}",
                feature.name()
            );
        }
    }
}

#[test]
fn root_an_unknown_interface_is_answered_with_those_that_exist() {
    if !common::need_root("root_an_unknown_interface_is_answered_with_those_that_exist") {
        return;
    }
    let (a, _b) = wire();
    let error = link::state(&a, "eth9").unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no interface \"eth9\" in a network namespace of the tester; there are: lo, a"
    );
    assert!(link::state(&a, "lo").unwrap().up);
    let end = |name| End {
        namespace: &a,
        name,
        mac: MAC_A,
    };
    assert!(matches!(
        create_veth(end("a"), end("c"), 1500),
        Err(LinkError::System { .. })
    ));
}

#[test]
fn root_no_carrier_is_an_error() {
    if !common::need_root("root_no_carrier_is_an_error") {
        return;
    }
    let (a, b) = wire();
    ip(&b, "link set dev b down");
    let error = link::wait_for_carrier(&a, "a", Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, LinkError::NoCarrier { .. }), "{error}");
    assert!(!link::state(&a, "a").unwrap().carrier);
}

/// Some drivers drop the link only a while after they were told to reset it.
#[test]
fn root_a_carrier_that_goes_and_comes_while_it_is_awaited_has_to_stay() {
    if !common::need_root("root_a_carrier_that_goes_and_comes_while_it_is_awaited_has_to_stay") {
        return;
    }
    const SETTLE: Duration = Duration::from_secs(2);
    let (a, b) = wire();
    let changes = link::carrier_changes(&a, "a").unwrap();
    let (began, returned) = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            link::wait_for_lasting_carrier(&a, "a", LONG, SETTLE).unwrap();
            Instant::now()
        });
        // Within the time in which it has to stay; at once would be before the first look.
        std::thread::sleep(SETTLE / 4);
        ip(&b, "link set dev b down");
        ip(&b, "link set dev b up");
        let began = Instant::now();
        (began, waiter.join().unwrap())
    });
    assert_eq!(link::carrier_changes(&a, "a").unwrap(), changes + 2);
    // The command's own end comes after the carrier did.
    let stayed = returned.saturating_duration_since(began);
    assert!(stayed + SETTLE / 4 > SETTLE, "{stayed:?}");
}

#[test]
fn root_a_state_is_awaited_and_told_without_a_carrier_too() {
    if !common::need_root("root_a_state_is_awaited_and_told_without_a_carrier_too") {
        return;
    }
    let (a, b) = wire();
    ip(&b, "link set dev b down");
    let state = link::settled_state(&a, "a", Duration::from_millis(50)).unwrap();
    assert!(state.up && !state.carrier);
    let state = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| link::settled_state(&a, "a", LONG).unwrap());
        ip(&b, "link set dev b up");
        waiter.join().unwrap()
    });
    assert!(state.carrier);
}

#[test]
fn root_the_carrier_is_told_whatever_the_operational_state_is() {
    if !common::need_root("root_the_carrier_is_told_whatever_the_operational_state_is") {
        return;
    }
    let (a, b) = wire();
    let socket = a.run(|| PacketSocket::open("a")).unwrap().unwrap();
    assert!(socket.has_carrier().unwrap());
    // IFF_RUNNING follows the state, which somebody else may keep or set late.
    ip(&a, "link set dev a down");
    assert!(!socket.has_carrier().unwrap());
    ip(&a, "link set dev a mode dormant");
    ip(&a, "link set dev a up");
    wait_for_carrier_alone(&a);
    assert!(socket.has_carrier().unwrap());
    ip(&b, "link set dev b down");
    assert!(!socket.has_carrier().unwrap());
}

/// Waits until the port `a` has a carrier and is dormant.
fn wait_for_carrier_alone(namespace: &Namespace) {
    let begin = Instant::now();
    let shown = || {
        let output = namespace
            .run(|| Command::new("ip").args(["link", "show", "a"]).output())
            .unwrap()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    while !shown().contains("LOWER_UP") || !shown().contains("state DORMANT") {
        assert!(begin.elapsed() < LONG, "{}", shown());
        std::thread::yield_now();
    }
}

#[test]
fn root_a_dropped_frame_is_counted_and_a_carried_one_is_not() {
    if !common::need_root("root_a_dropped_frame_is_counted_and_a_carried_one_is_not") {
        return;
    }
    let (a, b) = wire();
    let (sender, receiver) = (packets(&a, "a"), packets(&b, "b"));
    let before = link::statistics(&a, "a").unwrap();
    transmit(&sender, &frame(MAC_B, 0, 1514));
    receive(&receiver).unwrap();
    let between = link::statistics(&a, "a").unwrap();
    assert!(
        link::drop_rises("a", &before, &between)
            .iter()
            .all(|counter| counter.rise == 0)
    );
    // Frames that are larger than what the other end takes get lost on the way into it.
    ip(&b, "link set dev b mtu 1000");
    for number in 1..=3 {
        // The kernel tells a sender past the queue, but a packet socket may hear of it too.
        let _ = send(
            sender.as_raw_fd(),
            &frame(MAC_B, number, 1514),
            MsgFlags::empty(),
        );
    }
    let after = link::statistics(&a, "a").unwrap();
    let rises: Vec<_> = link::drop_rises("a", &between, &after)
        .into_iter()
        .filter(|counter| counter.rise > 0)
        .collect();
    assert_eq!(
        rises
            .iter()
            .map(|counter| (counter.counter.as_str(), counter.rise))
            .collect::<Vec<_>>(),
        [("tx_dropped", 3)]
    );
    let names: Vec<&str> = after.iter().map(|(name, _)| name.as_str()).collect();
    assert!(
        names.contains(&"rx_queue_0_drops") && !names.contains(&"rx_queue_0_xdp_drops"),
        "{names:?}"
    );
    assert!(link::softnet_dropped().is_ok());
}

#[test]
fn root_a_bridge_forwards_all_but_mac_control() {
    if !common::need_root("root_a_bridge_forwards_all_but_mac_control") {
        return;
    }
    let (a, b, bridge) = (
        Namespace::new().unwrap(),
        Namespace::new().unwrap(),
        Namespace::new().unwrap(),
    );
    for (namespace, name, mac, port, port_mac) in [
        (&a, "a", MAC_A, "p0", [2, 0, 0, 0, 1, 0]),
        (&b, "b", MAC_B, "p1", [2, 0, 0, 0, 1, 1]),
    ] {
        create_veth(
            End {
                namespace,
                name,
                mac,
            },
            End {
                namespace: &bridge,
                name: port,
                mac: port_mac,
            },
            1500,
        )
        .unwrap();
    }
    create_bridge(&bridge, "br0", &["p0", "p1"]).unwrap();
    assert_eq!(
        link::state(&bridge, "br0").unwrap().kind.as_deref(),
        Some("bridge")
    );
    let (sender, receiver) = (packets(&a, "a"), packets(&b, "b"));
    transmit(&sender, &frame(MAC_CONTROL, 0, 60));
    let sent = frame(MAC_B, 1, 60);
    transmit(&sender, &sent);
    assert_eq!(receive(&receiver), Ok(sent));
}

#[test]
fn root_a_namespace_goes_with_a_killed_process() {
    const NAME: &str = "root_a_namespace_goes_with_a_killed_process";
    if env::var_os(VICTIM).is_some() {
        let (outer, inner) = (Namespace::current().unwrap(), Namespace::new().unwrap());
        create_veth(
            End {
                namespace: &inner,
                name: "a",
                mac: MAC_A,
            },
            End {
                namespace: &outer,
                name: "b",
                mac: MAC_B,
            },
            1500,
        )
        .unwrap();
        ready_to_die();
    }
    if !common::need_root(NAME) {
        return;
    }
    let outer = Namespace::new().unwrap();
    let victim = victim(&outer, NAME, "1");
    let socket = packets(&outer, "b");
    drop(victim);
    // The other end is gone, and this end with it.
    assert_eq!(receive(&socket), Err(nix::errno::Errno::ENETDOWN));
}

#[test]
fn root_a_setting_is_put_back_after_a_run_and_after_a_kill() {
    const NAME: &str = "root_a_setting_is_put_back_after_a_run_and_after_a_kill";
    let change = |journal: &Journal, namespace: &Namespace| {
        journal
            .change(namespace, "a", Feature::TxVlan, true)
            .unwrap()
    };
    if let Some(folder) = env::var_os(VICTIM) {
        let _change = change(&Journal::at(folder), &Namespace::current().unwrap());
        ready_to_die();
    }
    if !common::need_root(NAME) {
        return;
    }
    let (a, _b) = wire();
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::at(folder.path().join("journal"));
    let is_on = || link::feature(&a, "a", Feature::TxVlan).unwrap();
    let entries = || {
        std::fs::read_dir(folder.path().join("journal"))
            .unwrap()
            .count()
    };
    let recover = || a.run(|| journal.recover()).unwrap().unwrap();

    let changed = change(&journal, &a);
    assert!(changed.is_some() && is_on() && entries() == 1);
    assert!(change(&journal, &a).is_none(), "it is on already");
    drop(changed);
    assert!(!is_on() && entries() == 0);

    let victim = victim(&a, NAME, folder.path().join("journal").to_str().unwrap());
    assert!(is_on() && entries() == 1);
    assert_eq!(recover(), Vec::<String>::new(), "its process lives");
    assert!(is_on());
    let pid = victim.id();
    drop(victim);
    assert_eq!(
        journal.recover().unwrap(),
        Vec::<String>::new(),
        "the namespace is out of reach from here"
    );
    assert!(is_on());
    // Under a new name, where another interface has the old one.
    ip(&a, "link set dev a down");
    ip(&a, "link set dev a name z");
    ip(&a, "link add name a type bridge");
    assert_eq!(
        recover(),
        [format!(
            "a: tx-vlan-offload is off again, as it was before process {pid} was killed"
        )]
    );
    ip(&a, "link delete dev a");
    ip(&a, "link set dev z name a");
    assert!(!is_on() && entries() == 0);
}

#[test]
fn root_a_kept_setting_outlives_its_process_and_is_undone_when_asked() {
    const NAME: &str = "root_a_kept_setting_outlives_its_process_and_is_undone_when_asked";
    let keep = |journal: &Journal, namespace: &Namespace| {
        journal.keep(namespace, "a", Feature::Gro, true).unwrap()
    };
    if let Some(folder) = env::var_os(VICTIM) {
        keep(&Journal::at(folder), &Namespace::current().unwrap());
        ready_to_die();
    }
    if !common::need_root(NAME) {
        return;
    }
    let (a, _b) = wire();
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::at(folder.path());
    let is_on = || link::feature(&a, "a", Feature::Gro).unwrap();
    let files = || {
        std::fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect::<Vec<_>>()
    };
    let here = |work: &(dyn Fn() -> Vec<String> + Sync)| a.run(work).unwrap();
    let undo = || here(&|| journal.undo_kept().unwrap().0);

    drop(victim(&a, NAME, folder.path().to_str().unwrap()));
    assert!(is_on() && files().len() == 1);
    assert_eq!(
        here(&|| journal.recover().unwrap()),
        Vec::<String>::new(),
        "a run leaves it"
    );
    assert_eq!(
        here(&|| journal.kept()),
        ["a: generic-receive-offload is on by `validator check --fix`, until `--undo`"]
    );
    assert!(keep(&journal, &a).is_none(), "it is on already");
    let elsewhere = journal.undo_kept().unwrap();
    let note = "a: generic-receive-offload is NOT put back: it was changed in another network \
                namespace";
    assert_eq!(elsewhere, (vec![note.into()], false));
    assert!(is_on() && files().len() == 1);
    // Killed between the note and the change: the note says what is so already.
    let entry = std::fs::read(&files()[0]).unwrap();
    assert_eq!(undo(), ["a: generic-receive-offload is off again"]);
    assert!(!is_on() && files().is_empty());
    std::fs::write(folder.path().join("1-x.json"), entry).unwrap();
    assert!(keep(&journal, &a).is_some() && is_on() && files().len() == 2);
    assert_eq!(undo().len(), 2);
    assert!(!is_on() && files().is_empty());
}

#[test]
fn root_a_named_namespace_is_found() {
    const NAME: &str = "root_a_named_namespace_is_found";
    if !common::need_root(NAME) || !common::need_tool(NAME, "ip") {
        return;
    }
    struct Named(String);
    impl Drop for Named {
        fn drop(&mut self) {
            let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
        }
    }
    let named = Named(format!("validator-test-{}", std::process::id()));
    let added = Command::new("ip")
        .args(["netns", "add", &named.0])
        .status()
        .unwrap();
    assert!(added.success());
    let namespace = Namespace::named(&named.0).unwrap();
    assert!(!link::state(&namespace, "lo").unwrap().up);
    let error = link::state(&namespace, "eth9").unwrap_err().to_string();
    assert!(
        error.contains(&format!(
            "in network namespace \"{}\"; there are: lo",
            named.0
        )),
        "{error}"
    );
    let error = Namespace::named("no-such-namespace")
        .unwrap_err()
        .to_string();
    assert!(error.contains(&named.0), "{error}");
}
