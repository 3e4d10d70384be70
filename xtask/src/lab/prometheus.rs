//! The configuration of Prometheus and the dashboard in `configs/prometheus`, compared with what
//! the exporter writes and with the page about fleets.

mod labels;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

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
        read("docs/fleet.md"),
        read("docs/watch.md"),
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

/// Names of the alerts in the text of their file.
fn alerts(text: &str) -> BTreeSet<&str> {
    let lines = text.lines();
    lines
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect()
}

#[test]
fn the_page_names_every_alert_and_no_other() {
    let (text, page) = (read("configs/prometheus/alerts.yml"), read("docs/fleet.md"));
    let words = page.split(|letter: char| !letter.is_ascii_alphanumeric());
    let named: BTreeSet<_> = words.filter(|word| word.starts_with("Validator")).collect();
    assert_eq!(named, alerts(&text));
}

#[test]
fn every_alert_is_tested() {
    let text = read("configs/prometheus/alerts.yml");
    let tests = read("configs/prometheus/tests.yml");
    let names = alerts(&text);
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
                let end = used.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
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

/// The page's calculation begins with them.
#[test]
fn the_page_calculates_with_the_samples_that_a_port_has() {
    let golden = read("pfc-user/src/watch/prometheus/golden.txt");
    let samples: Vec<_> = golden
        .lines()
        .filter(|line| line.contains("interface="))
        .collect();
    let with = |label: &str| {
        let label = format!(",{label}=");
        samples.iter().filter(|line| line.contains(&label)).count()
    };
    // Only those DSCPs and opcodes have samples that were met.
    let of_port = samples.len() - with("dscp") - with("opcode");
    let [priority, pcp] = ["priority", "pcp"].map(with);
    let page = read("docs/fleet.md").replace('\n', " ").replace("  ", " ");
    for words in [
        format!("has {of_port} samples: {priority} are 6 counts by priority, {pcp} are 2 by PCP"),
        format!("and {} are others.", of_port - priority - pcp),
        format!("3 ports x ({of_port} + 4) = {}", 3 * (of_port + 4)),
        format!(
            "32 ports has {},{:03} samples",
            32 * of_port / 1000,
            32 * of_port % 1000
        ),
    ] {
        assert!(page.contains(&words), "docs/fleet.md: {words}");
    }
}
