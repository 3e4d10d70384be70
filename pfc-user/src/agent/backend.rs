//! What an agent's server drives.

use std::time::Duration;

use super::protocol::{Channel, Completion, Device, Failure, OpenChannel, QueuePair, Read};

/// An adapter's port with at most one channel. Dropping it gives everything back.
pub trait Backend: Send {
    /// What it is.
    fn device(&self) -> Device;
    /// Makes a queue pair and brings it to RTS; there is none at that time.
    fn open(&mut self, channel: &OpenChannel) -> Result<Channel, Failure>;
    /// Posts a READ; there is a channel at that time, as for all that follow.
    fn post_read(&mut self, read: &Read) -> Result<(), Failure>;
    /// Waits at most so long for completions, and takes those that are there.
    fn poll(&mut self, wait: Duration) -> Result<Vec<Completion>, Failure>;
    /// Reads the queue pair's attributes.
    fn query(&mut self) -> Result<QueuePair, Failure>;
    /// Gives the queue pair and all that belongs to it back. Also called when the client has gone.
    fn close(&mut self) -> Result<(), Failure>;
}

/// Which adapter the agent is to use; what is not named, it chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Name of the device, such as `mlx5_0`.
    pub device: Option<String>,
    /// Number of its port, from 1.
    pub port: Option<u8>,
    /// Index of the source GID in the port's table.
    pub gid_index: Option<u8>,
}
