//! The program in the kernel against the classifier on the host, on arbitrary frames.

use std::collections::HashMap;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{ClassCounters, Config, PfcCounters, PortCounters, SEEN_WINDOW};
use pfc_ebpf::own::is_test_frame;
use pfc_ebpf::stamp::Stamp;
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::AccountProgram as Account;

use crate::classified::{Class, Classified, classify};
use crate::common::corpus;
use crate::frames::Frames;
use crate::xdp::{
    DROP, PASS, PLAIN_LENGTH, RUN, STORM_SOURCE, config, config_of_ipv6, flows, hex, loaded,
};

/// Flows of [`loaded`].
const FLOWS: u16 = 8;

/// Sums over all flows.
#[derive(Debug, Default, PartialEq)]
struct Tested {
    received: u64,
    duplicate: u64,
    reordered: u64,
    beyond_window: u64,
    corrupt: u64,
    altered: u64,
    resized: u64,
    remarked: u64,
    untagged: u64,
}

/// PFC counters, class by class.
#[derive(Debug, Default, PartialEq)]
struct Pfc {
    frames: u64,
    empty: u64,
    classes: [ClassCounters; 8],
}

impl Pfc {
    fn of(counters: &PfcCounters) -> Self {
        Self {
            frames: counters.frames(),
            empty: counters.empty,
            classes: counters.classes(),
        }
    }
}

/// Expected counts of the program.
struct Model {
    trust: Trust,
    in_use: Config,
    /// Without PFC.
    port: PortCounters,
    pfc: Pfc,
    frames: u64,
    tagged: u64,
    by_priority: [u64; 8],
    tested: Tested,
    /// The highest sequence number by flow and place in the window.
    seen: HashMap<(u16, u64), u64>,
    /// The highest sequence number by flow.
    highest: HashMap<u16, u64>,
}

impl Model {
    /// The action on a frame, which is counted.
    fn add(&mut self, octets: &[u8]) -> u32 {
        let frame = classify(octets);
        let port = &mut self.port;
        self.frames += 1;
        self.tagged += (frame.marks.tags > 0) as u64;
        port.octets += octets.len() as u64;
        if let Some(dscp) = frame.marks.dscp {
            port.by_dscp[dscp as usize] += 1;
        }
        if let Some(pcp) = frame.marks.pcp {
            port.by_pcp[pcp as usize] += 1;
        }
        let priority = if self.trust == Trust::Pcp {
            frame.marks.pcp
        } else {
            frame.marks.dscp.map(|dscp| dscp % 8)
        };
        if let Some(priority) = priority {
            self.by_priority[priority as usize] += 1;
        }
        let in_use = &self.in_use;
        let mut damaged = |reason: Malformed| {
            let ours = is_test_frame(octets, in_use);
            if reason != Malformed::Headers || ours {
                port.malformed[reason as usize] += 1;
                port.damaged[reason as usize] += u64::from(ours || reason.is_control());
            }
            ours
        };
        match frame.class {
            Class::Test { stamp, .. } if stamp.run != RUN => port.foreign_run += 1,
            Class::Test { stamp, .. } if stamp.flow >= FLOWS => {
                damaged(Malformed::Stamp);
            }
            Class::Test { stamp, datagram } => {
                let found = [datagram.is_intact(octets), datagram.is_filled(octets)];
                self.test(&frame, &stamp, found, octets.len())
            }
            Class::Control(control) => {
                let own = octets[6..12] == STORM_SOURCE;
                if !own {
                    deviations(&mut port.deviations, octets);
                }
                self.control(&control, own)
            }
            Class::Other if damaged(Malformed::Headers) => return DROP,
            Class::Other => self.port.other += 1,
            Class::Malformed(reason) if reason.is_control() && octets[6..12] == STORM_SOURCE => {
                port.own_control += 1
            }
            Class::Malformed(reason) => {
                damaged(reason);
            }
        }
        let is_consumed = match frame.class {
            Class::Test { .. } | Class::Control(_) => true,
            Class::Other => false,
            Class::Malformed(reason) => reason.is_consumed(),
        };
        if is_consumed { DROP } else { PASS }
    }

    fn test(
        &mut self,
        frame: &Classified,
        stamp: &Stamp,
        [intact, filled]: [bool; 2],
        length: usize,
    ) {
        self.port.test_frames += 1;
        let tested = &mut self.tested;
        let place = (stamp.flow, stamp.sequence % SEEN_WINDOW);
        match self.seen.get(&place) {
            Some(seen) if *seen > stamp.sequence => {
                tested.beyond_window += 1;
                return;
            }
            Some(seen) if *seen == stamp.sequence => tested.duplicate += 1,
            _ => {
                tested.received += 1;
                self.seen.insert(place, stamp.sequence);
                let highest = self.highest.entry(stamp.flow).or_insert(stamp.sequence);
                tested.reordered += (*highest > stamp.sequence) as u64;
                *highest = stamp.sequence.max(*highest);
            }
        }
        let mark = if self.trust == Trust::Pcp {
            frame.marks.pcp
        } else {
            frame.marks.dscp
        };
        tested.corrupt += !intact as u64;
        tested.altered += !filled as u64;
        let untagged = length - 4 * usize::from(frame.marks.tags);
        tested.resized += (untagged != usize::from(PLAIN_LENGTH)) as u64;
        tested.remarked += (mark != Some(stamp.flow as u8)) as u64;
        tested.untagged += mark.is_none() as u64;
    }

