//! Files that `cargo xtask dist` puts into the package beside the program: man pages, completions,
//! units of systemd and their settings.
//!
//! lane: computing

use std::collections::BTreeSet;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::{CommandFactory, Parser};
use validator::cli::{self, Cli};
use validator::watch::args::WatchArgs;
use validator_core::verdict::Exit;

use crate::files;

/// Each service, and the file with its settings.
const SERVICES: &[(&str, &str)] = &[
    ("validator-watch@.service", "validator-watch"),
    ("validator-agent.service", "validator-agent"),
    #[cfg(feature = "otg")]
    ("validator-otg.service", "validator-otg"),
];

/// Each command of the program by its words, such as `validator dut switch`.
fn commands(command: &clap::Command, words: &str) -> Vec<String> {
    let below = command
        .get_subcommands()
        .flat_map(|below| commands(below, &format!("{words} {}", below.get_name())));
    [words.to_owned()].into_iter().chain(below).collect()
}

fn of(path: &str) -> String {
    let all = files::all().unwrap();
    let found = all.into_iter().find(|(name, _)| name.ends_with(path));
    let (_, contents) = found.unwrap_or_else(|| panic!("there is no {path}"));
    String::from_utf8(contents).unwrap()
}

#[test]
fn each_command_has_a_page_that_names_its_options() {
    let files = files::all().unwrap();
    let pages: BTreeSet<_> = files
        .iter()
        .filter_map(|(path, _)| path.strip_prefix("usr/share/man/man1/"))
        .map(str::to_owned)
        .collect();
    let expected: BTreeSet<_> = commands(&Cli::command(), "validator")
        .iter()
        .map(|words| format!("{}.1", words.replace(' ', "-")))
        .collect();
    assert_eq!(pages, expected);
    for (words, command) in [("run", "run"), ("dut-switch", "dut"), ("watch", "watch")] {
        // Hyphens are escaped in the source of a page.
        let page = of(&format!("/validator-{words}.1")).replace('\\', "");
        let version = concat!("validator ", env!("CARGO_PKG_VERSION"));
        assert!(page.contains(version), "{page}");
        let table = Cli::command();
        let table = table.find_subcommand(command).unwrap();
        let table = table.get_subcommands().next().unwrap_or(table);
        for option in table.get_arguments().filter_map(|one| one.get_long()) {
            assert!(
                page.contains(&format!("--{option}")),
                "{words} has no --{option}"
            );
        }
    }
}

#[test]
fn completions_know_every_command_and_parse() {
    for path in ["completions/validator", "_validator", "validator.fish"] {
        let script = of(path);
        for word in ["watch", "requester", "token-file"] {
            assert!(script.contains(word), "{path} has no {word}");
        }
    }
    let mut bash = Command::new("bash")
        .arg("-n")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let script = of("completions/validator");
    bash.stdin
        .take()
        .unwrap()
        .write_all(script.as_bytes())
        .unwrap();
    assert!(bash.wait().unwrap().success());
}

fn config(path: &str) -> String {
    read(&format!("configs/{path}"))
}

/// A file of the repository.
fn read(path: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Section, key and value of each line of a unit, as systemd reads them.
fn unit(name: &str) -> Vec<(String, String, String)> {
    let (mut section, mut lines) = (String::new(), Vec::new());
    for line in config(&format!("systemd/{name}")).lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name.to_owned();
            continue;
        }
        let (key, value) = line
            .split_once('=')
            .unwrap_or_else(|| panic!("{name}: {line}"));
        lines.push((section.clone(), key.to_owned(), value.to_owned()));
    }
    lines
}

fn value(name: &str, key: &str) -> String {
    let lines = unit(name);
    let found = lines.iter().find(|(_, own, _)| own == key);
    found
        .unwrap_or_else(|| panic!("{name} has no {key}"))
        .2
        .clone()
}

/// The value of a setting in the lines that the file proposes.
fn proposed(settings: &str, key: &str) -> String {
    let text = config(&format!("debian/{settings}.default"));
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("#{key}=")));
    line.unwrap_or_else(|| panic!("{settings} proposes no {key}"))
        .to_owned()
}

