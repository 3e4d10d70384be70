//! Devices that the tool does not start, and testbeds with other frames: PCP, IPv6.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use pfc_ebpf::stamp::Phase;
use validator::driver::kernel::link::{self, Feature};
use validator::driver::kernel::netns::Namespace;
use validator::report;
use validator_core::evidence::pfc::PfcEvidence;

use crate::run::lab::{Lab, PROGRAM, ip, of_repository};
use crate::run::outcome::Outcome;
use crate::run::settle;

/// The tester's ports tx and rx in one namespace, cabled to p0 and p1 in the DUT's.
pub struct External {
    pub tester: String,
    pub dut: String,
}

impl External {
    pub fn new(lab: &mut Lab) -> Self {
        let (tester, dut) = (lab.namespace("tester"), lab.namespace("dut"));
        for name in [&tester, &dut] {
            // Neighbour discovery must not mix with the counted frames; a kernel without IPv6 has
            // none anyway.
            let quiet = || {
                drop(fs::write(
                    "/proc/sys/net/ipv6/conf/default/disable_ipv6",
                    "1",
                ))
            };
            Namespace::named(name).unwrap().run(quiet).unwrap();
        }
        for (near, far) in [("tx", "p0"), ("rx", "p1")] {
            ip(&format!(
                "-n {tester} link add name {near} type veth peer name {far} netns {dut}"
            ));
            ip(&format!("-n {tester} link set dev {near} up"));
            ip(&format!("-n {dut} link set dev {far} up"));
        }
        Self { tester, dut }
    }

    /// The ports cabled together, with `options` of their link, and no device between them.
    pub fn cabled(lab: &mut Lab, options: &str) -> Self {
        let tester = lab.namespace("cable");
        ip(&format!(
            "-n {tester} link add name tx {options}type veth peer name rx"
        ));
        for port in ["tx", "rx"] {
            ip(&format!("-n {tester} link set dev {port} up"));
        }
        let dut = tester.clone();
        Self { tester, dut }
    }

    /// Makes a testbed file. `more` stands at its top, for `hooks.x = ...` or `qos.x = ...`.
    pub fn testbed(&self, lossless: &str, more: &str) -> String {
        let tester = &self.tester;
        format!(
            "name = \"external\"\n{more}dut.kind = \"external\"\nqos.dscp_map = \"dscp-mod-8\"\n\
             qos.lossless = {lossless}\nfacts.watchdog = \"off\"\nfacts.direct = true\n\
             ports.line_rate = \"1G\"\n\
             ports.tx = {{ interface = \"tx\", namespace = \"{tester}\" }}\n\
             ports.rx = {{ interface = \"rx\", namespace = \"{tester}\" }}\n"
        )
    }

    /// The same without the word that the other ends are the device's own.
    pub fn undeclared(&self, lossless: &str) -> String {
        self.testbed(lossless, "")
            .replace("facts.direct = true\n", "")
    }

    /// A file for the hook `configure`: it restarts the switch with the requested priorities, and
    /// returns when it is ready.
    fn configures(&self, lab: &Lab, arguments: &str) -> String {
        lab.file(
            "configure",
            &format!(
                "cd {}\n[ ! -e pid ] || kill $(cat pid)\n: > dut\n\
                 ip netns exec {} {PROGRAM} dut switch --port p0 --port p1 {arguments} \
                 --lossless $VALIDATOR_LOSSLESS < /dev/null > dut 2>&1 &\n\
                 echo $! > pid\nuntil grep -q ready dut; do kill -0 $! || exit 7; done\n\
                 echo lossless $VALIDATOR_LOSSLESS\n",
                lab.path("").display(),
                self.dut,
            ),
        )
    }

    /// Starts a simulated switch as the device. It takes frames when this returns, and ends with
    /// the lab.
    pub fn start_dut(&self, lab: &mut Lab, arguments: &str) {
        let line = format!(
            "netns exec {} {PROGRAM} dut switch --port p0 --port p1 {arguments}",
            self.dut
        );
        let mut dut = lab
            .command("ip", &line)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(dut.stdout.as_mut().unwrap())
            .read_line(&mut ready)
            .unwrap();
        lab.keep(dut);
        assert_eq!(ready, "{\"ready\":true}\n");
    }
}

