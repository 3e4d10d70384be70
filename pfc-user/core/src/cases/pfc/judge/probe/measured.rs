//! The traffic round the pause frames of a probe, and the conditions under which it tells how the
//! DUT reacted: only probes that meet them count.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Nanos, Priority};

use crate::cases::pfc::probing::{FULL, two_frames, vicinity, wire_time};
use crate::cases::value::{Value, time};
use crate::evidence::pfc::{Arrival, Departure, PfcEvidence, ProbeReport};
use crate::plan::{FlowPlan, Limits, ProbeBurst, RepetitionPlan};

/// The plan and its limits, the probes so far, and the arrivals that were logged.
#[derive(Clone, Copy)]
pub(in crate::cases::pfc) struct Measured<'e> {
    pub(in crate::cases::pfc) plan: &'e RepetitionPlan,
    pub(in crate::cases::pfc) limits: &'e Limits,
    pub(in crate::cases::pfc) probes: &'e [ProbeReport],
    /// Arrivals in the order of their times.
    pub(in crate::cases::pfc) records: &'e [Arrival],
    /// No record is missing: the link was idle where none tells of a frame.
    pub(in crate::cases::pfc) whole: bool,
}

/// Why a probe does not count.
#[derive(Debug, PartialEq)]
pub(super) enum NotCounted {
    /// The tester was too slow, or sent nothing: another probe may be measured better.
    Tester(Value),
    /// Another probe would not count either.
    Lasting(Value),
    /// No attempt of the repetition would count: its plan or its limits are the reason.
    Planned(Value),
}

impl NotCounted {
    pub(super) fn reason(&self) -> &Value {
        match self {
            Self::Tester(reason) | Self::Lasting(reason) | Self::Planned(reason) => reason,
        }
    }
}

/// A probe with the arrivals of the probe phase: of each priority that the plan's probes pause, and
/// of those that no frame of this one pauses. Where it names all, those are the lossy ones, which go
/// on.
pub(super) struct Traffic<'e> {
    pub(super) measured: Measured<'e>,
    pub(super) probe: &'e ProbeReport,
    pub(super) paused: Vec<(Priority, Vec<&'e Arrival>)>,
    pub(super) others: Vec<&'e Arrival>,
}

/// A pause as the DUT may have understood it, with a clock as slow or as fast as is allowed.
#[derive(Clone, Copy)]
pub(in crate::cases::pfc) struct Pause {
    /// The frame with which it begins.
    pub(super) xoff: Departure,
    /// The latest time at which it is in force.
    pub(super) in_force: Nanos,
    /// The earliest time at which it may end.
    pub(super) earliest: Nanos,
    /// The latest time at which it ends.
    pub(super) latest: Nanos,
    /// How long it lasts by the frames.
    pub(in crate::cases::pfc) lasts: Nanos,
    /// Time by which its end may be off.
    pub(in crate::cases::pfc) tolerance: Nanos,
    /// True: an XON ends it.
    pub(in crate::cases::pfc) by_xon: bool,
}

/// The arrivals after `from` and before `to`.
pub(super) fn within<'e>(arrivals: &[&'e Arrival], from: Nanos, to: Nanos) -> Vec<&'e Arrival> {
    let begin = arrivals.partition_point(|arrival| arrival.time <= from);
    let end = arrivals.partition_point(|arrival| arrival.time < to);
    arrivals.get(begin..end).unwrap_or_default().to_vec()
}

impl<'e> Measured<'e> {
    /// Takes the measurements from `e`.
    pub(in crate::cases::pfc) fn of(e: &'e PfcEvidence) -> Self {
        Self {
            plan: &e.plan,
            limits: &e.limits,
            probes: &e.probes,
            records: &e.arrivals.records,
            whole: e.arrivals.lost == 0,
        }
    }

