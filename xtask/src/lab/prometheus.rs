//! Part of `cargo xtask test`: the rules, alerts and queries in `configs/prometheus`, read and
//! tried by Prometheus' own promtool. It comes from Debian's package and is not installed.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use serde_json::Value;

use super::archive::Archive;
use super::packages::Tree;
use crate::step;

/// Grafana's own variables, which stand for durations and choices, and values for them.
const VARIABLES: [(&str, &str); 4] = [
    ("$__rate_interval", "1m"),
    ("$instance", ".*"),
    ("$interface", ".*"),
    ("$priority", ".*"),
];

/// Ends with a line like libtest's.
pub fn test(root: &Path) -> Result<ExitCode> {
    let promtool = Tree::prometheus(&Archive::open()?)?.program("promtool")?;
    let folder = root.join("configs/prometheus");
    let queries = root.join("target/lab/dashboard.yml");
    let dashboard =
        fs::read_to_string(folder.join("dashboard.json")).context("cannot read the dashboard")?;
    fs::create_dir_all(queries.parent().expect("a file"))?;
    fs::write(&queries, as_rules(&serde_json::from_str(&dashboard)?))?;
    let queries = queries.display().to_string();
    let checks: [(&str, &[&str]); 3] = [
        ("the configuration", &["check", "config", "prometheus.yml"]),
        ("the rules and alerts", &["test", "rules", "tests.yml"]),
        (
            "the queries of the dashboard",
            &["check", "rules", &queries],
        ),
    ];
    let mut failed = 0;
    for (name, arguments) in checks {
        let mut command = Command::new(&promtool);
        match step::run(command.args(arguments).current_dir(&folder)) {
            Ok(()) => println!("test {name} ... ok"),
            Err(error) => {
                failed += 1;
                println!("test {name} ... FAILED\n    {error:#}");
            }
        }
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {word}. {} passed; {failed} failed; 0 ignored",
        checks.len() - failed
    );
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Every query of a dashboard.
fn queries(dashboard: &Value) -> Vec<String> {
    let of = |value: &Value| value["expr"].as_str().map(str::to_owned);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let targets = list(&dashboard["panels"])
        .into_iter()
        .flat_map(|panel| list(&panel["targets"]));
    let annotations = list(&dashboard["annotations"]["list"]);
    targets
        .chain(annotations)
        .filter_map(|one| of(&one))
        .collect()
}

/// The queries as a file of rules, which promtool reads.
fn as_rules(dashboard: &Value) -> String {
    let mut text = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    for (number, query) in queries(dashboard).into_iter().enumerate() {
        let query = VARIABLES
            .iter()
            .fold(query, |query, (name, value)| query.replace(name, value));
        // A string of JSON is one of YAML too.
        let query = Value::from(query);
        // Infallible: a string.
        let _ = writeln!(text, "  - record: query_{number}\n    expr: {query}");
    }
    text
}

#[cfg(test)]
mod labels;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    /// Kinds of panels that Grafana brings along.
    const KINDS: [&str; 2] = ["stat", "timeseries"];
    /// Columns of a dashboard.
    const COLUMNS: u64 = 24;

    pub fn read(path: &str) -> String {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(path);
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn dashboard() -> Value {
        serde_json::from_str(&read("configs/prometheus/dashboard.json")).unwrap()
    }

    /// The words of a text that begin with the name of the tool.
    fn metrics(text: &str) -> BTreeSet<String> {
        text.split(|letter: char| !(letter.is_ascii_alphanumeric() || "_:".contains(letter)))
            .filter(|word| word.starts_with("validator_") || word.starts_with("validator:"))
            .map(str::to_owned)
            .collect()
    }

    /// The metrics that the exporter has, and those that rules make of them.
    fn known() -> (BTreeSet<String>, BTreeSet<String>) {
        let golden = read("pfc-user/src/watch/prometheus/golden.txt");
        let of_exporter = golden
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
            .map(str::to_owned)
            .collect();
        let rules = read("configs/prometheus/rules.yml");
        let recorded = rules
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- record: "))
            .map(str::to_owned)
            .collect();
        (of_exporter, recorded)
    }

    #[test]
    fn every_metric_is_the_exporters_or_a_rule() {
        let (of_exporter, recorded) = known();
        let texts = [
            queries(&dashboard()).join("\n"),
            dashboard()["templating"].to_string(),
            read("configs/prometheus/rules.yml"),
            read("configs/prometheus/alerts.yml"),
            read("configs/prometheus/tests.yml"),
        ];
        for name in texts.iter().flat_map(|text| metrics(text)) {
            assert!(
                of_exporter.contains(&name) || recorded.contains(&name),
                "neither the exporter nor a rule has {name}"
            );
        }
        let used = metrics(&(texts[0].clone() + &texts[3]));
        let of_rules = metrics(&texts[2]);
        for name in recorded {
            let elsewhere = texts[2].matches(&name).count() > 1;
            assert!(used.contains(&name) || elsewhere, "nothing uses {name}");
            assert!(of_rules.contains(&name));
        }
    }

    #[test]
    fn every_alert_is_tested() {
        let alerts = read("configs/prometheus/alerts.yml");
        let tests = read("configs/prometheus/tests.yml");
        let names: BTreeSet<_> = alerts
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- alert: "))
            .collect();
        assert_eq!(names.len(), 4);
        for name in names {
            let mark = format!("alertname: {name}\n");
            let cases: Vec<_> = tests.split(&mark).skip(1).collect();
            let is_quiet = |case: &&str| {
                case.lines()
                    .nth(1)
                    .is_some_and(|line| line.ends_with("exp_alerts: []"))
            };
            assert!(cases.iter().any(is_quiet), "{name} is never quiet");
            assert!(
                cases.iter().any(|case| !is_quiet(case)),
                "{name} never fires"
            );
        }
    }

    #[test]
    fn panels_are_of_kinds_that_there_are_and_do_not_overlap() {
        let dashboard = dashboard();
        let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        let variables: BTreeSet<_> = variables
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        for panel in dashboard["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            assert!(KINDS.contains(&panel["type"].as_str().unwrap()), "{title}");
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
            assert!(
                panel["fieldConfig"]["defaults"]["unit"].is_string(),
                "{title}"
            );
            let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
            assert!(place("x") + place("w") <= COLUMNS, "{title}");
            for x in place("x")..place("x") + place("w") {
                for y in place("y")..place("y") + place("h") {
                    assert!(taken.insert((x, y)), "{title} lies on another panel");
                }
            }
            let targets = panel["targets"].as_array().unwrap();
            assert!(!targets.is_empty(), "{title}");
            for target in targets {
                let query = target["expr"].as_str().unwrap();
                for used in query.split('$').skip(1) {
                    let end =
                        used.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
                    let name = &used[..end.unwrap_or(used.len())];
                    assert!(
                        variables.contains(name) || name == "__rate_interval",
                        "{query}"
                    );
                }
            }
        }
    }

    /// Keys that Grafana knows, of those that we use, by their place.
    const KEYS: [(&str, &[&str]); 21] = [
        (
            "",
            &[
                "annotations",
                "description",
                "editable",
                "graphTooltip",
                "panels",
                "refresh",
                "schemaVersion",
                "tags",
                "templating",
                "time",
                "timezone",
                "title",
                "uid",
                "version",
            ],
        ),
        ("annotations", &["list"]),
        (
            "annotations.list",
            &[
                "datasource",
                "enable",
                "expr",
                "iconColor",
                "name",
                "textFormat",
                "titleFormat",
            ],
        ),
        ("annotations.list.datasource", DATASOURCE),
        (
            "panels",
            &[
                "datasource",
                "description",
                "fieldConfig",
                "gridPos",
                "id",
                "options",
                "targets",
                "title",
                "type",
            ],
        ),
        ("panels.datasource", DATASOURCE),
        ("panels.fieldConfig", &["defaults", "overrides"]),
        (
            "panels.fieldConfig.defaults",
            &["max", "min", "thresholds", "unit"],
        ),
        ("panels.fieldConfig.defaults.thresholds", &["mode", "steps"]),
        (
            "panels.fieldConfig.defaults.thresholds.steps",
            &["color", "value"],
        ),
        ("panels.gridPos", &["h", "w", "x", "y"]),
        ("panels.options", &["legend", "tooltip"]),
        ("panels.options.legend", &["displayMode", "placement"]),
        ("panels.options.tooltip", &["mode", "sort"]),
        ("panels.targets", &["expr", "legendFormat", "refId"]),
        ("templating", &["list"]),
        (
            "templating.list",
            &[
                "allValue",
                "current",
                "datasource",
                "includeAll",
                "label",
                "multi",
                "name",
                "query",
                "refresh",
                "sort",
                "type",
            ],
        ),
        ("templating.list.current", &["text", "value"]),
        ("templating.list.datasource", DATASOURCE),
        ("templating.list.query", &["query", "refId"]),
        ("time", &["from", "to"]),
    ];
    const DATASOURCE: &[&str] = &["type", "uid"];

    /// A misspelled key is one that Grafana passes over in silence.
    fn known_keys(value: &Value, place: &str) {
        match value {
            Value::Object(entries) => {
                let known = KEYS.iter().find(|(known, _)| *known == place);
                let (_, known) = known.unwrap_or_else(|| panic!("nothing is known of {place}"));
                for (key, value) in entries {
                    assert!(known.contains(&key.as_str()), "{key} in {place}");
                    let below = [place, key].join(".");
                    known_keys(value, below.trim_start_matches('.'));
                }
            }
            Value::Array(list) => list.iter().for_each(|value| known_keys(value, place)),
            _ => {}
        }
    }

    #[test]
    fn every_key_of_the_dashboard_is_one_of_grafanas() {
        known_keys(&dashboard(), "");
    }

    #[test]
    fn queries_are_given_to_promtool_whole() {
        let dashboard = serde_json::json!({ "panels": [{ "targets": [
            { "expr": "rate(a{b=~\"$instance\"}[$__rate_interval])" }
        ] }] });
        let expected = "groups:\n- name: dashboard\n  rules:\n  - record: query_0\n    \
                        expr: \"rate(a{b=~\\\".*\\\"}[1m])\"\n";
        assert_eq!(as_rules(&dashboard), expected);
    }
}
