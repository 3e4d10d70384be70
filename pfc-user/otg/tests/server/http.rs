//! Requests over HTTP.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use validator_core::engine::plan::Keeps;
use validator_core::engine::snapshot::{Count, FlowCounts, Latency, Response};
use validator_core::engine::storm::Gaps;
use validator_core::engine::{Order, Warning};

use crate::client::{answer, request, send};
use crate::served::{Served, frames};

pub const TWO_PORTS: &str = r#"{
    "ports": [{"name": "p1", "location": "10.36.78.53;1;1"}, {"name": "p2", "location": "veth9"}],
    "captures": [{"name": "c", "port_names": ["p2"], "format": "pcapng"}],
    "flows": [{
        "name": "f",
        "tx_rx": {"choice": "port", "port": {"tx_name": "p1", "rx_name": "p2"}},
        "packet": [{"choice": "ethernet", "ethernet": {}}],
        "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": 100}},
        "metrics": {"enable": true, "loss": true}
    }, {
        "name": "g",
        "tx_rx": {"choice": "port", "port": {"tx_name": "p2", "rx_name": "p1"}},
        "packet": [{"choice": "pfcpause", "pfcpause": {}}]
    }]
}"#;

/// An order to start all flows.
pub const START: &str = r#"{"choice":"traffic","traffic":{"choice":"flow_transmit","flow_transmit":{"state":"start"}}}"#;

/// An order to all captures.
pub fn capture(state: &str) -> String {
    format!(r#"{{"choice":"port","port":{{"choice":"capture","capture":{{"state":"{state}"}}}}}}"#)
}

/// A server with [`TWO_PORTS`] in force.
pub async fn two_ports() -> Served {
    let served = Served::start().await;
    let reply = send(served.http, "POST /config", TWO_PORTS).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    served
}

#[tokio::test]
async fn a_flow_is_configured_sent_and_counted() {
    let served = Served::start().await;
    let reply = send(served.http, "POST /config", TWO_PORTS).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.head.contains("content-type: application/json"));
    assert_eq!(
        reply.json(),
        json!({"warnings": ["a fake engine sends nothing"]})
    );
    let reply = send(served.http, "POST /control/state", START).await;
    assert_eq!((reply.status, reply.json()), (200, json!({"warnings": []})));
    assert_eq!(served.record.get().orders, [(vec![0, 1], Order::Start)]);
    let reply = send(served.http, "POST /monitor/metrics", r#"{"choice":"flow"}"#).await;
    let metrics = reply.json();
    // The other flow has no metrics.
    assert_eq!(metrics["flow_metrics"].as_array().unwrap().len(), 1);
    let flow = &metrics["flow_metrics"][0];
    assert_eq!(flow["name"], "f");
    assert_eq!(flow["transmit"], "stopped");
    assert_eq!(
        (&flow["frames_tx"], &flow["frames_rx"]),
        (&json!(100), &json!(99))
    );
    assert_eq!(flow["loss"], 1.0);
    assert_eq!(flow.get("latency"), None);
    let text = String::from_utf8(reply.body).unwrap();
    assert!(text.contains("\"frames_tx_rate\":0.00001"), "{text}");
    served.stop().await;
}

#[tokio::test]
async fn the_configuration_comes_back_as_it_was_sent() {
    let served = Served::start().await;
    let empty = send(served.http, "GET /config", "").await;
    assert_eq!((empty.status, empty.json()), (200, json!({})));
    send(served.http, "POST /config", TWO_PORTS).await;
    let reply = send(served.http, "GET /config", "").await;
    let sent: serde_json::Value = serde_json::from_str(TWO_PORTS).unwrap();
    assert_eq!(reply.json(), sent);
    served.stop().await;
}

#[tokio::test]
async fn a_refused_configuration_leaves_the_one_before_in_force() {
    let served = two_ports().await;
    let wrong = r#"{"ports":[{"name":"p","location":"veth0"},{"name":"p","location":"veth1"}],
                    "lags":[{"name":"l"}]}"#;
    let reply = send(served.http, "POST /config", wrong).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["code"], 400);
    assert_eq!(reply.json()["kind"], "validation");
    let errors = reply.errors();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("lags is not supported"), "{errors:?}");
    assert!(
        errors[1].starts_with("ports[1].name is \"p\""),
        "{errors:?}"
    );
    let reply = send(served.http, "GET /config", "").await;
    assert_eq!(reply.json()["ports"][0]["name"], "p1");
    served.stop().await;
}

