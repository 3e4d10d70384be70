//! Frames sent and received in a window, read in an order that puts each frame in flight on the
//! safe side.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::net::if_::if_nametoindex;
use pfc_ebpf::abi::watch::{Sketch, Untold};
use tokio::time::{Instant, sleep};
use validator_core::nic;

use super::ports::{Port, Ports, without_carrier};
use crate::driver::bpf::watch::{Flow, Reading};
use crate::driver::kernel::link::{
    self, LinkError, drop_rises, queue_drops, softnet_dropped, statistics, transmitted,
};
use crate::driver::kernel::netns::Namespace;
use crate::watch::args::Pair;
use crate::watch::loss::{
    Counts, OwnSide, Report, Sender, WITHOUT_PRIORITY, Window, compare, counts, flow_rows, judge,
};

/// Longest wait for frames that were sent, the same as in the cases.
const LONGEST: Duration = Duration::from_secs(2);
/// Time from one look at what has come to the next.
const LOOK: Duration = Duration::from_millis(1);
/// Name of the stack's own drops, which no interface counts.
const SOFTNET: &str = "the stack's backlog (softnet_stat), of all interfaces";

type Named = Vec<(String, u64)>;

/// Frames that the sending interface itself counted as sent.
#[derive(Clone, Debug, Default)]
struct Driver {
    frames: u64,
    by_priority: Option<(String, [u64; 8])>,
}

impl Driver {
    fn read(interface: &str) -> Result<Self> {
        let (frames, private) = transmitted(&Namespace::current()?, interface)?;
        Ok(Self {
            frames,
            by_priority: nic::sent_by_priority(&private),
        })
    }

    fn counts(&self) -> Counts {
        match &self.by_priority {
            Some((_, by_priority)) => {
                std::array::from_fn(|place| by_priority.get(place).copied().unwrap_or(0))
            }
            None => [self.frames, 0, 0, 0, 0, 0, 0, 0, 0],
        }
    }
}

/// Counts of the sending side at a moment: egress read before the driver, at the end of a window
/// after it.
#[derive(Clone, Debug)]
struct Mark {
    egress: Counts,
    driver: Driver,
}

/// Counters of drops on the tester's own side at a moment.
#[derive(Clone, Debug)]
pub struct Drops {
    sender: Named,
    queues: Named,
    receiver: Named,
    softnet: u64,
}

impl Drops {
    /// Reads the drops as they stand now. To be read before the programs are attached, which may
    /// itself make the NICs drop frames.
    pub fn read(pair: &Pair) -> Result<Self> {
        let namespace = Namespace::current()?;
        let of = |interface: &str, counters: Named| {
            counters
                .into_iter()
                .map(|(name, drops)| (format!("{interface}: {name}"), drops))
                .collect()
        };
        Ok(Self {
            sender: of(&pair.tx, statistics(&namespace, &pair.tx)?),
            queues: of(&pair.tx, queue_drops(&namespace, &pair.tx)?),
            receiver: of(&pair.rx, statistics(&namespace, &pair.rx)?),
            softnet: softnet_dropped().context("cannot read the drops of the stack")?,
        })
    }

    /// Drops since then until `now`, where `unsent` frames did not leave. Frames
    /// that left past tc egress, `bypassed`, were counted behind the queues; those that XDP counts
    /// in the driver, before the stack.
    fn until(&self, now: &Self, unsent: u64, bypassed: bool, before_the_stack: bool) -> OwnSide {
        let mut own = OwnSide {
            sender: rises(&self.sender, &now.sender),
            unsent,
            receiver: rises(&self.receiver, &now.receiver),
        };
        if !bypassed {
            own.sender.extend(rises(&self.queues, &now.queues));
        }
        let softnet = now.softnet.saturating_sub(self.softnet);
        if softnet > 0 && !before_the_stack {
            own.receiver.push((SOFTNET.to_owned(), softnet));
        }
        own
    }
}

/// Carrier changes of both ports: the kernel tells of a change only a
/// while later, and not of one that was undone by then.
fn carrier_changes(pair: &Pair) -> Result<[u32; 2]> {
    let namespace = Namespace::current()?;
    Ok([
        link::carrier_changes(&namespace, &pair.tx)?,
        link::carrier_changes(&namespace, &pair.rx)?,
    ])
}

