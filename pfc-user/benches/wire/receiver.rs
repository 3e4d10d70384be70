//! Receivers at the end of the wire: our program, one that only drops, and the counters and
//! captures of an ordinary system.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use aya::programs::Xdp;
use aya::{Ebpf, EbpfLoader};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{Clock, Config, FlowConfig};
use validator::driver::bpf::{AccountProgram, Sizes, XdpMode};
use validator::driver::kernel::clock;
use validator::live::pfc::effort;

use super::link::{self, Counters, output};
use super::ours::{self, Load};

/// Speed for converting quanta to time; there are none here.
const LINE_RATE: u64 = 100_000_000_000;
/// Longest wait for captured frames in the capture's buffer after the sender has ended.
const LATEST: Duration = Duration::from_secs(5);

/// Kind of receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The program `account` as in a run: above some rate it reads the clock once for several
    /// frames, and verifies the checksum of some.
    Account,
    /// The program with a reading of the clock and a verified checksum for every frame, at any
    /// rate.
    Exact,
    /// The program on frames of another run: it classifies them, counts them by DSCP and priority,
    /// and ignores their stamps.
    Classify,
    /// A program that drops every frame; the kernel counts.
    Drop,
    /// nftables on the ingress hook: a counter for each DSCP, then drop.
    Nft,
    /// The ingress qdisc's counter of all frames.
    Tc,
    /// tcpdump to /dev/null.
    Tcpdump,
}

pub const ALL: [Kind; 5] = [
    Kind::Account,
    Kind::Drop,
    Kind::Nft,
    Kind::Tc,
    Kind::Tcpdump,
];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Exact => "account, exact",
            Self::Classify => "account, another run",
            Self::Drop => "bare drop",
            Self::Nft => "nft",
            Self::Tc => "tc ingress",
            Self::Tcpdump => "tcpdump",
        }
    }

    /// Opens it at the receiving end in the calling thread's namespace, for `load`. The error says
    /// why it is unavailable.
    pub fn open(self, load: &Load) -> Result<Receiver> {
        Ok(match self {
            Self::Account => Receiver::Account(Box::new(account(load, effort_of(load))?)),
            Self::Exact => Receiver::Account(Box::new(account(load, (Clock::Exact, 1))?)),
            Self::Classify => Receiver::Account(Box::new(account(
                &Load {
                    run: load.run + 1,
                    ..*load
                },
                (Clock::Exact, 1),
            )?)),
            Self::Drop => Receiver::Drop {
                before: link::counters(link::RX)?,
                _object: drop_program()?,
            },
            Self::Nft => Receiver::Nft(Nft::new()?),
            Self::Tc => Receiver::Tc(Tc::new()?),
            Self::Tcpdump => Receiver::Tcpdump(Tcpdump::new()?),
        })
    }
}

/// A working receiver. Dropping it removes it.
pub enum Receiver {
    Account(Box<AccountProgram>),
    Drop {
        before: Counters,
        _object: Box<Ebpf>,
    },
    Nft(Nft),
    Tc(Tc),
    Tcpdump(Tcpdump),
}

/// Counts of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    pub frames: u64,
    /// Frames lost by its own account.
    pub lost: u64,
}

impl Receiver {
    /// Returns the counts; call it after the sender has ended.
    pub fn received(&mut self) -> Result<Received> {
        Ok(match self {
            Self::Account(account) => Received {
                frames: account.port_counters()?.frames(),
                lost: 0,
            },
            Self::Drop { before, .. } => Received {
                frames: link::counters(link::RX)?.received - before.received,
                lost: 0,
            },
            Self::Nft(nft) => Received {
                frames: nft.counted()?,
                lost: 0,
            },
            Self::Tc(tc) => Received {
                frames: tc.counted()?,
                lost: 0,
            },
            Self::Tcpdump(tcpdump) => tcpdump.counted()?,
        })
    }
}

/// Effort that a run would take for `load`: the clock, and one in how many frames to verify.
pub fn effort_of(load: &Load) -> (Clock, u64) {
    effort(&load.plan())
}

/// Prepares our program at the receiving end for `load`, with the clock, and one in how many frames
/// to verify.
pub fn account(load: &Load, (clock, verify_every): (Clock, u64)) -> Result<AccountProgram> {
    let flows = load.first + load.flows;
    let windows = ours::windows(load.duration) as u32;
    let mut account = AccountProgram::attach(
        link::RX,
        XdpMode::Driver,
        Sizes {
            flows: flows.into(),
            windows,
        },
    )?;
    let config = Config {
        epoch: clock::now(),
        window: ours::WINDOW,
        windows,
        run: load.run,
        trust: Trust::Dscp as u8,
        clock: clock as u8,
        line_rate: LINE_RATE,
        dscp_to_priority: std::array::from_fn(|dscp| dscp as u8 % 8),
        verify_every,
        exclusive: 1,
        ..Config::default()
    };
    let flows: Vec<_> = (0..flows)
        .map(|flow| FlowConfig {
            mark: (flow % 64) as u8,
            log_phases: 0,
            priority: (flow % 8) as u8,
            length: load.length as u16,
            ..FlowConfig::default()
        })
        .collect();
    account.configure(&config, &flows)?;
    Ok(account)
}

