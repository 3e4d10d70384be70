//! Get and Set of each attribute, and the status of requests that cannot be served.

use ib_mad::attr::{Attribute, NodeInfo, NodeType, PortInfo, PortState, SwitchInfo};
use ib_mad::mad::{AttributeId, Lid, MKey, Method, Status};
use ib_mad::sma::{Fabric, NodeConfig, NodeKind};
use ib_mad::smp::{DATA, Smp};

use super::{DUT_LID, GUID, adapter, ask, fabric, get, port, request, set_port, switch, to_set};

const NO_KEY: MKey = MKey(0);
const FORWARDING: [AttributeId; 2] = [
    AttributeId::LINEAR_FORWARDING_TABLE,
    AttributeId::RANDOM_FORWARDING_TABLE,
];

fn set(fabric: &mut Fabric, attribute: AttributeId, modifier: u32, data: [u8; DATA]) -> Smp {
    let mut smp = request(Method::SET, attribute, modifier, NO_KEY);
    *smp.data_mut() = data;
    ask(fabric, &smp)
}

/// Sends a Set of PortInfo with one change. Returns its status, and what a Get shows afterwards.
fn change(
    fabric: &mut Fabric,
    number: u32,
    change: impl FnOnce(&mut PortInfo),
) -> (Status, PortInfo) {
    let mut wanted = to_set(port(fabric, number, NO_KEY));
    change(&mut wanted);
    let answer = ask(fabric, &set_port(number, &wanted, NO_KEY));
    let info = port(fabric, number, NO_KEY);
    assert_eq!(
        answer.decode::<PortInfo>().unwrap(),
        info,
        "the answer has the values after the Set"
    );
    (answer.status(), info)
}

#[test]
fn node_info_tells_kind_ports_and_where_the_request_came_in() {
    for (dut, kind, ports, port_guid) in [
        (switch(), NodeType::Switch, 4, 0),
        (adapter(), NodeType::ChannelAdapter, 1, 1),
    ] {
        let info: NodeInfo = get(&mut fabric(dut, &[]), AttributeId::NODE_INFO, 0)
            .decode()
            .unwrap();
        let mut expected = NodeInfo::default();
        let guid = GUID + u64::from(DUT_LID.0) * 0x10;
        expected.set_base_version(1).unwrap();
        expected.set_class_version(1).unwrap();
        expected.set_node_type(kind).unwrap();
        expected.set_num_ports(ports).unwrap();
        expected.set_system_image_guid(guid).unwrap();
        expected.set_node_guid(guid).unwrap();
        expected.set_port_guid(guid + port_guid).unwrap();
        expected.set_partition_cap(1).unwrap();
        expected.set_local_port_number(1).unwrap();
        assert_eq!(info, expected);
    }
}

#[test]
fn node_description_is_the_nodes_name_cut_at_64_octets() {
    for (name, expected) in [
        ("a switch", "a switch".to_owned()),
        (&"é".repeat(40), "é".repeat(32)),
        (
            &format!("x{}", "é".repeat(40)),
            format!("x{}", "é".repeat(31)),
        ),
    ] {
        let dut = NodeConfig {
            description: name.into(),
            ..switch()
        };
        let description = get(&mut fabric(dut, &[]), AttributeId::NODE_DESCRIPTION, 0);
        let (text, rest) = description.data().split_at(expected.len());
        assert_eq!(text, expected.as_bytes());
        assert!(rest.iter().all(|octet| *octet == 0));
    }
}

