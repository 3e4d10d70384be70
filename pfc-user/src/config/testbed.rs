//! The testbed: the tester's ports, the DUT, and the limits that verdicts are judged against.

mod file;
pub mod mad;
pub mod rc;

use std::net::IpAddr;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, LineRate, Priority};
use serde::Deserialize;

pub use file::TESTBED;
pub(super) use file::{Preset, all_dscps, read};
pub use mad::{MadTestbed, MadTransport};
pub use rc::{RcDut, RcTestbed};

use validator_core::evidence;
pub use validator_core::evidence::xdp::XdpMode;
use validator_core::fault::switch::Fault;
use validator_core::keys;
use validator_core::plan::{self, Nanos};

use crate::dut::switch::config::Scheduler;

/// Ports and DUT by family of cases. The cases of an absent family are not applicable.
#[derive(Clone, Debug, PartialEq)]
pub struct Testbed {
    /// Its name.
    pub name: String,
    /// The file's text, and the `--set` arguments.
    pub toml: String,
    /// The DUT by its maker's words.
    pub identity: evidence::Identity,
    /// For the PFC cases.
    pub pfc: Option<PfcTestbed>,
    /// For the MAD cases.
    pub mad: Option<MadTestbed>,
    /// For the RC cases.
    pub rc: Option<RcTestbed>,
}

/// The part of a testbed that the PFC cases use.
#[derive(Clone, Debug, PartialEq)]
pub struct PfcTestbed {
    /// The device under test.
    pub dut: Dut,
    /// Speed of the ports. `None`: the speed of the link; never with a simulated DUT or a bridge.
    pub line_rate: Option<LineRate>,
    /// Mode in which the XDP programs are attached.
    pub xdp: XdpMode,
    /// Sender of the test traffic.
    pub sender: Sender,
    /// The field that tells the DUT a frame's priority.
    pub trust: Trust,
    /// True: frames are tagged although the DSCP is that field.
    pub vlan: bool,
    /// Priority by DSCP.
    pub dscp_map: [Priority; Dscp::COUNT],
    /// Lossless priorities that an external DUT has without being configured, in ascending order;
    /// none of a DUT that the tool makes, which is given those of each repetition.
    pub lossless: Vec<Priority>,
    /// Addresses of the test frames.
    pub addresses: Addresses,
    /// Limits that verdicts are judged against.
    pub limits: Tolerances,
    /// The PFC watchdog: `off` or `on` where it is known. A DUT that the tool makes has none.
    pub watchdog: Option<String>,
    /// The other end of each port that is a veth is the DUT's own.
    pub direct: bool,
    /// PAUSE/PFC frames of the DUT reach the program on the tx port.
    pub pfc_visible: bool,
    /// The DUT's own names of its ports to the tester's tx and rx port; empty where not declared.
    pub dut_ports: [String; 2],
    /// Commands of the user.
    pub hooks: Hooks,
}

/// The device under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dut {
    /// The simulated switch; the tool makes its ports.
    Sim {
        /// Faults in force.
        faults: Vec<Fault>,
        /// Further arguments for its process.
        args: Vec<String>,
        /// Order in which it serves its priorities.
        scheduler: Scheduler,
    },
    /// A Linux bridge; the tool makes it and its ports.
    Bridge,
    /// A device that is there already.
    External {
        /// The port that sends data.
        tx: Port,
        /// The port that receives it, and sends the storm.
        rx: Port,
    },
}

keys::table! {
    /// A port.
    #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
    pub struct Port: "ports.tx, ports.rx, rc.port", "" {
        /// Its interface. Mandatory.
        pub interface: String = "text", "";
        /// The named network namespace that it is in.
        pub namespace: Option<String> = "text", "where the tool is started";
    }
}

/// Sender of the test traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sender {
    /// Live frames where the frame rate asks for them and the port takes them, else sendmmsg.
    #[default]
    Auto,
    /// The XDP program that makes frames in the kernel.
    LiveFrames,
    /// A thread with a packet socket.
    Sendmmsg,
}

/// Addresses of the test frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Source address, of the same family as the destination.
    pub source_ip: IpAddr,
    /// Destination address.
    pub destination_ip: IpAddr,
    /// Source MAC address; `None`: the tx port's own.
    pub source_mac: Option<[u8; 6]>,
    /// Destination on the tx port's link.
    pub destination: Destination,
}

/// Destination MAC address of the test frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The DUT bridges: to the rx port's own address.
    RxPort,
    /// The DUT bridges: to this address.
    Mac([u8; 6]),
    /// The DUT routes, and this is its address: MAC addresses, TTL and checksum may change.
    Gateway([u8; 6]),
}

/// The testbed's part of [`plan::Limits`], before the line rate is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerances {
    /// Longest time from a pause frame to the last frame.
    pub max_response: Nanos,
    /// Octets per lossless priority that the DUT can take after its own XOFF.
    pub headroom: u64,
    /// Longest wait in the DUT without a drop.
    pub max_residence: Nanos,
    /// Share of the offered rate that has to arrive in the case on 802.3x.
    pub min_throughput: f64,
    /// Share of the line rate that counts as 100 %.
    pub load: f64,
    /// The sender's largest burst.
    pub max_burst: Nanos,
    /// Times that a repetition is measured at most, where the tester was disturbed; at least 1.
    pub attempts: u32,
}

/// Commands of the user, run by the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// Makes the DUT ready, once.
    pub prepare: Option<String>,
    /// Makes the priorities of `VALIDATOR_LOSSLESS` (such as `3,4`) lossless on the DUT.
    pub configure: Option<String>,
    /// Prints the DUT's counters.
    pub counters: Option<String>,
    /// Puts back what the others have changed.
    pub restore: Option<String>,
    /// Longest time for each.
    pub timeout: Nanos,
}

impl PfcTestbed {
    /// True if nothing changes the DUT's lossless set: it has the declared one in each repetition.
    pub fn is_fixed(&self) -> bool {
        matches!(self.dut, Dut::External { .. }) && self.hooks.configure.is_none()
    }
}

impl Hooks {
    /// True if there is one.
    pub(super) fn any(&self) -> bool {
        let all = [
            &self.prepare,
            &self.configure,
            &self.counters,
            &self.restore,
        ];
        all.iter().any(|hook| hook.is_some())
    }
}

impl Testbed {
    /// Its record in the evidence.
    pub fn record(&self) -> evidence::Testbed {
        let pfc = self.pfc.as_ref().map(|pfc| match pfc.dut {
            Dut::Sim { .. } => "sim",
            Dut::Bridge => "bridge",
            Dut::External { .. } => "external",
        });
        let mut duts: Vec<&str> = pfc.into_iter().collect();
        duts.extend(self.mad.as_ref().map(|mad| mad.transport.kind()));
        duts.extend(self.rc.as_ref().map(|rc| rc.dut.kind()));
        duts.dedup();
        evidence::Testbed {
            name: self.name.clone(),
            dut: duts.join(", "),
            identity: self.identity.clone(),
            toml: self.toml.clone(),
        }
    }
}

impl Tolerances {
    /// The limits for ports of that speed.
    pub fn at(&self, line_rate: LineRate) -> plan::Limits {
        plan::Limits {
            line_rate,
            max_response: self.max_response,
            headroom: self.headroom,
            max_residence: self.max_residence,
            min_throughput: self.min_throughput,
            max_burst: self.max_burst,
        }
    }
}
