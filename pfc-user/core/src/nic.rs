//! What is known of NICs by the name of their driver: what becomes of PAUSE/PFC frames, which
//! counters count them, which count lost frames, and how long a port takes to be usable. A driver a
//! row; sources are named there. Nothing here is asked of a device.

mod broadcom;
mod drops;
mod embedded;
mod feature;
mod intel;
mod nvidia;
mod virtual_links;

use pfc_ebpf::units::Priority;

use crate::evidence::mac::{Frames, MacCounter, MacReading, Source, Subject};
use pfc_ebpf::units::Nanos;

pub use self::drops::{Drops, Loss, losses};
pub use self::feature::Feature;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Nic {
    /// Name of the driver, as `ethtool -i` shows it.
    pub driver: &'static str,
    /// What becomes of PAUSE/PFC frames that come in.
    pub receives: Receives,
    /// PAUSE/PFC frames that software sends leave; `false`: a filter drops them.
    pub sends: bool,
    /// Its private counters of PAUSE/PFC frames that came in.
    pub counters: &'static [Pattern],
    /// The counters by priority count only while PFC is enabled on the port.
    pub counts_with_pfc_alone: bool,
    /// What `indications` of the kernel's PFC structure counts; `None`: not what it should.
    pub indications: Option<Frames>,
    /// How old a count may be when it is read.
    pub lag: Nanos,
    /// Where XDP programs run.
    pub xdp: Xdp,
    /// What merges frames (LRO, rx-gro-hw) goes off by itself while a program is in the driver.
    pub stops_merging: bool,
    /// A carrier that has stayed for so long will stay. Settings, programs and the other end reset
    /// links, and until the PHY, the firmware or the other end acts the carrier still reads up.
    pub settles: Nanos,
    /// After a change of the filters, such as promiscuous mode, no frame may come in for so long.
    pub deaf: Nanos,
    /// Private counters of lost frames.
    pub drops: Drops,
    /// A standard counter of lost frames that also counts what a program in the driver drops.
    pub own_drops: Option<&'static str>,
}

/// Where XDP programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xdp {
    /// In the driver, since that version of Linux.
    Driver {
        /// Major and minor number.
        since: (u32, u32),
    },
    /// In the stack alone.
    Stack,
    /// Not known.
    Unknown,
}

/// What becomes of PAUSE/PFC frames that come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receives {
    /// The program sees them.
    PassesOn,
    /// The program sees them when `rx-all` is on.
    WithRxAll,
    /// The MAC keeps them, whatever is set.
    Keeps,
    /// The driver passes on what its host hands over; a bridge or virtual switch there, or the MAC
    /// below it, may keep them.
    ByHost,
    /// Not known; MACs usually keep them.
    Unknown,
}

/// A family of counters.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Its name, with `{}` for the priority: then it counts PFC, else PAUSE.
    pub name: &'static str,
    /// What makes it rise.
    pub frames: Frames,
}

/// Every driver of which something is known.
pub const TABLE: &[Nic] = &[
    intel::IXGBE,
    intel::IGC,
    intel::IGB,
    intel::E1000E,
    intel::E1000,
    intel::I40E,
    intel::ICE,
    nvidia::MLX5_CORE,
    nvidia::MLX4_EN,
    broadcom::BNXT_EN,
    embedded::ENETC,
    embedded::DPAA2,
    embedded::STMMAC,
    embedded::MVNETA,
    embedded::TSNEP,
    virtual_links::VETH,
    virtual_links::TUN,
    virtual_links::VIRTIO_NET,
    virtual_links::VMXNET3,
    virtual_links::ENA,
];

/// Of a driver that is not in the table. The standard counters may be refreshed by a timer: two
/// seconds are more than any known one.
const UNKNOWN: Nic = Nic {
    indications: Some(Frames::Either),
    lag: 2_000_000_000,
    deaf: 1_500_000_000,
    ..HARDWARE
};

/// What holds of a NIC unless its row says otherwise.
const HARDWARE: Nic = Nic {
    driver: "",
    receives: Receives::Unknown,
    sends: true,
    counters: &[],
    counts_with_pfc_alone: false,
    indications: None,
    lag: 0,
    xdp: Xdp::Unknown,
    stops_merging: false,
    // A PHY that negotiates again has let the link go by then, and so has a DUT that was
    // configured.
    settles: 500_000_000,
    deaf: 200_000_000,
    drops: Drops::BY_NAME,
    own_drops: None,
};

