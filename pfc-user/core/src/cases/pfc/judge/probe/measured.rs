//! The traffic round the pause frames of a probe, and the conditions under which it tells how the
//! DUT reacted: only probes that meet them count.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Priority;

use crate::cases::pfc::probing::{self, two_frames, vicinity, wire_time};
use crate::evidence::pfc::{Arrival, Departure, PfcEvidence, ProbeReport};
use crate::plan::{Limits, Nanos, RepetitionPlan};
use crate::quantity::ms;

/// What was planned, the probes so far, and the arrivals that were logged.
#[derive(Clone, Copy)]
pub(in crate::cases::pfc) struct Measured<'e> {
    pub(in crate::cases::pfc) plan: &'e RepetitionPlan,
    pub(in crate::cases::pfc) limits: &'e Limits,
    pub(in crate::cases::pfc) probes: &'e [ProbeReport],
    pub(in crate::cases::pfc) records: &'e [Arrival],
}

/// Why a probe does not count.
#[derive(Debug, PartialEq)]
pub(super) enum NotCounted {
    /// The tester was too slow, or sent nothing: another probe may be measured better.
    Tester(String),
    /// Another probe would meet the same.
    Lasting(String),
    /// So would every attempt of the repetition: its plan or its limits are the reason.
    Planned(String),
}

impl NotCounted {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Tester(reason) | Self::Lasting(reason) | Self::Planned(reason) => reason,
        }
    }
}

/// Arrivals of the probe phase: of each priority that the probe pauses, and of all others.
pub(super) struct Traffic<'e> {
    pub(super) paused: Vec<(Priority, Vec<&'e Arrival>)>,
    pub(super) others: Vec<&'e Arrival>,
}

/// A pause as the DUT may have understood it, with a clock as slow or as fast as is allowed.
#[derive(Clone, Copy)]
pub(super) struct Pause {
    /// The latest time at which it is in force.
    pub(super) in_force: Nanos,
    /// The earliest time at which it may run out.
    pub(super) earliest: Nanos,
    /// The latest time at which it runs out.
    pub(super) latest: Nanos,
}

/// Enough probes count for each check, or more of them would not help.
pub(in crate::cases::pfc) fn enough(measured: &Measured) -> bool {
    let judges: [super::JudgeProbe; 2] = [super::response_of, super::xon_of];
    judges.into_iter().all(|judge| {
        let judge = |probe| judge(measured, probe, &measured.traffic(probe));
        let outcomes: Vec<_> = measured.probes.iter().map(judge).collect();
        let counted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        let hopeless = matches!(
            outcomes.last(),
            Some(Err(NotCounted::Lasting(_) | NotCounted::Planned(_)))
        );
        counted >= probing::ENOUGH || hopeless
    })
}

/// The arrivals after `from` and before `to`.
pub(super) fn within<'e>(arrivals: &[&'e Arrival], from: Nanos, to: Nanos) -> Vec<&'e Arrival> {
    arrivals
        .iter()
        .copied()
        .filter(|arrival| arrival.time > from && arrival.time < to)
        .collect()
}

impl<'e> Measured<'e> {
    /// Those of `e`.
    pub(in crate::cases::pfc) fn of(e: &'e PfcEvidence) -> Self {
        Self {
            plan: &e.plan,
            limits: &e.limits,
            probes: &e.probes,
            records: &e.arrivals.records,
        }
    }