/// Readings before a window opens: they bound the frames in flight when it does.
pub struct Prelude {
    pair: Pair,
    attached: Drops,
    carriers: [u32; 2],
    earlier: Mark,
    /// Age that the driver's counts may have.
    pub lag: Duration,
}

impl Prelude {
    /// Begins to look; `attached` is of before the programs were attached.
    pub fn begin(pair: &Pair, ports: &Ports, attached: Drops) -> Result<Self> {
        let driver = link::state(&Namespace::current()?, &pair.tx)?.driver;
        let lag = Duration::from_nanos(nic::of(&driver).lag);
        let carriers = carrier_changes(pair)?;
        let egress = counts(&ports.find(&pair.tx, true).read()?);
        Ok(Self {
            pair: pair.clone(),
            attached,
            carriers,
            earlier: Mark {
                egress,
                driver: Driver::read(&pair.tx)?,
            },
            lag,
        })
    }

    /// Opens the window, the longest latency after it began. [`LossWindow::read_driver_again`] is
    /// due the lag after that.
    pub fn open(self, ports: &Ports) -> Result<LossWindow> {
        let pair = &self.pair;
        // Before anything that is counted: what is dropped from now on may be of the window.
        let drops = Drops::read(pair)?;
        // Received before sent: a frame between the two counts as one in flight, never as lost.
        let (sender, receiver) = (ports.find(&pair.tx, true), ports.find(&pair.rx, false));
        let reading = receiver.read()?;
        let received = Received {
            counts: counts(&reading),
            stamped: reading.counters.stamped,
            sketch: receiver.sketch()?,
        };
        let leaving = sender.read()?;
        let sent = sender.sketch()?;
        let begin = Mark {
            egress: counts(&leaving),
            driver: Driver::read(&pair.tx)?,
        };
        Ok(LossWindow {
            prelude: self,
            begin,
            received,
            sent,
            unnumbered: [unnumbered(&leaving), unnumbered(&reading)],
            drops,
        })
    }
}

/// The receiving side at a moment.
struct Received {
    counts: Counts,
    stamped: u64,
    sketch: Box<Sketch>,
}

/// A window that is open.
pub struct LossWindow {
    prelude: Prelude,
    begin: Mark,
    received: Received,
    /// Frames that the sending port had sorted when the window opened.
    sent: Box<Sketch>,
    /// [`unnumbered`] of both ports when the window opened.
    unnumbered: [u64; 2],
    drops: Drops,
}

impl LossWindow {
    /// Reads the driver's counts at the start of the window, once the driver has refreshed them.
    /// Older counts would attribute frames from before the window to it.
    pub fn read_driver_again(&mut self) -> Result<()> {
        self.begin.driver = Driver::read(&self.prelude.pair.tx)?;
        Ok(())
    }

    /// Closes the window, waits for what is in flight, and judges; `hurry` ends the wait.
    pub async fn end(self, ports: &Ports, hurry: impl Future<Output = ()>) -> Result<Report> {
        let mut closing = Closing::begin(&self, ports)?;
        let end = closing.end_of_window()?;
        let sent = closing.sender.sketch()?.since(&self.sent);
        let earlier = &self.prelude.earlier;
        let bypassed = bypassed(earlier, &self.begin, &end);
        let of = |mark: &Mark| {
            if bypassed {
                mark.driver.counts()
            } else {
                mark.egress
            }
        };
        let awaited = Awaited {
            sent: rise(&of(&self.begin), &of(&end)),
            flows: closing.sender.watch.flows()?,
            in_all: bypassed && end.driver.by_priority.is_none(),
        };
        let flows_received = closing.wait(&awaited, hurry).await?;
        let (received, stamped) = closing.received()?;
        let came = closing.receiver.sketch()?.since(&self.received.sketch);
        let last = closing.after_window(&end)?;
        closing.compare_unnumbered()?;
        let flows_lost = closing.flows_lost()?;
        let [own, own_of_flows] = closing.own_side(&end, bypassed)?;
        let before = rise(&of(earlier), &of(&self.begin));
        let after = rise(&of(&end), &of(&last));
        let counted = awaited.sent[..WITHOUT_PRIORITY].iter().sum();
        let in_flight = total(&before) + total(&after);
        let window = Window {
            sender: sender_of(bypassed, &end.driver),
            compared: (!bypassed).then(|| compare(&sent, &came, counted, in_flight)),
            stamped,
            before,
            after,
            sent: awaited.sent,
            received,
            own,
            for_the_device: rise(&self.begin.egress, &end.egress)[WITHOUT_PRIORITY],
            tags_hidden: closing.receiver.tags_hidden,
            flows_sent: awaited.flows,
            flows_received,
            own_of_flows,
            flows_lost,
            disturbed: closing.disturbed,
        };
        let Pair { tx, rx } = &self.prelude.pair;
        Ok(judge(tx, rx, &window))
    }
}

