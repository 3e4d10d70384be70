//! Measures how rate, exactness and memory of our sender and our program depend on flows, queues,
//! length and time.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use validator::driver::kernel::realtime;

use super::REPORT;
use super::common::{Extent, Spread};
use super::link::{self, Wire};
use super::ours::{self, LIVE_FRAMES, LIVE_FRAMES_ON_ALL, Load, Ours, SENDMMSG, Sent};
use super::receiver;

const RUN: u16 = 1;
const FLOWS: [u16; 5] = [1, 8, 64, 512, 4096];
const LENGTHS: [usize; 8] = [64, 128, 256, 512, 1024, 1500, 2048, 3400];

/// One setting.
struct Point {
    name: String,
    sender: Ours,
    loads: Vec<Load>,
    outcomes: Vec<Outcome>,
}

struct Outcome {
    rate: f64,
    /// Frames sent that are neither accounted for by their stamps nor lost by the link's own
    /// account.
    unexplained: i64,
    /// Frames lost by the link's own account after they were sent.
    lost: u64,
    /// Share of the attempted frames for which the link had no room.
    refused: f64,
    /// Milliseconds for reading all counts of all flows.
    reading: f64,
}

pub fn run(extent: Extent) -> Result<()> {
    let (rounds, duration, ten) = extent.pick(
        (3, Duration::from_millis(200), Duration::from_secs(1)),
        (5, Duration::from_secs(1), Duration::from_secs(10)),
    );
    let cpus = [realtime::first_cpu(), realtime::last_cpu()].map(|cpu| cpu.unwrap_or(0));
    let load = |flows, length, duration| Load {
        first: 0,
        flows,
        length,
        rate: None,
        duration,
        run: RUN,
        cpu: cpus[0],
    };
    let by = |sender: Ours, name: &str, loads: Vec<Load>| Point {
        name: format!("{}, {name}", sender.name),
        sender,
        loads,
        outcomes: Vec::new(),
    };
    let point = |name: String, loads: Vec<Load>| by(LIVE_FRAMES, &name, loads);

    let mut flows: Vec<Point> = FLOWS
        .iter()
        .map(|&flows| point(counted(flows, "flow"), vec![load(flows, 64, duration)]))
        .collect();
    measure_all(&mut flows, 1, rounds)?;
    let lengths = extent.pick(&[64, 1500, 3400][..], &LENGTHS);
    let mut lengths: Vec<Point> = lengths
        .iter()
        .map(|&length| point(format!("{length} octets"), vec![load(8, length, duration)]))
        .collect();
    measure_all(&mut lengths, 1, rounds)?;
    let both = |flows| {
        vec![
            load(flows, 64, duration),
            Load {
                first: flows,
                cpu: cpus[1],
                ..load(flows, 64, duration)
            },
        ]
    };
    let mut queues = [
        vec![
            by(SENDMMSG, "1 CPU", vec![load(8, 64, duration)]),
            by(SENDMMSG, "2 CPUs", both(4)),
        ],
        vec![
            by(LIVE_FRAMES, "1 CPU", vec![load(8, 64, duration)]),
            by(LIVE_FRAMES_ON_ALL, "2 CPUs", vec![load(8, 64, duration)]),
        ],
    ];
    if cpus[0] == cpus[1] {
        REPORT.skip("2 queues and CPUs", "there is one CPU");
    } else if let Err(error) = Wire::new(2) {
        REPORT.skip("2 queues and CPUs", &format!("{error:#}"));
    } else {
        for points in &mut queues {
            measure_all(points, 2, rounds)?;
        }
    }
    measure_all(
        &mut [point(
            format!("{} s", ten.as_secs()),
            vec![load(8, 64, ten)],
        )],
        1,
        rounds.min(3),
    )
}

fn counted(count: u16, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}

/// Measures all points in turn, and compares each with the first.
fn measure_all(points: &mut [Point], queues: usize, rounds: usize) -> Result<()> {
    for _ in 0..rounds {
        for point in &mut *points {
            let outcome =
                measure(queues, &point.sender, &point.loads).with_context(|| point.name.clone())?;
            point.outcomes.push(outcome);
        }
    }
    let rates = |point: &Point| -> Vec<f64> {
        point
            .outcomes
            .iter()
            .map(|outcome| outcome.rate / 1e6)
            .collect()
    };
    let first = (points[0].name.clone(), rates(&points[0]));
    println!(
        "  {:18} {:>7} {:>18} {:>10} {:>9} {:>12} {:>12} {:>11}",
        "",
        "Mpps",
        "(least to most)",
        "of first",
        "refused",
        "lost, most",
        "unexplained",
        "to read"
    );
    for (index, point) in points.iter().enumerate() {
        let (values, name) = (rates(point), format!("growth, {}", point.name));
        match index {
            0 => REPORT.figure(&name, "Mpps", &values),
            _ => REPORT.beside(&name, "Mpps", &values, &first.0, &first.1),
        }
        let unexplained: Vec<f64> = point
            .outcomes
            .iter()
            .map(|outcome| outcome.unexplained as f64)
            .collect();
        REPORT.figure(&format!("{name}: unexplained"), "frames", &unexplained);
        let reading: Vec<f64> = point
            .outcomes
            .iter()
            .map(|outcome| outcome.reading)
            .collect();
        REPORT.figure(&format!("{name}: reading the counts"), "ms", &reading);
        let rate = Spread::of(&values);
        println!(
            "  {:18} {:7.3} {:>18} {:10.2} {:7.2} % {:12} {:>12} {:8.2} ms",
            point.name,
            rate.median,
            format!("{:.3} to {:.3}", rate.min, rate.max),
            Spread::of_ratios(&values, &first.1).median,
            Spread::of(
                &point
                    .outcomes
                    .iter()
                    .map(|outcome| outcome.refused * 100.0)
                    .collect::<Vec<_>>()
            )
            .median,
            point
                .outcomes
                .iter()
                .map(|outcome| outcome.lost)
                .max()
                .unwrap_or(0),
            unexplained
                .iter()
                .copied()
                .max_by(|a, b| a.abs().total_cmp(&b.abs()))
                .unwrap_or(0.0),
            Spread::of(&reading).median,
        );
    }
    Ok(())
}

