//! Checks over all phases: duplicates, order, corruption, re-marks, and PAUSE/PFC frames that
//! should not be there.

use pfc_ebpf::units::Priority;
use pfc_ebpf::wire::Malformed;

use super::mac::{self, Counted, Witness};
use crate::cases::finding::Finding;
use crate::evidence::pfc::{FlowReceived, PfcEvidence};

fn total(e: &PfcEvidence, count: impl Fn(&FlowReceived) -> u64) -> u64 {
    e.received.iter().map(count).sum()
}

fn expect_none(finding: &mut Finding, what: &str, found: u64) {
    finding.prove(what, "0", found.to_string(), found == 0, true);
}

/// A frame behind the window may be late or a duplicate.
fn leave_open_beyond_window(finding: &mut Finding, e: &PfcEvidence) {
    let beyond = total(e, |flow| flow.beyond_window);
    if beyond > 0 {
        finding.undecided(
            "frames too far behind to tell late from duplicate",
            "0",
            beyond.to_string(),
        );
    }
}

/// `no-duplicate`.
pub(in crate::cases::pfc) fn no_duplicate(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    expect_none(
        &mut finding,
        "frames whose sequence number had arrived before",
        total(e, |flow| flow.duplicate),
    );
    leave_open_beyond_window(&mut finding, e);
    finding
}

/// `no-reorder`.
pub(in crate::cases::pfc) fn no_reorder(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    expect_none(
        &mut finding,
        "frames that arrived after a later one of their flow",
        total(e, |flow| flow.reordered),
    );
    leave_open_beyond_window(&mut finding, e);
    finding
}

/// `no-corruption`.
pub(in crate::cases::pfc) fn no_corruption(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let arrived = total(e, |flow| flow.frames + flow.duplicate);
    let verified = total(e, |flow| {
        flow.verified.unwrap_or(flow.frames + flow.duplicate)
    });
    let of = if verified < arrived {
        format!(", of {verified} verified among {arrived}")
    } else {
        String::new()
    };
    if arrived > 0 && verified == 0 {
        finding.undecidable("frames whose UDP checksum was verified", "some", "0");
    }
    expect_none(
        &mut finding,
        &format!("frames with a wrong UDP checksum{of}"),
        total(e, |flow| flow.corrupt),
    );
    for (what, kind) in [
        ("damaged stamps", Malformed::Stamp),
        ("wrong IPv4 header checksums", Malformed::Ipv4Checksum),
    ] {
        let found = e
            .rx_port
            .malformed
            .iter()
            .filter(|(reason, _)| *reason == kind)
            .map(|(_, count)| count)
            .sum();
        expect_none(&mut finding, what, found);
    }
    finding
}

/// `no-remark`.
pub(in crate::cases::pfc) fn no_remark(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let (remarked, untagged) = (
        total(e, |flow| flow.remarked),
        total(e, |flow| flow.untagged),
    );
    if untagged > 0 {
        // A tag that offload has taken out of the frame looks like one that was removed.
        finding.undecidable(
            "frames without a VLAN tag",
            "0",
            format!("{untagged}: removed by the DUT, or by VLAN offload on the rx port"),
        );
    }
    expect_none(
        &mut finding,
        "frames whose DSCP or PCP is not what was sent",
        remarked - untagged,
    );
    finding
}

/// `no-pfc-on-lossy`.
pub(in crate::cases::pfc) fn no_pfc_on_lossy(e: &PfcEvidence) -> Finding {
    let lossy: Vec<Priority> = Priority::all()
        .filter(|priority| !e.plan.is_lossless(*priority))
        .collect();
    if lossy.is_empty() {
        return Finding::not_applicable("every priority is lossless in this repetition");
    }
    let mut finding = Finding::new();
    let witness = mac::witness(e);
    for priority in lossy {
        if let Ok(Witness::Mac(mac)) = &witness {
            let what = format!(
                "XOFF frames of the DUT for lossy priority {priority}, by the MAC of {} ({})",
                mac.interface, mac.driver
            );
            let forwarded = e.tx_port.own_control;
            match (mac::xoff_at_rx(e, priority), mac::xoff(mac, priority)) {
                (Some(how), _) => finding.prove(what, "0", how, false, true),
                // A MAC tells no source: what it counted may be frames of the tester's own storm.
                (None, Counted::Some(how)) if forwarded > 0 => finding.undecidable(
                    what,
                    "0",
                    format!("{how}, but {forwarded} frames of the storm came in there too"),
                ),
                (None, Counted::Some(how)) => finding.prove(what, "0", how, false, true),
                (None, Counted::None(how)) => finding.prove(what, "0", how, true, false),
                (None, Counted::Unknown(why)) => finding.undecidable(what, "0", why),
            }
            continue;
        }
        let found = e.tx_port.pfc[priority.index()].xoff + e.rx_port.pfc[priority.index()].xoff;
        expect_none(
            &mut finding,
            &format!("XOFF frames of the DUT for lossy priority {priority}"),
            found,
        );
    }
    finding
}

/// `no-mac-control-forwarded`.
pub(in crate::cases::pfc) fn no_mac_control_forwarded(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let sent = e.storm.as_ref().map_or(0, |storm| storm.frames);
    if sent == 0 {
        finding.undecided("PAUSE/PFC frames of the storm", "some", "none left");
    }
    // Frames that the program saw are proof, whatever the witness of the DUT's own.
    if e.tx_port.own_control == 0
        && let Ok(Witness::Mac(mac)) = mac::witness(e)
    {
        let what = format!(
            "PAUSE/PFC frames like those of the storm, by the MAC of {} ({})",
            mac.interface, mac.driver
        );
        match mac::storm_at_tx(e, mac) {
            Counted::None(how) => finding.prove(what, "0", how, true, false),
            Counted::Some(how) | Counted::Unknown(how) => finding.undecidable(
                what,
                "0",
                format!("{how}; a MAC's counters do not tell whose they are"),
            ),
        }
        return finding;
    }
    expect_none(
        &mut finding,
        "PAUSE/PFC frames of the storm seen at the tx port",
        e.tx_port.own_control,
    );
    finding
}
