//! The metrics for Prometheus: the text format, read by a strict parser, and the answers to
//! requests.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use pfc_ebpf::wire::mac_control::MacControl;

use crate::common::need_root;
use crate::roce_frames::Request;
use crate::watch::counting::datagram;
use crate::watch::lab::{Lab, PATIENCE, Running};

/// Name and labels of a sample.
pub type Key = (String, BTreeMap<String, String>);

/// Reads the name and the labels of a series, of which none comes twice, is empty or has to be
/// escaped.
fn key(series: &str) -> Key {
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}').unwrap();
    let mut named = BTreeMap::new();
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let (label, value) = label.split_once('=').unwrap();
        let value = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'))
            .unwrap();
        assert!(
            !value.is_empty() && !value.contains(['"', '\\']),
            "{series}"
        );
        let before = named.insert(label.to_owned(), value.to_owned());
        assert!(before.is_none(), "{series}");
    }
    (name.to_owned(), named)
}

/// Reads the text format 0.0.4 strictly: HELP and TYPE lines come before the samples of each
/// family, the samples of a family stand together, names and labels have legal characters, no
/// sample comes twice, and the last line is terminated.
fn parse(text: &str) -> BTreeMap<Key, f64> {
    assert!(text.ends_with('\n'));
    let legal = |name: &str| {
        let mut letters = name.chars();
        let first = letters
            .next()
            .is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
        first && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let (mut samples, mut families, mut family) = (BTreeMap::new(), BTreeSet::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').unwrap();
            assert!(
                legal(name) && name.starts_with("validator_") && words.ends_with('.'),
                "{line}"
            );
            let kind = if name.ends_with("_total") {
                "counter"
            } else {
                "gauge"
            };
            assert_eq!(lines.next(), Some(&*format!("# TYPE {name} {kind}")));
            assert!(families.insert(name.to_owned()), "{name} comes twice");
            family = name.to_owned();
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = key(series);
        assert_eq!(name, family, "{line}");
        assert!(labels.keys().all(|label| legal(label)), "{line}");
        let value: f64 = value.parse().unwrap();
        assert!(value >= 0.0 && value.is_finite(), "{line}");
        assert!(
            samples.insert((name, labels), value).is_none(),
            "twice: {line}"
        );
    }
    samples
}

fn ask(lab: &Lab, address: SocketAddr, request: &[u8]) -> String {
    let mut stream = lab
        .tester
        .run(|| TcpStream::connect(address))
        .unwrap()
        .unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub fn scrape(lab: &Lab, address: SocketAddr) -> BTreeMap<Key, f64> {
    let answer = ask(
        lab,
        address,
        b"GET /metrics HTTP/1.1\r\nHost: validator\r\n\r\n",
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{head}"
    );
    assert!(
        head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())),
        "{head}"
    );
    parse(body)
}

/// The name and labels of a series of a port.
pub fn series(name: &str, port: &[(&str, &str)], more: &[(&str, &str)]) -> Key {
    let labels = port.iter().chain(more);
    let labels = labels.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    (format!("validator_{name}"), labels.collect())
}

/// The name and labels of a series of what t0 receives.
pub fn of_t0(name: &str, more: &[(&str, &str)]) -> Key {
    series(name, &[("interface", "t0"), ("direction", "receive")], more)
}

/// The command, and where it serves metrics. Without another map, DSCP d has priority d mod 8.
pub fn listening(lab: &Lab, arguments: &str) -> (Running, SocketAddr) {
    let map = if arguments.contains("--dscp-map") {
        ""
    } else {
        " --dscp-map dscp-mod-8"
    };
    let mut address = None;
    let running = lab.watch_from(
        &format!("{arguments} --prometheus 0 --line-rate 1G{map}"),
        "listening",
        |event| {
            let message = event["message"].as_str().unwrap();
            address = Some(
                message
                    .strip_prefix("metrics: http://")
                    .and_then(|rest| rest.strip_suffix("/metrics"))
                    .unwrap()
                    .parse()
                    .unwrap(),
            );
        },
    );
    (running, address.unwrap())
}

