//! Checks over all phases: duplicates, order, corruption, re-marks, and PAUSE/PFC frames that
//! should not be there.

use pfc_ebpf::units::Priority;
use pfc_ebpf::wire::Malformed;

use super::mac::{self, Counted, Witness};
use super::preconditions::{lost_by_tester, name, named, sees_pfc};
use crate::cases::finding::Finding;
use crate::cases::value::count;
use crate::evidence::mac::MacReport;
use crate::evidence::pfc::{FlowReceived, PfcEvidence, Port};
use crate::plan::form::Form;
use crate::plan::{PortName, PortRole};

/// The sum of a count of what arrived.
pub(in crate::cases::pfc) fn total(e: &PfcEvidence, count: impl Fn(&FlowReceived) -> u64) -> u64 {
    e.received.iter().map(count).sum()
}

/// Test frames that arrived damaged at a receiving port, for this reason.
fn damaged_by(e: &PfcEvidence, reason: Malformed) -> u64 {
    let ports = e.ports.receivers();
    ports.map(|(_, port)| port.counts.damaged_by(reason)).sum()
}

fn expect_none(finding: &mut Finding, what: &str, found: u64) {
    finding.prove(what, 0, found, found == 0, true);
}

/// The MAC whose counters show it.
fn by(mac: &MacReport) -> String {
    format!("by the MAC of {} ({})", mac.interface, mac.driver)
}

/// Frames far behind the newest of their flow, which came too late for the program to know if their
/// number had arrived: those that are duplicates for certain, and the others. Frames of a flow that
/// arrived in a phase are at most those that left in it; the difference is missing, and no more of
/// these frames can be late ones.
fn far_behind(e: &PfcEvidence) -> (u64, u64) {
    let of_flow = |received: &FlowReceived| {
        let sent = e.sent(received.flow, received.phase);
        let sent = sent.map_or(0, |sent| sent.frames);
        let open = received
            .beyond_window
            .min(sent.saturating_sub(received.frames));
        (received.beyond_window - open, open)
    };
    let both = e.received.iter().map(of_flow);
    both.fold((0, 0), |sum, flow| (sum.0 + flow.0, sum.1 + flow.1))
}

/// `no-duplicate`.
pub(in crate::cases::pfc) fn no_duplicate(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let (late, open) = far_behind(e);
    expect_none(
        &mut finding,
        "frames whose sequence number had arrived before",
        total(e, |flow| flow.duplicate) + late,
    );
    if open > 0 {
        let what = "frames too far behind to tell late from duplicate";
        finding.undecided(what, 0, open);
    }
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
    // Each is late, or a copy of one that is lost: the DUT's doing either way.
    let open = far_behind(e).1;
    if open > 0 {
        finding.prove(
            "frames that arrived late, or that are lost and another twice",
            0,
            open,
            false,
            lost_by_tester(e).0 == 0,
        );
    }
    finding
}

/// Returns in words how many frames were verified, if not all. None verified leaves the check
/// undecided.
fn verified(finding: &mut Finding, e: &PfcEvidence) -> String {
    let arrived = total(e, |flow| flow.frames + flow.duplicate);
    let verified = total(e, |flow| {
        flow.verified.unwrap_or(flow.frames + flow.duplicate)
    });
    if arrived > 0 && verified == 0 {
        finding.undecidable("frames whose octets were verified", "some", 0);
    }
    if verified < arrived {
        format!(", of {verified} verified among {arrived}")
    } else {
        String::new()
    }
}

/// `no-corruption`.
pub(in crate::cases::pfc) fn no_corruption(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let of = verified(&mut finding, e);
    expect_none(
        &mut finding,
        &format!("frames with a wrong UDP checksum{of}"),
        total(e, |flow| flow.corrupt),
    );
    expect_none(
        &mut finding,
        &format!("frames whose payload is not, octet by octet, what was sent{of}"),
        total(e, |flow| flow.altered),
    );
    for (what, reason) in [
        ("damaged stamps", Malformed::Stamp),
        ("wrong IPv4 header checksums", Malformed::Ipv4Checksum),
        ("another EtherType, protocol or port", Malformed::Headers),
        ("another IP version", Malformed::IpVersion),
    ] {
        let what = format!("test frames with {what}");
        expect_none(&mut finding, &what, damaged_by(e, reason));
    }
    finding
}

/// Octets by which a DUT may change the length of all frames of a flow alike: VLAN tags.
const TAGS: [i64; 5] = [-8, -4, 0, 4, 8];

