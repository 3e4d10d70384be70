//! Evidence is read, judged and reported. The page says what the other reports say, is one
//! well-formed file, and takes no text of evidence for markup.
//!
//! lane: computing

mod drawings;
mod hostile;
mod red;
pub mod samples;
mod says;
mod size;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use roxmltree::{Document, Node, ParsingOptions};
use validator_core::cases;
use validator_core::evidence::Evidence;
use validator_core::report::html;
use validator_core::verdict::{CaseResult, Exit};

/// The samples, read once.
fn samples() -> Vec<(String, Evidence)> {
    static SAMPLES: OnceLock<Vec<(String, Evidence)>> = OnceLock::new();
    SAMPLES.get_or_init(samples::samples).clone()
}

/// The sample of that name.
fn sample(name: &str) -> Evidence {
    let mut samples = samples().into_iter();
    let (_, evidence) = samples.find(|(found, _)| found == name).unwrap();
    evidence
}

fn judged(evidence: &Evidence) -> (Vec<CaseResult>, Exit) {
    let results = cases::judge(evidence);
    let exit = Exit::of(&results, evidence.interrupted);
    (results, exit)
}

fn page(evidence: &Evidence) -> String {
    let (results, exit) = judged(evidence);
    html::page(evidence, &results, exit)
}

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}"))
}

fn named<'a, 'i>(
    document: &'a Document<'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    let all = document.descendants();
    all.filter(move |node| node.tag_name().name() == name)
}

fn of_class<'a, 'i>(
    document: &'a Document<'i>,
    name: &'static str,
    class: &str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    named(document, name).filter(move |node| node.attribute("class") == Some(class))
}

fn with_id<'a, 'i>(document: &'a Document<'i>, id: &str) -> Option<Node<'a, 'i>> {
    let mut all = document.descendants();
    all.find(|node| node.attribute("id") == Some(id))
}

/// The text of a node, with single spaces.
fn text_of(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(|node| node.is_text());
    let texts: Vec<&str> = texts.filter_map(|node| node.text()).collect();
    words(&texts.join(" "))
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Fails unless the page can be found one's way through: by the keyboard, by ear, and without a
/// network.
fn assert_sound(name: &str, page: &str) {
    assert!(
        page.len() <= html::LARGEST,
        "{name} has {} octets",
        page.len()
    );
    let document = parse(page);
    let ids: Vec<&str> = document
        .descendants()
        .filter_map(|node| node.attribute("id"))
        .collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "{name} has an id twice");
    for link in named(&document, "a") {
        let target = link.attribute("href").unwrap();
        let target = target.strip_prefix('#').expect("a link within the page");
        assert!(unique.contains(target), "{name} links to nothing: {target}");
    }
    for node in document.descendants() {
        let attributes: Vec<&str> = node
            .attributes()
            .map(|attribute| attribute.name())
            .collect();
        let distinct: BTreeSet<&&str> = attributes.iter().collect();
        assert_eq!(attributes.len(), distinct.len(), "{name}: {node:?}");
        assert!(!attributes.contains(&"src"), "{name} loads something");
        let script = attributes.iter().find(|name| name.starts_with("on"));
        assert_eq!(script, None, "{name}");
    }
    for name in ["link", "img", "iframe", "object", "base"] {
        assert_eq!(named(&document, name).count(), 0, "{name}");
    }
    for style in named(&document, "style") {
        let style = style.text().unwrap();
        assert!(!style.contains("url(") && !style.contains("@import"));
    }
    for table in named(&document, "table") {
        let first = table.first_element_child().unwrap();
        assert_eq!(first.tag_name().name(), "caption", "{name}");
    }
    for heading in named(&document, "th") {
        assert!(heading.has_attribute("scope"), "{name}: {heading:?}");
    }
    for drawing in named(&document, "svg") {
        let nested = drawing.attribute("class") == Some("plot");
        let labelled = drawing.attribute("role") == Some("img")
            && drawing
                .attribute("aria-label")
                .is_some_and(|label| !label.is_empty());
        assert!(nested || labelled, "{name}: {drawing:?}");
    }
    for landmark in ["header", "nav", "main", "footer", "h1"] {
        assert_eq!(named(&document, landmark).count(), 1, "{name}: {landmark}");
    }
}
