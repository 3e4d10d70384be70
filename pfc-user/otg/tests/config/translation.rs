//! Configurations as clients send them, and the plans that are made of them.

use pfc_ebpf::flow_stamp::Form;
use pfc_ebpf::units::{LineRate, Priority};
use serde_json::{Value as Json, json};
use validator_core::engine::filter::{Filter, From};
use validator_core::engine::packet::{Payload, Protocol, Value};
use validator_core::engine::plan::{
    End, Length, Metrics, Obeys, Plan, PortIndex, Rate, Schedule, Span,
};

use crate::configs::{translated, with_flow};

fn plan(config: &Json) -> Plan {
    translated(config)
        .unwrap_or_else(|refusal| panic!("{:#?}", refusal.errors))
        .plan
}

fn fields(plan: &Plan, header: usize) -> Vec<(&'static str, Value)> {
    plan.flows[0].packet.headers[header].fields.clone()
}

/// Configuration that sonic-mgmt's PFC helpers send: locations of a chassis, PFC by class, a data
/// flow with a DSCP list and a queue, and a storm from the receiving port.
fn sonic() -> Json {
    let classes = (0..8).map(|class| (format!("pfc_class_{class}"), json!(class)));
    let mut table: serde_json::Map<String, Json> = classes.collect();
    table.insert("pfc_delay".into(), json!(0));
    json!({
        "ports": [{"name": "Port 0", "location": "10.36.78.53;1;1"},
                  {"name": "Port 1", "location": "10.36.78.53;1;2"}],
        "layer1": [{
            "name": "L1", "port_names": ["Port 0", "Port 1"], "speed": "speed_100_gbps",
            "promiscuous": true, "mtu": 1500,
            "ieee_media_defaults": false, "auto_negotiate": false,
            "auto_negotiation": {"link_training": false, "rs_fec": true},
            "flow_control": {"choice": "ieee_802_1qbb", "directed_address": "01:80:C2:00:00:01",
                             "ieee_802_1qbb": table},
        }],
        "options": {"port_options": {"location_preemption": true}},
        "devices": [{"name": "Device 0", "ethernets": [{
            "name": "Ethernet 0", "mac": "00:11:22:33:44:01", "mtu": 1500,
            "connection": {"choice": "port_name", "port_name": "Port 0"},
            "ipv4_addresses": [{"name": "Ipv4 0", "address": "21.1.1.2", "gateway": "21.1.1.1",
                                "prefix": 24}],
        }]}],
        "flows": [{
            "name": "Test Flow Prio 3",
            "tx_rx": {"choice": "port", "port": {"tx_name": "Port 0", "rx_name": "Port 1"}},
            "packet": [
                {"choice": "ethernet", "ethernet": {
                    "dst": {"choice": "value", "value": "72:06:00:01:02:03"},
                    "src": {"choice": "value", "value": "00:11:22:33:44:01"},
                    "pfc_queue": {"choice": "value", "value": 3}}},
                {"choice": "ipv4", "ipv4": {
                    "src": {"choice": "value", "value": "21.1.1.2"},
                    "dst": {"choice": "value", "value": "22.1.1.2"},
                    "priority": {"choice": "dscp", "dscp": {
                        "phb": {"choice": "values", "values": [3, 4]},
                        "ecn": {"choice": "value", "value": 2}}}}},
                {"choice": "udp", "udp": {
                    "src_port": {"choice": "increment",
                                 "increment": {"start": 5000, "step": 1, "count": 1}}}},
            ],
            "size": {"choice": "fixed", "fixed": 1024},
            "rate": {"choice": "percentage", "percentage": 45},
            "duration": {"choice": "fixed_seconds", "fixed_seconds": {
                "seconds": 15, "gap": 12,
                "delay": {"choice": "nanoseconds", "nanoseconds": 4e9}}},
            "metrics": {"enable": true, "loss": true, "timestamps": false},
        }, {
            "name": "Pause Storm",
            "tx_rx": {"choice": "port", "port": {"tx_name": "Port 1", "rx_name": "Port 0"}},
            "packet": [{"choice": "pfcpause", "pfcpause": {
                "src": {"choice": "value", "value": "00:00:fa:ce:fa:ce"},
                "dst": {"choice": "value", "value": "01:80:C2:00:00:01"},
                "class_enable_vector": {"choice": "value", "value": 8},
                "pause_class_3": {"choice": "value", "value": 65535}}}],
            "rate": {"choice": "pps", "pps": 5960},
            "size": {"choice": "fixed", "fixed": 64},
            "duration": {"choice": "continuous", "continuous": {
                "delay": {"choice": "nanoseconds", "nanoseconds": 0}}},
            "metrics": {"enable": true, "loss": true},
        }],
    })
}

