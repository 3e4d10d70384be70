//! `cargo xtask lab rxe`: rdma_rxe of Debian's stock kernel as the DUT of the RC cases.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::SIGTERM;

use super::archive::Archive;
use super::events::{self, Event};
use super::guest::{Clock, Guest, Machine};
use super::initrd::Initrd;
use super::network;
use super::packages::{Kernel, Tree};
use crate::build_ebpf;
use crate::setup::{self, Group};
use crate::step::{self, step};

#[derive(clap::Args)]
pub struct Rxe {
    #[command(flatten)]
    setup: setup::Install,
    /// MTU of the link; rxe uses the largest path MTU that fits: with 1500 that is 1024
    #[arg(long, default_value_t = MTU, value_parser = clap::value_parser!(u16).range(1280..=9000))]
    mtu: u16,
    /// Passed on to `validator run`, such as --out DIR; with --exec, the program to run instead and
    /// its arguments
    #[arg(last = true)]
    arguments: Vec<String>,
    /// Run another program than the validator next to the guest, such as a shell
    #[arg(long)]
    exec: bool,
}

/// The agent's port in the guest.
const AGENT_PORT: u16 = 18515;
/// Start of the line that `validator agent` prints when testers can connect.
const READY: &str = "ready: ";
/// Booting takes 10 s; five times as long on a busy machine. Beyond this limit the guest hangs.
const BOOT: Duration = Duration::from_secs(180);
/// Enough for the path MTU 4096.
const MTU: u16 = 4500;
/// The lab's own testbed.
const TESTBED: &str = "configs/testbeds/rxe.toml";

