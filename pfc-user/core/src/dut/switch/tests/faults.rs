//! The effect of each fault; it has no other.

use std::collections::{BTreeMap, BTreeSet};

use super::lab::*;
use crate::dut::switch::control::{self, Control};
use crate::dut::switch::model::{Departure, Switch};
use crate::fault::switch::Fault;
use crate::plan::Nanos;
use pfc_ebpf::units::Priority;

/// Length of the scenario's frames: 1792 ns.
const SHORT: usize = 200;
/// The storm's last frame; its pause of 33.55 ms runs out before `RESUME`.
const STORM_END: Nanos = 121 * MS;
const DATA: std::ops::Range<Nanos> = 10 * MS..100 * MS;
const RESUME: std::ops::Range<Nanos> = 200 * MS..220 * MS;
/// Single frames on running traffic: an XOFF that runs out, then an XOFF and an XON.
const PROBE: std::ops::Range<Nanos> = 280 * MS..330 * MS;
const PROBE_XOFF: Nanos = 285 * MS;
const PROBE_QUANTA: u16 = 20_000;
const PROBE_END: Nanos = PROBE_XOFF + PROBE_QUANTA as u64 * 512;
const SECOND_XOFF: Nanos = 300 * MS;
const XON: Nanos = 302 * MS;
/// Time from one frame of each priority to the next.
const EVERY: Nanos = 200_000;
/// The longest that a frame of eight that come at once takes, one PFC frame included; more than
/// that is a delay.
const PROMPT: Nanos = 8 * 1792 + 1000;

/// Octets at or below which XON is sent.
const XON_LEVEL: u64 = 15_000;

/// The storm at port 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storm {
    Lossless,
    Lossy,
    Pause,
}

/// A frame's fate: offered at, left at (each time).
type Fates = BTreeMap<(u8, u64), (Nanos, Vec<u8>, Vec<Nanos>)>;

struct Scenario {
    switch: Switch,
    fates: Fates,
    departures: Vec<Departure>,
}

/// Traffic of all priorities at port 0, and a storm at port 1 that begins before it.
fn scenario(storm: Storm, faults: &[&str]) -> Scenario {
    let mut config = config();
    // 450 frames of 200 octets are held.
    (config.xoff, config.xon, config.headroom) = (30_000, XON_LEVEL, 200_000);
    let mut switch = with(config, faults);
    let mut events: Vec<(Nanos, usize, Vec<u8>)> = Vec::new();
    let control = match storm {
        Storm::Lossless => pfc(3, 0xffff),
        Storm::Lossy => pfc(5, 0xffff),
        Storm::Pause => pause(0xffff),
    };
    events.extend(
        (0..=STORM_END)
            .step_by(11 * MS as usize)
            .map(|at| (at, 1, control.clone())),
    );
    if storm == Storm::Lossless {
        for (at, quanta) in [(PROBE_XOFF, PROBE_QUANTA), (SECOND_XOFF, 0xffff), (XON, 0)] {
            events.push((at, 1, pfc(3, quanta)));
        }
    }
    let mut fates = Fates::new();
    let times = [DATA, RESUME, PROBE]
        .into_iter()
        .flat_map(|span| span.step_by(EVERY as usize));
    for (sequence, at) in (0..).zip(times) {
        for flow in 0..8 {
            let frame = frame_of(flow, sequence, SHORT);
            fates.insert((flow, sequence), (at, frame.clone(), Vec::new()));
            events.push((at, 0, frame));
        }
    }
    events.sort_by_key(|(at, ..)| *at);
    let mut departures = Vec::new();
    for (at, port, frame) in events {
        switch.ingress(port, at, frame);
        departures.extend(super::lab::departures(&mut switch, at));
    }
    departures.extend(super::lab::departures(&mut switch, 2000 * MS));
    for departure in departures.iter().filter(|departure| departure.port == 1) {
        if let Some((_, _, left)) = stamp(&departure.frame).and_then(|key| fates.get_mut(&key)) {
            left.push(departure.at);
        }
    }
    Scenario {
        switch,
        fates,
        departures,
    }
}

/// Frames of a flow that are in the switch at that time.
fn held(fates: &Fates, flow: u8, at: Nanos) -> u64 {
    let of_flow = fates.iter().filter(|((of, _), _)| *of == flow);
    let is_in = |(offered, _, left): &&(Nanos, Vec<u8>, Vec<Nanos>)| {
        *offered <= at && left.first().is_none_or(|left| *left > at)
    };
    of_flow.map(|(_, fate)| fate).filter(is_in).count() as u64
}