#[test]
fn sonic_mgmts_configuration_is_understood() {
    let translated = translated(&sonic()).unwrap();
    let plan = &translated.plan;
    assert_eq!(plan.ports[0].interface, "veth0");
    assert_eq!(plan.ports[0].namespace.as_deref(), Some("tester"));
    let rate = LineRate::from_bits_per_second(100_000_000_000).unwrap();
    assert_eq!(plan.ports[1].line_rate, Some(rate));
    assert_eq!(plan.ports[1].mtu, None, "the default asks for nothing");
    let all = std::array::from_fn(|class| Priority::new(class as u8).ok());
    assert_eq!(plan.ports[0].obeys, Obeys::Pfc(all));
    let [data, storm] = &plan.flows[..] else {
        panic!("two flows")
    };
    assert_eq!((data.from, &data.to), (PortIndex(0), &vec![PortIndex(1)]));
    assert_eq!(data.queue.get(), 3);
    assert_eq!(data.length, Length::Fixed(1024));
    assert_eq!(data.rate, Rate::Percent(45.0));
    assert_eq!(
        data.schedule,
        Schedule {
            delay: Span::Time(4_000_000_000),
            end: End::Time(15_000_000_000),
            gap: 12,
        }
    );
    assert_eq!(
        fields(plan, 1),
        [
            ("priority", Value::List(vec![3 << 2 | 2, 4 << 2 | 2])),
            ("src", Value::Fixed(0x1501_0102)),
            ("dst", Value::Fixed(0x1601_0102)),
        ]
    );
    assert_eq!((storm.from, &storm.to), (PortIndex(1), &vec![PortIndex(0)]));
    assert_eq!(storm.packet.headers[0].protocol, Protocol::PfcPause);
    assert_eq!(storm.schedule.end, End::Never);
    assert!(translated.flows[1].endless && !translated.flows[0].endless);
    assert_eq!(plan.interfaces[0].gateway.to_string(), "21.1.1.1");
    // The driver of the interface decides three fields, and a warning tells of each.
    assert_eq!(translated.warnings.len(), 3, "{:?}", translated.warnings);
}

/// A device with an address of each family.
fn device(number: u8, port: &str) -> Json {
    json!({"name": format!("d{number}"), "ethernets": [{
        "name": format!("e{number}"), "mac": format!("02:00:00:00:00:0{number}"),
        "connection": {"choice": "port_name", "port_name": port},
        "ipv4_addresses": [{"name": format!("i{number}"), "address": format!("10.0.0.{number}"),
                            "gateway": "10.0.0.9"}],
        "ipv6_addresses": [{"name": format!("v{number}"), "address": format!("fc00::{number}"),
                            "gateway": "fc00::9"}]}]})
}

