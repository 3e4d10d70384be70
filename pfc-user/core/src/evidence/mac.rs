//! Counts that the MAC of a port keeps of received PAUSE/PFC frames: the second source beside the
//! XDP program, which sees none of them where the MAC keeps them.

use pfc_ebpf::units::{Nanos, Priority};
use serde::{Deserialize, Serialize};

use super::preflight::{FrameCounts, Pfc};

/// The counters of one port over a repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MacReport {
    /// The port: `tx` or `rx`.
    pub port: String,
    /// Interface.
    pub interface: String,
    /// Driver.
    pub driver: String,
    /// Age that a count may have when it is read. The first reading and the last were taken that
    /// long after what came before.
    pub lag: Nanos,
    /// Priorities with PFC enabled on the port, one a bit, where the kernel reports them.
    pub enabled: Option<u8>,
    /// Times at which the counters were read.
    pub readings: Vec<Reading>,
    /// The counters.
    pub counters: Vec<MacCounter>,
    /// The reason why the counters are of no use, if they are not.
    pub error: Option<String>,
}

/// One time at which all counters were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The step that began then, such as `storm`; `end` for the last.
    pub before: String,
    /// Time.
    pub time: Nanos,
}

/// Everything that counts frames on a port, at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MacReading {
    /// Driver.
    pub driver: String,
    /// Its private counters.
    pub private: Vec<(String, u64)>,
    /// aPAUSEMACCtrlFrames.
    pub pause: FrameCounts,
    /// aMACControlFrames.
    pub mac_control: FrameCounts,
    /// PFC settings and counters.
    pub pfc: Option<Pfc>,
}

/// A counter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MacCounter {
    /// Its name there.
    pub name: String,
    /// Its source.
    pub source: Source,
    /// The frames it is about.
    pub subject: Subject,
    /// Frames that make it rise.
    pub frames: Frames,
    /// Counters of one array, a priority each, have the same.
    pub array: Option<String>,
    /// Proof, from earlier in the run, that it counts at all.
    pub alive: Option<String>,
    /// Its value at each reading.
    pub values: Vec<u64>,
}

/// Source of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The driver's private statistics (`ethtool -S`).
    Driver,
    /// The standard pause statistics (`ethtool -I -a`).
    Pause,
    /// The standard MAC control statistics (`ethtool -S --groups eth-ctrl`).
    MacControl,
    /// The kernel's PFC structure (`dcb -s pfc show`).
    Dcb,
}

/// Subject of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// 802.3x PAUSE; with some drivers PFC as well.
    Pause,
    /// PFC for that priority.
    Priority(Priority),
    /// MAC control frames of any kind.
    Any,
}

/// Frames that make a counter rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frames {
    /// XOFF alone: a rise proves one, and no rise of a counter that is alive that there was none.
    Xoff,
    /// XON alone.
    Xon,
    /// XOFF and XON together: no rise proves that there was none, and a rise proves nothing.
    Either,
    /// An effect of XOFF alone, such as time in pause: a rise proves one, and no rise proves
    /// nothing.
    Effect,
}

impl MacCounter {
    /// Rise over all readings. `None` if the counter was reset meanwhile or never read.
    pub fn rise(&self) -> Option<u64> {
        let falls = self.values.windows(2).any(|pair| pair[1] < pair[0]);
        if falls {
            None
        } else {
            Some(self.values.last()? - self.values.first()?)
        }
    }
}