/// True for a frame of the switch's own that is not, octet by octet, PAUSE or PFC as the standard
/// has it.
fn has_another_form(departure: &Departure) -> bool {
    let (frame, mac) = (&departure.frame, config().macs[departure.port]);
    if [frame[6] & !1].iter().chain(&frame[7..12]).ne(&mac) {
        return false;
    }
    let made = match control::parse(frame) {
        Some(Control::Pause(time)) => control::pause(mac, time),
        Some(Control::Pfc { enabled, times }) => {
            let classes = Priority::all();
            let classes =
                classes.map(|class| enabled.contains(class).then(|| times[class.index()]));
            control::pfc(mac, classes.collect::<Vec<_>>().as_array().unwrap())
        }
        None => return true,
    };
    made != *frame
}

/// The offences that an observer who knows the standard finds.
fn findings(storm: Storm, faults: &[&str]) -> BTreeSet<&'static str> {
    let Scenario {
        switch,
        fates,
        departures,
    } = scenario(storm, faults);
    let mut found = BTreeSet::new();
    let mut note = |wrong: bool, what| wrong && found.insert(what);
    let pauses_3 = storm == Storm::Lossless;
    for ((flow, _), (offered, _, left)) in &fates {
        note(left.len() > 1, "duplicate");
        let Some(&left) = left.first() else {
            let lost = if *flow != 3 && *flow != 4 {
                "lossy lost"
            } else if DATA.contains(offered) {
                "lossless lost"
            } else {
                "lost later"
            };
            note(true, lost);
            continue;
        };
        if *flow == 3 && pauses_3 && DATA.contains(offered) {
            note(left <= STORM_END, "leak");
            note(left > RESUME.start, "held on");
        } else if *flow == 3 && pauses_3 && PROBE.contains(offered) {
            let paused = |from, until| left > from + 1792 && left <= until;
            note(paused(PROBE_XOFF, PROBE_XOFF + MS), "late to pause");
            note(paused(PROBE_XOFF + MS, PROBE_END), "sent while paused");
            note(
                *offered < PROBE_END && left > PROBE_END + MS,
                "late to resume",
            );
            note(
                *offered >= SECOND_XOFF && left > XON.max(*offered) + MS,
                "late to resume",
            );
        } else {
            let delay = left - offered;
            let what = match flow {
                4 => "other lossless held",
                3 => "lossless held",
                _ => "lossy held",
            };
            note(delay > 21 * MS, what);
            note(delay > MS && delay <= 21 * MS, "dip");
            // While what was paused is sent, others wait their turn.
            note(
                delay > PROMPT && delay <= MS && RESUME.contains(offered),
                "slower than the line",
            );
        }
    }
    let mut latest = BTreeMap::new();
    for departure in &departures {
        if has_another_form(departure) {
            note(true, "PFC of another form");
            continue;
        }
        match stamp(&departure.frame) {
            None if matches!(control::parse(&departure.frame), Some(Control::Pause(_)))
                && departure.frame[6..12] == config().macs[departure.port] =>
            {
                note(true, "PAUSE");
            }
            None if departure.frame[6..12] == config().macs[departure.port] => {
                note(
                    asked(&departure.frame)
                        .iter()
                        .any(|(class, quanta)| ![3, 4].contains(class) && *quanta > 0),
                    "XOFF for lossy",
                );
                let needless = |(class, quanta): &(u8, u16)| {
                    [3, 4].contains(class)
                        && *quanta > 0
                        && held(&fates, *class, departure.at) * SHORT as u64 <= XON_LEVEL
                };
                let needless = asked(&departure.frame).iter().any(needless);
                note(needless, "XOFF without need");
            }
            None => {
                let what = match departure.port {
                    0 => "control forwarded",
                    _ => "control reflected",
                };
                note(control::parse(&departure.frame).is_some(), what);
            }
            Some(_) if departure.port == 0 => {
                note(true, "reflected");
            }
            Some((flow, sequence)) => {
                let latest = latest.entry(flow).or_insert(sequence);
                note(sequence < *latest, "reordered");
                *latest = sequence.max(*latest);
                let (_, sent, _) = &fates[&(flow, sequence)];
                note(departure.frame[15] != sent[15], "remarked");
                note(departure.frame[60..] != sent[60..], "corrupt");
                // Addresses, ports and stamp.
                note(departure.frame[26..60] != sent[26..60], "headers changed");
                assert_eq!(sum(&departure.frame[14..34]), 0xffff, "IPv4 checksum");
            }
        }
    }
    if pauses_3 && switch.xoff_sent()[3] == 0 && !found.contains("leak") {
        found.insert("no XOFF");
    }
    found
}