    /// The arrivals of the probe phase.
    pub(super) fn traffic(&self, probe: &ProbeReport) -> Traffic<'e> {
        let flows = &self.plan.flows;
        let in_use = |priority: &&Priority| flows.iter().any(|flow| flow.priority == **priority);
        let mut traffic = Traffic {
            paused: probe
                .priorities
                .iter()
                .filter(in_use)
                .map(|priority| (*priority, Vec::new()))
                .collect(),
            others: Vec::new(),
        };
        let probed = self.records.iter();
        for arrival in probed.filter(|arrival| arrival.phase == Phase::Probe) {
            let Some(flow) = flows.iter().find(|flow| flow.id == arrival.flow) else {
                continue;
            };
            let mut paused = traffic.paused.iter_mut();
            match paused.find(|(priority, _)| *priority == flow.priority) {
                Some((_, arrivals)) => arrivals.push(arrival),
                None => traffic.others.push(arrival),
            }
        }
        traffic
    }

    /// The pause frame that left before `frame`.
    fn earlier(&self, frame: Departure) -> Option<Departure> {
        let frames = self.probes.iter().flat_map(|probe| {
            let pair = probe.xon.into_iter().flat_map(|(xoff, xon)| [xoff, xon]);
            [probe.xoff].into_iter().chain(pair)
        });
        let before = frames.filter(|other| other.before < frame.before);
        before.max_by_key(|other| other.before)
    }

    /// True if arrivals of every flow were logged.
    pub(super) fn logs_all(&self) -> bool {
        let is_logged = |id| {
            let mut records = self.records.iter();
            records.any(|arrival| arrival.flow == id && arrival.phase == Phase::Probe)
        };
        self.plan.flows.iter().all(|flow| is_logged(flow.id))
    }

    /// Time around a pause frame in which traffic is judged.
    pub(super) fn vicinity(&self) -> Nanos {
        vicinity(self.plan, self.limits)
    }

    /// Time from XON or the end of a pause to the first frame.
    pub(super) fn allowed(&self) -> Nanos {
        self.limits.max_response + two_frames(self.plan, self.limits)
    }

    /// The pause that `frame` asks for.
    pub(super) fn pause(&self, probe: &ProbeReport, frame: Departure) -> Pause {
        let time = self.limits.pause_time(probe.quanta);
        let tolerance = self.limits.pause_tolerance(probe.quanta);
        Pause {
            in_force: frame.after + self.limits.max_response,
            earliest: frame.before + time.saturating_sub(tolerance),
            latest: frame.after + time + tolerance,
        }
    }

    /// The reason of a pause that ended before it could be judged: it is shorter than the `needed`
    /// time, as even the longest is at high speeds; or a pause frame left late.
    pub(super) fn too_short(&self, probe: &ProbeReport, needed: Nanos) -> NotCounted {
        let pause = self.limits.pause_time(probe.quanta);
        if needed + self.limits.pause_tolerance(probe.quanta) < pause {
            return NotCounted::Tester(format!(
                "pause frames of the probe left so late that nothing of its {} could be judged",
                ms(pause)
            ));
        }
        NotCounted::Planned(format!(
            "a pause of {} is too short to be told from none by a max_response of {}; set \
             limits.max_response to what the DUT needs",
            ms(pause),
            ms(self.limits.max_response)
        ))
    }

    /// The measurement was quick enough round the XOFF `frame`, and all priorities were flowing.
    pub(super) fn quick_round_xoff(
        &self,
        traffic: &Traffic,
        frame: Departure,
    ) -> Result<(), NotCounted> {
        let from = frame.before.saturating_sub(self.vicinity());
        let paused = traffic.paused.iter();
        let mut still = paused.filter(|(_, all)| within(all, from, frame.before).is_empty());
        if let Some((priority, arrivals)) = still.next() {
            return Err(not_flowing(*priority, arrivals, frame, self.earlier(frame)));
        }
        let to = frame.after + self.vicinity();
        self.quick(traffic, from, to, "round the pause frame")?;
        let (uncertainty, limit) = (frame.after - frame.before, self.limits.max_response / 2);
        if uncertainty >= limit {
            return Err(NotCounted::Tester(format!(
                "the pause frame's departure is uncertain by {}, has to be below {}",
                ms(uncertainty),
                ms(limit)
            )));
        }
        Ok(())
    }

    /// The measurement was quick enough round the end of a pause: until the first of the priorities
    /// that it held back goes on. From then on the DUT's scheduler decides who waits.
    pub(super) fn quick_round_end(
        &self,
        traffic: &Traffic,
        end: Nanos,
        latest: Nanos,
        place: &str,
    ) -> Result<(), NotCounted> {
        let again = traffic.paused.iter().flat_map(|(_, arrivals)| arrivals);
        let first = again
            .map(|arrival| arrival.time)
            .filter(|time| *time >= end)
            .min();
        let until = latest + self.vicinity();
        let to = first.map_or(until, |first| first.min(until));
        self.quick(traffic, end.saturating_sub(self.vicinity()), to, place)
    }

    /// Traffic that is not paused got through quickly enough between these times: it shows the
    /// latency of all else.
    pub(super) fn quick(
        &self,
        traffic: &Traffic,
        from: Nanos,
        to: Nanos,
        place: &str,
    ) -> Result<(), NotCounted> {
        let limit = self.limits.max_response / 2;
        let heard = within(&traffic.others, from, to).into_iter();
        match heard.map(|arrival| Nanos::from(arrival.latency)).max() {
            Some(worst) if worst < limit => Ok(()),
            Some(worst) => Err(NotCounted::Tester(format!(
                "background latency {place} was {}, has to be below {}",
                ms(worst),
                ms(limit)
            ))),
            None => Err(unheard(place)),
        }
    }

    /// The time from `end`, at which `priority` may go on at the latest, to its frame at `again`,
    /// without the last time before that frame in which the link was filled back to back with
    /// frames of others.
    ///
    /// That is the scheduler's right (IEEE 802.1Q clause 8.6.8). As frames are not seen just when
    /// they come, a quarter of `max_response` may be missing; it is not taken for filled.
    pub(super) fn counted(&self, priority: Priority, end: Nanos, again: Nanos) -> Nanos {
        let flow = |id| self.plan.flows.iter().find(move |flow| flow.id == id);
        let wire = |arrival: &Arrival| {
            flow(arrival.flow).map_or(0, |flow| wire_time(flow.length, self.limits))
        };
        let of_others = self.records.iter().filter(|arrival| {
            (end..=again).contains(&arrival.time)
                && flow(arrival.flow).is_some_and(|flow| flow.priority != priority)
        });
        let own = self
            .plan
            .flows
            .iter()
            .filter(|flow| flow.priority == priority);
        let own = own.map(|flow| wire_time(flow.length, self.limits));
        let slack = self.limits.max_response / 4 + own.max().unwrap_or(0);
        let (mut busy, mut filled) = (0, 0);
        for arrival in of_others.rev() {
            let time = wire(arrival);
            busy += time;
            if again.saturating_sub(arrival.time) + time <= busy + slack {
                filled = busy;
            }
        }
        again.saturating_sub(end).saturating_sub(filled)
    }

    /// The least time after `end` at which the first frame of `priority` would be too late: more
    /// than is allowed where others fill the link.
    fn least_late(&self, priority: Priority, end: Nanos) -> Nanos {
        let allowed = self.allowed();
        let mut late = allowed + 1;
        loop {
            let counted = self.counted(priority, end, end + late);
            if counted > allowed {
                return late;
            }
            late += allowed + 1 - counted;
        }
    }

    /// The same of the probe for which it is longest: after the quanta of its XOFF, and after its
    /// XON; `None` where there was none.
    pub(in crate::cases::pfc) fn least_late_of_all(&self) -> [Option<Nanos>; 2] {
        let longest = |end: &dyn Fn(&ProbeReport) -> Option<Nanos>| {
            let ends = self
                .probes
                .iter()
                .filter_map(|probe| Some((probe, end(probe)?)));
            let late = ends.flat_map(|(probe, end)| {
                let priorities = probe.priorities.iter();
                priorities.map(move |priority| self.least_late(*priority, end))
            });
            late.max()
        };
        [
            longest(&|probe| Some(self.pause(probe, probe.xoff).latest)),
            longest(&|probe| probe.xon.map(|(_, xon)| xon.after)),
        ]
    }
}