/// The last attempt at each repetition.
pub fn measured(lab: &Lab) -> Vec<PfcEvidence> {
    let evidence = report::read_evidence(&lab.out()).unwrap();
    let repetitions = evidence.cases.into_iter().flat_map(|case| {
        assert_eq!(case.error, None);
        case.repetitions
    });
    let mut last: Vec<PfcEvidence> = Vec::new();
    for attempt in repetitions.filter_map(|repetition| repetition.pfc().cloned()) {
        // The tester was disturbed in the one before.
        if attempt.attempt > 1 {
            last.pop();
        }
        last.push(attempt);
    }
    last
}

/// Asserts that every check passes, or is inconclusive on a busy machine.
fn assert_good(ended: &Outcome) {
    let report = ended.assert_none_fails();
    assert!(
        report.checks("pass").contains("single no-remark"),
        "{}",
        report.reasons("inconclusive")
    );
}

/// The head of a page.
fn header(page: &str) -> &str {
    let (_, header) = page.split_once("<header").unwrap();
    header.split_once("</header>").unwrap().0
}

const SINGLE_3_AND_4: &str = "lossless = [3] }, { lossless = [4]";

#[test]
fn root_an_external_device_is_configured_by_a_hook_and_its_counters_are_kept() {
    let test = "root_an_external_device_is_configured_by_a_hook_and_its_counters_are_kept";
    let Some(mut lab) = Lab::new(test) else {
        return;
    };
    let external = External::new(&mut lab);
    let configure = external.configures(&lab, "");
    let hooks = format!(
        "hooks.configure = \"sh {configure}\"\n\
         hooks.counters = \"echo counted; echo aside >&2; exit 5\"\n"
    );
    let testbed = lab.file("testbed.toml", &external.testbed("[3]", &hooks));
    let plan = lab.plan("200ms", &[("pause-single-lossless", SINGLE_3_AND_4)]);
    let run = || lab.finish(&format!("--testbed {testbed} --plan {plan} --format json"));
    let Some(ended) = settle::until_none_fails(test, run) else {
        return;
    };
    assert_good(&ended);

    let measured = measured(&lab);
    let hooks = |index: usize| -> Vec<_> {
        let hooks = measured[index].hooks.iter();
        hooks
            .map(|output| {
                (
                    output.hook.as_str(),
                    output.when.as_str(),
                    output.status,
                    output.stdout.as_str(),
                    output.stderr.as_str(),
                )
            })
            .collect()
    };
    for (index, printed) in ["lossless 3\n", "lossless 4\n"].into_iter().enumerate() {
        let counters = |when| ("counters", when, 5, "counted\n", "aside\n");
        assert_eq!(
            hooks(index),
            [
                ("configure", "before", 0, printed, ""),
                counters("before"),
                counters("after")
            ]
        );
    }
    // That it failed decides nothing, and is told as the run goes on, in its summary, and in the
    // head of the page.
    let page = fs::read_to_string(lab.out().join("report.html")).unwrap();
    let again = lab.run(&format!("judge {}", lab.out().display()));
    let summary = again.stdout.replace("\n           ", " ");
    for name in ["lossless 3", "lossless 4"] {
        for when in ["before", "after"] {
            let failed = "the hook `counters` failed with exit status 5: aside";
            let line = format!("  {name}, {when}: {failed}\n");
            assert!(ended.stderr.contains(&line), "{}", ended.stderr);
            let line = format!("pfc.pause-single-lossless [{name}], {when}: {failed}");
            assert!(
                summary.contains(&format!("hook       {line}\n")),
                "{again:?}"
            );
            assert!(header(&page).contains(&line), "{}", header(&page));
        }
    }
    // The DUT sends PFC only if its lossless priority is the storm's.
    assert!(
        measured
            .iter()
            .all(|measured| measured.ports.tx.counts.pfc_frames > 0),
        "the DUT's own PFC was seen"
    );
    assert!(
        measured.iter().all(|measured| measured.dut.is_none()),
        "nothing is known of an external DUT's inside"
    );
}

