//! The configuration of a switch.

use std::num::NonZeroU8;
use std::str::FromStr;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};
use serde::Deserialize;
use thiserror::Error;

use super::table::MAX_PORTS;

/// The order in which a port serves the priorities that have frames and are not paused (IEEE 802.1Q
/// clause 8.6.8 and its Annex on scheduling leave it to the switch).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The highest priority first.
    Strict,
    /// One frame of each priority in turn.
    #[default]
    RoundRobin,
    /// Octets of each priority in turn, as many as its weight says (deficit round robin).
    Drr,
}

/// A set of priorities, bit n for priority n: the shape of a class-enable vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priorities(pub u8);

/// Shares of the octets that [`Scheduler::Drr`] sends, by priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights([NonZeroU8; Priority::COUNT]);

/// Configuration of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Speed of each port.
    pub line_rate: LineRate,
    /// Priorities with PFC enabled; the others are lossy.
    pub lossless: Priorities,
    /// Field that gives a frame's priority.
    pub trust: Trust,
    /// Priority by DSCP.
    pub dscp_to_priority: [Priority; Dscp::COUNT],
    /// Octets held of all priorities and ports; what comes on top is dropped.
    pub buffer: u64,
    /// Octets held of a lossless priority that came in at one port, above which that sends XOFF.
    pub xoff: u64,
    /// Octets at or below which XON is sent.
    pub xon: u64,
    /// False: no XON is sent. XOFF is then not repeated, and runs out.
    pub sends_xon: bool,
    /// The pause time that XOFF asks for. It is sent again each third of it.
    pub xoff_quanta: Quanta,
    /// Octets above `xoff` that are still taken: what is on its way when XOFF is sent.
    pub headroom: u64,
    /// Octets of a lossy priority that wait at one port; what comes on top is dropped.
    pub lossy_queue: u64,
    /// The order in which priorities are served.
    pub scheduler: Scheduler,
    /// Their shares, where the order is by octets.
    pub weights: Weights,
    /// The address of each port: the source of PFC frames.
    pub macs: Vec<[u8; 6]>,
}

impl Scheduler {
    /// All, in the order of their documentation.
    pub const ALL: [Self; 3] = [Self::Strict, Self::RoundRobin, Self::Drr];

    /// The word as it stands in options and testbeds.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::RoundRobin => "round-robin",
            Self::Drr => "drr",
        }
    }
}

impl FromStr for Scheduler {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.word() == text);
        found.ok_or_else(|| format!("expected strict, round-robin or drr, found {text:?}"))
    }
}

/// A configuration that no switch can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// XON would be sent before XOFF.
    #[error("xon must not be above xoff ({xoff} octets), found {xon}: lower xon")]
    Thresholds {
        /// Configured threshold.
        xoff: u64,
        /// Configured threshold.
        xon: u64,
    },
    /// Frames would be dropped before XOFF.
    #[error("buffer must be above xoff ({xoff} octets), found {buffer}: lower xoff")]
    Buffer {
        /// Configured threshold.
        xoff: u64,
        /// Configured size.
        buffer: u64,
    },
    /// Nothing is shared by weight.
    #[error("weights are those of the scheduler drr, found {}: leave them out", .0.word())]
    Weights(Scheduler),
    /// Too few ports, or too many.
    #[error("a switch has 2 to {MAX_PORTS} ports, found {0}")]
    Ports(usize),
}

impl Default for Weights {
    fn default() -> Self {
        Self([NonZeroU8::MIN; Priority::COUNT])
    }
}

impl Weights {
    /// The weight of a priority.
    pub fn of(self, priority: Priority) -> u64 {
        self.0[priority.index()].get().into()
    }
}

impl FromStr for Weights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let weights: Result<Vec<NonZeroU8>, _> = text.split(',').map(str::parse).collect();
        let weights = weights.ok().and_then(|weights| weights.try_into().ok());
        let expected = "expected 8 weights of 1 to 255, separated by commas, found";
        weights
            .map(Self)
            .ok_or_else(|| format!("{expected} {text:?}"))
    }
}

impl Priorities {
    /// All eight.
    pub const ALL: Self = Self(0xff);

    /// The set of `priority` alone.
    pub const fn only(priority: Priority) -> Self {
        Self(1 << priority.get())
    }

    /// True if `priority` is in the set.
    pub const fn contains(self, priority: Priority) -> bool {
        self.0 & Self::only(priority).0 != 0
    }

    /// True if there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds `priority`.
    pub const fn insert(&mut self, priority: Priority) {
        self.0 |= Self::only(priority).0;
    }

    /// Takes `priority` out.
    pub const fn remove(&mut self, priority: Priority) {
        self.0 &= !Self::only(priority).0;
    }

    /// The priorities that are not in the set.
    pub const fn others(self) -> Self {
        Self(!self.0)
    }

    /// The priorities in both sets.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The priorities in the set, lowest first.
    pub fn iter(self) -> impl Iterator<Item = Priority> {
        Priority::all().filter(move |priority| self.contains(*priority))
    }
}

impl FromIterator<Priority> for Priorities {
    fn from_iter<I: IntoIterator<Item = Priority>>(priorities: I) -> Self {
        let one_more = |set: Self, priority| Self(set.0 | Self::only(priority).0);
        priorities.into_iter().fold(Self::default(), one_more)
    }
}

impl SwitchConfig {
    /// A switch at `line_rate` with these lossless priorities, that trusts DSCP (priority = DSCP
    /// mod 8) and serves priorities in turn; XOFF of the longest pause above 512 KiB, XON at 256
    /// KiB, headroom 1 MiB, lossy queues of 4 MiB, no bound on all together; two ports.
    pub fn new(line_rate: LineRate, lossless: Priorities) -> Self {
        Self {
            line_rate,
            lossless,
            trust: Trust::Dscp,
            dscp_to_priority: std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8)),
            buffer: u64::MAX,
            xoff: 512 << 10,
            xon: 256 << 10,
            sends_xon: true,
            xoff_quanta: Quanta::MAX,
            headroom: 1 << 20,
            lossy_queue: 4 << 20,
            scheduler: Scheduler::default(),
            weights: Weights::default(),
            macs: vec![[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
        }
    }

    /// An error when the thresholds contradict each other, or there are too few or many ports.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self {
            xoff,
            xon,
            buffer,
            weights,
            scheduler,
            ..
        } = *self;
        match self.macs.len() {
            _ if xon > xoff => Err(ConfigError::Thresholds { xoff, xon }),
            _ if buffer <= xoff => Err(ConfigError::Buffer { xoff, buffer }),
            _ if weights != Weights::default() && scheduler != Scheduler::Drr => {
                Err(ConfigError::Weights(scheduler))
            }
            2..=MAX_PORTS => Ok(()),
            ports => Err(ConfigError::Ports(ports)),
        }
    }
}
