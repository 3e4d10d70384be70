//! Each key that a message, a remedy or a page of the documentation names is one that can be set.

use std::fs;
use std::path::{Path, PathBuf};

use validator::config::{PLAN, TESTBED};
use validator_core::keys::Table;

/// Tables whose keys are named with the table before them.
fn tables() -> impl Iterator<Item = &'static str> {
    let all = TESTBED.iter().chain(PLAN);
    // The keys above all tables have no name before them.
    all.map(|table| table.name).filter(|name| !name.is_empty())
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
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_path = |c: char| is_word(c) || ".-/[]*{}<>".contains(c);
    let paths = text.split(|c| !is_path(c));
    let keys = paths.filter_map(|path| {
        let path = path.trim_end_matches('.');
        let path = path
            .strip_prefix("testbed.")
            .or(path.strip_prefix("plan."))
            .unwrap_or(path);
        let (table, key) = path.split_once('.')?;
        let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        (tables().any(|known| known == table) && is_key).then(|| path.to_owned())
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
}

#[test]
fn each_key_that_a_text_names_can_be_set() {
    let of = |tables: &'static [Table]| tables.iter().flat_map(|table| table.keys);
    let known: Vec<&str> = of(TESTBED).chain(of(PLAN)).map(|key| key.path).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    for folder in ["src", "core/src"] {
        for file in files(&root.join(folder), "rs") {
            // Paths of evidence are named there, and the keys of another file.
            let skipped = ["core/src/evidence/", "src/config/otg.rs"];
            if !skipped
                .iter()
                .any(|part| file.to_string_lossy().contains(part))
            {
                let source = fs::read_to_string(&file).unwrap();
                texts.extend(
                    literals(&source)
                        .into_iter()
                        .map(|text| (file.clone(), text)),
                );
            }
        }
    }
    for file in files(&root.join("../docs"), "md") {
        // Scripts for another API, whose objects have such names.
        if !file.ends_with("otg.md") {
            let text = fs::read_to_string(&file).unwrap();
            // The example of a key that is refused.
            texts.push((file, text.replace("ports.speed: unknown", "")));
        }
    }
    for name in [
        "README.md",
        "CONTRIBUTING.md",
        "configs/hooks/sonic/sonic.py",
    ] {
        let file = root.join("..").join(name);
        let text = fs::read_to_string(&file).unwrap();
        texts.push((file, text));
    }
    let mut number = 0;
    for (file, text) in texts {
        for key in named(&text) {
            number += 1;
            assert!(
                known.contains(&key.as_str()),
                "{}: {key} in {text}",
                file.display()
            );
        }
    }
    assert!(number > 100, "{number} keys were found");
}
