//! The ports that a repetition is planned for.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, LineRate, Priority};

use crate::plan::{Nanos, PortName};

/// The testbed's ports, and how the DUT sorts their frames.
#[derive(Clone, Debug)]
pub struct PortContext {
    /// Speed of the ports.
    pub line_rate: LineRate,
    /// Longest time that the DUT has to obey a pause frame.
    pub max_response: Nanos,
    /// Longest time for which the DUT has to hold a frame.
    pub max_residence: Nanos,
    /// Share of the line rate that counts as 100 %.
    pub load: f64,
    /// Field that gives a frame's priority.
    pub trust: Trust,
    /// Priority by DSCP.
    pub dscp_map: [Priority; Dscp::COUNT],
    /// True: frames are tagged although the DSCP is trusted.
    pub vlan: bool,
    /// Sending ports beside tx.
    pub senders: Vec<PortName>,
    /// Receiving ports beside rx.
    pub receivers: Vec<PortName>,
    /// Length of the shortest test frame: headers and stamp, in octets without FCS.
    pub shortest: usize,
    /// True: the DUT is declared to obey PFC from 00-00-00-00-00-00.
    pub zero_source: bool,
    /// The DUT's lossless priorities, where the tester cannot configure others.
    pub fixed_lossless: Option<Vec<Priority>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    impl PortContext {
        /// A port of that speed; the DSCP is trusted, and the priority is the DSCP mod 8.
        pub(in crate::cases::pfc) fn at(bits_per_second: u64) -> Self {
            Self {
                line_rate: LineRate::from_bits_per_second(bits_per_second).unwrap(),
                max_response: 1_000_000,
                max_residence: 1_000_000_000,
                load: 1.0,
                trust: Trust::Dscp,
                dscp_map: std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8)),
                vlan: false,
                senders: vec![PortName::new("tx2".into())],
                receivers: vec![PortName::new("rx2".into())],
                shortest: 60,
                zero_source: true,
                fixed_lossless: None,
            }
        }
    }
}