#[test]
fn frames_walk_through_the_pairs_of_devices() {
    let config = |mode: &str, tx: &[&str], rx: &[&str]| {
        let mut config = with_flow(json!({
            "tx_rx": {"choice": "device",
                      "device": {"mode": mode, "tx_names": tx, "rx_names": rx}},
            "packet": [{"choice": "ethernet"}, {"choice": "ipv4"}, {"choice": "udp"}],
        }));
        let devices = [(1, "p1"), (2, "p1"), (3, "p2"), (4, "p2")];
        config["devices"] = devices.map(|(number, port)| device(number, port)).into();
        config
    };
    let source = |number: u128| 0x0200_0000_0000 + number;
    let address = |number: u128| 0x0a00_0000 + number;
    let list = |of: fn(u128) -> u128, numbers: &[u128]| {
        Value::List(numbers.iter().copied().map(of).collect())
    };
    let walked = |config: &Json| {
        let plan = plan(config);
        let ip = fields(&plan, 1);
        let flow = &plan.flows[0];
        assert_eq!((flow.from, &flow.to), (PortIndex(0), &vec![PortIndex(1)]));
        (
            fields(&plan, 0)[0].1.clone(),
            ip[0].1.clone(),
            ip[1].1.clone(),
            flow.next_hops.clone(),
        )
    };
    assert_eq!(
        walked(&config("mesh", &["d1", "d2"], &["d3", "d4"])),
        (
            list(source, &[1, 1, 2, 2]),
            list(address, &[1, 1, 2, 2]),
            list(address, &[3, 4, 3, 4]),
            vec![0, 0, 2, 2]
        )
    );
    assert_eq!(
        walked(&config("one_to_one", &["d1", "d2"], &["d4", "d3"])),
        (
            list(source, &[1, 2]),
            list(address, &[1, 2]),
            list(address, &[4, 3]),
            vec![0, 2]
        )
    );
    for (mode, tx, rx, message) in [
        (
            "one_to_one",
            &["d1", "d2"][..],
            &["d3"][..],
            "has 1 names, and tx_names has 2",
        ),
        (
            "mesh",
            &["d1", "d3"],
            &["d4"],
            "has devices of several ports",
        ),
        (
            "mesh",
            &["d1", "d2"],
            &["d2"],
            "as tx_names has for the same frames",
        ),
        ("mesh", &[], &["d2"], "has no name"),
    ] {
        let refusal = translated(&config(mode, tx, rx)).unwrap_err();
        let errors = refusal.errors;
        assert!(
            errors.len() == 1 && errors[0].contains(message),
            "{errors:?}"
        );
    }
}

#[test]
fn a_device_flow_takes_from_its_devices_what_it_leaves_out() {
    let mut config = with_flow(json!({
        "tx_rx": {"choice": "device", "device": {"tx_names": ["d1"], "rx_names": ["i2"]}},
        "packet": [{"choice": "ethernet"}, {"choice": "ipv4"}, {"choice": "udp"}],
        "metrics": {"enable": true, "latency": {"enable": true, "mode": "store_forward"}},
    }));
    config["devices"] = json!([device(1, "p1"), device(2, "p2")]);
    let plan = plan(&config);
    assert_eq!(plan.interfaces.len(), 4);
    assert_eq!(plan.interfaces[1].prefix, 64);
    let flow = &plan.flows[0];
    assert_eq!(flow.next_hops, [0]);
    assert_eq!((flow.from, &flow.to), (PortIndex(0), &vec![PortIndex(1)]));
    assert_eq!(fields(&plan, 0), [("src", Value::Fixed(0x0200_0000_0001))]);
    assert_eq!(
        fields(&plan, 1),
        [
            ("src", Value::Fixed(0x0a00_0001)),
            ("dst", Value::Fixed(0x0a00_0002))
        ]
    );
    assert_eq!(
        flow.metrics,
        Metrics {
            stamp: Some(Form::Whole),
            latency: true
        }
    );
}

#[test]
fn a_capture_has_a_filter_for_each_field_that_is_given() {
    let mut config = with_flow(json!({}));
    config["captures"] = json!([{"name": "c", "port_names": ["p1"], "filters": [
        {"choice": "custom", "custom": {"offset": 96, "bit_length": 16, "value": "8808"}},
        {"choice": "ethernet", "ethernet": {
            "dst": {"value": "01:80:c2:00:00:01"},
            "src": {"value": "0000faceface", "mask": "00ff", "negate": true}}},
        {"choice": "vlan", "vlan": {"priority": {"value": "3"}, "id": {"value": "07"}}},
        {"choice": "ipv4", "ipv4": {"priority": {"value": "b8", "mask": "03"}}},
    ]}]);
    let of = |from, bit, bits, value| Filter {
        from,
        bit,
        bits,
        value,
        ignored: 0,
        negate: false,
    };
    let masked = |ignored, negate, filter| Filter {
        ignored,
        negate,
        ..filter
    };
    assert_eq!(
        plan(&config).ports[0].captures.filters,
        [
            of(From::Frame, 96, 16, 0x8808),
            of(From::Frame, 0, 48, 0x0180_c200_0001),
            masked(0xff, true, of(From::Frame, 48, 48, 0xface_face)),
            of(From::Tag, 0, 3, 3),
            of(From::Tag, 4, 12, 7),
            masked(3, false, of(From::Ipv4, 8, 8, 0xb8)),
        ]
    );
}

