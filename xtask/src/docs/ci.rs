//! Tests of the files for CI servers in `docs/ci`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use saphyr::{LoadableYamlNode, Yaml};

const FILES: [&str; 2] = ["github.yml", "gitlab.yml"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join("docs/ci").join(name)).unwrap()
}

#[test]
fn they_call_commands_that_there_are_and_hand_out_the_results() {
    for name in FILES {
        let text = read(name);
        let commands: Vec<_> = text
            .lines()
            .filter_map(|line| Some(line.split_once("cargo xtask ")?.1))
            .collect();
        assert_eq!(commands, ["setup", "build-ebpf"], "{name}");
        for command in commands {
            crate::Arguments::try_parse_from(["xtask", command]).unwrap();
        }
        for part in [
            "--testbed configs/testbeds/sim.toml",
            "--plan smoke",
            "--out results",
        ] {
            assert!(text.contains(part), "{name}: {part}");
        }
        assert!(text.contains("results/junit.xml"), "{name}");
        for path in ["configs/testbeds/sim.toml", "xtask/src/toolchain.rs"] {
            assert!(
                text.contains(path) && root().join(path).is_file(),
                "{name}: {path}"
            );
        }
        // As a newcomer installs them.
        let page = fs::read_to_string(root().join("docs/getting-started.md")).unwrap();
        for tools in ["apt-get update", "ca-certificates cargo-web git"] {
            assert!(
                text.contains(tools) && page.contains(tools),
                "{name}: {tools}"
            );
        }
    }
}

/// Paths that GitHub is to upload.
fn uploaded(workflow: &str) -> BTreeSet<&str> {
    let paths = workflow.lines().map(str::trim);
    paths.filter(|line| line.starts_with("results/")).collect()
}

#[test]
fn all_that_a_run_writes_is_uploaded() {
    let source = fs::read_to_string(root().join("pfc-user/core/src/report.rs")).unwrap();
    let written = ["EVIDENCE", "REPORT", "JUNIT", "PAGE", "CAPTURES"].map(|name| {
        let start = format!("pub const {name}: &str = \"");
        let value = source.lines().find_map(|line| line.strip_prefix(&start));
        let value = value.and_then(|value| value.strip_suffix("\";"));
        format!("results/{}", value.unwrap_or_else(|| panic!("{name}")))
    });
    let written: BTreeSet<_> = written.iter().map(String::as_str).collect();
    let github = read("github.yml");
    assert_eq!(uploaded(&github), written);
    let without = github.replace("            results/report.html\n", "");
    assert_ne!(uploaded(&without), written);
    // GitLab takes the whole folder.
    assert!(read("gitlab.yml").contains("    paths:\n      - results\n"));
}

#[test]
fn actions_are_pinned_and_nothing_is_secret() {
    let mut actions = 0;
    for name in FILES {
        let text = read(name);
        assert!(!text.to_lowercase().contains("secret"), "{name}");
        for line in text.lines() {
            let Some((_, action)) = line.split_once("uses: ") else {
                continue;
            };
            actions += 1;
            let (_, version) = action.split_once('@').unwrap();
            let (commit, release) = version.split_once(" # v").unwrap();
            let is_hex = |letter: char| matches!(letter, '0'..='9' | 'a'..='f');
            assert!(commit.len() == 40 && commit.chars().all(is_hex), "{line}");
            assert_eq!(release.split('.').count(), 3, "{line}");
        }
    }
    assert_eq!(actions, 3);
}

/// Keys of a workflow, a job, its container and a step that GitHub knows and we use.
const WORKFLOW: &[&str] = &["name", "on", "permissions", "jobs"];
const JOB: &[&str] = &["runs-on", "timeout-minutes", "container", "env", "steps"];
const CONTAINER: &[&str] = &["image", "options"];
const STEP: &[&str] = &["name", "if", "shell", "uses", "with", "run"];
/// Keys of a job that GitLab knows and we use.
const GITLAB_JOB: &[&str] = &[
    "image",
    "timeout",
    "variables",
    "cache",
    "before_script",
    "script",
    "artifacts",
];

fn parsed(name: &str) -> Yaml<'static> {
    let text: &'static str = read(name).leak();
    let mut documents = Yaml::load_from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(documents.len(), 1, "{name}");
    documents.remove(0)
}

/// The entries of a mapping, whose keys have to be among `known`.
fn entries<'a>(node: &'a Yaml<'static>, known: &[&str]) -> Vec<(&'a str, &'a Yaml<'static>)> {
    let entries = named(node);
    for (key, _) in &entries {
        assert!(known.contains(key), "{key}");
    }
    entries
}

fn named<'a>(node: &'a Yaml<'static>) -> Vec<(&'a str, &'a Yaml<'static>)> {
    let mapping = node.as_mapping().unwrap_or_else(|| panic!("{node:?}"));
    let entries = mapping.iter();
    entries
        .map(|(key, value)| (key.as_str().unwrap(), value))
        .collect()
}

#[test]
fn githubs_file_is_yaml_with_jobs_of_steps_that_use_or_run_something() {
    let workflow = parsed("github.yml");
    let workflow = entries(&workflow, WORKFLOW);
    assert_eq!(workflow.len(), WORKFLOW.len());
    let (_, jobs) = workflow.iter().find(|(key, _)| *key == "jobs").unwrap();
    for (_, job) in named(jobs) {
        let job = entries(job, JOB);
        let of = |name| job.iter().find(|(key, _)| *key == name).unwrap().1;
        assert!(of("runs-on").as_str().is_some());
        entries(of("container"), CONTAINER);
        for step in of("steps").as_sequence().unwrap() {
            let step = entries(step, STEP);
            let has = |name| step.iter().any(|(key, _)| *key == name);
            assert!(has("uses") != has("run"), "{step:?}");
            assert!(has("uses") || !has("with"), "{step:?}");
            assert!(has("run") || !has("shell"), "{step:?}");
        }
    }
}

#[test]
fn gitlabs_file_is_yaml_with_jobs_of_commands_that_report_junit() {
    let file = parsed("gitlab.yml");
    for (_, job) in named(&file) {
        let job = entries(job, GITLAB_JOB);
        let of = |name| job.iter().find(|(key, _)| *key == name).unwrap().1;
        for list in ["before_script", "script"] {
            let commands = of(list).as_sequence().unwrap();
            let are_texts = commands.iter().all(|command| command.as_str().is_some());
            assert!(!commands.is_empty() && are_texts, "{list}");
        }
        let artifacts = entries(of("artifacts"), &["when", "paths", "reports"]);
        let (_, reports) = artifacts.iter().find(|(key, _)| *key == "reports").unwrap();
        let [("junit", file)] = named(reports)[..] else {
            panic!("{reports:?}");
        };
        assert_eq!(file.as_str(), Some("results/junit.xml"));
    }
}
