//! The page says what the other reports say, is one well-formed file, and takes no text of evidence
//! for markup.

#[path = "common/pages.rs"]
mod pages;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Nanos;
use roxmltree::{Document, Node, ParsingOptions};
use validator_core::case::{AttemptResult, CaseResult, Exit, Verdict};
use validator_core::cases;
use validator_core::evidence::pfc::{
    ControlReceived, Gap, GapHistogram, PfcEvidence, PhaseSpan as Span, Stall, Withheld,
};
use validator_core::evidence::{Evidence, Repetition};
use validator_core::report::{html, text};

/// The samples, read once.
fn samples() -> Vec<(String, Evidence)> {
    static SAMPLES: OnceLock<Vec<(String, Evidence)>> = OnceLock::new();
    SAMPLES.get_or_init(pages::samples).clone()
}

fn judged(evidence: &Evidence) -> (Vec<CaseResult>, Exit) {
    let results = cases::judge(evidence);
    let exit = Exit::of(&results, evidence.interrupted);
    (results, exit)
}

fn page(evidence: &Evidence) -> String {
    let (results, exit) = judged(evidence);
    html::page(evidence, &results, exit)
}

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}"))
}

fn named<'a, 'i>(
    document: &'a Document<'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    let all = document.descendants();
    all.filter(move |node| node.tag_name().name() == name)
}

/// The text of a node, with single spaces.
fn text_of(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(|node| node.is_text());
    let texts: Vec<&str> = texts.filter_map(|node| node.text()).collect();
    words(&texts.join(" "))
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Fails unless the page can be found one's way through: by the keyboard, by ear, and without a
/// network.
fn assert_sound(name: &str, page: &str) {
    assert!(
        page.len() <= html::LARGEST,
        "{name} has {} octets",
        page.len()
    );
    let document = parse(page);
    let ids: Vec<&str> = document
        .descendants()
        .filter_map(|node| node.attribute("id"))
        .collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "{name} has an id twice");
    for link in named(&document, "a") {
        let target = link.attribute("href").unwrap();
        let target = target.strip_prefix('#').expect("a link within the page");
        assert!(unique.contains(target), "{name} links to nothing: {target}");
    }
    for node in document.descendants() {
        let attributes: Vec<&str> = node
            .attributes()
            .map(|attribute| attribute.name())
            .collect();
        let distinct: BTreeSet<&&str> = attributes.iter().collect();
        assert_eq!(attributes.len(), distinct.len(), "{name}: {node:?}");
        assert!(!attributes.contains(&"src"), "{name} loads something");
        let script = attributes.iter().find(|name| name.starts_with("on"));
        assert_eq!(script, None, "{name}");
    }
    for name in ["link", "img", "iframe", "object", "base"] {
        assert_eq!(named(&document, name).count(), 0, "{name}");
    }
    for style in named(&document, "style") {
        let style = style.text().unwrap();
        assert!(!style.contains("url(") && !style.contains("@import"));
    }
    for table in named(&document, "table") {
        let first = table.first_element_child().unwrap();
        assert_eq!(first.tag_name().name(), "caption", "{name}");
    }
    for heading in named(&document, "th") {
        assert!(heading.has_attribute("scope"), "{name}: {heading:?}");
    }
    for drawing in named(&document, "svg") {
        let nested = drawing.attribute("class") == Some("plot");
        let told = drawing.attribute("role") == Some("img")
            && drawing
                .attribute("aria-label")
                .is_some_and(|label| !label.is_empty());
        assert!(nested || told, "{name}: {drawing:?}");
    }
    for landmark in ["header", "nav", "main", "footer", "h1"] {
        assert_eq!(named(&document, landmark).count(), 1, "{name}: {landmark}");
    }
}

#[test]
fn every_page_is_one_well_formed_file_that_leads_everywhere() {
    for (name, evidence) in samples() {
        assert_sound(&name, &page(&evidence));
    }
}

