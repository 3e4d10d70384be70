//! The wire: a veth pair in a network namespace of its own, and what the kernel says that it lost on it.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;

/// The sending end.
pub const TX: &str = "a";
/// The receiving end.
pub const RX: &str = "b";
/// Takes frames of 3400 octets; XDP without fragments takes 3506.
const MTU: u32 = 3392;

/// The pair. It ends with the process, in whatever way that ends.
pub struct Wire {
    namespace: Namespace,
}

/// What an end has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that came as far as the program, or the stack.
    pub received: u64,
    /// Frames lost on the way in.
    pub rx_dropped: u64,
    /// Frames that the other end had no room for.
    pub tx_dropped: u64,
}

impl Wire {
    /// With that many queues each way. More than one needs `ethtool`.
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
            // The receiving end first: a program can only be attached where it has as many queues as the sending end.
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

/// Of an end in the calling thread's namespace.
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

/// Both ends of the link, in the calling thread's namespace.
pub fn ends() -> Result<[Counters; 2]> {
    Ok([counters(TX)?, counters(RX)?])
}

/// Frames that the link lost since, where an XDP program receives: what the ring had no room for a veth counts at both ends.
pub fn lost_since([tx, rx]: [Counters; 2]) -> Result<u64> {
    let [tx_now, rx_now] = ends()?;
    Ok((tx_now.tx_dropped - tx.tx_dropped).max(rx_now.rx_dropped - rx.rx_dropped))
}

/// What a command prints; an error with what it said where it failed.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("{} does not start", command.get_program().display()))?;
    if !output.status.success() {
        let said = [output.stderr, output.stdout]
            .map(|said| String::from_utf8_lossy(&said).trim().to_owned());
        let said = said
            .iter()
            .find(|said| !said.is_empty())
            .and_then(|said| said.lines().last());
        bail!(
            "{} ended with {}: {}",
            command.get_program().display(),
            output.status,
            said.unwrap_or("no word of why")
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