#[test]
fn services_call_the_program_as_it_can_be_called() {
    for (name, settings) in SERVICES {
        let mut start = value(name, "ExecStart");
        for (_, _, setting) in unit(name).iter().filter(|line| line.1 == "Environment") {
            let (key, found) = setting.split_once('=').unwrap();
            let placed = start.replace(&format!("${{{key}}}"), found);
            if std::mem::replace(&mut start, placed.clone()) != placed {
                // The file shows what holds without it.
                assert_eq!(proposed(settings, key), found);
            }
        }
        for options in [String::new(), proposed(settings, "OPTIONS")] {
            let line = start
                .replace("%I", "eth0")
                .replace("%d", "/run/credentials")
                .replace("$OPTIONS", &options);
            assert!(line.starts_with("/usr/bin/validator "), "{line}");
            assert!(!line.contains(['$', '%']), "{line}");
            if let Err(error) = Cli::try_parse_from(line.split_whitespace()) {
                panic!("{name}: {line}: {error}");
            }
        }
        let environment: BTreeSet<_> = unit(name)
            .into_iter()
            .filter(|(_, key, _)| key == "EnvironmentFile")
            .map(|(.., value)| value.trim_end_matches("-%i").to_owned())
            .collect();
        assert_eq!(
            environment,
            BTreeSet::from([format!("-/etc/default/{settings}")])
        );
        let page = value(name, "Documentation");
        let page = page.strip_prefix("man:").unwrap().replace("(1)", ".1");
        assert!(!of(&format!("/{page}")).is_empty());
    }
}

/// Arguments of the service of counts, whose settings these replace.
fn watch_with(settings: &[(&str, &str)]) -> WatchArgs {
    let (name, _) = SERVICES[0];
    let mut start = value(name, "ExecStart")
        .replace("%I", "eth0")
        .replace("$OPTIONS", "");
    let own = unit(name)
        .into_iter()
        .filter(|line| line.1 == "Environment");
    let own: Vec<_> = own.map(|(.., setting)| setting).collect();
    let own = own.iter().map(|setting| setting.split_once('=').unwrap());
    for (key, setting) in settings.iter().copied().chain(own) {
        start = start.replace(&format!("${{{key}}}"), setting);
    }
    let cli = Cli::try_parse_from(start.split_whitespace()).unwrap();
    let cli::Command::Watch(args) = cli.command else {
        panic!("{name}: {start}")
    };
    *args
}

