//! The page on an external DUT from nothing: its commands, in their order.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use crate::run::lab::{Lab, PROGRAM, ip, of_repository};
use crate::run::outcome::{Outcome, Report};
use crate::run::settle;

/// The text of the blocks of code in that language, one after the other.
fn blocks(page: &str, language: &str) -> String {
    let begin = format!("\n```{language}\n");
    let parts = page.split(&begin).skip(1);
    let code = parts.map(|part| part.split("\n```\n").next().unwrap());
    code.collect::<Vec<_>>().join("\n")
}

struct Page {
    lab: Lab,
    tester: String,
    text: String,
}

impl Page {
    fn new(test: &str) -> Option<Self> {
        let mut lab = Lab::new(test)?;
        let page = fs::read_to_string(of_repository("docs/external-dut.md")).unwrap();
        // The lab removes them where a command of the page fails.
        let [tester, dut] = ["tester", "dut"].map(|name| lab.namespace(name));
        let text = page
            .replace("rehearsal-tester", &tester)
            .replace("rehearsal-dut", &dut);
        let bin = lab.path("bin");
        fs::create_dir(&bin).unwrap();
        symlink(PROGRAM, bin.join("validator")).unwrap();
        symlink(
            of_repository("pfc-user/tests/sonic/bin/ssh"),
            bin.join("ssh"),
        )
        .unwrap();
        symlink(of_repository("configs"), lab.path("configs")).unwrap();
        Some(Self { lab, tester, text })
    }

    /// Runs these commands, in one shell up to each run with results. Such a run is repeated where
    /// the machine stood still; `None` where it always did.
    fn follow(&self, test: &str, commands: &str) -> Option<()> {
        let mut before = String::new();
        for line in commands.lines() {
            let Some((_, folder)) = line.split_once(" --out ") else {
                before += &format!("{line}\n");
                continue;
            };
            self.run(&std::mem::take(&mut before));
            let ended = settle::until_none_fails(test, || {
                self.run(line);
                let report = Report::read(&self.lab.path(folder)).0;
                Outcome {
                    code: report["exit_code"].as_i64().map(|code| code as i32),
                    stdout: report.to_string(),
                    stderr: String::new(),
                }
            })?;
            let report = ended.report();
            let errors = report.reasons("error");
            assert!(report.checks("error").is_empty(), "{errors}");
            assert!(report.checks("pass").contains("single no-remark"));
        }
        self.run(&before);
        Some(())
    }

    /// Runs these commands in one shell, which ends with the first that fails. What a run found is
    /// looked at afterwards.
    fn run(&self, commands: &str) -> Output {
        let undecided = "validator() { command validator \"$@\" || case $1$? in run1 | run3) ;; \
                         *) return 1 ;; esac; }\n";
        let script = self
            .lab
            .file("script", &format!("set -eu\n{undecided}{commands}\n"));
        let path = format!(
            "{}:{}",
            self.lab.path("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let mut shell = self.lab.command("sh", &script);
        let output = shell
            .current_dir(self.lab.path(""))
            .env("PATH", path)
            .env("STAND_IN", self.lab.path("switch.json"))
            .output()
            .unwrap();
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        assert!(
            output.status.success(),
            "{}\n{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        output
    }
}

#[test]
fn root_the_rehearsal_can_be_followed() {
    let test = "root_the_rehearsal_can_be_followed";
    let Some(page) = Page::new(test) else {
        return;
    };
    let commands = blocks(&page.text, "sh");
    // They are made by the lab, to be removed however this ends.
    let made: Vec<&str> = commands
        .lines()
        .filter(|line| !line.starts_with("ip netns add"))
        .collect();
    if page.follow(test, &made.join("\n")).is_none() {
        return;
    }
    let report = |folder: &str| Report::read(&page.lab.path(folder)).0;
    let fixed = report("as-it-is")["fixed_set"].clone();
    assert_eq!(fixed["lossless"], serde_json::json!([3, 4]));
    assert!(report("configured").get("fixed_set").is_none());
    // The page removes the namespaces; the lab is to find its own.
    for namespace in page
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("ip netns add "))
    {
        ip(&format!("netns add {namespace}"));
    }
    page.lab.assert_nothing_is_left();
}

#[test]
fn root_the_way_from_the_console_to_a_report_can_be_followed() {
    let test = "root_the_way_from_the_console_to_a_report_can_be_followed";
    let Some(page) = Page::new(test) else {
        return;
    };
    let stock = serde_json::json!({
        "release": "202411",
        "sudo": true,
        "watchdog": { "Ethernet0": ["drop", "400", "400", "disable"] },
        "lossless": { "Ethernet0": "3,4", "Ethernet4": "3,4" },
        "buffers": { "0": "ingress_lossy_profile", "3-4": "pg_lossless_100000_5m_profile" },
    });
    fs::write(page.lab.path("switch.json"), stock.to_string()).unwrap();
    // Ports and switch are the rehearsal's.
    let commands = blocks(&page.text, "sh");
    let (network, _) = commands.split_once("cat > rehearsal.toml").unwrap();
    let network: Vec<&str> = network
        .lines()
        .filter(|line| !line.starts_with("ip netns add"))
        .collect();
    let port = |name: &str| {
        format!(
            "{{ interface = \"{name}\", namespace = \"{}\" }}",
            page.tester
        )
    };
    let console = blocks(&page.text, "console")
        .replace("{ interface = \"eth1\" }", &port("tx"))
        .replace(
            "{ interface = \"eth2\" }",
            &format!("{}\nline_rate = \"1G\"", port("rx")),
        )
        .replace("\"sonic\"", "\"dscp-mod-8\"")
        .replace("[limits]", "[facts]\ndirect = true\n[limits]");
    let commands = format!("{}\n{console}\nkill $(cat switch.pid)", network.join("\n"));
    if page.follow(test, &commands).is_none() {
        return;
    }
    let report = Report::read(&page.lab.path("results"));
    let hooks = &report.case("global-pause")["hooks"][0]["counters"];
    assert_eq!(hooks[0]["counter"], "Ethernet0 pfc rx PFC3");
    let state = fs::read_to_string(page.lab.path("switch.json")).unwrap();
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    assert_eq!(
        (&state["watchdog"], &state["lossless"]),
        (&stock["watchdog"], &stock["lossless"])
    );
    let log = state["log"].as_array().unwrap();
    assert!(
        log.contains(&"sudo -n pfcwd stop Ethernet0".into()),
        "{log:?}"
    );
    page.lab.assert_nothing_is_left();
}

/// Links of the page lead to files of the repository.
#[test]
fn every_file_that_the_page_names_is_there() {
    let page = fs::read_to_string(of_repository("docs/external-dut.md")).unwrap();
    let words = page.split(|c: char| c.is_whitespace() || "`\"".contains(c));
    let named: Vec<&str> = words.filter(|word| word.starts_with("configs/")).collect();
    assert!(named.len() > 5, "{named:?}");
    for name in named {
        assert!(
            Path::new(&of_repository(name.trim_end_matches(['.', ':', ',']))).exists(),
            "{name}"
        );
    }
}
