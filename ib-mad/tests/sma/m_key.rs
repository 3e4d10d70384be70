//! M_Key checking (14.2.4).

use std::time::Duration;

use ib_mad::attr::{PortInfo, PortState};
use ib_mad::mad::{AttributeId, Lid, MKey, Method, Status};
use ib_mad::sma::{Fabric, NodeConfig};
use ib_mad::smp::{Route, Smp};

use super::{DUT_LID, TESTER_LID, adapter, fabric, port, request, send, set_port, switch, to_set};

const KEY: MKey = MKey(0x1122_3344_5566_7788);
const OTHER: MKey = MKey(0x1122_3344_5566_7789);
const NONE: MKey = MKey(0);

/// Effect of a request to a port with an M_Key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    /// An answer that shows this M_Key, and nothing else.
    Shown(MKey),
    /// No response, no trap and no violation.
    Ignored,
    /// A violation and a trap, and no response.
    Violation,
}
use Seen::{Ignored, Shown, Violation};

/// Rows: protect bits. Columns: the request's M_Key is right, wrong, 0.
const GET: [[Seen; 3]; 4] = [
    [Shown(KEY), Shown(KEY), Shown(KEY)],
    [Shown(KEY), Shown(NONE), Shown(NONE)],
    [Shown(KEY), Violation, Violation],
    [Shown(KEY), Violation, Violation],
];
const SET: [[Seen; 3]; 4] = [[Shown(KEY), Violation, Violation]; 4];
const TRAP_REPRESS: [[Seen; 3]; 4] = [[Ignored, Violation, Violation]; 4];
/// The same if no M_Key is set.
const UNPROTECTED: [(Method, Seen); 3] = [
    (Method::GET, Shown(NONE)),
    (Method::SET, Shown(NONE)),
    (Method::TRAP_REPRESS, Ignored),
];

fn protected(dut: NodeConfig, bits: u8) -> NodeConfig {
    NodeConfig {
        m_key: KEY,
        m_key_protect_bits: bits,
        ..dut
    }
}

/// Sends a PortInfo request that would change nothing.
fn see(fabric: &mut Fabric, method: Method, key: MKey) -> Seen {
    let stored = fabric.dut.config().m_key;
    let before = port(fabric, 0, stored);
    let mut smp = request(method, AttributeId::PORT_INFO, 0, key);
    if method == Method::SET {
        smp.encode(&to_set(before));
    }
    let came = send(fabric, Duration::ZERO, &smp);
    let counted = port(fabric, 0, stored).m_key_violations() - before.m_key_violations();
    let methods: Vec<_> = came.iter().map(Smp::method).collect();
    match (methods.as_slice(), counted) {
        ([Method::GET_RESP], 0) => {
            assert_eq!(came[0].status(), Status::OK);
            Shown(came[0].decode::<PortInfo>().unwrap().m_key())
        }
        ([Method::TRAP], 1) => Violation,
        ([], 0) => Ignored,
        other => panic!("{method} with {key}: {other:?}"),
    }
}

#[test]
fn an_m_key_protects_as_its_bits_say() {
    for dut in [switch(), adapter()] {
        for (method, table) in [
            (Method::GET, GET),
            (Method::SET, SET),
            (Method::TRAP_REPRESS, TRAP_REPRESS),
        ] {
            for (bits, row) in (0..).zip(table) {
                for (key, expected) in [KEY, OTHER, NONE].into_iter().zip(row) {
                    let mut fabric = fabric(protected(dut.clone(), bits), &[]);
                    assert_eq!(
                        see(&mut fabric, method, key),
                        expected,
                        "{method} with {key} at protect bits {bits}"
                    );
                }
            }
        }
    }
}

#[test]
fn without_an_m_key_every_request_passes_whatever_the_bits() {
    for bits in 0..4 {
        for (method, expected) in UNPROTECTED {
            for key in [NONE, OTHER] {
                let mut fabric = fabric(
                    NodeConfig {
                        m_key_protect_bits: bits,
                        ..switch()
                    },
                    &[],
                );
                assert_eq!(
                    see(&mut fabric, method, key),
                    expected,
                    "{method} with {key} at protect bits {bits}"
                );
            }
        }
    }
}

#[test]
fn a_refused_set_changes_nothing() {
    let mut fabric = fabric(protected(switch(), 0), &[]);
    let before = port(&mut fabric, 0, KEY);
    let mut wanted = to_set(before);
    wanted.set_m_key(OTHER).unwrap();
    wanted.set_lid(9).unwrap();
    send(&mut fabric, Duration::ZERO, &set_port(0, &wanted, OTHER));
    let mut expected = before;
    expected.set_m_key_violations(1).unwrap();
    assert_eq!(port(&mut fabric, 0, KEY), expected);
}

