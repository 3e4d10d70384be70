//! What is sent and received in a window, read so that each frame in flight is on the safe side.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::net::if_::if_nametoindex;
use tokio::time::{Instant, sleep};

use super::ports::{Ports, without_carrier};
use crate::driver::kernel::link::{
    self, LinkError, drop_rises, queue_drops, softnet_dropped, statistics, transmitted,
};
use crate::driver::kernel::netns::Namespace;
use crate::nic;
use crate::watch::args::Pair;
use crate::watch::loss::{
    Counts, OwnSide, Report, Sender, WITHOUT_PRIORITY, Window, counts, driver_priorities,
    flow_rows, judge,
};

/// Longest wait for frames that were sent (`CHECKS.md` has the same bound for waits).
const LONGEST: Duration = Duration::from_secs(2);
/// From one look at what has come to the next.
const LOOK: Duration = Duration::from_millis(1);
/// Name of the stack's own drops, which no interface counts.
const SOFTNET: &str = "the stack's backlog (softnet_stat), of all interfaces";

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
        Ok(Self {
            frames,
            by_priority: driver_priorities(&private),
        })
    }

    fn counts(&self) -> Counts {
        match self.by_priority {
            Some((_, by_priority)) => {
                std::array::from_fn(|place| by_priority.get(place).copied().unwrap_or(0))
            }
            None => [self.frames, 0, 0, 0, 0, 0, 0, 0, 0],
        }
    }
}

/// What the sending side had counted at a moment: egress before the driver, or at the end of a window the other way round.
#[derive(Clone, Debug)]
struct Mark {
    egress: Counts,
    driver: Driver,
}

/// What tells of drops on the tester's own side, as it stood at a moment.
#[derive(Clone, Debug)]
pub struct Drops {
    sender: Named,
    queues: Named,
    receiver: Named,
    softnet: u64,
}

impl Drops {
    /// As it stands now. To be read before the programs are attached, which may itself make the NICs drop frames.
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

    /// What has been dropped since then until `now`, where `unsent` frames did not leave. Frames
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

/// How often the carriers of both ports have come or gone: the kernel tells of a change only a while later, and not of one that was
/// undone by then.
fn carrier_changes(pair: &Pair) -> Result<[u32; 2]> {
    let namespace = Namespace::current()?;
    Ok([
        link::carrier_changes(&namespace, &pair.tx)?,
        link::carrier_changes(&namespace, &pair.rx)?,
    ])
}

/// What is looked at before a window opens, to know what may be in flight when it does.
pub struct Prelude {
    pair: Pair,
    attached: Drops,
    carriers: [u32; 2],
    earlier: Mark,
    /// How old the driver's counts may be.
    lag: Duration,
}

impl Prelude {
    /// Begins to look; `attached` is of before the programs were attached.
    pub fn begin(pair: &Pair, ports: &Ports, attached: Drops) -> Result<Self> {
        let lag = Duration::from_nanos(nic::lag(
            &link::state(&Namespace::current()?, &pair.tx)?.driver,
        ));
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

    /// Whether one of the ports is gone, so that no window can open.
    pub fn in_vain(&self, ports: &Ports) -> bool {
        in_vain(&self.pair, ports)
    }

    /// Opens the window, the longest latency after it began; and how long after that [`LossWindow::settle`] is due.
    pub fn open(self, ports: &Ports) -> Result<(LossWindow, Duration)> {
        let Self {
            pair,
            attached,
            carriers,
            earlier,
            lag,
        } = self;
        // Before anything that is counted: what is dropped from now on may be of the window.
        let drops = Drops::read(&pair)?;
        // Received before sent: a frame between the two counts as one in flight, never as lost.
        let received = counts(&ports.find(&pair.rx, false).read()?);
        let egress = counts(&ports.find(&pair.tx, true).read()?);
        let begin = Mark {
            egress,
            driver: Driver::read(&pair.tx)?,
        };
        Ok((
            LossWindow {
                pair,
                attached,
                carriers,
                earlier,
                begin,
                received,
                drops,
            },
            lag,
        ))
    }
}

/// A window that is open.
pub struct LossWindow {
    pair: Pair,
    attached: Drops,
    carriers: [u32; 2],
    earlier: Mark,
    begin: Mark,
    received: Counts,
    drops: Drops,
}

impl LossWindow {
    /// Reads what the driver had counted when the window opened, now that it says so: an older count would make frames from before the
    /// window some of those that were sent in it.
    pub fn settle(&mut self) -> Result<()> {
        self.begin.driver = Driver::read(&self.pair.tx)?;
        Ok(())
    }

