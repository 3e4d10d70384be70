//! Errors of the codec, and the parts of attributes that are not plain fields.

use ib_mad::attr::{
    Attribute, BadMKey, NodeInfo, NodeType, Notice, NoticeSource, NoticeType, PortInfo, PortState,
    SwitchInfo,
};
use ib_mad::mad::{AttributeId, Lid, MKey, MadError, Method, Status, Tid};
use ib_mad::smp::{Path, PathError, Route, Smp};

fn directed(ports: &[u8]) -> Smp {
    Smp::request(
        Method::GET,
        AttributeId::NODE_INFO,
        0,
        &Route::Directed(Path::new(ports.to_vec()).unwrap()),
    )
}

#[test]
fn errors_name_what_was_expected_and_what_was_found() {
    let refused = |octets: &[u8]| Smp::parse(octets).unwrap_err();
    assert_eq!(refused(&[]), MadError::Length(0));
    assert_eq!(
        refused(&[1; 257]).to_string(),
        "a MAD has 256 octets, found 257"
    );
    assert_eq!(
        refused(&[2; 256]).to_string(),
        "base version 1 expected, found 2"
    );
    let mut class = *directed(&[]).octets();
    class[1] = 0x03;
    assert_eq!(
        refused(&class).to_string(),
        "management class 0x01 or 0x81 expected, found 0x03"
    );

    let error = directed(&[]).decode::<PortInfo>().unwrap_err();
    assert_eq!(error.to_string(), "PortInfo expected, found NodeInfo");

    let mut port = PortInfo::default();
    let error = port.set_lmc(8).unwrap_err();
    assert_eq!(
        error.to_string(),
        "PortInfo:LMC has 3 bits, and 0x8 does not fit"
    );
    let error = port.set_port_state(PortState::Unknown(16)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "PortInfo:PortState has 4 bits, and 0x10 does not fit"
    );
    assert_eq!(port, PortInfo::default());
    let error = NodeInfo::default().set_vendor_id(0x0100_0000).unwrap_err();
    assert_eq!(
        error.to_string(),
        "NodeInfo:VendorID has 24 bits, and 0x1000000 does not fit"
    );
    let error = SwitchInfo::default().set_life_time_value(32).unwrap_err();
    assert_eq!(
        error.to_string(),
        "SwitchInfo:LifeTimeValue has 5 bits, and 0x20 does not fit"
    );
    let error = BadMKey::default().set_dr_hop_count(64).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Notice:DRHopCount has 6 bits, and 0x40 does not fit"
    );
}

#[test]
fn values_that_the_specification_does_not_know_are_kept() {
    let mut node = NodeInfo::default();
    node.set_node_type(NodeType::Unknown(77)).unwrap();
    assert_eq!(node.node_type(), NodeType::Unknown(77));
    let mut port = PortInfo::default();
    port.set_port_state(PortState::Unknown(9)).unwrap();
    assert_eq!(port.port_state(), PortState::Unknown(9));
    // `Unknown` with a known value reads back as the known state.
    port.set_port_state(PortState::Unknown(4)).unwrap();
    assert_eq!(port.port_state(), PortState::Active);
    let mut notice = Notice::default();
    for bits in 0..=0x7f {
        notice.set_notice_type(NoticeType::Unknown(bits)).unwrap();
        assert_eq!(notice.data()[0], bits);
        notice.set_notice_type(notice.notice_type()).unwrap();
        assert_eq!(notice.data()[0], bits);
    }
}

#[test]
fn a_response_differs_in_method_status_and_direction_only() {
    for request in [
        directed(&[1, 2]),
        Smp::request(Method::SET, AttributeId::PORT_INFO, 3, &Route::Lid(Lid(7))),
    ] {
        let mut request = request;
        request.set_tid(Tid(0x0123_4567_89ab_cdef));
        request.set_m_key(MKey(5));
        request.data_mut().fill(0xa5);
        let response = request.response(Status::INVALID_FIELD);
        assert_eq!(
            (response.method(), response.status()),
            (Method::GET_RESP, Status::INVALID_FIELD)
        );
        assert_eq!(response.is_returning(), request.is_directed());
        assert_eq!(response.octets()[4] & 0x80 != 0, request.is_directed());
        assert_eq!(
            (&response.octets()[..3], &response.octets()[6..]),
            (&request.octets()[..3], &request.octets()[6..])
        );
    }
}

#[test]
fn status_and_direction_do_not_touch_each_other() {
    let mut smp = directed(&[1]);
    smp.set_returning(true);
    smp.set_status(Status::BUSY);
    assert!(smp.is_returning());
    assert_eq!(
        (smp.status(), smp.octets()[4..6].to_vec()),
        (Status::BUSY, vec![0x80, 0x01])
    );
    smp.set_returning(false);
    assert_eq!((smp.status(), smp.is_returning()), (Status::BUSY, false));
    let mut smp = Smp::request(Method::GET, AttributeId::NODE_INFO, 0, &Route::Lid(Lid(1)));
    smp.set_returning(true);
    assert_eq!(
        smp.octets()[4..6],
        [0, 0],
        "a LID-routed SMP has no direction bit"
    );
}

#[test]
fn directed_routes() {
    let longest: Vec<u8> = (1..=63).collect();
    let smp = directed(&longest);
    assert_eq!(
        (smp.hops(), smp.class_version(), smp.initial_path()[0]),
        ((0, 63), 1, 0)
    );
    assert_eq!(smp.path().unwrap().ports(), longest);
    assert_eq!(Path::new(vec![1; 64]), Err(PathError::TooLong(64)));
    assert_eq!("0,1,3".parse::<Path>().unwrap().to_string(), "0,1,3");
    for text in ["", "1", "0,0", "0,255", "0,256", "0,,1", "0,-1", "0,x"] {
        assert_eq!(text.parse::<Path>(), Err(PathError::Form(text.to_owned())));
    }
}

#[test]
fn notices_of_a_vendor_have_no_trap_number() {
    let mut notice = Notice::default();
    notice.set_producer_type_or_vendor_id(0x0002_c903).unwrap();
    notice.set_trap_number_or_device_id(256).unwrap();
    assert_eq!(
        notice.source(),
        NoticeSource::Vendor {
            vendor_id: 0x02c903,
            device_id: 256
        }
    );
    assert_eq!((notice.trap_number(), notice.bad_m_key()), (None, None));

    let mut details = BadMKey::default();
    details.set_method(Method::SET).unwrap();
    details.set_m_key(MKey(7)).unwrap();
    details.dr_notice_return_path_mut()[29] = 9;
    notice.set_bad_m_key(&details).unwrap();
    assert_eq!(
        (notice.trap_number(), notice.notice_type()),
        (Some(256), NoticeType::Security)
    );
    assert_eq!(notice.bad_m_key(), Some(details));
    assert_eq!(notice.data()[63], 9);
}

#[test]
fn names_of_methods_and_attributes() {
    let names = [
        (Method::GET, "Get"),
        (Method::SET, "Set"),
        (Method::SEND, "Send"),
        (Method::TRAP, "Trap"),
        (Method::REPORT, "Report"),
        (Method::TRAP_REPRESS, "TrapRepress"),
        (Method::GET_RESP, "GetResp"),
        (Method::REPORT_RESP, "ReportResp"),
        (Method(0x70), "method 0x70"),
    ];
    for (method, name) in names {
        assert_eq!(method.to_string(), name);
    }
    assert_eq!(AttributeId(0xff12).to_string(), "attribute 0xff12");
    assert_eq!(Status::INVALID_FIELD.to_string(), "0x001c (code 7)");
}