/// The warnings of a configuration, which is taken.
fn warnings(config: &Json) -> Vec<String> {
    let translated = translated(config);
    translated
        .unwrap_or_else(|refusal| panic!("{:#?}", refusal.errors))
        .warnings
}

#[test]
fn what_changes_nothing_is_warned_of_unless_clients_send_it_by_themselves() {
    let pause = |latency: bool| {
        json!({"packet": [{"choice": "pfcpause"}],
               "metrics": {"enable": true, "latency": {"enable": latency}}})
    };
    assert_eq!(warnings(&with_flow(pause(false))), [""; 0]);
    assert_eq!(
        warnings(&with_flow(pause(true))),
        [
            "flows[0].metrics.latency changes nothing: pause frames have no room for a stamp, \
             which it needs"
        ]
    );
    for (part, option, warned) in [
        // As snappi fills in what a script touches.
        (
            "port_options",
            json!({"location_preemption": false, "data_integrity": false}),
            false,
        ),
        ("port_options", json!({"location_preemption": true}), false),
        (
            "port_options",
            json!({"frame_ordering_mode": {"choice": "no_ordering"}}),
            false,
        ),
        ("protocol_options", json!({"auto_start_all": true}), false),
        (
            "flow_options",
            json!({"packet_loss_duration": false}),
            false,
        ),
        ("protocol_options", json!({"auto_start_all": false}), true),
    ] {
        let mut config = with_flow(json!({}));
        config["options"] = json!({part: option});
        let begin = "options.protocol_options.auto_start_all changes nothing";
        let found = warnings(&config);
        assert_eq!(found.len(), usize::from(warned), "{option}: {found:?}");
        assert!(
            found.iter().all(|warning| warning.starts_with(begin)),
            "{found:?}"
        );
    }
}

#[test]
fn a_next_hop_outside_of_its_subnet_is_warned_of() {
    for (address, gateway, prefix, near) in [
        ("10.0.0.1", "10.0.0.9", 24, true),
        ("10.0.0.1", "10.0.1.9", 24, false),
        ("10.0.0.1", "10.0.1.9", 23, true),
        ("10.0.0.1", "192.0.2.1", 0, true),
        ("10.0.0.1", "10.0.0.2", 32, false),
        ("fc00::1", "fc00::ffff:9", 64, true),
        ("fc00::1", "fc00::ffff:9", 112, false),
        ("fc00::1", "fe80::9", 64, true),
        ("fc00::1", "fd00::9", 0, true),
    ] {
        let field = if address.contains(':') {
            "ipv6_addresses"
        } else {
            "ipv4_addresses"
        };
        let mut config = with_flow(json!({}));
        config["devices"] = json!([{"name": "d", "ethernets": [{
            "name": "e", "mac": "02:00:00:00:00:02",
            "connection": {"choice": "port_name", "port_name": "p1"},
            field: [{"name": "i", "address": address, "gateway": gateway, "prefix": prefix}]}]}]);
        let warned = format!(
            "devices[0].ethernets[0].{field}[0].gateway {gateway} is not in the subnet of \
             {address}/{prefix}; it is asked for on its link"
        );
        let expected = if near { Vec::new() } else { vec![warned] };
        assert_eq!(warnings(&config), expected);
    }
}

#[test]
fn what_a_flow_leaves_out_has_the_models_defaults() {
    let flow = plan(&with_flow(json!({}))).flows.remove(0);
    assert_eq!(flow.length, Length::Fixed(64));
    assert_eq!(flow.rate, Rate::FramesPerSecond(1000));
    assert_eq!(flow.schedule.end, End::Never);
    assert_eq!(flow.metrics, Metrics::default());
    assert_eq!(flow.packet.headers[0].fields, []);
    // The model's header where none is given.
    let none = plan(&with_flow(json!({"packet": []})));
    assert_eq!(none.flows[0].packet, flow.packet);
    assert_eq!(flow.packet.headers.len(), 1);
    assert_eq!(flow.packet.headers[0].protocol, Protocol::Ethernet);
}

