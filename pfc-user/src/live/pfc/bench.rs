//! The bench of drivers: what the steps of a repetition need, on real frames.

use anyhow::anyhow;
use pfc_ebpf::stamp::Phase;
use validator_core::cases::pfc::settle::{self, Settling};
use validator_core::cases::pfc::stimulate::{Bench, Stop};
use validator_core::evidence::pfc::{Arrival, Departure, StormReport, Wait};
use validator_core::plan::{Nanos, PfcFrame, RepetitionPlan, StormPlan};
use validator_core::verdict::Event;

use super::macs::Macs;
use super::prepare::{flows, open_control};
use super::senders::Senders;
use super::{Live, SENDER_END, SETTLE_POLL};
use crate::driver::bpf::Rings;
use crate::driver::kernel::clock;
use crate::driver::storm::{ControlSender, Storm};
use crate::driver::traffic::Burst;

pub(super) struct LiveBench<'b, 'l> {
    pub(super) live: &'b mut Live<'l>,
    pub(super) plan: &'b RepetitionPlan,
    pub(super) senders: Senders,
    pub(super) control: ControlSender,
    /// Number of times that a single pause frame found no room.
    pub(super) waits: u64,
    /// The storm, while it is sent.
    pub(super) storm: Option<Storm>,
    /// Account of a storm that the user ended.
    pub(super) cut_short: Option<StormReport>,
    /// The waits for the last frames of phases.
    pub(super) settled: Vec<Wait>,
    /// Records of the rx port so far.
    pub(super) rings: Rings,
    /// Read as each phase begins.
    pub(super) macs: &'b mut Macs,
}

impl LiveBench<'_, '_> {
    /// Storm and traffic stop at once.
    fn interrupted(&mut self) -> Stop {
        // An error that ended the traffic before the user did no longer matters.
        let _ = self.senders.stop();
        self.cut_short = self.storm.take().map(Storm::stop);
        Stop::Interrupted
    }
}

impl Bench for LiveBench<'_, '_> {
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn wait_until(&mut self, deadline: Nanos) -> Result<(), Stop> {
        if self.live.interrupt.wait_until(deadline) {
            Err(self.interrupted())
        } else {
            Ok(())
        }
    }

    fn start_traffic(&mut self, burst: Burst) -> Result<(), Stop> {
        if burst.phase == Phase::Probe {
            let flows = flows(self.plan, self.live.config.qos.trust, burst.load);
            for port in self.live.testbed.receivers() {
                port.account.describe(&flows);
            }
        }
        Ok(self.senders.start(burst)?)
    }

    fn finish_traffic(&mut self) -> Result<(), Stop> {
        if !self.senders.wait(clock::now() + SENDER_END)? {
            return Err(anyhow!("the sender did not come to the end of its traffic").into());
        }
        Ok(())
    }

    fn settle(&mut self, phase: Phase, deadline: Nanos) -> Result<(), Stop> {
        let report = self.senders.report()?.0.report;
        let sent = report.flows.iter().filter(|sent| sent.phase == phase);
        let sent = sent.map(|sent| sent.frames).sum();
        let quiet = settle::quiet(self.plan, &self.live.testbed.limits);
        let mut settling = Settling::new(phase, clock::now(), deadline, sent, quiet);
        loop {
            let mut arrived = 0;
            for port in self.live.testbed.receivers() {
                let flows = self.plan.flows.iter().filter(|flow| flow.to == port.name);
                arrived += port.account.received(phase, flows.map(|flow| flow.id))?;
            }
            let now = clock::now();
            if let Some(wait) = settling.look(now, arrived) {
                self.settled.push(wait);
                return Ok(());
            }
            self.wait_until(deadline.min(now + SETTLE_POLL))?;
        }
    }

    fn start_storm(&mut self, storm: &StormPlan) -> Result<(), Stop> {
        let control = open_control(self.live.testbed)?;
        let line_rate = self.live.testbed.limits.line_rate;
        self.storm = Some(Storm::start(control, storm, line_rate)?);
        Ok(())
    }

    fn stop_storm(&mut self) -> Result<StormReport, Stop> {
        let storm = self.storm.take().ok_or(Stop::Interrupted)?;
        Ok(storm.stop())
    }

    fn pause(&mut self, frame: &PfcFrame) -> Result<Departure, Stop> {
        let (departure, waits) = self.control.send_with_room(|source| frame.emit(source))?;
        self.waits += waits;
        Ok(departure)
    }

    fn pauses(&mut self) -> Option<Vec<Nanos>> {
        let mut ends = Vec::new();
        for port in self.live.testbed.senders() {
            port.pfc_visible.as_ref()?;
            ends.extend(port.account.pause_view().ends());
        }
        Some(ends)
    }

    /// Those at the rx port, to which all flows of a case with a probe go.
    fn arrivals(&mut self) -> Result<&[Arrival], Stop> {
        let rings = self.live.testbed.rx.account.take_rings()?;
        self.rings.append(rings);
        Ok(&self.rings.arrivals)
    }

    fn announce(&mut self, phase: &'static str) {
        (self.live.events)(Event::PhaseBegins { phase });
        self.macs.read(phase);
    }
}
