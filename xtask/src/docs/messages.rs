//! Checks that each message quoted on the page on troubleshooting exists in the code.

use std::path::Path;

use anyhow::Result;

use crate::files;

const PAGE: &str = "docs/troubleshooting.md";
/// Folders of sources below the workspace.
const SOURCES: [&str; 3] = ["pfc-user", "ib-mad", "xtask/src"];
/// Stands for a value in a quoted message.
const VALUE: char = '…';

/// One line for each quoted message of which no source file has all parts.
pub fn unknown(root: &Path) -> Result<Vec<String>> {
    let page = files::read(&root.join(PAGE))?;
    let mut sources = Vec::new();
    for folder in SOURCES {
        read(&root.join(folder), &mut sources)?;
    }
    let is_known = |message: &&str| sources.iter().any(|source| has(source, message));
    Ok(quoted(&page)
        .filter(|message| !is_known(message))
        .map(|message| format!("{PAGE}: no source has the message `{message}`"))
        .collect())
}

/// The messages in headings.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'))
}

/// True if the source contains the whole message except its values.
fn has(source: &str, message: &str) -> bool {
    message
        .split(VALUE)
        .all(|part| source.contains(part.trim()))
}

/// Adds the text of each Rust file below `folder`, with its strings as the compiler reads them.
fn read(folder: &Path, sources: &mut Vec<String>) -> Result<()> {
    for path in files::entries(folder)? {
        // Tests are left out, as they quote messages too.
        if path.is_dir() && !path.ends_with("tests") {
            read(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(as_read(&files::read(&path)?));
        }
    }
    Ok(())
}

/// Strings as the compiler reads them: continued lines joined, quotation marks plain.
fn as_read(source: &str) -> String {
    let mut parts = source.split("\\\n");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.trim_start());
    }
    text.replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quoted_message_is_one_of_the_code() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let wrong = unknown(root).unwrap();
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    #[test]
    fn values_are_left_out_and_continued_lines_joined() {
        let source = as_read("format!(\"expected \\\"on\\\", \\\n    found {x}: turn it on\")");
        assert!(has(&source, "expected \"on\", found …: turn it on"));
        assert!(has(&source, "…: turn it on"));
        assert!(!has(&source, "expected \"on\", found …: turn it off"));
        let page = "### `one … two`\ntext\n### three\n";
        assert_eq!(quoted(page).collect::<Vec<_>>(), ["one … two"]);
    }
}