#[test]
fn every_kind_of_pattern_is_understood() {
    let number = |pattern: Json| {
        let udp = json!({"choice": "udp", "udp": {"src_port": pattern}});
        let config = with_flow(json!({"packet": [
            {"choice": "ethernet"}, {"choice": "ipv4"}, udp]}));
        fields(&plan(&config), 2)
    };
    let (start, step, count) = (5, 2, 9);
    let counter = json!({"start": 5, "step": 2, "count": 9});
    let random = Value::Random {
        min: 0,
        max: 0xffff,
        seed: 1,
        count: 9,
    };
    for (choice, pattern, expected) in [
        ("value", json!(7), Value::Fixed(7)),
        ("values", json!([1, 2]), Value::List(vec![1, 2])),
        (
            "increment",
            counter.clone(),
            Value::Increment { start, step, count },
        ),
        (
            "decrement",
            counter,
            Value::Decrement { start, step, count },
        ),
        ("random", json!({"count": 9}), random),
    ] {
        let found = number(json!({"choice": choice, choice: pattern}));
        assert_eq!(found, [("src_port", expected)]);
    }
    assert_eq!(number(json!({"value": 7})), [("src_port", Value::Fixed(7))]);
    assert_eq!(number(json!({"choice": "value"})), []);
}

#[test]
fn segments_are_headers_behind_their_routing_header() {
    let extension = |routing: Json| {
        json!({"choice": "ipv6_extension_header", "ipv6_extension_header": {
            "hdr_ext_len": {"choice": "auto", "auto": 0},
            "routing": {"choice": "segment_routing", "segment_routing": routing}}})
    };
    let segment = |address: &str| json!({"segment": {"choice": "value", "value": address}});
    let routing = extension(json!({
        "segments_left": {"choice": "value", "value": 1},
        "last_entry": {"choice": "auto", "auto": 0},
        "flags": {"oam": {"value": 1}}, "tag": {"value": 7},
        "segment_list": [segment("fc00::a"), segment("fc00::b")]}));
    let packet = json!([{"choice": "ethernet"}, {"choice": "ipv6"}, routing, {"choice": "udp"}]);
    let plan = plan(&with_flow(json!({"packet": packet})));
    let headers = plan.flows[0].packet.headers.iter();
    let protocols: Vec<_> = headers.skip(2).map(|header| header.protocol).collect();
    use Protocol::{Segment, SegmentRouting, Udp};
    assert_eq!(protocols, [SegmentRouting, Segment, Segment, Udp]);
    let expected = [("segments_left", 1), ("tag", 7), ("oam", 1)];
    let expected = expected.map(|(name, value)| (name, Value::Fixed(value)));
    assert_eq!(fields(&plan, 2), expected);
    let address = Value::Fixed(0xfc00 << 112 | 0xb);
    assert_eq!(fields(&plan, 4), [("segment", address)]);
    for (routing, message) in [
        (
            json!({}),
            ".segment_list must have 1 to 127 segments, found 0",
        ),
        (
            json!({"segment_list": [segment("::1")], "pad_tlv": {"type": {"value": 4}}}),
            ".pad_tlv is not supported: segments need no octets behind them; remove it",
        ),
    ] {
        let packet = json!([{"choice": "ethernet"}, {"choice": "ipv6"}, extension(routing)]);
        let errors = translated(&with_flow(json!({"packet": packet})))
            .unwrap_err()
            .errors;
        let path = "flows[0].packet[2].ipv6_extension_header.routing.segment_routing";
        assert_eq!(errors, [format!("{path}{message}")]);
    }
}