#[test]
fn root_a_scrape_has_every_count_at_that_moment() {
    if !need_root("root_a_scrape_has_every_count_at_that_moment") {
        return;
    }
    let lab = Lab::new();
    let (running, address) = listening(&lab, "t0 t1");
    assert!(address.ip().is_loopback(), "a bare port");
    let of = |name: &str, labels: &[(&str, &str)]| of_t0(&format!("{name}_total"), labels);
    let before = scrape(&lab, address);
    assert_eq!(before[&of("frames", &[])], 0.0);
    for priority in 0..8 {
        assert_eq!(
            before[&of("pfc_xoff_frames", &[("priority", &priority.to_string())])],
            0.0,
            "there before it rises"
        );
    }
    let sender = lab.device_port();
    let roce = Request {
        opcode: 0x81,
        ..Request::new(7)
    }
    .octets();
    for _ in 0..3 {
        sender.send(&roce).unwrap();
    }
    sender
        .send(
            &MacControl::Pfc {
                vector: 8,
                quanta: [100; 8],
            }
            .emit([2; 6]),
        )
        .unwrap();
    // The port's program has run by the time that the send returns, or soon after.
    let after = loop {
        let samples = scrape(&lab, address);
        if samples[&of("pfc_paused_seconds", &[("priority", "3")])] == 0.000_051_2 {
            break samples;
        }
    };
    let octets = (3 * roce.len() + 60) as f64;
    for (name, labels, value) in [
        ("frames", vec![], 4.0),
        ("bytes", vec![], octets),
        ("priority_frames", vec![("priority", "0")], 3.0),
        ("dscp_frames", vec![("dscp", "0")], 3.0),
        ("dscp_bytes", vec![("dscp", "0")], octets - 60.0),
        ("roce_packets", vec![], 3.0),
        ("roce_opcode_packets", vec![("opcode", "0x81")], 3.0),
        ("roce_cnp_packets", vec![], 3.0),
        ("pfc_frames", vec![], 1.0),
        ("pfc_xoff_frames", vec![("priority", "3")], 1.0),
        ("pfc_xoff_frames", vec![("priority", "4")], 0.0),
        ("no_priority_frames", vec![], 1.0),
        ("ecn_frames", vec![("ecn", "not-ect")], 3.0),
        ("malformed_frames", vec![("reason", "ipv4-checksum")], 0.0),
    ] {
        assert_eq!(
            after.get(&of(name, &labels)),
            Some(&value),
            "{name} {labels:?}"
        );
    }
    let t1 = |labels: &BTreeMap<_, _>| labels.get("interface").is_some_and(|name| name == "t1");
    assert!(after.keys().any(|(_, labels)| t1(labels)));
    let state = |name: &str, labels: &[(&str, &str)]| after.get(&of_t0(name, labels)).copied();
    let settings = [
        ("attached", "xdp driver"),
        ("trust", "dscp"),
        ("dscp_map", "dscp-mod-8"),
        ("dscp_map_source", "option"),
    ];
    assert_eq!(state("port_info", &settings), Some(1.0));
    assert_eq!(state("port_carrier", &[]), Some(1.0));
    assert_eq!(
        state("port_line_rate_bytes_per_second", &[]),
        Some(125_000_000.0)
    );
    let version = ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let build = ("validator_build_info".to_owned(), [version].into());
    assert_eq!(after[&build], 1.0);
    running.summary("t0");
}

