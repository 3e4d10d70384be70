//! The senders of the test traffic, one for each port that sends.

use anyhow::Result;
use validator_core::evidence::pfc::DropCounter;
use validator_core::nic;
use validator_core::plan::{Nanos, PortName, PortRole, RepetitionPlan};
use validator_core::verdict::Event;

use super::Live;
use super::prepare::addresses;
use crate::driver::bringup::testbed::{Testbed, TesterPort, WINDOW};
use crate::driver::kernel::realtime;
use crate::driver::traffic::TrafficPlan;
use crate::driver::traffic::choice::{self, Chosen};
use crate::driver::traffic::{Burst, FlowControl, NOT_TAKEN, Sent, TrafficError};

/// The senders, each with its port.
pub(super) struct Senders(Vec<(PortName, Chosen)>);

/// Frames that a sender's kernel lost before they left.
pub(super) struct Lost {
    port: PortName,
    /// The reason.
    what: &'static str,
    frames: u64,
}

impl Senders {
    /// Opens one for each port that flows of `plan` come from.
    pub(super) fn open(live: &mut Live, plan: &RepetitionPlan, epoch: Nanos) -> Result<Self> {
        let mut senders = Vec::new();
        let config = live.config;
        let limits = live.testbed.limits.clone();
        let mut shortages = Vec::new();
        let windows = live.testbed.windows as usize;
        let destination = live.testbed.rx.state.mac;
        let further = live.testbed.more.iter();
        let further = further.filter(|port| port.role == PortRole::Rx);
        let receivers = further.map(|port| (port.name.clone(), port.state.mac));
        let receivers: Vec<_> = receivers.collect();
        let allowed = realtime::allowed_cpus();
        let sends = |port: &&TesterPort| plan.flows.iter().any(|flow| flow.from == port.name);
        let count = live.testbed.senders().filter(sends).count();
        // Two senders on one CPU would stop each other. Where there are too few, they do.
        let share = allowed.len().div_ceil(count.max(1)).max(1);
        let mut cpus = allowed.chunks(share);
        for port in live.testbed.senders_mut() {
            let of_port = plan.flows.iter().filter(|flow| flow.from == port.name);
            let flows: Vec<_> = of_port.cloned().collect();
            if flows.is_empty() {
                continue;
            }
            let traffic = TrafficPlan {
                interface: &port.interface,
                run: live.run,
                flows: &flows,
                addresses: addresses(config, port, destination),
                receivers: &receivers,
                line_rate: limits.line_rate,
                max_burst: limits.largest_burst(&flows),
                epoch,
                width: WINDOW,
                windows,
                cpus: cpus.next().unwrap_or_default(),
            };
            let flow_control = FlowControl::Software(Box::new(port.account.pause_view()));
            let (namespace, account) = (&port.namespace, &mut port.account);
            let generator = || account.generator();
            let warn = |short| shortages.push(format!("{}: {short}", traffic.interface));
            let sender = config.ports.sender;
            let open = || choice::open(&traffic, sender, flow_control, generator, warn);
            senders.push((port.name.clone(), namespace.run(open)??));
        }
        note(live.testbed, &mut live.events, shortages.join("; "));
        Ok(Self(senders))
    }

    pub(super) fn start(&mut self, burst: Burst) -> Result<(), TrafficError> {
        self.0
            .iter_mut()
            .try_for_each(|(_, sender)| sender.start(burst))
    }

    /// True if all came to the end of their burst by `deadline`.
    pub(super) fn wait(&mut self, deadline: Nanos) -> Result<bool, TrafficError> {
        let mut ended = true;
        for (_, sender) in &mut self.0 {
            ended &= sender.wait(deadline)?;
        }
        Ok(ended)
    }

    /// Ends all bursts; the error is the first that had ended one.
    pub(super) fn stop(&mut self) -> Result<(), TrafficError> {
        let stopped = self.0.iter_mut().map(|(_, sender)| sender.stop());
        // All of them, whatever the first says.
        stopped.collect::<Vec<_>>().into_iter().collect()
    }