#[tokio::test]
async fn rate_and_size_are_updated_and_come_back() {
    use validator_core::engine::{Change, plan::Length, plan::Rate};
    let served = two_ports().await;
    let update = r#"{"choice":"flows","flows":{"property_names":["rate","size"],"flows":[
        {"name":"f","rate":{"choice":"percentage","percentage":50},
         "size":{"choice":"fixed","fixed":128}}]}}"#;
    let reply = send(served.http, "PATCH /config", update).await;
    let expected = json!({"warnings": ["a fake engine sends no faster"]});
    assert_eq!((reply.status, reply.json()), (200, expected));
    assert_eq!(
        served.record.get().changes,
        [
            (0, Change::Rate(Rate::Percent(50.0))),
            (0, Change::Length(Length::Fixed(128)))
        ]
    );
    let reply = send(served.http, "GET /config", "").await;
    assert_eq!(reply.json()["flows"][0]["size"]["fixed"], 128);
    let wrong = update.replace("\"f\"", "\"h\"").replace("50", "150");
    let errors = send(served.http, "PATCH /config", &wrong).await.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].starts_with("flows.flows[0].name is \"h\""),
        "{errors:?}"
    );
    assert_eq!(served.record.get().changes.len(), 2);
    served.stop().await;
}

#[tokio::test]
async fn what_the_engine_refuses_is_said_and_changes_nothing() {
    use validator_core::engine::Problem;
    let served = two_ports().await;
    let before = send(served.http, "GET /config", "").await.json();
    let refused = ["flow \"f\" is too long", "flow \"g\" has no address"];
    let problems = refused.map(|text| Problem::Order(text.into()));
    let update = r#"{"choice":"flows","flows":{"property_names":["size"],"flows":[
        {"name":"g","size":{"choice":"fixed","fixed":64}},
        {"name":"f","size":{"choice":"fixed","fixed":9000}}]}}"#;
    for (line, body) in [
        ("POST /config", r#"{"ports": []}"#),
        ("PATCH /config", update),
        ("POST /control/state", START),
    ] {
        served.record.get().problems = problems.to_vec();
        let reply = send(served.http, line, body).await;
        assert_eq!(
            (reply.status, reply.errors()),
            (400, refused.map(str::to_owned).into())
        );
        assert_eq!(send(served.http, "GET /config", "").await.json(), before);
    }
    assert_eq!(served.record.get().orders, []);
    served.stop().await;
}

#[tokio::test]
async fn a_capture_is_a_file_with_the_fcs_of_each_frame() {
    use pcap_file::pcapng::{Block, PcapNgReader};
    let served = two_ports().await;
    let get = r#"{"port_name":"p2"}"#;
    let early = send(served.http, "POST /monitor/capture", get).await;
    assert_eq!(early.status, 400);
    assert_eq!(
        send(served.http, "POST /control/state", &capture("start"))
            .await
            .status,
        200
    );
    assert_eq!(served.record.get().captures.pop(), Some((vec![1], true)));
    let reply = send(served.http, "POST /monitor/capture", get).await;
    let last = served.record.get().captures.pop();
    assert_eq!(last, Some((vec![1], false)), "what is read is whole");
    assert!(
        reply
            .head
            .contains("content-type: application/octet-stream")
    );
    let mut reader = PcapNgReader::new(&reply.body[..]).unwrap();
    let mut found = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            assert_eq!(packet.original_len as usize, packet.data.len());
            found.push(packet.data.into_owned());
        }
    }
    let sent: Vec<Vec<u8>> = frames()
        .into_iter()
        .map(|frame| {
            let fcs = crc32fast::hash(&frame.octets).to_le_bytes();
            [frame.octets, fcs.to_vec()].concat()
        })
        .collect();
    assert_eq!(found, sent);
    assert_eq!(found[0].len(), 64);
    let other = send(
        served.http,
        "POST /monitor/capture",
        r#"{"port_name":"p1"}"#,
    )
    .await;
    assert!(other.errors()[0].contains("no capture"), "{other:?}");
    served.stop().await;
}

