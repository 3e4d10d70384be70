//! The tester's ports of the PFC cases.

use pfc_ebpf::units::LineRate;
use serde::Deserialize;
use validator_core::evidence::xdp::XdpMode;
use validator_core::keys;
use validator_core::quantity::Rate;

use super::dut::Kind;
use crate::config::ConfigError;
use crate::config::constraints::required;
use crate::config::document::Document;

/// The tester's ports, but for the names of interfaces, which [`super::Dut`] has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ports {
    /// Their speed. `None`: the speed of the link; never with a simulated DUT or a bridge.
    pub line_rate: Option<LineRate>,
    /// Mode in which the XDP programs are attached.
    pub xdp: XdpMode,
    /// Sender of the test traffic.
    pub sender: Sender,
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

keys::table! {
    /// The tester's ports of the PFC cases.
    #[derive(Default, Deserialize)]
    pub(super) struct Table: "ports", "ports." {
        /// Sends the data. Mandatory with `external`, and only there.
        pub(super) tx: Option<Port> = "port", "";
        /// Receives it, and sends the storm. Mandatory with `external`, and only there.
        pub(super) rx: Option<Port> = "port", "";
        /// Speed of the ports. Mandatory with `sim` and `bridge`, and on veth and tap.
        line_rate: Option<Rate> = "rate", "the link's speed";
        /// Way in which XDP programs are attached: in the driver, in the kernel's generic path, or
        /// the first of these that works.
        #[serde(default)]
        xdp: XdpMode = "`auto`, `driver`, `skb`", "\"auto\"";
        /// Sender of the test traffic. `auto` takes live frames, which the kernel makes, from some
        /// 200,000 frames a second on where the tx port takes them.
        #[serde(default)]
        sender: Sender = "`auto`, `live-frames`, `sendmmsg`", "\"auto\"";
    }
}

/// The settings in `table`, checked, for a DUT of that kind.
pub(super) fn read(document: &Document, kind: Kind, table: &Table) -> Result<Ports, ConfigError> {
    if kind != Kind::External {
        let what = "a veth has no speed of its own; say it, such as line_rate = \"1G\"";
        required(document, "ports.line_rate", table.line_rate, what)?;
    }
    Ok(Ports {
        line_rate: table.line_rate.map(|rate| rate.0),
        xdp: table.xdp,
        sender: table.sender,
    })
}
