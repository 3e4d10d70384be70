//! The resolution that a report prints beside each pass: a defect of that size fails the check, and
//! where it is a size of time or rate, half of it does not.

use validator_core::plan::ProbeBurst;
use validator_core::verdict::least_found;

use super::*;

/// Least defect that `check` would find, as the report of good evidence of `case` says.
fn printed(case: &str, check: &str) -> String {
    printed_of(case, check, &good(case))
}

/// Least defect that `check` would find, as the report of that evidence says.
fn printed_of(case: &str, check: &str, evidence: &PfcEvidence) -> String {
    let printed = printed_if_any(case, check, evidence);
    printed.unwrap_or_else(|| panic!("{check} of {case} has no resolution"))
}

/// The same; `None` where the report says nothing.
fn printed_if_any(case: &str, check: &str, evidence: &PfcEvidence) -> Option<String> {
    let judged = bench::case(case).judge(evidence);
    let name = least_found(check);
    let mut figures = judged.figures.into_iter();
    let figure = figures.find(|figure| figure.name == name);
    figure.map(|figure| figure.value)
}

/// The numbers of such a text, in its order.
fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace()
        .filter_map(|word| {
            word.trim_matches(['(', ')', ',', ';'])
                .replace(',', "")
                .parse()
                .ok()
        })
        .collect()
}

/// Milliseconds as a report rounds them, from above.
fn from_above(ms: f64) -> Nanos {
    (ms * 1e6).ceil() as Nanos + 1000
}

/// The verdict on `check` of that evidence.
fn verdict(case: &str, check: &str, evidence: &PfcEvidence) -> CheckResult {
    let results = results(case, evidence);
    results
        .into_iter()
        .find(|result| result.check == check)
        .unwrap()
}

/// A defect of the size that is printed fails `check`; half of it does not.
fn sized(case: &str, check: &str, size: f64, inject: impl Fn(&mut PfcEvidence, f64)) {
    for (part, fails) in [(1.0, true), (0.5, false)] {
        let mut evidence = good(case);
        inject(&mut evidence, part * size);
        let found = verdict(case, check, &evidence);
        assert_eq!(
            found.verdict == FAIL,
            fails,
            "{part} of {size} by {check} of {case}, which prints {:?}: {:?} {}",
            printed(case, check),
            found.verdict,
            found.reason
        );
    }
}

type One = (&'static str, &'static str, Tamper);

/// One frame, by each check that counts frames.
const ONE_FRAME: [One; 14] = [
    (SINGLE, "paused", |e| {
        leak(e, e.storm.as_ref().unwrap().last.before)
    }),
    (SINGLE, "background", |e| {
        lose(e, Role::Background, Phase::Storm, 1)
    }),
    (MULTI, "isolation", |e| {
        lose(e, Role::Isolation, Phase::Storm, 1)
    }),
    (SINGLE, "delivered", |e| {
        lose(e, Role::Test, Phase::Storm, 1)
    }),
    (SINGLE, "resume", |e| lose(e, Role::Test, Phase::Resume, 1)),
    (LOSSY, "test-traffic", |e| {
        lose(e, Role::Test, Phase::Storm, 1)
    }),
    (GLOBAL, "no-loss", |e| lose(e, Role::Test, Phase::Storm, 1)),
    (SINGLE, "no-duplicate", |e| e.received[0].duplicate += 1),
    (SINGLE, "no-reorder", |e| e.received[0].reordered += 1),
    (SINGLE, "no-resize", |e| e.received[0].resized += 1),
    (SINGLE, "no-corruption", |e| e.received[0].corrupt += 1),
    (SINGLE, "no-remark", |e| e.received[0].remarked += 1),
    (SINGLE, "no-mac-control-forwarded", |e| {
        e.ports.tx.counts.own_control += 1
    }),
    (SINGLE, "no-reflection", |e| {
        e.ports.tx.counts.test_frames += 1
    }),
];

