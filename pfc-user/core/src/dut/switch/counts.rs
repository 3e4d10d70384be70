//! Counters that the management of a switch shows of a port.

use pfc_ebpf::units::Priority;
use serde::Serialize;

use super::control::Control;

/// Frames of a port, from its start on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortCounts {
    /// Data frames that came in, by the priority that the switch gave them.
    pub received: [u64; Priority::COUNT],
    /// Data frames that left, or are leaving, by queue.
    pub sent: [u64; Priority::COUNT],
    /// Octets that came in here and still wait, at any port; no count, but what is so now.
    pub held: [u64; Priority::COUNT],
    /// Data frames for which the queue had no room.
    pub dropped: [u64; Priority::COUNT],
    /// PFC frames that came in, by class in their vector.
    pub pfc_received: [u64; Priority::COUNT],
    /// PFC frames that were sent, by class in their vector.
    pub pfc_sent: [u64; Priority::COUNT],
    /// PAUSE frames of 802.3x that came in.
    pub pause_received: u64,
}

impl PortCounts {
    /// A MAC control frame has come in.
    pub(super) fn control(&mut self, control: &Control) {
        match control {
            Control::Pause(_) => self.pause_received += 1,
            Control::Pfc { enabled, .. } => {
                for class in enabled.iter() {
                    self.pfc_received[class.index()] += 1;
                }
            }
        }
    }
}
