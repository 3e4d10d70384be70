//! Each fault changes exactly what it says. A script of requests shows the answers in which a node
//! with the fault differs from a good one.

use std::time::Duration;

use ib_mad::attr::{BadMKey, Notice, PortInfo, PortState};
use ib_mad::catalogue::Entry;
use ib_mad::mad::{AttributeId, Lid, MKey, Method, Tid};
use ib_mad::sma::{Fabric, Fault, NodeConfig};
use ib_mad::smp::Smp;
use ib_mad::transport::Received;

use super::{fabric, request, set_port, switch};

/// The M_Key that the script sets at each protect bits: first one after 0, then another.
pub const KEYS: [MKey; 4] = [MKey(0xa), MKey(0xb), MKey(0xb), MKey(0xb)];
const WRONG: MKey = MKey(0xc);
const BLOCKS: [u32; 3] = [0, 500, 767];

/// Makes a PortInfo that sets M_Key and protect bits, clears the violations and changes nothing
/// else.
pub fn protection(key: MKey, bits: u8) -> PortInfo {
    let mut info = PortInfo::default();
    info.set_m_key(key).unwrap();
    info.set_m_key_protect_bits(bits).unwrap();
    info.set_lid(2).unwrap();
    info.set_neighbor_mtu(5).unwrap();
    info.set_port_state(PortState::NoChange).unwrap();
    info
}

fn script() -> Vec<(String, Smp)> {
    let port_info = |key| request(Method::GET, AttributeId::PORT_INFO, 0, key);
    let get = |attribute, modifier| request(Method::GET, attribute, modifier, MKey(0));
    let mut steps = vec![
        ("node".to_owned(), get(AttributeId::NODE_INFO, 0)),
        ("name".to_owned(), get(AttributeId::NODE_DESCRIPTION, 0)),
        ("switch".to_owned(), get(AttributeId::SWITCH_INFO, 0)),
    ];
    for (bits, key) in (0..).zip(KEYS) {
        steps.push((
            format!("set-{bits}"),
            set_port(0, &protection(key, bits), MKey(0)),
        ));
        steps.push((format!("right-{bits}"), port_info(key)));
        steps.push((format!("wrong-{bits}"), port_info(WRONG)));
        steps.push((format!("count-{bits}"), port_info(key)));
        steps.push((
            format!("reset-{bits}"),
            set_port(0, &protection(MKey(0), 0), key),
        ));
    }
    for method in [Method::SET, Method::GET] {
        for block in BLOCKS {
            let mut smp = request(method, AttributeId::LINEAR_FORWARDING_TABLE, block, MKey(0));
            smp.data_mut()
                .fill(if method == Method::SET { 3 } else { 0 });
            steps.push((format!("{method}-{block}").to_lowercase(), smp));
        }
    }
    for (tid, (_, smp)) in (1..).zip(&mut steps) {
        smp.set_tid(Tid(tid));
    }
    steps
}

/// Runs the script and returns what each step brings. A second passes between steps.
pub fn run(faults: &[Fault]) -> Vec<(String, Vec<Received>)> {
    let dut = NodeConfig {
        master_sm_lid: Lid(0),
        ..switch()
    };
    let mut fabric: Fabric = fabric(dut, faults);
    let at = |index: usize| Duration::from_secs(index as u64);
    let send = |(index, (name, smp)): (usize, (String, Smp))| {
        (name, fabric.send(at(index), &smp, Lid::PERMISSIVE))
    };
    script().into_iter().enumerate().map(send).collect()
}

