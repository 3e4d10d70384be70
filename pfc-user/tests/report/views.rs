//! Output before and during a run: the dry run and the progress.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};
use validator::report::list;
use validator::report::progress::Progress;
use validator::run::dry_run;
use validator_core::cases::pfc::CASES;
use validator_core::cases::pfc::planning::RepetitionRequest;
use validator_core::cases::pfc::port::PortContext;
use validator_core::plan::{
    Durations, FlowPlan, Limits, PfcFrame, PortName, ProbeBurst, ProbeFrame, ProbePlan,
    RepetitionPlan, Role, StormKind, StormPlan,
};
use validator_core::verdict::{Case, CaseResult, Check, Event, Step, Verdict};

static CASE: Case = Case {
    id: "pfc.x",
    title: "A title",
    requirement: "What the DUT has to do.",
    document: "A document",
    steps: &[Step::new("1", "do"), Step::new("2", "verify")],
    assertions: &[],
    checks: &[
        Check {
            id: "paused",
            steps: &["4"],
            extra: false,
            passes_when: "nothing is received",
            tolerance: "2 quanta",
            preconditions: &["ports", "rate"],
            depends_on: &[],
            fault: "ignores-pfc",
        },
        Check {
            id: "resume",
            steps: &["7"],
            extra: true,
            passes_when: "everything is received",
            tolerance: "",
            preconditions: &[],
            depends_on: &["paused"],
            fault: "never-resumes",
        },
    ],
};

const MS: u64 = 1_000_000;

#[test]
fn the_list_shows_each_check_with_all_that_is_said_of_it() {
    let expected = "\
pfc.x
  title        A title
  requirement  What the DUT has to do.
  document     A document
  steps
    - 1 do
    - 2 verify
  checks (+: beyond the document)
    paused
      step         4
      passes when  nothing is received
      tolerance    2 quanta
      needs        ports, rate
      fault        ignores-pfc
    resume (+)
      step         7
      passes when  everything is received
      depends on   paused
      fault        never-resumes

needs: preconditions; where one is not met, the check is inconclusive.
depends on: where that check did not pass, this one is skipped.
fault: what makes the check fail on the simulated DUT; `validator dut switch --help` has them all,
and so have `dut sma` and `dut requester`.
";
    assert_eq!(list::text(&[&CASE]), expected);
}

#[test]
fn the_list_for_programs_says_the_same() {
    let list: serde_json::Value = serde_json::from_str(&list::json(&[&CASE]).unwrap()).unwrap();
    assert_eq!(list["schema"], 1);
    let case = &list["cases"][0];
    assert_eq!(
        (case["id"].as_str(), case["document"].as_str()),
        (Some("pfc.x"), Some("A document"))
    );
    assert_eq!(
        case["checks"][1]["depends_on"],
        serde_json::json!(["paused"])
    );
    assert_eq!(
        case["checks"][0]["preconditions"],
        serde_json::json!(["ports", "rate"])
    );
}

#[test]
fn every_case_of_the_tool_can_be_listed_within_100_columns() {
    let cases = validator_core::cases::all();
    let text = list::text(&cases);
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(
        !cases.is_empty()
            && cases
                .iter()
                .all(|case| text.contains(&format!("{}\n", case.id)))
    );
}

fn priority(number: u8) -> Priority {
    Priority::new(number).unwrap()
}

/// Pauses of priority 3, half a millisecond apart.
fn probe(load: u8, times: &[u16]) -> ProbeBurst {
    let frame = |(number, time): (usize, &u16)| ProbeFrame {
        after: number as u64 * MS / 2,
        frame: PfcFrame::new(&[(priority(3), Quanta(*time))], Quanta(1000)),
    };
    ProbeBurst {
        load,
        frames: times.iter().enumerate().map(frame).collect(),
    }
}