#[test]
fn root_what_the_hook_lets_through_is_seen_by_the_self_test() {
    let test = "root_what_the_hook_lets_through_is_seen_by_the_self_test";
    let Some(mut lab) = Lab::new(test) else {
        return;
    };
    let external = External::new(&mut lab);
    // Nothing is between the ports until the hook starts the switch.
    let seen = |faults: &str| {
        let configure = external.configures(&lab, faults);
        let hooks = format!("hooks.configure = \"sh {configure}\"\n");
        let undeclared = external
            .testbed("[3]", &hooks)
            .replace("facts.direct = true\n", "");
        let testbed = lab.file("testbed.toml", &undeclared);
        // No lossless priority fills the switch, which thus sends no PFC of its own.
        let plan = lab.plan("200ms", &[("global-pause", "lossless = [3]")]);
        let arguments = format!("--testbed {testbed} --plan {plan} --format json");
        let ended = lab.finish(&arguments);
        assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
        let measured = measured(&lab);
        assert_eq!(measured.len(), 1);
        measured[0].ports.tx.pfc_visible.clone().unwrap_or_default()
    };
    assert!(
        !seen("").starts_with("self-test"),
        "a good switch keeps PFC"
    );
    assert_eq!(
        seen("--fault forwards-control"),
        "self-test: 8 PFC frames sent by the other port, all counted"
    );
}

/// SONiC's map, `AZURE`, for the simulated switch.
fn sonic_map() -> String {
    let priority = |dscp: u8| match dscp {
        3 | 4 => dscp,
        5 => 2,
        8 => 0,
        46 => 5,
        48 => 6,
        _ => 1,
    };
    let map: Vec<String> = (0..64).map(|dscp| priority(dscp).to_string()).collect();
    map.join(",")
}

/// The testbed of the laboratory as it is shipped, on these ports.
fn lab_example(external: &External) -> String {
    let tester = &external.tester;
    let port = |name: &str| format!("{{interface=\"{name}\",namespace=\"{tester}\"}}");
    format!(
        "--testbed {} --set testbed.ports.tx={} --set testbed.ports.rx={} --set \
         testbed.ports.line_rate=1G --set testbed.facts.direct=true",
        of_repository("configs/testbeds/lab-example.toml"),
        port("tx"),
        port("rx")
    )
}

#[test]
fn root_without_a_hook_the_repetitions_follow_the_set_of_the_dut() {
    let test = "root_without_a_hook_the_repetitions_follow_the_set_of_the_dut";
    let Some(mut lab) = Lab::new(test) else {
        return;
    };
    let external = External::new(&mut lab);
    external.start_dut(
        &mut lab,
        &format!("--lossless 3,4 --dscp-map {}", sonic_map()),
    );
    let arguments = format!("{} --plan smoke", lab_example(&external));
    let run = || lab.finish(&format!("{arguments} --format json"));
    let Some(ended) = settle::until_none_fails(test, run) else {
        return;
    };
    // Repetitions that were not done touch neither verdict nor exit code.
    assert_good(&ended);
    let report = ended.report();
    let names: Vec<String> = measured(&lab)
        .into_iter()
        .map(|one| one.plan.name)
        .collect();
    let (on_3, on_4) = ("lossless 3+4, storm on 3", "lossless 3+4, storm on 4");
    let both = "lossless 3+4";
    assert_eq!(names, [on_3, on_4, both, on_3, both, both]);

    // The heads of all four reports say once what was not done.
    let not_done = &report.0["fixed_set"]["not_done"];
    assert_eq!(report.0["fixed_set"]["lossless"], serde_json::json!([3, 4]));
    assert_eq!(
        not_done[0],
        serde_json::json!({
            "case": "pfc.pause-single-lossless",
            "repetitions": ["lossless 3", "lossless 4"],
        })
    );
    let expected = "the DUT's lossless set is fixed (3+4)";
    let read = |name: &str| fs::read_to_string(lab.out().join(name)).unwrap();
    let (page, fixed) = (read("report.html"), "lossless set is fixed (3+4)");
    assert_eq!(page.matches(fixed).count(), 1);
    assert!(header(&page).contains(fixed), "{}", header(&page));
    let junit = read("junit.xml");
    assert!(junit.contains("<property name=\"not-done\""), "{junit}");
    let again = lab.run(&format!("judge {}", lab.out().display()));
    assert_eq!(
        again
            .stdout
            .replace("\n           ", " ")
            .matches(expected)
            .count(),
        1,
        "{again:?}"
    );

    let dry = lab.run(&format!("run {arguments} --dry-run"));
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    for name in [on_3, on_4, both] {
        let step = format!("pfc.pause-single-lossless [{name}]");
        assert_eq!(dry.stdout.contains(&step), name != both, "{}", dry.stdout);
    }
    assert!(dry.stdout.contains("not done"), "{}", dry.stdout);
}

