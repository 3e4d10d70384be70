//! The user's hooks: what they are told, what becomes of what they say, and that the DUT is put
//! back however a run ends.

use std::fs;
use std::path::Path;
use std::process::Child;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use validator::report;
use validator_core::evidence::hooks;

use crate::run::external::{External, measured};
use crate::run::lab::{Lab, of_repository, plan};
use crate::run::outcome::{Outcome, Report, set};

/// A DUT with hooks that write down what they are told.
struct Hooked {
    lab: Lab,
    testbed: String,
}

impl Hooked {
    fn new(test: &str) -> Option<Self> {
        let mut lab = Lab::new(test)?;
        let external = External::new(&mut lab);
        external.start_dut(&mut lab, "--lossless 3,4");
        let hook = lab.file(
            "hook",
            "here=$PWD\ncd ${0%/*}\n\
             echo \"$1 $VALIDATOR_PHASE,$VALIDATOR_CASE,$VALIDATOR_REPETITION,$VALIDATOR_LOSSLESS,\
             $VALIDATOR_TX_PORT,$VALIDATOR_RX_PORT,$VALIDATOR_OUT\" >> told\n\
             case $1 in\n\
             prepare) echo was > $VALIDATOR_STATE/note; echo '{\"watchdog\": \"off\"}';;\n\
             counters) n=$(grep -c ^counters told)\n\
             echo \"{\\\"Ethernet4\\\": {\\\"pfc rx\\\": {\\\"3\\\": $((n * 10)), \\\"4\\\": 7}}}\";;\n\
             restore) cp $VALIDATOR_STATE/note put-back; echo $here > ran-in;;\n\
             esac\n",
        );
        let hooks = ["prepare", "counters", "restore"]
            .map(|name| format!("hooks.{name} = \"sh {hook} {name}\"\n"));
        let names = "dut.ports = { tx = \"Ethernet0\", rx = \"Ethernet4\" }\n";
        let text = external.testbed("[3, 4]", &format!("{}{names}", hooks.concat()));
        let testbed = lab.file(
            "testbed.toml",
            &text.replace("facts.watchdog = \"off\"\n", ""),
        );
        Some(Self { lab, testbed })
    }

    /// Starts a run of one repetition with that much traffic in the storm phase.
    fn start(&self, traffic: &str) -> Child {
        self.start_with(traffic, "lossless = [3, 4]")
    }

    fn start_with(&self, traffic: &str, repetition: &str) -> Child {
        let plan = plan(traffic, &[("global-pause", repetition)]);
        let plan = self.lab.file("plan.toml", &plan);
        let testbed = &self.testbed;
        self.lab
            .start(&format!("--testbed {testbed} --plan {plan} --format json"))
    }

    /// Nothing but the DUT, which ends here.
    fn assert_nothing_is_left(mut self) {
        self.lab.end_kept();
        self.lab.assert_nothing_is_left();
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.lab.path("told")).unwrap()
    }

    /// Note of `prepare` as `restore` found it.
    fn put_back(&self) -> Option<String> {
        fs::read_to_string(self.lab.path("put-back")).ok()
    }
}

#[test]
fn root_hooks_are_told_what_they_are_run_for_and_what_they_count_is_reported() {
    let test = "root_hooks_are_told_what_they_are_run_for_and_what_they_count_is_reported";
    let Some(hooked) = Hooked::new(test) else {
        return;
    };
    let ended = Outcome::of(hooked.start("200ms").wait_with_output().unwrap());
    ended.assert_measured();
    let (lab, out) = (&hooked.lab, hooked.lab.out());
    let moment = |hook: &str, phase: &str, of: &str| {
        let out = out.display();
        format!("{hook} {phase},{of},3,4,Ethernet0,Ethernet4,{out}\n")
    };
    let repetition = "pfc.global-pause,lossless 3+4";
    // A repetition that was disturbed is measured again.
    let mut calls = hooked.calls();
    let both = moment("counters", "before", repetition) + &moment("counters", "after", repetition);
    let attempts = calls.matches(&both).count();
    calls = calls.replacen(&both, "", attempts - 1);
    let expected = moment("prepare", "prepare", ",") + &both + &moment("restore", "restore", ",");
    assert_eq!(calls, expected);
    assert_eq!(hooked.put_back().as_deref(), Some("was\n"));

    let evidence = report::read_evidence(&out).unwrap();
    let hooks: Vec<_> = evidence
        .hooks
        .iter()
        .map(|output| output.hook.as_str())
        .collect();
    assert_eq!(hooks, ["prepare", "restore"]);
    let measured = &measured(lab)[0];
    assert_eq!(measured.watchdog.as_deref(), Some("off"));
    let counted: Vec<_> = hooks::changes(&measured.hooks)
        .iter()
        .map(|counter| format!("{} {}", counter.counter, counter.change()))
        .collect();
    assert_eq!(counted, ["Ethernet4 pfc rx 3 +10"]);
    let report = Report::read(&out);
    let hooks = &report.case("global-pause")["hooks"][0];
    assert_eq!(hooks["counters"][0]["counter"], "Ethernet4 pfc rx 3");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Ethernet4 pfc rx 3") && page.contains("+10"));
    hooked.assert_nothing_is_left();
}

