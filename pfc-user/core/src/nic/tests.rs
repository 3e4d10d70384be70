//! The table: every driver's names, and what holds of all.

use std::collections::BTreeSet;

use super::*;
use crate::evidence::preflight::{FrameCounts, Pfc};

#[test]
fn drivers_are_named_once() {
    let names: BTreeSet<_> = TABLE.iter().map(|nic| nic.driver).collect();
    assert_eq!(names.len(), TABLE.len());
    for driver in [
        "ixgbe",
        "igc",
        "igb",
        "e1000e",
        "e1000",
        "i40e",
        "ice",
        "mlx5_core",
        "veth",
        "virtio_net",
        "vmxnet3",
        "ena",
        "fsl_enetc",
        "fsl_dpaa2_eth",
        "st_gmac",
        "mvneta",
        "tsnep",
    ] {
        assert!(find(driver).is_some(), "{driver}");
    }
    assert!(find("").is_none() && of("unheard-of").lag > of("veth").lag);
}

#[test]
fn links_without_a_phy_are_usable_at_once_and_others_are_given_time() {
    assert_eq!((of("veth").carrier_hold, of("veth").filter_pause), (0, 0));
    for driver in ["igb", "e1000e", "e1000", "mlx5_core", "unheard-of"] {
        assert!(of(driver).carrier_hold >= 500_000_000, "{driver}");
    }
    // Seen with QEMU's e1000: a second.
    assert!(
        of("e1000").filter_pause > 1_000_000_000
            && of("unheard-of").filter_pause >= of("e1000").filter_pause
    );
}

fn found(driver: &str, names: &[&str]) -> Vec<(String, Subject, Frames)> {
    let private = names.iter().map(|name| ((*name).to_owned(), 1)).collect();
    let reading = MacReading {
        driver: driver.into(),
        private,
        ..MacReading::default()
    };
    counters(&reading)
        .into_iter()
        .map(|(counter, _)| (counter.name, counter.subject, counter.frames))
        .collect()
}

#[test]
fn the_drivers_own_names_are_known() {
    let three = Subject::Priority(Priority::new(3).unwrap());
    for (driver, name, subject, frames) in [
        ("mlx5_core", "rx_prio3_pause", three, Frames::Either),
        (
            "mlx5_core",
            "rx_prio3_pause_duration",
            three,
            Frames::Effect,
        ),
        (
            "mlx5_core",
            "rx_prio3_pause_transition",
            three,
            Frames::Effect,
        ),
        (
            "mlx5_core",
            "rx_pause_ctrl_phy",
            Subject::Pause,
            Frames::Either,
        ),
        ("i40e", "port.rx_priority_3_xoff_rx", three, Frames::Xoff),
        ("i40e", "port.rx_priority_3_xoff", three, Frames::Xoff),
        ("i40e", "port.rx_priority_3_xon", three, Frames::Xon),
        ("ice", "rx_priority_3_xoff.nic", three, Frames::Xoff),
        ("ixgbe", "rx_pb_3_pxoff", three, Frames::Xoff),
        ("ixgbe", "rx_pb_3_pxon", three, Frames::Xon),
        ("bnxt_en", "rx_pfc_ena_frames_pri3", three, Frames::Either),
        ("bnxt_en", "pfc_pri3_rx_transitions", three, Frames::Effect),
        ("mlx4_en", "rx_pause_prio_3", three, Frames::Either),
        ("mlx4_en", "rx_pause_duration_prio_3", three, Frames::Effect),
        ("igb", "rx_flow_control_xoff", Subject::Pause, Frames::Xoff),
    ] {
        assert_eq!(
            found(driver, &[name]),
            [(name.to_owned(), subject, frames)],
            "{driver}"
        );
    }
}

#[test]
fn what_is_sent_and_what_only_looks_alike_is_not_counted() {
    assert_eq!(
        found(
            "mlx5_core",
            &[
                "tx_prio3_pause",
                "rx_prio3_packets",
                "rx_prio8_pause",
                "rx_prio03_pause",
                "rx_prio_pause"
            ]
        ),
        []
    );
    assert_eq!(
        found(
            "i40e",
            &[
                "port.tx_priority_3_xoff_tx",
                "port.rx_priority_3_xon_2_xoff",
                "rx_priority_3_xoff.nic"
            ]
        ),
        []
    );
    assert_eq!(found("veth", &["rx_prio3_pause"]), []);
}

#[test]
fn standard_counters_are_there_for_every_driver() {
    let received = |received| FrameCounts {
        received: Some(received),
        sent: None,
    };
    let pfc = Some(Pfc {
        indications: [0, 1, 2, 3, 4, 5, 6, 7],
        requests: [9; 8],
        ..Pfc::default()
    });
    let reading = |driver: &str| MacReading {
        driver: driver.into(),
        private: Vec::new(),
        pause: received(40),
        mac_control: received(50),
        pfc,
    };
    let all = counters(&reading("unheard-of"));
    let values: Vec<_> = all
        .iter()
        .map(|(counter, value)| (counter.name.as_str(), counter.frames, *value))
        .collect();
    assert_eq!(values[3], ("indications[3]", Frames::Either, 3));
    assert_eq!(
        values[8..],
        [
            ("rx_pause_frames", Frames::Either, 40),
            ("MACControlFramesReceived", Frames::Either, 50)
        ]
    );
    assert_eq!(counters(&reading("i40e"))[3].0.frames, Frames::Xoff);
    assert_eq!(
        counters(&reading("ixgbe")).len(),
        2,
        "its driver has sent and received the wrong way round"
    );
}

#[test]
fn a_row_that_says_nothing_of_pause_frames_is_no_survey() {
    assert!(of("sfc").resets && find("sfc").is_none());
    assert_eq!(
        (of("sfc").lag, of("sfc").filter_pause),
        (of("unheard-of").lag, of("unheard-of").filter_pause)
    );
    // Programs of these run in the stack, or where nothing is reset.
    assert!(!of("e1000e").resets && !of("veth").resets && !of("unheard-of").resets);
    assert!(!of("tun").polls_queues && of("veth").polls_queues && of("unheard-of").polls_queues);
    assert!(of("veth").counts_untaken && !of("igb").counts_untaken);
}

#[test]
fn priorities_of_what_was_sent_are_known_by_the_names_of_any_driver() {
    let named = |name: fn(u64) -> String| (0..8).map(|n| (name(n), n)).collect::<Vec<_>>();
    let found = |name| sent_by_priority(&named(name)).map(|(names, _)| names);
    let all = [0, 1, 2, 3, 4, 5, 6, 7];
    assert_eq!(
        sent_by_priority(&named(|n| format!("tx_prio{n}_packets"))),
        Some(("tx_prioN_packets".to_owned(), all))
    );
    assert_eq!(
        found(|n| format!("tx_prio_{n}_packets")).as_deref(),
        Some("tx_prio_N_packets")
    );
    assert_eq!(
        found(|n| format!("tx_packets_pri{n}")).as_deref(),
        Some("tx_packets_priN")
    );
    assert_eq!(found(|n| format!("tx_prio{n}_pause")), None);
    assert_eq!(
        sent_by_priority(&named(|n| format!("tx_prio{n}_packets"))[..7]),
        None
    );
}