#[test]
fn what_is_not_supported_is_refused_with_its_status() {
    let mut switch = fabric(switch(), &[]);
    let mut adapter = fabric(adapter(), &[]);
    let method = |method| request(method, AttributeId::NODE_INFO, 0, NO_KEY);
    let mut version = method(Method::GET);
    version.octets_mut()[2] = 2;
    for fabric in [&mut switch, &mut adapter] {
        assert_eq!(ask(fabric, &version).status(), Status::BAD_VERSION);
        assert_eq!(
            ask(fabric, &method(Method(0x03))).status(),
            Status::UNSUPPORTED_METHOD
        );
        for attribute in [AttributeId::NODE_INFO, AttributeId::NODE_DESCRIPTION] {
            assert_eq!(
                set(fabric, attribute, 0, [7; DATA]).status(),
                Status::UNSUPPORTED_METHOD_ATTRIBUTE
            );
            assert_eq!(get(fabric, attribute, 1).status(), Status::INVALID_FIELD);
        }
        assert_eq!(
            get(fabric, AttributeId(0x0020), 0).status(),
            Status::UNSUPPORTED_METHOD_ATTRIBUTE
        );
    }
    for attribute in FORWARDING.into_iter().chain([AttributeId::SWITCH_INFO]) {
        assert_eq!(
            get(&mut adapter, attribute, 0).status(),
            Status::UNSUPPORTED_METHOD_ATTRIBUTE,
            "{attribute}"
        );
    }
}

#[test]
fn what_is_no_request_is_not_answered() {
    let mut fabric = fabric(switch(), &[]);
    for method in [Method::GET_RESP, Method::TRAP, Method(0x86)] {
        assert_eq!(
            super::send(
                &mut fabric,
                Default::default(),
                &request(method, AttributeId::NODE_INFO, 0, NO_KEY)
            ),
            []
        );
    }
}

#[test]
fn switch_info_takes_what_may_be_set() {
    let mut fabric = fabric(
        NodeConfig {
            linear_fdb_cap: 0x100,
            ..switch()
        },
        &[],
    );
    let before: SwitchInfo = get(&mut fabric, AttributeId::SWITCH_INFO, 0)
        .decode()
        .unwrap();
    assert_eq!(
        (before.linear_fdb_cap(), before.random_fdb_cap()),
        (0x100, 40)
    );
    let mut wanted = SwitchInfo::from_data([0xff; DATA]);
    wanted.set_linear_fdb_top(0xff).unwrap();
    wanted.set_default_port(3).unwrap();
    let answer = set(&mut fabric, AttributeId::SWITCH_INFO, 0, *wanted.data());
    assert_eq!(answer.status(), Status::OK);
    let mut expected = before;
    expected.set_linear_fdb_top(0xff).unwrap();
    expected.set_default_port(3).unwrap();
    expected.set_life_time_value(0x1f).unwrap();
    assert_eq!(answer.decode::<SwitchInfo>().unwrap(), expected);
    assert_eq!(
        get(&mut fabric, AttributeId::SWITCH_INFO, 0)
            .decode::<SwitchInfo>()
            .unwrap(),
        expected
    );
    // One entry too many.
    wanted.set_linear_fdb_top(0x100).unwrap();
    wanted.set_default_port(4).unwrap();
    let refused = set(&mut fabric, AttributeId::SWITCH_INFO, 0, *wanted.data());
    assert_eq!(
        (refused.status(), refused.decode()),
        (Status::INVALID_FIELD, Ok(expected))
    );
    assert_eq!(
        get(&mut fabric, AttributeId::SWITCH_INFO, 1).status(),
        Status::INVALID_FIELD
    );
}

#[test]
fn without_a_linear_table_no_block_of_it_is_valid() {
    let mut fabric = fabric(switch(), &[]);
    for modifier in (0..768).chain([768, u32::MAX]) {
        for (method, data) in [(Method::SET, [5; DATA]), (Method::GET, [0; DATA])] {
            let mut smp = request(
                method,
                AttributeId::LINEAR_FORWARDING_TABLE,
                modifier,
                NO_KEY,
            );
            *smp.data_mut() = data;
            let answer = ask(&mut fabric, &smp);
            assert_eq!(
                (answer.status(), answer.status().code()),
                (Status::INVALID_FIELD, 7)
            );
            assert_eq!(
                (answer.attribute(), answer.modifier()),
                (AttributeId::LINEAR_FORWARDING_TABLE, modifier)
            );
            assert_eq!(answer.data(), &[0; DATA]);
        }
    }
}

