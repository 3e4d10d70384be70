//! RoCEv2 frames for tests: made field by field, and arbitrary ones. The ICRC is not filled in.
#[path = "../damage/mod.rs"]
mod damage;

use damage::damage;

const MACS: [u8; 12] = [0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2];

/// A READ request in the making.
#[derive(Clone, Debug)]
pub struct Request {
    /// TPID and TCI, outermost first.
    pub tags: Vec<(u16, u16)>,
    pub v6: bool,
    /// Options of IPv4, a multiple of four.
    pub options: Vec<u8>,
    /// Flags and fragment offset of IPv4.
    /// DSCP and ECN.
    pub traffic_class: u8,
    pub fragment: u16,
    pub protocol: u8,
    pub port: u16,
    pub opcode: u8,
    pub queue_pair: u32,
    pub psn: u32,
    pub address: u64,
    pub r_key: u32,
    pub length: u32,
    /// Octets between RETH and ICRC; a READ request has none.
    pub payload: Vec<u8>,
}

impl Request {
    /// A READ of 1024 octets for that queue pair, over IPv4.
    pub fn new(queue_pair: u32) -> Self {
        Self {
            tags: Vec::new(),
            v6: false,
            options: Vec::new(),
            traffic_class: 0,
            fragment: 0x4000,
            protocol: 17,
            port: 4791,
            opcode: 0x0c,
            queue_pair,
            psn: 0x00ab_cdef,
            address: 0x99_9000,
            r_key: 0x12345,
            length: 1024,
            payload: Vec::new(),
        }
    }

    fn datagram(&self) -> Vec<u8> {
        let length = (8 + 12 + 16 + self.payload.len() + 4) as u16;
        let mut octets = [0xc123, self.port, length, 0]
            .map(u16::to_be_bytes)
            .concat();
        octets.extend([self.opcode, 0, 0xff, 0xff]);
        octets.extend(self.queue_pair.to_be_bytes());
        octets.extend((1 << 31 | self.psn).to_be_bytes());
        octets.extend(self.address.to_be_bytes());
        octets.extend(self.r_key.to_be_bytes());
        octets.extend(self.length.to_be_bytes());
        octets.extend(&self.payload);
        octets.extend([0x1c, 0x2c, 0x3c, 0x4c]);
        octets
    }

    /// The frame without FCS.
    pub fn octets(&self) -> Vec<u8> {
        let mut frame = MACS.to_vec();
        for (tpid, tci) in &self.tags {
            frame.extend([tpid.to_be_bytes(), tci.to_be_bytes()].concat());
        }
        let datagram = self.datagram();
        if self.v6 {
            frame.extend([0x86, 0xdd]);
            frame.extend([
                0x60 | self.traffic_class >> 4,
                self.traffic_class << 4,
                0,
                0,
            ]);
            frame.extend((datagram.len() as u16).to_be_bytes());
            frame.extend([self.protocol, 64]);
            frame.extend(1..=32);
        } else {
            let header = 20 + self.options.len();
            let mut ip = vec![0x40 | (header / 4) as u8, self.traffic_class];
            ip.extend(((header + datagram.len()) as u16).to_be_bytes());
            ip.extend([0, 1]);
            ip.extend(self.fragment.to_be_bytes());
            ip.extend([64, self.protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
            ip.extend(&self.options);
            let check = checksum(&ip);
            ip[10..12].copy_from_slice(&check);
            frame.extend([0x08, 0x00]);
            frame.extend(ip);
        }
        frame.extend(datagram);
        frame
    }
}

fn checksum(octets: &[u8]) -> [u8; 2] {
    let mut sum: u32 = octets
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// Requests of every shape that has to be read: tags, options, both versions of IP.
pub fn shapes(queue_pair: u32) -> Vec<Request> {
    let mut shapes = Vec::new();
    for tags in [
        vec![],
        vec![(0x8100, 5)],
        vec![(0x88a8, 0xe005), (0x8100, 6)],
        vec![(0x8100, 5), (0x8100, 6)],
    ] {
        for (v6, options) in [(false, 0), (false, 4), (false, 24), (false, 40), (true, 0)] {
            shapes.push(Request {
                tags: tags.clone(),
                v6,
                options: vec![1; options],
                ..Request::new(queue_pair)
            });
        }
    }
    shapes
}

/// The same arbitrary frames each time (xorshift, G. Marsaglia 2003).
pub struct Frames {
    state: u64,
    queue_pair: u32,
}

impl Frames {
    /// Most are for `queue_pair`, or nearly.
    pub fn new(seed: u64, queue_pair: u32) -> Self {
        Self {
            state: seed.max(1),
            queue_pair,
        }
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % bound
    }

    fn octets(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.below(256) as u8).collect()
    }

    fn rarely<T>(&mut self, usual: T, other: T) -> T {
        if self.below(12) == 0 { other } else { usual }
    }

    fn whole(&mut self) -> Vec<u8> {
        if self.below(16) == 0 {
            let length = self.below(200);
            return self.octets(length);
        }
        let tags = (0..self.below(4))
            .map(|_| ([0x8100, 0x88a8][self.below(2)], self.below(1 << 16) as u16))
            .collect();
        let options = self.below(11) * 4 * self.below(2);
        let payload = self.below(600) * self.below(2);
        let place = self.below(24);
        // FECN, BECN and reserved bits in front of the queue pair say nothing of it.
        let reserved = (self.below(2) * self.below(256)) as u32;
        Request {
            tags,
            v6: self.below(3) == 0,
            options: self.octets(options),
            traffic_class: self.below(256) as u8,
            fragment: [0x4000, 0x4000, 0x4000, 0, 0x2000, 1, 0x8000][self.below(7)],
            protocol: self.rarely(17, 6),
            port: self.rarely(4791, 4790),
            opcode: self.below(256) as u8,
            queue_pair: self.rarely(self.queue_pair, self.queue_pair ^ 1 << place) | reserved << 24,
            psn: self.below(1 << 24) as u32,
            payload: self.octets(payload),
            ..Request::new(0)
        }
        .octets()
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

// Each file of tests compiles this module anew, and not all use all of it.
const _: fn(u32) -> Vec<Request> = shapes;
const _: fn(u64, u32) -> Frames = Frames::new;
