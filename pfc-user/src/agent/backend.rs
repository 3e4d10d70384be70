//! The adapter behind an agent's server.

use std::time::Duration;

use super::protocol::{Channel, Completion, Device, Failure, OpenChannel, QueuePair, Read};

/// An adapter's port with at most one channel. Dropping it releases everything.
pub trait Backend: Send {
    /// Describes the adapter and its port.
    fn device(&self) -> Device;
    /// Makes a queue pair and brings it to RTS. Called only without a channel.
    fn open(&mut self, channel: &OpenChannel) -> Result<Channel, Failure>;
    /// Posts a READ. This and the following are called only with a channel.
    fn post_read(&mut self, read: &Read) -> Result<(), Failure>;
    /// Waits at most `wait` for completions and takes those that are there.
    fn poll(&mut self, wait: Duration) -> Result<Vec<Completion>, Failure>;
    /// Reads the queue pair's attributes.
    fn query(&mut self) -> Result<QueuePair, Failure>;
    /// Releases the queue pair and all that belongs to it. Also called when the client has gone.
    fn close(&mut self) -> Result<(), Failure>;
}

/// The adapter to use. The agent chooses what is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Name of the device, such as `mlx5_0`.
    pub device: Option<String>,
    /// Number of its port, from 1.
    pub port: Option<u8>,
    /// Index of the source GID in the port's table.
    pub gid_index: Option<u8>,
}
