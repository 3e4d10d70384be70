//! Stacks of headers, and the frames that they make.
//!
//! A header is a table of fields; a field takes a value, or walks through several, each frame by
//! its number in the flow. What a field needs from its surroundings (a length, a checksum, the type
//! of the next header) is computed where it is left alone.

mod arp;
mod check;
mod ethernet;
mod gre;
mod icmp;
mod ipv4;
mod ipv6;
mod mpls;
mod pause;
mod protocol;
mod segments;
mod source;
mod table;
mod tcp;
mod template;
mod udp;
mod value;
mod vlan;
mod vxlan;
mod wraps;

pub use self::protocol::Protocol;
pub use self::table::{Field, LeftAlone, Place};
pub use self::template::Template;
pub(super) use self::value::scattered;

/// The headers of a flow's frames, outermost first. What they leave of the frame's length is
/// filled with the payload and, where the flow is counted, a stamp.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packet {
    /// Headers.
    pub headers: Vec<Header>,
    /// Octets between headers and stamp; pause frames have zeros.
    pub payload: Payload,
}

/// Octets behind the headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Octets that count up from 0.
    #[default]
    Up,
    /// Octets that count down from 255.
    Down,
    /// Words of two octets that count up from 0.
    WordsUp,
    /// Words of two octets that count down from 65535.
    WordsDown,
    /// Given octets.
    Pattern {
        /// Octets, one at least.
        octets: Vec<u8>,
        /// True if the octets repeat; else, zeros follow.
        repeat: bool,
    },
}

/// A header with those fields that are not at their default.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Protocol.
    pub protocol: Protocol,
    /// Fields by the names of the protocol's table, each at most once.
    pub fields: Vec<(&'static str, Value)>,
    /// Octets of [`Protocol::Custom`].
    pub octets: Vec<u8>,
}

impl Header {
    /// Makes the header with all fields at their defaults.
    pub const fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            fields: Vec::new(),
            octets: Vec::new(),
        }
    }

    /// Returns the value that a field is set to.
    fn field(&self, name: &str) -> Option<&Value> {
        let mut fields = self.fields.iter();
        fields.find(|(own, _)| *own == name).map(|(_, value)| value)
    }
}

/// The values of a field, each in the low bits.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One value for all frames.
    Fixed(u128),
    /// Frame n has the one at n modulo their number.
    List(Vec<u128>),
    /// Frame n has `start + step * (n mod count)`, cut to the field.
    Increment {
        /// First.
        start: u128,
        /// Difference.
        step: u128,
        /// Length of the walk.
        count: u64,
    },
    /// Frame n has `start - step * (n mod count)`, cut to the field.
    Decrement {
        /// First.
        start: u128,
        /// Difference.
        step: u128,
        /// Length of the walk.
        count: u64,
    },
    /// Numbers of a generator, the same after each `count` frames.
    Random {
        /// Least.
        min: u128,
        /// Greatest.
        max: u128,
        /// Seed.
        seed: u64,
        /// Length of the walk.
        count: u64,
    },
    /// A checksum that is wrong on purpose.
    Bad,
}
