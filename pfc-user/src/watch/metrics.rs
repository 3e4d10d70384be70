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
    /// Reads its samples, of each label that can be told beforehand, else of those that were met.
    pub samples: fn(&Reading) -> Vec<Sample>,
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

fn sample(label: impl ToString, value: u64) -> Sample {
    Sample {
        label: label.to_string(),
        value,
    }
}

fn one(value: u64) -> Vec<Sample> {
    vec![sample("", value)]
}

/// Each number under its name.
fn named<const N: usize>(names: [&str; N], values: [u64; N]) -> Vec<Sample> {
    let named = names.into_iter().zip(values);
    named.map(|(name, value)| sample(name, value)).collect()
}

/// Each number under its place.
fn numbered<T: Copy>(values: &[T], number: fn(T) -> u64) -> Vec<Sample> {
    let values = values.iter().enumerate();
    values
        .map(|(place, value)| sample(place, number(*value)))
        .collect()
}

fn met(mut samples: Vec<Sample>) -> Vec<Sample> {
    samples.retain(|sample| sample.value > 0);
    samples
}

fn malformed(frames: [u64; Malformed::COUNT]) -> Vec<Sample> {
    let frames = Malformed::ALL.into_iter().zip(frames);
    // Only a port of the tester's own has the other reasons: no frame here is a test frame.
    frames
        .filter(|(why, _)| !why.is_of_a_test())
        .map(|(why, frames)| sample(reason(why), frames))
        .collect()
}

fn opcodes(packets: &[u64]) -> Vec<Sample> {
    let packets = packets.iter().enumerate();
    let opcode = |(opcode, packets): (usize, &u64)| sample(format!("{opcode:#04x}"), *packets);
    met(packets.map(opcode).collect())
}

fn frames(volume: Volume) -> u64 {
    volume.frames
}

fn octets(volume: Volume) -> u64 {
    volume.octets
}

/// Defines families: `NAME by LABEL in UNIT: SAMPLES;`, below a comment that is the description.
/// A family of one sample has no `by`, and one of counts no `in`.
macro_rules! families {
    ($(
        $(#[doc = $help:literal])+
        $name:ident $(by $label:ident)? $(in $unit:ident)?: $samples:expr;
    )+) => {
        &[$(Family {
            name: stringify!($name),
            help: concat!($($help),+).trim_ascii(),
            label: [$(Some(stringify!($label)),)? None][0],
            unit: [$(Unit::$unit,)? Unit::Count][0],
            samples: $samples,
        }),+]
    };
}

/// All that is counted.
pub const FAMILIES: &[Family] = families! {
    /// Frames.
    frames: |reading| one(reading.counters.total.frames);
    /// Octets of all frames, without FCS.
    bytes: |reading| one(reading.counters.total.octets);
    /// Frames by priority, as the trusted field tells it.
    priority_frames by priority: |reading| numbered(&reading.counters.by_priority, frames);
    /// Octets by priority, without FCS.
    priority_bytes by priority: |reading| numbered(&reading.counters.by_priority, octets);
    /// Frames whose priority the trusted field does not tell.
    no_priority_frames: |reading| one(reading.counters.no_priority.frames);
    /// IP frames by DSCP.
    dscp_frames by dscp: |reading| met(numbered(&reading.counters.by_dscp, frames));
    /// Octets of IP frames by DSCP, without FCS.
    dscp_bytes by dscp: |reading| met(numbered(&reading.counters.by_dscp, octets));
    /// VLAN-tagged frames by PCP of the outermost tag.
    pcp_frames by pcp: |reading| numbered(&reading.counters.by_pcp, frames);
    /// Octets of VLAN-tagged frames by PCP, without FCS.
    pcp_bytes by pcp: |reading| numbered(&reading.counters.by_pcp, octets);
    /// Frames with two VLAN tags.
    double_tagged_frames: |reading| one(reading.counters.double_tagged);
    /// IP frames by ECN field.
    ecn_frames by ecn: |reading| named(ECN, reading.counters.by_ecn);
    /// IP frames marked Congestion Experienced by priority.
    ce_frames by priority: |reading| numbered(&reading.counters.ce, |frames| frames);
    /// PFC frames, whatever their class-enable vector.
    pfc_frames: |reading| one(reading.counters.pfc_frames);
    /// PFC frames that address no priority.
    pfc_empty_frames: |reading| one(reading.counters.pfc_empty);
    /// PFC frames with time above 0 by priority.
    pfc_xoff_frames by priority: |reading| numbered(&reading.counters.pfc, |class| class.xoff);
    /// PFC frames with time 0 by priority that they address.
    pfc_xon_frames by priority: |reading| numbered(&reading.counters.pfc, |class| class.xon);
    /// Time that PFC told to pause by priority, from quanta and line rate; 0 where that is not
    /// known.
    pfc_paused_seconds by priority in Nanos: |reading| {
        numbered(&reading.paused[..8], |nanos| nanos)
    };
    /// 802.3x PAUSE frames with time above 0.
    pause_xoff_frames: |reading| one(reading.counters.pause.xoff);
    /// 802.3x PAUSE frames with time 0.
    pause_xon_frames: |reading| one(reading.counters.pause.xon);
    /// Time that 802.3x told to pause, from quanta and line rate; 0 where that is not known.
    pause_paused_seconds in Nanos: |reading| one(reading.paused[8]);
    /// Frames that could not be read by reason.
    malformed_frames by reason: |reading| malformed(reading.counters.malformed);
    /// IP frames whose transport, such as RoCEv2, is not looked for, by what stands before it.
    hidden_transport_frames by reason: |reading| {
        named(Hidden::ALL.map(hidden), reading.counters.hidden)
    };
    /// Merged packets of which octets of headers, or the number of frames too, are not known.
    untold_merged_packets by reason: |reading| {
        named(Untold::ALL.map(untold), reading.counters.untold)
    };
    /// RoCEv2 packets.
    roce_packets: |reading| one(reading.counters.roce.frames);
    /// Octets of frames with RoCEv2 packets, without FCS.
    roce_bytes: |reading| one(reading.counters.roce.octets);
    /// RoCEv2 packets by the opcode in the BTH.
    roce_opcode_packets by opcode: |reading| opcodes(&reading.counters.by_opcode);
    /// Congestion notification packets of RoCEv2.
    roce_cnp_packets: |reading| one(reading.counters.by_opcode[usize::from(CNP)]);
    /// RoCEv2 packets marked Congestion Experienced.
    roce_ce_packets: |reading| one(reading.counters.roce_ce);
    /// Test frames of the validator.
    stamped_frames: |reading| one(reading.counters.stamped);
    /// Test frames of more flows than are told apart, so that their stamps do not tell a loss.
    untold_stamped_frames: |reading| one(reading.counters.flows_lost);
    /// PAUSE and PFC frames that are missing in the capture.
    control_records_lost: |reading| one(reading.counters.controls_lost);
};

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