const STORMS: [Storm; 3] = [Storm::Lossless, Storm::Lossy, Storm::Pause];

#[test]
fn a_good_switch_does_nothing_wrong() {
    assert_eq!(
        STORMS.map(|storm| findings(storm, &[])),
        [const { BTreeSet::new() }; 3]
    );
}

/// Fault, and what is found with it in each storm.
type Row = (&'static str, [&'static [&'static str]; 3]);

/// A priority that goes on.
const NOT_HELD: &[&str] = &["leak", "late to pause", "sent while paused"];

// Each frame of PFC names one priority here, the link is never full for long, and DSCPs are those
// of the map: faults that need another scene have it in `fault_figures`.
const TABLE: [Row; Fault::CATALOGUE.len()] = [
    ("ignores-pfc", [NOT_HELD, &[], &[]]),
    ("ignores-refresh", [&["leak"], &[], &[]]),
    (
        "off-by-one-class",
        [
            &[
                "leak",
                "late to pause",
                "sent while paused",
                "other lossless held",
                "dip",
            ],
            &[],
            &[],
        ],
    ),
    ("leaks=10", [&["leak", "sent while paused"], &[], &[]]),
    ("leaks-for-long", [&[]; 3]),
    (
        "pfc-pauses-all",
        [
            &["lossy held", "other lossless held", "dip"],
            &["lossy held", "lossless held", "other lossless held"],
            &[],
        ],
    ),
    (
        "pauses-other-lossless",
        [&["other lossless held", "dip"], &[], &[]],
    ),
    ("lossy-obeys-pfc", [&[], &["lossy held"], &[]]),
    (
        "obeys-pause",
        [
            &[],
            &[],
            &["lossy held", "lossless held", "other lossless held"],
        ],
    ),
    ("lossy-obeys-first", [&["lossy held", "dip"], &["dip"], &[]]),
    ("throttles-lossy-in-storm", [&[], &[], &[]]),
    ("delays-lossy-in-storm", [&["dip"], &["dip"], &[]]),
    ("delays-lossy-after-xon", [&["dip"], &[], &[]]),
    (
        "never-resumes",
        [&["held on", "lossless held", "late to resume"], &[], &[]],
    ),
    (
        "adds-up-pauses",
        [&["held on", "lossless held", "late to resume"], &[], &[]],
    ),
    ("pauses-longer", [&["late to resume"], &[], &[]]),
    ("resumes-early", [&["sent while paused"], &[], &[]]),
    (
        "caps-quanta=16383",
        [&["leak", "sent while paused"], &[], &[]],
    ),
    ("swaps-quanta", [&["sent while paused"], &[], &[]]),
    ("reads-first-time", [NOT_HELD, &[], &[]]),
    ("reads-next-time", [NOT_HELD, &[], &[]]),
    ("ignores-vector", [&[], &[], &[]]),
    ("zero-vector-names-all", [&[], &[], &[]]),
    ("reads-high-vector", [NOT_HELD, &[], &[]]),
    ("reverses-vector", [NOT_HELD, &[], &[]]),
    // All frames of PFC are good ones here.
    ("any-opcode", [&[]; 3]),
    ("any-destination", [&[]; 3]),
    ("neighbour-destination", [&[]; 3]),
    ("half-ethertype", [&[]; 3]),
    ("wants-zeroes", [&[]; 3]),
    ("wants-source", [&[]; 3]),
    ("dies-of-odd-frame", [&[]; 3]),
    ("lossy-obeys-beside", [&[]; 3]),
    ("shares-timer", [&[]; 3]),
    ("keeps-longer", [&[]; 3]),
    // The next frame of the storm is 11 ms later; of the probe it is the only one.
    ("misses-first", [NOT_HELD, &[], &[]]),
    ("slow-when-full", [&[]; 3]),
    ("ignores-xon", [&["late to resume"], &[], &[]]),
    ("xon-lets-go", [&["late to resume"], &[], &[]]),
    ("xon-ends-all", [&[]; 3]),
    // The one XON here ends a pause.
    ("zero-pauses-idle", [&[]; 3]),
    ("slow-again", [&[]; 3]),
    (
        "slow-response",
        [
            &["late to pause", "sent while paused", "late to resume"],
            &[],
            &[],
        ],
    ),
    // The storm has fewer frames.
    ("slow-at-times", [&[]; 3]),
    ("loses-held", [&["lossless lost", "lost later"], &[], &[]]),
    ("loses-short", [&[]; 3]),
    ("dies-after-pause", [&["lost later"], &[], &[]]),
    ("no-upstream-pfc", [&["no XOFF"], &[], &[]]),
    // Who is asked, and who is paused, shows where there are several ports.
    ("asks-first-port", [&[], &[], &[]]),
    ("asks-all-ports", [&[], &[], &[]]),
    ("floods", [&[], &[], &[]]),
    ("pauses-all-ports", [&[], &[], &[]]),
    (
        "never-releases-upstream",
        [&["XOFF without need"], &[], &[]],
    ),
    ("asks-early", [&["XOFF without need"], &[], &[]]),
    // No frame is lost for lack of room.
    ("asks-late", [&["no XOFF"], &[], &[]]),
    ("pfc-from-group", [&["PFC of another form"], &[], &[]]),
    ("pfc-reserved-vector", [&["PFC of another form"], &[], &[]]),
    ("pfc-unclean-padding", [&["PFC of another form"], &[], &[]]),
    ("pfc-long", [&["PFC of another form"], &[], &[]]),
    ("pfc-tagged", [&["PFC of another form"], &[], &[]]),
    ("pfc-to-bridges", [&["PFC of another form"], &[], &[]]),
    (
        "xoff-lossless-in-lossy-storm",
        [&[], &["XOFF without need"], &[]],
    ),
    ("xoff-other-lossless", [&["XOFF without need"], &[], &[]]),
    (
        "xoff-for-lossy",
        [
            &["XOFF for lossy"],
            &["XOFF for lossy"],
            &["XOFF for lossy"],
        ],
    ),
    ("sends-pause", [&["PAUSE"]; 3]),
    ("drops", [&["lossy lost", "lossless lost", "lost later"]; 3]),
    (
        "drops-lossy-in-storm",
        [&["lossy lost"], &["lossy lost"], &[]],
    ),
    ("throttles", [&["slower than the line"]; 3]),
    ("dips", [&["dip"]; 3]),
    ("duplicates", [&["duplicate"]; 3]),
    // A frame is late by its last copy here.
    (
        "duplicates-late",
        [&["duplicate", "reordered", "slower than the line"]; 3],
    ),
    ("reorders", [&["reordered", "slower than the line"]; 3]),
    ("corrupts", [&["corrupt"]; 3]),
    // The words of these frames are alike.
    ("swaps-words", [&[]; 3]),
    ("zeroes-tail", [&["corrupt", "headers changed"]; 3]),
    ("changes-port", [&["headers changed"]; 3]),
    ("appends", [&["corrupt"]; 3]),
    ("cuts", [&["corrupt"]; 3]),
    ("remarks", [&["remarked"]; 3]),
    ("forwards-control", [&["control forwarded"]; 3]),
    ("reflects-control", [&["control reflected"]; 3]),
    ("reflects", [&["reflected"]; 3]),
    ("maps-own-dscp-alone", [&[]; 3]),
    ("maps-low-dscps-alone", [&[]; 3]),
    ("maps-low-bits", [&[]; 3]),
    ("misplaces-dscp", [&[]; 3]),
    // The switch is to go by the DSCP, and the frames are untagged.
    ("trusts-dscp", [&[]; 3]),
    ("trusts-pcp", [NOT_HELD, &[], &[]]),
];

#[test]
fn each_fault_does_what_it_says_and_nothing_else() {
    assert_eq!(
        TABLE.map(|(fault, _)| fault.split('=').next().unwrap()),
        Fault::CATALOGUE.map(|entry| entry.name)
    );
    let wrong: Vec<_> = TABLE
        .into_iter()
        .flat_map(|(fault, expected)| {
            STORMS
                .into_iter()
                .zip(expected)
                .map(move |(storm, expected)| (fault, storm, expected))
        })
        .map(|(fault, storm, expected)| {
            (
                fault,
                storm,
                BTreeSet::from_iter(expected.iter().copied()),
                findings(storm, &[fault]),
            )
        })
        .filter(|(.., expected, found)| expected != found)
        .collect();
    assert!(
        wrong.is_empty(),
        "(fault, storm, expected, found): {wrong:#?}"
    );
}