#[test]
fn root_a_run_whose_dut_cannot_be_made_ready_is_refused_and_measures_nothing() {
    let test = "root_a_run_whose_dut_cannot_be_made_ready_is_refused_and_measures_nothing";
    let Some(hooked) = Hooked::new(test) else {
        return;
    };
    let path = Path::new(&hooked.testbed);
    let text = fs::read_to_string(path).unwrap();
    let fails = "prepare; echo one >&2; echo two >&2; exit 7\"\n";
    fs::write(path, text.replace("prepare\"\n", fails)).unwrap();
    let ended = Outcome::of(hooked.start("200ms").wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    let message = "validator: the hook `prepare` failed with exit status 7: one / two\n";
    assert!(ended.stderr.ends_with(message), "{}", ended.stderr);
    let out = hooked.lab.out();
    assert!(!out.exists());
    // No counters were read; what it had changed until then is put back.
    let moment = |hook: &str| {
        let out = out.display();
        format!("{hook} {hook},,,3,4,Ethernet0,Ethernet4,{out}\n")
    };
    assert_eq!(hooked.calls(), moment("prepare") + &moment("restore"));
    assert_eq!(hooked.put_back().as_deref(), Some("was\n"));
    hooked.assert_nothing_is_left();
}

#[test]
fn root_a_dry_run_shows_hooks_and_runs_none() {
    let Some(hooked) = Hooked::new("root_a_dry_run_shows_hooks_and_runs_none") else {
        return;
    };
    let plan = plan("200ms", &[("global-pause", "lossless = [3, 4]")]);
    let plan = hooked.lab.file("plan.toml", &plan);
    let arguments = format!(
        "run --testbed {} --plan {plan} --out /x/y --dry-run",
        hooked.testbed
    );
    let dry = hooked.lab.run(&arguments);
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    let words: String = dry.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for shown in [
        "hook prepare: sh ",
        "hook restore: sh ",
        "hook counters: sh ",
        "VALIDATOR_REPETITION=\"lossless 3+4\" VALIDATOR_LOSSLESS=\"3,4\" \
         VALIDATOR_TX_PORT=\"Ethernet0\" VALIDATOR_RX_PORT=\"Ethernet4\" \
         VALIDATOR_PORTS=\"Ethernet0,Ethernet4\" VALIDATOR_OUT=\"/x/y\"",
    ] {
        assert!(words.contains(shown), "{shown} in {}", dry.stdout);
    }
    let json = hooked
        .lab
        .run(&format!("{arguments} --format json"))
        .report()
        .0;
    assert_eq!(json["hooks"][0]["hook"], "prepare");
    assert_eq!(json["cases"][0]["hooks"][1]["variables"][0][1], "after");
    assert!(!hooked.lab.path("told").exists());
}

#[test]
fn root_a_hook_that_lowers_an_mtu_fails_no_device() {
    let Some(mut lab) = Lab::new("root_a_hook_that_lowers_an_mtu_fails_no_device") else {
        return;
    };
    let external = External::new(&mut lab);
    external.start_dut(&mut lab, "--lossless 3,4");
    // Before its first look at the link, but after the run has taken the port.
    let hook = format!(
        "hooks.configure = \"ip -n {} link set dev rx mtu 600\"\n",
        external.tester
    );
    let testbed = lab.file("testbed.toml", &external.testbed("[3, 4]", &hook));
    let plan = plan("200ms", &[("global-pause", "lossless = [3, 4]")]);
    let plan = lab.file("plan.toml", &plan);
    let ended = lab.run(&format!(
        "run --testbed {testbed} --plan {plan} --set testbed.limits.attempts=1 --format json --out {}",
        lab.out().display()
    ));
    ended.assert_measured();
    let report = ended.report();
    assert_eq!(
        report.checks("fail"),
        set(&[]),
        "{}",
        report.reasons("fail")
    );
    let disturbed = measured(&lab)[0].ports.rx.disturbed.clone();
    assert_eq!(
        disturbed.as_deref(),
        Some("got an MTU of 600 in place of 1500")
    );
    lab.end_kept();
    lab.assert_nothing_is_left();
}

/// The hooks for SONiC, and the stand-in for a switch: they turn its watchdog off, and all
/// lossless priorities but those of the repetition.
fn of_sonic(hooked: &Hooked) -> serde_json::Value {
    let was = serde_json::json!({
        "release": "202305",
        "sudo": true,
        "watchdog": { "Ethernet4": ["drop", "400", "400", "disable"] },
        "lossless": { "Ethernet0": "3,4", "Ethernet4": "3,4" },
        "buffers": { "3-4": "pg_lossless_100000_5m_profile" },
    });
    let stand_in = hooked.lab.file("switch.json", &was.to_string());
    let path = Path::new(&hooked.testbed);
    let text = fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with("hooks."))
        .map(str::to_owned)
        .collect();
    let bin = of_repository("pfc-user/tests/sonic/bin");
    let folder = of_repository("configs/hooks/sonic");
    lines.extend(["prepare", "configure", "counters", "restore"].map(|hook| {
        format!(
            "hooks.{hook} = \"PATH={bin}:$PATH STAND_IN={stand_in} {folder}/{hook} admin@switch\""
        )
    }));
    fs::write(path, lines.join("\n")).unwrap();
    was
}

