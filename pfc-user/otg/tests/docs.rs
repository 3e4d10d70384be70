//! Examples in docs/otg.md are what the lab runs and the program reads.
//!
//! lane: computing

use std::fs;

#[test]
fn the_files_in_the_documentation_are_those_of_the_repository() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |path: &str| {
        fs::read_to_string(format!("{root}/{path}"))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let docs = read("docs/otg.md");
    for (language, path) in [
        ("python", "pfc-user/otg/tests/python/storm.py"),
        ("toml", "configs/otg/two-veths.toml"),
    ] {
        let block = format!("```{language}\n{}```\n", read(path));
        assert!(docs.contains(&block), "{path} differs");
    }
}