#[test]
fn every_kind_of_payload_is_understood() {
    let pattern = |octets: &[u8], repeat| Payload::Pattern {
        octets: octets.to_vec(),
        repeat,
    };
    let fixed = |fixed: Json| json!({"choice": "fixed", "fixed": fixed});
    let filled = pattern(&[0xde, 0xad], true);
    for (payload, expected) in [
        (json!({}), pattern(&[0], true)),
        (fixed(json!({"pattern": "dead"})), filled.clone()),
        (json!({"fixed": {"pattern": "DE:AD"}}), filled),
        (
            fixed(json!({"pattern": "0xdead", "repeat": false})),
            pattern(&[0xde, 0xad], false),
        ),
        (json!({"choice": "increment_byte"}), Payload::Up),
        (json!({"choice": "decrement_byte"}), Payload::Down),
        (json!({"choice": "increment_word"}), Payload::WordsUp),
        (json!({"choice": "decrement_word"}), Payload::WordsDown),
    ] {
        let plan = plan(&with_flow(json!({"payload": payload})));
        assert_eq!(plan.flows[0].packet.payload, expected, "{payload}");
    }
    assert_eq!(
        plan(&with_flow(json!({}))).flows[0].packet.payload,
        Payload::Up
    );
    let pauses = json!({"packet": [{"choice": "pfcpause"}], "payload": {}});
    let warned = "flows[0].payload changes nothing: zeros follow the times of pause frames";
    assert_eq!(warnings(&with_flow(pauses)), [warned]);
}

#[test]
fn addresses_walk_too() {
    let config = with_flow(json!({"packet": [
        {"choice": "ethernet", "ethernet": {"src": {"choice": "increment", "increment": {
            "start": "00:00:00:00:00:10", "step": "00:00:00:00:01:00", "count": 3}}}},
        {"choice": "ipv6", "ipv6": {"dst": {"choice": "values", "values": ["::1", "fc00::"]}}},
    ]}));
    let plan = plan(&config);
    assert_eq!(
        fields(&plan, 0),
        [(
            "src",
            Value::Increment {
                start: 0x10,
                step: 0x100,
                count: 3
            }
        )]
    );
    assert_eq!(
        fields(&plan, 1),
        [("dst", Value::List(vec![1, 0xfc00 << 112]))]
    );
}

#[test]
fn what_is_computed_is_left_to_the_engine() {
    let config = with_flow(json!({"packet": [
        {"choice": "ethernet", "ethernet": {"dst": {"choice": "auto", "auto": "00:00:00:00:00:00"},
                                            "ether_type": {"choice": "auto", "auto": 65535}}},
        {"choice": "vlan", "vlan": {"id": {"choice": "value", "value": 9},
                                    "tpid": {"choice": "value", "value": 65535}}},
        {"choice": "ipv4", "ipv4": {"total_length": {"choice": "auto", "auto": 46},
            "header_checksum": {"choice": "generated", "generated": "bad"}}},
        {"choice": "udp", "udp": {"length": {"choice": "value", "value": 0},
            "checksum": {"choice": "generated", "generated": "good"}}},
    ]}));
    let plan = plan(&config);
    assert_eq!(fields(&plan, 0), []);
    assert_eq!(fields(&plan, 1), [("id", Value::Fixed(9))]);
    assert_eq!(fields(&plan, 2), [("header_checksum", Value::Bad)]);
    assert_eq!(fields(&plan, 3), []);
}

#[test]
fn rates_and_ends_of_every_kind_are_understood() {
    use Rate::{BitsPerSecond, FramesPerSecond, Percent};
    for (unit, value, expected) in [
        ("pps", 5, FramesPerSecond(5)),
        ("bps", 5000, BitsPerSecond(5000)),
        ("kbps", 5, BitsPerSecond(5000)),
        ("mbps", 5, BitsPerSecond(5_000_000)),
        ("gbps", 5, BitsPerSecond(5_000_000_000)),
        // A flow may have no rate yet.
        ("pps", 0, FramesPerSecond(0)),
        ("percentage", 0, Percent(0.0)),
        ("bps", 0, BitsPerSecond(0)),
    ] {
        let rate = json!({"choice": unit, unit: value});
        let flow = plan(&with_flow(json!({"rate": rate}))).flows.remove(0);
        assert_eq!((flow.rate, flow.rate.check()), (expected, None), "{unit}");
    }
    let whole = json!({"rate": {"choice": "percentage"}});
    assert_eq!(plan(&with_flow(whole)).flows[0].rate, Percent(100.0));
    let burst = json!({"packets": 7, "inter_burst_gap":
        {"choice": "microseconds", "microseconds": 1.5}});
    for (duration, expected) in [
        (json!({"choice": "continuous"}), End::Never),
        (json!({"choice": "fixed_packets"}), End::Frames(1)),
        (
            json!({"choice": "fixed_seconds", "fixed_seconds": {"seconds": 0.5}}),
            End::Time(500_000_000),
        ),
        (
            json!({"choice": "burst", "burst": burst}),
            End::Bursts {
                bursts: None,
                frames: 7,
                gap: Span::Time(1500),
            },
        ),
    ] {
        let plan = plan(&with_flow(json!({"duration": duration})));
        assert_eq!(plan.flows[0].schedule.end, expected);
    }
}

