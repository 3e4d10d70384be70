//! `--dry-run`: what would be done, step by step.

use pfc_ebpf::units::Priority;

use super::layout::paragraph;
use crate::config::Span;
use crate::plan::{FlowPlan, Limits, ProbePlan, RepetitionPlan, Role, StormKind};

/// The steps of one repetition of `case`.
pub fn steps(case: &str, plan: &RepetitionPlan, limits: &Limits) -> String {
    let mut out = format!("{case} [{}]\n", plan.name);
    let durations = &plan.durations;
    flows(&mut out, plan, limits);
    let mut number = 0;
    let mut step = |text: String| {
        number += 1;
        paragraph(&mut out, &format!("  {number:2}  "), &text);
    };
    step(format!("baseline: send all flows for {} without a storm, and wait for their frames", Span(durations.baseline)));
    let probe = plan.probe.as_ref().map(|probe| self::probe(probe, limits));
    if plan.probe_first {
        probe.iter().cloned().for_each(&mut step);
    }
    step(format!("storm: from the rx port send {}", storm(plan, limits)));
    step(format!("after {} start all flows; send for {}", Span(durations.lead), Span(durations.traffic)));
    step(format!("{} after the last frame stop the storm", Span(durations.tail)));
    step(format!("drain: wait for what the DUT holds, at most {}", Span(durations.drain_max)));
    if durations.resume > 0 {
        step(format!("resume: send all flows for {}, and wait for their frames", Span(durations.resume)));
    }
    if !plan.probe_first {
        probe.into_iter().for_each(&mut step);
    }
    out
}

/// One line for all flows that differ in nothing but priority and DSCP.
fn flows(out: &mut String, plan: &RepetitionPlan, limits: &Limits) {
    for role in [Role::Test, Role::Isolation, Role::Background] {
        let flows: Vec<&FlowPlan> = plan.flows.iter().filter(|flow| flow.role == role).collect();
        let Some(first) = flows.first() else { continue };
        let name = match role {
            Role::Test => "test traffic",
            Role::Isolation => "lossless traffic that is not stormed",
            Role::Background => "background traffic",
        };
        let rate: u64 = flows.iter().map(|flow| flow.rate).sum();
        let share = 100.0 * rate as f64 / limits.line_rate.bits_per_second() as f64;
        let flows_word = if flows.len() == 1 { "flow" } else { "flows" };
        let mut priorities: Vec<Priority> = flows.iter().map(|flow| flow.priority).collect();
        priorities.sort();
        priorities.dedup();
        let dscps: Vec<_> = flows.iter().map(|flow| flow.dscp.to_string()).collect();
        let marks = if flows.len() == 64 { "all 64".to_owned() } else { dscps.join(", ") };
        let tagged = if first.pcp.is_some() { ", tagged with its PCP" } else { "" };
        let text = format!(
            "{} {flows_word}, {:.3} Mbit/s in all ({share:.2} % of the line), {} octets a frame, priority {}, DSCP {marks}{tagged}",
            flows.len(),
            rate as f64 / 1e6,
            first.length,
            list(&priorities),
        );
        paragraph(out, &format!("      {name}: "), &text);
    }
}

fn storm(plan: &RepetitionPlan, limits: &Limits) -> String {
    let storm = &plan.storm;
    let what = match &storm.kind {
        StormKind::Pfc(priorities) => format!("PFC for priority {}", list(priorities)),
        StormKind::Pause => "802.3x PAUSE".to_owned(),
    };
    format!("{what}, {} quanta (a pause of {}), every {}", storm.quanta.0, Span(limits.pause_time(storm.quanta)), Span(storm.interval))
}

fn probe(probe: &ProbePlan, limits: &Limits) -> String {
    let xon = if probe.xon { ", then another that an XON ends" } else { "" };
    let priorities = list(&probe.priorities);
    let pause = Span(limits.pause_time(probe.quanta));
    format!(
        "probe: on running traffic send one XOFF for priority {priorities}, {} quanta (a pause of {pause}){xon}; the DUT has {} to respond",
        probe.quanta.0,
        Span(limits.max_response)
    )
}

fn list(priorities: &[Priority]) -> String {
    priorities.iter().map(Priority::to_string).collect::<Vec<_>>().join(", ")
}
