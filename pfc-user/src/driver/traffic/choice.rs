//! The choice of a sender: the one in the kernel where it is needed and possible, else the one that
//! sleeps.

use std::sync::Arc;

use validator_core::plan::FlowPlan;

use super::live_frames::{LiveFrames, longest};
use super::sendmmsg::Sendmmsg;
use super::{FlowControl, Source, TrafficError, TrafficPlan};
use crate::config::Sender;
use crate::driver::bpf::{CaseGenerator, XdpError};
use crate::driver::kernel::link::{self, LinkError};
use crate::driver::kernel::netns::Namespace;
use crate::driver::kernel::realtime;

/// Frames a second that one thread with sendmmsg keeps up with, whatever else runs.
const SENDMMSG_CARRIES: u64 = 200_000;
/// Frames a second that one core of the sender in the kernel keeps up with.
const CORE_CARRIES: u64 = 6_000_000;

/// Facts that decide the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    /// Frames a second, of all flows.
    frames: u64,
    /// Octets of the longest.
    length: usize,
    /// The port's MTU.
    mtu: u32,
    /// True if it takes frames of XDP; `None` where the kernel does not tell.
    takes_frames: Option<bool>,
    /// CPUs that the sender may use.
    cpus: usize,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    LiveFrames { cores: usize },
    Sendmmsg { because: String },
}

impl Facts {
    fn choose(&self, wanted: Sender) -> Result<Choice, String> {
        let lacks = lacks(self.length, self.mtu, self.takes_frames);
        let rate = format!("{} kframe/s", self.frames / 1000);
        match (wanted, lacks) {
            (Sender::Sendmmsg, _) => Ok(Choice::Sendmmsg {
                because: "as the testbed says".into(),
            }),
            (Sender::LiveFrames, Some(lack)) if !lack.unsure => Err(lack.what),
            (Sender::Auto, _) if self.frames <= SENDMMSG_CARRIES => Ok(Choice::Sendmmsg {
                because: format!("{rate}: the sleeping sender leaves the CPU to others"),
            }),
            (Sender::Auto, Some(lack)) => Ok(Choice::Sendmmsg {
                because: format!("{rate} ask for live frames, but {}", lack.what),
            }),
            // One CPU is left to all else, where there is one.
            _ => Ok(Choice::LiveFrames {
                cores: self
                    .frames
                    .div_ceil(CORE_CARRIES)
                    .clamp(1, self.cpus.saturating_sub(1).max(1) as u64)
                    as usize,
            }),
        }
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
/// where it is needed.
pub fn open(
    plan: &TrafficPlan<'_>,
    wanted: Sender,
    flow_control: FlowControl,
    generator: impl FnOnce() -> Result<Arc<CaseGenerator>, XdpError>,
) -> Result<Chosen, TrafficError> {
    let state = link::state(
        &Namespace::current().map_err(LinkError::from)?,
        plan.interface,
    )?;
    let cpus = realtime::allowed_cpus();
    let facts = Facts {
        frames: plan.flows.iter().map(FlowPlan::frames).sum(),
        length: plan
            .flows
            .iter()
            .map(|flow| flow.length)
            .max()
            .unwrap_or_default(),
        mtu: state.mtu,
        takes_frames: link::takes_frames(state.index).unwrap_or_default(),
        cpus: cpus.len(),
    };
    let not_possible = |lacks| TrafficError::NoLiveFrames {
        interface: plan.interface.to_owned(),
        lacks,
    };
    let because = match facts.choose(wanted).map_err(not_possible)? {
        Choice::Sendmmsg { because } => because,
        Choice::LiveFrames { cores } => {
            let generator = generator()?;
            let Some(reason) = generator.uncounted() else {
                let unaware = match flow_control {
                    FlowControl::Software(_) => None,
                    FlowControl::Unaware(reason) => Some(reason),
                };
                let source =
                    LiveFrames::open(plan, generator, &cpus[..cores.min(cpus.len())], unaware)?;
                return Ok(Box::new(source));
            };
            // A frame that the kernel lost would be taken for the DUT's loss.
            let lacks = format!("what the kernel loses of them cannot be counted: {reason}");
            if wanted == Sender::LiveFrames {
                return Err(not_possible(lacks));
            }
            format!(
                "{} kframe/s ask for live frames, but {lacks}",
                facts.frames / 1000
            )
        }
    };
    let source = Sendmmsg::open(plan, flow_control)?;
    Ok(Box::new(source.because(because)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Facts = Facts {
        frames: 10_000_000,
        length: 1024,
        mtu: 1500,
        takes_frames: Some(true),
        cpus: 4,
    };

    fn because(facts: Facts, wanted: Sender) -> String {
        match facts.choose(wanted) {
            Ok(Choice::Sendmmsg { because }) => because,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn live_frames_are_taken_where_they_are_needed_and_possible() {
        assert_eq!(
            FAST.choose(Sender::Auto),
            Ok(Choice::LiveFrames { cores: 2 })
        );
        let slow = Facts {
            frames: 119_500,
            ..FAST
        };
        assert_eq!(
            because(slow, Sender::Auto),
            "119 kframe/s: the sleeping sender leaves the CPU to others"
        );
        assert_eq!(
            slow.choose(Sender::LiveFrames),
            Ok(Choice::LiveFrames { cores: 1 })
        );
        assert_eq!(because(FAST, Sender::Sendmmsg), "as the testbed says");
    }

    #[test]
    fn one_cpu_is_left_to_all_else_where_there_is_one() {
        let cores = |cpus| match (Facts {
            frames: u64::MAX,
            cpus,
            ..FAST
        })
        .choose(Sender::Auto)
        {
            Ok(Choice::LiveFrames { cores }) => cores,
            other => panic!("{other:?}"),
        };
        assert_eq!([1, 2, 3, 16].map(cores), [1, 1, 2, 15]);
    }

    #[test]
    fn what_is_not_possible_is_named() {
        let long = Facts {
            length: 1519,
            ..FAST
        };
        let message =
            "live frames have at most 1518 octets on a port with an MTU of 1500, found 1519";
        assert_eq!(
            because(long, Sender::Auto),
            format!("10000 kframe/s ask for live frames, but {message}")
        );
        assert_eq!(long.choose(Sender::LiveFrames), Err(message.into()));
        assert!(
            (Facts {
                length: 3409,
                mtu: 9000,
                ..FAST
            })
            .choose(Sender::LiveFrames)
            .unwrap_err()
            .contains("at most 3408 octets")
        );
        let closed = Facts {
            takes_frames: Some(false),
            ..FAST
        };
        assert!(because(closed, Sender::Auto).contains("takes no frames of XDP"));
        assert!(closed.choose(Sender::LiveFrames).is_err());
        // An old kernel does not tell: nothing is risked without being asked to.
        let silent = Facts {
            takes_frames: None,
            ..FAST
        };
        assert!(because(silent, Sender::Auto).contains("does not tell"));
        assert_eq!(
            silent.choose(Sender::LiveFrames),
            Ok(Choice::LiveFrames { cores: 2 })
        );
    }
}
