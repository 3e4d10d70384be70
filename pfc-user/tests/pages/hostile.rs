//! Text and figures that somebody made to break the page.

use validator_core::evidence::Evidence;
use validator_core::evidence::pfc::Withheld;
use validator_core::plan::PortName;
use validator_core::report::html;

use super::{assert_sound, judged, named, page, parse, sample, samples};

/// Text that tries to become markup, to steer, or to break the file.
const HOSTILE: &str = "</title></style></script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&lt;\
     \u{0}\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{ffff}]]><!--";

/// Puts that text wherever the evidence of a run has one.
fn hostile(name: &str) -> Evidence {
    let mut value = serde_json::to_value(sample(name)).unwrap();
    spoil(&mut value, "");
    serde_json::from_value(value).unwrap()
}

/// Replaces texts that no type restricts.
fn spoil(value: &mut serde_json::Value, key: &str) {
    const FREE: [&str; 25] = [
        "version",
        "kernel",
        "machine",
        "name",
        "dut",
        "toml",
        "error",
        "reason",
        "transport",
        "route",
        "interface",
        "driver",
        "xdp",
        "pfc_visible",
        "watchdog",
        "method",
        "honours_pfc",
        "place",
        "counter",
        "faults",
        "backend",
        "unreachable",
        "refused",
        "disturbed",
        "port",
    ];
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                spoil(value, key);
            }
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(|value| spoil(value, key)),
        serde_json::Value::String(text) if FREE.contains(&key) => {
            // Names of repetitions stay distinct.
            *text = format!("{text}{HOSTILE}");
        }
        _ => {}
    }
}

#[test]
fn text_of_evidence_never_becomes_markup() {
    let names = ["pfc-inconclusive", "mad-failing", "rc-failing"];
    for name in names {
        let evidence = hostile(name);
        let page = page(&evidence);
        assert_sound(name, &page);
        assert!(page.contains("&lt;script&gt;alert(1)"), "{name} shows it");
        let document = parse(&page);
        assert_eq!(named(&document, "script").count(), 1, "{name}");
        assert_eq!(named(&document, "img").count(), 0, "{name}");
        let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert_eq!(page.find(steers), None, "{name}");
        assert!(!page.contains('\u{202e}'), "{name}");
    }
    // The text is in the results too, whatever wrote them.
    let evidence = sample("pfc-good");
    let (mut results, exit) = judged(&evidence);
    for result in &mut results {
        result.case = HOSTILE.into();
        result.reason = HOSTILE.into();
        for check in &mut result.checks {
            (check.check, check.repetition) = (HOSTILE.into(), HOSTILE.into());
            check.reason = HOSTILE.into();
            for made in &mut check.assertions {
                (made.what, made.expected) = (HOSTILE.into(), HOSTILE.into());
                made.actual = HOSTILE.into();
            }
        }
    }
    assert_sound("results", &html::page(&evidence, &results, exit));
}

#[test]
fn figures_out_of_all_proportion_are_drawn_somehow() {
    let evidence = sample("pfc-inconclusive");
    for (extreme, width) in [(u64::MAX, 1), (0, 0), (u64::MAX, u64::MAX), (1, 1)] {
        let mut evidence = evidence.clone();
        for e in samples::pfc(&mut evidence) {
            e.windows.width = width;
            e.windows.epoch = extreme;
            e.plan.flows[0].length = usize::MAX;
            e.windows.offered[0] = [u32::MAX; 8];
            for span in &mut e.phases {
                span.to = extreme;
            }
            e.sender.withheld = vec![Withheld {
                port: PortName::TX,
                priority: e.plan.flows[0].priority,
                phase: e.phases[0].phase,
                from: extreme,
                to: 0,
            }];
            if let Some(storm) = &mut e.storm {
                storm.max_gap = extreme;
                storm.histogram.0 = vec![(0, 1), (extreme, u64::MAX)];
            }
        }
        // Judged as it was recorded: the judges are not what is asked here.
        let (results, exit) = judged(&samples::run(Vec::new()));
        assert_sound("extreme", &html::page(&evidence, &results, exit));
    }
}
