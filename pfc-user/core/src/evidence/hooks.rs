//! Output of the user's hooks, and what the DUT counted between two of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Output of a hook command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookOutput {
    /// The hook: `prepare`, `configure`, `counters` or `restore`.
    pub hook: String,
    /// The moment at which it was run: `prepare`, `before`, `after` or `restore`.
    pub when: String,
    /// The command line.
    pub command: String,
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Lines of a hook that failed which are shown.
const LAST_LINES: usize = 3;

impl HookOutput {
    /// How it failed: exit status and last lines; `None` where it did not.
    pub fn failure(&self) -> Option<String> {
        if self.status == 0 {
            return None;
        }
        let output = [&self.stderr, &self.stdout].map(|text| text.trim());
        let output = output.into_iter().find(|text| !text.is_empty());
        let lines: Vec<&str> = output.unwrap_or_default().lines().map(str::trim).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" / ");
        let last = if last.is_empty() {
            "it said nothing"
        } else {
            &last
        };
        Some(format!(
            "the hook `{}` failed with exit status {}: {last}",
            self.hook, self.status
        ))
    }
}

/// A counter of the DUT that changed in a repetition, by the hook `counters`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DutCounter {
    /// Its name: the keys that lead to it in the hook's JSON.
    pub counter: String,
    /// Value before the repetition.
    pub before: u64,
    /// Value after it.
    pub after: u64,
}

impl DutCounter {
    /// The change, with its sign.
    pub fn change(&self) -> String {
        match self.after.checked_sub(self.before) {
            Some(rise) => format!("+{rise}"),
            None => format!("-{}", self.before - self.after),
        }
    }
}

/// The counters that changed from the hook `counters` before to the one after, where both printed
/// JSON. A counter that only one of them has is none.
pub fn changes(hooks: &[HookOutput]) -> Vec<DutCounter> {
    let counted = |when: &str| {
        let output = hooks.iter().find(|output| {
            output.hook == "counters" && output.when == when && output.status == 0
        })?;
        counters(&output.stdout)
    };
    let (Some(before), Some(after)) = (counted("before"), counted("after")) else {
        return Vec::new();
    };
    let both = before.into_iter().filter_map(|(counter, before)| {
        let after = *after.get(&counter)?;
        Some(DutCounter {
            counter,
            before,
            after,
        })
    });
    both.filter(|counter| counter.before != counter.after)
        .collect()
}

/// The whole numbers in JSON, by the keys that lead to them.
fn counters(text: &str) -> Option<BTreeMap<String, u64>> {
    let mut found = BTreeMap::new();
    gather(&serde_json::from_str(text).ok()?, String::new(), &mut found);
    Some(found)
}

fn gather(value: &Value, name: String, found: &mut BTreeMap<String, u64>) {
    let below = |key: &str| match name.as_str() {
        "" => key.to_owned(),
        name => format!("{name} {key}"),
    };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                gather(value, below(key), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                gather(value, below(&index.to_string()), found);
            }
        }
        _ => found.extend(value.as_u64().map(|number| (name, number))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(hook: &str, when: &str, status: i32, stdout: &str, stderr: &str) -> HookOutput {
        HookOutput {
            hook: hook.into(),
            when: when.into(),
            command: "command".into(),
            status,
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn counters_that_changed_are_told_by_their_keys() {
        let before = r#"{"Ethernet0": {"pfc rx": {"3": 5, "4": 7}, "q": [1, 9]}, "name": "x"}"#;
        let after = r#"{"Ethernet0": {"pfc rx": {"3": 12, "4": 7, "5": 1}, "q": [1, 2]}}"#;
        let hooks = [
            output("counters", "before", 0, before, ""),
            output("counters", "after", 0, after, ""),
        ];
        let found: Vec<_> = changes(&hooks)
            .iter()
            .map(|counter| format!("{} {}", counter.counter, counter.change()))
            .collect();
        assert_eq!(found, ["Ethernet0 pfc rx 3 +7", "Ethernet0 q 1 -7"]);
    }

    #[test]
    fn text_that_is_no_json_and_a_hook_that_failed_have_no_counters() {
        let counts = "{\"a\": 1}";
        for (status, after) in [(0, "a 2"), (1, "{\"a\": 2}")] {
            let hooks = [
                output("counters", "before", 0, counts, ""),
                output("counters", "after", status, after, ""),
            ];
            assert_eq!(changes(&hooks), []);
        }
    }

    #[test]
    fn a_failure_has_its_status_and_its_last_lines() {
        let lines = "one\ntwo\nthree\n four \n";
        let failure = output("configure", "before", 7, "aside", lines).failure();
        assert_eq!(
            failure.unwrap(),
            "the hook `configure` failed with exit status 7: two / three / four"
        );
        let failure = output("counters", "after", 1, "on stdout\n", "").failure();
        assert!(failure.unwrap().ends_with("1: on stdout"));
        let silent = output("counters", "after", 127, "", "").failure().unwrap();
        assert!(silent.ends_with("127: it said nothing"));
        assert_eq!(output("counters", "after", 0, "x", "y").failure(), None);
    }
}
