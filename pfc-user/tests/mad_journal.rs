//! The journal of a DUT's M_Key: a killed run leaves an entry, and a later run restores the key.
//!
//! lane: waiting

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ib_mad::attr::PortInfo;
use ib_mad::mad::{AttributeId, MKey, Method};
use ib_mad::requester::{Outcome, Requester};
use ib_mad::smp::{Route, Smp};
use ib_mad::transport::ibsim::IbsimTransport;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use validator::config::{MadTestbed, MadTransport};
use validator::driver::bringup::journal::Journal;
use validator::driver::bringup::mad::{Claimed, Node, Target};
use validator_core::m_key::Protection;

use crate::common;

/// No process has this number: PID_MAX_LIMIT is below it.
const NOBODY: u32 = 1 << 23;
const FOUND: Protection = Protection {
    m_key: MKey(0xabcd),
    protect_bits: 2,
    lease_period: 60,
};
const M_KEY_DUT: MKey = MKey(0x1234);
/// Longest wait for what has to come: only a failure takes as long.
const PATIENCE: Duration = Duration::from_secs(120);
/// From one look at what sends no event to the next.
const LOOK: Duration = Duration::from_millis(20);

/// `validator dut sma`; ends with this.
struct Dut {
    child: Child,
    socket: String,
}

impl Dut {
    /// With that protection, as a killed run may have left it.
    fn start(name: &str, protection: Protection) -> Self {
        let socket = format!("journal-{name}-{}", std::process::id());
        let Protection {
            m_key,
            protect_bits,
            lease_period,
        } = protection;
        let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
        command.args([
            "dut",
            "sma",
            "--socket",
            &socket,
            "--m-key",
            &m_key.to_string(),
        ]);
        command.args([
            "--protect-bits",
            &protect_bits.to_string(),
            "--lease",
            &lease_period.to_string(),
        ]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.starts_with("ready"), "{line:?}");
        Self { child, socket }
    }

    fn shown(&self, key: MKey) -> Protection {
        Protection::of(&self.port_info(key))
    }

