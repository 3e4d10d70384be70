//! Input that cannot work is refused before anything is measured, with advice, and nothing is left
//! behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use validator::driver::bpf::{AccountProgram, Sizes, XdpMode};
use validator::driver::kernel::netns::Namespace;

use crate::run::external::External;
use crate::run::lab::{Lab, PROGRAM, ip, of_repository};
use crate::run::outcome::Outcome;
use crate::snapshot;

const NOBODY: u32 = 65534;

/// Runs `validator run` with a directory for the results, which must not appear.
fn refuse(lab: &Lab, arguments: &str, message: &str) {
    let refused = lab.run(&format!("run --out {} {arguments}", lab.out().display()));
    refused.assert_refused(message);
    assert!(
        !lab.out().exists(),
        "nothing is measured, so nothing is written"
    );
    lab.assert_nothing_is_left();
}

#[test]
fn root_ports_that_cannot_be_used() {
    let Some(mut lab) = Lab::new("root_ports_that_cannot_be_used") else {
        return;
    };
    let external = External::new(&mut lab);
    let tester = external.tester.clone();
    let named = format!("network namespace \"{tester}\"");
    let testbed = lab.file("testbed.toml", &external.testbed("[3]", ""));
    let arguments = format!("--testbed {testbed} --plan smoke");

    let with = |set: &str| format!("{arguments} --set {set}");
    let unknown = format!("there is no interface \"eth9\" in {named}; there are: lo, tx, rx");
    refuse(&lab, &with("testbed.ports.tx.interface=eth9"), &unknown);
    let both = with("testbed.ports.tx.interface=eth9 --set testbed.ports.rx.interface=eth8");
    let other = unknown.replace("eth9", "eth8");
    refuse(&lab, &both, &format!("{unknown}\n{other}"));
    refuse(
        &lab,
        &with("testbed.ports.rx.interface=tx"),
        &format!(
            "{testbed}:9:12: ports.rx: port tx is used twice; tx and rx must be different ports"
        ),
    );

    // The speed that a veth reports means nothing.
    let text = fs::read_to_string(&testbed).unwrap();
    let speedless = lab.file(
        "speedless.toml",
        &text.replace("ports.line_rate = \"1G\"\n", ""),
    );
    refuse(
        &lab,
        &format!("--testbed {speedless} --plan smoke"),
        "tx (veth) has no speed that means something: veth and tap report 10 Gbit/s whatever they \
         are; set line_rate under [ports] in the testbed",
    );

    ip(&format!("-n {} link set dev p1 down", external.dut));
    refuse(
        &lab,
        &arguments,
        &format!("rx in {named} has no carrier: is the cable in, and the other end up?"),
    );
    ip(&format!("-n {tester} link set dev rx down"));
    refuse(
        &lab,
        &arguments,
        &format!("rx in {named} is down; set it up with `ip -n {tester} link set dev rx up`"),
    );

    let elsewhere = refuse_text(&lab, &with("testbed.ports.tx.namespace=nowhere-at-all"));
    assert!(
        elsewhere.starts_with(
            "validator: there is no network namespace \"nowhere-at-all\"; there are: "
        ),
        "{elsewhere}"
    );
    assert!(elsewhere.contains(&tester), "{elsewhere}");
}

#[test]
fn root_an_mtu_below_the_frames_is_refused_and_told_by_check() {
    let Some(mut lab) = Lab::new("root_an_mtu_below_the_frames_is_refused_and_told_by_check")
    else {
        return;
    };
    let external = External::new(&mut lab);
    let tester = &external.tester;
    // Refused next, so that nothing is measured with an MTU that will do either.
    let say = lab.file("say", "echo '{\"watchdog\": \"on\"}'\n");
    let prepare = format!("hooks.prepare = \"sh {say}\"\n");
    let testbed = lab.file("testbed.toml", &external.testbed("[3, 4]", &prepare));
    let arguments = format!("--testbed {testbed} --case pfc.pause-lossy");
    let set_mtu = |port: &str, mtu: u32| ip(&format!("-n {tester} link set dev {port} mtu {mtu}"));
    // A frame of 1024 octets has a packet of 1010.
    for port in ["tx", "rx"] {
        set_mtu(port, 1009);
        let reason = format!(
            "expected packets of up to 1010 octets to fit the {port} port {port}, found an MTU of \
             1009"
        );
        let remedy = format!(
            "raise it with `ip netns exec {tester} ip link set dev {port} mtu 1010`, or send \
             shorter frames (traffic.frame)"
        );
        let message = format!("pfc.pause-lossy: {reason}; {remedy}");
        refuse(&lab, &arguments, &message);
        let checked = lab.run(&format!(
            "check --testbed {testbed} --plan smoke --format json"
        ));
        let found: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
        let expected = serde_json::json!({
            "case": "pfc.pause-lossy", "reason": reason, "remedy": remedy,
        });
        let plan = found["plan"].as_array().unwrap();
        assert_eq!((checked.code, plan.len()), (Some(1), 4), "{found:#}");
        assert!(plan.contains(&expected), "{found:#}");
        set_mtu(port, 1010);
    }
    let refused = refuse_text(&lab, &arguments);
    assert!(
        refused.contains("expected a DUT whose PFC watchdog is off, found it on"),
        "{refused}"
    );
    lab.assert_nothing_is_left();
}

