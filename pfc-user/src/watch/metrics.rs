//! Names of the counts: one list for JSON and for Prometheus.

use pfc_ebpf::abi::watch::{Hidden, Untold, Volume};
use pfc_ebpf::wire::Malformed;

use crate::driver::bpf::watch::Reading;

/// Opcode of a congestion notification packet (InfiniBand Architecture Specification, annex A17,
/// 17.9.3).
pub const CNP: u8 = 0x81;
/// The ECN field by its value (RFC 3168, 5).
pub const ECN: [&str; 4] = ["not-ect", "ect-1", "ect-0", "ce"];

/// Counts of one kind.
pub struct Family {
    /// Its name: unit last.
    pub name: &'static str,
    /// Description for Prometheus.
    pub help: &'static str,
    /// The label of its samples, where it has more than one.
    pub label: Option<&'static str>,
    /// The unit of its samples.
    pub unit: Unit,
    samples: fn(&Reading, &mut dyn FnMut(String, u64)),
}

/// Unit of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A count of something.
    Count,
    /// Nanoseconds, shown as seconds.
    Nanos,
}

/// A number of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Value of the label; empty without one.
    pub label: String,
    /// The number.
    pub value: u64,
}

impl Family {
    /// Its samples, of each label that can be told beforehand, else of those that were met.
    pub fn samples(&self, reading: &Reading) -> Vec<Sample> {
        let mut samples = Vec::new();
        (self.samples)(reading, &mut |label, value| {
            samples.push(Sample { label, value })
        });
        samples
    }
}

/// A reason as it is written.
pub const fn reason(reason: Malformed) -> &'static str {
    match reason {
        Malformed::EthernetTruncated => "ethernet-truncated",
        Malformed::TooManyTags => "too-many-tags",
        Malformed::Ipv4Truncated => "ipv4-truncated",
        Malformed::IpVersion => "ip-version",
        Malformed::Ipv6Truncated => "ipv6-truncated",
        Malformed::UdpTruncated => "udp-truncated",
        Malformed::ControlTruncated => "control-truncated",
        Malformed::ControlOpcode => "control-opcode",
        Malformed::ControlTagged => "control-tagged",
        Malformed::ControlDestination => "control-destination",
        Malformed::Stamp => "stamp",
        Malformed::Ipv4Checksum => "ipv4-checksum",
        Malformed::Headers => "headers",
    }
}

/// Label of what hides a transport.
pub const fn hidden(hidden: Hidden) -> &'static str {
    match hidden {
        Hidden::Extension => "extension-header",
        Hidden::Fragment => "fragment",
        Hidden::Tunnel => "tunnel",
    }
}

/// Label of a reason why the frames of a merged packet are unknown.
pub const fn untold(untold: Untold) -> &'static str {
    match untold {
        Untold::Headers => "headers",
        Untold::Number => "number",
    }
}

/// Each number under its place.
fn numbered<T: Copy>(values: &[T], number: impl Fn(T) -> u64, out: &mut dyn FnMut(String, u64)) {
    values
        .iter()
        .enumerate()
        .for_each(|(place, value)| out(place.to_string(), number(*value)));
}

/// Writes the values of the DSCPs that were seen, of all 64.
fn dscps(reading: &Reading, number: fn(Volume) -> u64, out: &mut dyn FnMut(String, u64)) {
    let met = reading
        .counters
        .by_dscp
        .iter()
        .enumerate()
        .filter(|(_, volume)| volume.frames > 0);
    met.for_each(|(dscp, volume)| out(dscp.to_string(), number(*volume)));
}

const fn single(
    name: &'static str,
    help: &'static str,
    samples: fn(&Reading, &mut dyn FnMut(String, u64)),
) -> Family {
    Family {
        name,
        help,
        label: None,
        unit: Unit::Count,
        samples,
    }
}

const fn by(
    label: &'static str,
    name: &'static str,
    help: &'static str,
    samples: fn(&Reading, &mut dyn FnMut(String, u64)),
) -> Family {
    Family {
        name,
        help,
        label: Some(label),
        unit: Unit::Count,
        samples,
    }
}