#[test]
fn ports_of_a_switch_are_protected_by_the_key_of_port_0_and_show_none() {
    let mut fabric = fabric(protected(switch(), 2), &[]);
    for attribute in [
        AttributeId::PORT_INFO,
        AttributeId::NODE_INFO,
        AttributeId::LINEAR_FORWARDING_TABLE,
        AttributeId(0x1234),
    ] {
        let came = send(
            &mut fabric,
            Duration::from_secs(10),
            &request(Method::GET, attribute, 1, OTHER),
        );
        assert!(
            came.iter().all(|smp| smp.method() == Method::TRAP),
            "{attribute}"
        );
    }
    let external = port(&mut fabric, 1, KEY);
    assert_eq!(
        (
            external.m_key(),
            external.m_key_violations(),
            external.m_key_protect_bits()
        ),
        (NONE, 0, 0)
    );
    assert_eq!(port(&mut fabric, 0, KEY).m_key_violations(), 4);
    // Nor does a Set there change port 0's.
    let mut wanted = to_set(external);
    wanted.set_m_key(OTHER).unwrap();
    wanted.set_m_key_protect_bits(1).unwrap();
    assert_eq!(
        send(&mut fabric, Duration::ZERO, &set_port(1, &wanted, KEY))[0].status(),
        Status::OK
    );
    let managed = port(&mut fabric, 0, KEY);
    assert_eq!(
        (
            managed.m_key(),
            managed.m_key_protect_bits(),
            managed.m_key_violations()
        ),
        (KEY, 2, 4)
    );
}

#[test]
fn violations_stay_at_their_greatest_value_and_are_cleared_by_0_alone() {
    let mut fabric = fabric(
        NodeConfig {
            master_sm_lid: Lid(0),
            ..protected(switch(), 2)
        },
        &[],
    );
    let wrong = request(Method::GET, AttributeId::PORT_INFO, 0, OTHER);
    for _ in 0..0xfffe {
        assert_eq!(send(&mut fabric, Duration::ZERO, &wrong), []);
    }
    assert_eq!(port(&mut fabric, 0, KEY).m_key_violations(), 0xfffe);
    for _ in 0..2 {
        assert_eq!(send(&mut fabric, Duration::ZERO, &wrong), []);
        assert_eq!(port(&mut fabric, 0, KEY).m_key_violations(), 0xffff);
    }
    let mut info = to_set(port(&mut fabric, 0, KEY));
    for (value, expected) in [(7, 0xffff), (0xffff, 0xffff), (0, 0)] {
        info.set_m_key_violations(value).unwrap();
        let answer = &send(&mut fabric, Duration::ZERO, &set_port(0, &info, KEY))[0];
        assert_eq!(
            answer.decode::<PortInfo>().unwrap().m_key_violations(),
            expected
        );
    }
}

/// Returns the protect bits that a Get with the right key shows at `now`. The Get stops the timer.
fn bits(fabric: &mut Fabric, now: Duration) -> u8 {
    let answer = &send(
        fabric,
        now,
        &request(Method::GET, AttributeId::PORT_INFO, 0, KEY),
    )[0];
    let info: PortInfo = answer.decode().unwrap();
    assert_eq!(info.m_key(), KEY);
    info.m_key_protect_bits()
}

fn leased(period: u16) -> Fabric {
    fabric(
        NodeConfig {
            m_key_lease_period: period,
            master_sm_lid: Lid(0),
            ..protected(switch(), 2)
        },
        &[],
    )
}

fn violate(fabric: &mut Fabric, now: Duration) {
    assert_eq!(
        send(
            fabric,
            now,
            &request(Method::GET, AttributeId::PORT_INFO, 0, OTHER)
        ),
        []
    );
}

const LEASE: u16 = 10;
const START: Duration = Duration::from_secs(100);
const EXPIRY: Duration = Duration::from_secs(110);
const BEFORE: Duration = Duration::from_nanos(109_999_999_999);

#[test]
fn an_expired_lease_clears_the_protect_bits_and_keeps_the_key() {
    let mut fabric = leased(LEASE);
    violate(&mut fabric, START);
    // A second violation does not restart the timer. One just before its end still counts.
    violate(&mut fabric, BEFORE);
    let answer = &send(
        &mut fabric,
        EXPIRY,
        &request(Method::GET, AttributeId::PORT_INFO, 0, OTHER),
    )[0];
    let info: PortInfo = answer.decode().unwrap();
    assert_eq!(
        (
            info.m_key(),
            info.m_key_protect_bits(),
            info.m_key_violations()
        ),
        (KEY, 0, 2)
    );
    // A Set still needs the key.
    assert_eq!(
        send(&mut fabric, EXPIRY, &set_port(0, &to_set(info), OTHER)),
        []
    );
}

#[test]
fn only_a_violation_starts_the_lease_timer() {
    let mut fabric = leased(LEASE);
    assert_eq!(bits(&mut fabric, START), 2);
    assert_eq!(bits(&mut fabric, EXPIRY * 10), 2);
}