fn plan() -> RepetitionPlan {
    let flow = |id: u16, role, number| FlowPlan {
        from: PortName::TX,
        to: PortName::RX,
        id,
        role,
        priority: priority(number),
        dscp: Dscp::new(number).unwrap(),
        pcp: None,
        rate: 250_000_000,
        length: 1024,
    };
    RepetitionPlan {
        name: "lossless 3".to_owned(),
        lossless: vec![priority(3)],
        flows: vec![
            flow(0, Role::Test, 3),
            flow(1, Role::Background, 0),
            flow(2, Role::Background, 1),
        ],
        storm: Some(StormPlan {
            kind: StormKind::Pfc(vec![priority(3)]),
            quanta: Quanta::MAX,
            interval: 11 * MS,
        }),
        probe: Some(ProbePlan {
            priorities: vec![priority(3)],
            judged: true,
            bursts: vec![probe(50, &[1000]), probe(100, &[2000, 0])],
        }),
        probe_first: false,
        baseline_load: 100,
        durations: Durations {
            baseline: 300 * MS,
            lead: 1000 * MS,
            traffic: 1500 * MS,
            tail: 200 * MS,
            resume: 400 * MS,
            drain_max: 2000 * MS,
        },
    }
}

fn limits() -> Limits {
    Limits {
        line_rate: LineRate::from_bits_per_second(1_000_000_000).unwrap(),
        max_response: MS,
        headroom: 1 << 20,
        xoff: Some(512 << 10),
        max_residence: 1000 * MS,
        min_throughput: 0.99,
        max_burst: 4 * MS,
    }
}

#[test]
fn a_dry_run_says_what_would_be_sent_and_for_how_long() {
    let expected = "\
pfc.x [lossless 3]
      test traffic: priority 3, DSCP 3; 1 flow of frames of 1024 octets, 250.000 Mbit/s (25.00 % of
                    the line)
      background traffic: priorities 0-1, DSCP 0-1; 2 flows of frames of 1024 octets, 500.000 Mbit/s
                          in all (50.00 % of the line)
   1  baseline: send all flows for 300ms without a storm, and wait for their frames
   2  storm: from the rx port send PFC for priority 3 every 11ms, 65535 quanta each (a pause of
      33.554ms)
   3  after 1s start all flows; send for 1.5s
   4  200ms after the last frame stop the storm
   5  drain: wait for what the DUT holds, at most 2s
   6  resume: send all flows for 400ms, and wait for their frames
   7  probe: on running traffic single PFC frames for priority 3; the DUT has 1ms to respond: at 50
      % of the rates 3: 1000 (512us); at 100 % of the rates 3: 2000 (1.024ms), after 500us 3: XON
";
    assert_eq!(dry_run::pfc("pfc.x", &plan(), &limits()), expected);
}

/// The probe of a case as it is planned on a port of 1 Gbit/s.
#[test]
fn a_dry_run_tells_every_frame_of_a_planned_probe() {
    let id = "pfc.pause-multi-lossless";
    let case = CASES.iter().find(|case| case.case.id == id).unwrap();
    let limits = limits();
    let port = PortContext {
        line_rate: limits.line_rate,
        max_response: limits.max_response,
        max_residence: limits.max_residence,
        load: 1.0,
        trust: Trust::Dscp,
        dscp_map: std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8)),
        vlan: false,
        senders: Vec::new(),
        receivers: Vec::new(),
        shortest: 60,
        zero_source: false,
        fixed_lossless: None,
    };
    let request = RepetitionRequest {
        lossless: &[priority(3), priority(4)],
        storm: None,
        turn: 0,
        durations: plan().durations,
        frame: 1024,
        quanta: Quanta::MAX,
        interval: 11 * MS,
    };
    let planned = (case.plan)(&port, &request).unwrap();
    let text = dry_run::pfc(id, &planned, &limits);
    let expected = "\
   7  probe: on running traffic single PFC frames for priorities 3-4; the DUT has 1ms to respond: at
      50 % of the rates 3: 39225 (20.083ms), 4: 39225 (20.083ms); at 50 % of the rates 3: 65439
      (33.505ms), 4: 65439 (33.505ms), after 11.168ms 3: XON, 4: XON; at 50 % of the rates 3: 65439
      (33.505ms), 4: 65439 (33.505ms), after 8.376ms 3: 22969 (11.76ms), 4: 22969 (11.76ms); at 50 %
      of the rates 3: 52332 (26.794ms), 4: 52332 (26.794ms), after 8.931ms 3: XON; at 50 % of the
      rates 3: 45907 (23.504ms), 4: 22969 (11.76ms), 1: 29651 (15.181ms), 2: 29651 (15.181ms), 5:
      29651 (15.181ms), 6: 29651 (15.181ms), 7: 29651 (15.181ms), after 3.92ms 1: XON, after 7.84ms
      vector 0, all times 65439 (33.505ms); at 50 % of the rates 3: 59014 (30.215ms), 4: 59014
      (30.215ms), after 10.072ms 3: XON, 4: XON; at 100 % of the rates 3: 19628 (10.05ms), 4: 19628
      (10.05ms)