#[test]
fn root_a_case_that_needs_the_watchdog_off_is_refused_before_anything_is_measured() {
    let test = "root_a_case_that_needs_the_watchdog_off_is_refused_before_anything_is_measured";
    let Some(mut lab) = Lab::new(test) else {
        return;
    };
    let external = External::new(&mut lab);
    let arguments = format!("{} --case pfc.pause-lossy", lab_example(&external));
    let on = "--set testbed.facts.watchdog=on";
    let refused = "pfc.pause-lossy: expected a DUT whose PFC watchdog is off, found it on; turn it \
                   off on the DUT and declare facts.watchdog = \"off\", or let hooks.prepare do \
                   both";
    for run in ["run", "run --dry-run"] {
        lab.run(&format!("{run} {arguments} {on}"))
            .assert_refused(refused);
    }
    let check = format!("check {} --format json", lab_example(&external));
    for (facts, is_unfit) in [(format!(" {on}"), true), (String::new(), false)] {
        let checked = lab.run(&format!("{check}{facts}"));
        let found: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
        let refusals = found["plan"].as_array().unwrap().iter().map(|unfit| {
            let word = |key: &str| unfit[key].as_str().unwrap();
            format!("{}: {}; {}", word("case"), word("reason"), word("remedy"))
        });
        let refusals: Vec<String> = refusals.collect();
        assert_eq!(
            refusals.contains(&refused.to_owned()),
            is_unfit,
            "{refusals:?}"
        );
        assert!(!is_unfit || checked.code == Some(1), "{found:#}");
    }
    // The hook knows better than the testbed, and the DUT is put back all the same.
    let say = lab.file("say", "echo '{\"watchdog\": \"on\"}'\n");
    let put_back = lab.path("put-back");
    lab.run(
        &format!(
            "run {arguments} --set testbed.hooks.prepare=\"sh\u{a0}{say}\" --set \
         testbed.hooks.restore=\"touch\u{a0}{}\"",
            put_back.display()
        )
        .replace('\u{a0}', "\t"),
    )
    .assert_refused(refused);
    assert!(put_back.exists());
    lab.assert_nothing_is_left();
}

#[test]
fn root_a_repetition_that_the_hook_cannot_configure_is_undecided_and_the_next_one_is_done() {
    let test =
        "root_a_repetition_that_the_hook_cannot_configure_is_undecided_and_the_next_one_is_done";
    let Some(mut lab) = Lab::new(test) else {
        return;
    };
    let external = External::new(&mut lab);
    external.start_dut(&mut lab, "--lossless 4");
    let configure = lab.file(
        "configure",
        "[ $VALIDATOR_LOSSLESS = 4 ] && exit\necho one; echo no such priority >&2\nexit 9\n",
    );
    let testbed = lab.file(
        "testbed.toml",
        &external.testbed("[4]", &format!("hooks.configure = \"sh {configure}\"\n")),
    );
    let plan = lab.plan("200ms", &[("pause-single-lossless", SINGLE_3_AND_4)]);
    let ended = lab.run(&format!(
        "run --testbed {testbed} --plan {plan} --format json"
    ));
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let report = ended.report();
    let reasons = report.reasons("inconclusive");
    let reason = "the hook `configure` failed with exit status 9: no such priority";
    assert!(
        reasons.contains(&format!("\"lossless 3\": \"{reason}\"")),
        "{reasons}"
    );
    assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    assert_eq!(report.case("pause-single-lossless")["reason"], "");
    let of_4 = |(_, check, _): &(String, String, String)| check.ends_with("[lossless 4]");
    let outcomes = report.outcomes();
    let measured = outcomes.iter().filter(|outcome| of_4(outcome));
    assert!(
        measured.clone().any(|(.., verdict)| verdict == "pass"),
        "{outcomes:?}"
    );
    lab.end_kept();
    lab.assert_nothing_is_left();
}

