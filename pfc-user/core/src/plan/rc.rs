//! The plan of a repetition of an RC case.

use pfc_ebpf::wire::roce::{Bth, ICRC};
use serde::{Deserialize, Serialize};

use super::Nanos;
use crate::roce::build::AETH;

/// The choices for a repetition of an RC case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RcParameters {
    /// Retry count of the queue pair, 0 to 7.
    pub retry_count: u8,
    /// Local ACK time-out of the queue pair, 1 to 31.
    pub timeout: u8,
    /// Path MTU in octets: 256, 512, 1024, 2048 or 4096.
    pub path_mtu: u16,
}

/// One repetition of an RC case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RcPlan {
    /// Its name, unique in its case, such as `retry 2, time-out 18, PMTU 1024`.
    pub name: String,
    /// Retry count of the queue pair, 0 to 7. All are finite in the specification, 7 as well.
    pub retry_count: u8,
    /// Local ACK time-out of the queue pair, 1 to 31: 4.096 us * 2^n.
    pub timeout: u8,
    /// Path MTU in octets: 256, 512, 1024, 2048 or 4096; also the length of the READ.
    pub path_mtu: u16,
    /// R_Key of the READ.
    pub r_key: u32,
    /// Virtual address of the READ.
    pub address: u64,
    /// Requests that are dropped in the positive control before one is answered, at most
    /// `retry_count`.
    pub control_drops: u8,
}

impl RcPlan {
    /// T_tr for a local ACK time-out (9.7.6.1.3).
    pub const fn transport_timer(timeout: u8) -> Nanos {
        4096 << timeout
    }

    /// Length of the tester's answer to a READ, from the IP header on, without FCS.
    pub const fn answer_length(&self, is_ipv4: bool) -> usize {
        const UDP: usize = 8;
        let ip = if is_ipv4 { 20 } else { 40 };
        ip + UDP + Bth::LEN + AETH + self.path_mtu as usize + ICRC
    }

    /// READ requests that a conforming DUT sends in all.
    pub const fn requests(&self) -> usize {
        1 + self.retry_count as usize
    }

    /// Its least duration: that with a DUT that retries after exactly T_tr.
    pub fn shortest(&self) -> Nanos {
        // All requests, and the silence that has to follow the last one.
        (u64::from(self.control_drops) + u64::from(self.retry_count) + 4)
            * Self::transport_timer(self.timeout)
    }
}

impl Default for RcParameters {
    fn default() -> Self {
        Self {
            retry_count: 2,
            timeout: 18,
            path_mtu: 1024,
        }
    }
}
