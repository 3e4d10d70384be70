//! Compares packets of infiniband-diags, opensm and ibsim with the output of smpquery and smpdump:
//! see golden/README.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use ib_mad::attr::{
    Attribute, FieldValue, NodeInfo, NodeType, Notice, NoticeSource, NoticeType, PortInfo,
    PortState, SwitchInfo,
};
use ib_mad::mad::{AttributeId, Lid, MKey, Method, Status};
use ib_mad::smp::{Path, Route, Smp};

/// Exchanges: name, attribute, modifier, directed route.
const EXCHANGES: [(&str, AttributeId, u32, Option<&str>); 13] = [
    ("node-info-directed", AttributeId::NODE_INFO, 0, Some("0,1")),
    ("node-info-lid", AttributeId::NODE_INFO, 0, None),
    ("node-info-hca", AttributeId::NODE_INFO, 0, None),
    (
        "node-description-directed",
        AttributeId::NODE_DESCRIPTION,
        0,
        Some("0,1"),
    ),
    (
        "node-description-lid",
        AttributeId::NODE_DESCRIPTION,
        0,
        None,
    ),
    (
        "switch-info-directed",
        AttributeId::SWITCH_INFO,
        0,
        Some("0,1"),
    ),
    ("switch-info-lid", AttributeId::SWITCH_INFO, 0, None),
    ("port-info-directed", AttributeId::PORT_INFO, 0, Some("0,1")),
    (
        "port-info-two-hops",
        AttributeId::PORT_INFO,
        3,
        Some("0,1,3"),
    ),
    ("port-info-lid", AttributeId::PORT_INFO, 2, None),
    ("port-info-hca", AttributeId::PORT_INFO, 1, None),
    (
        "linear-forwarding-table-directed",
        AttributeId::LINEAR_FORWARDING_TABLE,
        0,
        Some("0,1"),
    ),
    (
        "linear-forwarding-table-lid",
        AttributeId::LINEAR_FORWARDING_TABLE,
        0,
        None,
    ),
];

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}