/// Watchdog and lossless priorities of the stand-in.
fn configuration(hooked: &Hooked) -> [serde_json::Value; 2] {
    let text = fs::read_to_string(hooked.lab.path("switch.json")).unwrap();
    let state: serde_json::Value = serde_json::from_str(&text).unwrap();
    [state["watchdog"].clone(), state["lossless"].clone()]
}

#[test]
fn root_a_sonic_switch_is_as_it_was_after_an_interrupt_and_after_a_kill() {
    let test = "root_a_sonic_switch_is_as_it_was_after_an_interrupt_and_after_a_kill";
    let Some(hooked) = Hooked::new(test) else {
        return;
    };
    let was = of_sonic(&hooked);
    let was = [was["watchdog"].clone(), was["lossless"].clone()];
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let run = hooked.start_with("1min", "lossless = [4]");
        hooked.lab.wait_for_data_in_the_storm();
        let one = serde_json::json!({ "Ethernet0": "4", "Ethernet4": "4" });
        assert_eq!(configuration(&hooked), [serde_json::json!({}), one]);
        killpg(Pid::from_raw(run.id() as i32), signal).unwrap();
        run.wait_with_output().unwrap();
        if signal == Signal::SIGKILL {
            assert_ne!(configuration(&hooked), was);
            let undone = hooked.lab.run("check --undo");
            assert_eq!(undone.code, Some(0), "{undone:?}");
        }
        assert_eq!(configuration(&hooked), was, "{signal}");
    }
    hooked.assert_nothing_is_left();
}

#[test]
fn root_an_interrupted_run_puts_the_dut_back() {
    let Some(hooked) = Hooked::new("root_an_interrupted_run_puts_the_dut_back") else {
        return;
    };
    let run = hooked.start("1min");
    hooked.lab.wait_for_data_in_the_storm();
    killpg(Pid::from_raw(run.id() as i32), Signal::SIGINT).unwrap();
    let ended = Outcome::of(run.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert_eq!(hooked.put_back().as_deref(), Some("was\n"));
    hooked.assert_nothing_is_left();
}

#[test]
fn root_a_later_run_puts_back_the_dut_of_one_that_was_killed() {
    let test = "root_a_later_run_puts_back_the_dut_of_one_that_was_killed";
    let Some(hooked) = Hooked::new(test) else {
        return;
    };
    let run = hooked.start("1min");
    hooked.lab.wait_for_data_in_the_storm();
    kill(Pid::from_raw(run.id() as i32), Signal::SIGKILL).unwrap();
    run.wait_with_output().unwrap();
    assert_eq!(hooked.put_back(), None);
    let undone = hooked.lab.run("check --undo");
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(
        undone
            .stdout
            .contains("put back the DUT, by the hook `restore`"),
        "{undone:?}"
    );
    assert_eq!(hooked.put_back().as_deref(), Some("was\n"));
    hooked.assert_nothing_is_left();
}

#[test]
fn root_a_dut_that_cannot_be_put_back_is_told_and_tried_again() {
    let test = "root_a_dut_that_cannot_be_put_back_is_told_and_tried_again";
    let Some(hooked) = Hooked::new(test) else {
        return;
    };
    let path = Path::new(&hooked.testbed);
    let text = fs::read_to_string(path).unwrap();
    let (before, after) = text.split_once("hooks.restore = \"").unwrap();
    let fixed = hooked.lab.path("fixed");
    let restore = format!(
        "[ -e {} ] || {{ echo out of reach >&2; exit 4; }}; ",
        fixed.display()
    );
    fs::write(path, format!("{before}hooks.restore = \"{restore}{after}")).unwrap();
    let ended = Outcome::of(hooked.start("200ms").wait_with_output().unwrap());
    let message =
        "the DUT is NOT put back: the hook `restore` failed with exit status 4: out of reach";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
    assert_eq!(
        Report::read(&hooked.lab.out()).0["failed_hooks"][0],
        "restore: the hook `restore` failed with exit status 4: out of reach"
    );
    fs::write(fixed, "").unwrap();
    let undone = hooked.lab.run("check --undo");
    assert_eq!(undone.code, Some(0), "{undone:?}");
    hooked.assert_nothing_is_left();
}
