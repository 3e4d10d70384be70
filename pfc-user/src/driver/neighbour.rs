//! Answers ARP and Neighbour Discovery for a tester's port, so that a DUT that routes finds it.
//!
//! The port need not have the address: where the kernel has it too, both answer alike.

use std::io::PipeWriter;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use validator_core::neighbour::Station;

use super::kernel::netns::Namespace;
use super::kernel::packet::{self, PacketSocket};
use super::kernel::wait;
use super::storm::PATIENCE;

/// Longest question that is looked at: an IPv6 header, and a message with several options.
const LONGEST: usize = 256;

/// A thread that answers until it is dropped.
pub struct Responder {
    /// The thread ends when it is closed.
    alive: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
    waits: Arc<AtomicU64>,
}

impl Responder {
    /// Starts to answer for `station` on `interface` in `namespace`. The port has to let frames to
    /// all addresses in.
    pub fn start(namespace: &Namespace, interface: &str, station: Station) -> Result<Self> {
        let ethertype = match station.ip {
            IpAddr::V4(_) => libc::ETH_P_ARP,
            IpAddr::V6(_) => libc::ETH_P_IPV6,
        };
        let socket = namespace.run(|| PacketSocket::open_for(interface, ethertype as u16))??;
        let (end, alive) = std::io::pipe().context("cannot make a pipe")?;
        let waits = Arc::new(AtomicU64::new(0));
        let counted = waits.clone();
        let thread = thread::Builder::new()
            .name("neighbour".into())
            .spawn(move || serve(&socket, &end, &station, &counted))
            .context("cannot start the thread that answers neighbours")?;
        Ok(Self {
            alive: Some(alive),
            thread: Some(thread),
            waits,
        })
    }

    /// Number of times so far that the port had no room for an answer, which left later.
    pub fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }
}

/// Answers until the other side of `end` is closed.
fn serve(socket: &PacketSocket, end: &impl AsFd, station: &Station, waits: &AtomicU64) {
    let mut buffer = [0; LONGEST];
    loop {
        match wait::readable(&[socket, end], None).as_deref() {
            Ok([_, false]) => {}
            _ => return,
        }
        // A question that fails (the link is down, no room comes) counts as lost: the neighbour
        // asks again.
        if let Ok(length) = socket.receive(&mut buffer)
            && let Some(answer) = station.answer(&buffer[..length])
            && let Ok(((), waited)) = packet::when_there_is_room(PATIENCE, || socket.send(&answer))
        {
            waits.fetch_add(waited, Ordering::Relaxed);
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.alive = None;
        // A panic there has been reported on stderr by the thread itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
