//! Drawings of the page: time lines, distributions and ladders.

use pfc_ebpf::abi::account::OffenceKind;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Nanos;
use roxmltree::Node;
use validator_core::evidence::Repetition;
use validator_core::evidence::pfc::{
    Arrival, ControlReceived, Gap, GapHistogram, Offence, PfcEvidence, PhaseSpan as Span,
    ProbeReport, Stall, Withheld,
};
use validator_core::plan::PortName;

use super::{named, of_class, page, parse, sample, samples, text_of};

#[test]
fn each_family_is_drawn() {
    for (family, class, number) in [
        // Fourteen cases with one repetition, and four with two.
        ("pfc", "timeline", 22),
        ("mad", "ladder", 7),
        ("rc", "ladder", 3),
    ] {
        for verdict in ["good", "failing", "inconclusive"] {
            let name = format!("{family}-{verdict}");
            let page = page(&sample(&name));
            let document = parse(&page);
            let drawn = of_class(&document, "svg", class);
            assert_eq!(drawn.count(), number, "{name}");
        }
    }
}

/// The first PFC repetition on a good device.
fn first_of_good() -> PfcEvidence {
    let mut good = sample("pfc-good");
    samples::pfc(&mut good).next().unwrap().clone()
}

/// Time line of the first repetition of that PFC evidence.
fn time_line(e: PfcEvidence) -> String {
    let mut evidence = sample("pfc-good");
    evidence.cases.truncate(1);
    evidence.cases[0].repetitions = vec![Repetition::Pfc(Box::new(e))];
    page(&evidence)
}

/// Left edges of the drawn things of a class, in pixels.
fn places(page: &str, class: &str) -> Vec<f64> {
    let document = parse(page);
    let drawn = document.descendants();
    let drawn = drawn.filter(|node| node.attribute("class") == Some(class));
    let drawn = drawn.filter(|node| ["rect", "path"].contains(&node.tag_name().name()));
    drawn
        .flat_map(|node| match (node.attribute("x"), node.attribute("d")) {
            (Some(x), _) => vec![x.parse().unwrap()],
            (_, Some(d)) => {
                let moves = d.split('M').skip(1);
                let x = |part: &str| part.split(' ').next().unwrap().parse().unwrap();
                moves.map(x).collect()
            }
            _ => panic!("no place"),
        })
        .collect()
}