/// Describes a response in short. `sent` is the time and TID of its request.
fn describe(delivery: &Received, sent: (Duration, Tid)) -> String {
    let after = (delivery.at - sent.0).as_millis();
    let late = if after > 0 {
        format!(" after {after} ms")
    } else {
        String::new()
    };
    let Ok(smp) = Smp::parse(&delivery.octets) else {
        return format!("{} octets{late}", delivery.octets.len());
    };
    let tid = if smp.tid() == sent.1 {
        ""
    } else {
        ", another TID"
    };
    let content = match smp.decode::<PortInfo>() {
        Ok(info) => format!(
            "key {:x} bits {} violations {}",
            info.m_key().0,
            info.m_key_protect_bits(),
            info.m_key_violations()
        ),
        Err(_) => {
            let data = if smp.data() == &[0; 64] {
                "zero"
            } else {
                "data"
            };
            format!("{:#06x} {} {data}", smp.attribute().0, smp.modifier())
        }
    };
    format!("{:#04x} {content}{tid}{late}", smp.status().bits())
}

/// Returns the steps at which a node with `faults` answers differently from a good one, with its
/// answers.
fn differences(faults: &str) -> Vec<String> {
    let faults: Vec<Fault> = faults
        .split_whitespace()
        .map(|fault| fault.parse().unwrap())
        .collect();
    let sent: Vec<_> = script()
        .into_iter()
        .enumerate()
        .map(|(index, (_, smp))| (Duration::from_secs(index as u64), smp.tid()))
        .collect();
    let pairs = run(&[]).into_iter().zip(run(&faults)).zip(sent);
    pairs
        .filter(|((good, bad), _)| good != bad)
        .map(|((_, (name, came)), sent)| {
            let came: Vec<_> = came
                .iter()
                .map(|delivery| describe(delivery, sent))
                .collect();
            format!(
                "{name}: {}",
                if came.is_empty() {
                    "silence".to_owned()
                } else {
                    came.join("; ")
                }
            )
        })
        .collect()
}

#[track_caller]
fn changes(faults: &str, expected: &[&str]) {
    assert_eq!(differences(faults), expected, "{faults}");
}

