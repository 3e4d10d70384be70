//! Checks of the Markdown files: each link leads somewhere, and each page of the book is in its
//! summary.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::files;

/// The book's folder. Its pages are published apart from the repository.
const BOOK: &str = "docs";
const SUMMARY: &str = "docs/SUMMARY.md";

/// The links of a file, and the anchors of its headings.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

/// One line for each link that leads nowhere and each page that the summary lacks.
pub fn broken(root: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for folder in [root.to_owned(), root.join("ib-mad")] {
        read(root, &folder, false, &mut pages)?;
    }
    read(root, &root.join(BOOK), true, &mut pages)?;
    let mut wrong = Vec::new();
    for (file, page) in &pages {
        let links = page.links.iter().filter(|link| !link.contains("://"));
        for link in links {
            if let Some(why) = why_broken(root, &pages, file, link) {
                wrong.push(format!("{}: the link {link}: {why}", file.display()));
            }
        }
    }
    wrong.extend(forgotten(&pages));
    Ok(wrong)
}

/// Reads the Markdown files of `folder` into `pages`, by their paths below `root`.
fn read(root: &Path, folder: &Path, deep: bool, pages: &mut BTreeMap<PathBuf, Page>) -> Result<()> {
    for path in files::entries(folder)? {
        if deep && path.is_dir() {
            read(root, &path, deep, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
            pages.insert(name, page(&files::read(&path)?));
        }
    }
    Ok(())
}

fn page(text: &str) -> Page {
    let mut page = Page::default();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                page.anchors
                    .extend(heading.take().map(|text| anchor(&text)));
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    page
}

/// The anchor of a heading, as mdBook and GitHub make it.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter_map(|char| match char {
            ' ' => Some('-'),
            '_' | '-' => Some(char),
            _ => char.is_alphanumeric().then(|| char.to_ascii_lowercase()),
        })
        .collect()
}

fn why_broken(
    root: &Path,
    pages: &BTreeMap<PathBuf, Page>,
    from: &Path,
    link: &str,
) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        from.to_owned()
    } else {
        plain(&from.parent().unwrap_or(Path::new("")).join(path))
    };
    if from.starts_with(BOOK) && !target.starts_with(BOOK) {
        return Some(format!(
            "it leads out of {BOOK}, where the book does not follow"
        ));
    }
    if !root.join(&target).exists() {
        return Some(format!("there is no {}", target.display()));
    }
    let known = |page: &Page| anchor.is_empty() || page.anchors.contains(anchor);
    if !pages.get(&target).is_none_or(known) {
        return Some(format!("{} has no such heading", target.display()));
    }
    None
}

/// `path` without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Pages of the book that its summary does not name.
fn forgotten(pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
    let listed: BTreeSet<PathBuf> = pages
        .get(Path::new(SUMMARY))
        .into_iter()
        .flat_map(|summary| &summary.links)
        .map(|link| plain(&Path::new(BOOK).join(link)))
        .collect();
    pages
        .keys()
        .filter(|file| file.starts_with(BOOK) && **file != Path::new(SUMMARY))
        .filter(|file| !listed.contains(*file))
        .map(|file| format!("{} is not in {SUMMARY}", file.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_link_of_the_documentation_leads_somewhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let wrong = broken(root).unwrap();
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    #[test]
    fn broken_links_and_forgotten_pages_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            (
                "README.md",
                "# A `b` c!\n[ok](#a-b-c) [page](docs/x.md#y) [gone](docs/z.md)\n\n\
                 ![a picture](docs/no.png)\n",
            ),
            ("ib-mad/README.md", "[up](../README.md) `[code](nowhere)`\n"),
            ("docs/SUMMARY.md", "- [x](x.md)\n- [gone](gone.md)\n"),
            (
                "docs/x.md",
                "# Y\n\n[out](../README.md) [no](x.md#z) [web](https://example.org)\n",
            ),
            ("docs/deep/lost.md", "```\n[code](nowhere)\n```\n"),
        ];
        for (file, text) in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let expected = [
            "README.md: the link docs/z.md: there is no docs/z.md",
            "README.md: the link docs/no.png: there is no docs/no.png",
            "docs/SUMMARY.md: the link gone.md: there is no docs/gone.md",
            "docs/x.md: the link ../README.md: it leads out of docs, where the book \
             does not follow",
            "docs/x.md: the link x.md#z: docs/x.md has no such heading",
            "docs/deep/lost.md is not in docs/SUMMARY.md",
        ];
        assert_eq!(broken(folder.path()).unwrap(), expected);
    }
}