/// Returns the validator's own exit code.
pub fn run(root: &Path, options: &Rxe) -> Result<ExitCode> {
    if options.exec && options.arguments.is_empty() {
        bail!("--exec needs a program: cargo xtask lab rxe --exec -- PROGRAM [ARGUMENTS]");
    }
    check_machine()?;
    setup::run(&[Group::Build, Group::Lab], &options.setup)?;
    if !options.exec {
        build_ebpf::run(root)?;
    }
    let status = with_guest(root, options.mtu, |lab| {
        if options.exec {
            let (program, arguments) = options.arguments.split_first().expect("checked above");
            lab.run(Command::new(program).args(arguments))
        } else {
            lab.validate(&options.arguments)
        }
    })?;
    // As a shell reports it.
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Plans, each with the exit code that the validator returns for rdma_rxe, and the checks that
/// fail.
const EXPECTED: [(&str, i32, &[&str]); 2] = [
    ("configs/plans/rxe.toml", 0, &[]),
    // rdma_rxe goes on after the eighth request, and never completes.
    (
        "configs/plans/rxe-endless.toml",
        1,
        &["requests", "one-completion", "qp-error"],
    ),
];

/// Runs the plans in one boot, and ends with a line like libtest's. `target/release/validator` must
/// be up to date.
pub fn test(root: &Path) -> Result<ExitCode> {
    let wrong = with_guest(root, MTU, |lab| {
        let mut wrong = Vec::new();
        for (plan, expected, failing) in EXPECTED {
            let out = root.join("target/lab/results");
            let status = lab.validate(
                &["--plan", plan, "--out", &out.display().to_string()].map(str::to_owned),
            )?;
            let failed = failed_checks(&out)?;
            if status.code() != Some(expected) || failed != failing {
                wrong.push(format!(
                    "{plan} on rdma_rxe: expected exit code {expected} and failed checks \
                     {failing:?}, found {status} and {failed:?}"
                ));
            }
        }
        Ok(wrong)
    })?;
    for line in &wrong {
        println!("{line}");
    }
    println!(
        "test result: {}. {} passed; {} failed; 0 ignored",
        if wrong.is_empty() { "ok" } else { "FAILED" },
        EXPECTED.len() - wrong.len(),
        wrong.len()
    );
    Ok(if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Failed checks of the first case in a `report.json`, in the order of their table.
fn failed_checks(out: &Path) -> Result<Vec<String>> {
    let path = out.join("report.json");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let report: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no report", path.display()))?;
    let checks = report["cases"][0]["checks"]
        .as_array()
        .with_context(|| format!("{} has no checks", path.display()))?;
    let failed = checks.iter().filter(|check| check["verdict"] == "fail");
    Ok(failed
        .filter_map(|check| check["check"].as_str().map(str::to_owned))
        .collect())
}

/// Fails with the reason if the lab cannot run here.
pub fn check_machine() -> Result<()> {
    if !step::is_root() {
        bail!(
            "the lab needs root: it makes a network namespace and a tap; run it with sudo or as \
             root"
        );
    }
    if !cfg!(target_arch = "x86_64") {
        bail!("the lab's kernel and QEMU are Debian's for x86-64, and this machine is another");
    }
    if !Path::new("/dev/net/tun").exists() {
        bail!(
            "there is no /dev/net/tun, which the link to the guest needs: `modprobe tun`, or allow \
             the container to use it"
        );
    }
    Ok(())
}

/// A guest whose agent is ready, for programs that run beside it.
pub struct Lab<'a> {
    root: &'a Path,
    token: String,
    guest: Guest,
    events: Receiver<Event>,
    sender: Sender<Event>,
}

/// Prepares and boots the guest, does `work`, and removes everything. Group [`Group::Lab`] must be
/// installed.
pub fn with_guest<T: Send>(
    root: &Path,
    mtu: u16,
    work: impl FnOnce(&mut Lab<'_>) -> Result<T> + Send,
) -> Result<T> {
    check_machine()?;
    let archive = Archive::open()?;
    let tools = Tree::tools(&archive)?;
    let kernel = Tree::kernel(&archive, Kernel::V6_1)?;
    let validator = build_agent(root)?;
    let token = random_token()?;
    let initrd = step("initial RAM disk", || {
        let folder = root.join("target/lab/rxe");
        make_initrd(&tools, &kernel, &validator, mtu, &token, &folder)
    })?;
    network::with_tap(mtu, move || {
        let (sender, events) = mpsc::channel();
        events::send_signals(sender.clone())?;
        let guest = step("guest, to the agent's `ready`", || {
            let machine = Machine {
                tools: &tools,
                kernel: &kernel,
                initrd: &initrd,
                clock: Clock::Real,
                cpus: 1,
                memory: 512,
                devices: network::devices(),
            };
            let mut guest = Guest::start(&machine, sender.clone())?;
            guest.wait_for(READY, BOOT, &events, |_| {})?;
            Ok(guest)
        })?;
        work(&mut Lab {
            root,
            token,
            guest,
            events,
            sender,
        })
    })
}

/// Runs the agent on rxe, over a link whose other end is the host's tap.
const SCRIPT: &str = r#"
. /settings
$ip link set eth0 mtu "$MTU" up || fail "no eth0"
for pair in $PAIRS; do
    own=${pair%,*} prefix=${own#*/} peer=${pair#*,}
    case $own in *:*) nodad=nodad ;; *) nodad= ;; esac
    $ip address add "$own" dev eth0 $nodad || fail "address $own"
    $ip neighbour replace "$peer" lladdr "$PEER_MAC" dev eth0 nud permanent ||
        fail "neighbour $peer"
done
/tools/rdma link add rxe0 type rxe netdev eth0 || fail "rdma link add"
export VALIDATOR_TOKEN="$TOKEN"
/tools/validator agent --listen "0.0.0.0:$PORT" --device rxe0
fail "the agent ended with $?"
"#;
/// rdma_rxe requests the ICRC from `crc32` by name.
const MODULES: [&str; 5] = [
    "virtio_pci",
    "virtio_net",
    "crc32_generic",
    "ib_uverbs",
    "rdma_rxe",
];

/// Makes the guest's files, with `validator` and a link of that MTU.
fn make_initrd(
    tools: &Tree,
    kernel: &Tree,
    validator: &Path,
    mtu: u16,
    token: &str,
    folder: &Path,
) -> Result<PathBuf> {
    let mut initrd = Initrd::begin(folder, tools, kernel, &MODULES, SCRIPT)?;
    let settings = network::settings(mtu);
    let settings = format!("{settings} PORT={AGENT_PORT} TOKEN={token}\n");
    initrd.write("settings", settings.as_bytes(), 0o600)?;
    initrd.program(validator, "tools/validator")?;
    initrd.program(&tools.program("rdma")?, "tools/rdma")?;
    // The folder in which libibverbs looks for the provider is compiled in.
    let providers = "usr/lib/x86_64-linux-gnu/libibverbs";
    let provider = tools.starting(providers, "librxe-")?;
    let name = provider.file_name().expect("a file").to_string_lossy();
    initrd.program(&provider, &format!("{providers}/{name}"))?;
    let driver = "etc/libibverbs.d/rxe.driver";
    initrd.copy(&tools.path(driver), driver)?;
    initrd.pack()
}

fn build_agent(root: &Path) -> Result<PathBuf> {
    step("validator with verbs, for the guest", || {
        step::run(&mut agent_build(root))?;
        // The guest keeps its files in memory.
        let small = root.join("target/lab/validator-with-verbs");
        let mut strip = Command::new("strip");
        strip
            .arg("-o")
            .arg(&small)
            .arg(root.join("target/debug/validator"));
        step::run(&mut strip)?;
        Ok(small)
    })
}

/// Features of the guest's validator. They are those of the tests of pfc-user, so that both come of
/// one build.
pub const AGENT_FEATURES: &str = "otg,verbs";

/// Returns the command that builds the validator with verbs for the guest.
pub fn agent_build(root: &Path) -> Command {
    // Not optimised: it is not in the packet path. What it depends on was built for the host tests.
    let mut cargo = step::cargo();
    cargo
        .args([
            "build",
            "--package",
            "pfc-user",
            "--bin",
            "validator",
            "--features",
            AGENT_FEATURES,
        ])
        .current_dir(root);
    cargo
}

fn random_token() -> Result<String> {
    let mut octets = [0; 16];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut octets))
        .context("cannot read /dev/urandom")?;
    Ok(octets.iter().map(|octet| format!("{octet:02x}")).collect())
}

