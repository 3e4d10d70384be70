//! Facts about NICs by the name of their driver: how they treat PAUSE/PFC frames, which
//! counters count them, which count lost frames, and how long a port takes to be usable. A driver a
//! row; sources are named there. Nothing here is asked of a device.

mod broadcom;
mod drops;
mod embedded;
mod feature;
mod intel;
mod nvidia;
mod virtual_links;

use pfc_ebpf::units::{Nanos, Priority};

use crate::evidence::mac::{Frames, MacCounter, MacReading, Source, Subject};

use self::drops::number;
pub use self::drops::{Drops, losses};
pub use self::feature::Feature;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Nic {
    /// Name of the driver, as `ethtool -i` shows it.
    pub driver: &'static str,
    /// Treatment of PAUSE/PFC frames that come in.
    pub receives: Receives,
    /// PAUSE/PFC frames that software sends leave; `false`: a filter drops them.
    pub sends: bool,
    /// Its private counters of PAUSE/PFC frames that came in.
    pub counters: &'static [Pattern],
    /// The counters by priority count only while PFC is enabled on the port.
    pub counts_with_pfc_alone: bool,
    /// Frames that `indications` of the kernel's PFC structure counts; `None`: the field cannot be
    /// relied on.
    pub indications: Option<Frames>,
    /// Age that a count may have when it is read.
    pub lag: Nanos,
    /// Place where XDP programs run.
    pub xdp: Xdp,
    /// Merging of frames (LRO, rx-gro-hw) goes off by itself while a program is in the driver.
    pub stops_merging: bool,
    /// A program that comes or goes in the driver resets the rings: frames may be lost, or the
    /// link.
    pub resets: bool,
    /// Each receive queue is polled on one CPU at a time. `false`: the thread that writes a frame
    /// to the interface runs the program for it.
    pub polls_queues: bool,
    /// Time for which a carrier has to stay before it counts. Settings, programs and the other end
    /// reset links, and until the PHY, the firmware or the other end acts the carrier still reads
    /// up.
    pub carrier_hold: Nanos,
    /// Time in which no frame may come in after a change of the filters, such as promiscuous mode.
    pub filter_pause: Nanos,
    /// Private counters of lost frames.
    pub drops: Drops,
    /// A standard counter of lost frames that also counts what a program in the driver drops.
    pub own_drops: Option<&'static str>,
    /// `tx_dropped` also counts live frames that the driver did not take.
    pub counts_untaken: bool,
    /// Its private counters of frames sent by priority, with `{}` for the priority.
    pub sent_by_priority: Option<&'static str>,
    /// Its treatment of pause frames was looked up. Other rows say nothing of it.
    pub surveyed: bool,
}

/// Place where XDP programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xdp {
    /// Programs run in the driver, since that version of Linux.
    Driver {
        /// Major and minor number.
        since: (u32, u32),
    },
    /// Programs run in the stack alone.
    Stack,
    /// Not known.
    Unknown,
}

/// Treatment of PAUSE/PFC frames that come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receives {
    /// The program sees them.
    PassesOn,
    /// The program sees them when `rx-all` is on.
    WithRxAll,
    /// The MAC keeps them with any setting.
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
    /// Frames that make it rise.
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
    // drivers/net/ethernet of Linux: aquantia/atlantic, freescale/fec_main.c, intel/iavf,
    // intel/ixgbevf, netronome/nfp, qlogic/qede, sfc.
    resetting("atlantic"),
    resetting("fec"),
    resetting("iavf"),
    resetting("ixgbevf"),
    resetting("nfp"),
    resetting("qede"),
    resetting("sfc"),
];

/// The facts of a driver that is not in the table. A timer may refresh its standard counters. Two
/// seconds are longer than any known timer.
const UNKNOWN: Nic = Nic {
    indications: Some(Frames::Either),
    lag: 2_000_000_000,
    filter_pause: 1_500_000_000,
    surveyed: false,
    ..HARDWARE
};

/// Defaults of a NIC in hardware.
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
    resets: false,
    polls_queues: true,
    // A PHY that negotiates again has let the link go by then, and so has a DUT that was
    // configured.
    carrier_hold: 500_000_000,
    filter_pause: 200_000_000,
    drops: Drops::BY_NAME,
    own_drops: None,
    counts_untaken: false,
    sent_by_priority: None,
    surveyed: true,
};

