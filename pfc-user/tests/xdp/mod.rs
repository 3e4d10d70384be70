//! Frames and configurations for the tests of the XDP program.

use std::fmt::Write;

use pfc_ebpf::maps::{Config, FlowConfig, Trust};
use pfc_ebpf::stamp::{self, Phase, Stamp};
use validator::driver::clock;
use validator::driver::xdp::{Account, Sizes};

pub const RUN: u16 = 7;
pub const STORM_SOURCE: [u8; 6] = [0x02, 0, 0, 0, 0, 0x99];
pub const WINDOW: u64 = 1_000_000_000;
const MACS: [u8; 12] = [0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2];

pub fn config(trust: Trust) -> Config {
    Config {
        abi: 0,
        flows: 0,
        epoch: clock::now(),
        window: WINDOW,
        windows: 8,
        run: RUN,
        trust: trust as u8,
        _pad: 0,
        line_rate: 1_000_000_000,
        storm_source: STORM_SOURCE,
        _pad2: [0; 2],
        dscp_to_priority: std::array::from_fn(|dscp| dscp as u8 % 8),
    }
}

/// Flow n is sent with DSCP (or PCP) n and counts under priority n.
pub fn flows(count: u8) -> Vec<FlowConfig> {
    (0..count).map(|mark| FlowConfig { mark, log_phases: 0, priority: mark % 8, _pad: 0 }).collect()
}

pub fn loaded(trust: Trust) -> Account {
    let mut account = Account::load(Sizes { flows: 8, windows: 8 }).unwrap();
    account.configure(&config(trust), &flows(8)).unwrap();
    account
}

pub fn stamp(flow: u16, sequence: u64) -> Stamp {
    Stamp { run: RUN, flow, phase: Phase::Storm, sequence, time: clock::now() & stamp::MASK_48 }
}

fn sum(octets: &[u8]) -> u32 {
    octets.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn checksum(mut sum: u32) -> [u8; 2] {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// A test frame in the making.
#[derive(Clone)]
pub struct TestFrame {
    pub stamp: Stamp,
    pub traffic_class: u8,
    /// TPID and TCI, outermost first.
    pub tags: Vec<(u16, u16)>,
    pub v6: bool,
    /// Options of IPv4, a multiple of four.
    pub options: Vec<u8>,
    pub payload: usize,
}

impl TestFrame {
    /// An untagged IPv4 frame with the DSCP of its flow, of 64 octets.
    pub fn new(stamp: Stamp) -> Self {
        Self { stamp, traffic_class: (stamp.flow as u8) << 2 | 1, tags: Vec::new(), v6: false, options: Vec::new(), payload: stamp::LEN }
    }

    fn udp(&self, addresses: &[u8]) -> Vec<u8> {
        let mut payload = self.stamp.emit().to_vec();
        payload.extend((payload.len()..self.payload).map(|at| (at * 7) as u8));
        let length = (8 + payload.len()) as u16;
        let mut datagram = [49152u16, stamp::UDP_PORT, length, 0].map(u16::to_be_bytes).concat();
        datagram.extend(&payload);
        let check = match checksum(sum(addresses) + 17 + u32::from(length) + sum(&datagram)) {
            [0, 0] => [0xff, 0xff],
            check => check,
        };
        datagram[6..8].copy_from_slice(&check);
        datagram
    }

    pub fn octets(&self) -> Vec<u8> {
        let mut frame = MACS.to_vec();
        for (tpid, tci) in &self.tags {
            frame.extend([tpid.to_be_bytes(), tci.to_be_bytes()].concat());
        }
        if self.v6 {
            let addresses: Vec<u8> = (1..=32).collect();
            let datagram = self.udp(&addresses);
            frame.extend([0x86, 0xdd, 0x60 | self.traffic_class >> 4, self.traffic_class << 4, 0, 0]);
            frame.extend((datagram.len() as u16).to_be_bytes());
            frame.extend([17, 64]);
            frame.extend(addresses);
            frame.extend(datagram);
        } else {
            let addresses = [192, 0, 2, 1, 198, 51, 100, 2];
            let datagram = self.udp(&addresses);
            let header = 20 + self.options.len();
            let mut ip = vec![0x40 | (header / 4) as u8, self.traffic_class];
            ip.extend(((header + datagram.len()) as u16).to_be_bytes());
            ip.extend([0, 1, 0x40, 0, 64, 17, 0, 0]);
            ip.extend(addresses);
            ip.extend(&self.options);
            let check = checksum(sum(&ip));
            ip[10..12].copy_from_slice(&check);
            frame.extend([0x08, 0x00]);
            frame.extend(ip);
            frame.extend(datagram);
        }
        frame
    }
}

pub fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        write!(text, "{octet:02x}").unwrap();
        text
    })
}