#[test]
fn one_frame_fails_each_check_that_says_so() {
    for (case, check, tamper) in ONE_FRAME {
        let text = printed(case, check);
        assert!(text.starts_with("1 frame "), "{check}: {text}");
        let mut evidence = good(case);
        tamper(&mut evidence);
        let found = verdict(case, check, &evidence);
        assert_eq!(found.verdict, FAIL, "{check} of {case}: {}", found.reason);
    }
    // One of what was looked at: where not every frame is verified, of those that were.
    let mut sampled = good(SINGLE);
    for received in &mut sampled.received {
        received.verified = Some(received.frames.div_ceil(16));
    }
    let verified = sampled.received.iter().filter_map(|flow| flow.verified);
    let verified: u64 = verified.sum();
    let text = printed_of(SINGLE, "no-corruption", &sampled);
    let expected = format!("1 frame corrupted of {verified} (");
    assert!(text.starts_with(&expected), "{text}, not {expected}");
    let flows = sampled.plan.flows.iter();
    let background: Vec<u16> = flows
        .filter(|flow| flow.role == Role::Background)
        .map(|flow| flow.id)
        .collect();
    let sent = sampled.sender.flows.iter();
    let sent = sent.filter(|sent| background.contains(&sent.flow));
    let sent: u64 = sent.map(|sent| sent.frames).sum();
    let text = printed(SINGLE, "background");
    let expected = format!("1 frame lost of {sent} (");
    assert!(text.starts_with(&expected), "{text}, not {expected}");
    assert_eq!(printed(SINGLE, "no-pfc-on-lossy"), "one XOFF");
    let mut evidence = good(SINGLE);
    evidence.ports.tx.counts.pfc[6].xoff += 1;
    assert_eq!(verdict(SINGLE, "no-pfc-on-lossy", &evidence).verdict, FAIL);
    assert_eq!(printed(SINGLE, "no-pause"), "one PAUSE frame");
    let mut evidence = good(SINGLE);
    evidence.ports.tx.counts.pause.xoff += 1;
    assert_eq!(verdict(SINGLE, "no-pause", &evidence).verdict, FAIL);
}

#[test]
fn one_frame_beside_a_storm_on_lossy_priorities_fails_the_check_that_says_so() {
    for (case, check, storm) in [
        ("pfc.sizes", "others", &[0, 1, 2, 5, 6, 7][..]),
        ("pfc.class-map", "map", &[5]),
    ] {
        let good = bench::run(&bench::plan(case, &[3, 4], Some(storm)), &[]);
        let sent: u64 = good.sender.flows.iter().map(|sent| sent.frames).sum();
        let text = printed_of(case, check, &good);
        let expected = format!("1 frame lost of {sent} (");
        assert!(text.starts_with(&expected), "{text}, not {expected}");
        for role in [Role::Isolation, Role::Background] {
            let mut evidence = good.clone();
            lose(&mut evidence, role, Phase::Storm, 1);
            let found = verdict(case, check, &evidence);
            assert_eq!(found.verdict, FAIL, "{check} of {case}: {}", found.reason);
        }
    }
}

/// Each frame of `priority` that leaves in the storm phase arrives so much later.
fn delay(e: &mut PfcEvidence, priority: usize, by: Nanos) {
    let data = e.span(Phase::Storm).unwrap();
    let window = |time: Nanos| ((time - e.windows.epoch) / e.windows.width) as usize;
    let (first, last) = (window(data.from) + 1, window(data.to));
    let offered = e.windows.offered[first..last].iter();
    let offered: u64 = offered.map(|window| u64::from(window[priority])).sum();
    let late = (offered * by).div_ceil((last - first) as u64 * e.windows.width) as u32;
    let mut kept = 0;
    for window in &mut e.windows.received[first..last] {
        let taken = window[priority].min(late - kept);
        window[priority] -= taken;
        kept += taken;
    }
    e.windows.received[last + 1][priority] += kept;
}

