//! Senders side by side: the rate at which frames arrive, and whether every frame reported as sent
//! is accounted for.

use std::time::Duration;

use anyhow::{Context, Result};
use pfc_ebpf::abi::account::Clock;
use pfc_ebpf::stamp::{Phase, Stamp};
use validator::driver::kernel::realtime;
use validator_core::test_frame::FrameTemplate;

use super::REPORT;
use super::common::{Extent, Spread};
use super::link::{self, Wire};
use super::ours::{self, Load, Ours, SENDERS, Sent};
use super::peer::{self, Job, Peer};
use super::receiver;

/// The receiver counts frames of this run in full. All senders here stamp another run, which it
/// counts as foreign: the work is the same for each, and a repeated constant frame is not a
/// duplicate.
const RECEIVED: u16 = 1;
const SENT: u16 = 2;
/// Frames per second asked of a peer; the slowest takes little longer.
const PER_SECOND: u64 = 1_500_000;

enum Contender {
    Ours(Ours),
    Peer(Peer),
}

struct Outcome {
    sent: Sent,
    /// Frames sent that were neither counted at the other end nor dropped by the link's own
    /// account.
    unexplained: i64,
}

impl Contender {
    fn name(&self) -> &'static str {
        match self {
            Self::Ours(ours) => ours.name,
            Self::Peer(peer) => peer.name,
        }
    }
}

pub fn run(extent: Extent) -> Result<()> {
    let (rounds, duration, lengths) = extent.pick(
        (3, Duration::from_millis(200), &[64, 1500][..]),
        (5, Duration::from_secs(1), &[64, 512, 1500]),
    );
    let folder = tempfile::tempdir().context("a folder for the peers' files")?;
    println!(
        "  {:14} {:>7} {:>7} {:>18} {:>12} {:>12}",
        "sender", "octets", "Mpps", "(least to most)", "CPU / frame", "unexplained"
    );
    for &length in lengths {
        let load = Load {
            first: 0,
            flows: 1,
            length,
            rate: None,
            duration,
            run: SENT,
            cpu: realtime::first_cpu().unwrap_or(0),
        };
        let mut contenders: Vec<(Contender, Vec<Outcome>)> = Vec::new();
        for contender in SENDERS
            .map(Contender::Ours)
            .into_iter()
            .chain(peer::ALL.map(Contender::Peer))
        {
            match measure(&contender, &load, folder.path()) {
                Ok(_) => contenders.push((contender, Vec::new())),
                Err(error) => REPORT.skip(
                    &format!("{}, {length} octets", contender.name()),
                    &format!("{error:#}"),
                ),
            }
        }
        for _ in 0..rounds {
            for (contender, outcomes) in &mut contenders {
                outcomes.push(
                    measure(contender, &load, folder.path()).with_context(|| contender.name())?,
                );
            }
        }
        let rates = |outcomes: &[Outcome]| -> Vec<f64> {
            outcomes
                .iter()
                .map(|outcome| outcome.sent.rate / 1e6)
                .collect()
        };
        for (contender, outcomes) in &contenders {
            let (name, values) = (contender.name(), rates(outcomes));
            let figure = format!("{name}, {length} octets");
            match contenders
                .iter()
                .find(|(first, _)| first.name() == SENDERS[0].name && name != SENDERS[0].name)
            {
                Some((first, others)) => {
                    REPORT.beside(&figure, "Mpps", &values, first.name(), &rates(others))
                }
                None => REPORT.figure(&figure, "Mpps", &values),
            }
            let unexplained: Vec<f64> = outcomes
                .iter()
                .map(|outcome| outcome.unexplained as f64)
                .collect();
            REPORT.figure(&format!("{figure}: unexplained"), "frames", &unexplained);
            let (rate, unexplained) = (Spread::of(&values), Spread::of(&unexplained));
            let costs: Vec<f64> = outcomes.iter().map(|outcome| outcome.sent.cost()).collect();
            REPORT.figure(&format!("{figure}: CPU time of a frame"), "ns", &costs);
            println!(
                "  {name:14} {length:7} {:7.3} {:>18} {:9.0} ns {:>12}",
                rate.median,
                format!("{:.3} to {:.3}", rate.min, rate.max),
                Spread::of(&costs).median,
                format!("{} to {}", unexplained.min, unexplained.max),
            );
        }
    }
    Ok(())
}

fn measure(contender: &Contender, load: &Load, folder: &std::path::Path) -> Result<Outcome> {
    let wire = Wire::new(1)?;
    wire.run(|| {
        realtime::last_cpu().map(realtime::pin);
        let receiver = receiver::account(
            &Load {
                run: RECEIVED,
                ..*load
            },
            (Clock::Exact, 1),
        )?;
        let before = link::ends()?;
        let sent = match contender {
            Contender::Ours(ours) => ours::send(ours, load, || {})?,
            Contender::Peer(peer) => {
                let count = (PER_SECOND as f64 * load.duration.as_secs_f64()) as u64;
                peer.send(
                    &Job {
                        frame: &frame(load)?,
                        count,
                        folder,
                        cpu: load.cpu,
                    },
                    &receiver,
                )?
            }
        };
        let counted = receiver.port_counters()?.frames();
        let dropped = link::lost_since(before)?;
        Ok(Outcome {
            sent,
            unexplained: (sent.frames + sent.refused) as i64 - (counted + dropped) as i64,
        })
    })?
}

/// Makes a frame of our senders, to be sent unchanged.
fn frame(load: &Load) -> Result<Vec<u8>> {
    let template = FrameTemplate::new(&load.plan()[0], &ours::addresses())?;
    let mut frame = Vec::new();
    template.copy_to(&mut frame);
    template.stamp(
        &mut frame,
        &Stamp {
            run: load.run,
            flow: 0,
            phase: Phase::Baseline,
            sequence: 0,
            time: 0,
        },
    );
    Ok(frame)
}