/// What is known of `driver`; `None` where nothing is.
pub fn find(driver: &str) -> Option<&'static Nic> {
    TABLE.iter().find(|nic| nic.driver == driver)
}

/// How old counts of `driver` may be when they are read.
pub fn lag(driver: &str) -> Nanos {
    find(driver).unwrap_or(&UNKNOWN).lag
}

/// For how long a carrier of `driver` has to stay before it counts.
pub fn settles(driver: &str) -> Nanos {
    find(driver).unwrap_or(&UNKNOWN).settles
}

/// For how long a port of `driver` may take no frame after its filters were set.
pub fn deaf(driver: &str) -> Nanos {
    find(driver).unwrap_or(&UNKNOWN).deaf
}

/// The standard counter that also counts what a program in `driver` drops, if there is one.
pub fn own_drops(driver: &str) -> Option<&'static str> {
    find(driver).and_then(|nic| nic.own_drops)
}

/// The counters of `reading` that count received PAUSE/PFC frames, each with its value.
pub fn counters(reading: &MacReading) -> Vec<(MacCounter, u64)> {
    let nic = find(&reading.driver).unwrap_or(&UNKNOWN);
    let of = |name: &str, source, subject, frames, array: Option<&str>| MacCounter {
        name: name.to_owned(),
        source,
        subject,
        frames,
        array: array.map(str::to_owned),
        alive: None,
        values: Vec::new(),
    };
    let mut found = Vec::new();
    for (name, value) in &reading.private {
        for pattern in nic.counters {
            match pattern.matches(name) {
                Some(Some(priority)) => {
                    found.push((
                        of(
                            name,
                            Source::Driver,
                            Subject::Priority(priority),
                            pattern.frames,
                            Some(pattern.name),
                        ),
                        *value,
                    ));
                }
                Some(None) => found.push((
                    of(name, Source::Driver, Subject::Pause, pattern.frames, None),
                    *value,
                )),
                None => {}
            }
        }
    }
    if let (Some(pfc), Some(frames)) = (&reading.pfc, nic.indications) {
        for priority in Priority::all() {
            let name = format!("indications[{priority}]");
            found.push((
                of(
                    &name,
                    Source::Dcb,
                    Subject::Priority(priority),
                    frames,
                    Some("indications"),
                ),
                pfc.indications[priority.index()],
            ));
        }
    }
    if let Some(value) = reading.pause.received {
        found.push((
            of(
                "rx_pause_frames",
                Source::Pause,
                Subject::Pause,
                Frames::Either,
                None,
            ),
            value,
        ));
    }
    if let Some(value) = reading.mac_control.received {
        found.push((
            of(
                "MACControlFramesReceived",
                Source::MacControl,
                Subject::Any,
                Frames::Either,
                None,
            ),
            value,
        ));
    }
    found
}

impl Pattern {
    const fn new(name: &'static str, frames: Frames) -> Self {
        Self { name, frames }
    }

    /// Whether `name` is one of the family, and of which priority where it has one.
    fn matches(&self, name: &str) -> Option<Option<Priority>> {
        let Some((before, after)) = self.name.split_once("{}") else {
            return (self.name == name).then_some(None);
        };
        let number = name.strip_prefix(before)?.strip_suffix(after)?;
        // One digit: `+3` and `03` would be other names.
        let number = number.parse::<u8>().ok().filter(|_| number.len() == 1)?;
        Some(Some(Priority::new(number).ok()?))
    }
}

#[cfg(test)]
mod tests {
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
        assert!(find("").is_none() && lag("unheard-of") > lag("veth"));
    }

    #[test]
    fn links_without_a_phy_are_usable_at_once_and_others_are_given_time() {
        assert_eq!((settles("veth"), deaf("veth")), (0, 0));
        for driver in ["igb", "e1000e", "e1000", "mlx5_core", "unheard-of"] {
            assert!(settles(driver) >= 500_000_000, "{driver}");
        }
        // Seen with QEMU's e1000: a second.
        assert!(deaf("e1000") > 1_000_000_000 && deaf("unheard-of") >= deaf("e1000"));
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
}