#[test]
fn a_median_so_much_later_is_found() {
    let later = numbers(&printed(LOSSY, "no-delay"))[0];
    for priority in 0..8 {
        sized(LOSSY, "no-delay", later, |e, later| {
            delay(e, priority, from_above(later));
        });
    }
}

/// Time of the frames of the plan at the line's rate: all are of one length.
fn frame(e: &PfcEvidence) -> Nanos {
    e.limits.line_rate.frame_nanos(e.plan.flows[0].length)
}

#[test]
fn a_last_pause_that_ends_so_early_lets_a_frame_through() {
    let text = printed(SINGLE, "paused");
    let early = *numbers(&text).last().unwrap();
    sized(SINGLE, "paused", early, |e, early| {
        let end = e.storm.as_ref().unwrap().last.before + PAUSE;
        leak(e, end - from_above(early) + frame(e));
    });
}

#[test]
fn a_last_pause_that_lasts_so_much_longer_is_found() {
    let longer = numbers(&printed(SINGLE, "lets-go"))[0];
    sized(SINGLE, "lets-go", longer, |e, longer| {
        let test = flow(e, Role::Test);
        // As little as the tester can know of the frame's departure.
        let end = e.storm.as_ref().unwrap().last.before + PAUSE + from_above(longer);
        let first = received(e, test, Phase::Storm).first;
        goes_later(e, end - first);
    });
}

/// Nothing of the stormed priority arrives from `from` to `to`.
fn silent(e: &mut PfcEvidence, from: Nanos, to: Nanos) {
    let flow = flow(e, Role::Test);
    let records = &mut e.arrivals.records;
    records.retain(|arrival| arrival.flow != flow || !(from..to).contains(&arrival.time));
}

#[test]
fn an_xoff_that_is_obeyed_so_late_or_lasts_so_much_shorter_or_longer_is_found() {
    let [late, early, longer, .., held] = numbers(&printed(SINGLE, "response"))[..] else {
        panic!("{}", printed(SINGLE, "response"));
    };
    // The longest of the pauses that run out by themselves.
    const LONGEST: usize = 4;
    sized(SINGLE, "response", late, |e, late| {
        let (left, _) = probe(e, LONGEST);
        arrives(e, Phase::Probe, left[0].before + from_above(late));
    });
    sized(SINGLE, "response", early, |e, early| {
        let (left, pause) = probe(e, LONGEST);
        let time = left[0].after + pause - from_above(early) + frame(e);
        arrives(e, Phase::Probe, time);
    });
    sized(SINGLE, "response", longer, |e, longer| {
        let (left, pause) = probe(e, LONGEST);
        let end = left[0].before + pause;
        silent(e, end - MS, end + from_above(longer));
    });
    sized(SINGLE, "response", held, |e, held| {
        for xoff in beside::sent_again(e, 2).into_iter().take(2) {
            beside::hold(e, beside::HELD, xoff, from_above(held));
        }
    });
}

#[test]
fn an_xon_that_is_obeyed_so_late_is_found() {
    let late = numbers(&printed(SINGLE, "xon"))[0];
    sized(SINGLE, "xon", late, |e, late| {
        let xon = xons(e)[2];
        silent(e, xon.before, xon.before + from_above(late));
    });
}