#[test]
fn marks_stand_in_the_time_line_where_the_evidence_has_them_and_nowhere_else() {
    let mut e = first_of_good();
    let span = e.phases.iter().find(|span| span.phase == Phase::Storm);
    let Span { from, to, .. } = *span.unwrap();
    let at = |share: Nanos| from + (to - from) * share / 10;
    let priority = e.plan.flows[0].priority;
    e.storm.as_mut().unwrap().gaps.clear();
    e.sender.withheld.clear();
    e.sender.withheld_left_out.clear();
    e.sender.stalls.clear();
    e.dut.iter_mut().for_each(|dut| dut.stalls.clear());
    e.ports.tx.counts.controls.clear();
    e.arrivals.records.clear();
    e.offences.clear();
    let ends = |probe: &&ProbeReport| probe.burst.ends_by_xon(priority) == Some(true);
    let ended = e.probes.iter().find(ends).unwrap().clone();
    e.probes.clear();
    let bare = time_line(e.clone());
    for class in [
        "gap",
        "xoff",
        "xon",
        "held",
        "loss",
        "stall",
        "dut-stall",
        "leaked",
        "late",
        "overdue",
        "twice",
        "damaged",
        "lost",
        "own-xoff",
        "own-xon",
    ] {
        assert_eq!(places(&bare, class), [0.0; 0], "{class}");
    }
    let control = |time, quanta| ControlReceived {
        time,
        opcode: 0x0101,
        vector: 1 << priority.index(),
        quanta: [quanta; 8],
    };
    e.storm.as_mut().unwrap().gaps = vec![Gap {
        from: at(1),
        to: at(2),
    }];
    e.ports.tx.counts.controls = vec![control(at(3), 0xffff), control(at(4), 0)];
    e.sender.withheld = vec![Withheld {
        port: PortName::TX,
        priority,
        phase: Phase::Storm,
        from: at(5),
        to: at(6),
    }];
    e.sender.stalls = vec![Stall {
        from: at(7),
        to: at(8),
    }];
    e.dut.as_mut().unwrap().stalls = vec![Stall {
        from: at(8),
        to: at(9),
    }];
    let flow = e.plan.flows[0].id;
    let arrival = |time, phase| Arrival {
        time,
        flow,
        phase,
        latency: 1,
    };
    // The first frame that comes too late after the XOFF.
    let [xoff, xon] = ended.left[..] else {
        panic!("{ended:?}");
    };
    let late = xoff.after + e.limits.max_response;
    e.probes = vec![ended];
    e.arrivals.records = vec![
        arrival(at(2), Phase::Storm),
        arrival(xoff.before, Phase::Probe),
        arrival(late, Phase::Probe),
        arrival(xon.after + 5_000_000, Phase::Probe),
    ];
    let offence = |time, kind| Offence {
        port: PortName::RX,
        time,
        kind,
        length: 60,
        octets: format!(
            "0200000000020200000000010800{:02x}{:02x}",
            0x45,
            e.plan.flows[0].dscp.get() << 2
        ),
    };
    e.offences = vec![
        offence(at(3), OffenceKind::Duplicate),
        offence(at(4), OffenceKind::Corrupt),
    ];
    // A frame of another priority is missing from this window on.
    let other = e
        .plan
        .flows
        .iter()
        .find(|flow| !e.plan.is_stormed(flow.priority));
    let other = other.unwrap().priority.index();
    let window = ((at(6) - e.windows.epoch) / e.windows.width) as usize;
    let rest = &mut e.windows.received[window..];
    let missing = rest.iter().position(|window| window[other] > 0).unwrap();
    rest[missing][other] -= 1;
    let missing = e.windows.epoch + (window + missing) as Nanos * e.windows.width;
    let lost = e.received.iter_mut();
    let mut lost = lost.filter(|found| (found.flow, found.phase) == (flow, Phase::Storm));
    lost.next().unwrap().frames -= 1;
    let page = time_line(e.clone());
    // The scale is that of the bands of phases.
    let bands: Vec<_> = ["phase", "phase odd"]
        .iter()
        .flat_map(|class| places(&page, class))
        .collect();
    assert_eq!(bands.len(), e.phases.len());
    let storm = places(&page, "loss");
    let [storm_at] = storm[..] else {
        panic!("{storm:?}");
    };
    assert!(bands.contains(&storm_at), "{bands:?}");
    let document = parse(&page);
    let drawing = of_class(&document, "svg", "timeline").next().unwrap();
    let number = |name| drawing.attribute(name).unwrap().parse::<f64>().unwrap();
    let (width, seconds) = (number("data-width"), number("data-span"));
    for (class, time) in [
        ("gap", at(1)),
        ("xoff", at(3)),
        ("xon", at(4)),
        ("held", at(5)),
        ("stall", at(7)),
        ("dut-stall", at(8)),
        ("leaked", at(2)),
        ("twice", at(3)),
        ("damaged", at(4)),
        ("lost", missing),
        ("late", late),
        ("own-xoff", xoff.before),
        ("own-xon", xon.before),
    ] {
        let expected = storm_at + (time - from) as f64 / 1e9 / seconds * width;
        let found = places(&page, class);
        let [found] = found[..] else {
            panic!("{class}: {found:?}");
        };
        assert!(
            (found - expected).abs() <= 1.1,
            "{class} at {found}, not at {expected}"
        );
    }
}

