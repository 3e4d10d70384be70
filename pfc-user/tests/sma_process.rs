//! `validator dut sma` as a process, tested by independent clients: infiniband-diags and opensm
//! under Debian's libumad2sim.
//!
//! lane: waiting

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::need_tool;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use validator::driver::kernel::clock;
use validator::driver::stall;

use crate::common;

const KEY: &str = "0x1122334455667788";

/// Debian's path of the library that turns a client of umad into one of ibsim.
fn shim() -> String {
    format!(
        "/usr/lib/{}-linux-gnu/umad2sim/libumad2sim.so",
        std::env::consts::ARCH
    )
}

/// True if `tool` and libumad2sim are installed; otherwise `test` is reported as skipped.
fn need_client(test: &str, tool: &str) -> bool {
    let shim = Path::new(&shim()).is_file();
    if !shim {
        common::skip(
            test,
            "needs libumad2sim0, which `cargo xtask setup` installs",
        );
    }
    shim && need_tool(test, tool)
}

/// The process; the end of its standard input ends it.
struct Dut {
    name: String,
    process: Child,
    stdout: BufReader<ChildStdout>,
    ready: String,
}

impl Dut {
    fn start(flags: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "sma-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let mut process = Command::new(env!("CARGO_BIN_EXE_validator"))
            .args(["dut", "sma", "--socket", &name])
            .args(flags.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        Self {
            name,
            process,
            stdout,
            ready,
        }
    }

    /// Runs a client to its end.
    fn client(&self, line: &str) -> Output {
        self.run(line, tempfile::tempdir().unwrap().path())
    }

    /// Runs a client in `folder`, where the shim makes a folder of its own.
    fn run(&self, line: &str, folder: &Path) -> Output {
        let mut words = line.split_whitespace();
        let mut client = Command::new(words.next().unwrap());
        client.args(words).current_dir(folder).stdin(Stdio::null());
        // opensm would otherwise remember another subnet.
        client
            .env("OSM_CACHE_DIR", folder)
            .env("OSM_TMP_DIR", folder);
        client
            .env("LD_PRELOAD", shim())
            .env("IBSIM_SOCKNAME", &self.name)
            .env("SIM_HOST", "Hca1")
            .output()
            .unwrap()
    }

    /// Returns the output of a client, which must succeed.
    fn ask(&self, line: &str) -> String {
        let Output {
            status,
            stdout,
            stderr,
        } = self.client(line);
        assert!(
            status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&stderr)
        );
        String::from_utf8(stdout).unwrap()
    }

    /// Waits for its end and returns the rest of its output, but for the stalls that a busy machine
    /// may cause.
    fn rest(mut self) -> String {
        drop(self.process.stdin.take());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert!(self.process.wait().unwrap().success());
        let lines = rest.split_inclusive('\n');
        lines.filter(|line| stall::read(line).is_none()).collect()
    }
}

impl Drop for Dut {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Value of a field as smpquery prints it.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let of_line = |line: &'a str| {
        line.strip_prefix(name)?
            .strip_prefix(':')
            .map(|value| value.trim_start_matches('.'))
    };
    text.lines()
        .find_map(of_line)
        .unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[track_caller]
fn fields(text: &str, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(field(text, name), *value, "{name}");
    }
}

#[test]
fn it_says_when_it_is_ready_and_ends_with_its_input() {
    let dut = Dut::start("");
    assert_eq!(
        dut.ready,
        format!(
            "ready: IBSIM_SOCKNAME={} SIM_HOST=Hca1 LD_PRELOAD={} smpquery -D nodeinfo 0,1\n",
            dut.name,
            shim()
        )
    );
    assert_eq!(
        dut.rest(),
        "ended: 0 datagrams ignored, 0 packets dropped\n"
    );
}

#[test]
fn it_ends_at_sigterm() {
    let mut dut = Dut::start("");
    kill(Pid::from_raw(dut.process.id() as i32), Signal::SIGTERM).unwrap();
    assert!(dut.process.wait().unwrap().success());
}

#[test]
fn a_name_that_is_taken_is_told() {
    let dut = Dut::start("");
    let second = Command::new(env!("CARGO_BIN_EXE_validator"))
        .args(["dut", "sma", "--socket", &dut.name])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2));
    let expected = format!(
        "validator: an ibsim server is called {:?} already: choose another name, or end that one\n",
        dut.name
    );
    assert_eq!(String::from_utf8(second.stderr).unwrap(), expected);
}