/// A driver of which no more is known than that it resets its rings, and some their link, when a
/// program comes or goes.
const fn resetting(driver: &'static str) -> Nic {
    Nic {
        driver,
        resets: true,
        ..UNKNOWN
    }
}

/// The row of `driver`; that of an unknown one where it has none.
pub fn of(driver: &str) -> &'static Nic {
    let known = TABLE.iter().find(|nic| nic.driver == driver);
    known.unwrap_or(&UNKNOWN)
}

/// The row of `driver`; `None` where nothing is known of how it treats pause frames.
pub fn find(driver: &str) -> Option<&'static Nic> {
    Some(of(driver)).filter(|nic| nic.surveyed)
}

/// The speed that a port reports, where that means something: veth and tap, links of a `kind` in
/// software, report 10 Gbit/s whatever they are.
pub fn own_speed(kind: Option<&str>, speed: Option<u64>) -> Option<u64> {
    speed.filter(|_| kind.is_none())
}

/// Frames sent by priority, from private counters that follow the names of any driver: how the
/// counters are called, and their values. `None` unless all eight are there.
pub fn sent_by_priority(private: &[(String, u64)]) -> Option<(String, [u64; Priority::COUNT])> {
    TABLE
        .iter()
        .filter_map(|nic| nic.sent_by_priority)
        .find_map(|pattern| {
            let value = |priority: Priority| {
                let name = pattern.replace("{}", &priority.to_string());
                let found = private.iter().find(|(found, _)| *found == name);
                found.map(|(_, value)| *value)
            };
            let all: Vec<u64> = Priority::all().map_while(value).collect();
            Some((pattern.replace("{}", "N"), all.try_into().ok()?))
        })
}

/// The counters of `reading` that count received PAUSE/PFC frames, each with its value.
pub fn counters(reading: &MacReading) -> Vec<(MacCounter, u64)> {
    let nic = of(&reading.driver);
    let mut found = private_counters(nic, &reading.private);
    if let (Some(pfc), Some(frames)) = (&reading.pfc, nic.indications) {
        found.extend(Priority::all().map(|priority| {
            let counter = MacCounter {
                array: Some("indications".into()),
                ..counter(
                    &format!("indications[{priority}]"),
                    Source::Dcb,
                    Subject::Priority(priority),
                    frames,
                )
            };
            (counter, pfc.indications[priority.index()])
        }));
    }
    for (name, source, subject, value) in [
        (
            "rx_pause_frames",
            Source::Pause,
            Subject::Pause,
            reading.pause.received,
        ),
        (
            "MACControlFramesReceived",
            Source::MacControl,
            Subject::Any,
            reading.mac_control.received,
        ),
    ] {
        let counter = counter(name, source, subject, Frames::Either);
        found.extend(value.map(|value| (counter, value)));
    }
    found
}

/// Pause counters among the private counters of `nic`, in their order.
fn private_counters(nic: &Nic, private: &[(String, u64)]) -> Vec<(MacCounter, u64)> {
    let mut found = Vec::new();
    for (name, value) in private {
        for pattern in nic.counters {
            let Some(priority) = pattern.matches(name) else {
                continue;
            };
            let subject = priority.map_or(Subject::Pause, Subject::Priority);
            let counter = MacCounter {
                array: priority.map(|_| pattern.name.to_owned()),
                ..counter(name, Source::Driver, subject, pattern.frames)
            };
            found.push((counter, *value));
        }
    }
    found
}

fn counter(name: &str, source: Source, subject: Subject, frames: Frames) -> MacCounter {
    MacCounter {
        name: name.to_owned(),
        source,
        subject,
        frames,
        array: None,
        alive: None,
        values: Vec::new(),
    }
}

impl Pattern {
    const fn new(name: &'static str, frames: Frames) -> Self {
        Self { name, frames }
    }

    /// The priority of the counter `name`, where the family has one; `None` if it is not of the
    /// family.
    fn matches(&self, name: &str) -> Option<Option<Priority>> {
        match number(self.name, name)? {
            "" => Some(None),
            // `03` would be another name.
            digits if digits.len() > 1 => None,
            digit => Some(Some(Priority::new(digit.parse().ok()?).ok()?)),
        }
    }
}

#[cfg(test)]
mod tests;
