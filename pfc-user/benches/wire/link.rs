//! The wire: a veth pair in a network namespace of its own, and the kernel's account of losses on
//! it.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;

/// The sending end.
pub const TX: &str = "a";
/// The receiving end.
pub const RX: &str = "b";
/// Allows frames of 3400 octets; XDP without fragments takes 3506.
const MTU: u32 = 3392;

/// The pair. It ends with the process, for whatever reason.
pub struct Wire {
    namespace: Namespace,
}

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that reached the program or the stack.
    pub received: u64,
    /// Frames lost on receipt.
    pub rx_dropped: u64,
    /// Frames for which the other end had no room.
    pub tx_dropped: u64,
}

impl Wire {
    /// Makes a pair with `queues` queues each way. More than one needs `ethtool`.
    pub fn new(queues: usize) -> Result<Self> {
        let namespace = Namespace::new()?;
        let end = |name, last| End {
            namespace: &namespace,
            name,
            mac: [2, 0, 0, 0, 1, last],
        };
        create_veth(end(TX, 1), end(RX, 2), MTU)?;
        let wire = Self { namespace };
        if queues > 1 {
            let queues = queues.to_string();
            // The receiving end first: attaching a program requires as many queues there as the
            // sending end has.
            for end in [RX, TX] {
                wire.run(|| {
                    output(Command::new("ethtool").args(["-L", end, "rx", &queues, "tx", &queues]))
                })??;
            }
        }
        Ok(wire)
    }

    /// Runs `work` on a thread in the namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        Ok(self.namespace.run(work)?)
    }
}

/// Reads the counters of an end in the calling thread's namespace.
pub fn counters(end: &str) -> Result<Counters> {
    let links =
        output(Command::new("ip").args(["-json", "-statistics", "link", "show", "dev", end]))?;
    let links: Value = serde_json::from_str(&links)?;
    let counter = |way: &str, name: &str| {
        links[0]["stats64"][way][name]
            .as_u64()
            .with_context(|| format!("`ip` shows no {way} {name}"))
    };
    Ok(Counters {
        received: counter("rx", "packets")?,
        rx_dropped: counter("rx", "dropped")?,
        tx_dropped: counter("tx", "dropped")?,
    })
}

/// Reads both ends of the link, in the calling thread's namespace.
pub fn ends() -> Result<[Counters; 2]> {
    Ok([counters(TX)?, counters(RX)?])
}

/// Frames lost by the link since then, with an XDP program receiving. A veth counts a frame at both
/// ends if the ring had no room for it.
pub fn lost_since([tx, rx]: [Counters; 2]) -> Result<u64> {
    let [tx_now, rx_now] = ends()?;
    Ok((tx_now.tx_dropped - tx.tx_dropped).max(rx_now.rx_dropped - rx.rx_dropped))
}

/// Returns a command's output. The error of a failed one holds its messages.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("{} does not start", command.get_program().display()))?;
    if !output.status.success() {
        let streams = [output.stderr, output.stdout]
            .map(|text| String::from_utf8_lossy(&text).trim().to_owned());
        let reason = streams
            .iter()
            .find(|text| !text.is_empty())
            .and_then(|text| text.lines().last());
        bail!(
            "{} ended with {}: {}",
            command.get_program().display(),
            output.status,
            reason.unwrap_or("no word of why")
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