fn refuse_text(lab: &Lab, arguments: &str) -> String {
    let refused = lab.run(&format!("run --out {} {arguments}", lab.out().display()));
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    assert!(!lab.out().exists());
    refused.stderr
}

#[test]
fn root_one_port_under_two_names_is_found_out() {
    let Some(mut lab) = Lab::new("root_one_port_under_two_names_is_found_out") else {
        return;
    };
    let external = External::new(&mut lab);
    let text = external
        .testbed("[3]", "")
        .replace("interface = \"rx\"", "interface = \"tx\"");
    // Once by the name of the namespace, once with the tool started inside it.
    let text = text.replacen(&format!(", namespace = \"{}\"", external.tester), "", 1);
    let testbed = lab.file("testbed.toml", &text);
    let line = format!(
        "netns exec {} {PROGRAM} run --testbed {testbed} --plan smoke",
        external.tester
    );
    let refused = Outcome::of(lab.command("ip", &line).output().unwrap());
    refused.assert_refused(&format!(
        "tx in network namespace \"{}\" is both tx and rx; they must be different ports",
        external.tester
    ));
}

#[test]
fn root_another_xdp_program_is_named_and_stays() {
    let Some(mut lab) = Lab::new("root_another_xdp_program_is_named_and_stays") else {
        return;
    };
    let external = External::new(&mut lab);
    let testbed = lab.file("testbed.toml", &external.testbed("[3]", ""));
    let namespace = Namespace::named(&external.tester).unwrap();
    for mode in [XdpMode::Skb, XdpMode::Driver] {
        let other = namespace
            .run(|| {
                AccountProgram::attach(
                    "rx",
                    mode,
                    Sizes {
                        flows: 1,
                        windows: 1,
                    },
                )
            })
            .unwrap()
            .unwrap();
        let attached = || {
            let links: serde_json::Value = serde_json::from_str(&ip(&format!(
                "-n {} -d -j link show dev rx",
                external.tester
            )))
            .unwrap();
            links[0]["xdp"]["prog"]["id"].as_u64().unwrap()
        };
        let id = attached();
        let refused = lab.run(&format!(
            "run --out {} --testbed {testbed} --plan smoke",
            lab.out().display()
        ));
        refused.assert_refused(&format!(
            "`rx` already has an XDP program, `account` (id {id}), which is not replaced; detach \
             it, for example by `ip link set dev rx xdp off`"
        ));
        assert_eq!(attached(), id);
        assert!(!lab.out().exists());
        drop(other);
        lab.assert_nothing_is_left();
    }
}

