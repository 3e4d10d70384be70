//! Inputs of somebody else: what the fuzz targets of `fuzz/` found or began with is survived.

use std::fs;
use std::path::Path;

#[path = "exercise/agent.rs"]
mod agent;
#[path = "exercise/evidence.rs"]
mod evidence;
#[path = "exercise/frames.rs"]
mod frames;
#[path = "exercise/hooks.rs"]
mod hooks;

/// Calls `exercise` with each file of a folder, beginning at this crate's.
fn each_seed(folder: &str, exercise: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
    assert!(!files.is_empty());
    for file in files {
        println!("{}", file.path().display());
        exercise(&fs::read(file.path()).unwrap());
    }
}

#[test]
fn messages_of_the_agent() {
    each_seed("tests/seeds/agent", agent::exercise);
}

#[test]
fn evidence_of_anybody() {
    each_seed("tests/seeds/evidence", |octets| {
        assert!(evidence::exercise(octets), "no report has it");
    });
}

#[test]
fn counters_of_anybody() {
    each_seed("tests/seeds/hooks", |octets| {
        assert!(hooks::exercise(octets) > 0, "no counter changed");
    });
}

#[test]
fn frames_of_anybody() {
    each_seed("../../pfc-ebpf/tests/seeds/frames", frames::exercise);
}