#[test]
fn tables_keep_what_is_set_block_by_block_and_end_at_their_capacity() {
    // Two blocks and part of a third: 64 linear entries of one octet, 16 random ones of four.
    let mut fabric = fabric(
        NodeConfig {
            linear_fdb_cap: 160,
            random_fdb_cap: 40,
            ..switch()
        },
        &[],
    );
    for (attribute, empty) in FORWARDING.into_iter().zip([0xff, 0]) {
        assert_eq!(get(&mut fabric, attribute, 0).data(), &[empty; DATA]);
        for modifier in 0..3 {
            let answer = set(&mut fabric, attribute, modifier, [modifier as u8 + 1; DATA]);
            assert_eq!(answer.status(), Status::OK);
        }
        for modifier in 0..3 {
            let mut expected = [modifier as u8 + 1; DATA];
            if modifier == 2 {
                expected[32..].fill(0);
            }
            let answer = get(&mut fabric, attribute, modifier);
            assert_eq!(
                (answer.status(), answer.data()),
                (Status::OK, &expected),
                "{attribute} {modifier}"
            );
        }
        for modifier in [3, 768, u32::MAX] {
            assert_eq!(
                get(&mut fabric, attribute, modifier).status(),
                Status::INVALID_FIELD
            );
            assert_eq!(
                set(&mut fabric, attribute, modifier, [9; DATA]).status(),
                Status::INVALID_FIELD
            );
        }
    }
}

#[test]
fn the_largest_tables_end_where_multicast_lids_begin() {
    let mut fabric = fabric(
        NodeConfig {
            linear_fdb_cap: u16::MAX,
            random_fdb_cap: u16::MAX,
            ..switch()
        },
        &[],
    );
    for (attribute, last) in FORWARDING.into_iter().zip([767, 3071]) {
        assert_eq!(get(&mut fabric, attribute, last).status(), Status::OK);
        assert_eq!(
            get(&mut fabric, attribute, last + 1).status(),
            Status::INVALID_FIELD
        );
    }
}

#[test]
fn notice_is_empty_until_a_trap_and_after_a_set() {
    let key = MKey(1);
    let mut fabric = fabric(
        NodeConfig {
            m_key: key,
            ..switch()
        },
        &[],
    );
    let notice = |method| request(method, AttributeId::NOTICE, 0, key);
    assert_eq!(ask(&mut fabric, &notice(Method::GET)).data(), &[0; DATA]);
    super::send(
        &mut fabric,
        Default::default(),
        &request(Method::SET, AttributeId::NOTICE, 0, MKey(2)),
    );
    assert_eq!(
        ask(&mut fabric, &notice(Method::GET)).data()[..6],
        [0x82, 0, 0, 2, 1, 0]
    );
    assert_eq!(ask(&mut fabric, &notice(Method::SET)).data(), &[0; DATA]);
    assert_eq!(ask(&mut fabric, &notice(Method::GET)).data(), &[0; DATA]);
}

#[test]
fn port_info_shows_the_configuration() {
    let dut = NodeConfig {
        m_key: MKey(0),
        m_key_protect_bits: 1,
        m_key_lease_period: 300,
        ..switch()
    };
    let mut fabric = fabric(dut, &[]);
    let info = port(&mut fabric, 0, NO_KEY);
    assert_eq!((info.lid(), info.master_sm_lid(), info.lmc()), (2, 1, 0));
    assert_eq!(
        (info.m_key_protect_bits(), info.m_key_lease_period()),
        (1, 300)
    );
    assert_eq!(
        (
            info.response_time_value(),
            info.subnet_timeout(),
            info.local_port_number()
        ),
        (16, 18, 1)
    );
    assert_eq!((info.p_key_violations(), info.q_key_violations()), (0, 0));
    for (number, state, physical) in [
        (0, PortState::Active, 5),
        (1, PortState::Active, 5),
        (2, PortState::Down, 2),
        (4, PortState::Down, 2),
    ] {
        let info = port(&mut fabric, number, NO_KEY);
        assert_eq!(
            (info.port_state(), info.port_physical_state()),
            (state, physical),
            "port {number}"
        );
        // Only port 0 has addresses.
        assert_eq!(info.lid() != 0, number == 0);
    }
}