#[test]
fn smpquery_sees_the_switch_as_configured() {
    if !need_client("smpquery_sees_the_switch_as_configured", "smpquery") {
        return;
    }
    let dut = Dut::start(
        "--ports 6 --linear-fdb-cap 0 --random-fdb-cap 3072 --lid 5 --lease 9 \
         --response-time-value 12 --subnet-timeout 13",
    );
    for address in ["-D nodeinfo 0,1", "nodeinfo 5"] {
        let text = dut.ask(&format!("smpquery {address}"));
        fields(
            &text,
            &[
                ("NodeType", "Switch"),
                ("NumPorts", "6"),
                ("Guid", "0x0200000000000200"),
                ("LocalPort", "1"),
            ],
        );
    }
    for address in ["-D nodedesc 0,1", "nodedesc 5"] {
        assert_eq!(
            field(&dut.ask(&format!("smpquery {address}")), "Node Description"),
            "Dut"
        );
    }
    for address in ["-D portinfo 0,1 0", "portinfo 5 0"] {
        let text = dut.ask(&format!("smpquery {address}"));
        fields(
            &text,
            &[
                ("Lid", "5"),
                ("SMLid", "1"),
                ("MkeyLeasePeriod", "9"),
                ("RespTimeVal", "12"),
                ("SubnetTimeout", "13"),
            ],
        );
        fields(&text, &[("ProtectBits", "0"), ("MkeyViolations", "0")]);
    }
    for (port, state) in [(1, "Active"), (2, "Down")] {
        assert_eq!(
            field(
                &dut.ask(&format!("smpquery -D portinfo 0,1 {port}")),
                "LinkState"
            ),
            state
        );
    }
    for address in ["-D switchinfo 0,1", "switchinfo 5"] {
        fields(
            &dut.ask(&format!("smpquery {address}")),
            &[("LinearFdbCap", "0"), ("RandomFdbCap", "3072")],
        );
    }
    assert!(dut.ask("smpquery -D pkeys 0,1").contains("0: 0xffff"));
    // The tester's own node: also by a path that leads through the switch and back.
    for address in ["nodeinfo 1", "-D nodeinfo 0", "-D nodeinfo 0,1,1"] {
        fields(
            &dut.ask(&format!("smpquery {address}")),
            &[
                ("NodeType", "Channel Adapter"),
                ("Guid", "0x0200000000000100"),
            ],
        );
    }
    assert_eq!(
        dut.rest(),
        "ended: 0 datagrams ignored, 0 packets dropped\n"
    );
}

#[test]
fn smpquery_sees_the_channel_adapter() {
    if !need_client("smpquery_sees_the_channel_adapter", "smpquery") {
        return;
    }
    let dut = Dut::start("--node ca --port-state initialized");
    fields(
        &dut.ask("smpquery -D nodeinfo 0,1"),
        &[("NodeType", "Channel Adapter"), ("NumPorts", "1")],
    );
    assert_eq!(
        field(&dut.ask("smpquery -D portinfo 0,1 1"), "LinkState"),
        "Initialize"
    );
}

#[test]
fn ibportstate_reads_both_ends_of_the_link() {
    if !need_client("ibportstate_reads_both_ends_of_the_link", "ibportstate") {
        return;
    }
    // It asks the peer by a path that leads through the switch and back.
    let text = Dut::start("--port-state active").ask("ibportstate -D 0,1 1");
    let (port, peer) = text.split_once("Peer PortInfo:").unwrap();
    for end in [port, peer] {
        fields(end, &[("LinkState", "Active"), ("PhysLinkState", "LinkUp")]);
    }
}

#[test]
fn a_link_that_is_down_leads_nowhere() {
    if !need_client("a_link_that_is_down_leads_nowhere", "smpquery") {
        return;
    }
    let dut = Dut::start("--port-state down");
    assert!(
        !dut.client("smpquery -t 50 -D nodeinfo 0,1")
            .status
            .success()
    );
    dut.ask("smpquery -D nodeinfo 0");
}

#[test]
fn smpdump_sees_status_and_data_of_the_forwarding_tables() {
    if !need_client(
        "smpdump_sees_status_and_data_of_the_forwarding_tables",
        "smpdump",
    ) {
        return;
    }
    let zeroes = "0000 0000 0000 0000 0000 0000 0000 0000\n".repeat(4);
    let dut = Dut::start("");
    // No linear table: code 7 (0x1c); bit 15 is the direction.
    assert_eq!(
        dut.ask("smpdump -D 0,1 0x19 5"),
        format!("{zeroes}SMP status: 0x801c\n")
    );
    assert_eq!(
        dut.ask("smpdump 2 0x19 767"),
        format!("{zeroes}SMP status: 0x1c\n")
    );
    assert_eq!(
        dut.ask("smpdump -D 0,1 0x1a 63"),
        format!("{zeroes}SMP status: 0x8000\n")
    );
    assert_eq!(
        dut.ask("smpdump -D 0,1 0x1a 64"),
        format!("{zeroes}SMP status: 0x801c\n")
    );
    assert_eq!(
        dut.ask("smpdump -s -D 0,1 0x10"),
        "Dut\nSMP status: 0x8000\n"
    );

    let linear = Dut::start("--linear-fdb-cap 1024");
    assert!(
        linear
            .ask("smpdump -D 0,1 0x19 5")
            .ends_with("SMP status: 0x8000\n")
    );
}