    pub(super) fn flow(&self, id: u16) -> Option<&'e FlowPlan> {
        self.plan.flows.iter().find(|flow| flow.id == id)
    }

    /// The traffic round the frames of `probe`.
    pub(super) fn traffic(&self, probe: &'e ProbeReport) -> Traffic<'e> {
        let in_use = |priority: &&Priority| {
            let mut flows = self.plan.flows.iter();
            flows.any(|flow| flow.priority == **priority)
        };
        let paused = self.plan.probed().iter();
        let mut traffic = Traffic {
            measured: *self,
            probe,
            paused: paused
                .filter(in_use)
                .map(|priority| (*priority, Vec::new()))
                .collect(),
            others: Vec::new(),
        };
        let is_probed = |priority| traffic.paused.iter().any(|(probed, _)| *probed == priority);
        let mut flows = self.plan.flows.iter();
        let names_all = flows.all(|flow| is_probed(flow.priority) || probe.pauses(flow.priority));
        let around = self.recorded(self.since(probe), self.until(probe)).iter();
        for arrival in around.filter(|arrival| arrival.phase == Phase::Probe) {
            let Some(flow) = self.flow(arrival.flow) else {
                continue;
            };
            let mut paused = traffic.paused.iter_mut();
            match paused.find(|(priority, _)| *priority == flow.priority) {
                Some((_, arrivals)) => arrivals.push(arrival),
                None if probe.pauses(flow.priority) && !names_all => {}
                None => traffic.others.push(arrival),
            }
        }
        traffic
    }

    /// Arrivals in a phase of one priority.
    pub(in crate::cases::pfc) fn arrivals_of(
        &self,
        phase: Phase,
        priority: Priority,
    ) -> Vec<&'e Arrival> {
        let records = self.records.iter();
        records
            .filter(|arrival| self.is_of(arrival, phase, priority))
            .collect()
    }

    /// True if `arrival` is one of `priority` in `phase`.
    pub(super) fn is_of(&self, arrival: &Arrival, phase: Phase, priority: Priority) -> bool {
        let flow = self.flow(arrival.flow);
        arrival.phase == phase && flow.is_some_and(|flow| flow.priority == priority)
    }

    /// Arrivals from `from` on and before `to`.
    pub(super) fn recorded(&self, from: Nanos, to: Nanos) -> &'e [Arrival] {
        let place = |time| self.records.partition_point(|arrival| arrival.time < time);
        self.records.get(place(from)..place(to)).unwrap_or_default()
    }

    /// The pause frame that left before `frame`.
    fn earlier(&self, frame: Departure) -> Option<Departure> {
        let frames = self.probes.iter().flat_map(|probe| &probe.left);
        let before = frames.filter(|other| other.before < frame.before);
        before.copied().max_by_key(|other| other.before)
    }

    /// The first frame of the probe before `probe`: no earlier arrival says anything of this one.
    fn since(&self, probe: &ProbeReport) -> Nanos {
        let others = self.probes.iter().map(ProbeReport::begin);
        others
            .filter(|other| *other < probe.begin())
            .max()
            .unwrap_or(0)
    }

    /// The time until which nothing but `probe` pauses anything: the next one's first frame.
    pub(super) fn until(&self, probe: &ProbeReport) -> Nanos {
        let first = |probe: &ProbeReport| probe.left.first().map(|left| left.before);
        let others = self.probes.iter().filter_map(first);
        let next = others.filter(|other| Some(*other) > first(probe));
        next.min().unwrap_or(Nanos::MAX)
    }

    /// True if arrivals of every flow of `burst` were logged.
    pub(super) fn logs_all(&self, burst: &ProbeBurst) -> bool {
        let logged = |flow| self.plan.logged(flow, burst.load).contains(&Phase::Probe);
        self.plan.flows.iter().all(logged)
    }

    /// Time around a pause frame in which traffic is judged.
    pub(super) fn vicinity(&self) -> Nanos {
        vicinity(self.plan, self.limits)
    }

    /// Time from XON or the end of a pause to the first frame.
    pub(in crate::cases::pfc) fn allowed(&self) -> Nanos {
        self.limits.max_response + two_frames(self.plan, self.limits)
    }

    /// The pause of `priority` that the frames of `probe` ask for; `None` where they ask for none.
    /// A later time replaces an earlier one.
    pub(super) fn pause(&self, probe: &ProbeReport, priority: Priority) -> Option<Pause> {
        let frames = probe.burst.frames.iter().zip(&probe.left);
        let mut named = frames.filter_map(|(one, left)| Some((one.frame.time(priority)?, *left)));
        let (first, xoff) = named.next()?;
        let (time, last) = named.next_back().unwrap_or((first, xoff));
        let lasts = self.limits.pause_time(time);
        let by_xon = lasts == 0;
        let tolerance = if by_xon {
            0
        } else {
            self.limits.pause_tolerance(time)
        };
        let end = last.before + lasts;
        (first.0 > 0).then_some(Pause {
            xoff,
            in_force: xoff.after + self.limits.max_response,
            earliest: end.saturating_sub(tolerance),
            latest: last.after + lasts + tolerance,
            lasts: end.saturating_sub(xoff.before),
            tolerance,
            by_xon,
        })
    }

    /// An error where a frame of `probe` that names `priority` left so late that the pause of the
    /// frame before it may have ended by then: what came through in between is no fault.
    pub(super) fn unbroken(
        &self,
        probe: &ProbeReport,
        priority: Priority,
    ) -> Result<(), NotCounted> {
        let frames = probe.burst.frames.iter().zip(&probe.left);
        let named = frames.filter_map(|(one, left)| Some((one, left, one.frame.time(priority)?)));
        let named: Vec<_> = named.collect();
        for pair in named.windows(2) {
            let ((first, before, time), (next, after, _)) = (pair[0], pair[1]);
            let lasts = self.limits.pause_time(time);
            let lasts = lasts.saturating_sub(self.limits.pause_tolerance(time));
            let response = self.limits.max_response;
            let planned = next.after.saturating_sub(first.after);
            if planned.saturating_add(response) >= lasts {
                return Err(self.too_short(lasts, lasts));
            }
            if after.after.saturating_add(response) >= before.before.saturating_add(lasts) {
                return Err(NotCounted::Tester(
                    "a later pause frame of the probe left so late that the pause before it may \
                     have ended"
                        .into(),
                ));
            }
        }
        Ok(())
    }

    /// All pauses that the probes so far asked for.
    pub(in crate::cases::pfc) fn pauses(&self) -> Vec<(Priority, Pause)> {
        let of_probe = |probe| {
            let paused = self.plan.probed().iter();
            paused.filter_map(move |priority| Some((*priority, self.pause(probe, *priority)?)))
        };
        self.probes.iter().flat_map(of_probe).collect()
    }

    /// The reason of a pause that ended before it could be judged: it is shorter than the `needed`
    /// time, as even the longest is at high speeds; or a pause frame left late.
    pub(super) fn too_short(&self, lasts: Nanos, needed: Nanos) -> NotCounted {
        if needed < lasts {
            let late = "pause frames of the probe left so late that nothing of its " + time(lasts);
            return NotCounted::Tester(late + " could be judged");
        }
        let pause = "a pause of " + time(lasts) + " is too short to be told from none by ";
        let limit = "a max_response of " + time(self.limits.max_response);
        let advice = "; set limits.max_response to what the DUT needs";
        NotCounted::Planned(pause + limit + advice)
    }

    /// The time from `end`, at which `priority` may go on at the latest, to its frame at `again`,
    /// without the last time before that frame in which the link was filled back to back with
    /// frames of others.
    ///
    /// That is the scheduler's right (IEEE 802.1Q clause 8.6.8). As frames are not seen just when
    /// they come, a quarter of `max_response` may be missing; it is not taken for filled.
    pub(in crate::cases::pfc) fn counted(
        &self,
        priority: Priority,
        end: Nanos,
        again: Nanos,
    ) -> Nanos {
        let flows = self.plan.flows.iter();
        let own = flows.filter(|flow| flow.priority == priority);
        let own = own.map(|flow| wire_time(flow.length, self.limits));
        let slack = self.limits.max_response / 4 + own.max().unwrap_or(0);
        let (mut busy, mut filled) = (0, 0);
        for arrival in self.recorded(end, again + 1).iter().rev() {
            let flow = self.flow(arrival.flow);
            let Some(flow) = flow.filter(|flow| flow.priority != priority) else {
                continue;
            };
            let time = wire_time(flow.length, self.limits);
            busy += time;
            if again.saturating_sub(arrival.time) + time <= busy + slack {
                filled = busy;
            }
        }
        again.saturating_sub(end).saturating_sub(filled)
    }

    /// The longest time for which a frame of `priority` among `arrivals` had to wait from `from`
    /// on, and when: neither for others that filled the link, nor for the one before it, nor for
    /// the tester to send it.
    pub(in crate::cases::pfc) fn longest_wait(
        &self,
        priority: Priority,
        arrivals: &[&Arrival],
        from: Nanos,
    ) -> Option<Wait> {
        self.longest_above(None, priority, arrivals, from, |_| true)
    }

    /// The longest of such waits that are longer than `least`, where given, and begin at a time
    /// that `is_meant`.
    pub(super) fn longest_above(
        &self,
        least: Option<Nanos>,
        priority: Priority,
        arrivals: &[&Arrival],
        from: Nanos,
        is_meant: impl Fn(Nanos) -> bool,
    ) -> Option<Wait> {
        let mut ready = from;
        let mut longest: Option<Wait> = None;
        for arrival in arrivals {
            let (since, until) = (since(ready, arrival), arrival.time);
            ready = until;
            // No wait is counted for longer than it was.
            let most = longest.map(|longest| longest.counted).or(least);
            if most.is_some_and(|most| until - since <= most) {
                continue;
            }
            let wait = self.wait(priority, since, arrival);
            if most.is_none_or(|most| wait.counted > most) && is_meant(since) {
                longest = Some(wait);
            }
        }
        longest
    }

    /// The wait of a frame that could have left from `ready` on.
    pub(in crate::cases::pfc) fn wait(
        &self,
        priority: Priority,
        ready: Nanos,
        arrival: &Arrival,
    ) -> Wait {
        let (since, until) = (since(ready, arrival), arrival.time);
        Wait {
            since,
            until,
            counted: self.counted(priority, since, until),
        }
    }

    /// Drain of the frames that the DUT held until `priority` could go on at `end`, and that came
    /// after `first`: those that were in it by then for certain. The link may be idle for that
    /// share of the time.
    pub(in crate::cases::pfc) fn drain(
        &self,
        arrivals: &[&Arrival],
        (end, first): (Nanos, Nanos),
        idle: f64,
    ) -> Drain {
        let held = |arrival: &&&Arrival| {
            let sent = arrival.time.saturating_sub(Nanos::from(arrival.latency));
            sent + self.limits.max_response <= end
        };
        // The first that came later ends them: a copy of a frame from before may come at any time.
        let held = arrivals.iter().take_while(held);
        let last = held.last().map_or(first, |arrival| arrival.time.max(first));
        let between = self.recorded(first + 1, last + 1).iter();
        let flows = between.filter_map(|arrival| self.flow(arrival.flow));
        let filled: Nanos = flows.map(|flow| wire_time(flow.length, self.limits)).sum();
        let took = last - first;
        Drain {
            last,
            took,
            idle: took.saturating_sub(filled),
            allowed: self.allowed() + (took as f64 * idle) as Nanos,
        }
    }

    /// When the pause of `priority` runs out whose XON the DUT does not obey, at the earliest.
    pub(super) fn without_xon(&self, probe: &ProbeReport, priority: Priority) -> Nanos {
        let frames = probe.burst.frames.iter().zip(&probe.left);
        let ends = frames.filter_map(|(one, left)| {
            let time = one.frame.time(priority).filter(|time| time.0 > 0)?;
            let tolerance = self.limits.pause_tolerance(time);
            Some(left.before + self.limits.pause_time(time).saturating_sub(tolerance))
        });
        ends.max().unwrap_or(0)
    }

    /// The least time after `end` at which the first frame of `priority` would be too late: more
    /// than is allowed where others fill the link.
    pub(in crate::cases::pfc) fn least_late(&self, priority: Priority, end: Nanos) -> Nanos {
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

    /// Returns the longest `least_late` among the probes: after the quanta of an XOFF, and after an
    /// XON; `None` where there was none.
    pub(in crate::cases::pfc) fn least_late_of_all(&self) -> [Option<Nanos>; 2] {
        let longest = |by_xon| {
            let ends = self.pauses().into_iter();
            let ends = ends.filter(|(_, pause)| pause.by_xon == by_xon);
            let late = ends.map(|(priority, pause)| self.least_late(priority, pause.latest));
            late.max()
        };
        [longest(false), longest(true)]
    }
}

