//! What was captured at a port.

use std::time::{Duration, SystemTime};

use pfc_ebpf::abi::flow::RecordHead;
use pfc_ebpf::units::Nanos;
use validator_core::engine::{Captured, CapturedFrame};

use crate::driver::kernel::clock;

/// Octets of frames that are kept: ten seconds of 1 Gbit/s.
const ROOM: usize = 1 << 30;
const HEAD: usize = size_of::<RecordHead>();

/// A capture.
pub struct Capture {
    captured: Captured,
    octets: usize,
    /// The same moment by both clocks.
    moment: (Nanos, SystemTime),
}

impl Capture {
    /// With nothing captured yet.
    pub fn begin() -> Self {
        Self {
            captured: Captured::default(),
            octets: 0,
            moment: (clock::now(), SystemTime::now()),
        }
    }

    /// Adds what the program kept of a frame.
    pub fn add(&mut self, item: &[u8]) {
        let Some((time, frame)) = record(item) else {
            return;
        };
        if self.octets + frame.len() > ROOM {
            self.captured.missed += 1;
            return;
        }
        self.octets += frame.len();
        self.captured.frames.push(CapturedFrame {
            at: self.at(time),
            octets: frame.to_vec(),
        });
    }

    /// All of it.
    pub fn captured(&self) -> Captured {
        self.captured.clone()
    }

    /// The wall time of a monotonic one.
    fn at(&self, time: Nanos) -> SystemTime {
        let (moment, wall) = self.moment;
        if time >= moment {
            wall + Duration::from_nanos(time - moment)
        } else {
            wall - Duration::from_nanos(moment - time)
        }
    }
}

/// Time of arrival and octets in a record of the program.
pub fn record(item: &[u8]) -> Option<(Nanos, &[u8])> {
    let (head, frame) = item.split_at_checked(HEAD)?;
    let time = Nanos::from_ne_bytes(*head.first_chunk()?);
    Some((time, frame))
}