#[test]
fn root_other_requests_are_refused_and_nobody_holds_up_others() {
    if !need_root("root_other_requests_are_refused_and_nobody_holds_up_others") {
        return;
    }
    let lab = Lab::new();
    let (running, address) = listening(&lab, "t0 t1");
    // Says nothing, and another not enough.
    let silent = lab
        .tester
        .run(|| TcpStream::connect(address))
        .unwrap()
        .unwrap();
    let mut slow = lab
        .tester
        .run(|| TcpStream::connect(address))
        .unwrap()
        .unwrap();
    slow.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    let status = |request: &[u8]| {
        ask(&lab, address, request)
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(status(b"GET /x HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
    let landing = ask(&lab, address, b"GET http://any/ HTTP/1.1\r\n\r\n");
    assert!(landing.contains("href=\"/metrics\""), "{landing}");
    assert_eq!(
        status(b"DELETE /metrics HTTP/1.1\r\n\r\n"),
        "HTTP/1.1 405 Method Not Allowed"
    );
    assert_eq!(status(b"\xff\xfe\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    assert_eq!(
        status(&[b'a'; 9000]),
        "HTTP/1.1 431 Request Header Fields Too Large"
    );
    let head = ask(&lab, address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    scrape(&lab, address);
    drop((silent, slow));
    running.summary("t0");
}

#[test]
fn root_both_ends_of_a_pair_are_labelled_and_no_other_port() {
    if !need_root("root_both_ends_of_a_pair_are_labelled_and_no_other_port") {
        return;
    }
    let lab = Lab::new();
    let (running, address) = listening(&lab, "t0 --loss t0:t1");
    let samples = scrape(&lab, address);
    let ends: BTreeSet<_> = samples
        .keys()
        .filter(|(_, labels)| labels.contains_key("interface"))
        .map(|(_, labels)| {
            let pair = labels.get("pair").map(String::as_str);
            (&*labels["interface"], &*labels["direction"], pair)
        })
        .collect();
    let expected = [
        ("t0", "receive", None),
        ("t0", "transmit", Some("t0:t1")),
        ("t1", "receive", Some("t0:t1")),
    ];
    assert_eq!(ends, BTreeSet::from(expected));
    running.summary("t0");
}

/// The series that the tests of the rules are fed with, without those of Prometheus itself.
fn series_of_rules() -> BTreeSet<Key> {
    let mut lines = include_str!("../../../configs/prometheus/tests.yml").lines();
    let mut found = BTreeSet::new();
    while let Some(line) = lines.next() {
        let Some(series) = line.trim().strip_prefix("- series: ") else {
            continue;
        };
        // A series that is too long for its line stands on the next one.
        let series = match series {
            ">-" => lines.next().unwrap().trim(),
            series => series,
        };
        let (name, mut labels) = key(series);
        for of_target in ["job", "instance"] {
            assert!(labels.remove(of_target).is_some(), "{series}");
        }
        if name != "up" {
            found.insert(alike((name, labels)));
        }
    }
    assert!(found.len() > 10, "{found:?}");
    found
}

/// The series without what differs from one host to another: names of interfaces, and the place
/// where a kernel lets frames be counted.
fn alike((name, mut labels): Key) -> Key {
    for label in ["interface", "pair", "attached"] {
        if let Some(value) = labels.get_mut(label) {
            value.clear();
        }
    }
    (name, labels)
}

#[test]
fn root_the_tests_of_the_rules_are_fed_with_series_that_a_scrape_has() {
    if !need_root("root_the_tests_of_the_rules_are_fed_with_series_that_a_scrape_has") {
        return;
    }
    let lab = Lab::new();
    let (running, address) = listening(&lab, "t0 --loss t0:t1 --dscp-map sonic");
    let served: BTreeSet<_> = scrape(&lab, address).into_keys().map(alike).collect();
    let missing: Vec<_> = series_of_rules()
        .into_iter()
        .filter(|series| !served.contains(series))
        .collect();
    assert!(missing.is_empty(), "{missing:?} is not in {served:?}");

    // Each priority is that of the map.
    let sender = lab.device_port();
    for dscp in [3, 46] {
        sender.send(&datagram(dscp, &[])).unwrap();
    }
    let begin = Instant::now();
    loop {
        let samples = scrape(&lab, address);
        let frames = ["3", "5"]
            .map(|priority| samples[&of_t0("priority_frames_total", &[("priority", priority)])]);
        if frames == [1.0, 1.0] {
            break;
        }
        assert!(
            begin.elapsed() < PATIENCE,
            "{frames:?} of priorities 3 and 5"
        );
    }
    running.summary("t0");
}