/// Loads the program `drop` of the object for benchmarks.
fn drop_program() -> Result<Box<Ebpf>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/ebpf-object/bench");
    let octets = fs::read(&file).with_context(|| {
        format!(
            "there is no XDP program that only drops in {}",
            file.display()
        )
    })?;
    let mut object = EbpfLoader::new().load(&octets)?;
    let program: &mut Xdp = object
        .program_mut("drop")
        .context("the object has no program `drop`")?
        .try_into()?;
    program.load()?;
    program.attach(link::RX, aya::programs::xdp::XdpMode::Driver)?;
    Ok(Box::new(object))
}

/// A counter for each DSCP, in a table of its own.
pub struct Nft(());

impl Nft {
    fn new() -> Result<Self> {
        let counters: String = (0..64)
            .map(|dscp| format!(" counter dscp{dscp} {{ }}\n"))
            .collect();
        let elements: Vec<String> = (0..64)
            .map(|dscp| format!("{dscp} : \"dscp{dscp}\""))
            .collect();
        let rules = format!(
            "table netdev bench {{\n{counters} chain ingress {{\n  type filter hook ingress device \
             \"{}\" priority 0;\n  counter name ip dscp map {{ {} }} drop\n }}\n}}\n",
            link::RX,
            elements.join(", ")
        );
        let mut nft = Command::new("nft")
            .args(["-f", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("nft")?;
        nft.stdin
            .take()
            .expect("piped")
            .write_all(rules.as_bytes())?;
        let output = nft.wait_with_output()?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!(
                "nft refuses its rules: {}",
                stderr.lines().next().unwrap_or_default()
            );
        }
        Ok(Self(()))
    }

    fn counted(&self) -> Result<u64> {
        let listed = output(Command::new("nft").args(["--json", "list", "counters", "netdev"]))?;
        let listed: serde_json::Value = serde_json::from_str(&listed)?;
        let counters = listed["nftables"]
            .as_array()
            .context("nft lists no counters")?;
        Ok(counters
            .iter()
            .filter_map(|item| item["counter"]["packets"].as_u64())
            .sum())
    }
}

impl Drop for Nft {
    fn drop(&mut self) {
        // If this fails, the namespace removes it.
        let _ = output(Command::new("nft").args(["delete", "table", "netdev", "bench"]));
    }
}

/// The ingress qdisc with a filter that accepts all: without a filter the kernel does not count.
pub struct Tc(());

impl Tc {
    fn new() -> Result<Self> {
        output(Command::new("tc").args(["qdisc", "add", "dev", link::RX, "ingress"]))?;
        let made = Self(());
        output(
            Command::new("tc")
                .args([
                    "filter",
                    "add",
                    "dev",
                    link::RX,
                    "parent",
                    "ffff:",
                    "protocol",
                    "all",
                ])
                .args(["u32", "match", "u32", "0", "0", "flowid", ":1"]),
        )?;
        Ok(made)
    }

    fn counted(&self) -> Result<u64> {
        let shown = output(Command::new("tc").args([
            "-json",
            "-statistics",
            "qdisc",
            "show",
            "dev",
            link::RX,
            "ingress",
        ]))?;
        let shown: serde_json::Value = serde_json::from_str(&shown)?;
        let qdiscs = shown.as_array().context("tc shows no qdisc")?;
        let ingress = qdiscs
            .iter()
            .find(|qdisc| qdisc["kind"] == "ingress")
            .context("tc shows no ingress qdisc")?;
        ingress["packets"]
            .as_u64()
            .context("tc shows no count of packets")
    }
}

impl Drop for Tc {
    fn drop(&mut self) {
        // If this fails, the namespace removes it.
        let _ = output(Command::new("tc").args(["qdisc", "del", "dev", link::RX, "ingress"]));
    }
}

/// tcpdump, with its own report of losses.
pub struct Tcpdump {
    process: Child,
    stderr: BufReader<ChildStderr>,
}

impl Tcpdump {
    fn new() -> Result<Self> {
        let mut command = Command::new("tcpdump");
        command.args(["-i", link::RX, "-n", "-w", "/dev/null", "-Z", "root", "udp"]);
        let mut process = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("tcpdump")?;
        let stderr = BufReader::new(process.stderr.take().expect("piped"));
        let mut tcpdump = Self { process, stderr };
        let first = tcpdump.line_with("listening on")?;
        if first.is_none() {
            bail!("tcpdump ended before it listened");
        }
        Ok(tcpdump)
    }

    fn line_with(&mut self, words: &str) -> Result<Option<String>> {
        loop {
            let mut line = String::new();
            if self.stderr.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if line.contains(words) {
                return Ok(Some(line));
            }
        }
    }

    /// Polls until all frames that passed the filter are captured or lost.
    fn counted(&mut self) -> Result<Received> {
        let deadline = Instant::now() + LATEST;
        loop {
            kill(Pid::from_raw(self.process.id() as i32), Signal::SIGUSR1)?;
            let line = self.line_with("captured")?.context("tcpdump ended")?;
            let numbers: Vec<u64> = line
                .split(|c: char| !c.is_ascii_digit())
                .flat_map(str::parse)
                .collect();
            let [captured, passed, lost] = numbers[..] else {
                bail!("expected three counts of tcpdump, found {line}")
            };
            if captured + lost >= passed || Instant::now() > deadline {
                return Ok(Received {
                    frames: captured,
                    lost,
                });
            }
            clock::sleep_until(clock::now() + 1_000_000);
        }
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
