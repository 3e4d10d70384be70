//! The choice of a sender: the one in the kernel where it is needed and possible, else the one that
//! sleeps.

use std::sync::Arc;

use validator_core::pacing::workers::{self, CPU_CARRIES, Deal, rates};

use super::live_frames::{LiveFrames, longest};
use super::sendmmsg::Sendmmsg;
use super::{FlowControl, Source, TrafficError, TrafficPlan};
use crate::config::Sender;
use crate::driver::bpf::{CaseGenerator, XdpError};
use crate::driver::kernel::link::{self, LinkError, ethtool};
use crate::driver::kernel::netns::Namespace;
use crate::driver::kernel::realtime;

/// Frames a second that one thread with sendmmsg keeps up with, whatever else runs.
const SENDMMSG_CARRIES: u64 = 200_000;

/// Facts that decide the choice.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    /// Frames a second of each flow.
    frames: Vec<u64>,
    /// Octets of the longest.
    length: usize,
    /// The port's MTU.
    mtu: u32,
    /// True if it takes frames of XDP; `None` where the kernel does not tell.
    takes_frames: Option<bool>,
    /// CPUs that the sender may use.
    cpus: usize,
    /// Transmit queues of the port; `None` where the driver does not tell.
    queues: Option<u32>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    LiveFrames {
        cores: usize,
        /// Reason why the flows may not get their rates.
        short: Option<String>,
    },
    Sendmmsg {
        because: String,
    },
}

impl Facts {
    fn choose(&self, wanted: Sender) -> Result<Choice, String> {
        let lacks = lacks(self.length, self.mtu, self.takes_frames);
        let frames: u64 = self.frames.iter().sum();
        let rate = format!("{} kframe/s", frames / 1000);
        match (wanted, lacks) {
            (Sender::Sendmmsg, _) => Ok(Choice::Sendmmsg {
                because: "as the testbed says".into(),
            }),
            (Sender::LiveFrames, Some(lack)) if !lack.unsure => Err(lack.what),
            (Sender::Auto, _) if frames <= SENDMMSG_CARRIES => Ok(Choice::Sendmmsg {
                because: format!("{rate}: the sleeping sender leaves the CPU to others"),
            }),
            (Sender::Auto, Some(lack)) => Ok(Choice::Sendmmsg {
                because: format!("{rate} ask for live frames, but {}", lack.what),
            }),
            _ => Ok(self.live_frames(&rate)),
        }
    }

    /// As many workers as the flows want. One CPU is left to all else, where there is one. Two
    /// workers on one queue wait for each other, and together send less than one does.
    fn live_frames(&self, rate: &str) -> Choice {
        let cpus = self.cpus.saturating_sub(1).max(1);
        let queues = self.queues.map_or(cpus, |queues| queues.max(1) as usize);
        let deal = Deal::fewest(&self.frames, cpus.min(queues));
        let cores = deal.frames.len();
        let short = (!deal.is_carried()).then(|| {
            let wanted = workers::wanted(&self.frames);
            let queues = match self.queues {
                Some(queues) => format!("{queues} of these in use (`ethtool -L`)"),
                None => "nobody knows how many of these".into(),
            };
            format!(
                "{rate} want {wanted} CPUs of {} kframe/s, each with a transmit queue of its own; \
                 found {cpus} of {} CPUs free for it, and {queues}; the load may not be reached, \
                 and checks that need it are inconclusive then: give the port more of what is \
                 short, lower limits.load, or send longer frames (traffic.frame)",
                CPU_CARRIES / 1000,
                self.cpus,
            )
        });
        Choice::LiveFrames { cores, short }
    }
}

/// Reason why live frames may not leave at a port.
pub struct Lack {
    /// The reason.
    pub what: String,
    /// Live frames may leave all the same.
    pub unsure: bool,
}

/// Returns what keeps live frames of `length` octets from a port with that MTU. `takes_frames` says
/// whether the port takes frames of XDP; `None` where the kernel does not tell.
pub fn lacks(length: usize, mtu: u32, takes_frames: Option<bool>) -> Option<Lack> {
    let max = longest(mtu);
    let (what, unsure) = match takes_frames {
        _ if length > max => (
            format!(
                "live frames have at most {max} octets on a port with an MTU of {mtu}, found \
                 {length}"
            ),
            false,
        ),
        Some(true) => return None,
        Some(false) => (
            "the tx port takes no frames of XDP (NDO_XMIT; a veth does when its other end has a \
             program)"
                .into(),
            false,
        ),
        None => (
            "this kernel does not tell whether the tx port takes frames of XDP (Linux 6.3)".into(),
            true,
        ),
    };
    Some(Lack { what, unsure })
}

/// The sender that was chosen. Its report says why, where it is not the one in the kernel.
pub type Chosen = Box<dyn Source + Send>;

