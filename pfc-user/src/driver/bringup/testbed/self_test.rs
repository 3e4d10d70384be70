//! The self-test: do PAUSE/PFC frames that come in at a port reach its program, or at least its
//! MAC's counters?

use anyhow::Result;
use pfc_ebpf::abi::{Trust, account};
use pfc_ebpf::units::{LineRate, Nanos, Priority, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;
use validator_core::evidence::preflight::SelfTest;
use validator_core::nic;

use super::{TesterPort, WINDOW, introduce};
use crate::driver::kernel::clock;
use crate::driver::kernel::link::mac::{self, MacLog};
use crate::driver::kernel::netns::Namespace;
use crate::driver::storm::ControlSender;

/// Source of the frames: neither the storm's nor the DUT's.
const SOURCE: [u8; 6] = [0x02, 0, 0, 0, 2, 0x01];
/// Source of no frame.
const NOBODY: [u8; 6] = [0; 6];
const FRAMES: u64 = 8;
/// A frame that takes longer from port to port is not coming, where the ports take frames.
const PATIENCE: Nanos = 200_000_000;
/// Time from one frame to the next that shows whether a port takes any.
const KNOCK: Nanos = 20_000_000;
/// Interval between two looks at the program's counters.
const POLL: Nanos = 2_000_000;

/// Sends PFC frames from the other end of our own wire and sees the program count them.
pub(super) fn own_wire(
    port: &mut TesterPort,
    peer: &Namespace,
    peer_interface: &str,
    line_rate: LineRate,
) -> Result<()> {
    // Here the frames count as a DUT's would, class by class.
    prepare(port, line_rate, NOBODY)?;
    let sender = peer.run(|| ControlSender::open(peer_interface, SOURCE))??;
    let waits = send(&sender, Quanta(1))?;
    let received = port.account.port()?;
    // A veth hands frames over within the send; what is not counted now was not seen.
    let seen = received
        .pfc
        .iter()
        .map(|class| class.xoff)
        .min()
        .unwrap_or(0)
        .min(received.pfc_frames);
    if received.pfc_frames == FRAMES && seen == FRAMES {
        port.pfc_visible = Some(format!(
            "self-test: {FRAMES} PFC frames sent from the other end, all counted"
        ));
    }
    port.self_test = Some(done(port, true, seen, Vec::new(), waits));
    Ok(())
}

/// Sends PFC frames with time 0 from each port to the other. They pause nothing, and a DUT between
/// rightly eats them; where the ports are cabled together, or the DUT forwards them, they come.
pub(super) fn between(tx: &mut TesterPort, rx: &mut TesterPort, line_rate: LineRate) -> Result<()> {
    for port in [&mut *tx, &mut *rx] {
        // A DUT may send PFC meanwhile: only what the self-test sent counts as the tester's own.
        prepare(port, line_rate, SOURCE)?;
    }
    let pause = [&*tx, &*rx].map(|port| nic::of(&port.state.driver).filter_pause);
    let heard = |port: &TesterPort| anyhow::Ok(port.account.port()?.frames > 0);
    let mut waits = [0; 2];
    until_heard(
        pause.into_iter().max().unwrap_or(0),
        || {
            add(&mut waits, introduce(tx, rx)?);
            Ok(())
        },
        || Ok(heard(tx)? && heard(rx)?),
    )?;
    let open = |port: &TesterPort| {
        port.namespace
            .run(|| ControlSender::open(&port.interface, SOURCE))
    };
    let mut macs = [tx.mac_log()?, rx.mac_log()?];
    let lag = macs.iter().map(MacLog::lag).max().unwrap_or(0);
    // Frames that came before are not to be counted.
    clock::sleep_until(clock::now() + lag);
    macs.iter_mut()
        .for_each(|log| log.read("self-test", clock::now()));
    add(
        &mut waits,
        [
            send(&open(tx)??, Quanta::ZERO)?,
            send(&open(rx)??, Quanta::ZERO)?,
        ],
    );
    let end = clock::now() + PATIENCE;
    while clock::now() < end
        && (tx.account.port()?.own_control < FRAMES || rx.account.port()?.own_control < FRAMES)
    {
        clock::sleep_until(clock::now() + POLL);
    }
    clock::sleep_until(clock::now() + lag);
    for ((port, mut log), waits) in [tx, rx].into_iter().zip(macs).zip(waits) {
        log.read("end", clock::now());
        let rises = mac::rises(&log.finish("the self-test", &mut port.mac_alive));
        let seen = port.account.port()?.own_control;
        port.takes_own_pfc = taken_by_mac(seen, &rises);
        if seen >= FRAMES {
            port.pfc_visible = Some(format!(
                "self-test: {FRAMES} PFC frames sent by the other port, all counted"
            ));
        }
        port.self_test = Some(done(port, false, seen, rises, waits));
    }
    Ok(())
}

/// Tells that the MAC took the frames of the other port before the program saw them.
fn taken_by_mac(seen: u64, rises: &[(String, u64)]) -> Option<String> {
    // Fewer may be a DUT's own.
    let counted = rises.iter().find(|(_, rise)| *rise >= FRAMES);
    let (name, rise) = counted.filter(|_| seen < FRAMES)?;
    Some(format!(
        "self-test: of {FRAMES} PFC frames that the other port sent the program saw {seen}, and \
         {name} rose by {rise}"
    ))
}

/// Sends frames until both ports have taken one, for the time in which they may take none after a
/// change of their filters. Plain frames, for MACs keep pause frames; where a DUT between lets none
/// through, all that time passes, and what is sent then is not lost.
fn until_heard(
    pause: Nanos,
    mut knock: impl FnMut() -> Result<()>,
    mut heard: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let end = clock::now() + pause;
    while clock::now() < end {
        knock()?;
        let next = end.min(clock::now() + KNOCK);
        while clock::now() < next {
            if heard()? {
                return Ok(());
            }
            clock::sleep_until(next.min(clock::now() + POLL));
        }
    }
    Ok(())
}

/// Returns how often there was no room.
fn send(sender: &ControlSender, quanta: Quanta) -> Result<u64> {
    let frame = MacControl::pfc(Priority::all(), quanta);
    let mut waits = 0;
    for _ in 0..FRAMES {
        waits += sender.send_with_room(|source| frame.emit(source))?.1;
    }
    Ok(waits)
}

fn add(waits: &mut [u64; 2], more: [u64; 2]) {
    waits
        .iter_mut()
        .zip(more)
        .for_each(|(sum, more)| *sum += more);
}

fn done(
    port: &TesterPort,
    own_wire: bool,
    seen: u64,
    mac: Vec<(String, u64)>,
    waits: u64,
) -> SelfTest {
    SelfTest::Done {
        own_wire,
        xdp_mode: port.account.mode().into(),
        sent: FRAMES,
        seen,
        mac,
        waits,
    }
}

fn prepare(port: &mut TesterPort, line_rate: LineRate, own: [u8; 6]) -> Result<()> {
    let config = account::Config {
        epoch: clock::now(),
        window: WINDOW,
        windows: 1,
        trust: Trust::Dscp as u8,
        line_rate: line_rate.bits_per_second(),
        storm_source: own,
        verify_every: 1,
        ..account::Config::default()
    };
    port.account
        .configure(&config, &[account::FlowConfig::default()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Number of frames sent to a port that takes its first frame at the `takes`-th.
    fn knocks(pause: Nanos, takes: u32) -> u32 {
        let knocks = Cell::new(0);
        let knock = || {
            knocks.set(knocks.get() + 1);
            Ok(())
        };
        until_heard(pause, knock, || Ok(knocks.get() >= takes)).unwrap();
        knocks.get()
    }

    #[test]
    fn frames_of_the_other_port_that_its_counters_alone_saw_were_taken_by_the_mac() {
        let rises = |rise| vec![("rx_prio3_pause".to_owned(), rise)];
        let taken = taken_by_mac(0, &rises(FRAMES)).unwrap();
        assert!(
            taken.ends_with("saw 0, and rx_prio3_pause rose by 8"),
            "{taken}"
        );
        assert!(taken_by_mac(FRAMES - 1, &rises(FRAMES)).is_some());
        assert_eq!(
            taken_by_mac(FRAMES, &rises(FRAMES)),
            None,
            "the program saw them too"
        );
        assert_eq!(taken_by_mac(0, &rises(FRAMES - 1)), None);
        assert_eq!(taken_by_mac(0, &[]), None, "a DUT between ate them");
    }

    #[test]
    fn a_port_that_takes_no_frames_yet_is_asked_until_it_does() {
        const HOUR: Nanos = 3_600_000_000_000;
        assert_eq!(knocks(HOUR, 4), 4);
        assert_eq!(
            knocks(0, 1),
            0,
            "links that take frames at once are not asked"
        );
        let began = clock::now();
        assert!(knocks(5 * KNOCK, u32::MAX) >= 1);
        assert!(clock::now() - began >= 5 * KNOCK);
    }
}
