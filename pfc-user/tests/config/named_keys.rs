//! Each key that a message, a remedy or a page of the documentation names is one that can be set.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use validator::config::{PLAN, TESTBED};
use validator_core::keys::Table;

/// Each key with its table before it. A table may stand in several places.
fn known() -> Vec<String> {
    let of = |table: &Table| {
        let keys = table.keys.iter().map(|key| key.path.rsplit('.').next());
        let names = table
            .name
            .split(", ")
            .map(|name| name.trim_matches(['[', ']']));
        let paths =
            names.flat_map(|name| keys.clone().flatten().map(move |key| in_table(name, key)));
        paths.collect::<Vec<_>>()
    };
    TESTBED.iter().chain(PLAN).flat_map(of).collect()
}

/// A key with its table before it; those above all tables have none.
fn in_table(table: &str, key: &str) -> String {
    match table {
        "" => key.to_owned(),
        table => format!("{table}.{key}"),
    }
}

/// Sources and pages below a folder of the repository.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

/// The strings of a source before its tests, each with the backslash of a continued line taken out.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap();
    let mut found = Vec::new();
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => {
                chars.by_ref().find(|c| *c == '\n');
            }
            // A character, or a lifetime.
            '\'' => {
                if chars.next() == Some('\\') {
                    chars.next();
                }
                chars.next_if_eq(&'\'');
            }
            '"' => {
                let mut text = String::new();
                while let Some(c) = chars.next_if(|c| *c != '"') {
                    match c {
                        '\\' => match chars.next() {
                            Some('\n') => while chars.next_if(|c| *c == ' ').is_some() {},
                            escaped => text.extend(escaped),
                        },
                        c => text.push(c),
                    }
                }
                chars.next();
                found.push(text);
            }
            _ => {}
        }
    }
    found
}

/// The keys that a text names: `TABLE.KEY`, neither within a longer path nor the id of a case.
fn named(text: &str) -> Vec<String> {
    let known = known();
    let tables: BTreeSet<&str> = known
        .iter()
        .filter_map(|key| Some(key.rsplit_once('.')?.0))
        .collect();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_path = |c: char| is_word(c) || ".-/[]*{}<>".contains(c);
    let paths = text.split(|c| !is_path(c));
    let keys = paths.filter_map(|path| {
        let path = path.trim_end_matches('.');
        let path = path
            .strip_prefix("testbed.")
            .or(path.strip_prefix("plan."))
            .unwrap_or(path);
        let (table, key) = path.rsplit_once('.')?;
        let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        (tables.contains(table) && is_key).then(|| path.to_owned())
    });
    keys.collect()
}

/// The keys that a file has, be they commented out or not.
fn set(file: &str) -> Vec<String> {
    let mut table = "";
    let keys = file.lines().filter_map(|line| {
        if line.starts_with('[') {
            table = match line.trim_matches(['[', ']']) {
                // A name of the user's.
                port if port.starts_with("ports.") => "ports.NAME",
                table => table,
            };
            return None;
        }
        let (key, _) = line.strip_prefix("# ").unwrap_or(line).split_once(" = ")?;
        let is_key = key
            .chars()
            .all(|c| c.is_ascii_lowercase() || "_.".contains(c));
        is_key.then(|| in_table(table, key))
    });
    keys.collect()
}

#[test]
fn keys_are_found_in_literals_and_sentences() {
    let source = "let c = '\"'; // \"mad.lid\"\nsay(\"Set limits.load, or \\\n    rc.apm.\", \
                  \"mad.c14-016-get\");";
    let found: Vec<_> = literals(source)
        .iter()
        .flat_map(|text| named(text))
        .collect();
    assert_eq!(found, ["limits.load", "rc.apm"]);
    assert_eq!(named("see `--set testbed.limits.load=1`"), ["limits.load"]);
    assert_eq!(named("evidence.limits.load and mad.h"), ["mad.h"]);
    assert_eq!(named("longer than storm.interval: 5us"), ["storm.interval"]);
    let parts = ["ports.tx.interface", "rc.port.none"];
    assert_eq!(named("set ports.tx.interface or rc.port.none"), parts);
    assert_eq!(
        named("e.ports.tx.interface and ports.by_name.none"),
        [""; 0]
    );
    let file = "name = \"t\"\n[[case]]\n# A text = of words.\n# id = 1\nstorm.quanta = 5\n";
    assert_eq!(set(file), ["name", "case.id", "case.storm.quanta"]);
    assert_eq!(set("[ports.tx2]\nrole = \"tx\"\n"), ["ports.NAME.role"]);
}