#[test]
fn a_good_node_goes_through_the_script_as_the_specification_says() {
    let sent = |index: usize| (Duration::from_secs(index as u64), Tid(index as u64 + 1));
    let seen: Vec<_> = run(&[])
        .iter()
        .enumerate()
        .map(|(index, (name, came))| match came.as_slice() {
            [] => format!("{name}: silence"),
            [answer] => format!("{name}: {}", describe(answer, sent(index))),
            more => panic!("{name}: {more:?}"),
        })
        .collect();
    let expected = [
        "node: 0x00 0x0011 0 data",
        "name: 0x00 0x0010 0 data",
        "switch: 0x00 0x0012 0 data",
        "set-0: 0x00 key a bits 0 violations 0",
        "right-0: 0x00 key a bits 0 violations 0",
        "wrong-0: 0x00 key a bits 0 violations 0",
        "count-0: 0x00 key a bits 0 violations 0",
        "reset-0: 0x00 key 0 bits 0 violations 0",
        "set-1: 0x00 key b bits 1 violations 0",
        "right-1: 0x00 key b bits 1 violations 0",
        "wrong-1: 0x00 key 0 bits 1 violations 0",
        "count-1: 0x00 key b bits 1 violations 0",
        "reset-1: 0x00 key 0 bits 0 violations 0",
        "set-2: 0x00 key b bits 2 violations 0",
        "right-2: 0x00 key b bits 2 violations 0",
        "wrong-2: silence",
        "count-2: 0x00 key b bits 2 violations 1",
        "reset-2: 0x00 key 0 bits 0 violations 0",
        "set-3: 0x00 key b bits 3 violations 0",
        "right-3: 0x00 key b bits 3 violations 0",
        "wrong-3: silence",
        "count-3: 0x00 key b bits 3 violations 1",
        "reset-3: 0x00 key 0 bits 0 violations 0",
        "set-0: 0x1c 0x0019 0 zero",
        "set-500: 0x1c 0x0019 500 zero",
        "set-767: 0x1c 0x0019 767 zero",
        "get-0: 0x1c 0x0019 0 zero",
        "get-500: 0x1c 0x0019 500 zero",
        "get-767: 0x1c 0x0019 767 zero",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn faults_of_the_check() {
    changes(
        "answers-wrong-key",
        &[
            "wrong-2: 0x00 key b bits 2 violations 1",
            "wrong-3: 0x00 key b bits 3 violations 1",
        ],
    );
    changes(
        "no-violations",
        &[
            "count-2: 0x00 key b bits 2 violations 0",
            "count-3: 0x00 key b bits 3 violations 0",
        ],
    );
    changes(
        "counts-twice",
        &[
            "count-2: 0x00 key b bits 2 violations 2",
            "count-3: 0x00 key b bits 3 violations 2",
        ],
    );
    changes(
        "refuses-its-key",
        &[
            "right-2: silence",
            "count-2: silence",
            "right-3: silence",
            "count-3: silence",
        ],
    );
    changes(
        "refuses-other-key",
        &["wrong-0: silence", "wrong-1: silence"],
    );
    changes("locks-out", &["count-2: silence", "count-3: silence"]);
    changes(
        "counts-good-key",
        &[
            "right-0: 0x00 key a bits 0 violations 1",
            "wrong-0: 0x00 key a bits 0 violations 1",
            "count-0: 0x00 key a bits 0 violations 2",
            "right-1: 0x00 key b bits 1 violations 1",
            "wrong-1: 0x00 key 0 bits 1 violations 1",
            "count-1: 0x00 key b bits 1 violations 2",
            "right-2: 0x00 key b bits 2 violations 1",
            "count-2: 0x00 key b bits 2 violations 3",
            "right-3: 0x00 key b bits 3 violations 1",
            "count-3: 0x00 key b bits 3 violations 3",
        ],
    );
}

#[test]
fn faults_of_the_key_that_is_shown() {
    changes("shows-key", &["wrong-1: 0x00 key b bits 1 violations 0"]);
    changes("hides-key", &["wrong-0: 0x00 key 0 bits 0 violations 0"]);
    changes(
        "forgets-key",
        &[
            "wrong-0: 0x00 key 0 bits 0 violations 0",
            "count-0: 0x00 key 0 bits 0 violations 0",
            "count-1: 0x00 key 0 bits 1 violations 0",
            "wrong-2: 0x00 key 0 bits 2 violations 0",
            "count-2: 0x00 key 0 bits 2 violations 0",
            "wrong-3: 0x00 key 0 bits 3 violations 0",
            "count-3: 0x00 key 0 bits 3 violations 0",
        ],
    );
}

#[test]
fn a_fault_of_the_key_alone_after_a_violation() {
    changes(
        "shows-other-key",
        &[
            "count-2: 0x00 key a bits 2 violations 1",
            "count-3: 0x00 key a bits 3 violations 1",
        ],
    );
}

#[test]
fn faults_of_what_is_set() {
    changes(
        "ignores-key-set",
        &[
            "set-0: 0x00 key 0 bits 0 violations 0",
            "right-0: 0x00 key 0 bits 0 violations 0",
            "wrong-0: 0x00 key 0 bits 0 violations 0",
            "count-0: 0x00 key 0 bits 0 violations 0",
            "set-1: 0x00 key 0 bits 1 violations 0",
            "right-1: 0x00 key 0 bits 1 violations 0",
            "count-1: 0x00 key 0 bits 1 violations 0",
            "set-2: 0x00 key 0 bits 2 violations 0",
            "right-2: 0x00 key 0 bits 2 violations 0",
            "wrong-2: 0x00 key 0 bits 2 violations 0",
            "count-2: 0x00 key 0 bits 2 violations 0",
            "set-3: 0x00 key 0 bits 3 violations 0",
            "right-3: 0x00 key 0 bits 3 violations 0",
            "wrong-3: 0x00 key 0 bits 3 violations 0",
            "count-3: 0x00 key 0 bits 3 violations 0",
        ],
    );
    changes(
        "ignores-protect-bits",
        &[
            "set-1: 0x00 key b bits 0 violations 0",
            "right-1: 0x00 key b bits 0 violations 0",
            "wrong-1: 0x00 key b bits 0 violations 0",
            "count-1: 0x00 key b bits 0 violations 0",
            "set-2: 0x00 key b bits 0 violations 0",
            "right-2: 0x00 key b bits 0 violations 0",
            "wrong-2: 0x00 key b bits 0 violations 0",
            "count-2: 0x00 key b bits 0 violations 0",
            "set-3: 0x00 key b bits 0 violations 0",
            "right-3: 0x00 key b bits 0 violations 0",
            "wrong-3: 0x00 key b bits 0 violations 0",
            "count-3: 0x00 key b bits 0 violations 0",
        ],
    );
    changes(
        "keeps-violations",
        &[
            "reset-2: 0x00 key 0 bits 0 violations 1",
            "set-3: 0x00 key b bits 3 violations 1",
            "right-3: 0x00 key b bits 3 violations 1",
            "count-3: 0x00 key b bits 3 violations 2",
            "reset-3: 0x00 key 0 bits 0 violations 2",
        ],
    );
}

#[test]
fn a_lid_that_is_none_is_refused_and_all_else_is_done() {
    // The script sets no MasterSMLID.
    let sets = (0..).zip(["a", "b", "b", "b"]);
    let changed = sets.flat_map(|(bits, key)| {
        [
            format!("set-{bits}: 0x1c key {key} bits {bits} violations 0"),
            format!("reset-{bits}: 0x1c key 0 bits 0 violations 0"),
        ]
    });
    assert_eq!(differences("refuses-lid-0"), changed.collect::<Vec<_>>());
}

#[test]
fn a_kept_key_locks_what_follows() {
    // The reset is acknowledged with the key still there. After it, only the kept key opens the
    // node.
    let found = differences("keeps-key");
    assert_eq!(found[0], "reset-0: 0x00 key a bits 0 violations 0");
    assert_eq!(found[1], "set-1: silence");
    // The first key is accepted. A Set of any other is acknowledged, and no key is set.
    let found = differences("one-key");
    assert_eq!(
        found[..3],
        [
            "set-1: 0x00 key 0 bits 1 violations 0",
            "right-1: 0x00 key 0 bits 1 violations 0",
            "count-1: 0x00 key 0 bits 1 violations 0"
        ]
    );
    assert!(found.iter().all(|step| !step.contains("-0:")), "{found:?}");
}

#[test]
fn the_key_that_was_taken_first_is_taken_again() {
    let mut fabric = fabric(
        NodeConfig {
            master_sm_lid: Lid(0),
            ..switch()
        },
        &[Fault::OneKey],
    );
    let mut shown = |wanted, key| {
        let answer = super::ask(&mut fabric, &set_port(0, &protection(wanted, 0), key));
        answer.decode::<PortInfo>().unwrap().m_key().0
    };
    assert_eq!(shown(MKey(5), MKey(0)), 5);
    assert_eq!(shown(MKey(6), MKey(5)), 5);
    assert_eq!(shown(MKey(0), MKey(5)), 0);
    assert_eq!(shown(MKey(6), MKey(0)), 0);
    assert_eq!(shown(MKey(5), MKey(0)), 5);
}

/// Returns how a fault changes the answers to some steps about the linear forwarding table.
fn table(steps: &[&str], answer: impl Fn(u32) -> String) -> Vec<String> {
    steps
        .iter()
        .flat_map(|step| BLOCKS.map(|block| format!("{step}-{block}: {}", answer(block))))
        .collect()
}

#[test]
fn faults_of_the_linear_forwarding_table() {
    let (both, get, set) = (["set", "get"], ["get"], ["set"]);
    let status = |status: &'static str| move |block| format!("{status} 0x0019 {block} zero");
    assert_eq!(differences("lft-status"), table(&both, status("0x00")));
    assert_eq!(differences("lft-status=3"), table(&both, status("0x0c")));
    assert_eq!(differences("lft-get-status"), table(&get, status("0x00")));
    assert_eq!(differences("lft-set-status=1"), table(&set, status("0x04")));
    assert_eq!(
        differences("lft-attribute"),
        table(&both, |block| format!("0x1c 0x001a {block} zero"))
    );
    assert_eq!(
        differences("lft-modifier"),
        table(&both, |block| format!("0x1c 0x0019 {} zero", block + 1))
    );
    assert_eq!(
        differences("lft-data"),
        table(&get, |block| format!("0x1c 0x0019 {block} data"))
    );
    changes(
        "lft-one-block",
        &[
            "set-500: 0x00 0x0019 500 zero",
            "get-500: 0x00 0x0019 500 zero",
        ],
    );
    changes(
        "lft-one-block=767",
        &[
            "set-767: 0x00 0x0019 767 zero",
            "get-767: 0x00 0x0019 767 zero",
        ],
    );
    changes("lft-one-block=1", &[]);
}

#[test]
fn a_switch_without_a_random_table_says_so() {
    changes("no-random-fdb", &["switch: 0x00 0x0012 0 data"]);
    let caps = |faults: &[Fault]| {
        let mut fabric = fabric(switch(), faults);
        let info: ib_mad::attr::SwitchInfo = super::get(&mut fabric, AttributeId::SWITCH_INFO, 0)
            .decode()
            .unwrap();
        (
            info.random_fdb_cap(),
            super::get(&mut fabric, AttributeId::RANDOM_FORWARDING_TABLE, 0)
                .status()
                .code(),
        )
    };
    assert_eq!((caps(&[]), caps(&[Fault::NoRandomFdb])), ((40, 0), (0, 7)));
}

#[test]
fn faults_of_delivery_change_every_answer_and_nothing_in_it() {
    let good = run(&[]);
    let answers: Vec<_> = good.iter().filter(|(_, came)| !came.is_empty()).collect();
    assert_eq!(answers.len(), good.len() - 2);
    for (fault, suffix) in [
        ("late", " after 1000 ms"),
        ("late=20", " after 20 ms"),
        ("other-tid", ", another TID"),
    ] {
        let found = differences(fault);
        assert_eq!(found.len(), answers.len(), "{fault}");
        assert!(
            found.iter().all(|step| step.ends_with(suffix)),
            "{fault}: {found:?}"
        );
    }
    for ((name, came), (_, twice)) in good.iter().zip(run(&[Fault::Twice])) {
        assert_eq!(twice, [came.as_slice(), came].concat(), "{name}");
    }
    for ((name, came), (_, truncated)) in good.iter().zip(run(&[Fault::Truncated])) {
        let expected: Vec<_> = came
            .iter()
            .map(|came| Received {
                octets: came.octets[..200].to_vec(),
                ..*came
            })
            .collect();
        assert_eq!(truncated, expected, "{name}");
    }
}

#[test]
fn silence_is_about_one_attribute_or_all() {
    let steps = |attribute: AttributeId| {
        let silent = |((name, smp), (_, came)): ((String, Smp), (String, Vec<Received>))| {
            (smp.attribute() == attribute && !came.is_empty()).then(|| format!("{name}: silence"))
        };
        script()
            .into_iter()
            .zip(run(&[]))
            .filter_map(silent)
            .collect::<Vec<_>>()
    };
    assert_eq!(differences("silent=node-info"), ["node: silence"]);
    assert_eq!(differences("silent=switch-info"), ["switch: silence"]);
    let port_info = steps(AttributeId::PORT_INFO);
    assert_eq!(
        (port_info.len(), differences("silent=port-info")),
        (18, port_info)
    );
    let linear = steps(AttributeId::LINEAR_FORWARDING_TABLE);
    assert_eq!(
        (linear.len(), differences("silent=linear-forwarding-table")),
        (6, linear)
    );
    assert!(
        run(&[Fault::Silent(None)])
            .iter()
            .all(|(_, came)| came.is_empty())
    );
}

#[test]
fn busy_and_lost_requests_are_not_acted_on() {
    changes("busy", &["node: 0x01 0x0011 0 zero"]);
    changes("busy=0", &[]);
    changes(
        "busy=3",
        &[
            "node: 0x01 0x0011 0 zero",
            "name: 0x01 0x0010 0 zero",
            "switch: 0x01 0x0012 0 zero",
        ],
    );
    // The fourth request sets the key. It is refused as busy, so the following steps see no key.
    let found = differences("busy=4");
    assert_eq!(
        found[3..5],
        [
            "set-0: 0x01 key a bits 0 violations 0",
            "right-0: 0x00 key 0 bits 0 violations 0"
        ]
    );
    let found = differences("drops=4");
    assert_eq!(
        found[..2],
        ["set-0: silence", "right-0: 0x00 key 0 bits 0 violations 0"]
    );
    changes("drops=29", &["get-767: silence"]);
    let silent = differences("drops=10");
    let silent: Vec<_> = silent
        .iter()
        .filter(|step| step.ends_with("silence"))
        .collect();
    assert_eq!(silent, ["right-1: silence", "right-3: silence"]);
}

#[test]
fn a_dut_alone_has_the_faults() {
    let mut fabric = fabric(switch(), &[Fault::Silent(None)]);
    let own = Smp::request(
        Method::GET,
        AttributeId::NODE_INFO,
        0,
        &super::directed("0"),
    );
    assert_eq!(super::ask(&mut fabric, &own).data()[2], 1);
}

#[test]
fn every_fault_of_the_catalogue_shows_in_the_script() {
    // They have a test of their own: the script has one wrong key, and no traps.
    let elsewhere = ["compares-lower-half", "ignores-key-bit", "key-in-notice"];
    let here = |entry: &&Entry| !elsewhere.contains(&entry.name);
    for entry in Fault::CATALOGUE.iter().filter(here) {
        assert_ne!(
            differences(entry.name),
            Vec::<String>::new(),
            "{}",
            entry.name
        );
    }
}

#[test]
fn faults_of_the_comparison_of_keys() {
    const KEY: u64 = 0x1122_3344_5566_7788;
    let is_taken = |fault: &str, key: u64| {
        let dut = NodeConfig {
            m_key: MKey(KEY),
            m_key_protect_bits: 2,
            master_sm_lid: Lid(0),
            ..switch()
        };
        let faults: Vec<Fault> = fault
            .split_whitespace()
            .map(|fault| fault.parse().unwrap())
            .collect();
        let get = request(Method::GET, AttributeId::PORT_INFO, 0, MKey(key));
        let mut fabric = fabric(dut, &faults);
        !fabric
            .send(Duration::ZERO, &get, Lid::PERMISSIVE)
            .is_empty()
    };
    let wrong = [KEY ^ 1, KEY ^ 0xffff_ffff, KEY ^ 0xffff_ffff << 32, !KEY];
    for (fault, expected) in [
        ("", [false; 4]),
        ("compares-upper-half", [true, true, false, false]),
        ("compares-lower-half", [false, false, true, false]),
        ("ignores-key-bit", [true, false, false, false]),
        ("ignores-key-bit=1", [false; 4]),
    ] {
        assert_eq!(wrong.map(|key| is_taken(fault, key)), expected, "{fault}");
        assert!(is_taken(fault, KEY), "{fault}");
    }
}

#[test]
fn a_fault_of_the_notice() {
    const KEY: MKey = MKey(0x1122_3344_5566_7788);
    for (faults, named) in [(&[][..], WRONG), (&[Fault::KeyInNotice], KEY)] {
        let dut = NodeConfig {
            m_key: KEY,
            m_key_protect_bits: 2,
            ..switch()
        };
        let get = request(Method::GET, AttributeId::PORT_INFO, 0, WRONG);
        let came = fabric(dut, faults).send(Duration::ZERO, &get, Lid::PERMISSIVE);
        let notice: Notice = Smp::parse(&came[0].octets).unwrap().decode().unwrap();
        let key = notice.bad_m_key().as_ref().map(BadMKey::m_key);
        assert_eq!(key, Some(named));
    }
}
