//! Configurations, and the plans or the errors that are made of them.
//!
//! lane: computing

mod configs;
#[path = "../exercise/mod.rs"]
mod exercise;
mod mistakes;
#[path = "../server/places.rs"]
mod places;
mod translation;

use std::fs;
use std::path::Path;

/// Inputs that the fuzz target `otg` found or began with.
#[test]
fn requests_of_the_fuzzer_are_survived() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds/otg");
    let files: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
    assert!(!files.is_empty());
    for file in files {
        println!("{}", file.path().display());
        exercise::exercise(&fs::read(file.path()).unwrap());
    }
}
