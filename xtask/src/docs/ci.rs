//! Tests of the files for CI servers in `docs/ci`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

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
