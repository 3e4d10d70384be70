//! Frames that leave a record: arrivals of logged phases, and offending frames.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::OffenceKind;
use pfc_ebpf::stamp::{Phase, Stamp};
use validator::driver::kernel::clock;

use super::{only_flow, run, run_all};
use crate::frames::TestFrame;
use crate::xdp::{config, flows, hex, loaded, stamp};

#[test]
fn root_logged_phases_leave_a_record_of_each_arrival() {
    let mut account = loaded(Trust::Dscp);
    let mut flows = flows(8);
    flows[3].log_phases = Phase::Storm.bit();
    account.configure(&config(Trust::Dscp), &flows).unwrap();
    run_all(&account, [0, 1, 1]);
    run(
        &account,
        &TestFrame::new(Stamp {
            phase: Phase::Probe,
            ..stamp(3, 2)
        })
        .octets(),
    );
    run(&account, &TestFrame::new(stamp(4, 0)).octets());
    let rings = account.take_rings().unwrap();
    assert_eq!(rings.arrivals.len(), 3);
    assert!(
        rings.arrivals.iter().all(|arrival| arrival.flow == 3
            && arrival.phase == Phase::Storm
            && arrival.latency > 0)
    );
    assert!(rings.arrivals.is_sorted_by_key(|arrival| arrival.time));
    assert_eq!(rings.arrivals_lost, 0);
    assert_eq!(
        rings
            .offences
            .iter()
            .filter(|offence| offence.kind == OffenceKind::Logged)
            .count(),
        3
    );
    assert_eq!(
        rings
            .offences
            .iter()
            .filter(|offence| offence.kind == OffenceKind::Duplicate)
            .count(),
        1
    );
    assert!(
        account.take_rings().unwrap().arrivals.is_empty(),
        "taken once"
    );
}

#[test]
fn root_a_flow_is_logged_in_other_bursts_without_a_count_of_it_being_lost() {
    let mut account = loaded(Trust::Dscp);
    let mut flows = flows(8);
    account.configure(&config(Trust::Dscp), &flows).unwrap();
    run_all(&account, [0, 1]);
    for (phases, sequences, logged) in [
        (Phase::Storm.bit(), [2, 3, 4], 3),
        (Phase::Probe.bit(), [5, 6, 7], 0),
    ] {
        flows[3].log_phases = phases;
        account.describe(&flows);
        run_all(&account, sequences);
        assert_eq!(account.take_rings().unwrap().arrivals.len(), logged);
    }
    assert_eq!(only_flow(&account).frames, 8);
}

#[test]
fn root_records_that_do_not_fit_are_counted() {
    let mut account = loaded(Trust::Dscp);
    let mut flows = flows(8);
    flows[3].log_phases = Phase::Storm.bit();
    account.configure(&config(Trust::Dscp), &flows).unwrap();
    let duplicate = TestFrame::new(stamp(3, 0)).octets();
    account.test_run(&duplicate, 300_000).unwrap();
    let rings = account.take_rings().unwrap();
    assert!(rings.arrivals.len() >= 200_000, "{}", rings.arrivals.len());
    assert_eq!(rings.arrivals.len() as u64 + rings.arrivals_lost, 300_000);
    let logged = rings
        .offences
        .iter()
        .filter(|offence| offence.kind == OffenceKind::Logged)
        .count();
    let duplicates = rings.offences.len() - logged;
    assert!(
        duplicates >= 512,
        "logged arrivals leave room for offences: {logged} and {duplicates}"
    );
    assert_eq!(
        duplicates as u64 + account.port().unwrap().offences_lost,
        299_999
    );
    assert_eq!(only_flow(&account).duplicate, 299_999);
}

#[test]
fn root_offences_keep_the_frame() {
    let mut account = loaded(Trust::Dscp);
    for payload in [22, 1000] {
        let mut octets = TestFrame {
            payload,
            ..TestFrame::new(stamp(3, payload as u64))
        }
        .octets();
        octets[34] ^= 1;
        let before = clock::now();
        run(&account, &octets);
        let mut offences = account.take_rings().unwrap().offences;
        offences.retain(|offence| offence.kind != OffenceKind::Resized);
        assert_eq!(offences.len(), 1);
        assert_eq!(
            (offences[0].kind, offences[0].malformed),
            (OffenceKind::Corrupt, None)
        );
        assert_eq!(offences[0].length as usize, octets.len());
        assert_eq!(
            hex(&offences[0].octets),
            hex(&octets[..octets.len().min(256)])
        );
        assert!(offences[0].time >= before);
    }
}
