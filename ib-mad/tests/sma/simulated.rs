//! The transport with a clock of its own.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ib_mad::mad::{AttributeId, Lid, MKey, Method, Tid};
use ib_mad::requester::{Outcome, Requester, StrayKind};
use ib_mad::sma::NodeConfig;
use ib_mad::smp::Smp;
use ib_mad::transport::simulated::{Fate, Simulated};
use ib_mad::transport::{ReceiveError, SendError, Transport};

use super::{directed, fabric, request, switch};

const SECOND: Duration = Duration::from_secs(1);
/// Time a node takes to answer.
const PROMPT: Duration = Duration::from_nanos(4096);

fn transport(faults: &[&str]) -> Simulated {
    let faults: Vec<_> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    Simulated::new(fabric(switch(), &faults))
}

fn numbered(tid: u64, path: &str) -> Smp {
    let mut smp = Smp::request(Method::GET, AttributeId::NODE_INFO, 0, &directed(path));
    smp.set_tid(Tid(tid));
    smp
}

fn tids(transport: &mut Simulated, deadline: Duration) -> Vec<(Duration, u64)> {
    std::iter::from_fn(|| transport.receive(deadline).unwrap())
        .map(|received| (received.at, Smp::parse(&received.octets).unwrap().tid().0))
        .collect()
}

#[test]
fn the_clock_starts_at_0_and_moves_to_the_next_packet_or_to_the_deadline() {
    let mut transport = transport(&[]);
    assert_eq!(transport.now(), Duration::ZERO);
    transport
        .send(&numbered(1, "0,1"), Lid::PERMISSIVE, SECOND)
        .unwrap();
    assert_eq!(transport.now(), Duration::ZERO);
    let received = transport.receive(SECOND).unwrap().unwrap();
    assert_eq!((received.at, transport.now()), (PROMPT, PROMPT));
    assert_eq!(
        (transport.receive(SECOND).unwrap(), transport.now()),
        (None, SECOND)
    );
    // A deadline in the past does not turn the clock back.
    assert_eq!(
        (transport.receive(PROMPT).unwrap(), transport.now()),
        (None, SECOND)
    );
}

#[test]
fn packets_come_in_order_of_time_and_then_of_sending() {
    let mut transport = transport(&["late=5", "twice"]);
    for (tid, path) in [(1, "0,1"), (2, "0"), (3, "0,1")] {
        transport
            .send(&numbered(tid, path), Lid::PERMISSIVE, SECOND)
            .unwrap();
    }
    let late = Duration::from_millis(5) + PROMPT;
    // Not a nanosecond before its time.
    assert_eq!(
        tids(&mut transport, late - Duration::from_nanos(1)),
        [(PROMPT, 2)]
    );
    assert_eq!(
        tids(&mut transport, late),
        [(late, 1), (late, 1), (late, 3), (late, 3)]
    );
}

#[test]
fn a_late_answer_is_a_stray_of_the_next_exchange() {
    let mut requester = Requester::new(Box::new(transport(&["late=1000"])), 7);
    let route = directed("0,1");
    let mut exchange = || {
        requester
            .exchange(numbered(0, "0,1"), &route, SECOND)
            .unwrap()
            .outcome
    };
    assert!(matches!(exchange(), Outcome::TimedOut));
    assert!(matches!(exchange(), Outcome::TimedOut));
    let kinds: Vec<_> = requester
        .take_strays()
        .iter()
        .map(|stray| stray.kind)
        .collect();
    assert_eq!(kinds, [StrayKind::Late(Tid(7))]);
}

#[test]
fn packets_can_be_lost_and_refused() {
    let mut transport = transport(&[]);
    let mut sent = 0;
    transport.on_send(Box::new(move |smp| {
        sent += 1;
        match sent {
            1 => Fate::Lose,
            2 => Fate::Refuse,
            _ if smp.tid() == Tid(3) => Fate::Pass,
            _ => Fate::Lose,
        }
    }));
    transport
        .send(&numbered(1, "0,1"), Lid::PERMISSIVE, SECOND)
        .unwrap();
    let refused = transport.send(&numbered(2, "0,1"), Lid::PERMISSIVE, SECOND);
    assert!(matches!(
        refused,
        Err(SendError::System { ref transport, .. }) if transport == "simulated fabric"
    ));
    transport
        .send(&numbered(3, "0,1"), Lid::PERMISSIVE, SECOND)
        .unwrap();
    transport
        .send(&numbered(4, "0,1"), Lid::PERMISSIVE, SECOND)
        .unwrap();
    assert_eq!(tids(&mut transport, SECOND), [(PROMPT, 3)]);
}

#[test]
fn a_lost_request_does_not_reach_the_node() {
    let key = MKey(5);
    let mut transport = Simulated::new(fabric(
        NodeConfig {
            m_key: key,
            m_key_protect_bits: 2,
            ..switch()
        },
        &[],
    ));
    transport.on_send(Box::new(|smp| {
        if smp.m_key() == MKey(6) {
            Fate::Lose
        } else {
            Fate::Pass
        }
    }));
    for (sent, expected) in [(MKey(6), 0), (MKey(7), 1)] {
        transport
            .send(
                &request(Method::GET, AttributeId::PORT_INFO, 0, sent),
                Lid::PERMISSIVE,
                SECOND,
            )
            .unwrap();
        assert_eq!(
            super::port(transport.fabric_mut(), 0, key).m_key_violations(),
            expected
        );
    }
}

#[test]
fn a_wait_ends_while_wake_can_be_read() {
    let mut transport = transport(&[]);
    let (mut writer, reader) = UnixStream::pair().unwrap();
    transport.set_wake(Some(OwnedFd::from(reader)));
    transport
        .send(&numbered(1, "0,1"), Lid::PERMISSIVE, SECOND)
        .unwrap();
    assert_eq!(tids(&mut transport, SECOND), [(PROMPT, 1)]);
    writer.write_all(&[1]).unwrap();
    for _ in 0..2 {
        assert!(matches!(
            transport.receive(2 * SECOND),
            Err(ReceiveError::Interrupted)
        ));
    }
    assert_eq!(transport.now(), SECOND);
    transport.set_wake(None);
    assert_eq!(transport.receive(2 * SECOND).unwrap(), None);
}
