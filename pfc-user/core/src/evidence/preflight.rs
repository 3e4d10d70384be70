//! Facts about the tester's ports before anything is measured; `crate::preflight` draws the
//! conclusions.

use serde::{Deserialize, Serialize};

use super::xdp::{XdpFeatures, XdpMode};

/// A case of the plan that a run refuses, or that can never be judged at the ports' speed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnfitCase {
    /// Its id.
    pub case: String,
    /// The figures.
    pub reason: String,
    /// The remedy; empty where the reason names it.
    pub remedy: String,
}

/// First thing that a run needs to reach a DUT, tried beforehand: what it opens in the MAD and RC
/// cases, and the program of a hook.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// Its kind, for people.
    pub what: &'static str,
    /// The testbed's table or key, such as `mad` or `hooks.prepare`.
    pub table: String,
    /// Its place, for people.
    pub place: String,
    /// Words for it where there is no error.
    #[serde(skip)]
    pub usable: &'static str,
    /// The error that a run would end with; `None`: it can be had.
    pub error: Option<String>,
}

/// The ports of a testbed, and the kernel that they are on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preflight {
    /// `uname -r`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Cases of the plan that cannot work. No part of evidence: a run refuses them, leaves them out
    /// or says so itself.
    #[serde(skip)]
    pub unfit: Vec<UnfitCase>,
    /// The ways to the DUTs. No part of evidence: a run takes them.
    #[serde(skip)]
    pub ways: Vec<Way>,
    /// Ports in the order of their use.
    pub ports: Vec<Port>,
}

/// Role of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Sends data, and receives the DUT's PFC.
    Tx,
    /// Receives data, and sends the storm.
    Rx,
    /// Receives RoCEv2 requests.
    Rc,
    /// Sends subnet management packets. None of the tester's programs is on it.
    Mad,
}

impl Role {
    /// The word as it stands in testbeds and reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tx => "tx",
            Self::Rx => "rx",
            Self::Rc => "rc",
            Self::Mad => "mad",
        }
    }

    /// True for the two ports that test frames of PFC pass between.
    pub const fn is_of_pfc(self) -> bool {
        matches!(self, Self::Tx | Self::Rx)
    }
}

/// Requirements of the testbed on a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// The mode of attaching the program.
    pub xdp: XdpMode,
    /// The line rate that the testbed says, in bit/s.
    pub line_rate: Option<u64>,
    /// Frames carry a VLAN tag that XDP has to see.
    pub tagged: bool,
    /// Longest time in which the DUT may obey a pause, nanoseconds; `None` where no pause is
    /// judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_response: Option<u64>,
}

/// A port of the tester.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Its role.
    pub role: Role,
    /// Requirements of the testbed.
    pub wanted: Wanted,
    /// The facts found.
    pub facts: Facts,
    /// Result of the self-test with pause frames from the other port.
    pub self_test: SelfTest,
    /// The source of the fact that PAUSE/PFC frames of the DUT reach the program, as in the
    /// evidence of a repetition; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pfc_visible: Option<String>,
}

/// Facts about an interface. `None` and empty: the kernel or the driver does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Its name.
    pub interface: String,
    /// The named network namespace that it is in; `None`: where the tool was started, or one
    /// without a name.
    pub namespace: Option<String>,
    /// Driver and device.
    pub driver: Driver,
    /// Kind of a software link, such as `veth`; `None` for hardware.
    pub kind: Option<String>,
    /// True if the interface is set up.
    pub up: bool,
    /// True if there is a link to the other end.
    pub carrier: bool,
    /// Speed in bit/s as the driver reports it.
    pub speed: Option<u64>,
    /// Largest layer-3 packet in octets.
    pub mtu: u32,
    /// Queues in use.
    pub queues: Option<Queues>,
    /// True if the interface is in promiscuous mode already.
    pub promiscuous: bool,
    /// XDP features of the driver.
    pub xdp_features: Option<XdpFeatures>,
    /// An XDP program that is attached.
    pub xdp_attached: Option<String>,
    /// Offloads, by the kernel's names.
    pub features: Vec<FeatureFact>,
    /// Offloads while the self-test's program was attached; empty: not looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features_with_program: Vec<FeatureFact>,
    /// PAUSE settings.
    pub pause: Option<Pause>,
    /// PFC settings.
    pub pfc: Option<Pfc>,
    /// RDMA devices on the same function.
    pub rdma: Vec<String>,
    /// Counters of the MAC that count received PAUSE or PFC frames, as far as they are known.
    pub mac_counters: Vec<String>,
}

/// Name, version and place of a driver and its device, as the driver reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// Name, such as `ixgbe`.
    pub name: String,
    /// Version; drivers of the kernel say the kernel's.
    pub version: String,
    /// Version of the firmware.
    pub firmware: String,
    /// Place of the device, such as a PCI address.
    pub bus: String,
}

/// Queues in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queues {
    /// Receive queues.
    pub rx: u32,
    /// Transmit queues.
    pub tx: u32,
}

/// An offload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureFact {
    /// The kernel's name.
    pub name: String,
    /// True if the offload is on.
    pub on: bool,
    /// True if the driver does not let it be changed.
    pub fixed: bool,
}

/// PAUSE settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The settings in force come from the negotiation with the other end.
    pub autonegotiated: bool,
    /// PAUSE frames are obeyed.
    pub receives: bool,
    /// PAUSE frames are sent when buffers run full.
    pub sends: bool,
    /// PAUSE frames counted.
    pub frames: FrameCounts,
}

/// Frames counted; `None` where they are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameCounts {
    /// Received.
    pub received: Option<u64>,
    /// Sent.
    pub sent: Option<u64>,
}

/// PFC settings: `struct ieee_pfc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pfc {
    /// Number of priorities that may have it at once.
    pub capacity: u8,
    /// Priorities that have it, one a bit.
    pub enabled: u8,
    /// PFC frames sent, by priority.
    pub requests: [u64; 8],
    /// PFC frames received, by priority.
    pub indications: [u64; 8],
}

/// Result of the self-test: the other end sent PFC of all priorities with time 0, which pauses
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SelfTest {
    /// The self-test was not done.
    NotDone {
        /// Reason.
        reason: String,
    },
    /// No program could be attached.
    Refused {
        /// Reason.
        reason: String,
    },
    /// The self-test was done.
    Done {
        /// The other end is the tester's own, so that nothing may be missing. Else there may be a
        /// DUT between, which rightly eats them.
        own_wire: bool,
        /// The mode in which the program was attached: `driver` or `skb`.
        xdp_mode: String,
        /// Frames sent.
        sent: u64,
        /// Frames that the program saw.
        seen: u64,
        /// Counters of the MAC that rose, and by how much.
        mac: Vec<(String, u64)>,
        /// Times that the port itself had no room for a frame of its own, which was tried again.
        waits: u64,
    },
}
