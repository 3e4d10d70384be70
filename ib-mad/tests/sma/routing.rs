//! Routes between the tester and the DUT, and how responses come back.

use std::time::Duration;

use ib_mad::attr::{PortInfo, PortState};
use ib_mad::mad::{AttributeId, Lid, MKey, Method, Status, Tid};
use ib_mad::sma::{Fabric, NodeConfig, Sma};
use ib_mad::smp::{Route, Smp};

use super::{
    DUT_LID, TESTER_LID, adapter, directed, fabric, request, send, set_port, smps, switch, to_set,
};

fn node_info(route: &Route) -> Smp {
    let mut smp = Smp::request(Method::GET, AttributeId::NODE_INFO, 0, route);
    smp.set_tid(Tid(0x0123_4567_89ab_cdef));
    smp
}

fn by_lid(fabric: &mut Fabric, to: Lid) -> Vec<Smp> {
    smps(&fabric.send(Duration::ZERO, &node_info(&Route::Lid(to)), to))
}

/// NodeInfo:NodeType.
fn kind(smp: &Smp) -> u8 {
    smp.data()[2]
}

#[test]
fn directed_routes_of_no_hop_and_one_hop_are_answered_by_tester_and_dut() {
    let mut fabric = fabric(switch(), &[]);
    for (path, expected, ingress) in [("0", 1, 0), ("0,1", 2, 1)] {
        let smp = node_info(&directed(path));
        let came = send(&mut fabric, Duration::ZERO, &smp);
        let [answer] = came.as_slice() else {
            panic!("{path}: {came:?}")
        };
        assert_eq!(
            (kind(answer), answer.status(), answer.tid()),
            (expected, Status::OK, smp.tid())
        );
        assert!(answer.is_returning());
        assert_eq!(answer.hops(), (0, smp.hops().1));
        assert_eq!(answer.initial_path(), smp.initial_path());
        let mut way_back = [0; 64];
        way_back[1] = ingress;
        assert_eq!(answer.return_path(), &way_back);
        assert_eq!(
            (answer.dr_slid(), answer.dr_dlid()),
            (Lid::PERMISSIVE, Lid::PERMISSIVE)
        );
    }
}

#[test]
fn a_switch_sends_a_directed_route_back_over_the_link() {
    let mut fabric = fabric(switch(), &[]);
    let smp = node_info(&directed("0,1,1"));
    let came = send(&mut fabric, Duration::ZERO, &smp);
    let [answer] = came.as_slice() else {
        panic!("{came:?}")
    };
    assert_eq!((kind(answer), answer.status()), (1, Status::OK));
    assert_eq!(answer.hops(), (0, 2));
    assert_eq!(answer.initial_path(), smp.initial_path());
    assert_eq!(answer.return_path()[..4], [0, 1, 1, 0]);
    // The link that it crosses may be down.
    fabric.dut.set_port_state(1, PortState::Down);
    assert_eq!(send(&mut fabric, Duration::ZERO, &smp), []);
}

#[test]
fn other_directed_routes_are_lost() {
    for (dut, is_switch) in [(switch(), true), (adapter(), false)] {
        let mut fabric = fabric(dut, &[]);
        for path in ["0,2", "0,2,1", "0,1,2", "0,1,1,1", "0,1,2,3"] {
            assert_eq!(
                send(&mut fabric, Duration::ZERO, &node_info(&directed(path))),
                [],
                "{path}"
            );
        }
        let forwarded = send(&mut fabric, Duration::ZERO, &node_info(&directed("0,1,1")));
        assert_eq!(forwarded.len(), usize::from(is_switch));
        let mut pointing = node_info(&directed("0,1"));
        pointing.octets_mut()[6..8].copy_from_slice(&[1, 1]);
        let mut returning = node_info(&directed("0,1"));
        returning.set_returning(true);
        let mut partly_by_lid = node_info(&directed("0,1"));
        partly_by_lid.octets_mut()[32..34].copy_from_slice(&TESTER_LID.0.to_be_bytes());
        let mut longer_than_a_path = node_info(&directed("0,1"));
        longer_than_a_path.octets_mut()[6..8].copy_from_slice(&[0, 255]);
        for smp in [pointing, returning, partly_by_lid, longer_than_a_path] {
            assert_eq!(send(&mut fabric, Duration::ZERO, &smp), []);
        }
    }
}

#[test]
fn lid_routed_requests_go_to_whose_lid_it_is() {
    let mut fabric = fabric(switch(), &[]);
    for (to, expected) in [(TESTER_LID, 1), (DUT_LID, 2)] {
        let came = by_lid(&mut fabric, to);
        let [answer] = came.as_slice() else {
            panic!("{to}: {came:?}")
        };
        assert_eq!(
            (
                kind(answer),
                answer.is_directed(),
                answer.octets()[4..8].to_vec()
            ),
            (expected, false, vec![0; 4])
        );
    }
    for to in [0, 3, 0xffff] {
        assert_eq!(by_lid(&mut fabric, Lid(to)), [], "{to}");
    }
}