#[test]
fn without_a_size_frames_are_the_shortest_that_the_flow_can_have() {
    let stack = |last: &str| {
        let [ethernet, network] = match last {
            "udp6" => ["ethernet", "ipv6"],
            _ => ["ethernet", "ipv4"],
        };
        let last = last.trim_end_matches('6');
        json!([
            {"choice": ethernet, ethernet: {}},
            {"choice": network, network: {"src": {}, "dst": {}}},
            {"choice": last, last: {}},
        ])
    };
    for (last, counted, octets) in [
        ("udp", true, 64),
        ("tcp", false, 64),
        ("tcp", true, 64),
        ("udp6", false, 66),
        ("udp6", true, 72),
    ] {
        let flow = json!({"packet": stack(last), "metrics": {"enable": counted}});
        let translated = translated(&with_flow(flow)).unwrap();
        let length = &translated.plan.flows[0].length;
        assert_eq!(*length, Length::Fixed(octets), "{last}, counted: {counted}");
        let warned = translated.warnings.iter().any(|warning| {
            warning.ends_with(&format!("size is not given: frames have {octets} octets"))
        });
        assert_eq!(warned, octets > 64, "{:?}", translated.warnings);
    }
}

#[test]
fn sizes_of_every_kind_are_understood() {
    let length = |size: Json| {
        plan(&with_flow(json!({"size": size})))
            .flows
            .remove(0)
            .length
    };
    let weighted = |pairs: Json| json!({"choice": "weight_pairs", "weight_pairs": pairs});
    let (start, end, step) = (64, 1518, 1);
    for (size, expected) in [
        (
            json!({"choice": "increment"}),
            Length::Increment { start, end, step },
        ),
        (
            json!({"choice": "random", "random": {"min": 100, "max": 200}}),
            Length::Random { min: 100, max: 200 },
        ),
        (
            weighted(json!({"choice": "predefined", "predefined": "imix"})),
            Length::Weighted(vec![(64, 7.0), (570, 4.0), (1518, 1.0)]),
        ),
        (
            weighted(json!({"choice": "custom", "custom": [{"size": 99, "weight": 2}]})),
            Length::Weighted(vec![(99, 2.0)]),
        ),
    ] {
        assert_eq!(length(size), expected);
    }
}