/// Takes a share of what was offered of these priorities away from what arrived: in 100 ms from the
/// middle of the storm phase on, or in the whole phase.
fn dip(e: &mut PfcEvidence, priorities: std::ops::Range<usize>, share: f64, whole_phase: bool) {
    let data = e.span(Phase::Storm).unwrap();
    let width = e.windows.width;
    let first = (data.from - e.windows.epoch).div_ceil(width) as usize;
    let last = ((data.to - e.windows.epoch) / width) as usize;
    let many = (100 * MS / width) as usize;
    let windows = if whole_phase {
        first..last
    } else {
        (first + last) / 2..(first + last) / 2 + many
    };
    // Two digits are printed.
    let share = share * 1.05;
    for priority in priorities {
        let offered = windows
            .clone()
            .map(|index| e.windows.offered[index][priority]);
        let missing = (f64::from(offered.sum::<u32>()) * share).ceil() as usize;
        // As evenly as may be.
        let all = windows.len();
        for (number, index) in windows.clone().enumerate() {
            let less = (number + 1) * missing / all - number * missing / all;
            let received = &mut e.windows.received[index][priority];
            *received = received.saturating_sub(less as u32);
        }
    }
}

#[test]
fn a_dip_so_deep_is_found_in_a_window_and_in_a_phase() {
    let text = printed(LOSSY, "no-dip");
    // The first number is the width of a window.
    let [_, all, one, lasting, lasting_one] = numbers(&text)[..] else {
        panic!("{text}");
    };
    for (share, priorities, whole) in [
        (all, 0..8, false),
        (one, 5..6, false),
        (lasting, 0..8, true),
        (lasting_one, 5..6, true),
    ] {
        sized(LOSSY, "no-dip", share, |e, share| {
            dip(e, priorities.clone(), share / 100.0, whole);
        });
    }
}

#[test]
fn a_rate_so_much_lower_is_found() {
    let less = numbers(&printed(GLOBAL, "throughput"))[0];
    sized(GLOBAL, "throughput", less, |e, less| {
        let of_storm = e
            .received
            .iter_mut()
            .filter(|flow| flow.phase == Phase::Storm);
        for flow in of_storm {
            // Two digits are printed.
            flow.frames -= (flow.frames as f64 * 1.05 * less / 100.0).ceil() as u64;
        }
    });
}

/// Takes the probes whose pause of priority 3 an XON ends, or those whose pause runs out, out of
/// the plan and of what was done.
fn without_probes(e: &mut PfcEvidence, by_xon: bool) {
    let priority = Priority::new(3).unwrap();
    let stays = |burst: &ProbeBurst| burst.ends_by_xon(priority) != Some(by_xon);
    e.plan.probe.as_mut().unwrap().bursts.retain(stays);
    e.probes.retain(|probe| stays(&probe.burst));
}

/// Nothing of these flows was sent in the phase.
fn without_frames(e: &mut PfcEvidence, role: Role, phase: Phase) {
    let flows = e.plan.flows.iter().filter(|flow| flow.role == role);
    let flows: Vec<u16> = flows.map(|flow| flow.id).collect();
    e.sender
        .flows
        .retain(|sent| sent.phase != phase || !flows.contains(&sent.flow));
}

#[test]
fn what_was_never_sent_is_never_called_found() {
    let without: [One; 5] = [
        (SINGLE, "response", |e| without_probes(e, false)),
        (SINGLE, "xon", |e| without_probes(e, true)),
        (SINGLE, "paused", |e| {
            without_frames(e, Role::Test, Phase::Storm)
        }),
        (SINGLE, "resume", |e| {
            without_frames(e, Role::Test, Phase::Resume)
        }),
        (MULTI, "isolation", |e| {
            e.plan.flows.retain(|flow| flow.role != Role::Isolation)
        }),
    ];
    for (case, check, tamper) in without {
        assert!(!printed(case, check).is_empty());
        let mut evidence = good(case);
        tamper(&mut evidence);
        assert_eq!(printed_if_any(case, check, &evidence), None, "{check}");
    }
    // All priorities are named but one, of which a hold could not be told from a silent path.
    let beside = "another priority held";
    assert!(printed(SINGLE, "response").contains(beside));
    let seven = bench::plan(MULTI, &[0, 1, 2, 3, 4, 5, 6], None);
    let text = printed_of(MULTI, "response", &bench::run(&seven, &[]));
    assert!(!text.contains(beside), "{text}");
}
