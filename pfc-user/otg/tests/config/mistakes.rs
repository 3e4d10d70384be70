//! Mistakes of configurations, each named by its path.

use serde_json::{Value as Json, json};

use crate::configs::{translated, with_flow};

fn errors(config: &Json) -> Vec<String> {
    translated(config).expect_err("it is refused").errors
}

/// The error that a flow with these fields has, which is the only one.
fn flow_error(fields: Json) -> String {
    let errors = errors(&with_flow(fields.clone()));
    assert_eq!(errors.len(), 1, "{fields}: {errors:#?}");
    errors.into_iter().next().unwrap()
}

#[test]
fn each_mistake_of_a_flow_is_named_by_its_path() {
    let size = |size: Json| json!({"size": size});
    let header = |header: Json| json!({"packet": [{"choice": "ethernet"}, header]});
    for (fields, begin) in [
        (
            size(json!({"choice": "fixed", "fixed": 63})),
            "flows[0].size.fixed must be 64 to",
        ),
        (
            size(json!({"choice": "fixed", "fixed": 16001})),
            "flows[0].size.fixed must be 64 to 16000 octets with FCS, found 16001",
        ),
        (
            size(json!({"choice": "increment", "increment": {"start": 200, "end": 100}})),
            "flows[0].size.increment.start is 200, above the end 100",
        ),
        (
            json!({"rate": {"choice": "percentage", "percentage": 101}}),
            "flows[0].rate.percentage must be 0 to 100, found 101",
        ),
        (
            json!({"tx_rx": {"choice": "port", "port": {"tx_name": "p9"}}}),
            "flows[0].tx_rx.port.tx_name names \"p9\", which is no port",
        ),
        (
            json!({"tx_rx": {"choice": "device", "device": {"tx_names": ["d"], "rx_names": []}}}),
            "flows[0].tx_rx.device.",
        ),
        (
            json!({"name": "p1"}),
            "flows[0].name is \"p1\", as ports[0] is called",
        ),
        (
            header(json!({"choice": "gtpv1", "gtpv1": {"version": {"value": 1}}})),
            "flows[0].packet[1].choice \"gtpv1\" is not supported",
        ),
        (
            header(json!({"choice": "udp"})),
            "flows[0].packet[1].udp cannot follow",
        ),
        (
            header(json!({"choice": "vlan", "vlan": {"id": {"value": 4096}}})),
            "flows[0].packet[1].vlan.id.value must be 0 to 4095, found 4096",
        ),
        (
            header(json!({"choice": "ipv4", "ipv4": {"src": {"value": "1.2.3"}}})),
            "flows[0].packet[1].ipv4.src.value has \"1.2.3\"",
        ),
        (
            header(json!({"choice": "ipv4", "ipv4": {"options": [{"choice": "router_alert"}]}})),
            "flows[0].packet[1].ipv4.options is not supported: it needs headers of more than 20",
        ),
        (
            header(
                json!({"choice": "ipv4", "ipv4": {"dst": {"value": "1.1.1.1",
                "metric_tags": [{"name": "t"}]}}}),
            ),
            "flows[0].packet[1].ipv4.dst.metric_tags is not supported: it needs counting by",
        ),
        (
            header(json!({"choice": "custom", "custom": {"bytes": "0g"}})),
            "flows[0].packet[1].custom.bytes must be",
        ),
        (
            json!({"payload": {"choice": "fixed", "fixed": {"pattern": "dea"}}}),
            "flows[0].payload.fixed.pattern must be 1 to 16000 octets of hexadecimal digits",
        ),
        (
            json!({"egress_packet": [{"choice": "ethernet"}]}),
            "flows[0].egress_packet is not supported",
        ),
        (
            json!({"duration": {"choice": "fixed_packets", "fixed_packets": {"packets": 0}}}),
            "flows[0].duration.fixed_packets.packets must be 1 or more",
        ),
        (
            json!({"packet": [{"choice": "ethernet", "ethernet": {"pfc_queue":
                {"choice": "values", "values": [1, 2]}}}]}),
            "flows[0].packet[0].ethernet.pfc_queue walks through queues",
        ),
    ] {
        let error = match fields.pointer("/tx_rx/device") {
            Some(_) => errors(&with_flow(fields)).remove(0),
            None => flow_error(fields),
        };
        assert!(error.starts_with(begin), "{error}\nexpected: {begin}");
    }
}