impl Traffic<'_> {
    /// The pause of `priority` that the probe's frames ask for.
    pub(super) fn pause(&self, priority: Priority) -> Option<Pause> {
        self.measured.pause(self.probe, priority)
    }

    /// The measurement was quick enough round `xoff`, the first pause of the probe, but not beyond
    /// the `end` of its pause, and all priorities that the plan's probes pause were flowing.
    pub(super) fn quick_round_xoff(&self, xoff: Departure, end: Nanos) -> Result<(), NotCounted> {
        let measured = &self.measured;
        let from = xoff.before.saturating_sub(measured.vicinity());
        // What a pause held leaves when it ends, and others may have to wait for it.
        let to = end.min(xoff.after + measured.vicinity());
        if self.probe.burst.load < FULL {
            self.quick(from, to, "round the pause frame")?;
        } else {
            self.quick_though_full(xoff, from, to)?;
        }
        let mut paused = self.paused.iter();
        let still = paused.find(|(_, all)| within(all, from, xoff.before).is_empty());
        if let Some((priority, _)) = still {
            let earlier = measured.earlier(xoff);
            let arrivals = measured.arrivals_of(Phase::Probe, *priority);
            return Err(not_flowing(*priority, &arrivals, xoff, earlier));
        }
        self.certain(xoff)
    }

    /// It is known well enough when `frame` left.
    pub(super) fn certain(&self, frame: Departure) -> Result<(), NotCounted> {
        let uncertainty = frame.after.saturating_sub(frame.before);
        let limit = self.measured.limits.max_response / 2;
        if uncertainty >= limit {
            let uncertain = "the pause frame's departure is uncertain by " + time(uncertainty);
            return Err(NotCounted::Tester(
                uncertain + ", has to be below " + time(limit),
            ));
        }
        Ok(())
    }

    /// At full load the latency includes that of the DUT's queues. That of the path shows before
    /// they fill, and has not grown with the pause, which takes load off the link.
    fn quick_though_full(&self, xoff: Departure, from: Nanos, to: Nanos) -> Result<(), NotCounted> {
        let vicinity = self.measured.vicinity();
        let sent_after = xoff.before.saturating_sub(vicinity.saturating_mul(4));
        let mut others = self.others.iter();
        let begin = others.find(|arrival| arrival.time > sent_after);
        let begin = begin.map_or(from, |arrival| arrival.time.saturating_sub(1));
        self.quick(begin, begin + vicinity, "at the begin of the traffic")?;
        let before = self.worst(from, xoff.before).unwrap_or(0);
        let limit = before + self.measured.limits.max_response / 2;
        let place = "round the pause frame";
        below(self.worst(xoff.before, to), limit, place)
    }

    /// The measurement was quick enough round the end of `pause`: until the first of the priorities
    /// that the probe held back goes on. From then on the DUT's scheduler decides who waits: of
    /// pauses that end one after the other only the first end is looked at.
    pub(super) fn quick_round_end(&self, pause: &Pause, place: &str) -> Result<(), NotCounted> {
        let again = self.paused.iter().flat_map(|(_, arrivals)| arrivals);
        let first = again
            .map(|arrival| arrival.time)
            .filter(|time| *time >= pause.earliest)
            .min();
        let vicinity = self.measured.vicinity();
        let until = pause.latest + vicinity;
        let to = first.map_or(until, |first| first.min(until));
        let from = pause.earliest.saturating_sub(vicinity);
        let pauses = self.paused.iter();
        let pauses = pauses.filter_map(|(priority, _)| self.pause(*priority));
        let first_end = pauses.map(|pause| pause.earliest).min();
        match first_end.filter(|end| *end < pause.earliest) {
            Some(end) if end <= from => Ok(()),
            Some(end) => self.quick(from, end, place),
            None => self.quick(from, to, place),
        }
    }

    /// Traffic that is not paused got through quickly enough between these times: it shows the
    /// latency of all else.
    pub(super) fn quick(&self, from: Nanos, to: Nanos, place: &str) -> Result<(), NotCounted> {
        let limit = self.measured.limits.max_response / 2;
        below(self.worst(from, to), limit, place)
    }

    /// Others came through quickly while a frame was awaited: at the time at which it had to come,
    /// and until it came.
    pub(super) fn quick_meanwhile(&self, wait: Wait, place: &str) -> Result<(), NotCounted> {
        let due = wait.since + self.measured.allowed();
        self.quick(wait.since, due.min(wait.until), place)?;
        self.quick(wait.since, wait.until, place)
    }

    /// The largest latency of traffic that is not paused and came between these times.
    fn worst(&self, from: Nanos, to: Nanos) -> Option<Nanos> {
        let others = within(&self.others, from, to).into_iter();
        others.map(|arrival| Nanos::from(arrival.latency)).max()
    }

    /// Traffic that is not paused arrived between these times.
    pub(super) fn heard(&self, from: Nanos, to: Nanos, place: &str) -> Result<(), NotCounted> {
        below(self.worst(from, to), Nanos::MAX, place)
    }
}

