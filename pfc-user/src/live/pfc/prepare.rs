//! The ports made ready for a repetition: programs configured, the DUT awake.

use anyhow::Result;
use pfc_ebpf::abi::{Trust, account as maps};
use pfc_ebpf::units::Priority;
use validator_core::evidence::pfc::Counting;
use validator_core::plan::{Nanos, PortName, RepetitionPlan, effort};
use validator_core::verdict::Event;

use super::{Live, PATH_RETRY, PATH_WAIT, SETTLE_POLL};
use crate::config::{self, Destination};
use crate::driver::bringup::testbed::{Testbed, TesterPort, WINDOW};
use crate::driver::kernel::{clock, packet};
use crate::driver::storm::ControlSender;
use crate::driver::traffic::Addresses;

/// The way the programs count in that repetition.
pub(super) fn counting(testbed: &Testbed, plan: &RepetitionPlan) -> Counting {
    let (clock, verify_every) = effort(&plan.flows);
    let is_exclusive = |port: &TesterPort| port.account.configured().exclusive != 0;
    Counting {
        clock,
        verify_every,
        exclusive: testbed.receivers().all(is_exclusive),
    }
}

/// Configures the programs of all ports for a repetition that begins at `epoch`.
pub(super) fn configure(live: &mut Live, plan: &RepetitionPlan, epoch: Nanos) -> Result<()> {
    let limits = &live.testbed.limits;
    let (clock, verify_every) = effort(&plan.flows);
    let mut config = maps::Config {
        epoch,
        window: WINDOW,
        windows: live.testbed.windows,
        run: live.run,
        trust: live.config.qos.trust as u8,
        clock: clock as u8,
        line_rate: limits.line_rate.bits_per_second(),
        storm_source: live.testbed.rx.state.mac,
        exclusive: 1,
        verify_every,
        dscp_to_priority: live.config.qos.dscp_map.map(Priority::get),
        ..maps::Config::NONE
    };
    let testbed = &live.testbed;
    addresses(live.config, &testbed.tx, testbed.rx.state.mac).write_to(&mut config);
    let flows = flows(plan, live.config.qos.trust, 100);
    for port in live.testbed.ports_mut() {
        port.account.configure(&config, &flows)?;
    }
    Ok(())
}

/// Configuration of each flow for the programs, with the phases in which they log its arrivals;
/// `load` is that of a probe, in percent.
pub(super) fn flows(plan: &RepetitionPlan, trust: Trust, load: u8) -> Vec<maps::FlowConfig> {
    plan.flows
        .iter()
        .map(|flow| {
            let logged = plan.logged(flow, load);
            let log_phases = logged.iter().fold(0, |bits, phase| bits | phase.bit());
            let mark = if trust == Trust::Pcp {
                flow.priority.get()
            } else {
                flow.dscp.get()
            };
            maps::FlowConfig {
                mark,
                log_phases,
                priority: flow.priority.get(),
                length: flow.untagged_length() as u16,
                ..maps::FlowConfig::default()
            }
        })
        .collect()
}

/// Makes all ports known to the DUT, and waits until it lets their frames through: a port that was
/// configured may take a while. A DUT that never does will show in the baseline.
pub(super) fn introduce(live: &mut Live) -> Result<()> {
    let end = clock::now() + PATH_WAIT;
    let mut waits = vec![0; live.testbed.ports().count()];
    introduced(live, end, &mut waits)?;
    let ports = live.testbed.ports().zip(waits);
    for (port, waits) in ports.filter(|(_, waits)| *waits > 0) {
        let what = "a frame that makes it known to the DUT";
        let note = packet::waited(&port.interface, what, waits);
        (live.events)(Event::Note(note));
    }
    Ok(())
}

/// Returns at `end` at the latest; adds to the times that each port had no room.
fn introduced(live: &mut Live, end: Nanos, waits: &mut [u64]) -> Result<()> {
    while !matches!(live.config.addresses.destination, Destination::Gateway(_))
        && clock::now() < end
    {
        let mut sent = true;
        for (sum, times) in waits.iter_mut().zip(live.testbed.introduce()?) {
            *sum += times;
            sent &= times == 0;
        }
        let next = clock::now() + PATH_RETRY;
        while clock::now() < next {
            // Each other port sends a frame to rx, which sends one to each. A DUT that knows no
            // address yet floods it: that it came says nothing of another port's.
            let mut heard = sent;
            for port in live.testbed.ports() {
                let least = match port.name == PortName::RX {
                    true => live.testbed.ports().count() as u64 - 1,
                    false => 1,
                };
                heard &= port.account.port()?.other >= least;
            }
            if heard {
                return Ok(());
            }
            if live.interrupt.wait_until(clock::now() + SETTLE_POLL) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The addresses of what `port` sends; the rx port has the address `rx`. Further ports have their
/// own, so that a DUT that bridges sees each address at one port.
pub(super) fn addresses(config: &config::PfcTestbed, port: &TesterPort, rx: [u8; 6]) -> Addresses {
    let wanted = &config.addresses;
    let given = wanted.source_mac.filter(|_| port.name == PortName::TX);
    Addresses {
        source_mac: given.unwrap_or(port.state.mac),
        destination_mac: match wanted.destination {
            Destination::RxPort => rx,
            Destination::Mac(mac) | Destination::Gateway(mac) => mac,
        },
        source_ip: wanted.source_ip,
        destination_ip: wanted.destination_ip,
    }
}

/// Socket and address of the storm, and of single pause frames.
pub(super) fn open_control(testbed: &Testbed) -> Result<ControlSender> {
    let rx = &testbed.rx;
    Ok(rx
        .namespace
        .run(|| ControlSender::open(&rx.interface, rx.state.mac))??)
}
