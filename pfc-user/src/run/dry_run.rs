//! `--dry-run`: what would be done, step by step.

use std::io::{self, Write};

use ib_mad::mad::MKey;
use pfc_ebpf::units::{LineRate, Quanta};
use serde_json::json;
use validator_core::cases::mad;
use validator_core::cases::pfc::feasibility::{frames_too_long, pauses_too_short};
use validator_core::cases::{PfcTask, Task};
use validator_core::evidence;
use validator_core::pacing::workers;
use validator_core::plan::form::Form;
use validator_core::plan::rc::RcPlan;
use validator_core::plan::{
    Limits, Nanos, ProbeBurst, ProbeFrame, ProbePlan, RepetitionPlan, StormKind, StormPlan,
};
use validator_core::quantity::Span;

use super::planning::{Planned, UP, hooks_around, hooks_around_run};
use crate::config::Config;
use crate::live;
use crate::live::pfc::hooks::Planned as Hook;
use crate::report::fixed_set;
use crate::report::flows::{self, priorities};
use crate::report::layout::paragraph;

/// The testbed and the plan of the steps that follow.
pub fn heading(testbed: &evidence::Testbed, plan: &str, line_rate: Option<LineRate>) -> String {
    let mut out = String::new();
    let at = line_rate.map_or(String::new(), |rate| format!(" at {rate}"));
    let text = format!(
        "Dry run of plan {plan} on testbed {} ({}){at}; nothing is sent.",
        testbed.name, testbed.dut
    );
    paragraph(&mut out, "", &text);
    out
}

/// The repetitions of the plan that the DUT's fixed lossless set does not allow, if any.
pub fn not_done(planned: &[Planned]) -> String {
    let cases = planned.iter();
    let fixed = fixed_set::of(cases.map(|case| (case.case.id, case.fixed.as_ref())));
    let mut out = String::new();
    if let Some(sentence) = fixed.and_then(|set| set.sentence()) {
        paragraph(&mut out, "not done   ", &sentence);
    }
    out
}

/// The steps of one repetition.
///
/// # Panics
/// If the testbed has no table for the case. Planning leaves such repetitions out.
pub fn steps(config: &Config, task: &Task) -> String {
    let testbed = &config.testbed;
    match task {
        Task::Pfc(case, PfcTask { plan, limits }) => {
            pfc(case.case.id, plan, limits) + &hooks(&hooks_around(config, task))
        }
        Task::Mad(_, plan) => {
            let way = live::mad::way(testbed.mad.as_ref().expect(UP));
            let key = MKey(plan.m_key_current);
            let way = format!("by {way}, {}, with M_Key {key}", plan.route);
            let changes = mad::changes(plan).map(|changes| ("changed meanwhile", changes));
            by_document(task, [("to the DUT", way)].into_iter().chain(changes))
        }
        Task::Rc(_, plan) => {
            let testbed = testbed.rc.as_ref().expect(UP);
            let dut = live::rc::way(testbed);
            let dut = format!("{dut}; it sends to {}", testbed.address);
            let requests = format!(
                "{} READ requests of {} octets, each after T_tr = {}",
                plan.requests(),
                plan.path_mtu,
                Span(RcPlan::transport_timer(plan.timeout))
            );
            by_document(task, [("the DUT", dut), ("expected", requests)])
        }
    }
}

/// Hooks in the order in which they are called, with their variables.
pub fn hooks(planned: &[Hook]) -> String {
    let mut out = String::new();
    for Hook {
        hook,
        command,
        variables,
    } in planned
    {
        paragraph(&mut out, &format!("      hook {hook}: "), command);
        let variables = variables
            .iter()
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect::<Vec<_>>();
        paragraph(&mut out, "        with ", &variables.join(" "));
    }
    out
}