    fn port_info(&self, key: MKey) -> PortInfo {
        let transport =
            IbsimTransport::connect(&self.socket, "Hca1", Duration::from_secs(5)).unwrap();
        let route = Route::Directed("0,1".parse().unwrap());
        let mut request = Smp::request(Method::GET, AttributeId::PORT_INFO, 0, &route);
        request.set_m_key(key);
        match Requester::new(Box::new(transport), 1)
            .exchange(request, &route, Duration::from_secs(5))
            .unwrap()
            .outcome
        {
            Outcome::Answered { smp, .. } => smp.decode().unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Dut {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An entry of a process that is gone.
fn entry(folder: &Path, socket: &str) -> PathBuf {
    let path = folder.join(format!("{NOBODY}-m-key.json"));
    let entry = serde_json::json!({
        "pid": NOBODY, "started": 1,
        "transport": { "ibsim": { "socket": socket, "host": "Hca1" } },
        "route": { "directed": "0,1" },
        "found": FOUND,
        "m_key_dut": M_KEY_DUT,
    });
    fs::write(&path, entry.to_string()).unwrap();
    path
}

#[test]
fn a_dut_is_unlocked_whatever_key_it_was_left_with() {
    let left = [
        (
            "test",
            Protection {
                m_key: M_KEY_DUT,
                protect_bits: 3,
                lease_period: 0,
            },
        ),
        ("none", Protection::NONE),
        (
            "own",
            Protection {
                lease_period: 0,
                ..FOUND
            },
        ),
        ("found", FOUND),
    ];
    for (name, protection) in left {
        let (folder, dut) = (tempfile::tempdir().unwrap(), Dut::start(name, protection));
        let path = entry(folder.path(), &dut.socket);
        let notes = Journal::at(folder.path()).recover().unwrap();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].starts_with("put back") && notes[0].contains(&FOUND.m_key.to_string()),
            "{notes:?}"
        );
        let port = dut.port_info(FOUND.m_key);
        assert_eq!(
            (Protection::of(&port), port.m_key_violations()),
            (FOUND, 0),
            "left with {name}"
        );
        assert!(!path.exists(), "left with {name}");
    }
}

#[test]
fn a_dut_that_cannot_be_reached_is_named_and_blocks_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = entry(folder.path(), "nobody-is-here");
    // As earlier versions wrote it; its namespace is gone.
    let setting = folder.path().join(format!("{NOBODY}-1-eth0-gro.json"));
    let text = r#"{"pid":8388608,"started":1,"namespace":"no-such-namespace","inode":1,"interface":"eth0","feature":"gro","was":true}"#;
    fs::write(&setting, text).unwrap();
    let notes = Journal::at(folder.path()).recover().unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    for part in [
        "NOT put back",
        "nobody-is-here",
        "path 0,1",
        &path.display().to_string(),
    ] {
        assert!(notes[0].contains(part), "{part} in {notes:?}");
    }
    assert!(path.exists(), "it is tried again by a later run");
    assert!(!setting.exists(), "there is nothing to put back");
}

#[test]
fn a_dut_with_a_key_of_somebody_else_is_left_alone() {
    let stranger = Protection {
        m_key: MKey(0x77),
        protect_bits: 2,
        lease_period: 0,
    };
    let (folder, dut) = (
        tempfile::tempdir().unwrap(),
        Dut::start("stranger", stranger),
    );
    let path = entry(folder.path(), &dut.socket);
    let notes = Journal::at(folder.path()).recover().unwrap();
    assert!(
        notes.len() == 1 && notes[0].contains("NOT put back"),
        "{notes:?}"
    );
    assert_eq!(dut.shown(stranger.m_key), stranger);
    assert!(path.exists());
}

/// The entry of a run of that process that tests the node `Hca1` sees by path 0,1.
fn claim_of(folder: &Path, process: u32) -> PathBuf {
    let path = folder.join(format!("{process}-claim.json"));
    let entry = serde_json::json!({
        "pid": process,
        "started": validator::driver::kernel::process::start_time(process).unwrap_or(1),
        "claimed": {
            "transport": { "ibsim": { "socket": "fabric", "host": "Hca1" } },
            "route": { "directed": "0,1" },
        },
    });
    fs::write(&path, entry.to_string()).unwrap();
    path
}

fn target(path: &str) -> Claimed {
    let testbed = MadTestbed {
        transport: MadTransport::Ibsim {
            socket: "fabric".into(),
            host: "Hca1".into(),
        },
        route: Route::Directed(path.parse().unwrap()),
        m_key_current: MKey(0),
        m_key_dut: M_KEY_DUT,
        m_key_other: MKey(1),
        timeout: 1,
    };
    Claimed::Way(Target::of(&testbed).unwrap())
}

/// The DUT of that GUID in the fabric of that socket, as the tester `host` sees it.
fn node(socket: &str, host: &str, guid: u64) -> Claimed {
    let transport = MadTransport::Ibsim {
        socket: socket.into(),
        host: host.into(),
    };
    Claimed::Node(Node::of(&transport, guid).unwrap())
}

#[test]
fn a_dut_that_another_process_reaches_by_another_way_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::at(folder.path());
    let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let started = validator::driver::kernel::process::start_time(other.id());
    let claims = |name: &str, mut value: serde_json::Value| {
        value["pid"] = other.id().into();
        value["started"] = started.into();
        let path = folder.path().join(format!("{name}.json"));
        fs::write(&path, value.to_string()).unwrap();
        path
    };
    let claim = claims(
        "claim",
        serde_json::json!({ "claimed": { "fabric": "ibsim fabric", "guid": 2 } }),
    );
    let refused = journal.claim(node("fabric", "Hca2", 2)).unwrap_err();
    let refused = refused.to_string();
    for part in [
        &format!("process {} tests the node with NodeGUID", other.id()),
        "0x0000000000000002 of ibsim fabric",
    ] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    // Another node, and one of that GUID in another simulation.
    drop(journal.claim(node("fabric", "Hca2", 3)).unwrap());
    drop(journal.claim(node("other", "Hca2", 2)).unwrap());
    // A note of its key is as good.
    fs::remove_file(claim).unwrap();
    claims(
        "m-key",
        serde_json::json!({
            "transport": { "ibsim": { "socket": "fabric", "host": "Hca1" } },
            "route": { "directed": "0,1" },
            "found": FOUND,
            "guid": 2,
            "m_key_dut": M_KEY_DUT,
        }),
    );
    assert!(journal.claim(node("fabric", "Hca2", 2)).is_err());
    assert!(journal.claim(node("fabric", "Hca2", 3)).is_ok());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(journal.claim(node("fabric", "Hca2", 2)).is_ok());
}

