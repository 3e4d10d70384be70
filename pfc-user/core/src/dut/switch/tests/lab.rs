//! A switch at 1 Gbit/s, where a bit takes a nanosecond, and frames for it.

use pfc_ebpf::stamp::{Phase, Stamp, UDP_PORT};
use pfc_ebpf::units::{LineRate, Priority, Quanta};

use crate::dut::switch::config::{Priorities, SwitchConfig};
use crate::dut::switch::control::{self, Control};
use crate::dut::switch::model::{Departure, Switch};
use crate::fault::switch::Fault;
use crate::plan::Nanos;

pub const MS: Nanos = 1_000_000;
/// Length of a test frame that takes 8192 ns.
pub const LENGTH: usize = 1000;
pub const FRAME: Nanos = 8192;
/// A destination and a source.
pub const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 0x22, 2, 0, 0, 0, 0, 0x11];
/// The time that a PFC frame takes.
pub const CONTROL: Nanos = 672;

pub fn priority(number: u8) -> Priority {
    Priority::new(number).unwrap()
}

/// Priorities 3 and 4 are lossless.
pub fn config() -> SwitchConfig {
    let lossless = [3, 4].map(priority).into_iter().collect();
    SwitchConfig::new(
        LineRate::from_bits_per_second(1_000_000_000).unwrap(),
        lossless,
    )
}

pub fn switch(faults: &[&str]) -> Switch {
    with(config(), faults)
}

pub fn with(config: SwitchConfig, faults: &[&str]) -> Switch {
    let faults: Vec<Fault> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    Switch::new(config, &faults)
}

/// The sum of RFC 1071; 0xffff for a header whose checksum is right.
pub fn sum(octets: &[u8]) -> u16 {
    let sum: u32 = octets
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// A test frame of `length` octets whose DSCP and flow are its priority.
pub fn frame_of(flow: u8, sequence: u64, length: usize) -> Vec<u8> {
    let mut frame = [&ADDRESSES[..], &[0x08, 0x00]].concat();
    let ip = frame.len();
    frame.extend([0x45, flow << 2 | 1]);
    frame.extend(((length - ip) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1]);
    let checksum = !sum(&frame[ip..]);
    frame[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
    for word in [UDP_PORT - 1, UDP_PORT, (length - frame.len()) as u16, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(
        Stamp {
            run: 1,
            flow: flow.into(),
            phase: Phase::Storm,
            sequence,
            time: 0,
        }
        .emit(),
    );
    frame.resize(length, 0x55);
    frame
}

/// A test frame that takes [`FRAME`] ns on the wire.
pub fn frame(flow: u8, sequence: u64) -> Vec<u8> {
    frame_of(flow, sequence, LENGTH)
}

/// The address of the station behind that port.
pub fn station(port: usize) -> [u8; 6] {
    [2, 0, 0, 0, 1, port as u8]
}

/// A frame with other addresses: from one station to another.
pub fn between(from: usize, to: usize, mut frame: Vec<u8>) -> Vec<u8> {
    frame[..6].copy_from_slice(&station(to));
    frame[6..12].copy_from_slice(&station(from));
    frame
}

/// A switch with so many ports that knows the station behind each.
pub fn introduced(ports: usize, config: SwitchConfig) -> Switch {
    faulty(ports, config, &[])
}

/// The same with faults.
pub fn faulty(ports: usize, config: SwitchConfig, faults: &[&str]) -> Switch {
    let macs = (0..ports).map(|port| [2, 0, 0, 0, 2, port as u8]).collect();
    let mut switch = with(SwitchConfig { macs, ..config }, faults);
    for port in 0..ports {
        let mut hello = between(port, port, frame_of(0, 0, 64));
        hello[..6].fill(0xff);
        switch.ingress(port, 0, hello);
    }
    departures(&mut switch, MS);
    switch
}

/// Flow and sequence of a test frame.
pub fn stamp(frame: &[u8]) -> Option<(u8, u64)> {
    let stamp = Stamp::parse(frame.get(42..60)?.try_into().ok()?).ok()?;
    Some((stamp.flow as u8, stamp.sequence))
}

/// A PFC frame with that time for that class.
pub fn pfc(class: u8, quanta: u16) -> Vec<u8> {
    let mut classes = [None; 8];
    classes[usize::from(class)] = Some(Quanta(quanta));
    control::pfc([2, 0, 0, 0, 0, 0x33], &classes)
}

/// An 802.3x PAUSE frame.
pub fn pause(quanta: u16) -> Vec<u8> {
    let mut frame = pfc(0, 0);
    frame[14..].fill(0);
    frame[15] = 1;
    frame[16..18].copy_from_slice(&quanta.to_be_bytes());
    frame
}

/// Class and quanta of each class that a PFC frame enables.
pub fn asked(frame: &[u8]) -> Vec<(u8, u16)> {
    match control::parse(frame) {
        Some(Control::Pfc { enabled, times }) => enabled
            .iter()
            .map(|class| (class.get(), times[class.index()].0))
            .collect(),
        other => panic!("expected PFC, found {other:?}"),
    }
}

/// Class and quanta of what the switch asks for at port 0 until `now`, with the times.
pub fn asked_at_0(switch: &mut Switch, now: Nanos) -> Vec<(Nanos, Vec<(u8, u16)>)> {
    let left = departures(switch, now).into_iter();
    left.filter(|left| left.port == 0)
        .map(|left| (left.at, asked(&left.frame)))
        .collect()
}

/// Everything that has left by `now`.
pub fn departures(switch: &mut Switch, now: Nanos) -> Vec<Departure> {
    switch.advance(now);
    std::iter::from_fn(|| switch.pop_departure()).collect()
}

/// Flow, sequence and time of the test frames that have left by `now`.
pub fn left(switch: &mut Switch, now: Nanos) -> Vec<(u8, u64, Nanos)> {
    let stamped = |departure: Departure| {
        stamp(&departure.frame).map(|(flow, sequence)| (flow, sequence, departure.at))
    };
    departures(switch, now)
        .into_iter()
        .filter_map(stamped)
        .collect()
}

/// Flow and sequence of those frames, in the order in which they left.
pub fn order(switch: &mut Switch, now: Nanos) -> Vec<(u8, u64)> {
    let left = left(switch, now).into_iter();
    left.map(|(flow, sequence, _)| (flow, sequence)).collect()
}

/// Times at which those frames left.
pub fn times(switch: &mut Switch, now: Nanos) -> Vec<Nanos> {
    left(switch, now).into_iter().map(|(.., at)| at).collect()
}

/// A set of priorities.
pub fn set(numbers: &[u8]) -> Priorities {
    numbers.iter().map(|number| priority(*number)).collect()
}
