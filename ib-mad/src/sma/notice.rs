//! The notice of trap 256 (14.2.5.1).

use super::config::NodeKind;
use crate::attr::{BadMKey, FieldError, Notice};
use crate::mad::Lid;
use crate::smp::Smp;

/// Makes the notice of a bad M_Key: `smp` came from `from` to the node with LID `issuer`.
pub(super) fn bad_m_key(kind: NodeKind, issuer: Lid, from: Lid, smp: &Smp) -> Notice {
    build(kind, issuer, from, smp).expect("each value fits its field")
}

fn build(kind: NodeKind, issuer: Lid, from: Lid, smp: &Smp) -> Result<Notice, FieldError> {
    let mut details = BadMKey::default();
    // The specification wants the requester's LID here; Linux' qib writes its own.
    details.set_lid(from.0)?;
    details.set_method(smp.method())?;
    details.set_attribute(smp.attribute())?;
    details.set_modifier(smp.modifier())?;
    details.set_m_key(smp.m_key())?;
    if smp.is_directed() {
        let hops = smp.hops().1;
        let room = BadMKey::RETURN_PATH;
        details.set_dr_slid(smp.dr_slid().0)?;
        details.set_dr_notice(true)?;
        details.set_dr_path_truncated(usize::from(hops) > room)?;
        details.set_dr_hop_count(hops.min(room as u8))?;
        details
            .dr_notice_return_path_mut()
            .copy_from_slice(&smp.return_path()[..room]);
    }
    let mut notice = Notice::default();
    notice.set_bad_m_key(&details)?;
    notice.set_producer_type_or_vendor_id(match kind {
        NodeKind::ChannelAdapter => 1,
        NodeKind::Switch(_) => 2,
    })?;
    notice.set_issuer_lid(issuer.0)?;
    Ok(notice)
}