#[test]
fn a_frame_that_came_too_late_after_a_storm_an_expiry_or_an_xon_is_marked() {
    let good = page(&sample("pfc-good"));
    assert_eq!(places(&good, "overdue"), [0.0; 0]);
    for (device, is_late_after_storm, by_xon) in
        [("pauses-longer", true, false), ("ignores-xon", false, true)]
    {
        let mut evidence = samples::run(samples::on("pfc", device));
        evidence.cases.truncate(1);
        let page = page(&evidence);
        let e = &*samples::pfc(&mut evidence).next().unwrap();
        let priority = e.plan.lossless[0];
        let is_of = |flow: u16| {
            let mut flows = e.plan.flows.iter();
            flows.any(|of| of.id == flow && of.priority == priority)
        };
        let held = e.received.iter();
        let held = held.filter(|found| is_of(found.flow) && found.phase == Phase::Storm);
        let after_storm = held.map(|found| found.first).min();
        let mut expected = Vec::from_iter(after_storm.filter(|_| is_late_after_storm));
        let probes = e.probes.iter();
        let probes = probes.filter(|probe| probe.burst.ends_by_xon(priority) == Some(by_xon));
        expected.extend(probes.map(|probe| {
            // The DUT stops within that time, and is silent until it goes on.
            let from = probe.left[0].after + e.limits.max_response;
            let arrivals = e.arrivals.records.iter();
            let probed = arrivals.filter(|arrival| arrival.phase == Phase::Probe);
            let again = probed.filter(|arrival| is_of(arrival.flow) && arrival.time > from);
            again.map(|arrival| arrival.time).min().unwrap()
        }));
        let found = places(&page, "overdue");
        assert_eq!(found.len(), expected.len(), "{device}: {found:?}");
        let document = parse(&page);
        let drawing = of_class(&document, "svg", "timeline").next().unwrap();
        let number = |name| drawing.attribute(name).unwrap().parse::<f64>().unwrap();
        let (width, seconds) = (number("data-width"), number("data-span"));
        let begin = e.phases.iter().map(|span| span.from).min().unwrap();
        let bands = ["phase", "phase odd"].map(|class| places(&page, class));
        let zero = bands.into_iter().flatten().fold(width, f64::min);
        for (found, time) in found.iter().zip(expected) {
            let expected = zero + (time - begin) as f64 / 1e9 / seconds * width;
            assert!(
                (found - expected).abs() <= 1.1,
                "{device}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn a_lane_with_small_rates_has_a_scale_of_its_own() {
    let mut e = first_of_good();
    e.plan.flows.iter_mut().for_each(|flow| flow.length = 1024);
    assert_eq!(e.windows.width, 10_000_000);
    // Priority 6 has a quarter of the greatest rate, and priority 7 less.
    let window = [400, 400, 400, 400, 400, 400, 100, 99];
    let windows = vec![window; e.windows.offered.len()];
    (e.windows.offered, e.windows.received) = (windows.clone(), windows);
    let page = time_line(e);
    let document = parse(&page);
    let scales = of_class(&document, "g", "scales").next();
    let labels = scales.unwrap().children().filter(Node::is_element);
    let labels: Vec<String> = labels.map(text_of).collect();
    // 400 frames of 8384 bits, and 99 of them, in 10 ms.
    let mut expected = ["335.4 Mbit/s", "0"].repeat(7);
    expected.extend(["83 Mbit/s", "0"]);
    assert_eq!(labels, expected);
    // A curve reaches from the top of its lane, 0, to the ground, 100.
    let curve = |priority: u8| {
        let lane = format!("{priority} offered");
        let mut paths = named(&document, "path");
        let path = paths.find(|node| node.attribute("data-lane") == Some(lane.as_str()));
        path.unwrap().attribute("d").unwrap().to_owned()
    };
    assert_eq!([3, 6, 7].map(curve), ["M0 0H880", "M0 75H880", "M0 0H880"]);
}

#[test]
fn every_axis_has_its_unit() {
    let mut drawn = [0; 3];
    for (name, evidence) in samples() {
        let page = page(&evidence);
        let document = parse(&page);
        for drawing in named(&document, "svg") {
            let group = |class: &str| -> Vec<String> {
                let mut groups = drawing.children();
                let group = groups.find(|node| node.attribute("class") == Some(class));
                let labels = group.unwrap().children().filter(Node::is_element);
                labels.map(text_of).collect()
            };
            let kinds = ["timeline", "histogram", "ladder"];
            let kind = kinds
                .iter()
                .position(|kind| drawing.attribute("class") == Some(*kind));
            match kind {
                Some(0) => {
                    let times = group("axis");
                    let seconds = times.iter().all(|time| time.ends_with(" s"));
                    assert!(seconds && times.len() > 1, "{name}: {times:?}");
                    let scales = group("scales");
                    let rates = scales.chunks(2);
                    let rates = rates.map(|scale| scale[0].ends_with(" Mbit/s"));
                    assert!(
                        !scales.is_empty() && rates.min() == Some(true),
                        "{scales:?}"
                    );
                }
                Some(1) => {
                    let of = |anchor: &str| -> Vec<String> {
                        let texts = drawing.children();
                        let of = texts.filter(|node| node.attribute("text-anchor") == Some(anchor));
                        of.map(text_of).collect()
                    };
                    let units = ["frames", "gaps"];
                    let counts = of("end");
                    let counted = counts.iter().any(|text| units.contains(&text.as_str()));
                    assert!(counted, "{name}: {counts:?}");
                    let times = of("middle");
                    let units = [" ns", " us", " ms", " s"];
                    let timed = |time: &String| units.iter().any(|unit| time.ends_with(unit));
                    let all = times.iter().all(timed);
                    assert!(all && !times.is_empty(), "{name}: {times:?}");
                }
                Some(2) => {
                    let rows = drawing.children().filter(|node| node.has_tag_name("g"));
                    let times = rows.map(|row| text_of(row.first_element_child().unwrap()));
                    let times: Vec<String> = times.collect();
                    let timed = times.iter().all(|time| time.ends_with(" ms"));
                    assert!(timed && !times.is_empty(), "{name}: {times:?}");
                }
                _ => continue,
            }
            drawn[kind.unwrap()] += 1;
        }
    }
    assert!(drawn.iter().all(|number| *number > 0), "{drawn:?}");
}

/// Left edge, width and height of the bars of a histogram.
fn bars(histogram: Node<'_, '_>) -> Vec<[f64; 3]> {
    let mut paths = histogram.descendants();
    let drawn = paths.find(|node| node.attribute("class") == Some("bar"));
    let path = drawn.unwrap().attribute("d").unwrap();
    let bar = |drawn: &str| {
        // `LEFT BOTTOMv-HEIGHThWIDTHvHEIGHTz`.
        let (left, rest) = drawn.split_once(' ').unwrap();
        let (height, rest) = rest.split_once("v-").unwrap().1.split_once('h').unwrap();
        let width = rest.split_once('v').unwrap().0;
        [left, width, height].map(|number| number.parse().unwrap())
    };
    path.split('M').skip(1).map(bar).collect()
}

#[test]
fn a_distribution_has_a_bar_for_each_length_and_the_pause_at_its_place() {
    let mut evidence = sample("pfc-inconclusive");
    let e = samples::pfc(&mut evidence).next().unwrap();
    // Lengths a factor of ten from each other, with the pause of a frame (33.55 ms) in between.
    e.storm.as_mut().unwrap().histogram = GapHistogram(vec![
        (1_000_000, 100),
        (10_000_000, 1000),
        (100_000_000, 500),
    ]);
    let page = page(&evidence);
    let document = parse(&page);
    let histogram = of_class(&document, "svg", "histogram").next().unwrap();
    let [first, second, third] = bars(histogram)[..] else {
        panic!("three bars");
    };
    // The right ends are the lengths below which the gaps are.
    let ends = [first, second, third].map(|[left, width, _]| left + width);
    let decade = ends[1] - ends[0];
    assert!((ends[2] - ends[1] - decade).abs() < 0.5, "{ends:?}");
    let heights = [first, second, third].map(|[.., height]| height);
    assert!((heights[0] / heights[1] - 0.1).abs() < 0.01, "{heights:?}");
    assert!((heights[2] / heights[1] - 0.5).abs() < 0.01, "{heights:?}");
    let mut marks = histogram.descendants();
    let mark = marks.find(|node| node.attribute("class") == Some("mark"));
    let place = mark.unwrap().attribute("d").unwrap();
    let place: f64 = place[1..].split(' ').next().unwrap().parse().unwrap();
    let expected = ends[1] + decade * 3.355_392f64.log10();
    assert!((place - expected).abs() < 0.5, "{place}, not {expected}");
    let about = histogram.attribute("aria-label").unwrap();
    assert!(about.contains("33.55 ms"), "{about}");
}

/// The words of the waits of a page's ladders.
fn waits(name: &str) -> Vec<String> {
    let page = page(&sample(name));
    let document = parse(&page);
    of_class(&document, "path", "wait")
        .map(|node| text_of(node.next_sibling_element().unwrap()))
        .collect()
}

#[test]
fn ladders_name_each_wait_for_an_answer_that_did_not_come_and_each_timer() {
    let count = |name: &str, words: &str| {
        let waits = waits(name).into_iter();
        waits.filter(|wait| wait.ends_with(words)).count()
    };
    // Eleven requests with a wrong key in each of two repetitions, none of which may be answered.
    assert_eq!(count("mad-good", "no answer within 200 ms"), 22);
    // The positive control waits for one retry; the test for two of them, or seven.
    for (device, retries) in [("rc-good", [2, 7]), ("rc-failing", [1, 6])] {
        for (timer, retries) in ["1.074 s", "1.049 ms"].into_iter().zip(retries) {
            let waits = count(device, &format!("to the next; T_tr {timer}"));
            assert_eq!(waits, 1 + retries, "{device}, {timer}");
        }
    }
}
