//! Subnet management packets, LID-routed and directed-route (14.2.1): 256 octets with accessors.
//!
//! | octets | field | LID-routed | directed-route |
//! |---|---|---|---|
//! | 0 to 3 | base version, class, class version, method | 1, 0x01, 1 | 1, 0x81, 1 |
//! | 4 to 5 | status | 16 bits | bit 15 is D, then 15 bits |
//! | 6, 7 | | reserved | hop pointer, hop count |
//! | 8 to 15 | TID | | |
//! | 16 to 17, 20 to 23 | attribute id, attribute modifier | | |
//! | 24 to 31 | M_Key | | |
//! | 32 to 35 | | reserved | DrSLID, DrDLID |
//! | 64 to 127 | attribute | | |
//! | 128 to 191, 192 to 255 | | reserved | initial path, return path |

use std::fmt;
use std::str::FromStr;

use crate::mad::{
    AttributeId, CLASS_SUBN_DIRECTED, CLASS_SUBN_LID, LENGTH, Lid, MKey, MadError, Method, Status,
    Tid,
};

/// Octets of the attribute.
pub const DATA: usize = 64;
/// Most hops of a directed route.
pub const MAX_HOPS: usize = 63;

/// Routing of a request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Route {
    /// By LID, through the forwarding tables.
    Lid(Lid),
    /// By directed route, port by port.
    Directed(Path),
}

/// A directed route: the egress port of each hop. The node itself has no hops. Written as in
/// infiniband-diags: `0,1,3`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct Path(Vec<u8>);

/// Error of parsing a path.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// Not of the form `0,1,3`.
    #[error(
        "expected `0` and after it the egress port (1 to 254) of each hop, such as 0,1,3; \
         found {0:?}"
    )]
    Form(String),
    /// More hops than a packet can hold.
    #[error("expected at most {MAX_HOPS} hops, found {0}")]
    TooLong(usize),
}

impl Path {
    /// Makes a path from the egress ports of its hops.
    pub fn new(ports: Vec<u8>) -> Result<Self, PathError> {
        match ports.len() {
            0..=MAX_HOPS => Ok(Self(ports)),
            hops => Err(PathError::TooLong(hops)),
        }
    }

    /// Egress ports of the hops.
    pub fn ports(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let wrong = || PathError::Form(text.to_owned());
        let mut numbers = text.split(',').map(|number| number.trim().parse::<u8>());
        if numbers.next() != Some(Ok(0)) {
            return Err(wrong());
        }
        let ports: Vec<u8> = numbers.collect::<Result<_, _>>().map_err(|_| wrong())?;
        if ports.iter().any(|port| matches!(port, 0 | 255)) {
            return Err(wrong());
        }
        Self::new(ports)
    }
}

impl TryFrom<String> for Path {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        text.parse()
    }
}

impl From<Path> for String {
    fn from(path: Path) -> Self {
        path.to_string()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0")?;
        self.0.iter().try_for_each(|port| write!(f, ",{port}"))
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lid(lid) => write!(f, "LID {lid}"),
            Self::Directed(path) => write!(f, "path {path}"),
        }
    }
}

/// A subnet management packet.
#[derive(Clone, PartialEq, Eq)]
pub struct Smp([u8; LENGTH]);

impl Smp {
    /// Makes a request without data, M_Key and TID.
    pub fn request(method: Method, attribute: AttributeId, modifier: u32, route: &Route) -> Self {
        let mut smp = Self([0; LENGTH]);
        smp.0[0] = 1;
        smp.0[2] = 1;
        smp.0[3] = method.0;
        smp.put(16, attribute.0.to_be_bytes());
        smp.put(20, modifier.to_be_bytes());
        match route {
            Route::Lid(_) => smp.0[1] = CLASS_SUBN_LID,
            Route::Directed(path) => {
                smp.0[1] = CLASS_SUBN_DIRECTED;
                smp.0[7] = path.0.len() as u8;
                // No part of the route is LID-routed (14.2.2).
                smp.put(32, Lid::PERMISSIVE.0.to_be_bytes());
                smp.put(34, Lid::PERMISSIVE.0.to_be_bytes());
                smp.0[129..129 + path.0.len()].copy_from_slice(&path.0);
            }
        }
        smp
    }

    /// Parses a packet. Returns an error unless it is an SMP of base version 1.
    pub fn parse(octets: &[u8]) -> Result<Self, MadError> {
        let octets: &[u8; LENGTH] = octets
            .try_into()
            .map_err(|_| MadError::Length(octets.len()))?;
        match *octets {
            [1, CLASS_SUBN_LID | CLASS_SUBN_DIRECTED, ..] => Ok(Self(*octets)),
            [1, class, ..] => Err(MadError::Class(class)),
            [version, ..] => Err(MadError::BaseVersion(version)),
        }
    }

    /// All octets.
    pub fn octets(&self) -> &[u8; LENGTH] {
        &self.0
    }