/// Opens the sender for `plan` in the network namespace of the tx port. `generator` is asked for
/// where it is needed; `warn` gets the reason why the flows may not reach their rates.
pub fn open(
    plan: &TrafficPlan<'_>,
    wanted: Sender,
    flow_control: FlowControl,
    generator: impl FnOnce() -> Result<Arc<CaseGenerator>, XdpError>,
    warn: impl FnOnce(String),
) -> Result<Chosen, TrafficError> {
    let state = link::state(
        &Namespace::current().map_err(LinkError::from)?,
        plan.interface,
    )?;
    let cpus = match plan.cpus {
        [] => realtime::allowed_cpus(),
        own => own.to_vec(),
    };
    let facts = Facts {
        frames: rates(plan.flows),
        length: plan
            .flows
            .iter()
            .map(|flow| flow.length)
            .max()
            .unwrap_or_default(),
        mtu: state.mtu,
        takes_frames: link::takes_frames(state.index).unwrap_or_default(),
        cpus: cpus.len(),
        queues: ethtool::queues(plan.interface).ok().map(|queues| queues.tx),
    };
    let not_possible = |lacks| TrafficError::NoLiveFrames {
        interface: plan.interface.to_owned(),
        lacks,
    };
    let because = match facts.choose(wanted).map_err(not_possible)? {
        Choice::Sendmmsg { because } => because,
        Choice::LiveFrames { cores, short } => {
            let generator = generator()?;
            let Some(reason) = generator.uncounted() else {
                let unaware = match flow_control {
                    FlowControl::Software(_) => None,
                    FlowControl::Unaware(reason) => Some(reason),
                };
                let cpus = &cpus[..cores.min(cpus.len())];
                let source = LiveFrames::open(plan, generator, cpus, unaware)?;
                short.map(warn);
                return Ok(Box::new(source));
            };
            // A frame that the kernel lost would be taken for the DUT's loss.
            let lacks = format!("what the kernel loses of them cannot be counted: {reason}");
            if wanted == Sender::LiveFrames {
                return Err(not_possible(lacks));
            }
            format!(
                "{} kframe/s ask for live frames, but {lacks}",
                facts.frames.iter().sum::<u64>() / 1000
            )
        }
    };
    let source = Sendmmsg::open(plan, flow_control)?;
    Ok(Box::new(source.because(because)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fast() -> Facts {
        Facts {
            frames: vec![2_000_000; 5],
            length: 1024,
            mtu: 1500,
            takes_frames: Some(true),
            cpus: 4,
            queues: Some(4),
        }
    }

    fn live_frames(cores: usize) -> Result<Choice, String> {
        Ok(Choice::LiveFrames { cores, short: None })
    }

    fn because(facts: &Facts, wanted: Sender) -> String {
        match facts.choose(wanted) {
            Ok(Choice::Sendmmsg { because }) => because,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn live_frames_are_taken_where_they_are_needed_and_possible() {
        assert_eq!(fast().choose(Sender::Auto), live_frames(2));
        let slow = Facts {
            frames: vec![119_500],
            ..fast()
        };
        assert_eq!(
            because(&slow, Sender::Auto),
            "119 kframe/s: the sleeping sender leaves the CPU to others"
        );
        assert_eq!(slow.choose(Sender::LiveFrames), live_frames(1));
        assert_eq!(because(&fast(), Sender::Sendmmsg), "as the testbed says");
    }

    /// Workers of 64 flows that want 128 million frames a second, and what is said of them.
    fn crowded(cpus: usize, queues: Option<u32>) -> (usize, Option<String>) {
        let facts = Facts {
            frames: vec![2_000_000; 64],
            cpus,
            queues,
            ..fast()
        };
        match facts.choose(Sender::Auto) {
            Ok(Choice::LiveFrames { cores, short }) => (cores, short),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_cpu_is_left_to_all_else_where_there_is_one() {
        let cores = |cpus| crowded(cpus, Some(64)).0;
        assert_eq!([1, 2, 3, 16].map(cores), [1, 1, 2, 15]);
    }

    #[test]
    fn workers_are_no_more_than_queues_and_no_more_than_the_flows_want() {
        let cores = |queues| crowded(64, queues).0;
        assert_eq!(
            [Some(1), Some(4), Some(64), None].map(cores),
            [1, 4, 22, 22]
        );
    }

    #[test]
    fn too_few_cpus_or_queues_are_named_before_anything_is_sent() {
        let (_, short) = crowded(16, Some(4));
        let short = short.unwrap();
        assert!(
            short.contains("128000 kframe/s want 22 CPUs of 6000 kframe/s"),
            "{short}"
        );
        assert!(short.contains("found 15 of 16 CPUs free for it"), "{short}");
        assert!(short.contains("4 of these in use"), "{short}");
        assert_eq!(crowded(64, Some(64)).1, None);
    }

    #[test]
    fn what_is_not_possible_is_named() {
        let long = Facts {
            length: 1519,
            ..fast()
        };
        let message =
            "live frames have at most 1518 octets on a port with an MTU of 1500, found 1519";
        assert_eq!(
            because(&long, Sender::Auto),
            format!("10000 kframe/s ask for live frames, but {message}")
        );
        assert_eq!(long.choose(Sender::LiveFrames), Err(message.into()));
        assert!(
            (Facts {
                length: 3409,
                mtu: 9000,
                ..fast()
            })
            .choose(Sender::LiveFrames)
            .unwrap_err()
            .contains("at most 3408 octets")
        );
        let closed = Facts {
            takes_frames: Some(false),
            ..fast()
        };
        assert!(because(&closed, Sender::Auto).contains("takes no frames of XDP"));
        assert!(closed.choose(Sender::LiveFrames).is_err());
        // An old kernel does not tell: nothing is risked without being asked to.
        let silent = Facts {
            takes_frames: None,
            ..fast()
        };
        assert!(because(&silent, Sender::Auto).contains("does not tell"));
        assert_eq!(silent.choose(Sender::LiveFrames), live_frames(2));
    }
}