#[test]
fn checksums_that_cannot_be_computed_behind_custom_octets_have_to_be_given() {
    let header = |name: &str, fields: Json| json!({"choice": name, name: fields});
    let plain = |name: &str| header(name, json!({}));
    let summed = |name: &str, sum: &Json| header(name, json!({"checksum": sum}));
    let given = json!({"choice": "custom", "custom": 7});
    let generated = |value: &str| json!({"choice": "generated", "generated": value});
    let of_length = |octets: u32| {
        let length = json!({"choice": "value", "value": octets / 4});
        header("ipv4", json!({"header_length": length}))
    };
    let custom = header("custom", json!({"bytes": "94040000"}));
    let [ethernet, ipv4, ipv6, udp] = ["ethernet", "ipv4", "ipv6", "udp"].map(plain);
    let udp_given = summed("udp", &given);
    let (good, bad) = (
        summed("tcp", &generated("good")),
        summed("tcp", &generated("bad")),
    );
    let mut options_given = of_length(24);
    options_given["ipv4"]["header_checksum"] = given;
    let of_udp = "flows[0].packet[3].udp.checksum cannot be computed behind a custom header";
    let of_tcp = "flows[0].packet[3].tcp.checksum cannot be computed behind a custom header";
    let of_ipv4 = "flows[0].packet[1].ipv4.header_checksum cannot be computed over options";
    for (headers, expected) in [
        (vec![&ipv6, &custom, &udp], &[of_udp][..]),
        (vec![&ipv6, &custom, &good], &[of_tcp]),
        (vec![&ipv6, &custom, &bad], &[of_tcp]),
        (vec![&ipv6, &custom, &udp_given], &[]),
        (vec![&of_length(24), &custom, &udp_given], &[of_ipv4]),
        (vec![&options_given, &custom, &udp], &[of_udp]),
        // Octets behind 20 of IPv4 are no options, and behind UDP they are what it carries.
        (vec![&of_length(20), &custom], &[]),
        (vec![&ipv4, &custom], &[]),
        (vec![&ipv4, &udp, &custom], &[]),
        // A length that is wrong on purpose, without octets that could be options.
        (vec![&of_length(24), &udp], &[]),
        // The addresses are in the second header.
        (vec![&custom, &ipv4, &udp], &[]),
    ] {
        let packet = [vec![&ethernet], headers].concat();
        let config = with_flow(json!({"packet": packet}));
        let found = translated(&config).map_or_else(|refusal| refusal.errors, |_| Vec::new());
        assert_eq!(found.len(), expected.len(), "{packet:?}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}\nexpected: {expected}");
        }
    }
}

#[test]
fn options_that_are_out_of_reach_say_what_they_would_need() {
    let port = |options: Json| json!({"port_options": options});
    for (options, begin) in [
        (
            port(json!({"data_integrity": true})),
            "options.port_options.data_integrity is not supported: it needs counts of ports",
        ),
        (
            port(json!({"frame_ordering_mode": {"choice": "rfc2889"}})),
            "options.port_options.frame_ordering_mode.choice \"rfc2889\" is not supported: it",
        ),
        (
            json!({"flow_options": {"packet_loss_duration": true}}),
            "options.flow_options.packet_loss_duration is not supported: it needs times of single",
        ),
        (
            json!({"per_port_options": [{"port_name": "p1"}]}),
            "options.per_port_options is not supported: it needs RoCEv2 or MACsec",
        ),
    ] {
        let mut config = with_flow(json!({}));
        config["options"] = options;
        let errors = errors(&config);
        assert_eq!(errors.len(), 1, "{errors:#?}");
        assert!(
            errors[0].starts_with(begin),
            "{errors:?}\nexpected: {begin}"
        );
    }
}

