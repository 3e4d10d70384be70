//! Labels that rules, alerts and dashboard use, compared with those that the exporter writes. A
//! misspelled one is no error for Prometheus: a selector then finds nothing, and a legend is empty.

use std::collections::{BTreeMap, BTreeSet};

use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;

use super::{dashboard, read};

/// Labels that Prometheus gives all that it scrapes.
const OF_TARGETS: [&str; 2] = ["instance", "job"];
/// Labels that Prometheus gives an alert.
const OF_ALERTS: [&str; 2] = ["alertname", "alertstate"];
/// Aggregations, which leave no label but those that they name.
const AGGREGATIONS: [&str; 5] = ["avg", "count", "max", "min", "sum"];

type Set = BTreeSet<String>;
/// Labels by the name of a metric or rule.
type Labels = BTreeMap<String, Set>;

#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    Sign(char),
}

/// The words and signs of a query, or of samples, without the strings.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '"' {
            while let Some(inside) = letters.next().filter(|inside| *inside != '"') {
                if inside == '\\' {
                    letters.next();
                }
            }
        } else if is_of_word(letter) {
            let mut word = letter.to_string();
            while let Some(letter) = letters.next_if(|letter| is_of_word(*letter)) {
                word.push(letter);
            }
            tokens.push(Token::Word(word));
        } else if !letter.is_whitespace() {
            tokens.push(Token::Sign(letter));
        }
    }
    tokens
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_:".contains(letter)
}

/// Each word before one of these signs, with the words up to the sign that closes it.
fn lists(text: &str, open: char, close: char) -> Vec<(String, Set)> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (place, pair) in tokens.windows(2).enumerate() {
        let [Token::Word(name), Token::Sign(sign)] = pair else {
            continue;
        };
        if *sign != open {
            continue;
        }
        let inside = tokens[place + 2..].iter();
        let inside = inside.take_while(|token| **token != Token::Sign(close));
        let words = inside.filter_map(|token| match token {
            Token::Word(word) => Some(word.clone()),
            Token::Sign(_) => None,
        });
        found.push((name.clone(), words.collect()));
    }
    found
}

/// The labels in `without (...)` or `by (...)`.
fn named(query: &str, word: &str) -> Option<Set> {
    let lists = lists(query, '(', ')').into_iter();
    lists
        .filter(|(name, _)| name == word)
        .map(|(_, labels)| labels)
        .reduce(|mut all, labels| {
            all.extend(labels);
            all
        })
}

/// All labels of the metrics in a query.
fn of_metrics(query: &str, known: &Labels) -> Set {
    let metrics = tokens(query).into_iter().filter_map(|token| match token {
        Token::Word(word) => known.get(&word),
        Token::Sign(_) => None,
    });
    metrics.flatten().cloned().collect()
}

/// The labels that a query's result has.
fn of_result(query: &str, known: &Labels) -> Set {
    if let Some(labels) = named(query, "by") {
        return labels;
    }
    let all = of_metrics(query, known);
    match named(query, "without") {
        Some(labels) => &all - &labels,
        None => {
            let aggregates = tokens(query).iter().any(
                |token| matches!(token, Token::Word(word) if AGGREGATIONS.contains(&word.as_str())),
            );
            if aggregates { Set::new() } else { all }
        }
    }
}

/// Labels in a query that its metrics do not have.
fn unknown(query: &str, known: &Labels) -> Set {
    let mut unknown = Set::new();
    for (metric, labels) in lists(query, '{', '}') {
        let of_metric = known.get(&metric);
        let of_metric = of_metric.unwrap_or_else(|| panic!("nothing is known of {metric}"));
        unknown.extend(&labels - of_metric);
    }
    for word in ["by", "without", "on", "ignoring"] {
        let labels = named(query, word).unwrap_or_default();
        unknown.extend(&labels - &of_metrics(query, known));
    }
    unknown
}

/// Labels that a text takes from a result: `{{interface}}` or `{{ $labels.interface }}`.
fn placeholders(text: &str) -> Set {
    let inside = text
        .split("{{")
        .skip(1)
        .filter_map(|part| part.split_once("}}"));
    inside
        .map(|(name, _)| name.trim())
        .filter(|name| !name.starts_with("$value"))
        .map(|name| name.trim_start_matches("$labels.").to_owned())
        .collect()
}

/// The labels of what is scraped. Those of a pair are on its two ends alone.
fn of_exporter() -> Labels {
    const PAIR: &str = "pair";
    let source = read("pfc-user/src/watch/session/ports.rs");
    assert!(
        source.contains(&format!("(\"{PAIR}\", ")),
        "the exporter writes no label {PAIR}"
    );
    let of_targets = OF_TARGETS.map(str::to_owned);
    let mut known = Labels::from([("up".to_owned(), Set::from(of_targets.clone()))]);
    for (name, labels) in lists(&read("pfc-user/src/watch/prometheus/golden.txt"), '{', '}') {
        let of_metric = known.entry(name).or_default();
        of_metric.extend(labels);
        of_metric.extend(of_targets.clone());
        of_metric.insert(PAIR.to_owned());
    }
    known
}