#[test]
fn faults_are_in_force() {
    if !need_client("faults_are_in_force", "smpdump") {
        return;
    }
    let dut = Dut::start("--fault lft-status=0 --fault lft-data");
    let text = dut.ask("smpdump -D 0,1 0x19 5");
    assert!(
        text.ends_with("SMP status: 0x8000\n") && !text.starts_with("0000 0000 0000"),
        "{text}"
    );
}

#[test]
fn smpquery_without_the_key_gets_what_the_protect_bits_allow() {
    if !need_client(
        "smpquery_without_the_key_gets_what_the_protect_bits_allow",
        "smpquery",
    ) {
        return;
    }
    for (bits, seen) in [
        (0, Some(KEY)),
        (1, Some("0x0000000000000000")),
        (2, None),
        (3, None),
    ] {
        let dut = Dut::start(&format!("--m-key {KEY} --protect-bits {bits}"));
        let (without, with) = (
            "smpquery -t 100 -K -D portinfo 0,1 0",
            format!("smpquery -K -y {KEY} -D portinfo 0,1 0"),
        );
        fields(
            &dut.ask(&with),
            &[
                ("Mkey", KEY),
                ("ProtectBits", &bits.to_string()),
                ("MkeyViolations", "0"),
            ],
        );
        match seen {
            Some(key) => fields(&dut.ask(without), &[("Mkey", key), ("MkeyViolations", "0")]),
            None => assert!(!dut.client(without).status.success(), "protect bits {bits}"),
        }
        // smpquery decides how often it asks, and for what.
        let violations: u32 = field(&dut.ask(&with), "MkeyViolations").parse().unwrap();
        assert_eq!(violations > 0, seen.is_none(), "protect bits {bits}");
    }
}

#[test]
fn clients_at_the_same_time_get_their_own_answers() {
    if !need_client("clients_at_the_same_time_get_their_own_answers", "smpquery") {
        return;
    }
    let dut = Dut::start("");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope
                .spawn(|| assert_eq!(field(&dut.ask("smpquery -D nodeinfo 0,1"), "NumPorts"), "4"));
        }
    });
    assert_eq!(
        dut.rest(),
        "ended: 0 datagrams ignored, 0 packets dropped\n"
    );
}

#[test]
fn opensm_brings_the_subnet_up() {
    if !need_client("opensm_brings_the_subnet_up", "opensm") {
        return;
    }
    // opensm cannot work with a switch without a linear forwarding table.
    for (flags, kind) in [
        ("--linear-fdb-cap 1024", "Switch"),
        ("--node ca", "Channel Adapter"),
    ] {
        let dut = Dut::start(&format!("{flags} --port-state initialized"));
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let opensm = dut.run(
            &format!("opensm -o -g 0 -D 0x03 -f {}", log.display()),
            folder.path(),
        );
        let log = std::fs::read_to_string(log).unwrap();
        assert!(opensm.status.success(), "{log}");
        // 0x01 is an error.
        assert!(
            log.contains("SUBNET UP") && !log.contains(" 0x01 -> "),
            "{log}"
        );
        assert_eq!(
            field(&dut.ask("smpquery -D portinfo 0,1 1"), "LinkState"),
            "Active"
        );
        // By the LID that opensm has assigned.
        let lid: u16 = field(&dut.ask("smpquery -D portinfo 0,1 0"), "Lid")
            .parse()
            .unwrap();
        assert_eq!(
            field(&dut.ask(&format!("smpquery nodeinfo {lid}")), "NodeType"),
            kind
        );
    }
}

#[test]
fn a_process_that_stood_still_says_when() {
    const STOPPED: u64 = 100_000_000;
    let mut dut = Dut::start("");
    let pid = Pid::from_raw(dut.process.id() as i32);
    let from = clock::now();
    kill(pid, Signal::SIGSTOP).unwrap();
    while clock::now() < from + STOPPED {
        clock::sleep_until(from + STOPPED);
    }
    kill(pid, Signal::SIGCONT).unwrap();
    // A busy machine may cause others before.
    let stall = loop {
        let mut line = String::new();
        dut.stdout.read_line(&mut line).unwrap();
        let stall = stall::read(&line).unwrap();
        if stall.to >= from + STOPPED {
            break stall;
        }
    };
    assert!(
        stall.from < from + STOPPED / 2,
        "{stall:?}, stopped from {from}"
    );
    assert_eq!(
        dut.rest(),
        "ended: 0 datagrams ignored, 0 packets dropped\n"
    );
}
