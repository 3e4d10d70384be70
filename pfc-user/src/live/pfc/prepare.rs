//! The ports made ready for a repetition: programs configured, senders opened, the DUT awake.

use anyhow::Result;
use pfc_ebpf::abi::{Trust, account as maps};
use pfc_ebpf::units::Priority;
use validator_core::evidence::pfc::Counting;
use validator_core::plan::{Nanos, RepetitionPlan, effort};
use validator_core::verdict::Event;

use super::{Live, PATH_RETRY, PATH_WAIT, SETTLE_POLL};
use crate::config::{self, Destination};
use crate::driver::bringup::testbed::{Testbed, WINDOW};
use crate::driver::kernel::{clock, packet, realtime};
use crate::driver::storm::ControlSender;
use crate::driver::traffic::choice::{self, Chosen};
use crate::driver::traffic::{Addresses, FlowControl, TrafficPlan};

/// The way the programs count in that repetition.
pub(super) fn counting(config: &maps::Config, plan: &RepetitionPlan) -> Counting {
    let (clock, verify_every) = effort(&plan.flows);
    Counting {
        clock,
        verify_every,
        exclusive: config.exclusive != 0,
    }
}

/// Configures the programs of both ports for a repetition that begins at `epoch`.
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
    addresses(live.config, live.testbed).write_to(&mut config);
    let flows = flows(plan, live.config.qos.trust, 100);
    for port in [&mut live.testbed.tx, &mut live.testbed.rx] {
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

/// Makes both ports known to the DUT, and waits until it lets their frames through: a port that was
/// configured may take a while. A DUT that never does will show in the baseline.
pub(super) fn introduce(live: &mut Live) -> Result<()> {
    let end = clock::now() + PATH_WAIT;
    let mut waits = [0; 2];
    introduced(live, end, &mut waits)?;
    let ports = [&live.testbed.tx.interface, &live.testbed.rx.interface];
    for (port, waits) in ports.into_iter().zip(waits).filter(|(_, waits)| *waits > 0) {
        let note = packet::waited(port, "a frame that makes it known to the DUT", waits);
        (live.events)(Event::Note(note));
    }
    Ok(())
}

/// Returns at `end` at the latest; adds to the times that each port had no room.
fn introduced(live: &mut Live, end: Nanos, waits: &mut [u64; 2]) -> Result<()> {
    while !matches!(live.config.addresses.destination, Destination::Gateway(_))
        && clock::now() < end
    {
        for (sum, times) in waits.iter_mut().zip(live.testbed.introduce()?) {
            *sum += times;
        }
        let next = clock::now() + PATH_RETRY;
        while clock::now() < next {
            if live.testbed.rx.account.port()?.other > 0
                && live.testbed.tx.account.port()?.other > 0
            {
                return Ok(());
            }
            if live.interrupt.wait_until(clock::now() + SETTLE_POLL) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn addresses(config: &config::PfcTestbed, testbed: &Testbed) -> Addresses {
    let wanted = &config.addresses;
    Addresses {
        source_mac: wanted.source_mac.unwrap_or(testbed.tx.state.mac),
        destination_mac: match wanted.destination {
            Destination::RxPort => testbed.rx.state.mac,
            Destination::Mac(mac) | Destination::Gateway(mac) => mac,
        },
        source_ip: wanted.source_ip,
        destination_ip: wanted.destination_ip,
    }
}

/// The sender of the test traffic.
pub(super) fn open_sender(live: &mut Live, plan: &RepetitionPlan, epoch: Nanos) -> Result<Chosen> {
    let testbed = &mut *live.testbed;
    let traffic = TrafficPlan {
        interface: &testbed.tx.interface,
        run: live.run,
        flows: &plan.flows,
        addresses: addresses(live.config, testbed),
        line_rate: testbed.limits.line_rate,
        max_burst: testbed.limits.largest_burst(&plan.flows),
        epoch,
        width: WINDOW,
        windows: testbed.windows as usize,
        cpu: realtime::first_cpu(),
    };
    let flow_control = FlowControl::Software(Box::new(testbed.tx.account.pause_view()));
    let (namespace, account) = (&testbed.tx.namespace, &mut testbed.tx.account);
    let mut shortage = None;
    let generator = || account.generator();
    let warn = |short| shortage = Some(format!("{}: {short}", traffic.interface));
    let (sender, events) = (live.config.ports.sender, &mut live.events);
    let opened =
        namespace.run(|| choice::open(&traffic, sender, flow_control, generator, warn))??;
    // Once for all repetitions that want the same.
    if let Some(note) = shortage
        && testbed.shortage.replace(note.clone()).as_ref() != Some(&note)
    {
        events(Event::Note(note));
    }
    Ok(opened)
}

/// Socket and address of the storm, and of single pause frames.
pub(super) fn open_control(testbed: &Testbed) -> Result<ControlSender> {
    let rx = &testbed.rx;
    Ok(rx
        .namespace
        .run(|| ControlSender::open(&rx.interface, rx.state.mac))??)
}