    /// Mutable access to all octets. The caller answers for their meaning.
    pub fn octets_mut(&mut self) -> &mut [u8; LENGTH] {
        &mut self.0
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|index| self.0[at + index])
    }

    fn put<const N: usize>(&mut self, at: usize, octets: [u8; N]) {
        self.0[at..at + N].copy_from_slice(&octets);
    }

    /// True if the class is 0x81.
    pub fn is_directed(&self) -> bool {
        self.0[1] == CLASS_SUBN_DIRECTED
    }

    /// Class version; 1 is the only one for both classes. [`Smp::parse`] accepts others, because an
    /// agent answers them with [`Status::BAD_VERSION`].
    pub fn class_version(&self) -> u8 {
        self.0[2]
    }

    /// Method.
    pub fn method(&self) -> Method {
        Method(self.0[3])
    }

    /// Status without the direction bit.
    pub fn status(&self) -> Status {
        Status::from_bits(u16::from_be_bytes(self.array(4)))
    }

    /// True if the direction bit of a directed-route SMP is set: it is on its way back.
    pub fn is_returning(&self) -> bool {
        self.is_directed() && self.0[4] & 0x80 != 0
    }

    /// Hop pointer and hop count of a directed-route SMP. They are not checked: either can exceed
    /// [`MAX_HOPS`].
    pub fn hops(&self) -> (u8, u8) {
        (self.0[6], self.0[7])
    }

    /// DrSLID of a directed-route SMP: the LID at which the directed route begins. It is the
    /// permissive LID if no LID-routed part precedes it.
    pub fn dr_slid(&self) -> Lid {
        Lid(u16::from_be_bytes(self.array(32)))
    }

    /// DrDLID of a directed-route SMP: the destination of the LID-routed part after the directed
    /// route, or the permissive LID if there is none.
    pub fn dr_dlid(&self) -> Lid {
        Lid(u16::from_be_bytes(self.array(34)))
    }

    /// Initial path of a directed-route SMP: egress ports on the way there; element 0 is unused.
    pub fn initial_path(&self) -> &[u8; 64] {
        self.0[128..192].try_into().expect("64 octets")
    }

    /// Return path of a directed-route SMP: egress ports on the way back. Element 1 is the one next
    /// to the requester; element 0 is unused.
    pub fn return_path(&self) -> &[u8; 64] {
        self.0[192..].try_into().expect("64 octets")
    }

    /// Mutable access to the return path.
    pub fn return_path_mut(&mut self) -> &mut [u8; 64] {
        (&mut self.0[192..]).try_into().expect("64 octets")
    }

    /// The initial path as a route; `None` for a LID-routed SMP and if the hop count exceeds
    /// [`MAX_HOPS`].
    pub fn path(&self) -> Option<Path> {
        let hops = usize::from(self.0[7]);
        (self.is_directed() && hops <= MAX_HOPS)
            .then(|| Path(self.initial_path()[1..=hops].to_vec()))
    }

    /// Makes the response to this request (13.4.5): GetResp with `status`, and D set if the route
    /// is directed. All else, including the attribute, is copied from the request. The sender sets
    /// the hop pointer (14.2.2.4).
    pub fn response(&self, status: Status) -> Self {
        let mut response = self.clone();
        response.set_method(Method::GET_RESP);
        response.put(4, status.bits().to_be_bytes());
        response.set_returning(true);
        response
    }

    /// TID.
    pub fn tid(&self) -> Tid {
        Tid(u64::from_be_bytes(self.array(8)))
    }

    /// Attribute id.
    pub fn attribute(&self) -> AttributeId {
        AttributeId(u16::from_be_bytes(self.array(16)))
    }

    /// Attribute modifier.
    pub fn modifier(&self) -> u32 {
        u32::from_be_bytes(self.array(20))
    }

    /// M_Key.
    pub fn m_key(&self) -> MKey {
        MKey(u64::from_be_bytes(self.array(24)))
    }

    /// The attribute.
    pub fn data(&self) -> &[u8; DATA] {
        self.0[64..128].try_into().expect("64 octets")
    }

    /// Mutable access to the attribute.
    pub fn data_mut(&mut self) -> &mut [u8; DATA] {
        (&mut self.0[64..128]).try_into().expect("64 octets")
    }

    /// Sets the TID.
    pub fn set_tid(&mut self, tid: Tid) {
        self.put(8, tid.0.to_be_bytes());
    }

    /// Sets the M_Key.
    pub fn set_m_key(&mut self, m_key: MKey) {
        self.put(24, m_key.0.to_be_bytes());
    }

    /// Sets the status; the direction bit is kept.
    pub fn set_status(&mut self, status: Status) {
        let direction = self.0[4] & 0x80;
        self.put(4, status.bits().to_be_bytes());
        self.0[4] |= direction;
    }

    /// Sets the method.
    pub fn set_method(&mut self, method: Method) {
        self.0[3] = method.0;
    }

    /// Sets attribute id and modifier.
    pub fn set_attribute(&mut self, attribute: AttributeId, modifier: u32) {
        self.put(16, attribute.0.to_be_bytes());
        self.put(20, modifier.to_be_bytes());
    }

    /// Sets the direction bit of a directed-route SMP; other SMPs have none and stay unchanged.
    pub fn set_returning(&mut self, returning: bool) {
        if self.is_directed() {
            self.0[4] = self.0[4] & 0x7f | if returning { 0x80 } else { 0 };
        }
    }
}

impl fmt::Debug for Smp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Smp")
            .field("directed", &self.is_directed())
            .field("method", &self.method())
            .field("status", &self.status())
            .field("tid", &self.tid())
            .field("attribute", &self.attribute())
            .field("modifier", &self.modifier())
            .field("m_key", &self.m_key())
            .finish_non_exhaustive()
    }
}