#[test]
fn a_port_that_is_not_there_is_an_invalid_modifier() {
    for (dut, numbers) in [(switch(), [5, 0x100]), (adapter(), [2, 0x101])] {
        let mut fabric = fabric(dut, &[]);
        for number in numbers {
            let answer = get(&mut fabric, AttributeId::PORT_INFO, number);
            assert_eq!(
                (answer.status(), answer.modifier(), answer.data()),
                (Status::INVALID_FIELD, number, &[0; DATA])
            );
            assert_eq!(
                set(&mut fabric, AttributeId::PORT_INFO, number, [0xff; DATA]).status(),
                Status::INVALID_FIELD
            );
        }
    }
}

#[test]
fn port_0_of_an_adapter_is_the_one_that_the_request_came_in_by() {
    let mut fabric = fabric(adapter(), &[]);
    assert_eq!(port(&mut fabric, 0, NO_KEY), port(&mut fabric, 1, NO_KEY));
    let (status, _) = change(&mut fabric, 0, |info| info.set_subnet_timeout(5).unwrap());
    assert_eq!(
        (status, port(&mut fabric, 1, NO_KEY).subnet_timeout()),
        (Status::OK, 5)
    );
}

#[test]
fn a_set_of_port_info_changes_what_may_be_set_and_nothing_else() {
    let mut fabric = fabric(switch(), &[]);
    let before = port(&mut fabric, 0, NO_KEY);
    let mut expected = before;
    let all = |info: &mut PortInfo| {
        info.set_lid(0xbfff).unwrap();
        info.set_master_sm_lid(3).unwrap();
        info.set_lmc(2).unwrap();
        info.set_gid_prefix(5).unwrap();
        info.set_master_sm_sl(6).unwrap();
        info.set_subnet_timeout(7).unwrap();
        info.set_m_key(MKey(0)).unwrap();
        info.set_m_key_protect_bits(3).unwrap();
        info.set_m_key_lease_period(8).unwrap();
        info.set_link_width_enabled(1).unwrap();
        info.set_link_speed_enabled(3).unwrap();
        info.set_link_down_default_state(1).unwrap();
        info.set_neighbor_mtu(1).unwrap();
        info.set_operational_vls(2).unwrap();
        info.set_vl_high_limit(9).unwrap();
        info.set_hoq_life(10).unwrap();
        info.set_vl_stall_count(4).unwrap();
        info.set_overrun_errors(1).unwrap();
        info.set_local_phy_errors(2).unwrap();
    };
    all(&mut expected);
    let (status, after) = change(&mut fabric, 0, |info| {
        all(info);
        // Read-only fields.
        info.set_capability_mask(u32::MAX).unwrap();
        info.set_local_port_number(9).unwrap();
        info.set_link_width_supported(9).unwrap();
        info.set_link_speed_supported(9).unwrap();
        info.set_mtu_cap(9).unwrap();
        info.set_vl_cap(9).unwrap();
        info.set_guid_cap(9).unwrap();
        info.set_response_time_value(9).unwrap();
        info.set_p_key_violations(9).unwrap();
        info.set_q_key_violations(9).unwrap();
        info.set_client_reregister(true).unwrap();
    });
    assert_eq!((status, after), (Status::OK, expected));
}

#[test]
fn zero_and_all_ones_have_a_meaning_of_their_own() {
    let mut fabric = fabric(switch(), &[]);
    let before = port(&mut fabric, 1, NO_KEY);
    let (status, after) = change(&mut fabric, 1, |info| {
        info.set_link_width_enabled(0).unwrap();
        info.set_link_speed_enabled(0).unwrap();
        info.set_link_down_default_state(0).unwrap();
        info.set_operational_vls(0).unwrap();
    });
    assert_eq!((status, after), (Status::OK, before));
    change(&mut fabric, 1, |info| {
        info.set_link_width_enabled(1).unwrap();
        info.set_link_speed_enabled(1).unwrap();
    });
    let (status, after) = change(&mut fabric, 1, |info| {
        info.set_link_width_enabled(0xff).unwrap();
        info.set_link_speed_enabled(0xf).unwrap();
    });
    assert_eq!((status, after), (Status::OK, before));
}