    /// Whether one of the ports is gone.
    pub fn in_vain(&self, ports: &Ports) -> bool {
        in_vain(&self.pair, ports)
    }

    /// Closes the window, waits for what is in flight, and judges; `hurry` ends the wait.
    pub async fn end(self, ports: &Ports, hurry: impl Future<Output = ()>) -> Result<Report> {
        let Pair { tx, rx } = &self.pair;
        let (sender, receiver) = (ports.find(tx, true), ports.find(rx, false));
        let mut disturbed = [sender, receiver].into_iter().find_map(|port| {
            let gone = port
                .gone()
                .then(|| format!("{} was removed", port.name.interface));
            gone.or_else(|| port.disturbed.clone())
        });
        if disturbed.is_none()
            && let Some(now) =
                unless_removed(&self.pair, carrier_changes(&self.pair), &mut disturbed)?
        {
            let changes = self.carriers.into_iter().zip(now).zip([sender, receiver]);
            disturbed = changes.into_iter().find_map(|((before, now), port)| {
                (now != before).then(|| without_carrier(&port.name.interface))
            });
        }
        let driver = |last: &Driver, disturbed: &mut Option<String>| {
            let read = unless_removed(&self.pair, Driver::read(tx), disturbed);
            read.map(|read| read.unwrap_or_else(|| last.clone()))
        };
        let driver_end = driver(&self.begin.driver, &mut disturbed)?;
        let end = Mark {
            egress: counts(&sender.read()?),
            driver: driver_end,
        };
        let bypassed = bypassed(&self.earlier, &self.begin, &end);
        let of = |mark: &Mark| {
            if bypassed {
                mark.driver.counts()
            } else {
                mark.egress
            }
        };
        let sent = rise(&of(&self.begin), &of(&end));
        let flows_sent = sender.flows()?;

        let deadline = Instant::now() + LONGEST;
        let mut hurry = pin!(hurry);
        let mut best: Option<(u64, Vec<_>)> = None;
        loop {
            let received = rise(&self.received, &counts(&receiver.read()?));
            let flows = receiver.flows()?;
            let missing: u64 = flow_rows(&flows, &flows_sent, 0)
                .iter()
                .map(|row| row.lost)
                .sum();
            // Of a flow that goes on, a frame that was overtaken is missing for a moment.
            if best.as_ref().is_none_or(|(least, _)| missing < *least) {
                best = Some((missing, flows));
            }
            let come = if bypassed && end.driver.by_priority.is_none() {
                total(&received) >= total(&sent)
            } else {
                covers(&received, &sent)
            };
            if (come && missing == 0) || disturbed.is_some() || Instant::now() >= deadline {
                break;
            }
            tokio::select! {
                () = &mut hurry => disturbed = Some("interrupted while frames may have been on their way".to_owned()),
                () = sleep(LOOK) => {}
            }
        }
        let received = rise(&self.received, &counts(&receiver.read()?));
        let last = Mark {
            egress: counts(&sender.read()?),
            driver: driver(&end.driver, &mut disturbed)?,
        };
        let flows_lost = sender.read()?.counters.flows_lost + receiver.read()?.counters.flows_lost;
        let (mut own, mut own_of_flows) = (OwnSide::default(), OwnSide::default());
        if disturbed.is_none()
            && let Some(now) = unless_removed(&self.pair, Drops::read(&self.pair), &mut disturbed)?
        {
            let unsent = |from: &Mark| if bypassed { 0 } else { unsent(from, &end) };
            let before_the_stack = receiver.name.place == "xdp driver";
            own = self
                .drops
                .until(&now, unsent(&self.begin), bypassed, before_the_stack);
            // Flows are of what passed tc egress, whoever counts all.
            own_of_flows =
                self.attached
                    .until(&now, unsent(&self.earlier), false, before_the_stack);
        }
        let window = Window {
            sender: match (bypassed, end.driver.by_priority) {
                (false, _) => Sender::Egress,
                (true, Some((names, _))) => Sender::DriverByPriority {
                    counters: names.to_owned(),
                },
                (true, None) => Sender::Driver {
                    counter: "tx_packets".to_owned(),
                },
            },
            before: rise(&of(&self.earlier), &of(&self.begin)),
            after: rise(&of(&end), &of(&last)),
            sent,
            received,
            own,
            for_the_device: rise(&self.begin.egress, &end.egress)[WITHOUT_PRIORITY],
            tags_hidden: receiver.tags_hidden,
            flows_sent,
            flows_received: best.map(|(_, flows)| flows).unwrap_or_default(),
            own_of_flows,
            flows_lost,
            disturbed,
        };
        Ok(judge(tx, rx, &window))
    }
}

fn in_vain(pair: &Pair, ports: &Ports) -> bool {
    ports.find(&pair.tx, true).gone() || ports.find(&pair.rx, false).gone()
}

/// What was read, or `None` where an interface went before or while it was looked at, which disturbs the window.
fn unless_removed<T>(
    pair: &Pair,
    read: Result<T>,
    disturbed: &mut Option<String>,
) -> Result<Option<T>> {
    let Err(error) = read else {
        return read.map(Some);
    };
    let gone = match error.downcast_ref() {
        Some(LinkError::Unknown { .. }) => true,
        Some(LinkError::System { source, .. }) => source.raw_os_error() == Some(libc::ENODEV),
        _ => false,
    };
    if !gone {
        return Err(error);
    }
    let removed = [&pair.tx, &pair.rx]
        .into_iter()
        .find(|interface| if_nametoindex(interface.as_str()).is_err());
    disturbed.get_or_insert_with(|| {
        removed.map_or_else(
            || error.to_string(),
            |interface| format!("{interface} was removed"),
        )
    });
    Ok(None)
}

/// Frames that passed tc egress between two moments and that the driver did not count as sent.
/// Egress is read before the driver at the first moment and after it at the second, so that these
/// are never too few.
fn unsent(from: &Mark, to: &Mark) -> u64 {
    total(&rise(&from.egress, &to.egress))
        .saturating_sub(to.driver.frames.saturating_sub(from.driver.frames))
}

/// Whether frames left that did not pass tc egress. The driver was read after egress at the
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

fn covers(received: &Counts, sent: &Counts) -> bool {
    received
        .iter()
        .zip(sent)
        .all(|(received, sent)| received >= sent)
}

fn rises(before: &Named, after: &Named) -> Named {
    drop_rises("", before, after)
        .into_iter()
        .filter(|drop| drop.rise > 0)
        .map(|drop| (drop.counter, drop.rise))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drops(sender: u64, queue: u64, receiver: u64, softnet: u64) -> Drops {
        let named = |name: &str, value| vec![(name.to_owned(), value)];
        Drops {
            sender: named("sender", sender),
            queues: named("queue", queue),
            receiver: named("receiver", receiver),
            softnet,
        }
    }

    #[test]
    fn each_place_is_set_off_where_the_frames_passed_it() {
        let (before, now) = (drops(1, 10, 100, 1000), drops(3, 15, 107, 1011));
        let own = |bypassed, before_the_stack| before.until(&now, 9, bypassed, before_the_stack);
        let named = |all: &[(&str, u64)]| {
            all.iter()
                .map(|(name, rise)| ((*name).to_owned(), *rise))
                .collect::<Vec<_>>()
        };
        let (with_queue, without) = (
            named(&[("sender", 2), ("queue", 5)]),
            named(&[("sender", 2)]),
        );
        let (nic, with_stack) = (
            named(&[("receiver", 7)]),
            named(&[("receiver", 7), (SOFTNET, 11)]),
        );
        assert_eq!(
            own(false, true),
            OwnSide {
                sender: with_queue.clone(),
                unsent: 9,
                receiver: nic.clone()
            }
        );
        assert_eq!(
            own(false, false),
            OwnSide {
                sender: with_queue,
                unsent: 9,
                receiver: with_stack
            }
        );
        assert_eq!(
            own(true, true),
            OwnSide {
                sender: without,
                unsent: 9,
                receiver: nic
            }
        );
        assert_eq!(
            before.until(&before, 0, false, false),
            OwnSide::default(),
            "what did not rise is not named"
        );
    }

    #[test]
    fn what_did_not_leave_is_told_from_what_did_not_pass_egress() {
        let mark = |egress, frames| Mark {
            egress: [egress, 0, 0, 0, 0, 0, 0, 0, 0],
            driver: Driver {
                frames,
                by_priority: None,
            },
        };
        let (earlier, begin) = (mark(0, 0), mark(10, 4));
        assert_eq!(
            (
                unsent(&begin, &mark(110, 104)),
                bypassed(&earlier, &begin, &mark(110, 104))
            ),
            (0, false)
        );
        assert_eq!(
            (
                unsent(&begin, &mark(110, 94)),
                bypassed(&earlier, &begin, &mark(110, 94))
            ),
            (10, false)
        );
        // Six of before the window were waiting when it began, or left by another way: not more than passed egress before it.
        assert_eq!(
            (
                unsent(&begin, &mark(110, 110)),
                bypassed(&earlier, &begin, &mark(110, 110))
            ),
            (0, false)
        );
        assert!(bypassed(&earlier, &begin, &mark(110, 115)));
    }
}