/// Frames that the receiving port is to see before a window is judged.
struct Awaited {
    sent: Counts,
    flows: Vec<Flow>,
    /// The sender counts no priorities.
    in_all: bool,
}

impl Awaited {
    fn have_come(&self, received: &Counts) -> bool {
        if self.in_all {
            total(received) >= total(&self.sent)
        } else {
            let mut places = received.iter().zip(&self.sent);
            places.all(|(received, sent)| received >= sent)
        }
    }
}

/// A window that is being closed: the readings at its end, in the order in which they are taken.
struct Closing<'w> {
    window: &'w LossWindow,
    sender: &'w Port,
    receiver: &'w Port,
    /// The reason why nothing can be said of missing frames.
    disturbed: Option<String>,
}

impl<'w> Closing<'w> {
    fn begin(window: &'w LossWindow, ports: &'w Ports) -> Result<Self> {
        let Pair { tx, rx } = &window.prelude.pair;
        let (sender, receiver) = (ports.find(tx, true), ports.find(rx, false));
        let disturbed = [sender, receiver].into_iter().find_map(|port| {
            let removed = port.removed;
            let removed = removed.then(|| format!("{} was removed", port.name.interface));
            removed.or_else(|| port.disturbed.clone())
        });
        let mut closing = Self {
            window,
            sender,
            receiver,
            disturbed,
        };
        if closing.disturbed.is_none() {
            closing.compare_carriers()?;
        }
        Ok(closing)
    }

    fn compare_carriers(&mut self) -> Result<()> {
        let Some(now) = self.unless_removed(carrier_changes(&self.window.prelude.pair))? else {
            return Ok(());
        };
        let mut changes = self.window.prelude.carriers.into_iter().zip(now);
        self.disturbed = [self.sender, self.receiver].into_iter().find_map(|port| {
            let (before, now) = changes.next()?;
            (now != before).then(|| without_carrier(&port.name.interface))
        });
        Ok(())
    }

    /// Counts of frames are too low where packets count as one frame.
    fn compare_unnumbered(&mut self) -> Result<()> {
        for (port, before) in [self.sender, self.receiver]
            .into_iter()
            .zip(self.window.unnumbered)
        {
            let packets = unnumbered(&port.read()?) - before;
            if packets > 0 {
                self.disturbed.get_or_insert_with(|| {
                    format!(
                        "{packets} packets at {} were merged from an unknown number of frames",
                        port.name.interface
                    )
                });
            }
        }
        Ok(())
    }

    /// The sending side when the window ends: the driver before egress.
    fn end_of_window(&mut self) -> Result<Mark> {
        let driver = self.driver(&self.window.begin.driver)?;
        Ok(Mark {
            egress: counts(&self.sender.read()?),
            driver,
        })
    }

    /// The sending side when all that was sent has come: the driver after egress.
    fn after_window(&mut self, end: &Mark) -> Result<Mark> {
        Ok(Mark {
            egress: counts(&self.sender.read()?),
            driver: self.driver(&end.driver)?,
        })
    }

    /// The driver's counts; `last` where its interface was removed.
    fn driver(&mut self, last: &Driver) -> Result<Driver> {
        let read = self.unless_removed(Driver::read(&self.window.prelude.pair.tx))?;
        Ok(read.unwrap_or_else(|| last.clone()))
    }

    /// Frames received in the window, and those with a stamp.
    fn received(&self) -> Result<(Counts, u64)> {
        let (reading, begin) = (self.receiver.read()?, &self.window.received);
        let stamped = reading.counters.stamped - begin.stamped;
        Ok((rise(&begin.counts, &counts(&reading)), stamped))
    }

    fn flows_lost(&self) -> Result<u64> {
        Ok(self.sender.read()?.counters.flows_lost + self.receiver.read()?.counters.flows_lost)
    }