#[tokio::test]
async fn orders_that_change_nothing_are_warned_of() {
    let served = Served::start().await;
    let without = r#"{"ports": [{"name": "p1", "location": "veth9"}]}"#;
    let protocols = |state: &str| {
        format!(
            r#"{{"choice":"protocol","protocol":{{"choice":"all","all":{{"state":"{state}"}}}}}}"#
        )
    };
    let none =
        "port.capture.state start changes nothing: the configuration in force has no capture";
    let stop = "protocol.all.state stop changes nothing: addresses are answered for as long as \
                their configuration is in force";
    for (config, order, warning) in [
        (without, capture("start"), json!({"warnings": [none]})),
        (without, capture("stop"), json!({"warnings": []})),
        (TWO_PORTS, capture("start"), json!({"warnings": []})),
        (TWO_PORTS, protocols("start"), json!({"warnings": []})),
        (TWO_PORTS, protocols("stop"), json!({"warnings": [stop]})),
    ] {
        send(served.http, "POST /config", config).await;
        let reply = send(served.http, "POST /control/state", &order).await;
        assert_eq!((reply.status, reply.json()), (200, warning), "{order}");
    }
    served.stop().await;
}

#[tokio::test]
async fn only_what_asks_for_tagged_metrics_or_a_part_of_a_capture_is_refused() {
    let served = two_ports().await;
    send(served.http, "POST /control/state", &capture("start")).await;
    let metrics = |tagged: &str| format!(r#"{{"choice":"flow","flow":{{{tagged}}}}}"#);
    let packets = |packets: &str| format!(r#"{{"port_name":"p2"{packets}}}"#);
    let (of_flows, of_capture) = ("POST /monitor/metrics", "POST /monitor/capture");
    for (line, body, error) in [
        (of_flows, metrics(""), None),
        (
            of_flows,
            metrics(r#""tagged_metrics":{"include":false,"metric_names":["frames_tx"]}"#),
            None,
        ),
        (
            of_flows,
            metrics(r#""tagged_metrics":{"include":true,"filters":[{"name":"t"}]}"#),
            Some("flow.tagged_metrics is not supported: it needs counting by fields"),
        ),
        (of_capture, packets(r#","packets":{"choice":"all"}"#), None),
        (
            of_capture,
            packets(r#","packets":{"choice":"slice"}"#),
            Some("packets.choice \"slice\" is not supported: it needs files of a part"),
        ),
    ] {
        let reply = send(served.http, line, &body).await;
        match error {
            None => assert_eq!(reply.status, 200, "{body}: {reply:?}"),
            Some(begin) => {
                let errors = reply.errors();
                assert_eq!((reply.status, errors.len()), (400, 1), "{body}: {errors:?}");
                assert!(errors[0].starts_with(begin), "{errors:?}");
            }
        }
    }
    served.stop().await;
}

#[tokio::test]
async fn a_capture_that_outgrew_its_memory_is_told_of_when_it_stops() {
    let served = Served::start().await;
    for (overwrite, keeps, word) in [
        (r#""overwrite":true,"#, Keeps::Newest, "newest"),
        (r#""overwrite":false,"#, Keeps::First, "first"),
        ("", Keeps::Newest, "newest"),
    ] {
        let config = TWO_PORTS.replace(r#""name": "c", "#, &format!(r#""name": "c", {overwrite}"#));
        send(served.http, "POST /config", &config).await;
        assert_eq!(served.record.get().plan.ports[1].captures.keeps, keeps);
        let started = send(served.http, "POST /control/state", &capture("start")).await;
        assert_eq!(started.json(), json!({"warnings": []}));
        let stopped = send(served.http, "POST /control/state", &capture("stop")).await;
        let nothing = json!({"warnings": []});
        assert_eq!(stopped.json(), nothing, "nothing is missing");
        served.record.get().ports[1].capture_missed = 12;
        let stopped = send(served.http, "POST /control/state", &capture("stop")).await;
        let warning = format!(
            "the capture of port p2 lacks 12 frames, which found no room, and keeps the {word}; \
             send less, or stop it earlier"
        );
        assert_eq!(stopped.json(), json!({"warnings": [warning]}));
    }
    let reply = send(served.http, "GET /counters", "").await;
    assert_eq!(reply.json()["ports"][1]["capture_missed"], 12);
    let reply = send(served.http, "GET /metrics", "").await;
    let text = String::from_utf8(reply.body).unwrap();
    assert!(text.contains("validator_otg_port_capture_missed{port=\"p2\"} 12"));
    served.stop().await;
}

#[tokio::test]
async fn own_counters_are_json_and_prometheus_text() {
    let served = two_ports().await;
    {
        let mut record = served.record.get();
        record.ports[0].pfc_received[3] = 7;
        record.ports[0].own_pfc_received[4] = 6;
        record.ports[1].own_pause_received = 5;
        record.ports[1].held[2] = 1_500_000_000;
        record.ports[0].responses[3] = Response {
            holds: 2,
            after: Count {
                frames: 9,
                octets: 576,
            },
            longest: 250_000,
        };
        record.flows[1].storm = Some(Gaps {
            count: 2,
            longest: 34_000_000,
        });
        record.flows[0] = FlowCounts {
            duplicates: 11,
            beyond_window: 12,
            reordered: 13,
            corrupt: 14,
            leaked: 15,
            first_frame: Some(2_000_000),
            latency: Some(Latency {
                min: 1000,
                mean: 1500,
                max: 2500,
            }),
            ..FlowCounts::default()
        };
    }
    let json = send(served.http, "GET /counters", "").await.json();
    assert_eq!(json["ports"][0]["pfc_rx"], json!([0, 0, 0, 7, 0, 0, 0, 0]));
    let own = &json["ports"][0]["pfc_own_rx"];
    assert_eq!(*own, json!([0, 0, 0, 0, 6, 0, 0, 0]));
    for (name, value) in [
        ("holds", 2),
        ("frames_after_xoff", 9),
        ("bytes_after_xoff", 576),
        ("response_max_ns", 250_000),
    ] {
        let queues = &json["ports"][0][name];
        assert_eq!(*queues, json!([0, 0, 0, value, 0, 0, 0, 0]), "{name}");
    }
    for (name, value) in [
        ("duplicates", 11),
        ("beyond_window", 12),
        ("reordered", 13),
        ("corrupt", 14),
        ("leaked", 15),
        ("first_frame_ns", 2_000_000),
        ("latency_min_ns", 1000),
        ("latency_mean_ns", 1500),
        ("latency_max_ns", 2500),
    ] {
        assert_eq!(json["flows"][0][name], value, "{name}");
    }
    let gaps = ["storm_gaps", "storm_gap_max_ns"];
    let of = |flow: usize| gaps.map(|name| json["flows"][flow][name].clone());
    assert_eq!(of(1), [json!(2), json!(34_000_000)]);
    assert_eq!(of(0), [json!(null), json!(null)]);
    let reply = send(served.http, "GET /metrics", "").await;
    let text = String::from_utf8(reply.body).unwrap();
    for line in [
        r#"port_pfc_frames_total{port="p1",direction="rx",class="3"} 7"#,
        r#"port_pfc_frames_total{port="p1",direction="rx",class="4"} 0"#,
        r#"port_own_pfc_frames_total{port="p1",class="4"} 6"#,
        r#"port_own_pause_frames_total{port="p2"} 5"#,
        r#"port_held_seconds_total{port="p2",queue="2"} 1.5"#,
        r#"port_holds{port="p1",queue="3"} 2"#,
        r#"port_frames_after_xoff{port="p1",queue="3"} 9"#,
        r#"port_bytes_after_xoff{port="p1",queue="3"} 576"#,
        r#"port_response_max_seconds{port="p1",queue="3"} 0.00025"#,
        r#"flow_storm_gaps{flow="g",port_tx="p2",port_rx="p1"} 2"#,
        r#"flow_storm_gap_max_seconds{flow="g",port_tx="p2",port_rx="p1"} 0.034"#,
        r#"flow_duplicates{flow="f",port_tx="p1",port_rx="p2"} 11"#,
        r#"flow_beyond_window{flow="f",port_tx="p1",port_rx="p2"} 12"#,
        r#"flow_reordered{flow="f",port_tx="p1",port_rx="p2"} 13"#,
        r#"flow_corrupt{flow="f",port_tx="p1",port_rx="p2"} 14"#,
        r#"flow_leaked{flow="f",port_tx="p1",port_rx="p2"} 15"#,
        r#"flow_first_frame_seconds{flow="f",port_tx="p1",port_rx="p2"} 0.002"#,
        r#"flow_latency_min_seconds{flow="f",port_tx="p1",port_rx="p2"} 0.000001"#,
        r#"flow_latency_mean_seconds{flow="f",port_tx="p1",port_rx="p2"} 0.0000015"#,
        r#"flow_latency_max_seconds{flow="f",port_tx="p1",port_rx="p2"} 0.0000025"#,
    ] {
        assert!(
            text.contains(&format!("\nvalidator_otg_{line}\n")),
            "{line}\n{text}"
        );
    }
    // A flow of data has no storm.
    assert!(!text.contains("storm_gaps{flow=\"f\""), "{text}");
    assert!(text.contains("# TYPE validator_otg_port_pfc_frames_total counter\n"));
    // It does not promise that every changed octet is found.
    let help =
        "# HELP validator_otg_flow_corrupt Frames that arrived with a wrong sum of their stamp";
    assert!(text.contains(help), "{text}");
    served.stop().await;
}

#[tokio::test]
async fn neither_a_web_page_nor_a_name_that_it_made_lead_to_loopback_is_served() {
    let served = Served::start().await;
    let origin = ["Origin: http://example.org"];
    let reply = request(served.http, "GET /config", &origin, b"").await;
    assert_eq!(reply.status, 403);
    for (host, status) in [
        ("localhost", 200),
        ("LocalHost:9999", 200),
        ("localhost.:8443", 200),
        ("otg.localhost:8443", 200),
        ("ip6-localhost:8443", 200),
        ("localhost.localdomain", 200),
        ("127.0.0.1:8443", 200),
        ("[::1]:8443", 200),
        // Host of a forwarded port.
        ("192.0.2.1:8443", 200),
        ("evil.example", 403),
        ("evillocalhost", 403),
        ("evil.example:8443", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example:8443", 403),
        ("[evil.example]", 403),
        ("", 403),
    ] {
        for line in ["GET /config", "GET /counters", "GET /metrics"] {
            let header = format!("Host: {host}");
            let reply = request(served.http, line, &[&header], b"").await;
            assert_eq!(reply.status, status, "{line} {host}");
            if status == 403 {
                let errors = reply.errors();
                assert!(errors[0].contains("come by localhost"), "{errors:?}");
            }
        }
    }
    served.stop().await;
}

#[tokio::test]
async fn flows_without_an_end_stop_when_the_client_is_silent() {
    let served = Served::start().await;
    // The first ends by itself, but not yet; the second has no end.
    let config = TWO_PORTS.replace(
        r#""fixed_packets", "fixed_packets": {"packets": 100}"#,
        r#""fixed_seconds", "fixed_seconds": {"seconds": 3600}"#,
    );
    assert_eq!(send(served.http, "POST /config", &config).await.status, 200);
    send(served.http, "POST /control/state", START).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(599)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(served.record.get().orders.len(), 1);
    tokio::time::advance(Duration::from_secs(2)).await;
    // Another thread carries it out, in real time.
    let limit = Instant::now() + Duration::from_secs(20);
    while served.record.get().orders.len() < 2 && Instant::now() < limit {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        served.record.get().orders,
        [(vec![0, 1], Order::Start), (vec![1], Order::Stop)]
    );
    tokio::time::resume();
    // The next reply says so, and no further one.
    let warning =
        "no request came for 600 s, so that flows without an end were stopped (--lease): g";
    for warnings in [json!([warning]), json!([])] {
        let reply = send(served.http, "POST /control/state", START).await;
        assert_eq!(reply.json(), json!({"warnings": warnings}));
    }
    served.stop().await;
}

/// Lets so much time pass without a request, and the server do what is due then.
async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
    // Another thread carries it out, in real time.
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[tokio::test]
async fn a_client_that_asks_for_counters_is_alive_and_prometheus_is_no_client() {
    for (line, alive) in [("GET /counters", true), ("GET /metrics", false)] {
        let served = two_ports().await;
        send(served.http, "POST /control/state", START).await;
        pass(400).await;
        assert_eq!(send(served.http, line, "").await.status, 200);
        pass(300).await;
        let stopped = served.record.get().orders.contains(&(vec![1], Order::Stop));
        assert_eq!(stopped, !alive, "{line}");
        pass(400).await;
        let orders = served.record.get().orders.clone();
        assert_eq!(orders[1..], [(vec![1], Order::Stop)], "{line}");
        served.stop().await;
    }
}

#[tokio::test]
async fn flows_that_could_not_be_stopped_are_stopped_ten_seconds_later() {
    use validator_core::engine::Problem;
    let served = two_ports().await;
    send(served.http, "POST /control/state", START).await;
    served.record.get().problems = vec![Problem::Machine("no memory".into())];
    pass(601).await;
    assert_eq!(served.record.get().problems, [], "it was tried");
    assert_eq!(served.record.get().orders.len(), 1);
    pass(11).await;
    assert_eq!(
        served.record.get().orders[1..],
        [(vec![1], Order::Stop)],
        "it was tried again"
    );
    served.stop().await;
}

#[tokio::test]
async fn a_request_that_takes_longer_than_the_lease_is_no_silence() {
    let served = two_ports().await;
    let ((waits, waiting), (open, opens)) = (channel(), channel());
    served.record.get().gate = Some((waits, opens));
    let request = tokio::spawn(send(served.http, "POST /control/state", START));
    while waiting.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(601)).await;
    // The lease is over, and waits for the engine.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    open.send(()).unwrap();
    assert_eq!(request.await.unwrap().status, 200);
    tokio::time::resume();
    for _ in 0..20 {
        send(served.http, "GET /config", "").await;
    }
    assert_eq!(served.record.get().orders, [(vec![0, 1], Order::Start)]);
    served.stop().await;
}

#[tokio::test]
async fn what_happens_to_flows_is_told_in_the_next_reply_even_with_another_configuration() {
    let served = two_ports().await;
    let slow = || vec![Warning("port \"a\" is slow".into())];
    served.record.get().notices = slow();
    let stop = r#"{"choice":"traffic","traffic":{"flow_transmit":{"state":"stop"}}}"#;
    for warnings in [json!(["port \"a\" is slow"]), json!([])] {
        let reply = send(served.http, "POST /control/state", stop).await;
        assert_eq!(reply.json(), json!({"warnings": warnings}));
    }
    served.record.get().notices = slow();
    let reply = send(served.http, "POST /config", TWO_PORTS).await;
    let warnings = [
        "of the configuration before: port \"a\" is slow",
        "a fake engine sends nothing",
    ];
    assert_eq!(reply.json(), json!({"warnings": warnings}));
    served.stop().await;
}

#[tokio::test]
async fn requests_keep_their_memory_until_they_have_been_carried_out() {
    let served = two_ports().await;
    let ((waits, waiting), (open, opens)) = (channel(), channel());
    served.record.get().gate = Some((waits, opens));
    let first = tokio::spawn(send(served.http, "POST /control/state", START));
    while waiting.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    // Four requests take nearly all of the 256 MiB that there are. Most of each has been read when
    // the next begins; all that come in wait for the first.
    let large = [" ".repeat(61 << 20).as_str(), START].concat();
    let mut waiting = JoinSet::new();
    for _ in 0..5 {
        let mut stream = TcpStream::connect(served.http).await.unwrap();
        let length = large.len();
        let head = format!(
            "POST /control/state HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(large.as_bytes()).await.unwrap();
        waiting.spawn(answer(stream));
    }
    let refused = timeout(Duration::from_secs(60), waiting.join_next());
    let refused = refused.await.expect("one is refused").unwrap().unwrap();
    assert_eq!(refused.status, 503, "{refused:?}");
    open.send(()).unwrap();
    assert_eq!(first.await.unwrap().status, 200);
    for reply in waiting.join_all().await {
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let reply = send(served.http, "POST /control/state", &large).await;
    assert_eq!(reply.status, 200, "their memory is free again");
    served.stop().await;
}