/// The strings of the source in that file.
fn texts(file: &Path) -> Vec<String> {
    literals(&fs::read_to_string(file).unwrap())
}

#[test]
fn each_key_that_a_text_names_can_be_set() {
    let (known, root) = (known(), Path::new(env!("CARGO_MANIFEST_DIR")));
    let mut found = Vec::new();
    for folder in ["src", "core/src"] {
        for file in files(&root.join(folder), "rs") {
            // Paths of evidence are named there, and the keys of another file.
            let skipped = ["core/src/evidence/", "src/config/otg.rs"];
            let name = file.to_string_lossy();
            if !skipped.iter().any(|part| name.contains(part)) {
                let keys = texts(&file).iter().flat_map(|text| named(text)).collect();
                found.push((file, keys));
            }
        }
    }
    let mut pages = files(&root.join("../docs"), "md");
    // Scripts for another API, whose objects have such names.
    pages.retain(|file| !file.ends_with("otg.md"));
    let others = [
        "README.md",
        "CONTRIBUTING.md",
        "configs/hooks/sonic/sonic.py",
    ];
    pages.extend(others.map(|name| root.join("..").join(name)));
    for file in pages {
        let text = fs::read_to_string(&file).unwrap();
        // The example of a key that is refused.
        let keys = named(&text.replace("ports.speed: unknown", ""));
        found.push((file, keys));
    }
    for folder in ["plans", "testbeds"] {
        for file in files(&root.join("../configs").join(folder), "toml") {
            let text = fs::read_to_string(&file).unwrap();
            found.push((file, [named(&text), set(&text)].concat()));
        }
    }
    for (file, keys) in &found {
        for key in keys {
            assert!(known.contains(key), "{}: {key}", file.display());
        }
    }
    let number: usize = found.iter().map(|(_, keys)| keys.len()).sum();
    assert!(number > 200, "{number} keys were found");
}

/// The testbed of `validator otg` has tables of its own, `[ports.NAME]`.
#[cfg(feature = "otg")]
#[test]
fn each_key_that_a_text_names_can_be_set_in_the_testbed_of_otg() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("otg.toml");
    fs::write(&wrong, "[ports.a]\nzzz = 1\n").unwrap();
    let refusal = validator::config::otg::load(&wrong).unwrap_err();
    let refusal = refusal.to_string();
    let (_, expected) = refusal.split_once("expected one of ").unwrap();
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../docs/otg.md")).unwrap();
    let mut sources = vec![root.join("src/engine.rs")];
    for folder in ["otg/src", "src/otg", "src/engine"] {
        sources.extend(files(&root.join(folder), "rs"));
    }
    let messages: Vec<String> = sources.iter().flat_map(|file| texts(file)).collect();
    let mut found = Vec::new();
    // Both messages on a missing speed, and the page.
    for (texts, least) in [(&messages[..], 2), (std::slice::from_ref(&page), 1)] {
        let keys: Vec<String> = texts.iter().flat_map(|text| in_the_testbed(text)).collect();
        assert!(keys.len() >= least, "{keys:?}");
        found.extend(keys);
    }
    let example = root.join("../configs/otg/two-veths.toml");
    let example = fs::read_to_string(example).unwrap();
    let blocks = page.split("```toml").skip(1);
    for text in blocks
        .map(|block| block.split("```").next().unwrap())
        .chain([&*example])
    {
        let keys = set(text);
        assert!(!keys.is_empty());
        let of_port =
            |key: &String| Some(key.strip_prefix("ports.")?.split_once('.')?.1.to_owned());
        found.extend(keys.iter().map(|key| of_port(key).expect("a port's key")));
    }
    for key in found {
        assert!(known.contains(&key.as_str()), "{key}");
    }
}

/// The keys that a text says to be in the testbed file.
#[cfg(feature = "otg")]
fn in_the_testbed(text: &str) -> Vec<String> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let places = words.match_indices(" in the testbed file");
    let keys = places.filter_map(|(at, _)| {
        let before = words[..at].trim_end_matches(" of the port");
        let (_, key) = before.strip_suffix('`')?.rsplit_once('`')?;
        Some(key.to_owned())
    });
    keys.collect()
}