    /// Waits for frames in flight. Returns the received flows at the moment when the fewest frames
    /// were missing, because in a flow that goes on an overtaken frame is missing for a moment.
    async fn wait(
        &mut self,
        awaited: &Awaited,
        hurry: impl Future<Output = ()>,
    ) -> Result<Vec<Flow>> {
        let deadline = Instant::now() + LONGEST;
        let mut hurry = pin!(hurry);
        let mut best: Option<(u64, Vec<Flow>)> = None;
        loop {
            let (received, _) = self.received()?;
            let flows = self.receiver.watch.flows()?;
            let missing: u64 = flow_rows(&flows, &awaited.flows, 0)
                .iter()
                .map(|row| row.lost)
                .sum();
            if best.as_ref().is_none_or(|(least, _)| missing < *least) {
                best = Some((missing, flows));
            }
            let complete = awaited.have_come(&received) && missing == 0;
            if complete || self.disturbed.is_some() || Instant::now() >= deadline {
                return Ok(best.map(|(_, flows)| flows).unwrap_or_default());
            }
            tokio::select! {
                () = &mut hurry => {
                    let reason = "interrupted while frames may have been on their way";
                    self.disturbed = Some(reason.to_owned());
                }
                () = sleep(LOOK) => {}
            }
        }
    }

    /// Losses on the tester's own side: in the window, and of flows since the programs were
    /// attached. Flows are of what passed tc egress, whatever counts all frames.
    fn own_side(&mut self, end: &Mark, bypassed: bool) -> Result<[OwnSide; 2]> {
        let window = self.window;
        let nothing = || [OwnSide::default(), OwnSide::default()];
        if self.disturbed.is_some() {
            return Ok(nothing());
        }
        let Some(now) = self.unless_removed(Drops::read(&window.prelude.pair))? else {
            return Ok(nothing());
        };
        let unsent = |from: &Mark| if bypassed { 0 } else { unsent(from, end) };
        let before_the_stack = self.receiver.name.place == "xdp driver";
        let (begin, earlier) = (unsent(&window.begin), unsent(&window.prelude.earlier));
        Ok([
            window.drops.until(&now, begin, bypassed, before_the_stack),
            window
                .prelude
                .attached
                .until(&now, earlier, false, before_the_stack),
        ])
    }

    /// The value read, or `None` where an interface was removed before or while it was read, which
    /// disturbs the window.
    fn unless_removed<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        let Err(error) = read else {
            return read.map(Some);
        };
        let removed = match error.downcast_ref() {
            Some(LinkError::Unknown { .. }) => true,
            Some(LinkError::System { source, .. }) => source.raw_os_error() == Some(libc::ENODEV),
            _ => false,
        };
        if !removed {
            return Err(error);
        }
        let Pair { tx, rx } = &self.window.prelude.pair;
        let removed = [tx, rx]
            .into_iter()
            .find(|interface| if_nametoindex(interface.as_str()).is_err());
        self.disturbed.get_or_insert_with(|| {
            removed.map_or_else(
                || error.to_string(),
                |interface| format!("{interface} was removed"),
            )
        });
        Ok(None)
    }
}

/// Packets that offloads merged from frames whose number is not known.
fn unnumbered(reading: &Reading) -> u64 {
    reading.counters.untold[Untold::Number as usize]
}

fn sender_of(bypassed: bool, driver: &Driver) -> Sender {
    match (bypassed, &driver.by_priority) {
        (false, _) => Sender::Egress,
        (true, Some((names, _))) => Sender::DriverByPriority {
            counters: names.clone(),
        },
        (true, None) => Sender::Driver,
    }
}

/// Frames that passed tc egress between two moments and that the driver did not count as sent.
/// Egress is read before the driver at the first moment and after it at the second, so that these
/// are never too few.
fn unsent(from: &Mark, to: &Mark) -> u64 {
    total(&rise(&from.egress, &to.egress))
        .saturating_sub(to.driver.frames.saturating_sub(from.driver.frames))
}

/// True if frames left that did not pass tc egress. The driver was read after egress at the
/// beginning and before it at the end, so that without such frames it cannot have counted more, but
/// for those that waited in a queue when it began.
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

fn rises(before: &Named, after: &Named) -> Named {
    drop_rises("", before, after)
        .into_iter()
        .filter(|drop| drop.rise > 0)
        .map(|drop| (drop.counter, drop.rise))
        .collect()
}

#[cfg(test)]
mod tests;