/// The time in which held frames left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cases::pfc) struct Drain {
    /// Arrival of the last.
    pub(in crate::cases::pfc) last: Nanos,
    /// How long it took from the first to the last.
    took: Nanos,
    /// Time in which no frame of any priority filled the link meanwhile.
    pub(in crate::cases::pfc) idle: Nanos,
    /// Longest such time of a device that lets frames go for good.
    pub(in crate::cases::pfc) allowed: Nanos,
}

impl Drain {
    /// The idle time, and how long it took.
    pub(in crate::cases::pfc) fn text(&self) -> Value {
        time(self.idle) + " of " + time(self.took)
    }
}

/// A frame's wait that only the DUT explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cases::pfc) struct Wait {
    /// Since when it could have left.
    pub(in crate::cases::pfc) since: Nanos,
    /// Its arrival.
    pub(in crate::cases::pfc) until: Nanos,
    /// The time between, without that in which others filled the link.
    pub(in crate::cases::pfc) counted: Nanos,
}

impl Wait {
    /// The wait as it counts, and the time beside that in which others filled the link.
    pub(in crate::cases::pfc) fn text(&self) -> Value {
        let waited = self.until.saturating_sub(self.since);
        let counted = time(self.counted);
        match waited.saturating_sub(self.counted) {
            0 => counted,
            filled => counted + " (and " + time(filled) + " with the link filled by others)",
        }
    }
}

