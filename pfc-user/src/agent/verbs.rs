//! Real verbs, through the crate `sideway`.
//!
//! `sideway` is used because `ibverbs` cannot post an RDMA READ, set the first PSN or choose a port
//! (0.9.2). It opens libibverbs at the first call, so a host without RDMA gets an error message
//! instead of a program that does not start. It cannot request the event of a completion queue;
//! `rdma-mummy-sys`, which it builds on, can.

mod channel;
mod port;

use std::error::Error;
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use sideway::ibverbs::device::{DeviceInfo, DeviceList};
use sideway::ibverbs::device_context::{DeviceCapabilityFlags, DeviceContext};

use super::backend::{Backend, Selection};
use super::protocol::{
    Channel, Completion, Device, Failure, FailureKind, OpenChannel, QueuePair, Read,
};
use channel::Open;

/// A port of an RDMA adapter.
pub struct VerbsBackend {
    context: Arc<DeviceContext>,
    port: u8,
    gid_index: Option<u8>,
    device: Device,
    open: Option<Open>,
}

impl VerbsBackend {
    /// Opens the selected adapter and port. The defaults are the first adapter and its first
    /// Ethernet port that is up.
    ///
    /// # Errors
    /// Fails if there is no such adapter or port, or if verbs cannot query it.
    pub fn new(selection: &Selection) -> Result<Self, Failure> {
        let context = open_device(selection.device.as_deref())?;
        let name = context.name();
        let attributes = context
            .query_device()
            .map_err(|error| verbs(&format!("query device {name}"), &error))?;
        let found = port::find(&context, attributes.phys_port_cnt(), selection.port)?;
        let device = Device {
            name,
            backend: "verbs".to_owned(),
            apm: Some(
                attributes
                    .device_cap_flags()
                    .contains(DeviceCapabilityFlags::AutoPathMigration),
            ),
            active_mtu: port::octets(found.active_mtu),
        };
        Ok(Self {
            context,
            port: found.number,
            gid_index: selection.gid_index,
            device,
            open: None,
        })
    }

    fn channel(&mut self) -> Result<&mut Open, Failure> {
        self.open
            .as_mut()
            .ok_or_else(|| Failure::new(FailureKind::Request, "no channel is open"))
    }
}

impl Backend for VerbsBackend {
    fn device(&self) -> Device {
        let mut device = self.device.clone();
        // The interface's MTU may have changed since.
        if let Ok(port) = self.context.query_port(self.port) {
            device.active_mtu = port::octets(port.active_mtu());
        }
        device
    }

    fn open(&mut self, channel: &OpenChannel) -> Result<Channel, Failure> {
        let gid = port::source(&self.context, self.port, self.gid_index, channel.remote)?;
        let open = Open::new(&self.context, self.port, &gid, channel)?;
        let opened = Channel {
            queue_pair: open.number(),
            address: gid.address,
            attributes: open.query()?,
        };
        self.open = Some(open);
        Ok(opened)
    }

    fn post_read(&mut self, read: &Read) -> Result<(), Failure> {
        self.channel()?.post_read(read)
    }

    fn poll(&mut self, wait: Duration) -> Result<Vec<Completion>, Failure> {
        self.channel()?.poll(wait)
    }

    fn query(&mut self) -> Result<QueuePair, Failure> {
        self.channel()?.query()
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.open = None;
        Ok(())
    }
}

fn open_device(name: Option<&str>) -> Result<Arc<DeviceContext>, Failure> {
    let list = DeviceList::new()
        .map_err(|error| no_device(&format!("list RDMA devices: {}", chain(&error))))?;
    let names: Vec<String> = list.iter().map(|device| device.name()).collect();
    let found = match name {
        None => list
            .get(0)
            .ok_or_else(|| no_device("expected an RDMA device, found none"))?,
        Some(name) => list
            .iter()
            .find(|device| device.name() == name)
            .ok_or_else(|| {
                let found = if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                };
                no_device(&format!("expected the RDMA device {name}, found {found}"))
            })?,
    };
    found
        .open()
        .map_err(|error| no_device(&format!("open {}: {}", found.name(), chain(&error))))
}

fn no_device(message: &str) -> Failure {
    let advice = "the agent needs libibverbs with the adapter's provider, the module ib_uverbs, \
                  and an adapter (see `rdma link`)";
    Failure::new(FailureKind::NoDevice, format!("{message}; {advice}"))
}

/// Error of verbs in `step`.
fn verbs(step: &str, error: &(dyn Error + 'static)) -> Failure {
    Failure::new(FailureKind::Verbs, format!("{step}: {}", chain(error)))
}

/// Joins an error with its causes: the crate's own messages leave out the system's error.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if !text.contains(&error.to_string()) {
            let _ = write!(text, ": {error}");
        }
        cause = error.source();
    }
    text
}

/// Finds the system's error code among the causes.
fn errno(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(code) = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error)
        {
            return Some(code);
        }
        cause = error.source();
    }
    None
}
