//! The notice of trap 256 (14.2.5.1, 14.3.9).

use super::node::NodeKind;
use crate::mad::Lid;
use crate::smp::{DATA, Smp};

/// Elements of the return path that fit.
const RETURN_PATH: usize = 30;

/// A bad M_Key: `smp` came from `from` to the node with LID `issuer`.
pub(super) fn bad_m_key(kind: NodeKind, issuer: Lid, from: Lid, smp: &Smp) -> [u8; DATA] {
    let mut data = [0; DATA];
    let mut put = |at: usize, octets: &[u8]| data[at..at + octets.len()].copy_from_slice(octets);
    // Generic, and of type security (2).
    put(0, &[0x82]);
    put(
        3,
        &[match kind {
            NodeKind::ChannelAdapter => 1,
            NodeKind::Switch(_) => 2,
        }],
    );
    put(4, &256u16.to_be_bytes());
    put(6, &issuer.0.to_be_bytes());
    put(12, &from.0.to_be_bytes());
    put(16, &[smp.method().0]);
    put(18, &smp.attribute().0.to_be_bytes());
    put(20, &smp.modifier().to_be_bytes());
    put(24, &smp.m_key().0.to_be_bytes());
    if smp.is_directed() {
        let octets = smp.octets();
        let hops = usize::from(smp.hops().1);
        let kept = hops.min(RETURN_PATH);
        put(14, &octets[32..34]);
        // The notice tells of a directed route, truncated where it is too long for the notice.
        put(33, &[0x80 | if hops > kept { 0x40 } else { 0 } | kept as u8]);
        put(34, &octets[192..192 + kept]);
    }
    data
}