    /// The account of all, and the frames lost by port.
    pub(super) fn report(&mut self) -> Result<(Sent, Vec<Lost>), TrafficError> {
        let (mut all, mut lost) = (Sent::default(), Vec::new());
        for (port, sender) in &mut self.0 {
            let mut sent = sender.report()?;
            lost.extend(sent.lost.drain(..).map(|(what, frames)| Lost {
                port: port.clone(),
                what,
                frames,
            }));
            all.add(sent.at(port));
        }
        Ok((all, lost))
    }
}

/// Says once for all repetitions that want the same.
fn note(testbed: &mut Testbed, events: &mut dyn FnMut(Event), shortage: String) {
    if !shortage.is_empty()
        && testbed.shortage.replace(shortage.clone()).as_ref() != Some(&shortage)
    {
        events(Event::Note(shortage));
    }
}

/// The counters of lost frames, with those that the senders know of. What a veth counted in its
/// `tx_dropped` as well is told once, or it would excuse two; of other drivers it is not known that
/// they count the same.
pub(super) fn losses(
    counters: Vec<DropCounter>,
    testbed: &Testbed,
    lost: &[Lost],
) -> Vec<DropCounter> {
    let driver = |port: &PortName| {
        let mut ports = testbed.ports();
        let found = ports.find(|found| found.name == *port);
        found.map_or_else(Default::default, |port| {
            (port.interface.clone(), port.state.driver.clone())
        })
    };
    told_once(counters, driver, lost)
}

fn told_once(
    mut counters: Vec<DropCounter>,
    driver: impl Fn(&PortName) -> (String, String),
    lost: &[Lost],
) -> Vec<DropCounter> {
    for Lost { port, what, frames } in lost {
        let (interface, driver) = driver(port);
        let place = format!("{port} port {interface}");
        let is_same = |counter: &&DropCounter| {
            nic::of(&driver).counts_untaken
                && counter.place == place
                && counter.counter == "tx_dropped"
        };
        let counted = counters
            .iter()
            .find(is_same)
            .map_or(0, |counter| counter.rise);
        let told = if *what == NOT_TAKEN { counted } else { 0 };
        counters.push(DropCounter {
            place: match *port == PortName::TX {
                true => "sender".into(),
                false => format!("sender of {port}"),
            },
            counter: (*what).into(),
            rise: frames.saturating_sub(told),
        });
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_the_driver_counted_as_well_is_told_once() {
        let counter = |place: &str, counter: &str, rise| DropCounter {
            place: place.into(),
            counter: counter.into(),
            rise,
        };
        let of = |port: PortName, what, frames| Lost { port, what, frames };
        let second = || PortName::new("tx2".into());
        let lost = [
            of(PortName::TX, NOT_TAKEN, 10),
            of(PortName::TX, "refused", 2),
            of(second(), NOT_TAKEN, 5),
        ];
        let own = |driver: &str, tx_dropped| {
            let counters = vec![
                counter("tx port a", "tx_dropped", tx_dropped),
                counter("tx2 port c", "tx_dropped", 1),
                counter("rx port b", "tx_dropped", 99),
            ];
            let of_port = |port: &PortName| {
                let interface = if *port == PortName::TX { "a" } else { "c" };
                (interface.to_owned(), driver.to_owned())
            };
            let counters = told_once(counters, of_port, &lost);
            assert_eq!(counters[3].place, "sender");
            assert_eq!(counters[5].place, "sender of tx2");
            [counters[3].rise, counters[4].rise, counters[5].rise]
        };
        assert_eq!(
            [0, 7, 10, 50].map(|dropped| own("veth", dropped)),
            [[10, 2, 4], [3, 2, 4], [0, 2, 4], [0, 2, 4]]
        );
        assert_eq!(
            own("other", 7),
            [10, 2, 5],
            "that the driver counted the same is not known"
        );
    }
}