#[test]
fn a_page_says_what_the_other_reports_say() {
    for (name, evidence) in samples() {
        let (results, exit) = judged(&evidence);
        let verdict = Verdict::of_parts(results.iter().map(|result| result.verdict));
        let expected = name.split_once('-').unwrap().1;
        let expected = match expected {
            "good" => Verdict::Pass,
            "failing" => Verdict::Fail,
            _ => Verdict::Inconclusive,
        };
        assert_eq!(verdict, expected, "{name}");
        let page = html::page(&evidence, &results, exit);
        let document = parse(&page);
        let heading = text_of(named(&document, "h1").next().unwrap());
        assert!(heading.ends_with(verdict.word()), "{name}: {heading}");
        let whole = text_of(named(&document, "body").next().unwrap());
        let summary = text::summary(&evidence, &results, exit, false);
        let conclusion = words(summary.lines().last().unwrap());
        assert!(whole.contains(&conclusion), "{name}: {conclusion}");
        for fact in [
            &evidence.testbed.name,
            &evidence.version,
            &format!("Linux {}", evidence.host.kernel),
            &format!("{} with {} CPUs", evidence.host.machine, evidence.host.cpus),
        ] {
            assert!(whole.contains(fact), "{name}: {fact}");
        }
        for result in &results {
            let known = cases::all().into_iter().find(|case| case.id == result.case);
            let known = known.unwrap();
            let requirements = [known.title, known.document, known.requirement].into_iter();
            let of_checks = known.checks.iter();
            let of_checks = of_checks.flat_map(|check| [check.passes_when, check.tolerance]);
            for said in requirements.chain(of_checks) {
                assert!(whole.contains(&words(said)), "{name}: {said}");
            }
            for check in known.checks.iter().filter(|check| check.step != "-") {
                let clause = words(&format!("step {}", check.step));
                assert!(whole.contains(&clause), "{name}: {clause}");
            }
            let open = result
                .checks
                .iter()
                .filter(|check| check.verdict != Verdict::Pass);
            for check in open {
                assert!(whole.contains(&words(&check.reason)), "{name}: {check:?}");
                let first = check
                    .assertions
                    .iter()
                    .find(|made| made.verdict == check.verdict);
                for said in first
                    .iter()
                    .flat_map(|made| [&made.what, &made.expected, &made.actual])
                {
                    assert!(whole.contains(&words(said)), "{name}: {said}");
                }
            }
            for figure in &result.figures {
                let row = words(&format!("{} {}", figure.name, figure.value));
                assert!(whole.contains(&row), "{name}: {row}");
            }
            for assertion in &result.assertions {
                assert!(whole.contains(&assertion.id), "{name}: {}", assertion.id);
            }
        }
    }
}

#[test]
fn attempts_and_what_a_pass_would_have_found_stand_at_their_check() {
    let samples = samples();
    let (_, evidence) = samples.iter().find(|(name, _)| name == "pfc-good").unwrap();
    let (mut results, exit) = judged(evidence);
    let result = &mut results[0];
    let repetition = result.checks[0].repetition.clone();
    let mut checks: Vec<_> = result.checks.clone();
    checks.retain(|check| check.repetition == repetition);
    checks[0].verdict = Verdict::Inconclusive;
    checks[0].reason = "the storm had a gap".into();
    let (first, last) = (
        checks[0].check.clone(),
        checks.last().unwrap().check.clone(),
    );
    result.attempts.push(AttemptResult {
        repetition,
        attempt: 1,
        checks,
    });
    let page = html::page(evidence, &results, exit);
    let document = parse(&page);
    let part = |check: &str| {
        let heading = format!("Attempts at {check}");
        let caption = named(&document, "caption").find(|node| text_of(*node) == heading);
        let table = caption.and_then(|caption| caption.parent()).unwrap();
        text_of(table)
    };
    assert!(part(&first).contains("1 ? inconclusive the storm had a gap"));
    assert!(part(&last).contains("pass"));
    let least: Vec<_> = named(&document, "caption")
        .map(text_of)
        .filter(|caption| caption.starts_with("The least that "))
        .collect();
    assert!(
        least.contains(&"The least that paused would have found".into()),
        "{least:?}"
    );
}

#[test]
fn each_family_is_drawn() {
    let samples = samples();
    for (family, class, number) in [
        // Cases with one repetition, but one with two.
        ("pfc", "timeline", 5),
        ("mad", "ladder", 5),
        ("rc", "ladder", 3),
    ] {
        for verdict in ["good", "failing", "inconclusive"] {
            let name = format!("{family}-{verdict}");
            let (_, evidence) = samples.iter().find(|(found, _)| *found == name).unwrap();
            let page = page(evidence);
            let document = parse(&page);
            let drawn = named(&document, "svg");
            let drawn = drawn.filter(|node| node.attribute("class") == Some(class));
            assert_eq!(drawn.count(), number, "{name}");
        }
    }
}

