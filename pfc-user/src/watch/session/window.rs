//! What is sent and received in a window, read so that each frame in flight is on the safe side.

use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep};

use super::ports::Ports;
use crate::driver::link::{drop_rises, statistics, transmitted};
use crate::driver::netns::Namespace;
use crate::plan::Nanos;
use crate::watch::args::Pair;
use crate::watch::loss::{Counts, Report, Sender, Window, counts, driver_priorities, flow_rows, judge};

/// Longest wait for frames that were sent (`CHECKS.md` has the same bound for waits).
const LONGEST: Duration = Duration::from_secs(2);
/// From one look at what has come to the next.
const LOOK: Duration = Duration::from_millis(1);

type Named = Vec<(String, u64)>;

/// What the sending interface itself says that it sent.
#[derive(Clone, Debug, Default)]
struct Driver {
    frames: u64,
    by_priority: Option<(&'static str, [u64; 8])>,
}

impl Driver {
    fn read(interface: &str) -> Result<Self> {
        let (frames, private) = transmitted(&Namespace::current()?, interface)?;
        Ok(Self { frames, by_priority: driver_priorities(&private) })
    }

    fn counts(&self) -> Counts {
        match self.by_priority {
            Some((_, by_priority)) => std::array::from_fn(|place| by_priority.get(place).copied().unwrap_or(0)),
            None => [self.frames, 0, 0, 0, 0, 0, 0, 0, 0],
        }
    }
}

/// What both sides had counted at a moment.
#[derive(Clone, Debug)]
struct Mark {
    egress: Counts,
    driver: Driver,
}

/// A window that is open.
pub struct LossWindow {
    pair: Pair,
    earlier: Mark,
    begin: Mark,
    received: Counts,
    drops: Named,
}

impl LossWindow {
    /// Opens a window, after `max_latency` of looking at what is sent before it.
    pub async fn begin(pair: &Pair, ports: &Ports, max_latency: Nanos) -> Result<Self> {
        let egress = || Ok::<_, anyhow::Error>(counts(&ports.find(&pair.tx, true).read()?));
        let earlier = Mark { egress: egress()?, driver: Driver::read(&pair.tx)? };
        sleep(Duration::from_nanos(max_latency)).await;
        // Received before sent: a frame between the two counts as one in flight, never as lost.
        let received = counts(&ports.find(&pair.rx, false).read()?);
        let egress = egress()?;
        let begin = Mark { egress, driver: Driver::read(&pair.tx)? };
        Ok(Self { pair: pair.clone(), earlier, begin, received, drops: own_drops(pair)? })
    }

    /// Closes the window, waits for what is in flight, and judges.
    pub async fn end(self, ports: &Ports) -> Result<Report> {
        let Pair { tx, rx } = &self.pair;
        let (sender, receiver) = (ports.find(tx, true), ports.find(rx, false));
        let disturbed = [sender, receiver].into_iter().find_map(|port| {
            let interface = &port.name.interface;
            let gone = port.gone().then(|| format!("{interface} was removed"));
            gone.or_else(|| port.lost_carrier.then(|| format!("{interface} had no carrier for a time")))
        });
        let driver = |last: &Driver| if sender.gone() { Ok(last.clone()) } else { Driver::read(tx) };
        let driver_end = driver(&self.begin.driver)?;
        let end = Mark { egress: counts(&sender.read()?), driver: driver_end };
        let bypassed = bypassed(&self.earlier, &self.begin, &end);
        let of = |mark: &Mark| if bypassed { mark.driver.counts() } else { mark.egress };
        let sent = rise(&of(&self.begin), &of(&end));
        let flows_sent = sender.flows()?;

        let deadline = Instant::now() + LONGEST;
        let mut best: Option<(u64, Vec<_>)> = None;
        loop {
            let received = rise(&self.received, &counts(&receiver.read()?));
            let flows = receiver.flows()?;
            let rows = flow_rows(&flows, &flows_sent);
            let missing: u64 = rows.iter().map(|row| row.lost).sum();
            // Of a flow that goes on, a frame that was overtaken is missing for a moment.
            if best.as_ref().is_none_or(|(least, _)| missing < *least) {
                best = Some((missing, flows));
            }
            let come =
                if bypassed && end.driver.by_priority.is_none() { total(&received) >= total(&sent) } else { covers(&received, &sent) };
            if (come && missing == 0) || disturbed.is_some() || Instant::now() >= deadline {
                break;
            }
            sleep(LOOK).await;
        }
        let received = rise(&self.received, &counts(&receiver.read()?));
        let last = Mark { egress: counts(&sender.read()?), driver: driver(&end.driver)? };
        let own_drops = if disturbed.is_some() { Vec::new() } else { rises(&self.drops, &own_drops(&self.pair)?) };
        let window = Window {
            sender: match (bypassed, end.driver.by_priority) {
                (false, _) => Sender::Egress,
                (true, Some((names, _))) => Sender::DriverByPriority { counters: names.to_owned() },
                (true, None) => Sender::Driver { counter: "tx_packets".to_owned() },
            },
            before: rise(&of(&self.earlier), &of(&self.begin)),
            after: rise(&of(&end), &of(&last)),
            sent,
            received,
            own_drops,
            flows_sent,
            flows_received: best.map(|(_, flows)| flows).unwrap_or_default(),
            disturbed,
        };
        Ok(judge(tx, rx, &window))
    }
}

/// Whether frames left that did not pass tcx egress. The driver was read after egress at the beginning and before it at the
/// end, so that without such frames it cannot have counted more, but for those that waited in a queue when it began.
fn bypassed(earlier: &Mark, begin: &Mark, end: &Mark) -> bool {
    let sent = |from: &Mark| total(&rise(&from.egress, &end.egress));
    end.driver.frames.saturating_sub(begin.driver.frames) > sent(earlier)
}

fn total(counts: &Counts) -> u64 {
    counts.iter().sum()
}

fn rise(from: &Counts, to: &Counts) -> Counts {
    std::array::from_fn(|place| to[place].saturating_sub(from[place]))
}

fn covers(received: &Counts, sent: &Counts) -> bool {
    received.iter().zip(sent).all(|(received, sent)| received >= sent)
}

/// What both interfaces say that they themselves dropped.
fn own_drops(pair: &Pair) -> Result<Named> {
    let namespace = Namespace::current()?;
    let mut drops = Vec::new();
    for interface in [&pair.tx, &pair.rx] {
        let counters = statistics(&namespace, interface)?;
        drops.extend(counters.into_iter().map(|(counter, value)| (format!("{interface}: {counter}"), value)));
    }
    Ok(drops)
}

fn rises(before: &Named, after: &Named) -> Named {
    drop_rises("", before, after).into_iter().filter(|drop| drop.rise > 0).map(|drop| (drop.counter, drop.rise)).collect()
}
