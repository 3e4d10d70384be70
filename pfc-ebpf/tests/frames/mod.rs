//! Frames for tests: test frames made field by field, and arbitrary ones.

#[path = "../damage/mod.rs"]
mod damage;

use damage::damage;
use pfc_ebpf::filling;
use pfc_ebpf::stamp::{self, Phase, Stamp};
use pfc_ebpf::wire::mac_control::MacControl;

const MACS: [u8; 12] = [0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2];

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
    /// Octets of UDP payload, at least those of the stamp.
    pub payload: usize,
}

fn sum(octets: &[u8]) -> u32 {
    octets
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum()
}

fn checksum(mut sum: u32) -> [u8; 2] {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

impl TestFrame {
    /// An untagged IPv4 frame of 60 octets, with the DSCP of its flow and ECT(1).
    pub fn new(stamp: Stamp) -> Self {
        let traffic_class = (stamp.flow as u8) << 2 | 1;
        Self {
            stamp,
            traffic_class,
            tags: Vec::new(),
            v6: false,
            options: Vec::new(),
            payload: stamp::LEN,
        }
    }

    fn udp(&self, addresses: &[u8]) -> Vec<u8> {
        let mut payload = self.stamp.emit().to_vec();
        payload.extend((0..self.payload.saturating_sub(payload.len())).map(filling::octet));
        let length = (8 + payload.len()) as u16;
        let mut datagram = [49152u16, stamp::UDP_PORT, length, 0]
            .map(u16::to_be_bytes)
            .concat();
        datagram.extend(&payload);
        let check = match checksum(sum(addresses) + 17 + u32::from(length) + sum(&datagram)) {
            [0, 0] => [0xff, 0xff],
            check => check,
        };
        datagram[6..8].copy_from_slice(&check);
        datagram
    }

    /// The frame without FCS.
    pub fn octets(&self) -> Vec<u8> {
        let mut frame = MACS.to_vec();
        for (tpid, tci) in &self.tags {
            frame.extend([tpid.to_be_bytes(), tci.to_be_bytes()].concat());
        }
        if self.v6 {
            let addresses: Vec<u8> = (1..=32).collect();
            let datagram = self.udp(&addresses);
            frame.extend([
                0x86,
                0xdd,
                0x60 | self.traffic_class >> 4,
                self.traffic_class << 4,
                0,
                0,
            ]);
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

/// The same arbitrary frames each time (xorshift, G. Marsaglia 2003).
pub struct Frames(u64);

impl Frames {
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    fn octets(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.below(256) as u8).collect()
    }

    fn stamp(&mut self) -> Stamp {
        Stamp {
            run: 7 + (self.below(8) == 0) as u16,
            flow: self.below(9) as u16,
            phase: Phase::ALL[self.below(Phase::COUNT)],
            sequence: self.below(4096) as u64,
            time: self.below(1 << 40) as u64,
        }
    }

    fn control(&mut self) -> Vec<u8> {
        let control = if self.below(2) == 0 {
            MacControl::Pause {
                quanta: self.below(3) as u16,
            }
        } else {
            MacControl::Pfc {
                vector: self.below(512) as u16,
                quanta: std::array::from_fn(|_| self.below(3) as u16),
            }
        };
        let mut frame = control.emit([2, 0, 0, 0, 0, self.below(2) as u8]).to_vec();
        if self.below(8) == 0 {
            frame.splice(12..12, [0x81, 0x00, 0x60, 0x01]);
        }
        frame
    }

    fn whole(&mut self) -> Vec<u8> {
        match self.below(8) {
            0 => {
                let length = self.below(200);
                self.octets(length)
            }
            1 | 2 => self.control(),
            _ => {
                let tags = (0..self.below(4))
                    .map(|_| ([0x8100, 0x88a8][self.below(2)], self.below(1 << 16) as u16))
                    .collect();
                let options = self.below(11) * 4 * self.below(2);
                let frame = TestFrame::new(self.stamp());
                let traffic_class = if self.below(4) == 0 {
                    self.below(256) as u8
                } else {
                    frame.traffic_class
                };
                let (v6, options) = (self.below(3) == 0, self.octets(options));
                TestFrame {
                    tags,
                    v6,
                    options,
                    traffic_class,
                    payload: stamp::LEN + self.below(600),
                    ..frame
                }
                .octets()
            }
        }
    }
}

impl Iterator for Frames {
    type Item = Vec<u8>;

    /// Returns a frame, whole or damaged in up to three places.
    fn next(&mut self) -> Option<Vec<u8>> {
        let mut frame = self.whole();
        damage(&mut frame, |bound| self.below(bound));
        Some(frame)
    }
}