#[test]
fn a_dut_that_another_process_tests_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::at(folder.path());
    let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let path = claim_of(folder.path(), other.id());
    let refused = journal.claim(target("0,1")).unwrap_err().to_string();
    for part in [
        &format!("process {} tests the node at path 0,1", other.id()),
        "ibsim fabric Hca1",
        "wait until it has ended",
        &path.display().to_string(),
    ] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    // Another way leads to another DUT.
    drop(journal.claim(target("0,2")).unwrap());
    // A live claim is left alone, and one of a process that is gone stops nobody.
    assert_eq!(journal.recover().unwrap(), Vec::<String>::new());
    assert!(path.exists());
    other.kill().unwrap();
    other.wait().unwrap();
    let claim = journal.claim(target("0,1")).unwrap();
    assert_eq!(journal.recover().unwrap(), Vec::<String>::new());
    assert!(!path.exists());
    // Given up at the end.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    drop(claim);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_dut_that_another_process_has_locked_is_refused_and_left_alone() {
    let (folder, dut) = (tempfile::tempdir().unwrap(), Dut::start("locked", FOUND));
    let journal = Journal::at(folder.path());
    let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let text = fs::read_to_string(entry(folder.path(), &dut.socket)).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["pid"] = other.id().into();
    value["started"] = validator::driver::kernel::process::start_time(other.id()).into();
    value["transport"]["ibsim"]["socket"] = "fabric".into();
    fs::remove_file(folder.path().join(format!("{NOBODY}-m-key.json"))).unwrap();
    let path = folder.path().join(format!("{}-m-key.json", other.id()));
    fs::write(&path, value.to_string()).unwrap();
    assert!(journal.claim(target("0,1")).is_err());
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn another_node_in_the_dut_s_place_is_not_unlocked() {
    let test = Protection {
        m_key: M_KEY_DUT,
        protect_bits: 2,
        lease_period: 0,
    };
    for (guid, is_put_back) in [(0x0200_0000_0000_0200_u64, true), (7, false)] {
        let (folder, dut) = (tempfile::tempdir().unwrap(), Dut::start("guid", test));
        let path = entry(folder.path(), &dut.socket);
        let mut value: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        value["guid"] = guid.into();
        fs::write(&path, value.to_string()).unwrap();
        let notes = Journal::at(folder.path()).recover().unwrap();
        assert_eq!(notes[0].starts_with("put back"), is_put_back, "{notes:?}");
        assert_eq!(path.exists(), !is_put_back);
        if !is_put_back {
            assert!(notes[0].contains("another node answers there"), "{notes:?}");
            assert_eq!(dut.shown(M_KEY_DUT), test);
        }
    }
}

/// Abstract sockets by which DUTs are claimed now.
fn claim_sockets() -> BTreeSet<String> {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap();
    let names = sockets
        .lines()
        .filter_map(|line| line.split(' ').next_back());
    let names = names.filter_map(|name| name.strip_prefix("@validator-claim-"));
    names.map(str::to_owned).collect()
}

