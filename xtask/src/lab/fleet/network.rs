//! The fleet's network, in namespaces without names. They and all in them disappear with the last
//! process that uses them.
//!
//! ```text
//!   hub                         host 1 .. 20                     fabric
//!   Prometheus -- br0 -- m1 --- mgmt
//!                               eth0 (sends of the pair)    --- a1 --+ redirected
//!                               eth1 (receives of the pair) --- b1 <-+
//!                               eth2 (a port by itself)     --- c1
//! ```

use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::Result;

use crate::lab::namespace::Namespace;

/// Hosts of the fleet.
pub const HOSTS: usize = 20;
/// Port at which an exporter listens.
const PORT: u16 = 9477;
/// Preference of the filter that carries the frames of a pair; a plant comes before it.
const CABLE: u16 = 10;
const PLANT: u16 = 1;

/// The number of a host, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host(usize);

impl Host {
    /// The host with that number.
    pub const fn new(number: usize) -> Self {
        assert!(number >= 1 && number <= HOSTS, "no such host");
        Self(number)
    }

    /// Every host.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=HOSTS).map(Self)
    }

    /// Its number, from 1.
    pub fn number(self) -> usize {
        self.0
    }

    /// Where its exporter listens. From the block for benchmarks (RFC 2544), which is not routed
    /// anywhere.
    pub fn address(self) -> SocketAddrV4 {
        let last = u8::try_from(self.0).expect("a small fleet");
        SocketAddrV4::new(Ipv4Addr::new(198, 18, 1, last), PORT)
    }
}

/// All namespaces.
pub struct Network {
    hub: Namespace,
    fabric: Namespace,
    hosts: Vec<Namespace>,
}

impl Network {
    /// Makes it. The namespace of this thread becomes the hub.
    pub fn make() -> Result<Self> {
        let network = Self {
            hub: Namespace::of_this_thread()?,
            fabric: Namespace::new()?,
            hosts: Host::all()
                .map(|_| Namespace::new())
                .collect::<Result<_>>()?,
        };
        network.hub.batch("ip", &network.lines_of_hub())?;
        network.fabric.batch("ip", &network.lines_of_fabric())?;
        network.fabric.batch("tc", &cables())?;
        for host in Host::all() {
            network.host(host).batch("ip", &lines_of_host(host))?;
        }
        Ok(network)
    }

    /// Where Prometheus is.
    pub fn hub(&self) -> &Namespace {
        &self.hub
    }

    /// Where the far ends of the hosts' ports are.
    pub fn fabric(&self) -> &Namespace {
        &self.fabric
    }

    /// A host's.
    pub fn host(&self, host: Host) -> &Namespace {
        &self.hosts[host.0 - 1]
    }

    fn lines_of_hub(&self) -> String {
        let mut lines = "link set lo up\nlink add name br0 type bridge\n\
                         address add 198.18.0.1/16 dev br0\nlink set br0 up\n"
            .to_owned();
        for host in Host::all() {
            let (number, path) = (host.0, self.host(host).path());
            // Infallible: a string.
            let _ = writeln!(
                lines,
                "link add name m{number} type veth peer name mgmt netns {path}\n\
                 link set m{number} master br0 up"
            );
        }
        lines
    }

    fn lines_of_fabric(&self) -> String {
        // What is redirected there comes to its other end, where nobody is.
        let mut lines = "link add name sink type veth peer name end\nlink set sink up\n\
                         link set end up\n"
            .to_owned();
        for host in Host::all() {
            let (number, path) = (host.0, self.host(host).path());
            for (near, far) in [("eth0", "a"), ("eth1", "b"), ("eth2", "c")] {
                let _ = writeln!(
                    lines,
                    "link add name {far}{number} type veth peer name {near} netns {path}\n\
                     link set {far}{number} up"
                );
            }
        }
        lines
    }

    /// Loses one frame in 16 of a priority on the way of a host's pair, by the last octet of the
    /// number that each frame carries.
    pub fn lose(&self, host: Host, priority: u8) -> Result<()> {
        let line = format!(
            "filter add dev a{} ingress pref {PLANT} protocol ip u32 match u8 {} 0xff at 1 \
             match u8 0 0x0f at 28 action mirred egress redirect dev sink\n",
            host.0,
            tos(priority)
        );
        self.fabric.batch("tc", &line)
    }

    /// Loses no longer.
    pub fn mend(&self, host: Host) -> Result<()> {
        let line = format!("filter del dev a{} ingress pref {PLANT}\n", host.0);
        self.fabric.batch("tc", &line)
    }
}

/// The octet of the IP header whose DSCP means that priority by SONiC's map, of 0, 3 and 4.
fn tos(priority: u8) -> u8 {
    match priority {
        0 => 8 << 2,
        priority => priority << 2,
    }
}

fn lines_of_host(host: Host) -> String {
    let address = host.address().ip().to_string();
    let mut lines = format!("address add {address}/16 dev mgmt\n");
    for device in ["lo", "mgmt", "eth0", "eth1", "eth2"] {
        let _ = writeln!(lines, "link set {device} up");
    }
    lines
}

fn cables() -> String {
    let mut lines = String::new();
    for number in Host::all().map(Host::number) {
        let _ = writeln!(
            lines,
            "qdisc add dev a{number} clsact\n\
             filter add dev a{number} ingress pref {CABLE} protocol all u32 match u32 0 0 \
             action mirred egress redirect dev b{number}"
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_an_address_of_its_own() {
        let mut addresses: Vec<_> = Host::all().map(Host::address).collect();
        assert_eq!(addresses[0].to_string(), "198.18.1.1:9477");
        addresses.dedup();
        assert_eq!(addresses.len(), HOSTS);
    }

    #[test]
    fn a_priority_has_its_dscp_of_sonics_map() {
        assert_eq!((tos(3) >> 2, tos(4) >> 2, tos(0) >> 2), (3, 4, 8));
    }
}