/// `no-resize`.
pub(in crate::cases::pfc) fn no_resize(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let of = verified(&mut finding, e);
    expect_none(
        &mut finding,
        &format!("frames longer or shorter than was sent, tags left out{of}"),
        total(e, |flow| flow.resized),
    );
    let cut = [
        Malformed::Ipv4Truncated,
        Malformed::Ipv6Truncated,
        Malformed::UdpTruncated,
    ];
    expect_none(
        &mut finding,
        "test frames that end before their headers say so",
        cut.map(|reason| damaged_by(e, reason)).iter().sum(),
    );
    for flow in &e.plan.flows {
        let of_flow = e.received.iter().filter(|found| found.flow == flow.id);
        let (frames, octets) = of_flow.fold((0u64, 0u64), |(frames, octets), found| {
            let frames = frames.saturating_add(found.frames);
            (frames, octets.saturating_add(found.octets))
        });
        let expected = frames.saturating_mul(flow.length as u64);
        let more = i128::from(octets) - i128::from(expected);
        let by_tags = |tag: &i64| i128::from(*tag) * i128::from(frames) == more;
        // Flows with the expected octets are not listed: there may be many.
        if !TAGS.iter().any(by_tags) {
            finding.of_flow(&named(e, flow), |finding| {
                let what = format!("octets of {} in {frames} frames", name(e, flow));
                finding.prove(what, expected, octets, false, true)
            });
        }
    }
    finding
}