#[test]
fn root_a_dut_that_another_user_holds_is_refused_with_the_user_s_name() {
    let test = "root_a_dut_that_another_user_holds_is_refused_with_the_user_s_name";
    if !common::need_root(test) || !common::need_tool(test, "python3") {
        return;
    }
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::at(folder.path());
    let before = claim_sockets();
    let claim = journal.claim(node("held", "Hca1", 9)).unwrap();
    let held = claim_sockets();
    let name = held.difference(&before).next().expect("a socket").clone();
    drop(claim);
    for (listens, reason) in [
        ("s.listen()", "user nobody tests the node"),
        (
            "pass",
            "a process that does not listen (`ss -xap` as root names it) tests the node",
        ),
    ] {
        let script = format!(
            "import socket, sys; s = socket.socket(socket.AF_UNIX); \
             s.bind('\\0validator-claim-{name}'); {listens}; print(flush=True); sys.stdin.read()"
        );
        let mut other = Command::new(common::PYTHON)
            .args(["-c", &script])
            .uid(NOBODY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(other.stdout.as_mut().unwrap())
            .read_line(&mut ready)
            .unwrap();
        assert_eq!(ready, "\n");
        let refused = journal.claim(node("held", "Hca1", 9)).unwrap_err();
        drop(other.stdin.take());
        other.wait().unwrap();
        let refused = refused.to_string();
        assert!(refused.contains(reason), "{refused}");
        assert!(refused.contains(&name), "{refused}");
    }
    drop(journal.claim(node("held", "Hca1", 9)).unwrap());
}

/// What a command printed, and its exit code; it has to end, however slow the machine is.
fn ended(mut child: Child) -> Output {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it never ended: {:?}", child.wait_with_output());
        }
        thread::sleep(LOOK);
    }
    child.wait_with_output().unwrap()
}

#[test]
fn root_what_an_account_has_in_its_journal_holds_up_neither_check_nor_run() {
    let test = "root_what_an_account_has_in_its_journal_holds_up_neither_check_nor_run";
    if !common::need_root(test) || !common::need_tool(test, "unshare") {
        return;
    }
    const STRANGER: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let entries = at("home/.local/state/validator");
    for path in [&entries, &at("run"), &at("lib")] {
        fs::create_dir_all(path).unwrap();
    }
    mkfifo(&entries.join("1.json"), Mode::S_IRWXU).unwrap();
    symlink("/dev/zero", entries.join("2.json")).unwrap();
    for path in [&entries, &entries.join("1.json")] {
        chown(path, Some(STRANGER), None).unwrap();
    }
    let account = format!(
        "stranger:x:{STRANGER}:0::{}:/bin/sh\n",
        at("home").display()
    );
    fs::write(at("passwd"), account).unwrap();
    // Root's own journal, and the accounts, are those of this test.
    let script = "mount --bind \"$0/run\" /run && mount --bind \"$0/lib\" /var/lib && \
                  mount --bind \"$0/passwd\" /etc/passwd && exec \"$@\"";
    let start = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]);
        command
            .arg(folder.path())
            .arg(env!("CARGO_BIN_EXE_validator"));
        command.args(arguments).env_remove("VALIDATOR_JOURNAL");
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
            .stderr(Stdio::piped())
            .current_dir(folder.path())
            .spawn()
            .unwrap()
    };
    let dut = Dut::start("accounts", FOUND);
    let testbed = format!(
        "name = \"t\"\n[mad]\ntransport = \"ibsim\"\nsocket = \"{}\"\nhost = \"Hca1\"\n\
         m_key_current = \"{}\"\n",
        dut.socket, FOUND.m_key
    );
    fs::write(at("t.toml"), testbed).unwrap();

    let check = ["check", "--passive", "--plan", "mad", "--testbed", "t.toml"];
    let checked = ended(start(&check));
    let stderr = String::from_utf8(checked.stderr).unwrap();
    assert_eq!(checked.status.code(), Some(0), "{stderr}");
    // A machine that stands still may give no answer in time; the folder is named then, too.
    assert!(
        stderr.contains(&format!("{}", entries.display())),
        "{stderr}"
    );
    assert!(stderr.contains("user stranger"), "{stderr}");

    let run = [
        "run",
        "--testbed",
        "t.toml",
        "--case",
        "mad.c14-016-get",
        "--out",
        "out",
    ];
    let mut run = start(&run);
    // Once the DUT is claimed, other users' entries have been looked at.
    let begin = Instant::now();
    while fs::read_dir(at("lib/validator")).map_or(0, Iterator::count) == 0 {
        assert_eq!(run.try_wait().unwrap(), None, "it ended");
        assert!(begin.elapsed() < PATIENCE, "the DUT is never claimed");
        thread::sleep(LOOK);
    }
    kill(Pid::from_raw(run.id() as i32), Signal::SIGTERM).unwrap();
    let ran = ended(run);
    assert_eq!(ran.status.code(), Some(130), "{ran:?}");
    assert_eq!(dut.shown(FOUND.m_key), FOUND);
}