#[test]
fn an_address_of_a_next_hop_alone_is_refused_though_its_value_is_left_out() {
    let mut config = with_flow(json!({}));
    for resolution in [
        json!({"choice": "value"}),
        json!({"choice": "value", "value": "02:00:00:00:00:01"}),
        json!({"value": "02:00:00:00:00:01"}),
    ] {
        config["devices"] = json!([{"name": "d", "ethernets": [{
            "name": "e", "mac": "02:00:00:00:00:02",
            "connection": {"choice": "port_name", "port_name": "p1"},
            "ipv4_addresses": [{"name": "i", "address": "10.0.0.1", "gateway": "10.0.0.2",
                                "gateway_mac": resolution}]}]}]);
        let path = "devices[0].ethernets[0].ipv4_addresses[0].gateway_mac";
        let expected = format!(
            "{path}.choice \"value\" is not supported: it needs next hops that are not asked for \
             by ARP and ND; auto is"
        );
        assert_eq!(errors(&config), [expected], "{resolution}");
    }
}

#[test]
fn headers_have_to_fit_the_frames() {
    let packet = json!([{"choice": "ethernet"}, {"choice": "ipv6"}, {"choice": "udp"},
        {"choice": "vxlan"}, {"choice": "ethernet"}, {"choice": "ipv4"}]);
    let error = flow_error(json!({"packet": packet, "size": {"choice": "fixed", "fixed": 100}}));
    // 14 + 40 + 8 + 8 + 14 + 20, the FCS in the tunnel and the frame's own.
    assert!(
        error.starts_with("flows[0].size.fixed must be 112 to"),
        "{error}"
    );
}

#[test]
fn frames_too_short_for_a_stamp_are_refused_with_the_least_length_and_the_way_out() {
    for (headers, latency, headers_and_fcs, least) in [
        (&["ethernet", "vlan", "ipv4", "udp"][..], true, 50, 68),
        (&["ethernet", "ipv4", "tcp"], true, 58, 76),
        (&["ethernet", "vlan", "ipv4", "tcp"], true, 62, 80),
        (&["ethernet", "vlan", "ipv4", "tcp"], false, 62, 68),
    ] {
        let packet: Vec<Json> = headers.iter().map(|name| json!({"choice": name})).collect();
        let flow = |length: u32, count: bool| {
            with_flow(
                json!({"packet": packet, "size": {"choice": "fixed", "fixed": length},
                             "metrics": {"enable": count,
                                         "latency": {"enable": count && latency}}}),
            )
        };
        let (stamp, switch) = if latency {
            (18, "latency.enable")
        } else {
            (6, "enable")
        };
        let refused = format!(
            "flows[0].size.fixed must be {least} to 16000 octets with FCS (headers and FCS take \
             {headers_and_fcs}, and the stamp that the flow is counted by {stamp}: ask for {least}, \
             or set metrics.{switch} to false), found {}",
            least - 1
        );
        assert_eq!(errors(&flow(least - 1, true)), [refused]);
        assert!(translated(&flow(least, true)).is_ok());
        assert!(translated(&flow(64, false)).is_ok());
    }
}

