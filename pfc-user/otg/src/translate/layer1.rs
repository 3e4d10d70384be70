//! Layer 1: speed, MTU, and the pause frames that a port obeys.

use std::collections::HashSet;

use pfc_ebpf::units::{LineRate, Priority};
use validator_core::engine::plan::Obeys;

use super::names::Names;
use super::ports::Ports;
use crate::reader::Reader;

/// MTU that a client sends by itself, and thereby asks for nothing.
const DEFAULT_MTU: u64 = 1500;
/// The address of pause frames (IEEE 802.3, 31B.1).
const PAUSE_ADDRESS: &str = "01:80:c2:00:00:01";

/// Accepted fields that the driver of the interface decides.
const OF_THE_DRIVER: [&str; 4] = [
    "media",
    "ieee_media_defaults",
    "auto_negotiate",
    "auto_negotiation",
];

/// Reads layer 1 into the ports that it is for.
pub fn read(config: &Reader<'_>, ports: &mut Ports, names: &mut Names) {
    let mut done = HashSet::new();
    for reader in config.children("layer1") {
        names.take(&reader);
        for field in OF_THE_DRIVER {
            reader.accept(field, "changes nothing: set it with ethtool");
        }
        if reader.truth("promiscuous") == Some(false) {
            reader.warn("promiscuous", "changes nothing: ports take all frames");
        }
        let speed = reader.enumeration("speed");
        let speed = speed.and_then(|name| {
            reader.or_error("speed", line_rate(&name), || {
                format!("\"{name}\" is not supported: full duplex is")
            })
        });
        let mtu = mtu(&reader);
        let obeys = obeys(&reader);
        for name in reader.texts("port_names") {
            let Some(index) = ports.find(&reader, "port_names", name) else {
                continue;
            };
            if !done.insert(index) {
                reader.error(
                    "port_names",
                    format!("names {name}, as layer1 before it does"),
                );
            }
            let (port, _) = ports.get_mut(index);
            // The configuration's speed is meant for this run; the testbed file's for any.
            port.line_rate = speed.or(port.line_rate);
            port.mtu = mtu;
            port.obeys = obeys;
        }
    }
}

/// Parses names such as `speed_100_fd_mbps` and `speed_25_gbps`.
fn line_rate(name: &str) -> Option<LineRate> {
    let name = name.strip_prefix("speed_")?;
    let (number, unit) = if let Some(number) = name.strip_suffix("_fd_mbps") {
        (number, 1_000_000)
    } else {
        (name.strip_suffix("_gbps")?, 1_000_000_000)
    };
    LineRate::from_bits_per_second(number.parse::<u64>().ok()? * unit).ok()
}

/// Reads the MTU; `None` for the default, which leaves the interface's own.
fn mtu(reader: &Reader<'_>) -> Option<u16> {
    let mtu = reader.integer("mtu").filter(|mtu| *mtu != DEFAULT_MTU)?;
    reader.within("mtu", mtu, 68..=65_535)
}

fn obeys(reader: &Reader<'_>) -> Obeys {
    let Some(control) = reader.child("flow_control") else {
        return Obeys::Nothing;
    };
    if let Some(address) = control.text("directed_address")
        && !address.eq_ignore_ascii_case(PAUSE_ADDRESS)
    {
        control.error(
            "directed_address",
            format!("must be {PAUSE_ADDRESS}, found {address}: other addresses are not obeyed"),
        );
    }
    match &*control.choice("ieee_802_1qbb") {
        "ieee_802_1qbb" => pfc(&control.object("ieee_802_1qbb")),
        "ieee_802_3x" => {
            control.child("ieee_802_3x");
            Obeys::Pause
        }
        other => {
            control.refuse_choice::<()>(other, "ports obey ieee_802_1qbb or ieee_802_3x");
            Obeys::Nothing
        }
    }
}

/// Reads the queue of each class: class i holds queue i where nothing else is said.
fn pfc(table: &Reader<'_>) -> Obeys {
    let queue = |class: Priority| {
        let field = format!("pfc_class_{}", class.get());
        let Some(queue) = table.integer(&field) else {
            return Some(class);
        };
        let queue = table.within(&field, queue, 0..=7);
        queue.map(Priority::from_low_bits)
    };
    if table.integer("pfc_delay").is_some_and(|delay| delay > 0) {
        table.error(
            "pfc_delay",
            "is not supported: the model gives it no unit; set 0, and ports obey at once",
        );
    }
    let mut queues = [None; Priority::COUNT];
    for class in Priority::all() {
        queues[class.index()] = queue(class);
    }
    Obeys::Pfc(queues)
}