/// When a frame could leave that could from `ready` on: not before it was sent.
fn since(ready: Nanos, arrival: &Arrival) -> Nanos {
    let sent = arrival.time.saturating_sub(Nanos::from(arrival.latency));
    ready.max(sent).min(arrival.time)
}

/// The `worst` latency of traffic that is not paused was below `limit`.
fn below(worst: Option<Nanos>, limit: Nanos, place: &str) -> Result<(), NotCounted> {
    match worst {
        Some(worst) if worst < limit => Ok(()),
        Some(worst) => {
            let latency = Value::from(format!("background latency {place} was ")) + time(worst);
            Err(NotCounted::Tester(
                latency + ", has to be below " + time(limit),
            ))
        }
        None => {
            let none = format!("no background frame arrived {place}");
            Err(NotCounted::Tester(none.into()))
        }
    }
}

/// A priority of which no frame came just before the pause frame: a pause that lasts, or nothing of
/// it flows at all.
fn not_flowing(
    priority: Priority,
    arrivals: &[&Arrival],
    frame: Departure,
    earlier: Option<Departure>,
) -> NotCounted {
    let what = Value::from(format!(
        "no frame of priority {priority} arrived just before the pause frame, so that its end \
         could not be seen"
    ));
    let before = |at: Nanos| time(frame.before.saturating_sub(at)) + " before it";
    let last = arrivals.iter().map(|arrival| arrival.time);
    let last = last.filter(|time| *time < frame.before).max();
    NotCounted::Lasting(match (last, earlier) {
        (Some(last), Some(earlier)) => {
            let came = what + ": the last one came " + before(last);
            let left = ", and the pause frame before that left " + before(earlier.before);
            came + left + ": its pause lasts"
        }
        (Some(last), None) => what + ": the last one came " + before(last),
        (None, _) => what,
    })
}