impl Lab<'_> {
    /// Runs `validator run` with the lab's testbed, unless `arguments` name another.
    pub fn validate(&mut self, arguments: &[String]) -> Result<ExitStatus> {
        let mut validator = Command::new(self.root.join("target/release/validator"));
        validator.arg("run");
        if !arguments
            .iter()
            .any(|argument| argument == "--testbed" || argument.starts_with("--testbed="))
        {
            validator.args(["--testbed", TESTBED]);
        }
        self.run(validator.args(arguments).current_dir(self.root))
    }

    /// Runs a program in the namespace of the tap, with the agent's token in VALIDATOR_TOKEN.
    pub fn run(&mut self, command: &Command) -> Result<ExitStatus> {
        println!("==> {}", step::show(command));
        // The program ends with this process, even if that is killed.
        let mut bound = Command::new("setpriv");
        bound
            .args(["--pdeathsig", "TERM", "--"])
            .arg(command.get_program())
            .args(command.get_args());
        bound
            .current_dir(command.get_current_dir().unwrap_or(self.root))
            .env("VALIDATOR_TOKEN", &self.token);
        let mut child = bound
            .spawn()
            .with_context(|| format!("cannot run {}", step::show(&bound)))?;
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
        let sender = self.sender.clone();
        thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = sender.send(Event::Ended(status));
            }
        });
        let mut guest_ended = false;
        loop {
            match self.events.recv().context("nothing is left to wait for")? {
                Event::Line(line) => self.guest.heard(line),
                Event::ConsoleClosed => guest_ended = true,
                // Ctrl-C reaches the terminal's whole process group, SIGTERM only this process. The
                // program ends in its own way.
                Event::Signal(SIGTERM) => {
                    kill(pid, Signal::SIGTERM).context("cannot end what runs next to the guest")?
                }
                Event::Signal(_) => {}
                Event::Ended(_) if guest_ended => {
                    return Err(anyhow!(
                        "the guest ended too soon; its console:\n{}",
                        self.guest.last_lines()
                    ));
                }
                Event::Ended(status) => return Ok(status),
            }
        }
    }
}