#[test]
fn an_invalid_field_changes_nothing() {
    type Change = fn(&mut PortInfo);
    let invalid: [Change; 11] = [
        |info| info.set_lid(0).unwrap(),
        |info| info.set_lid(0xc000).unwrap(),
        |info| info.set_master_sm_lid(0xffff).unwrap(),
        |info| info.set_link_width_enabled(4).unwrap(),
        |info| info.set_link_speed_enabled(8).unwrap(),
        |info| info.set_link_down_default_state(3).unwrap(),
        |info| info.set_neighbor_mtu(0).unwrap(),
        |info| info.set_neighbor_mtu(6).unwrap(),
        |info| info.set_operational_vls(5).unwrap(),
        |info| info.set_port_state(PortState::Initialized).unwrap(),
        |info| info.set_port_physical_state(5).unwrap(),
    ];
    for (index, make_invalid) in invalid.into_iter().enumerate() {
        let mut fabric = fabric(switch(), &[]);
        let before = port(&mut fabric, 0, NO_KEY);
        let (status, after) = change(&mut fabric, 0, |info| {
            info.set_m_key_protect_bits(2).unwrap();
            info.set_subnet_timeout(3).unwrap();
            make_invalid(info);
        });
        assert_eq!(
            (status, after),
            (Status::INVALID_FIELD, before),
            "change {index}"
        );
    }
}

#[test]
fn a_lid_of_0_may_stay() {
    let dut = NodeConfig {
        lid: Lid(0),
        master_sm_lid: Lid(0),
        ..switch()
    };
    let (status, after) = change(&mut fabric(dut, &[]), 0, |info| {
        info.set_subnet_timeout(3).unwrap()
    });
    assert_eq!(
        (status, after.lid(), after.subnet_timeout()),
        (Status::OK, 0, 3)
    );
}

#[test]
fn port_states_change_as_the_link_state_machine_allows() {
    use PortState::{Active, Armed, Initialized, NoChange, Unknown};
    let states = [(2, Initialized), (3, Armed), (4, Active)];
    let allowed = [
        (Initialized, Armed),
        (Armed, Armed),
        (Armed, Active),
        (Active, Active),
    ];
    for (number, before) in states {
        for wanted in [NoChange, Initialized, Armed, Active, Unknown(5)] {
            let mut fabric = fabric(
                NodeConfig {
                    port_state: number,
                    ..switch()
                },
                &[],
            );
            let (status, after) =
                change(&mut fabric, 1, |info| info.set_port_state(wanted).unwrap());
            let expected = match wanted {
                NoChange => (Status::OK, before),
                wanted if allowed.contains(&(before, wanted)) => (Status::OK, wanted),
                _ => (Status::INVALID_FIELD, before),
            };
            assert_eq!(
                (status, after.port_state()),
                expected,
                "{before:?} to {wanted:?}"
            );
        }
    }
}

#[test]
fn a_switch_may_have_no_port_or_all_that_a_number_has_room_for() {
    let mut fabric = fabric(super::config(NodeKind::Switch(0), DUT_LID), &[]);
    // Without port 1 there is no link.
    assert_eq!(
        super::send(
            &mut fabric,
            Default::default(),
            &request(Method::GET, AttributeId::NODE_INFO, 0, NO_KEY)
        ),
        []
    );
    let mut every = super::fabric(super::config(NodeKind::Switch(255), DUT_LID), &[]);
    assert_eq!(port(&mut every, 255, NO_KEY).port_state(), PortState::Down);
    assert_eq!(
        get(&mut every, AttributeId::NODE_INFO, 0)
            .decode::<NodeInfo>()
            .unwrap()
            .num_ports(),
        255
    );
}
