//! Ports whose flows want more frames than a thread sends: the kernel is to send them.

use anyhow::{Result, bail};
use nix::net::if_::if_nametoindex;
use pfc_ebpf::abi::generate::LONGEST;
use pfc_ebpf::units::LineRate;
use validator_core::engine::Warning;
use validator_core::engine::packet::Template;
use validator_core::engine::plan::{Flow, PortIndex};
use validator_core::engine::port::fast::CARRIES;

use super::LiveEngine;
use super::port::LivePort;
use super::sender::Command;
use super::sender::kernel::{KernelSender, Kind};
use crate::config::Sender;
use crate::driver::kernel::link;
use crate::driver::traffic::lacks;

/// Demands of a port's flows on the kernel.
#[derive(Clone, Copy, Debug)]
struct Demand {
    /// Frames a second, of all flows.
    frames: u64,
    /// Frames a second of flows whose frames the kernel cannot make.
    by_thread: u64,
    /// Octets without FCS of the longest frame that the kernel can make; 0: it can make none.
    length: usize,
}

impl Demand {
    fn of(flows: &[&Flow], line_rate: LineRate) -> Self {
        let pace = |flow: &Flow| flow.pace(line_rate);
        let rates = flows.iter().map(|flow| pace(flow).rate().0);
        let mut demand = Self {
            frames: rates.sum(),
            by_thread: 0,
            length: 0,
        };
        if demand.frames <= CARRIES {
            return demand;
        }
        for flow in flows {
            let length = pace(flow).steady().map(|steady| steady.length as usize);
            let length = length.map(|length| length - LineRate::FCS as usize);
            let template = Template::new(&flow.packet, &[], flow.metrics.stamp);
            match length.filter(|length| Kind::of(&template, *length).is_some()) {
                Some(length) => demand.length = demand.length.max(length),
                None => demand.by_thread += pace(flow).rate().0,
            }
        }
        demand
    }

    /// More than a thread sends for certain.
    const fn is_fast(&self) -> bool {
        self.frames > CARRIES
    }
}

impl LiveEngine {
    /// Frames of a port of the plan that the kernel sent, of all flows so far.
    ///
    /// # Panics
    /// Where there is no such port.
    pub fn sent_by_kernel(&self, port: PortIndex) -> u64 {
        self.ports[port.0].state.fast.read().frames
    }

    /// Has the kernel send what threads cannot; where it does not, a warning says why, once for as
    /// long as the port's flows want as much.
    pub(super) fn fasten(&mut self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let sender = self.options.sender;
        if sender == Sender::Sendmmsg {
            return warnings;
        }
        for (place, port) in self.ports.iter_mut().enumerate() {
            let data = |flow: &&Flow| flow.from.0 == place && !flow.packet.is_pause();
            let flows = self.plan.flows.iter().filter(data);
            let demand = Demand::of(&flows.collect::<Vec<_>>(), port.line_rate);
            let Some((frames, reason)) = port.slow(&demand, sender) else {
                port.slow_warned = false;
                continue;
            };
            if !std::mem::replace(&mut port.slow_warned, true) {
                warnings.push(Warning(format!(
                    "port \"{}\": its flows want {frames} frames a second, and leave by a thread, \
                     which sends some hundred thousand: {reason}",
                    self.plan.ports[place].name
                )));
            }
        }
        warnings
    }
}

impl LivePort {
    /// Has the kernel send what a thread cannot. Frames a second that are left to the thread and
    /// more than it sends, and why; `None` where there are none.
    fn slow(&mut self, demand: &Demand, sender: Sender) -> Option<(u64, String)> {
        if !demand.is_fast() {
            return None;
        }
        if demand.length > 0
            && !self.is_fast
            && let Err(reason) = self.fasten(demand.length, sender)
        {
            return Some((demand.frames, reason.to_string()));
        }
        let reason = format!(
            "the kernel makes frames of one length, up to {} octets, whose headers are all the \
             same, which these are not",
            LONGEST as u64 + LineRate::FCS
        );
        (demand.by_thread > CARRIES).then_some((demand.by_thread, reason))
    }

    /// Has the kernel send frames of up to `length` octets without FCS; an error says why it does
    /// not.
    fn fasten(&mut self, length: usize, sender: Sender) -> Result<()> {
        let state = link::state(&self.namespace, &self.interface)?;
        let interface = self.interface.clone();
        let lack = self.namespace.run(|| {
            let takes_frames = link::takes_frames(if_nametoindex(&*interface).unwrap_or_default());
            lacks(length, state.mtu, takes_frames.unwrap_or_default())
        })?;
        if let Some(lack) = lack.filter(|lack| !lack.unsure || sender != Sender::LiveFrames) {
            bail!(lack.what);
        }
        let generator = self.program.generator()?;
        if let Some(reason) = generator.uncounted() {
            bail!("what the kernel loses of its own frames cannot be counted: {reason}");
        }
        let (pauses, published) = (self.program.pauses(), self.state.clone());
        let start = || KernelSender::start(&interface, generator, pauses, published);
        let sender = self.namespace.run(start)??;
        let [data, _] = &self.senders;
        data.order(Command::Fast(Box::new(sender)))?;
        self.is_fast = true;
        Ok(())
    }
}