/// Runs all loads at the same time, each on its CPU, towards one program.
fn measure(queues: usize, sender: &Ours, loads: &[Load]) -> Result<Outcome> {
    let wire = Wire::new(queues)?;
    let flows = loads
        .iter()
        .map(|load| load.first + load.flows)
        .max()
        .unwrap_or(0);
    let receiver = wire.run(|| {
        receiver::account(
            &Load {
                first: 0,
                flows,
                ..loads[0]
            },
            receiver::effort_of(&loads[0]),
        )
    })??;
    let before = wire.run(link::ends)??;
    let sent: Vec<Sent> = thread::scope(|scope| {
        let senders: Vec<_> = loads
            .iter()
            .map(|load| scope.spawn(|| wire.run(|| ours::send(sender, load, || {}))?))
            .collect();
        senders
            .into_iter()
            .map(|sender| sender.join().expect("the sender's own panic"))
            .collect::<Result<_>>()
    })?;
    let begun = Instant::now();
    let counted: u64 = receiver.flows()?.iter().map(|flow| flow.frames).sum();
    let reading = begun.elapsed().as_secs_f64() * 1e3;
    let refused: u64 = sent.iter().map(|sent| sent.refused).sum();
    let lost = wire.run(|| link::lost_since(before))??;
    let frames: u64 = sent.iter().map(|sent| sent.frames).sum();
    Ok(Outcome {
        rate: sent.iter().map(|sent| sent.rate).sum(),
        unexplained: (frames + refused) as i64 - (counted + lost) as i64,
        lost: lost.saturating_sub(refused),
        refused: refused as f64 / (frames + refused).max(1) as f64,
        reading,
    })
}

/// Sends at the greatest rate for ten minutes. Shows whether the count stays exact and memory stays
/// constant.
pub fn endurance(extent: Extent) -> Result<()> {
    let duration = match extent {
        Extent::Long => Duration::from_secs(600),
        Extent::Quick | Extent::Full => {
            REPORT.skip("10 minutes", "`cargo xtask bench --long` has it");
            return Ok(());
        }
    };
    let wire = Wire::new(1)?;
    let load = Load {
        first: 0,
        flows: 64,
        length: 64,
        rate: None,
        duration,
        run: RUN,
        cpu: realtime::first_cpu().unwrap_or(0),
    };
    wire.run(|| {
        realtime::last_cpu().map(realtime::pin);
        let receiver = receiver::account(&load, receiver::effort_of(&load))?;
        let before = link::ends()?;
        let mut memory = Vec::new();
        let sent = ours::send(&LIVE_FRAMES, &load, || memory.extend(resident().ok()))?;
        let counted: u64 = receiver.flows()?.iter().map(|flow| flow.frames).sum();
        let lost = link::lost_since(before)?;
        let unexplained = (sent.frames + sent.refused) as i64 - (counted + lost) as i64;
        // Allocations that happen once settle in the first tenth of the time.
        let settled = memory.split_off(memory.len() / 10);
        let (first, last) = (
            settled.first().copied().unwrap_or(0),
            settled.last().copied().unwrap_or(0),
        );
        let growth = (last as f64 - first as f64) / 1024.0;
        println!(
            "  {} s: {} frames, {:.3} Mpps, {} lost by the link, {unexplained} unexplained; \
             resident memory {} KiB after the first tenth, {growth:+} KiB at the end",
            duration.as_secs(),
            sent.frames,
            sent.rate / 1e6,
            lost.saturating_sub(sent.refused),
            first / 1024,
        );
        REPORT.figure("10 minutes", "Mpps", &[sent.rate / 1e6]);
        REPORT.figure("10 minutes: unexplained", "frames", &[unexplained as f64]);
        REPORT.figure("10 minutes: growth of resident memory", "KiB", &[growth]);
        Ok(())
    })?
}

/// Resident memory of this process, in octets.
fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("VmRSS in /proc/self/status")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}