/// The texts below a key, of all rules of a file.
fn rules(path: &str) -> Vec<Yaml<'static>> {
    let text: &'static str = read(path).leak();
    let file = Yaml::load_from_str(text).unwrap().remove(0);
    let groups = entry(&file, "groups").unwrap().as_sequence().unwrap();
    let rules = groups
        .iter()
        .flat_map(|group| entry(group, "rules").unwrap().as_sequence().unwrap());
    rules.cloned().collect()
}

fn entry<'a>(node: &'a Yaml<'static>, name: &str) -> Option<&'a Yaml<'static>> {
    let mut entries = node.as_mapping()?.iter();
    entries.find_map(|(key, value)| (key.as_str() == Some(name)).then_some(value))
}

fn text<'a>(node: &'a Yaml<'static>, name: &str) -> Option<&'a str> {
    entry(node, name)?.as_str()
}

/// The exporter's labels, and those that rules and alerts leave of them.
fn known() -> Labels {
    let mut known = of_exporter();
    for rule in rules("configs/prometheus/rules.yml") {
        let query = text(&rule, "expr").unwrap();
        assert_eq!(unknown(query, &known), Set::new(), "{query}");
        let name = text(&rule, "record").unwrap().to_owned();
        let labels = of_result(query, &known);
        known.insert(name, labels);
    }
    let mut of_alerts = Set::from(OF_ALERTS.map(str::to_owned));
    for alert in rules("configs/prometheus/alerts.yml") {
        let query = text(&alert, "expr").unwrap();
        assert_eq!(unknown(query, &known), Set::new(), "{query}");
        let mut labels = of_result(query, &known);
        for (own, _) in entry(&alert, "labels").unwrap().as_mapping().unwrap() {
            labels.insert(own.as_str().unwrap().to_owned());
        }
        for (_, words) in entry(&alert, "annotations").unwrap().as_mapping().unwrap() {
            let words = words.as_str().unwrap();
            assert_eq!(&placeholders(words) - &labels, Set::new(), "{words}");
        }
        of_alerts.extend(labels);
    }
    known.insert("ALERTS".to_owned(), of_alerts);
    known
}

#[test]
fn every_label_of_rules_alerts_and_dashboard_is_one_of_the_exporters() {
    let known = known();
    let tests = read("configs/prometheus/tests.yml");
    assert_eq!(unknown(&tests, &known), Set::new());
    let dashboard = dashboard();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let panels = list(&dashboard["panels"]);
    let targets = panels.iter().flat_map(|panel| list(&panel["targets"]));
    let mut seen = Set::new();
    for shown in targets.chain(list(&dashboard["annotations"]["list"])) {
        let query = shown["expr"].as_str().unwrap();
        assert_eq!(unknown(query, &known), Set::new(), "{query}");
        let labels = of_result(query, &known);
        for key in ["legendFormat", "titleFormat", "textFormat"] {
            let used = placeholders(shown[key].as_str().unwrap_or_default());
            assert_eq!(&used - &labels, Set::new(), "{key} of {query}");
            seen.extend(used);
        }
    }
    // The legends were read.
    for label in ["instance", "interface", "pair", "priority", "reason"] {
        assert!(seen.contains(label), "{label}");
    }
    for variable in list(&dashboard["templating"]["list"]) {
        let Some(query) = variable["query"]["query"].as_str() else {
            continue;
        };
        let arguments = query
            .strip_prefix("label_values(")
            .and_then(|rest| rest.strip_suffix(')')?.split_once(", "));
        let (metric, label) = arguments.unwrap_or_else(|| panic!("{query}"));
        assert!(known[metric].contains(label), "{query}");
    }
}

#[test]
fn a_label_that_there_is_not_is_named() {
    let known = known();
    let named = |query| {
        let unknown = unknown(query, &known).into_iter();
        unknown.collect::<Vec<_>>().join(" ")
    };
    for (query, expected) in [
        ("validator_frames_total{interface=\"a\"} > 0", ""),
        ("rate(validator_frames_total{iface=\"a\"}[1m])", "iface"),
        ("validator_frames_total{priority=\"3\"}", "priority"),
        (
            "validator_frames_total{pair!=\"\",direction=\"dir\\\"x=\"}",
            "",
        ),
        ("up{job=\"validator\", interface=\"a\"}", "interface"),
        (
            "sum without (prio) (validator_priority_frames_total)",
            "prio",
        ),
        ("sum by (reason) (validator_malformed_frames_total)", ""),
        // The rule adds up the two ends.
        ("validator:pair_lost:ratio1m{interface=\"a\"}", "interface"),
        (
            "ALERTS{alertname=\"a\", severity=\"critical\", level=\"1\"}",
            "level",
        ),
    ] {
        assert_eq!(named(query), expected, "{query}");
    }
    let result = |query| of_result(query, &known);
    assert!(!result("validator:pair_lost:ratio1m").contains("interface"));
    assert!(result("validator:pair_lost:ratio1m").contains("pair"));
    assert!(result("sum(validator_frames_total)").is_empty());
    let used = placeholders("{{instance}} of {{ $labels.pair }}: {{ $value | humanize }}");
    assert_eq!(used, Set::from(["instance".to_owned(), "pair".to_owned()]));
}