/// `no-remark`.
pub(in crate::cases::pfc) fn no_remark(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let remarked = total(e, |flow| flow.remarked);
    let untagged = total(e, |flow| flow.untagged);
    if untagged > 0 {
        // A tag that offload has taken out of the frame looks like one that was removed.
        finding.undecidable(
            "frames without a VLAN tag",
            0,
            count(untagged, "") + ": removed by the DUT, or by VLAN offload on the rx port",
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
    let is_lossy = |priority: &Priority| !e.plan.is_lossless(*priority);
    let lossy: Vec<Priority> = Priority::all().filter(is_lossy).collect();
    if lossy.is_empty() {
        return Finding::not_applicable("every priority is lossless in this repetition");
    }
    let mut finding = Finding::new();
    let witness = mac::witness(e);
    for priority in lossy {
        let at_further = e.ports.more.values();
        let at_further: u64 = at_further
            .map(|port| port.counts.pfc[priority.index()].xoff)
            .sum();
        if at_further > 0 {
            let what = format!("XOFF frames of the DUT for lossy priority {priority}");
            finding.prove(what + " at further ports", 0, at_further, false, true);
        }
        if let Ok(Witness::Mac(mac)) = &witness {
            let what = format!(
                "XOFF frames of the DUT for lossy priority {priority}, {}",
                by(mac)
            );
            let forwarded = e.ports.tx.counts.own_control;
            match (mac::xoff_at_rx(e, priority), mac::xoff(mac, priority)) {
                // A MAC tells no source: what it counted may be frames of the tester's own storm.
                (None, Counted::Some(how)) if forwarded > 0 => finding.undecidable(
                    what,
                    0,
                    how + ", but " + forwarded + " frames of the storm came in there too",
                ),
                (Some(how), _) | (None, Counted::Some(how)) => {
                    finding.prove(what, 0, how, false, true);
                }
                (None, Counted::None(how)) => finding.expect(what, 0, how, true),
                (None, Counted::Unknown(why) | Counted::Unshown(why)) => {
                    finding.undecidable(what, 0, why);
                }
            }
            continue;
        }
        let what = format!("XOFF frames of the DUT for lossy priority {priority}");
        let [tx, rx] = [&e.ports.tx, &e.ports.rx].map(|port| &port.counts);
        let [tx, rx] = [tx, rx].map(|counts| counts.pfc[priority.index()].xoff);
        expect_none(&mut finding, &what, tx + rx);
    }
    finding
}

/// `no-pause`.
pub(in crate::cases::pfc) fn no_pause(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let xoff = |(_, port): (_, &Port)| port.counts.pause.xoff;
    let found = e.ports.iter().map(xoff).sum();
    // Frames that the program saw are proof, whatever the witness of the DUT's PFC.
    if found == 0
        && let Ok(Witness::Mac(mac)) = mac::witness(e)
    {
        let what = format!("802.3x PAUSE frames of the DUT, {}", by(mac));
        match mac::pause(mac) {
            Counted::None(how) => finding.expect(what, 0, how, true),
            Counted::Some(how) | Counted::Unknown(how) => finding.undecidable(what, 0, how),
            // On a port for PFC no PAUSE frame comes that would show its counter to count.
            Counted::Unshown(how) => {
                let (mac, how) = (&mac.interface, how.into_text());
                return Finding::not_applicable(format!(
                    "the MAC of {mac} keeps PAUSE frames: {how}"
                ));
            }
        }
        return finding;
    }
    let what = "802.3x PAUSE frames of the DUT with a time above 0";
    expect_none(&mut finding, what, found);
    finding
}

/// PAUSE/PFC frames that the rx port sent: those of the storm, or else of the probe.
pub(in crate::cases::pfc) fn pause_frames(e: &PfcEvidence) -> u64 {
    match &e.plan.storm {
        Some(_) => e.storm.as_ref().map_or(0, |storm| storm.frames),
        None => {
            let probes = e.probes.iter();
            let left = probes.flat_map(|probe| probe.burst.frames.iter().zip(&probe.left));
            left.filter(|(one, _)| one.frame.form != Form::EthertypeNext)
                .count() as u64
        }
    }
}

/// `no-mac-control-forwarded`.
pub(in crate::cases::pfc) fn no_mac_control_forwarded(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let of = if e.plan.storm.is_some() {
        "storm"
    } else {
        "probe"
    };
    if pause_frames(e) == 0 {
        finding.undecided("PAUSE/PFC frames of the rx port", "some", "none left");
    }
    // MACs keep what the program of the rx port is not shown to see.
    let rx = &e.ports.rx;
    let is_seen = rx.pfc_visible.is_some() && rx.takes_own_pfc.is_none();
    if is_seen || e.ports.rx.counts.own_control > 0 {
        let what = format!("PAUSE/PFC frames of the {of} that came back to the rx port");
        expect_none(&mut finding, &what, e.ports.rx.counts.own_control);
    }
    // Frames that the program saw are proof, whatever the witness of the DUT's own.
    // A MAC may keep what a further port is not shown to see.
    let looked_at = |(name, port): &(&PortName, &Port)| {
        let is_further = **name != PortName::TX && **name != PortName::RX;
        **name == PortName::TX || is_further && (sees_pfc(port) || port.counts.own_control > 0)
    };
    let others = || e.ports.iter().filter(looked_at);
    let forwarded = others().map(|(_, port)| port.counts.own_control).sum();
    if forwarded == 0
        && let Ok(Witness::Mac(mac)) = mac::witness(e)
    {
        let what = format!("PAUSE/PFC frames like those of the {of}, {}", by(mac));
        match mac::storm_at_tx(e, mac) {
            Counted::None(how) => finding.expect(what, 0, how, true),
            Counted::Some(how) | Counted::Unknown(how) | Counted::Unshown(how) => {
                let why = how + "; a MAC's counters do not tell whose they are";
                finding.undecidable(what, 0, why);
            }
        }
        return finding;
    }
    let at = match e.ports.more.is_empty() {
        true => "the tx port".to_owned(),
        false => {
            let names = others().map(|(name, _)| name.to_string());
            names.collect::<Vec<_>>().join(", ")
        }
    };
    let what = format!("PAUSE/PFC frames of the {of} seen at {at}");
    expect_none(&mut finding, &what, forwarded);
    finding
}

/// `no-reflection`.
pub(in crate::cases::pfc) fn no_reflection(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    // A sole receiving port has no frames of another.
    let several = e.ports.receivers().nth(1).is_some();
    let looked_at = |(_, port): &(_, &Port)| port.role == PortRole::Tx || several;
    for (name, port) in e.ports.iter().filter(looked_at) {
        let (what, found) = match port.role {
            PortRole::Tx if *name == PortName::TX => ("came back to", port.counts.test_frames),
            PortRole::Tx => ("came to", port.counts.test_frames),
            PortRole::Rx => ("of flows to another port came to", port.counts.misdelivered),
        };
        let what = match port.role {
            PortRole::Tx => format!("test frames that {what} the {name} port"),
            PortRole::Rx => format!("test frames {what} the {name} port"),
        };
        if port.alive || port.pfc_visible.is_some() || port.counts.frames > 0 {
            expect_none(&mut finding, &what, found);
        } else {
            finding.undecidable(what, 0, "not one frame showed that its program counts");
        }
    }
    finding
}