#[test]
fn all_mistakes_of_a_configuration_are_found_at_once() {
    let config = json!({
        "ports": [{"name": "p", "location": "veth0"}, {"name": "q", "location": "veth0"},
                  {"name": "r", "location": "10.0.0.1;2;3"}, {"location": "veth2"}],
        "lags": [{"name": "l"}],
        "layer1": [{"name": "l1", "port_names": ["p", "s"], "speed": "speed_10_hd_mbps",
                    "flow_control": {"ieee_802_1qbb": {"pfc_delay": 3, "pfc_class_0": 8}}}],
        "captures": [{"name": "c", "port_names": ["p"], "filters": [
            {"choice": "vlan", "vlan": {"protocol": {"value": "0800"}, "id": {"value": "1000"}}},
            {"choice": "custom", "custom": {"offset": 0}},
            {"choice": "ethernet", "ethernet": {"src": {"value": "0x", "mask": "0g"}}}]}],
        "devices": [{"name": "d", "bgp": {"router_id": "1.1.1.1"}, "ethernets": [{
            "name": "e", "mac": "01:00:00:00:00:01",
            "connection": {"choice": "lag_name", "lag_name": "l"}}]}],
    });
    let found = errors(&config).join("\n");
    for expected in [
        "lags is not supported",
        "ports[1].location is \"veth0\", the interface that port p has already",
        "ports[2].location is \"10.0.0.1;2;3\", which is neither",
        "ports[3].name is missing",
        "layer1[0].port_names names \"s\"",
        "layer1[0].speed \"speed_10_hd_mbps\"",
        "layer1[0].flow_control.ieee_802_1qbb.pfc_delay",
        "layer1[0].flow_control.ieee_802_1qbb.pfc_class_0 must be 0 to 7, found 8",
        "captures[0].filters[0].vlan.protocol is not supported",
        "captures[0].filters[0].vlan.id.value must be hexadecimal digits of at most 12 bits, found",
        "captures[0].filters[1].custom is not supported behind another filter",
        "captures[0].filters[2].ethernet.src.value must be hexadecimal digits of at most 48 bits",
        "captures[0].filters[2].ethernet.src.mask must be hexadecimal digits of at most 48 bits",
        "devices[0].bgp is not supported",
        "devices[0].ethernets[0].mac must be",
        "devices[0].ethernets[0].connection.choice \"lag_name\"",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    assert_eq!(found.lines().count(), 16, "{found}");
}

/// Two ports and that many flows with these fields.
fn with_flows(count: usize, fields: Json) -> Json {
    let mut config = with_flow(fields);
    let flow = config["flows"][0].take();
    let flows = (0..count).map(|place| {
        let mut flow = flow.clone();
        flow["name"] = format!("f{place}").into();
        flow
    });
    config["flows"] = flows.collect();
    config
}

#[test]
fn of_many_mistakes_the_first_1000_are_told_and_the_others_counted() {
    let rate = json!({"rate": {"choice": "percentage", "percentage": 101}});
    let refused = translated(&with_flows(1003, rate)).unwrap_err();
    assert_eq!((refused.errors.len(), refused.more), (1000, 3));
    let last = &refused.errors[999];
    assert!(
        last.starts_with("flows[999].rate.percentage must be 0 to 100"),
        "{last}"
    );
}

#[test]
fn of_many_warnings_the_first_1000_are_told_and_the_others_counted() {
    let config = with_flows(
        1003,
        json!({"metrics": {"enable": true, "timestamps": true},
               "size": {"choice": "fixed", "fixed": 128}}),
    );
    let warnings = translated(&config).unwrap().warnings;
    let (last, listed) = warnings.split_last().unwrap();
    assert_eq!((listed.len(), &**last), (1000, "3 more warnings"));
    assert!(listed[999].starts_with("flows[999].metrics.timestamps changes nothing"));
}

#[test]
fn as_many_flows_as_are_counted_are_taken_and_not_one_more() {
    let taken = translated(&with_flows(4096, json!({}))).unwrap();
    assert_eq!(taken.plan.flows.len(), 4096);
    assert_eq!(
        errors(&with_flows(4097, json!({}))),
        ["flows has 4097 entries: at most 4096 are taken"]
    );
}

#[test]
fn an_error_about_a_long_text_is_cut() {
    let long = "1".repeat(1 << 20);
    let error = flow_error(json!({"packet": [
        {"choice": "ethernet"},
        {"choice": "ipv4", "ipv4": {"src": {"value": long}}},
    ]}));
    assert!(error.len() < 20_000, "{}", error.len());
    assert!(error.starts_with("flows[0].packet[1].ipv4.src.value has \"1111"));
}