#[test]
fn root_priorities_by_pcp() {
    let Some(lab) = Lab::new("root_priorities_by_pcp") else {
        return;
    };
    let plan = lab.plan("200ms", &[("pause-single-lossless", "lossless = [3]")]);
    let testbed = of_repository("configs/testbeds/sim.toml");
    assert_good(&lab.finish(&format!(
        "--testbed {testbed} --plan {plan} --format json --set testbed.qos.trust=pcp"
    )));
    let measured = &measured(&lab)[0];
    // Alive: frames of every priority were classified by their tag, which alone tells the paused
    // one.
    for flow in &measured.plan.flows {
        assert_eq!(flow.pcp, Some(flow.priority));
        let received = measured.received(flow.id, Phase::Baseline).unwrap();
        assert!(received.frames > 0);
    }
    let tagged = measured
        .windows
        .received
        .iter()
        .fold([0; 8], |sum: [u64; 8], window| {
            std::array::from_fn(|p| sum[p] + u64::from(window[p]))
        });
    assert!(tagged.iter().all(|frames| *frames > 0), "{tagged:?}");
    lab.assert_nothing_is_left();
}

#[test]
fn root_a_remarked_pcp_is_seen() {
    let test = "root_a_remarked_pcp_is_seen";
    let Some(lab) = Lab::new(test) else { return };
    let plan = lab.plan("200ms", &[("pause-single-lossless", "lossless = [3]")]);
    let testbed = of_repository("configs/testbeds/sim.toml");
    let set_arguments = "--set testbed.qos.trust=pcp --set testbed.dut.faults=[\"remarks\"]";
    settle::until_all_fail(test, &["single no-remark"], &[], |_| {
        (
            lab.run(&format!(
                "run --testbed {testbed} --plan {plan} --format json {set_arguments}"
            )),
            String::new(),
        )
    });
}

#[test]
fn root_ipv6() {
    let Some(lab) = Lab::new("root_ipv6") else {
        return;
    };
    let plan = lab.plan("200ms", &[("pause-single-lossless", "lossless = [3]")]);
    let addresses = "--set testbed.addresses.source_ip=2001:db8::1 \
                     --set testbed.addresses.destination_ip=2001:db8::2";
    let testbed = of_repository("configs/testbeds/sim.toml");
    assert_good(&lab.finish(&format!(
        "--testbed {testbed} --plan {plan} --format json {addresses}"
    )));
    let measured = &measured(&lab)[0];
    assert!(measured.received(0, Phase::Baseline).unwrap().frames > 0);
}

/// A veth whose other end does GRO accepts frames from XDP, and so supports the fast sender. The
/// cases test it as they test `sendmmsg`.
#[test]
fn root_live_frames_serve_the_cases() {
    let test = "root_live_frames_serve_the_cases";
    let Some(mut lab) = Lab::new(test) else {
        return;
    };
    let external = External::new(&mut lab);
    link::set_feature(
        &Namespace::named(&external.dut).unwrap(),
        "p0",
        Feature::Gro,
        true,
    )
    .unwrap();
    external.start_dut(&mut lab, "--lossless 3");
    let testbed = lab.file(
        "testbed.toml",
        &external.testbed("[3]", "ports.sender = \"live-frames\"\n"),
    );
    let cases = [
        ("pause-single-lossless", "lossless = [3]"),
        ("pause-lossy", "lossless = [3]"),
        ("global-pause", "lossless = [3]"),
    ];
    let plan = lab.plan("200ms", &cases);
    let run = || lab.finish(&format!("--testbed {testbed} --plan {plan} --format json"));
    let Some(ended) = settle::until_none_fails(test, run) else {
        return;
    };
    assert_good(&ended);
    let measured = measured(&lab);
    assert_eq!(measured.len(), 3);
    for measured in &measured {
        assert_eq!(measured.sender.method, "live frames, 1 core");
        assert_eq!(measured.sender.errors, 0);
    }
    assert!(
        measured[0].ports.tx.counts.pfc_frames > 0
            && measured[0]
                .sender
                .withheld
                .iter()
                .any(|held| held.priority.get() == 3)
    );
}
