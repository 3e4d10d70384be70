//! C09_142_01, step by step: the positive control, the test, and the flush.

use crate::agent::protocol::{Channel, FailureKind, OpenChannel, State};
use crate::cases::rc::stimulate::{
    FLUSHED, LONGEST, Numbered, PROMPT, READ, Steps, Stop, Watch, phase,
};
use crate::evidence::rc::{Completion, Phase, RcEvidence};
use crate::plan::Nanos;

impl Steps<'_> {
    pub(super) fn run(&mut self, done: &mut RcEvidence) -> Result<(), Stop> {
        // Where the document does not apply, or it is not known whether it does, nothing would be
        // decided.
        if done.apm.or(done.device.apm) != Some(false) {
            return Ok(());
        }
        self.bench.announce("positive control");
        let first = self.numbers.next_channel(&[]);
        let Some(channel) = self.open(first, done)? else {
            return Ok(());
        };
        let outcome = self.control(done.control.insert(phase(first, channel)));
        self.close(outcome)?;
        // Without a packet nothing shows that the DUT is at the other end, and the test could show
        // no more.
        let control = done.control.as_ref();
        if control.is_some_and(|control| control.packets.is_empty()) {
            return Ok(());
        }
        self.bench.announce("test");
        let second = self.numbers.next_channel(&[first]);
        let Some(channel) = self.open(second, done)? else {
            return Ok(());
        };
        let outcome = self.test_and_flush(second, channel, done);
        self.close(outcome)
    }

    /// Initialisation 1 to 3; `None` if the DUT does not reach the tester.
    fn open(
        &mut self,
        (queue_pair, psn): Numbered,
        done: &mut RcEvidence,
    ) -> Result<Option<Channel>, Stop> {
        self.bench.listen(queue_pair)?;
        let channel = OpenChannel {
            path_mtu: self.plan.path_mtu,
            retry_count: self.plan.retry_count,
            timeout: self.plan.timeout,
            remote: self.tester,
            remote_queue_pair: queue_pair,
            psn,
            // The tester sends nothing but answers, which have the PSN of what they answer.
            remote_psn: psn,
        };
        match self.bench.open(&channel) {
            Ok(channel) => Ok(Some(channel)),
            Err(Stop::Refused(failure)) if failure.kind == FailureKind::Neighbour => {
                done.unreachable = Some(failure.message);
                Ok(None)
            }
            Err(stop) => Err(stop),
        }
    }

    /// Step 13. Whatever else went wrong, the DUT's queue pair is given back.
    fn close(&mut self, outcome: Result<(), Stop>) -> Result<(), Stop> {
        let closed = self.bench.close();
        outcome.and(closed)
    }

    /// Drops some requests, then answers.
    fn control(&mut self, phase: &mut Phase) -> Result<(), Stop> {
        let mut watch = Watch::new(self.plan, phase, self.bench.now());
        let posted = watch.post(self.bench, READ)?;
        let idle = 2 * LONGEST * watch.t_tr;
        let longest = posted.saturating_add(idle * self.plan.requests() as Nanos);
        loop {
            for (transmission, packet) in watch.take(self.bench)? {
                if transmission > usize::from(self.plan.control_drops) {
                    let answer = self.bench.answer(&packet, watch.phase.channel.queue_pair)?;
                    watch.phase.answers.extend(answer);
                }
            }
            let end = longest.min(watch.last.unwrap_or(posted).saturating_add(idle));
            if !watch.phase.completions.is_empty() || watch.asked >= end {
                break;
            }
            watch.poll(self.bench)?;
        }
        watch.finish(self.bench)
    }

    fn test_and_flush(
        &mut self,
        numbered: Numbered,
        channel: Channel,
        done: &mut RcEvidence,
    ) -> Result<(), Stop> {
        let test = done.test.insert(phase(numbered, channel.clone()));
        let empty = self.test(test)?;
        if test.after.is_none_or(|after| after.state != State::Error) {
            // On a queue pair that is not in error a READ is not flushed.
            return Ok(());
        }
        self.bench.announce("flush");
        self.flush(done.flush.insert(phase(numbered, channel)), empty)
    }

    /// Steps 5 to 12: drops all requests. Until when there was no completion that has not been
    /// taken.
    fn test(&mut self, phase: &mut Phase) -> Result<Nanos, Stop> {
        let requests = self.plan.requests();
        let mut watch = Watch::new(self.plan, phase, self.bench.now());
        let shows = watch.phase.channel.attributes.retries_left.is_some();
        let posted = watch.post(self.bench, READ)?;
        let t_tr = watch.t_tr;
        let longest = posted.saturating_add((requests as Nanos + 1) * LONGEST * t_tr);
        loop {
            let packets = watch.take(self.bench)?;
            if shows && !packets.is_empty() {
                watch.show(self.bench)?;
            }
            let (asked, latest) = (watch.asked, watch.last.unwrap_or(posted));
            let over = match watch.phase.completions.first() {
                // Time for one more request, and for one more completion.
                Some(first) => {
                    asked
                        >= latest
                            .saturating_add(LONGEST * t_tr)
                            .max(first.time.saturating_add(t_tr))
                }
                None => asked >= longest && asked >= latest.saturating_add(2 * LONGEST * t_tr),
            };
            let too_many = watch.transmissions > requests && asked >= longest;
            if over || too_many {
                break;
            }
            watch.poll(self.bench)?;
        }
        let empty = watch.empty;
        watch.finish(self.bench)?;
        Ok(empty)
    }

    /// The remark of step 13. What is left of the test may complete only now, but since `empty`.
    fn flush(&mut self, phase: &mut Phase, empty: Nanos) -> Result<(), Stop> {
        let mut watch = Watch::new(self.plan, phase, empty);
        match watch.post(self.bench, FLUSHED) {
            Ok(posted) => {
                let end = posted.saturating_add(watch.t_tr.max(PROMPT));
                let is_it = |completion: &Completion| completion.work_request == FLUSHED;
                while watch.asked < end && !watch.phase.completions.iter().any(is_it) {
                    watch.poll(self.bench)?;
                }
            }
            Err(Stop::Refused(failure)) => watch.phase.refused = Some(failure.message),
            Err(stop) => return Err(stop),
        }
        watch.finish(self.bench)
    }
}