fn frames(volume: Volume) -> u64 {
    volume.frames
}

fn octets(volume: Volume) -> u64 {
    volume.octets
}

/// All that is counted.
pub const FAMILIES: &[Family] = &[
    single("frames", "Frames.", |reading, out| {
        out(String::new(), reading.counters.total.frames)
    }),
    single(
        "bytes",
        "Octets of all frames, without FCS.",
        |reading, out| out(String::new(), reading.counters.total.octets),
    ),
    by(
        "priority",
        "priority_frames",
        "Frames by priority, as the trusted field tells it.",
        |reading, out| {
            numbered(&reading.counters.by_priority, frames, out);
        },
    ),
    by(
        "priority",
        "priority_bytes",
        "Octets by priority, without FCS.",
        |reading, out| {
            numbered(&reading.counters.by_priority, octets, out);
        },
    ),
    single(
        "no_priority_frames",
        "Frames whose priority the trusted field does not tell.",
        |reading, out| {
            out(String::new(), reading.counters.no_priority.frames);
        },
    ),
    by(
        "dscp",
        "dscp_frames",
        "IP frames by DSCP.",
        |reading, out| dscps(reading, frames, out),
    ),
    by(
        "dscp",
        "dscp_bytes",
        "Octets of IP frames by DSCP, without FCS.",
        |reading, out| dscps(reading, octets, out),
    ),
    by(
        "pcp",
        "pcp_frames",
        "VLAN-tagged frames by PCP of the outermost tag.",
        |reading, out| {
            numbered(&reading.counters.by_pcp, frames, out);
        },
    ),
    by(
        "pcp",
        "pcp_bytes",
        "Octets of VLAN-tagged frames by PCP, without FCS.",
        |reading, out| {
            numbered(&reading.counters.by_pcp, octets, out);
        },
    ),
    single(
        "double_tagged_frames",
        "Frames with two VLAN tags.",
        |reading, out| out(String::new(), reading.counters.double_tagged),
    ),
    by(
        "ecn",
        "ecn_frames",
        "IP frames by ECN field.",
        |reading, out| {
            ECN.iter()
                .zip(reading.counters.by_ecn)
                .for_each(|(name, frames)| out((*name).to_owned(), frames));
        },
    ),
    by(
        "priority",
        "ce_frames",
        "IP frames marked Congestion Experienced by priority.",
        |reading, out| {
            numbered(&reading.counters.ce, |frames| frames, out);
        },
    ),
    single(
        "pfc_frames",
        "PFC frames, whatever their class-enable vector.",
        |reading, out| {
            out(String::new(), reading.counters.pfc_frames);
        },
    ),
    single(
        "pfc_empty_frames",
        "PFC frames that address no priority.",
        |reading, out| out(String::new(), reading.counters.pfc_empty),
    ),
    by(
        "priority",
        "pfc_xoff_frames",
        "PFC frames with time above 0 by priority.",
        |reading, out| {
            numbered(&reading.counters.pfc, |class| class.xoff, out);
        },
    ),
    by(
        "priority",
        "pfc_xon_frames",
        "PFC frames with time 0 by priority that they address.",
        |reading, out| {
            numbered(&reading.counters.pfc, |class| class.xon, out);
        },
    ),
    Family {
        name: "pfc_paused_seconds",
        help: "Time that PFC told to pause by priority, from quanta and line rate; 0 where that \
         is not known.",
        label: Some("priority"),
        unit: Unit::Nanos,
        samples: |reading, out| numbered(&reading.paused[..8], |nanos| nanos, out),
    },
    single(
        "pause_xoff_frames",
        "802.3x PAUSE frames with time above 0.",
        |reading, out| out(String::new(), reading.counters.pause.xoff),
    ),
    single(
        "pause_xon_frames",
        "802.3x PAUSE frames with time 0.",
        |reading, out| out(String::new(), reading.counters.pause.xon),
    ),
    Family {
        name: "pause_paused_seconds",
        help: "Time that 802.3x told to pause, from quanta and line rate; 0 where that is not \
         known.",
        label: None,
        unit: Unit::Nanos,
        samples: |reading, out| out(String::new(), reading.paused[8]),
    },
    by(
        "reason",
        "malformed_frames",
        "Frames that could not be read by reason.",
        |reading, out| {
            // Only a port of the tester's own has these reasons: no frame here is a test frame.
            let reasons = Malformed::ALL
                .into_iter()
                .zip(reading.counters.malformed)
                .filter(|(reason, _)| !reason.is_of_a_test());
            reasons.for_each(|(why, frames)| out(reason(why).to_owned(), frames));
        },
    ),
    by(
        "reason",
        "hidden_transport_frames",
        "IP frames whose transport, such as RoCEv2, is not looked for, by what stands before it.",
        |reading, out| {
            let kinds = Hidden::ALL.into_iter().zip(reading.counters.hidden);
            kinds.for_each(|(kind, frames)| out(hidden(kind).to_owned(), frames));
        },
    ),
    by(
        "reason",
        "untold_merged_packets",
        "Merged packets of which octets of headers, or the number of frames too, are not known.",
        |reading, out| {
            let reasons = Untold::ALL.into_iter().zip(reading.counters.untold);
            reasons.for_each(|(why, packets)| out(untold(why).to_owned(), packets));
        },
    ),
    single("roce_packets", "RoCEv2 packets.", |reading, out| {
        out(String::new(), reading.counters.roce.frames)
    }),
    single(
        "roce_bytes",
        "Octets of frames with RoCEv2 packets, without FCS.",
        |reading, out| {
            out(String::new(), reading.counters.roce.octets);
        },
    ),
    by(
        "opcode",
        "roce_opcode_packets",
        "RoCEv2 packets by the opcode in the BTH.",
        |reading, out| {
            let met = reading
                .counters
                .by_opcode
                .iter()
                .enumerate()
                .filter(|(_, packets)| **packets > 0);
            met.for_each(|(opcode, packets)| out(format!("{opcode:#04x}"), *packets));
        },
    ),
    single(
        "roce_cnp_packets",
        "Congestion notification packets of RoCEv2.",
        |reading, out| {
            out(String::new(), reading.counters.by_opcode[usize::from(CNP)]);
        },
    ),
    single(
        "roce_ce_packets",
        "RoCEv2 packets marked Congestion Experienced.",
        |reading, out| {
            out(String::new(), reading.counters.roce_ce);
        },
    ),
    single(
        "stamped_frames",
        "Test frames of the validator.",
        |reading, out| out(String::new(), reading.counters.stamped),
    ),
    single(
        "untold_stamped_frames",
        "Test frames of more flows than are told apart, so that their stamps do not tell a loss.",
        |reading, out| {
            out(String::new(), reading.counters.flows_lost);
        },
    ),
    single(
        "control_records_lost",
        "PAUSE and PFC frames that are missing in the capture.",
        |reading, out| {
            out(String::new(), reading.counters.controls_lost);
        },
    ),
];

/// Operation of a RoCEv2 opcode (InfiniBand Architecture Specification, 9.2.1, table 38).
pub fn operation(opcode: u8) -> String {
    const OPERATIONS: [&str; 24] = [
        "SEND first",
        "SEND middle",
        "SEND last",
        "SEND last with immediate",
        "SEND only",
        "SEND only with immediate",
        "WRITE first",
        "WRITE middle",
        "WRITE last",
        "WRITE last with immediate",
        "WRITE only",
        "WRITE only with immediate",
        "READ request",
        "READ response first",
        "READ response middle",
        "READ response last",
        "READ response only",
        "ACK",
        "atomic ACK",
        "CmpSwap",
        "FetchAdd",
        "RESYNC",
        "SEND last with invalidate",
        "SEND only with invalidate",
    ];
    if opcode == CNP {
        return "CNP".to_owned();
    }
    let transport = match opcode >> 5 {
        0 => "RC",
        1 => "UC",
        2 => "RD",
        3 => "UD",
        5 => "XRC",
        _ => return format!("{opcode:#04x}"),
    };
    match OPERATIONS.get(usize::from(opcode & 31)) {
        Some(operation) => format!("{transport} {operation}"),
        None => format!("{opcode:#04x}"),
    }
}
