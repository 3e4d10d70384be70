//! The link between the tester and the guest: a tap in a network namespace without a name. The
//! namespace and all in it disappear when its last process ends, for whatever reason.

use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow};
use nix::sched::{CloneFlags, unshare};

use crate::step;

/// The tester's end.
pub const TAP: &str = "tap0";
/// Its MAC address.
pub const HOST_MAC: &str = "02:00:00:00:16:01";
/// The guest's MAC address.
pub const GUEST_MAC: &str = "02:00:00:00:16:02";

/// The two ends' addresses.
pub struct Pair {
    pub host: &'static str,
    pub guest: &'static str,
    pub prefix: u8,
}

/// From the blocks for benchmarks (RFC 2544, RFC 5180), which are not routed anywhere.
pub const ADDRESSES: [Pair; 2] = [
    Pair {
        host: "198.18.16.1",
        guest: "198.18.16.2",
        prefix: 24,
    },
    Pair {
        host: "2001:2:0:16::1",
        guest: "2001:2:0:16::2",
        prefix: 64,
    },
];

/// QEMU arguments of the guest's network card.
pub fn devices() -> Vec<String> {
    let netdev = format!("tap,id=net,ifname={TAP},script=no,downscript=no");
    let device = format!("virtio-net-pci,netdev=net,mac={GUEST_MAC},romfile=");
    ["-netdev", &netdev, "-device", &device]
        .map(str::to_owned)
        .to_vec()
}

/// Variables of the guest's shell for its end of the link.
pub fn settings(mtu: u16) -> String {
    let pairs = ADDRESSES.map(|pair| format!("{}/{},{}", pair.guest, pair.prefix, pair.host));
    format!(
        "MTU={mtu} PEER_MAC={HOST_MAC} PAIRS=\"{}\"",
        pairs.join(" ")
    )
}

/// Runs `work` on a thread in such a namespace; programs that it starts are in it too.
pub fn with_tap<T: Send>(mtu: u16, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    in_namespace(|| {
        make_tap(mtu)?;
        work()
    })
}

/// Runs `work` in such a namespace with pairs of taps as cables: all frames of a multi-queue tap go
/// to a tap of one queue and back, those to reserved addresses too, which a bridge would keep.
pub fn with_cables<T: Send>(
    cables: &[(String, String)],
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    in_namespace(|| {
        for (many, one) in cables {
            ip(&format!("tuntap add {many} mode tap multi_queue"))?;
            ip(&format!("tuntap add {one} mode tap"))?;
            for tap in [many, one] {
                ip(&format!("link set dev {tap} up"))?;
            }
            redirect(many, one)?;
            redirect(one, many)?;
        }
        work()
    })
}

fn redirect(from: &str, to: &str) -> Result<()> {
    tc(&format!("qdisc add dev {from} clsact"))?;
    tc(&format!(
        "filter add dev {from} ingress protocol all u32 match u32 0 0 \
         action mirred egress redirect dev {to}"
    ))
}

/// Runs `work` in such a namespace with pairs of veths as cables, and loopback.
pub fn with_veths<T: Send>(
    cables: &[[&str; 2]],
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    in_namespace(|| {
        ip("link set lo up")?;
        for [one, other] in cables {
            ip(&format!(
                "link add {one} mtu 9500 type veth peer name {other} mtu 9500"
            ))?;
            for end in [one, other] {
                ip(&format!("link set dev {end} up"))?;
            }
        }
        work()
    })
}

/// Runs `work` on a thread in a namespace of its own; programs that it starts are in it too.
pub fn in_namespace<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).context("cannot make a network namespace")?;
            work()
        });
        inside
            .join()
            .unwrap_or_else(|_| Err(anyhow!("the lab's thread panicked")))
    })
}

fn make_tap(mtu: u16) -> Result<()> {
    ip("link set lo up")?;
    ip(&format!("tuntap add {TAP} mode tap"))?;
    ip(&format!("link set {TAP} address {HOST_MAC} mtu {mtu} up"))?;
    for Pair {
        host,
        guest,
        prefix,
    } in ADDRESSES
    {
        let nodad = if host.contains(':') { "nodad" } else { "" };
        ip(&format!("address add {host}/{prefix} dev {TAP} {nodad}"))?;
        ip(&format!(
            "neighbour replace {guest} lladdr {GUEST_MAC} dev {TAP} nud permanent"
        ))?;
    }
    Ok(())
}

fn ip(arguments: &str) -> Result<()> {
    step::run(Command::new("ip").args(arguments.split_whitespace()))
}

fn tc(arguments: &str) -> Result<()> {
    step::run(Command::new("tc").args(arguments.split_whitespace()))
}