fn smp(name: &str) -> Smp {
    Smp::parse(&octets(&file(&format!("{name}.hex"))))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn requests_are_emitted_as_infiniband_diags_does() {
    for (name, attribute, modifier, path) in EXCHANGES {
        let theirs = smp(&format!("{name}.request"));
        let route = path.map_or(Route::Lid(Lid(2)), |path| {
            Route::Directed(path.parse().unwrap())
        });
        let mut ours = Smp::request(Method::GET, attribute, modifier, &route);
        ours.set_tid(theirs.tid());
        assert_eq!(ours.octets(), theirs.octets(), "{name}");
        assert_eq!(
            theirs.path(),
            path.map(|path| path.parse::<Path>().unwrap()),
            "{name}"
        );
    }
}

#[test]
fn responses_have_the_header_that_ibsim_gives_them() {
    for (name, attribute, modifier, path) in EXCHANGES {
        let (request, theirs) = (
            smp(&format!("{name}.request")),
            smp(&format!("{name}.response")),
        );
        assert_eq!(
            (theirs.method(), theirs.status(), theirs.tid()),
            (Method::GET_RESP, Status::OK, request.tid()),
            "{name}"
        );
        assert_eq!(
            (theirs.attribute(), theirs.modifier(), theirs.m_key()),
            (attribute, modifier, MKey(0)),
            "{name}"
        );
        assert_eq!(
            (theirs.is_directed(), theirs.is_returning()),
            (path.is_some(), path.is_some()),
            "{name}"
        );
        // The hop pointer is back at 0 when the response arrives.
        let ours = request.response(Status::OK);
        assert_eq!(ours.octets()[..64], theirs.octets()[..64], "{name}");
    }
    let two_hops = smp("port-info-two-hops.response");
    assert_eq!(
        (two_hops.hops(), two_hops.dr_slid(), two_hops.dr_dlid()),
        ((0, 2), Lid::PERMISSIVE, Lid::PERMISSIVE)
    );
    assert_eq!(two_hops.initial_path()[..3], [0, 1, 3]);
    assert_eq!(two_hops.return_path()[1..3], [1, 3]);
}

/// smpquery's name of each field, and the specification's.
const NAMES: &[(&str, &str)] = &[
    ("BaseVers", "BaseVersion"),
    ("ClassVers", "ClassVersion"),
    ("SystemGuid", "SystemImageGUID"),
    ("Guid", "NodeGUID"),
    ("PortGuid", "PortGUID"),
    ("PartCap", "PartitionCap"),
    ("DevId", "DeviceID"),
    ("LocalPort", "LocalPortNum"),
    ("VendorId", "VendorID"),
    ("LinearFdbCap", "LinearFDBCap"),
    ("RandomFdbCap", "RandomFDBCap"),
    ("McastFdbCap", "MulticastFDBCap"),
    ("LinearFdbTop", "LinearFDBTop"),
    ("DefPort", "DefaultPort"),
    ("DefMcastPrimPort", "DefaultMulticastPrimaryPort"),
    ("DefMcastNotPrimPort", "DefaultMulticastNotPrimaryPort"),
    ("LifeTime", "LifeTimeValue"),
    ("StateChange", "PortStateChange"),
    ("OptSLtoVLMapping", "OptimizedSLtoVLMappingProgramming"),
    ("LidsPerPort", "LIDsPerPort"),
    ("PartEnforceCap", "PartitionEnforcementCap"),
    ("InboundPartEnf", "InboundEnforcementCap"),
    ("OutboundPartEnf", "OutboundEnforcementCap"),
    ("FilterRawInbound", "FilterRawInboundCap"),
    ("FilterRawOutbound", "FilterRawOutboundCap"),
    ("Mkey", "M_Key"),
    ("Lid", "LID"),
    ("SMLid", "MasterSMLID"),
    ("CapMask", "CapabilityMask"),
    ("MkeyLeasePeriod", "M_KeyLeasePeriod"),
    ("LinkState", "PortState"),
    ("PhysLinkState", "PortPhysicalState"),
    ("LinkDownDefState", "LinkDownDefaultState"),
    ("ProtectBits", "M_KeyProtectBits"),
    ("SMSL", "MasterSMSL"),
    ("VLArbHighCap", "VLArbitrationHighCap"),
    ("VLArbLowCap", "VLArbitrationLowCap"),
    ("InitReply", "InitTypeReply"),
    ("MtuCap", "MTUCap"),
    ("HoqLife", "HOQLife"),
    ("OperVLs", "OperationalVLs"),
    ("PartEnforceInb", "PartitionEnforcementInbound"),
    ("PartEnforceOutb", "PartitionEnforcementOutbound"),
    ("FilterRawInb", "FilterRawInbound"),
    ("FilterRawOutb", "FilterRawOutbound"),
    ("MkeyViolations", "M_KeyViolations"),
    ("PkeyViolations", "P_KeyViolations"),
    ("QkeyViolations", "Q_KeyViolations"),
    ("GuidCap", "GUIDCap"),
    (
        "McastPkeyTrapSuppressionEnabled",
        "MulticastPKeyTrapSuppressionEnabled",
    ),
    ("SubnetTimeout", "SubnetTimeOut"),
    ("RespTimeVal", "RespTimeValue"),
    ("LocalPhysErr", "LocalPhyErrors"),
    ("OverrunErr", "OverrunErrors"),
    ("RoundTrip", "LinkRoundTripLatency"),
];

/// Values that smpquery prints as words (libibmad/dump.c), as far as the files have them.
fn words(text: &str) -> u64 {
    match text {
        "Channel Adapter" => 1,
        "Switch" => 2,
        "Active" => 4,
        "LinkUp" => 5,
        "Polling" => 2,
        "4X" => 2,
        "1X or 4X or 8X or 12X or 2X" => 31,
        "2.5 Gbps" => 1,
        "2.5 Gbps or 5.0 Gbps or 10.0 Gbps" => 7,
        "VL0-7" => 4,
        "No Extended Speed" => 0,
        other => panic!("smpquery printed {other:?}, which this test does not know"),
    }
}

/// Asserts that each field of the attribute of `name` that smpquery prints has the value printed.
fn compare(name: &str, fields: impl Iterator<Item = FieldValue>, wanted: usize) {
    let fields: BTreeMap<&str, u64> = fields.map(|field| (field.name, field.value)).collect();
    let mut seen = 0;
    for line in file(&format!("{name}.txt"))
        .lines()
        .filter(|line| !line.starts_with(['$', '#', '\t']))
    {
        let (key, text) = line
            .split_once(':')
            .unwrap_or_else(|| panic!("{name}: {line:?}"));
        // The filters of SwitchInfo and PortInfo have overlapping names.
        let direct = fields.contains_key(key).then_some(key);
        let field = direct.or_else(|| {
            NAMES
                .iter()
                .find(|(theirs, ours)| *theirs == key && fields.contains_key(ours))
                .map(|(_, ours)| *ours)
        });
        let field = field.unwrap_or_else(|| panic!("{name}: smpquery's {key} is no field of ours"));
        let text = text.trim_start_matches('.');
        let value = match (text.strip_prefix("0x"), text.parse::<u64>()) {
            (Some(hex), _) => u64::from_str_radix(hex, 16).unwrap(),
            (None, Ok(mtu)) if field == "NeighborMTU" || field == "MTUCap" => {
                (mtu / 128).ilog2().into()
            }
            (None, Ok(number)) => number,
            (None, Err(_)) => words(text),
        };
        assert_eq!(fields[field], value, "{name}: {field}");
        seen += 1;
    }
    assert_eq!(seen, wanted, "{name}: lines of smpquery");
}

fn response<A: Attribute>(name: &str) -> A {
    smp(&format!("{name}.response")).decode().unwrap()
}

#[test]
fn fields_are_what_smpquery_printed() {
    for name in ["node-info-directed", "node-info-lid", "node-info-hca"] {
        compare(name, response::<NodeInfo>(name).fields(), 12);
    }
    for name in ["switch-info-directed", "switch-info-lid"] {
        compare(name, response::<SwitchInfo>(name).fields(), 18);
    }
    for name in [
        "port-info-directed",
        "port-info-two-hops",
        "port-info-lid",
        "port-info-hca",
    ] {
        compare(name, response::<PortInfo>(name).fields(), 51);
    }
}

/// A few fields, by their typed getters; a reader can check them against the text.
#[test]
fn getters_are_what_smpquery_printed() {
    let node: NodeInfo = response("node-info-lid");
    assert_eq!(
        (node.node_type(), node.num_ports(), node.node_guid()),
        (NodeType::Switch, 8, 0x0020_0000)
    );
    assert_eq!(
        response::<NodeInfo>("node-info-hca").node_type(),
        NodeType::ChannelAdapter
    );
    let switch: SwitchInfo = response("switch-info-lid");
    assert_eq!(
        (
            switch.linear_fdb_cap(),
            switch.multicast_fdb_cap(),
            switch.linear_fdb_top()
        ),
        (30720, 1024, 4)
    );
    assert_eq!(
        (switch.life_time_value(), switch.partition_enforcement_cap()),
        (18, 64)
    );
    assert!(
        switch.filter_raw_inbound_cap()
            && switch.filter_raw_outbound_cap()
            && !switch.enhanced_port_0()
    );
    let port: PortInfo = response("port-info-hca");
    assert_eq!(
        (port.lid(), port.port_state(), port.vl_stall_count()),
        (1, PortState::Active, 7)
    );
    assert_eq!(
        (port.gid_prefix(), port.m_key_lease_period()),
        (0xfe80_0000_0000_0000, 4089)
    );
}

#[test]
fn descriptions_and_forwarding_tables_are_what_was_printed() {
    for name in ["node-description-directed", "node-description-lid"] {
        let text = file(&format!("{name}.txt"));
        let printed = text.trim_end().rsplit('.').next().unwrap();
        assert_eq!(printed, "Switch1");
        let smp = smp(&format!("{name}.response"));
        let (text, rest) = smp.data().split_at(printed.len());
        assert_eq!(text, printed.as_bytes());
        assert!(rest.iter().all(|octet| *octet == 0));
    }
    for name in [
        "linear-forwarding-table-directed",
        "linear-forwarding-table-lid",
    ] {
        let text = file(&format!("{name}.txt"));
        let dump: String = text
            .lines()
            .filter(|line| !line.starts_with('$') && !line.contains("status"))
            .collect();
        let table = smp(&format!("{name}.response"));
        assert_eq!(table.data()[..], octets(&dump), "{name}");
        // Hca1 has LID 1 and is at port 1; LID 2 is the switch itself.
        assert_eq!(table.data()[1..3], [1, 0]);
    }
}

#[test]
fn notices_of_ibsim_and_opensm() {
    let trap = smp("notice-128.trap");
    assert_eq!((trap.method(), trap.is_directed()), (Method::TRAP, false));
    let notice: Notice = trap.decode().unwrap();
    assert_eq!(
        notice.source(),
        NoticeSource::Generic {
            producer_type: 2,
            trap_number: 128
        }
    );
    assert_eq!(
        (
            notice.notice_type(),
            notice.issuer_lid(),
            notice.notice_count()
        ),
        (NoticeType::Urgent, 2, 0)
    );
    assert_eq!(notice.data_details()[..2], [0, 2], "LIDADDR of trap 128");
    assert_eq!(notice.bad_m_key(), None);
    let repress = smp("notice-128.trap-repress");
    assert_eq!(
        (repress.method(), repress.data()),
        (Method::TRAP_REPRESS, trap.data())
    );

    let changed: Notice = smp("notice-144.trap").decode().unwrap();
    assert_eq!(
        (
            changed.trap_number(),
            changed.notice_type(),
            changed.issuer_lid()
        ),
        (Some(144), NoticeType::Informational, 1)
    );
}