/// Traffic that is not paused arrived between these times.
pub(super) fn heard(
    traffic: &Traffic,
    from: Nanos,
    to: Nanos,
    place: &str,
) -> Result<(), NotCounted> {
    if within(&traffic.others, from, to).is_empty() {
        Err(unheard(place))
    } else {
        Ok(())
    }
}

fn unheard(place: &str) -> NotCounted {
    NotCounted::Tester(format!("no background frame arrived {place}"))
}

/// A priority of which no frame came just before the pause frame: a pause that lasts, or nothing of
/// it flows at all.
fn not_flowing(
    priority: Priority,
    arrivals: &[&Arrival],
    frame: Departure,
    earlier: Option<Departure>,
) -> NotCounted {
    let what = format!(
        "no frame of priority {priority} arrived just before the pause frame, so that its end \
         could not be seen"
    );
    let before = |time: Nanos| ms(frame.before.saturating_sub(time));
    let last = arrivals.iter().map(|arrival| arrival.time);
    let last = last.filter(|time| *time < frame.before).max();
    NotCounted::Lasting(match (last, earlier) {
        (Some(last), Some(earlier)) => format!(
            "{what}: the last one came {} before it, and the pause frame before that left {} \
             before it: its pause lasts",
            before(last),
            before(earlier.before)
        ),
        (Some(last), None) => format!("{what}: the last one came {} before it", before(last)),
        (None, _) => what,
    })
}
