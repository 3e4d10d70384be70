//! The benchmarks of the workspace, from cargo's metadata.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::step;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    pub package: String,
    pub name: String,
    /// Features that some benchmark of the package needs. All are built with them: once.
    pub features: Vec<String>,
}

impl Target {
    /// The package's features as arguments of cargo.
    pub fn features(&self) -> Vec<String> {
        let features = self.features.iter();
        features
            .map(|feature| format!("--features={}/{feature}", self.package))
            .collect()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, self.package)
    }
}

/// All `[[bench]]` targets, sorted by package and name.
pub fn find(root: &Path) -> Result<Vec<Target>> {
    let metadata = step::output(
        step::cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(root),
    )?;
    let metadata = serde_json::from_str(&metadata).context("cargo metadata")?;
    Ok(of_metadata(&metadata))
}

fn of_metadata(metadata: &Value) -> Vec<Target> {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for package in items(&metadata["packages"]) {
        let is_bench = |target: &Value| items(&target["kind"]).contains(&Value::from("bench"));
        let mut benches = items(&package["targets"]);
        benches.retain(is_bench);
        let needed = benches
            .iter()
            .flat_map(|target| items(&target["required-features"]));
        let features: BTreeSet<String> = needed.map(|feature| text(&feature)).collect();
        found.extend(benches.iter().map(|target| Target {
            package: text(&package["name"]),
            name: text(&target["name"]),
            features: features.iter().cloned().collect(),
        }));
    }
    found.sort();
    found
}

/// Selects the targets called `names`, or all if `names` is empty. The error for an unknown name
/// lists the known ones.
pub fn select(targets: Vec<Target>, names: &[String]) -> Result<Vec<Target>> {
    if let Some(unknown) = names
        .iter()
        .find(|name| targets.iter().all(|target| target.name != **name))
    {
        let known: Vec<_> = targets.iter().map(|target| target.name.as_str()).collect();
        bail!(
            "there is no benchmark `{unknown}`; there are: {}",
            known.join(", ")
        );
    }
    Ok(targets
        .into_iter()
        .filter(|target| names.is_empty() || names.contains(&target.name))
        .collect())
}

/// Returns the command that builds them without running any.
pub fn build(targets: &[Target]) -> Command {
    let mut cargo = step::cargo();
    cargo.args(["bench", "--no-run"]);
    let mut packages: Vec<_> = targets.iter().map(|target| &target.package).collect();
    packages.dedup();
    packages
        .iter()
        .for_each(|package| _ = cargo.args(["--package", package]));
    targets
        .iter()
        .for_each(|target| _ = cargo.args(["--bench", &target.name]));
    let features: BTreeSet<String> = targets.iter().flat_map(Target::features).collect();
    cargo.args(features);
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(package: &str, name: &str) -> Target {
        Target {
            package: package.to_owned(),
            name: name.to_owned(),
            features: Vec::new(),
        }
    }

    fn with_otg(target: Target) -> Target {
        Target {
            features: vec!["otg".to_owned()],
            ..target
        }
    }

    #[test]
    fn benches_are_found_among_all_targets() {
        let metadata = serde_json::json!({"packages": [
            {"name": "pfc-user", "targets": [{"kind": ["lib"], "name": "validator"},
             {"kind": ["bench"], "name": "wire"}, {"kind": ["bench"], "name": "otg",
              "required-features": ["otg"]}]},
            {"name": "ib-mad", "targets": [{"kind": ["bench"], "name": "codec"}]},
        ]});
        assert_eq!(
            of_metadata(&metadata),
            [
                target("ib-mad", "codec"),
                with_otg(target("pfc-user", "otg")),
                with_otg(target("pfc-user", "wire"))
            ]
        );
    }

    #[test]
    fn one_can_be_asked_for_and_an_unknown_one_is_named() {
        let all = || vec![target("ib-mad", "codec"), target("pfc-user", "wire")];
        assert_eq!(select(all(), &[]).unwrap(), all());
        assert_eq!(
            select(all(), &["wire".to_owned()]).unwrap(),
            [target("pfc-user", "wire")]
        );
        assert_eq!(
            select(all(), &["wyre".to_owned()]).unwrap_err().to_string(),
            "there is no benchmark `wyre`; there are: codec, wire"
        );
    }

    #[test]
    fn one_command_builds_all() {
        let command = step::show(&build(&[
            target("ib-mad", "codec"),
            with_otg(target("pfc-user", "otg")),
            with_otg(target("pfc-user", "wire")),
        ]));
        assert!(
            command.ends_with(
                "bench --no-run --package ib-mad --package pfc-user --bench codec --bench otg \
                 --bench wire --features=pfc-user/otg"
            ),
            "{command}"
        );
    }
}