    fn control(&mut self, control: &MacControl, own: bool) {
        if own {
            self.port.own_control += 1;
            return;
        }
        match *control {
            MacControl::Pause { quanta } => add_class(&mut self.port.pause, quanta),
            MacControl::Pfc { vector, quanta } => {
                self.pfc.frames += 1;
                self.pfc.empty += (vector & 0xff == 0) as u64;
                for priority in (0..8).filter(|priority| vector & 1 << priority != 0) {
                    add_class(&mut self.pfc.classes[priority], quanta[priority]);
                }
            }
        }
    }
}

/// Counts the departures of a PAUSE or PFC frame from the standard's form, in the order of the
/// counters: source, reserved octet, padding, length.
fn deviations(counts: &mut [u64; 4], octets: &[u8]) {
    let is_pfc = octets[14..16] == [1, 1];
    let behind = if is_pfc { 34 } else { 18 };
    let whole = octets.get(..60).unwrap_or_default();
    let found = [
        whole.get(6).is_some_and(|octet| octet % 2 == 1),
        is_pfc && whole.get(16).is_some_and(|octet| *octet > 0),
        whole.iter().skip(behind).any(|octet| *octet > 0),
        octets.len() != 60,
    ];
    for (count, found) in counts.iter_mut().zip(found) {
        *count += u64::from(found);
    }
}

fn add_class(counts: &mut ClassCounters, quanta: u16) {
    counts.xoff += (quanta > 0) as u64;
    counts.xon += (quanta == 0) as u64;
    counts.last.quanta = quanta as u64;
}

/// The port's counts without what the model does not know: times, and records that did not fit.
fn port(account: &Account) -> PortCounters {
    let mut port = account.port_counters().unwrap();
    for last in port.pfc.last.iter_mut().chain([&mut port.pause.last]) {
        last.at = 0;
    }
    PortCounters {
        arrivals_lost: 0,
        controls_lost: 0,
        offences_lost: 0,
        ..port
    }
}

fn tested(account: &Account) -> Tested {
    account
        .flows()
        .unwrap()
        .iter()
        .fold(Tested::default(), |sum, flow| Tested {
            received: sum.received + flow.frames,
            duplicate: sum.duplicate + flow.duplicate,
            reordered: sum.reordered + flow.reordered,
            beyond_window: sum.beyond_window + flow.beyond_window,
            corrupt: sum.corrupt + flow.corrupt,
            altered: sum.altered + flow.altered,
            resized: sum.resized + flow.resized,
            remarked: sum.remarked + flow.remarked,
            untagged: sum.untagged + flow.untagged,
        })
}

fn agree(trust: Trust, of_test: Config, seed: u64, count: usize) {
    let mut account = loaded(trust);
    account.configure(&of_test, &flows(FLOWS as u8)).unwrap();
    let in_use = *account.configured();
    let (seen, highest) = (HashMap::new(), HashMap::new());
    let (port_before, tested_before) = (port(&account), Tested::default());
    let mut model = Model {
        trust,
        in_use,
        port: port_before,
        pfc: Pfc::default(),
        frames: 0,
        tagged: 0,
        by_priority: [0; 8],
        tested: tested_before,
        seen,
        highest,
    };
    // The kernel takes none shorter than an Ethernet header here.
    for octets in Frames::new(seed)
        .filter(|octets| octets.len() >= 14)
        .take(count)
    {
        let action = model.add(&octets);
        assert_eq!(
            account.test_run(&octets, 1).unwrap().action,
            action,
            "{}",
            hex(&octets)
        );
        let port = port(&account);
        assert_eq!(
            PortCounters {
                pfc: PfcCounters::ZERO,
                ..port
            },
            model.port,
            "{}",
            hex(&octets)
        );
        assert_eq!(Pfc::of(&port.pfc), model.pfc, "{}", hex(&octets));
        let derived = (
            port.frames(),
            port.tagged(),
            port.by_priority(account.configured()),
        );
        assert_eq!(
            derived,
            (model.frames, model.tagged, model.by_priority),
            "{}",
            hex(&octets)
        );
    }
    assert_eq!(tested(&account), model.tested);
    let Tested {
        received,
        duplicate,
        reordered,
        beyond_window,
        corrupt,
        remarked,
        untagged,
        altered,
        resized,
    } = model.tested;
    assert!(
        [
            received,
            duplicate,
            reordered,
            beyond_window,
            corrupt,
            remarked,
            altered,
            resized
        ]
        .iter()
        .all(|count| *count > 0)
    );
    assert_eq!(untagged > 0, trust == Trust::Pcp);
}

#[test]
fn root_kernel_and_host_agree_on_arbitrary_frames() {
    // A million in all where the long tests are asked for.
    let count = corpus(60_000, 500_000);
    std::thread::scope(|scope| {
        scope.spawn(|| agree(Trust::Dscp, config(Trust::Dscp), 11, count));
        scope.spawn(|| agree(Trust::Pcp, config(Trust::Pcp), 12, count));
        scope.spawn(|| agree(Trust::Dscp, config_of_ipv6(Trust::Dscp), 13, count));
    });
}
