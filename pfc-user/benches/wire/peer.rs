//! Senders by others, on frames like ours.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::resource::UsageWho;
use pcap_file::pcap::{PcapPacket, PcapWriter};
use validator::driver::bpf::AccountProgram;
use validator::driver::kernel::{clock, realtime};

use super::link;
use super::ours::{self, Sent};

/// Interval between readings of the receiver's counter.
const LOOK: u64 = 2_000_000;
/// Longer than any of them needs for its job.
const PATIENCE: u64 = 60_000_000_000;
/// Frames in a capture file, which is sent repeatedly.
const CAPTURED: u64 = 1000;

/// A sender that is a program.
pub struct Peer {
    pub name: &'static str,
    command: fn(&Job) -> Result<Command>,
    /// Finds the number of frames sent in its output; `None` if it does not report it.
    sent_in: Option<fn(&str) -> Option<u64>>,
}

/// The job of a peer.
pub struct Job<'a> {
    pub frame: &'a [u8],
    pub count: u64,
    /// Folder for its files.
    pub folder: &'a Path,
    pub cpu: usize,
}

pub const ALL: [Peer; 4] = [
    Peer {
        name: "trafgen",
        command: trafgen,
        sent_in: Some(|output| number_before(output, "packets outgoing")),
    },
    Peer {
        name: "mausezahn",
        command: mausezahn,
        sent_in: None,
    },
    Peer {
        name: "tcpreplay",
        command: tcpreplay,
        sent_in: Some(|output| number_after(output, "Successful packets:")),
    },
    Peer {
        name: "xdp-trafficgen",
        command: xdp_trafficgen,
        sent_in: None,
    },
];

/// trafgen's ring has to be small: with the default one it stalls on a veth.
fn trafgen(job: &Job) -> Result<Command> {
    let file = job.folder.join("trafgen.cfg");
    let octets: Vec<String> = job
        .frame
        .iter()
        .map(|octet| format!("{octet:#04x}"))
        .collect();
    fs::write(&file, format!("{{ {} }}\n", octets.join(", ")))?;
    let mut command = Command::new("trafgen");
    // One process, and IRQs stay where they are.
    command
        .args([
            "-P",
            "1",
            "-Q",
            "-S",
            "64KiB",
            "-n",
            &job.count.to_string(),
            "-o",
            link::TX,
            "-i",
        ])
        .arg(file);
    Ok(command)
}

fn mausezahn(job: &Job) -> Result<Command> {
    let octets: Vec<String> = job
        .frame
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    let mut command = Command::new("mausezahn");
    command.args([
        link::TX,
        "-c",
        &job.count.to_string(),
        "-q",
        &octets.join(" "),
    ]);
    Ok(command)
}

fn tcpreplay(job: &Job) -> Result<Command> {
    let file = job.folder.join("tcpreplay.pcap");
    let mut capture = PcapWriter::new(File::create(&file)?)?;
    for _ in 0..CAPTURED {
        capture.write_packet(&PcapPacket::new(
            Duration::ZERO,
            job.frame.len() as u32,
            job.frame,
        ))?;
    }
    drop(capture);
    let mut command = Command::new("tcpreplay");
    let rounds = job.count / CAPTURED;
    command
        .args([
            "--intf1",
            link::TX,
            "--topspeed",
            "--preload-pcap",
            "--loop",
            &rounds.to_string(),
        ])
        .arg(file);
    Ok(command)
}

/// xdp-trafficgen makes its own frames: UDP of 64 octets over IPv6.
fn xdp_trafficgen(job: &Job) -> Result<Command> {
    if job.frame.len() != 64 {
        bail!("it sends frames of 64 octets alone");
    }
    let mut command = Command::new("xdp-trafficgen");
    command.args([
        "udp",
        link::TX,
        "-m",
        "02:00:00:00:00:02",
        "-t",
        "1",
        "-n",
        &job.count.to_string(),
    ]);
    Ok(command)
}

impl Peer {
    /// Sends the job in the calling thread's namespace to our program, whose counter gives the
    /// rate.
    pub fn send(&self, job: &Job, receiver: &AccountProgram) -> Result<Sent> {
        let mut command = (self.command)(job)?;
        let log = job.folder.join("output");
        let (out, error) = (
            File::create(&log)?,
            File::options().append(true).open(&log)?,
        );
        command.stdin(Stdio::null()).stdout(out).stderr(error);
        let before = ours::cpu_time(UsageWho::RUSAGE_CHILDREN)?;
        let begun = clock::now();
        // A process starts on the CPU of the thread that starts it.
        realtime::pin(job.cpu);
        let started = command.spawn();
        realtime::last_cpu().map(realtime::pin);
        let mut process = started.with_context(|| format!("{} does not start", self.name))?;
        let mut looks = Vec::new();
        let status = loop {
            looks.push((clock::now(), receiver.port_counters()?.frames()));
            if let Some(status) = process.try_wait()? {
                break status;
            }
            if clock::now() > begun + PATIENCE {
                process.kill()?;
                process.wait()?;
                bail!("not done after {} s", PATIENCE / 1_000_000_000);
            }
            clock::sleep_until(clock::now() + LOOK);
        };
        let cpu = ours::cpu_time(UsageWho::RUSAGE_CHILDREN)? - before;
        let mut text = String::new();
        File::open(&log)?.read_to_string(&mut text)?;
        let last = || {
            text.lines()
                .rfind(|line| !line.trim().is_empty())
                .unwrap_or("no word of why")
                .trim()
                .to_owned()
        };
        if !status.success() {
            bail!("it ended with {status}: {}", last());
        }
        let frames = match self.sent_in {
            Some(sent_in) => sent_in(&text)
                .with_context(|| format!("it does not say how many frames it sent: {}", last()))?,
            None => job.count,
        };
        let Some(rate) = rate(&looks) else {
            bail!("no frame of it arrived: {}", last())
        };
        Ok(Sent {
            frames,
            refused: 0,
            rate,
            cpu,
        })
    }
}

/// Frames per second between the first and the last twentieth.
fn rate(looks: &[(u64, u64)]) -> Option<f64> {
    let all = looks.last()?.1;
    let at = |share: u64| {
        looks
            .iter()
            .find(|(_, frames)| *frames >= all * share / 20 && *frames > 0)
    };
    let (from, to) = (at(1)?, at(19)?);
    (to.0 > from.0).then(|| (to.1 - from.1) as f64 * 1e9 / (to.0 - from.0) as f64)
}

fn number_before(text: &str, words: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.split_once(words)?.0.trim().parse().ok())
}

fn number_after(text: &str, words: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.split_once(words)?.1.trim().parse().ok())
}
