//! PAUSE and PFC frames: single frames and storms.

use std::sync::Arc;

use pfc_ebpf::units::Nanos;
use pfc_ebpf::wire::mac_control::MacControl;
use validator_core::evidence::pfc::Departure;

use crate::driver::kernel::clock;
use crate::driver::kernel::packet::{self, PacketError, PacketSocket};

/// A port without room for a single frame for this long has no link.
pub const PATIENCE: Nanos = 200_000_000;

/// Sends the frames of a storm.
pub trait Transmit: Send + Sync {
    /// Sends one frame, and returns the times between which it left.
    fn send(&self, frame: &MacControl) -> Result<Departure, PacketError>;
}

/// Sends PAUSE and PFC frames on one port.
#[derive(Debug)]
pub struct ControlSender {
    socket: PacketSocket,
    source: [u8; 6],
}

impl ControlSender {
    /// Opens `interface` of the calling thread's network namespace; frames carry the source address
    /// `source`.
    pub fn open(interface: &str, source: [u8; 6]) -> Result<Self, PacketError> {
        Ok(Self {
            socket: PacketSocket::open(interface)?,
            source,
        })
    }

    /// Sends the frame that `emit` makes with the source address, as soon as there is room for it,
    /// within [`PATIENCE`]; returns the times between which it left, and how often there was no
    /// room.
    pub fn send_with_room<F: AsRef<[u8]>>(
        &self,
        emit: impl FnOnce([u8; 6]) -> F,
    ) -> Result<(Departure, u64), PacketError> {
        let frame = emit(self.source);
        packet::when_there_is_room(PATIENCE, || self.send_octets(frame.as_ref()))
    }

    /// Sends one frame, and returns the times between which it left. It is not tried again.
    pub fn send(&self, frame: &MacControl) -> Result<Departure, PacketError> {
        self.send_octets(&frame.emit(self.source))
    }

    fn send_octets(&self, frame: &[u8]) -> Result<Departure, PacketError> {
        let before = clock::now();
        self.socket.send(frame)?;
        Ok(Departure {
            before,
            after: clock::now(),
        })
    }
}

impl Transmit for ControlSender {
    fn send(&self, frame: &MacControl) -> Result<Departure, PacketError> {
        Self::send(self, frame)
    }
}

impl<T: Transmit> Transmit for Arc<T> {
    fn send(&self, frame: &MacControl) -> Result<Departure, PacketError> {
        T::send(self, frame)
    }
}
