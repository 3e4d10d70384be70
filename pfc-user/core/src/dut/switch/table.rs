//! The addresses that a switch has learned, and the ports by which a frame leaves.

use std::collections::HashMap;

/// Most ports of a switch.
pub const MAX_PORTS: usize = 8;
/// Addresses that it learns; frames to others go out by all ports (IEEE 802.1Q clause 8.8.1 lets a
/// full database refuse new ones).
const MAX_ADDRESSES: usize = 16 << 10;

type Address = [u8; 6];

/// A set of ports, bit n for port n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSet(u8);

/// The filtering database (IEEE 802.1Q clause 8.8). Entries do not age: no run is that long.
#[derive(Clone, Debug)]
pub struct Table {
    /// All ports of the switch.
    ports: PortSet,
    learned: HashMap<Address, usize>,
}

impl PortSet {
    /// The first `count`.
    fn first(count: usize) -> Self {
        (0..count).collect()
    }

    /// Takes `port` out.
    pub fn without(self, port: usize) -> Self {
        Self(self.0 & !(1 << port))
    }

    /// The ports in the set, lowest first.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_PORTS).filter(move |port| self.0 & 1 << port != 0)
    }
}

impl FromIterator<usize> for PortSet {
    fn from_iter<I: IntoIterator<Item = usize>>(ports: I) -> Self {
        Self(ports.into_iter().fold(0, |set, port| set | 1 << port))
    }
}

fn is_group(address: &Address) -> bool {
    address[0] & 1 != 0
}

/// True for a frame to an address that no bridge forwards (IEEE 802.1Q Table 8-1): of link layers
/// and protocols between neighbours.
pub fn is_reserved(frame: &[u8]) -> bool {
    matches!(frame, [0x01, 0x80, 0xc2, 0x00, 0x00, 0x00..=0x0f, ..])
}

impl Table {
    /// A database of a switch with so many ports, without entries.
    pub fn new(ports: usize) -> Self {
        Self {
            ports: PortSet::first(ports),
            learned: HashMap::new(),
        }
    }

    /// Learns the source of a frame that came in at `port`, and returns the ports by which that
    /// leaves: the one behind which its destination is, or all others. `frame` has a whole Ethernet
    /// header.
    pub fn forward(&mut self, port: usize, frame: &[u8]) -> PortSet {
        let ([destination, rest @ ..], _) = frame.as_chunks() else {
            return self.ports.without(port);
        };
        if let Some(source) = rest.first().filter(|source| !is_group(source))
            && (self.learned.len() < MAX_ADDRESSES || self.learned.contains_key(source))
        {
            self.learned.insert(*source, port);
        }
        let known = self.learned.get(destination);
        let ports = known.map_or(self.ports, |port| [*port].into_iter().collect());
        ports.without(port)
    }

    /// The ports other than `port`.
    pub fn others(&self, port: usize) -> PortSet {
        self.ports.without(port)
    }
}
