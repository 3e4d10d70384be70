//! The contract between the BPF programs and userspace: map names, keys, values and versions, one
//! program a file.
//!
//! Every value is plain old data of fixed layout, in the byte order of the host.

pub mod account;
pub mod flow;
pub mod generate;
pub mod responder;
pub mod watch;

/// The section (and so the map) that holds the ABI version an object was built with, and nothing
/// else.
pub const ABI_SECTION: &str = ".rodata.abi";

/// The field that tells the priority of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[repr(u8)]
pub enum Trust {
    /// The DSCP, through a map from DSCP to priority.
    Dscp = 0,
    /// The PCP of the outermost VLAN tag.
    Pcp = 1,
}