/// Time line of the first repetition of that PFC evidence.
fn time_line(e: PfcEvidence) -> String {
    let samples = samples();
    let (_, good) = samples.iter().find(|(name, _)| name == "pfc-good").unwrap();
    let mut evidence = good.clone();
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
    let mut samples = samples();
    let good = samples.iter_mut().find(|(name, _)| name == "pfc-good");
    let mut e = pages::pfc(&mut good.unwrap().1).next().unwrap().clone();
    let span = e.phases.iter().find(|span| span.phase == Phase::Storm);
    let Span { from, to, .. } = *span.unwrap();
    let at = |share: Nanos| from + (to - from) * share / 10;
    let priority = e.plan.flows[0].priority;
    e.storm.as_mut().unwrap().gaps.clear();
    e.sender.withheld.clear();
    e.sender.withheld_left_out.clear();
    e.sender.stalls.clear();
    e.dut.iter_mut().for_each(|dut| dut.stalls.clear());
    e.tx_port.controls.clear();
    let bare = time_line(e.clone());
    for class in ["gap", "xoff", "xon", "held", "loss", "stall", "dut-stall"] {
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
    e.tx_port.controls = vec![control(at(3), 0xffff), control(at(4), 0)];
    e.sender.withheld = vec![Withheld {
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
    let drawing = named(&document, "svg").find(|svg| svg.attribute("class") == Some("timeline"));
    let number = |name| drawing.unwrap().attribute(name).unwrap().parse::<f64>();
    let (width, seconds) = (number("data-width").unwrap(), number("data-span").unwrap());
    for (class, share) in [
        ("gap", 1),
        ("xoff", 3),
        ("xon", 4),
        ("held", 5),
        ("stall", 7),
        ("dut-stall", 8),
    ] {
        let expected = storm_at + (at(share) - from) as f64 / 1e9 / seconds * width;
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
fn causes_of_what_is_inconclusive_have_a_remedy() {
    let samples = samples();
    let of = |name: &str| {
        let (_, evidence) = samples.iter().find(|(found, _)| found == name).unwrap();
        page(evidence)
    };
    let good = of("pfc-good");
    assert!(!good.contains("id=\"undecided\""));
    let page = of("pfc-inconclusive");
    let document = parse(&page);
    let mut sections = named(&document, "section");
    let section = sections.find(|node| node.attribute("id") == Some("undecided"));
    let text = text_of(section.unwrap());
    for expected in [
        "the DUT's PFC watchdog is off; declare facts.watchdog = \"off\"",
        "drops on the tester's own side: wire lost +5 Take load off the tester",
        "pfc.pause-single-lossless (1",
        "Make the repetition possible",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    for name in ["mad-inconclusive", "rc-inconclusive"] {
        let page = of(name);
        assert!(page.contains("id=\"undecided\""), "{name}");
        assert!(!page.contains("Mend what is found"), "{name}");
    }
}

#[test]
fn a_cause_found_in_several_attempts_is_one_row_with_its_remedy() {
    let samples = samples();
    let (_, evidence) = samples
        .iter()
        .find(|(name, _)| name == "pfc-again")
        .unwrap();
    let page = page(evidence);
    let document = parse(&page);
    let mut sections = named(&document, "section");
    let section = sections.find(|node| node.attribute("id") == Some("undecided"));
    let rows = section.unwrap().descendants();
    let rows = rows.filter(|node| node.tag_name().name() == "tr");
    let rows: Vec<String> = rows.map(text_of).collect();
    let of: Vec<_> = rows
        .iter()
        .filter(|row| row.contains("wire lost +5"))
        .collect();
    let [row] = of[..] else { panic!("{rows:?}") };
    let expected = "Take load off the tester, or give its ports longer rings";
    assert!(row.contains(expected), "{row}");
    assert!(!rows.iter().any(|row| row.contains("attempt")), "{rows:?}");
    assert!(!page.contains("Mend what is found"), "{rows:?}");
    // Each attempt has its figures.
    for attempt in [
        "lossless 3, attempt 1]",
        "lossless 3, attempt 2]",
        "lossless 3]",
    ] {
        let caption = format!("Figures of pfc.pause-single-lossless [{attempt}");
        assert!(page.contains(&caption), "{caption}");
    }
    // The ports are there with what to mend.
    assert!(text_of(document.root_element()).contains("tx enp23s0f0np0"));
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
    let samples = samples();
    let inconclusive = samples.iter().find(|(name, _)| name == "pfc-inconclusive");
    let mut evidence = inconclusive.unwrap().1.clone();
    let e = pages::pfc(&mut evidence).next().unwrap();
    // Lengths a factor of ten from each other, with the pause of a frame (33.55 ms) in between.
    e.storm.as_mut().unwrap().histogram = GapHistogram(vec![
        (1_000_000, 100),
        (10_000_000, 1000),
        (100_000_000, 500),
    ]);
    let page = page(&evidence);
    let document = parse(&page);
    let mut histograms = named(&document, "svg");
    let histogram = histograms.find(|node| node.attribute("class") == Some("histogram"));
    let histogram = histogram.unwrap();
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
    assert!(
        histogram
            .attribute("aria-label")
            .unwrap()
            .contains("33.55 ms")
    );
}

/// The words of the waits of a page's ladders.
fn waits(name: &str) -> Vec<String> {
    let samples = samples();
    let (_, evidence) = samples.iter().find(|(found, _)| found == name).unwrap();
    let page = page(evidence);
    let document = parse(&page);
    let brackets = named(&document, "path");
    let brackets = brackets.filter(|node| node.attribute("class") == Some("wait"));
    brackets
        .map(|node| text_of(node.next_sibling_element().unwrap()))
        .collect()
}

#[test]
fn ladders_name_each_wait_for_an_answer_that_did_not_come_and_each_timer() {
    let count = |name: &str, words: &str| {
        let waits = waits(name).into_iter();
        waits.filter(|wait| wait.ends_with(words)).count()
    };
    // Four requests with a wrong key in each of two repetitions, none of which may be answered.
    assert_eq!(count("mad-good", "no answer within 200 ms"), 8);
    // The positive control waits for one retry; the test for two of them, or seven.
    for (device, retries) in [("rc-good", [2, 7]), ("rc-failing", [1, 6])] {
        for (timer, retries) in ["1.074 s", "1.049 ms"].into_iter().zip(retries) {
            let waits = count(device, &format!("to the next; T_tr {timer}"));
            assert_eq!(waits, 1 + retries, "{device}, {timer}");
        }
    }
}

/// Text that tries to become markup, to steer, or to break the file.
const HOSTILE: &str = "</title></style></script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&lt;\
     \u{0}\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{ffff}]]><!--";

/// Puts that text wherever the evidence of a run has one.
fn hostile(name: &str) -> Evidence {
    let samples = samples();
    let (_, evidence) = samples.iter().find(|(found, _)| found == name).unwrap();
    let mut value = serde_json::to_value(evidence).unwrap();
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
    let (_, evidence) = samples().swap_remove(0);
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
    let (_, evidence) = samples().swap_remove(2);
    for (extreme, width) in [(u64::MAX, 1), (0, 0), (u64::MAX, u64::MAX), (1, 1)] {
        let mut evidence = evidence.clone();
        for e in pages::pfc(&mut evidence) {
            e.windows.width = width;
            e.windows.epoch = extreme;
            e.plan.flows[0].length = usize::MAX;
            e.windows.offered[0] = [u32::MAX; 8];
            for span in &mut e.phases {
                span.to = extreme;
            }
            e.sender.withheld = vec![Withheld {
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
        let (results, exit) = judged(&pages::run(Vec::new()));
        assert_sound("extreme", &html::page(&evidence, &results, exit));
    }
}

/// Attempts at each repetition: the most that a run makes.
const ATTEMPTS: u32 = 3;
/// PFC frames of the DUT in a repetition: many for each pixel of a drawing.
const CONTROLS: u64 = 4_096;

/// A run as long as the longest plan, each repetition measured so often: its PFC repetitions at
/// full length on a busy link and machine, and all cases of the other families.
fn whole_plan(attempts: u32) -> Evidence {
    let mut samples = samples();
    let mut take = |name: &str| {
        let at = samples.iter().position(|(found, _)| found == name).unwrap();
        samples.swap_remove(at).1
    };
    let mut evidence = take("pfc-inconclusive");
    let repetitions = [8, 6, 8, 1];
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
    for e in pages::pfc(&mut evidence) {
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
        e.tx_port.controls = (0..CONTROLS)
            .map(|index| ControlReceived {
                time: from + (to - from) / CONTROLS * index,
                opcode: 0x0101,
                vector: 0xff,
                quanta: [if index % 2 == 0 { 0xffff } else { 0 }; 8],
            })
            .collect();
        e.sender.withheld = (0..CONTROLS / 2)
            .map(|index| Withheld {
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
    pages::measure_again(&mut evidence, attempts);
    evidence.preflight = Some(pages::preflight());
    evidence.cases.extend(take("mad-failing").cases);
    evidence.cases.extend(take("rc-failing").cases);
    evidence
}

#[test]
fn the_page_of_the_whole_plan_keeps_within_its_size() {
    for attempts in [1, ATTEMPTS] {
        let page = page(&whole_plan(attempts));
        assert_sound(&format!("the whole plan, {attempts} attempts"), &page);
        let document = parse(&page);
        let drawn = named(&document, "svg");
        let drawn = drawn.filter(|svg| svg.attribute("class") == Some("timeline"));
        // At least the last attempt at each.
        assert_eq!(drawn.count(), 23);
        let not_drawn = page.matches("Not drawn: the page would be too large");
        assert_eq!(not_drawn.count(), 23 * (attempts as usize - 1));
    }
}
