//! The header common to all management datagrams (13.4.3), methods, status and attribute ids.

use std::fmt;

/// Time since an epoch of the transport's own; it never runs backwards.
pub type Time = std::time::Duration;

/// Length of a MAD in octets (13.4.2).
pub const LENGTH: usize = 256;

/// Management class of LID-routed subnet management.
pub const CLASS_SUBN_LID: u8 = 0x01;
/// Management class of directed-route subnet management.
pub const CLASS_SUBN_DIRECTED: u8 = 0x81;

/// Octets that are not a MAD of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MadError {
    /// The length is not that of a MAD.
    #[error("a MAD has {LENGTH} octets, found {0}")]
    Length(usize),
    /// Another base version than 1.
    #[error("base version 1 expected, found {0}")]
    BaseVersion(u8),
    /// Neither of the two classes of subnet management.
    #[error("management class 0x01 or 0x81 expected, found {0:#04x}")]
    Class(u8),
}

/// Method of a MAD (13.4.5): bit 7 marks a response.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Method(pub u8);

impl Method {
    /// Asks for an attribute.
    pub const GET: Self = Self(0x01);
    /// Changes an attribute.
    pub const SET: Self = Self(0x02);
    /// Sends data without a response; not for subnet management.
    pub const SEND: Self = Self(0x03);
    /// Notifies without a response.
    pub const TRAP: Self = Self(0x05);
    /// Forwards a trap to a subscriber; not for subnet management.
    pub const REPORT: Self = Self(0x06);
    /// Stops the repetition of a trap.
    pub const TRAP_REPRESS: Self = Self(0x07);
    /// Answers Get and Set.
    pub const GET_RESP: Self = Self(0x81);
    /// Answers Report.
    pub const REPORT_RESP: Self = Self(0x86);

    /// True if bit 7 is set.
    pub const fn is_response(self) -> bool {
        self.0 & 0x80 != 0
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::GET => f.pad("Get"),
            Self::SET => f.pad("Set"),
            Self::SEND => f.pad("Send"),
            Self::TRAP => f.pad("Trap"),
            Self::REPORT => f.pad("Report"),
            Self::TRAP_REPRESS => f.pad("TrapRepress"),
            Self::GET_RESP => f.pad("GetResp"),
            Self::REPORT_RESP => f.pad("ReportResp"),
            Self(other) => write!(f, "method {other:#04x}"),
        }
    }
}

/// Status of a response (13.4.7), without the direction bit of directed-route SMPs: 15 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Status(u16);

impl Status {
    /// Success.
    pub const OK: Self = Self(0);
    /// Busy: the MAD was discarded and may be sent again.
    pub const BUSY: Self = Self(0x0001);
    /// Code 1: base or class version, or their combination, not supported.
    pub const BAD_VERSION: Self = Self(0x0004);
    /// Code 2: method not supported.
    pub const UNSUPPORTED_METHOD: Self = Self(0x0008);
    /// Code 3: method not supported for this attribute.
    pub const UNSUPPORTED_METHOD_ATTRIBUTE: Self = Self(0x000c);
    /// Code 7: a field of the attribute or the modifier is invalid.
    pub const INVALID_FIELD: Self = Self(0x001c);

    /// Takes the 16 bits of the header and drops the direction bit (D, bit 15).
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & 0x7fff)
    }

    /// Returns the bits as in the header.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Bits 4:2, the code for invalid fields.
    pub const fn code(self) -> u8 {
        (self.0 >> 2 & 0x7) as u8
    }

    /// True if bit 0 is set.
    pub const fn is_busy(self) -> bool {
        self.0 & 1 != 0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x} (code {})", self.0, self.code())
    }
}

/// Id of an attribute (14.2.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttributeId(pub u16);

impl AttributeId {
    /// Contents of a trap.
    pub const NOTICE: Self = Self(0x0002);
    /// A node's name.
    pub const NODE_DESCRIPTION: Self = Self(0x0010);
    /// A node's kind and ports.
    pub const NODE_INFO: Self = Self(0x0011);
    /// A switch's tables.
    pub const SWITCH_INFO: Self = Self(0x0012);
    /// A port.
    pub const PORT_INFO: Self = Self(0x0015);
    /// 32 entries of a port's partition table.
    pub const P_KEY_TABLE: Self = Self(0x0016);
    /// 64 entries of a switch's linear forwarding table.
    pub const LINEAR_FORWARDING_TABLE: Self = Self(0x0019);
    /// 16 entries of a switch's random forwarding table.
    pub const RANDOM_FORWARDING_TABLE: Self = Self(0x001a);

    /// Returns the name in the specification; `None` for an attribute that this library does not
    /// know.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NOTICE => "Notice",
            Self::NODE_DESCRIPTION => "NodeDescription",
            Self::NODE_INFO => "NodeInfo",
            Self::SWITCH_INFO => "SwitchInfo",
            Self::PORT_INFO => "PortInfo",
            Self::P_KEY_TABLE => "P_KeyTable",
            Self::LINEAR_FORWARDING_TABLE => "LinearForwardingTable",
            Self::RANDOM_FORWARDING_TABLE => "RandomForwardingTable",
            _ => return None,
        })
    }
}

impl fmt::Display for AttributeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "attribute {:#06x}", self.0),
        }
    }
}

/// Transaction id; a request and its response have the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Tid(pub u64);

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

/// Management key (14.2.4): 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MKey(pub u64);

impl fmt::Display for MKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

/// Local identifier of a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lid(pub u16);

impl Lid {
    /// The permissive LID: every port accepts it.
    pub const PERMISSIVE: Self = Self(0xffff);
}

impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LID {}", self.0)
    }
}

macro_rules! debug_as_display {
    ($($type:ty),*) => { $(
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )* };
}
debug_as_display!(Method, Status, AttributeId, Tid, MKey);