#[test]
fn a_port_has_two_to_the_lmc_lids() {
    let mut fabric = fabric(
        NodeConfig {
            lid: Lid(8),
            ..switch()
        },
        &[],
    );
    let mut info = to_set(super::port(&mut fabric, 0, MKey(0)));
    info.set_lmc(2).unwrap();
    assert_eq!(
        super::ask(&mut fabric, &set_port(0, &info, MKey(0))).status(),
        Status::OK
    );
    for (to, answers) in [(7, 0), (8, 1), (11, 1), (12, 0)] {
        assert_eq!(by_lid(&mut fabric, Lid(to)).len(), answers, "LID {to}");
    }
}

#[test]
fn a_lid_that_was_set_is_its_lid_from_then_on() {
    let mut fabric = fabric(adapter(), &[]);
    let mut info = to_set(super::port(&mut fabric, 0, MKey(0)));
    info.set_lid(20).unwrap();
    let mut smp = Smp::request(Method::SET, AttributeId::PORT_INFO, 0, &Route::Lid(DUT_LID));
    smp.encode(&info);
    assert_eq!(
        smps(&fabric.send(Duration::ZERO, &smp, DUT_LID))[0].status(),
        Status::OK
    );
    assert_eq!(
        (
            fabric.dut.lid(),
            by_lid(&mut fabric, DUT_LID).len(),
            by_lid(&mut fabric, Lid(20)).len()
        ),
        (Lid(20), 0, 1)
    );
}

#[test]
fn nothing_passes_a_link_that_is_down_and_smps_pass_any_other() {
    let reaches = |fabric: &mut Fabric| {
        [
            send(fabric, Duration::ZERO, &node_info(&directed("0,1"))).len(),
            by_lid(fabric, DUT_LID).len(),
        ]
    };
    for (state, answers) in [
        (PortState::Down, 0),
        (PortState::Initialized, 1),
        (PortState::Armed, 1),
        (PortState::Active, 1),
    ] {
        for end in [
            |fabric: &mut Fabric| &mut fabric.tester,
            |fabric: &mut Fabric| &mut fabric.dut,
        ] as [fn(&mut Fabric) -> &mut Sma; 2]
        {
            let mut fabric = fabric(switch(), &[]);
            end(&mut fabric).set_port_state(1, state);
            assert_eq!(reaches(&mut fabric), [answers; 2], "{state:?}");
            // The tester still reaches its own node.
            assert_eq!(
                send(&mut fabric, Duration::ZERO, &node_info(&directed("0"))).len(),
                1
            );
        }
    }
    assert_eq!(
        reaches(&mut fabric(
            NodeConfig {
                port_state: 1,
                ..switch()
            },
            &[]
        )),
        [0; 2]
    );
}

/// Sends a Set that changes the state of port 1 of the node at the end of `path`. Returns what came
/// back.
fn set_states(fabric: &mut Fabric, path: &str, state: PortState, physical: u8) -> Vec<Smp> {
    let mut smp = Smp::request(Method::GET, AttributeId::PORT_INFO, 1, &directed(path));
    let mut info: PortInfo = super::ask(fabric, &smp).decode().unwrap();
    info.set_port_state(state).unwrap();
    info.set_port_physical_state(physical).unwrap();
    smp.set_method(Method::SET);
    smp.encode(&info);
    send(fabric, Duration::ZERO, &smp)
}

#[test]
fn a_link_that_is_taken_down_is_trained_again_at_both_ends() {
    for (state, physical) in [
        (PortState::Down, 0),
        (PortState::Down, 2),
        (PortState::NoChange, 2),
    ] {
        for path in ["0", "0,1"] {
            let mut fabric = fabric(switch(), &[]);
            let came = set_states(&mut fabric, path, state, physical);
            assert_eq!(
                came[0].decode::<PortInfo>().unwrap().port_state(),
                PortState::Initialized
            );
            let ends = [&fabric.tester, &fabric.dut].map(|node| node.port_state(1));
            assert_eq!(ends, [Some(PortState::Initialized); 2], "{path}");
        }
    }
}

#[test]
fn a_link_that_is_disabled_stays_down_and_the_answer_is_lost_with_it() {
    let mut fabric = fabric(switch(), &[]);
    assert_eq!(set_states(&mut fabric, "0,1", PortState::Down, 3), []);
    assert_eq!(
        [&fabric.tester, &fabric.dut].map(|node| node.port_state(1)),
        [Some(PortState::Down); 2]
    );
    assert_eq!(
        send(
            &mut fabric,
            Duration::ZERO,
            &request(Method::GET, AttributeId::NODE_INFO, 0, MKey(0))
        ),
        []
    );
}
