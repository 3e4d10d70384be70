//! How large the page may be.

use pfc_ebpf::stamp::Phase;
use validator_core::evidence::pfc::{ControlReceived, Withheld};
use validator_core::evidence::{Evidence, Repetition};
use validator_core::plan::PortName;

use super::{assert_sound, named, of_class, page, parse, sample, samples, text_of};

/// Attempts at each repetition: the most that a run makes.
const ATTEMPTS: u32 = 3;
/// PFC frames of the DUT in a repetition: many for each pixel of a drawing.
const CONTROLS: u64 = 4_096;

/// A run as long as the longest plan, each repetition measured so often: its PFC repetitions at
/// full length on a busy link and machine, and its cases of the other families.
fn whole_plan(attempts: u32, repetitions: [usize; 4]) -> Evidence {
    let mut evidence = sample("pfc-inconclusive");
    // The four cases of the test plan.
    evidence.cases.truncate(repetitions.len());
    for (case, wanted) in evidence.cases.iter_mut().zip(repetitions) {
        let first = case.repetitions[0].clone();
        case.repetitions = vec![first; wanted];
        for (index, repetition) in case.repetitions.iter_mut().enumerate() {
            if let Repetition::Pfc(e) = repetition {
                e.plan.name = format!("lossless {index}");
            }
        }
    }
    let mut seed = 1u32;
    for e in samples::pfc(&mut evidence) {
        // 4.5 s in windows of 5 ms, no two of them alike.
        e.windows.width = 5_000_000;
        for (index, span) in e.phases.iter_mut().enumerate() {
            span.from = e.windows.epoch + index as u64 * 900_000_000;
            span.to = span.from + 880_000_000;
        }
        let mut noise = || {
            [0; 8].map(|_: u32| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                500 + (seed >> 24)
            })
        };
        e.windows.offered = (0..900).map(|_| noise()).collect();
        e.windows.received = (0..900).map(|_| noise()).collect();
        // XOFF and XON in turn.
        let (from, to) = (e.phases[0].from, e.phases[0].to + 3_600_000_000);
        e.ports.tx.counts.controls = (0..CONTROLS)
            .map(|index| ControlReceived {
                time: from + (to - from) / CONTROLS * index,
                opcode: 0x0101,
                vector: 0xff,
                quanta: [if index % 2 == 0 { 0xffff } else { 0 }; 8],
            })
            .collect();
        e.sender.withheld = (0..CONTROLS / 2)
            .map(|index| Withheld {
                port: PortName::TX,
                priority: e.plan.flows[0].priority,
                phase: Phase::Storm,
                from: from + (to - from) / CONTROLS * 2 * index,
                to: from + (to - from) / CONTROLS * (2 * index + 1),
            })
            .collect();
        if let Some(storm) = &mut e.storm {
            let gap = storm.gaps[0];
            storm.gaps = vec![gap; 1000];
        }
        let stall = e.sender.stalls[0];
        e.sender.stalls = vec![stall; 1000];
    }
    samples::measure_again(&mut evidence, attempts);
    evidence.preflight = Some(samples::preflight());
    // The two of the plan `all`.
    let mad = sample("mad-failing").cases.into_iter();
    evidence.cases.extend(mad.take(2));
    evidence.cases.extend(sample("rc-failing").cases);
    evidence
}

#[test]
fn the_page_of_the_whole_plan_keeps_within_its_size() {
    for attempts in [1, ATTEMPTS] {
        let page = page(&whole_plan(attempts, [8, 6, 8, 1]));
        assert_sound(&format!("the whole plan, {attempts} attempts"), &page);
        let document = parse(&page);
        let drawn = of_class(&document, "svg", "timeline");
        // At least the last attempt at each.
        assert_eq!(drawn.count(), 23);
        let not_drawn = page.matches("Not drawn: the page would be too large");
        assert_eq!(not_drawn.count(), 23 * (attempts as usize - 1));
    }
}

#[test]
fn where_there_are_too_many_repetitions_the_rest_is_named() {
    let evidence = whole_plan(1, [24; 4]);
    let page = page(&evidence);
    assert_sound("a plan of 96 repetitions", &page);
    let document = parse(&page);
    let main = named(&document, "main").next().unwrap();
    let text = text_of(main);
    let left_out = text.matches("Left out, for the page would be too large");
    assert_eq!(left_out.count(), 4, "{} octets", page.len());
    for index in 0..24 {
        assert!(text.contains(&format!("lossless {index}")), "{index}");
    }
    let drawn = of_class(&document, "svg", "timeline");
    assert!(drawn.count() >= 4);
}