/// The addresses with a port that a text names.
fn addresses(text: &str) -> Vec<SocketAddr> {
    let words = text.split(|letter: char| !(letter.is_ascii_digit() || ".:".contains(letter)));
    words.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn pages_and_targets_name_addresses_at_which_the_service_of_counts_listens() {
    let own = watch_with(&[]).prometheus.unwrap();
    assert!(own.ip().is_loopback(), "{own}");
    let targets = addresses(&config("prometheus/targets/example.json"));
    assert!(!targets.is_empty());
    for target in &targets {
        assert_eq!(target.port(), own.port(), "{target}");
        let listen = target.to_string();
        let set = watch_with(&[("LISTEN", listen.as_str())]);
        assert_eq!(set.prometheus, Some(*target));
    }
    let packages = read("docs/packages.md");
    let (_, of_counts) = packages
        .split_once("\n### Counts for Prometheus\n")
        .unwrap();
    let of_counts = of_counts.split("\n### ").next().unwrap();
    for (place, text) in [
        ("docs/fleet.md", read("docs/fleet.md")),
        ("docs/packages.md", of_counts.to_owned()),
        ("docs/watch.md", read("docs/watch.md")),
        ("prometheus.yml", config("prometheus/prometheus.yml")),
        (
            "validator-watch.default",
            config("debian/validator-watch.default"),
        ),
    ] {
        let named = addresses(&text);
        assert!(!named.is_empty(), "{place} names no address");
        for address in named {
            let is_known = address == own || targets.contains(&address);
            assert!(is_known, "{place}: {address} is neither {own} nor a target");
        }
    }
}

#[test]
fn alerts_name_the_lossless_priorities_of_the_map_of_the_service_of_counts() {
    let (map, is_named) = watch_with(&[]).dscp_map();
    assert!(is_named, "the unit names its map");
    let alerts = config("prometheus/alerts.yml");
    let (_, lossless) = alerts.split_once("priority=~\"").unwrap();
    let lossless = lossless.split('"').next().unwrap();
    let lossless: Vec<u8> = lossless
        .split('|')
        .map(|priority| priority.parse().unwrap())
        .collect();
    let of_dscp = |dscp: &usize| lossless.contains(&map.map[*dscp].get());
    let dscps = (0..map.map.len()).filter(of_dscp);
    let dscps: Vec<_> = dscps.map(|dscp| dscp.to_string()).collect();
    let lossless: Vec<_> = lossless.iter().map(u8::to_string).collect();
    let page = read("docs/fleet.md");
    let sentence = format!(
        "The lossless priorities are {}, as SONiC has them: by its map, DSCP {}.",
        lossless.join(" and "),
        dscps.join(" and ")
    );
    assert!(page.replace('\n', " ").contains(&sentence), "{sentence}");
    let setting = format!("DSCP_MAP={}", map.name);
    let recipe = config("prometheus/prometheus.yml");
    for text in [&page, &recipe] {
        assert!(text.contains(&setting), "{setting} is not in:\n{text}");
    }
    let label = format!("dscp_map=\"{}\",dscp_map_source=\"option\"", map.name);
    assert!(config("prometheus/tests.yml").contains(&label), "{label}");
}

#[test]
fn no_service_is_started_again_for_ever_or_after_a_usage_error() {
    let usage = (Exit::Usage as u8).to_string();
    for (name, _) in SERVICES {
        let lines = unit(name);
        for (section, key, expected) in [
            ("Unit", "StartLimitBurst", "5"),
            ("Unit", "StartLimitIntervalSec", "300"),
            ("Service", "Restart", "on-failure"),
            ("Service", "RestartSec", "5"),
            ("Service", "RestartPreventExitStatus", usage.as_str()),
        ] {
            // systemd passes over a key in another section.
            let line = (section.to_owned(), key.to_owned(), expected.to_owned());
            assert!(
                lines.contains(&line),
                "{name}: {line:?} is not in {lines:?}"
            );
        }
    }
    let page = read("docs/packages.md").replace('\n', " ");
    assert!(page.contains(
        "A service that fails is started again, five times within five minutes at most, and not \
         after a usage error."
    ));
}

#[test]
fn services_have_few_rights_and_the_agent_a_credential() {
    for (name, _) in SERVICES {
        for (key, expected) in [
            ("DynamicUser", "yes"),
            ("NoNewPrivileges", "yes"),
            ("ProtectSystem", "strict"),
            ("MemoryDenyWriteExecute", "yes"),
            ("SystemCallArchitectures", "native"),
        ] {
            assert_eq!(value(name, key), expected, "{name}: {key}");
        }
        let (ambient, bounds) = (value(name, "AmbientCapabilities"), "CapabilityBoundingSet");
        assert_eq!(ambient, value(name, bounds), "{name}");
    }
    let agent = SERVICES[1].0;
    assert_eq!(value(agent, "CapabilityBoundingSet"), "");
    let credential = value(agent, "LoadCredential");
    let (id, file) = credential.split_once(':').unwrap();
    assert_eq!(file, value(agent, "ConditionPathExists"));
    let line = value(agent, "ExecStart");
    assert!(line.contains(&format!("--token-file %d/{id} ")), "{line}");
}

#[test]
fn units_say_nothing_twice_that_counts_once() {
    const LISTS: [&str; 5] = [
        "After",
        "EnvironmentFile",
        "SystemCallFilter",
        "DeviceAllow",
        "Environment",
    ];
    for (name, _) in SERVICES {
        let lines = unit(name);
        let sections: BTreeSet<_> = lines.iter().map(|line| line.0.as_str()).collect();
        assert_eq!(sections, BTreeSet::from(["Unit", "Service", "Install"]));
        let mut seen = BTreeSet::new();
        for (_, key, _) in lines
            .iter()
            .filter(|line| !LISTS.contains(&line.1.as_str()))
        {
            assert!(seen.insert(key), "{name}: {key} comes twice");
        }
    }
}