";
    let at = text.find("7  probe:").expect("a probe as step 7");
    assert_eq!(&text[at..], expected);
}

#[test]
fn a_dry_run_of_a_case_without_resume_has_no_such_step_and_an_early_probe_comes_early() {
    let mut plan = plan();
    plan.durations.resume = 0;
    plan.probe_first = true;
    plan.storm.as_mut().unwrap().kind = StormKind::Pause;
    let text = dry_run::pfc("pfc.x", &plan, &limits());
    assert!(!text.contains("resume:"), "{text}");
    assert!(
        text.contains("   2  probe:")
            && text.contains("   3  storm: from the rx port send 802.3x PAUSE every 11ms,"),
        "{text}"
    );
}

#[test]
fn a_dry_run_says_of_a_storm_of_xons_that_it_asks_for_no_pause() {
    let mut plan = plan();
    let storm = plan.storm.as_mut().unwrap();
    storm.kind = StormKind::Vector(Priority::all().collect());
    storm.quanta = Quanta::ZERO;
    let text = dry_run::pfc("pfc.x", &plan, &limits());
    let words: Vec<_> = text.split_whitespace().collect();
    let expected = "send PFC with eight times of 0 and in its vector the bits of priorities 0-7 \
        every 11ms, each an XON";
    assert!(words.join(" ").contains(expected), "{text}");
}

#[test]
fn a_dry_run_of_probes_alone_has_no_step_of_a_storm() {
    let mut plan = plan();
    plan.storm = None;
    plan.durations = plan.durations.without_storm();
    let text = dry_run::pfc("pfc.x", &plan, &limits());
    assert!(
        !text.contains("storm:") && !text.contains("drain:"),
        "{text}"
    );
    assert!(text.contains("   2  probe:"), "{text}");
}

#[test]
fn a_dry_run_of_traffic_alone_says_its_load_and_its_time() {
    let mut plan = plan();
    (plan.storm, plan.probe, plan.baseline_load) = (None, None, 40);
    plan.durations = plan.durations.of_traffic();
    let text = dry_run::pfc("pfc.x", &plan, &limits());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("1 baseline: send all flows at 40 % of their rates for"));
    assert!(words.contains("2 traffic: send all flows for"), "{text}");
    assert!(
        words.contains("3 drain: wait for what the DUT holds"),
        "{text}"
    );
    assert!(
        words.contains("4 resume: send all flows at 40 % of their rates for"),
        "{text}"
    );
    assert!(!text.contains("   5  "), "{text}");
}

#[test]
fn without_a_terminal_progress_is_a_line_for_each_repetition() {
    let mut out = Vec::new();
    let mut progress = Progress::plain(&mut out);
    let begins = |name: &str| Event::RepetitionBegins {
        name: name.to_owned(),
        seconds: 2.5,
    };
    let result = CaseResult {
        case: "pfc.x".to_owned(),
        verdict: Verdict::Fail,
        reason: String::new(),
        checks: vec![],
        attempts: Vec::new(),
        assertions: vec![],
        steps: vec![],
        figures: vec![],
    };
    for event in [
        Event::CaseBegins {
            case: &CASE,
            repetitions: 2,
        },
        begins("lossless 3"),
        Event::PhaseBegins { phase: "storm" },
        Event::RepetitionEnds,
        Event::Note("eth1 has no hardware counters".to_owned()),
        begins("lossless 4"),
        Event::RepetitionEnds,
        Event::CaseEnds { result },
    ] {
        progress.show(&event);
    }
    drop(progress);
    let expected = "\
pfc.x: 2 repetitions
  1/2 lossless 3 (at least 2.5 s)
eth1 has no hardware counters
  2/2 lossless 4 (at least 2.5 s)
pfc.x: fail
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