#[test]
fn a_request_with_the_key_stops_the_lease_timer() {
    for method in [Method::GET, Method::SET, Method::TRAP_REPRESS] {
        let mut fabric = leased(LEASE);
        violate(&mut fabric, START);
        send(
            &mut fabric,
            BEFORE,
            &request(method, AttributeId::NOTICE, 0, KEY),
        );
        assert_eq!(bits(&mut fabric, EXPIRY), 2, "{method}");
    }
}

#[test]
fn a_get_that_passes_without_the_key_does_not_stop_the_lease_timer() {
    let mut fabric = fabric(
        NodeConfig {
            m_key_lease_period: LEASE,
            master_sm_lid: Lid(0),
            ..protected(switch(), 1)
        },
        &[],
    );
    let info = to_set(port(&mut fabric, 0, KEY));
    assert_eq!(send(&mut fabric, START, &set_port(0, &info, OTHER)), []);
    assert_eq!(
        send(
            &mut fabric,
            BEFORE,
            &request(Method::GET, AttributeId::PORT_INFO, 0, OTHER)
        )
        .len(),
        1
    );
    assert_eq!(bits(&mut fabric, EXPIRY), 0);
}

#[test]
fn a_lease_period_of_0_never_ends() {
    let mut fabric = leased(0);
    violate(&mut fabric, START);
    assert_eq!(bits(&mut fabric, Duration::from_secs(1_000_000)), 2);
}

#[test]
fn trap_256_tells_of_a_lid_routed_request() {
    let mut fabric = fabric(protected(switch(), 2), &[]);
    let mut smp = Smp::request(
        Method::SET,
        AttributeId::LINEAR_FORWARDING_TABLE,
        0x0102_0304,
        &Route::Lid(DUT_LID),
    );
    smp.set_m_key(OTHER);
    let came = super::smps(&fabric.send(Duration::ZERO, &smp, DUT_LID));
    let [trap] = came.as_slice() else {
        panic!("{came:?}")
    };
    assert_eq!(
        (trap.method(), trap.attribute(), trap.modifier()),
        (Method::TRAP, AttributeId::NOTICE, 0)
    );
    assert_eq!((trap.is_directed(), trap.m_key()), (false, NONE));
    let mut expected = [0; 64];
    expected[..8].copy_from_slice(&[0x82, 0, 0, 2, 1, 0, 0, 2]);
    // LIDADDR: the requester's.
    expected[12..14].copy_from_slice(&TESTER_LID.0.to_be_bytes());
    expected[16] = 2;
    expected[18..24].copy_from_slice(&[0, 0x19, 1, 2, 3, 4]);
    expected[24..32].copy_from_slice(&OTHER.0.to_be_bytes());
    assert_eq!(trap.data(), &expected);
}

#[test]
fn trap_256_tells_of_a_directed_route_request_and_of_the_way_back() {
    let mut fabric = fabric(protected(adapter(), 2), &[]);
    let came = send(
        &mut fabric,
        Duration::ZERO,
        &request(Method::GET, AttributeId::NODE_INFO, 0, OTHER),
    );
    let data = came[0].data();
    // Producer: a channel adapter.
    assert_eq!(data[..8], [0x82, 0, 0, 1, 1, 0, 0, 2]);
    // LIDADDR and DRSLID are permissive; METHOD, ATTRIBUTEID.
    assert_eq!(data[12..20], [0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0x11]);
    // DRNotice, one hop; the return path, whose element 0 is not used.
    assert_eq!(data[33..37], [0x81, 0, 1, 0]);
    let answer = super::ask(
        &mut fabric,
        &request(Method::GET, AttributeId::NOTICE, 0, KEY),
    );
    assert_eq!(answer.data(), data);
}

#[test]
fn traps_keep_the_time_out_of_the_subnet_between_them_and_need_an_active_port_and_a_master() {
    let wrong = request(Method::GET, AttributeId::NODE_INFO, 0, OTHER);
    let mut fabric = fabric(protected(switch(), 2), &[]);
    // 4.096 us * 2^18.
    let pause = Duration::from_nanos(4096 << 18);
    for (now, traps) in [
        (START, 1),
        (START + pause - Duration::from_nanos(1), 0),
        (START + pause, 1),
    ] {
        assert_eq!(send(&mut fabric, now, &wrong).len(), traps, "{now:?}");
    }
    fabric.dut.set_port_state(0, PortState::Armed);
    assert_eq!(send(&mut fabric, EXPIRY, &wrong), []);
    let mut alone = super::fabric(
        NodeConfig {
            master_sm_lid: Lid(0),
            ..protected(switch(), 2)
        },
        &[],
    );
    assert_eq!(send(&mut alone, START, &wrong), []);
    let mut elsewhere = super::fabric(
        NodeConfig {
            master_sm_lid: Lid(77),
            ..protected(switch(), 2)
        },
        &[],
    );
    assert_eq!(send(&mut elsewhere, START, &wrong), []);
}