/// The plan of every repetition for programs, as evidence has it.
pub fn json(
    out: &mut impl Write,
    config: &Config,
    line_rate: Option<LineRate>,
    planned: &[Planned],
) -> io::Result<()> {
    let repetition = |task: &Task| match task {
        Task::Pfc(_, PfcTask { plan, .. }) => json!(plan),
        Task::Mad(_, plan) => json!(plan),
        Task::Rc(_, plan) => json!(plan),
    };
    let case = |planned: &Planned| {
        let tasks = planned.repetitions.iter();
        let hooks = tasks.clone().flat_map(|task| hooks_around(config, task));
        json!({
            "case": planned.case.id,
            "repetitions": tasks.map(repetition).collect::<Vec<_>>(),
            "omitted": planned.omitted,
            "fixed_set": planned.fixed,
            "hooks": hooks.collect::<Vec<_>>(),
        })
    };
    let testbed = config.testbed.record();
    let document = json!({
        "plan": config.plan.name,
        "hooks": hooks_around_run(config),
        "testbed": testbed.name,
        "dut": testbed.dut,
        "line_rate": line_rate.map(LineRate::bits_per_second),
        "cases": planned.iter().map(case).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// The steps of one repetition that does what its document says, after these lines.
fn by_document<'l>(task: &Task, lines: impl IntoIterator<Item = (&'l str, String)>) -> String {
    let mut out = format!("{} [{}]\n", task.case().id, task.name());
    for (name, text) in lines {
        paragraph(&mut out, &format!("      {name}: "), &text);
    }
    for step in task.case().steps {
        paragraph(&mut out, "      ", &step.to_string());
    }
    out
}

/// The steps of one repetition of the PFC case `case`.
pub fn pfc(case: &str, plan: &RepetitionPlan, limits: &Limits) -> String {
    let mut out = format!("{case} [{}]\n", plan.name);
    let durations = &plan.durations;
    for (name, text) in flows::by_role(plan, limits.line_rate) {
        paragraph(&mut out, &format!("      {name}: "), &text);
    }
    let cpus = workers::wanted(&workers::rates(&plan.flows));
    if cpus > 1 {
        let text =
            format!("{cpus} CPUs, each with a transmit queue of its own, and one for the rest");
        paragraph(&mut out, "      live frames want: ", &text);
    }
    let too_short = pauses_too_short(limits.line_rate, limits.max_response);
    for found in too_short.into_iter().chain(frames_too_long(limits, plan)) {
        let text = format!("{}; {}", found.reason, found.remedy);
        paragraph(&mut out, "      no single pause can be judged: ", &text);
    }
    let mut number = 0;
    let mut step = |text: String| {
        number += 1;
        paragraph(&mut out, &format!("  {number:2}  "), &text);
    };
    let load = match plan.baseline_load {
        100 => String::new(),
        load => format!(" at {load} % of their rates"),
    };
    step(format!(
        "baseline: send all flows{load} for {} without a storm, and wait for their frames",
        Span(durations.baseline)
    ));
    let probe = plan.probe.as_ref().map(|probe| self::probe(probe, limits));
    if plan.probe_first {
        probe.iter().cloned().for_each(&mut step);
    }
    if let Some(storm) = &plan.storm {
        let storm = self::storm(storm, limits);
        step(format!("storm: from the rx port send {storm}"));
        step(format!(
            "after {} start all flows; send for {}",
            Span(durations.lead),
            Span(durations.traffic)
        ));
        step(format!(
            "{} after the last frame stop the storm",
            Span(durations.tail)
        ));
    } else if durations.traffic > 0 {
        let traffic = Span(durations.traffic);
        step(format!("traffic: send all flows for {traffic}"));
    }
    if durations.traffic > 0 {
        step(format!(
            "drain: wait for what the DUT holds, at most {}",
            Span(durations.drain_max)
        ));
    }
    if durations.resume > 0 {
        step(format!(
            "resume: send all flows{load} for {}, and wait for their frames",
            Span(durations.resume)
        ));
    }
    if !plan.probe_first {
        probe.into_iter().for_each(&mut step);
    }
    out
}

fn storm(storm: &StormPlan, limits: &Limits) -> String {
    let times = if storm.asks() {
        "all eight times"
    } else {
        "eight times of 0"
    };
    let what = match &storm.kind {
        StormKind::Pfc(stormed) => format!("PFC for {}", priorities(stormed.iter().copied())),
        StormKind::Vector(named) if named.is_empty() => {
            format!("PFC with {times} and no bit in its vector")
        }
        StormKind::Vector(named) => format!(
            "PFC with {times} and in its vector the bits of {}",
            priorities(named.iter().copied())
        ),
        StormKind::Pause => "802.3x PAUSE".to_owned(),
    };
    let every = about(storm.interval);
    if !storm.asks() {
        return format!("{what} every {every}, each an XON");
    }
    format!(
        "{what} every {every}, {} quanta each (a pause of {})",
        storm.quanta.0,
        about(limits.pause_time(storm.quanta))
    )
}

fn probe(probe: &ProbePlan, limits: &Limits) -> String {
    let bursts = probe.bursts.iter();
    let bursts: Vec<String> = bursts.map(|burst| self::burst(burst, limits)).collect();
    format!(
        "probe: on running traffic single PFC frames for {}; the DUT has {} to respond: {}",
        priorities(probe.priorities.iter().copied()),
        Span(limits.max_response),
        bursts.join("; ")
    )
}

/// The pause frames of a burst with what each says.
fn burst(burst: &ProbeBurst, limits: &Limits) -> String {
    let time = |quanta: Quanta| format!("{} ({})", quanta.0, about(limits.pause_time(quanta)));
    let frames = burst.frames.iter().map(|ProbeFrame { after, frame }| {
        let times = if frame.classes.is_empty() {
            // No class is to read its times.
            let mut different = frame.times.to_vec();
            different.dedup();
            let times = different.into_iter().map(time).collect::<Vec<_>>();
            format!("vector 0, all times {}", times.join(", "))
        } else {
            let classes = frame.classes.iter();
            let times = classes.map(|class| match frame.times[class.index()] {
                Quanta::ZERO => format!("{class}: XON"),
                quanta => format!("{class}: {}", time(quanta)),
            });
            times.collect::<Vec<_>>().join(", ")
        };
        let times = match frame.form {
            Form::Standard => times,
            form => format!("{}, {times}", form.words()),
        };
        match after {
            0 => times,
            after => format!("after {} {times}", about(*after)),
        }
    });
    let frames = frames.collect::<Vec<_>>().join(", ");
    format!("at {} % of the rates {frames}", burst.load)
}

/// As much of a time as a reader wants: to the microsecond, from a millisecond on.
fn about(time: Nanos) -> Span {
    Span(if time < 1_000_000 {
        time
    } else {
        (time + 500) / 1000 * 1000
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_where_a_reader_does_not_care() {
        assert_eq!(
            [33_553_920, 1_000_000, 83_884].map(|time| about(time).to_string()),
            ["33.554ms", "1ms", "83.884us"]
        );
    }
}