#[test]
fn root_without_privilege_the_capability_is_named() {
    let Some(mut lab) = Lab::new("root_without_privilege_the_capability_is_named") else {
        return;
    };
    let external = External::new(&mut lab);
    // Others may have no access to the build folder.
    let program = lab.path("validator");
    fs::copy(PROGRAM, &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let sim = lab.file(
        "sim.toml",
        &fs::read_to_string(of_repository("configs/testbeds/sim.toml")).unwrap(),
    );
    let here = external
        .testbed("[3]", "")
        .replace(&format!(", namespace = \"{}\"", external.tester), "");
    let here = lab.file("here.toml", &here);
    let namespace = Namespace::named(&external.tester).unwrap();
    let run = |testbed: &str, more: &str| {
        let mut command = lab.command(
            program.to_str().unwrap(),
            &format!("run --testbed {testbed} --plan smoke{more}"),
        );
        command.uid(NOBODY).gid(NOBODY);
        namespace
            .run(|| Outcome::of(command.output().unwrap()))
            .unwrap()
    };
    let out = format!(" --out {}", lab.out().display());
    run(&sim, &out).assert_refused(
        "cannot make a network namespace: this needs root \
         (CAP_SYS_ADMIN and CAP_NET_ADMIN); run with sudo",
    );
    let refused = run(&here, &out);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    assert!(
        refused.stderr.starts_with("validator: not permitted to "),
        "{}",
        refused.stderr
    );
    assert!(
        refused
            .stderr
            .trim_end()
            .ends_with("with the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"),
        "{}",
        refused.stderr
    );
    assert_eq!(
        run(&sim, " --dry-run").code,
        Some(0),
        "a dry run needs no privilege"
    );
    assert!(!lab.out().exists());
    lab.assert_nothing_is_left();
}

#[test]
fn root_files_and_arguments_that_make_no_sense() {
    let Some(lab) = Lab::new("root_files_and_arguments_that_make_no_sense") else {
        return;
    };
    let sim = of_repository("configs/testbeds/sim.toml");
    let broken = lab.file("broken.toml", "name = \"t\"\n[dut]\nkind = sim\n");
    let refused = refuse_text(&lab, &format!("--testbed {broken} --plan smoke"));
    assert!(
        refused.starts_with(&format!("validator: {broken}:3:8: "))
            && refused.contains("`kind = sim`"),
        "{refused}"
    );
    let misspelt = lab.file(
        "misspelt.toml",
        "name = \"t\"\n[dut]\nkind = \"sim\"\n[ports]\nline_rat = \"1G\"\n",
    );
    refuse(
        &lab,
        &format!("--testbed {misspelt} --plan smoke"),
        &format!(
            "{misspelt}:5:12: ports.line_rat: unknown field `line_rat`, expected one of `tx`, `rx`, \
             `line_rate`, `xdp`, `sender`, or a table with the role of a further port\n\
             {misspelt}:4:1: ports.line_rate: missing: a veth has no \
             speed of its own; say it, such as line_rate = \"1G\""
        ),
    );
    let speedless = lab.file("speedless.toml", "name = \"t\"\n[dut]\nkind = \"bridge\"\n");
    refuse(
        &lab,
        &format!("--testbed {speedless} --plan smoke"),
        &format!(
            "{speedless}:1:1: ports.line_rate: missing: a veth has no speed of its own; say it, \
             such as line_rate = \"1G\""
        ),
    );
    // The command line's answers, each below its arguments; `config/errors.rs` has all mistakes.
    let mut found = String::new();
    let mut ask = |arguments: &str| {
        let refused = refuse_text(&lab, &format!("--testbed {sim} {arguments}"));
        let arguments = arguments.replace(&lab.path("").display().to_string(), "");
        let refused = refused.replace(&lab.path("").display().to_string(), "");
        found += &format!("{arguments}\n    {}\n\n", refused.trim_end());
    };
    for arguments in [
        "--plan smoke --set testbed.limits.load=1.5",
        "--plan smoke --set testbed.qos.lossless=[3]",
        "--plan smoke --set testbed.dut.faults=[\"ignores-pcf\"]",
        "--plan speed",
        "--case pfc.pause",
        "--plan mad --case pfc.pause-lossy",
    ] {
        ask(arguments);
    }
    for (case, repetition) in [
        ("pause-lossy", "lossless = []"),
        (
            "pause-multi-lossless",
            "lossless = [0, 1, 2, 3, 4, 5, 6, 7]",
        ),
        ("pause-multi-lossless", "lossless = [3, 4, 3]"),
    ] {
        let plan = crate::run::lab::plan("200ms", &[(case, repetition)]);
        ask(&format!(
            "--plan {}",
            lab.file(&format!("{case}.toml"), &plan)
        ));
    }
    lab.assert_nothing_is_left();
    snapshot::check("bad_input.txt", &found);
}

#[test]
fn root_a_place_for_the_results_that_cannot_be_written() {
    let Some(lab) = Lab::new("root_a_place_for_the_results_that_cannot_be_written") else {
        return;
    };
    let sim = of_repository("configs/testbeds/sim.toml");
    let file = lab.file("file", "");
    // Not even root can create a file in these.
    for (out, reason) in [
        (file.as_str(), "read: Not a directory (os error 20)"),
        (
            "/proc/nothing",
            "written: No such file or directory (os error 2)",
        ),
    ] {
        let refused = lab.run(&format!("run --testbed {sim} --plan smoke --out {out}"));
        refused.assert_refused(&format!("{out}: cannot be {reason}"));
    }
    lab.assert_nothing_is_left();
}