#[test]
fn arp_icmp_gre_and_mpls_are_headers_with_the_fields_of_the_model() {
    use Protocol::{Arp, Ethernet, Gre, GreSum, Icmp, Icmpv6, Ipv4, Ipv6, Mpls};
    let value = |value: Json| json!({"choice": "value", "value": value});
    let arp = json!({"choice": "arp", "arp": {
        "operation": value(json!(2)), "sender_protocol_addr": value(json!("10.0.0.1")),
        "target_hardware_addr": value(json!("02:00:00:00:00:01"))}});
    let icmp = |choice: &str| {
        json!({"choice": choice, choice: {"choice": "echo", "echo": {
        "type": value(json!(0)), "identifier": value(json!(7)),
        "checksum": {"choice": "generated", "generated": "bad"}}}})
    };
    let gre = |sum: u8| json!({"choice": "gre", "gre": {"checksum_present": value(json!(sum))}});
    let mpls = json!({"choice": "mpls", "mpls": {"label": value(json!(99))}});
    let ip = |choice: &str| json!({"choice": choice, choice: {}});
    let fixed = |name, value| (name, Value::Fixed(value));
    let echo = vec![
        fixed("type", 0),
        ("checksum", Value::Bad),
        fixed("identifier", 7),
    ];
    for (rest, protocols, expected) in [
        (
            vec![arp],
            vec![Arp],
            vec![
                fixed("operation", 2),
                fixed("sender_protocol_addr", 0x0a00_0001),
                fixed("target_hardware_addr", 0x0200_0000_0001),
            ],
        ),
        (vec![ip("ipv4"), icmp("icmp")], vec![Ipv4, Icmp], echo),
        (
            vec![ip("ipv6"), icmp("icmpv6")],
            vec![Ipv6, Icmpv6],
            vec![
                fixed("type", 0),
                fixed("identifier", 7),
                ("checksum", Value::Bad),
            ],
        ),
        (
            vec![ip("ipv4"), gre(0)],
            vec![Ipv4, Gre],
            vec![fixed("checksum_present", 0)],
        ),
        (
            vec![ip("ipv4"), gre(1)],
            vec![Ipv4, GreSum],
            vec![fixed("checksum_present", 1)],
        ),
        (vec![mpls.clone()], vec![Mpls], vec![fixed("label", 99)]),
    ] {
        let packet = [vec![json!({"choice": "ethernet"})], rest].concat();
        let plan = plan(&with_flow(json!({"packet": packet})));
        let headers = &plan.flows[0].packet.headers;
        let found: Vec<_> = headers.iter().map(|header| header.protocol).collect();
        assert_eq!(found, [vec![Ethernet], protocols].concat());
        let mut fields = headers.last().unwrap().fields.clone();
        fields.sort_by_key(|(name, _)| *name);
        let mut expected = expected;
        expected.sort_by_key(|(name, _)| *name);
        assert_eq!(fields, expected);
    }
}

#[test]
fn frames_without_room_for_a_whole_stamp_are_counted_by_a_short_one_where_no_time_is_asked_for() {
    let flow = |size: Json, latency: bool| {
        let packet = ["ethernet", "ipv4", "tcp"].map(|name| json!({"choice": name}));
        let found = translated(&with_flow(json!({
            "packet": packet, "size": size,
            "metrics": {"enable": true, "latency": {"enable": latency}},
        })));
        let found = found.unwrap();
        let flow = &found.plan.flows[0];
        (flow.metrics.stamp, flow.length.bounds(), found.warnings)
    };
    let fixed = |length: u32| json!({"choice": "fixed", "fixed": length});
    let imix = json!({"choice": "weight_pairs",
        "weight_pairs": {"choice": "predefined", "predefined": "imix"}});
    let (short, whole) = (Some(Form::Short), Some(Form::Whole));
    for (size, latency, stamp, bounds, count) in [
        (fixed(64), false, short, (64, 64), 1),
        (fixed(75), false, short, (75, 75), 1),
        (fixed(76), false, whole, (76, 76), 0),
        (fixed(76), true, whole, (76, 76), 0),
        (imix.clone(), false, short, (64, 1518), 1),
        (imix, true, whole, (76, 1518), 1),
    ] {
        let (found, lengths, warnings) = flow(size.clone(), latency);
        assert_eq!((found, lengths), (stamp, bounds), "{size}");
        assert_eq!(warnings.len(), count, "{warnings:?}");
        let names_short = warnings
            .iter()
            .any(|warning| warning.contains("short stamp"));
        assert_eq!(names_short, stamp == short, "{warnings:?}");
    }
}

#[test]
fn what_is_measured_in_another_way_is_taken_with_a_warning_that_says_so() {
    for (field, part) in [
        (
            json!({"metrics": {"enable": true, "latency": {"enable": true, "mode": "cut_through"}}}),
            "flows[0].metrics.latency.mode cut_through is measured as store_forward",
        ),
        (
            json!({"metrics": {"enable": true, "timestamps": true}}),
            "flows[0].metrics.timestamps changes nothing",
        ),
        (
            json!({"size": {"choice": "weight_pairs",
                "weight_pairs": {"choice": "predefined", "predefined": "standard_imix"}}}),
            "flows[0].size.weight_pairs.predefined has shorter frames",
        ),
    ] {
        let found = translated(&with_flow(field)).unwrap();
        let [warning] = &found.warnings[..] else {
            panic!("{:?}", found.warnings);
        };
        assert!(warning.starts_with(part), "{warning}");
        let (shortest, _) = found.plan.flows[0].length.bounds();
        assert!(shortest >= 64);
    }
}
