//! The list of what is in the program, in SPDX 2.3, and the licences of others in it.
//!
//! The packages are the crates that are linked into the program and the XDP programs, or that
//! generate code for them, as cargo resolves them for this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Release;
use crate::lab::python::Environment;
use crate::step;
use crate::workspace::VERSION;

/// Crates that programs of ours are made of, with their features.
const FEATURES: &str = "pfc-user/verbs,pfc-user/otg,pfc-ebpf/bpf,pfc-ebpf/trace";
/// The crates of both programs.
const ROOTS: [&str; 2] = ["pfc-user", "pfc-ebpf"];

pub fn file_name() -> String {
    format!("validator-{VERSION}.spdx.json")
}

/// Writes the list.
pub fn write(release: &Release) -> Result<()> {
    let mut date = Command::new("date");
    date.args(["--utc", "+%FT%TZ", "--date"])
        .arg(format!("@{}", release.epoch));
    let document = Crates::of(release)?.document(release.epoch, &step::output(&mut date)?);
    let text = serde_json::to_string_pretty(&document)?;
    let file = release.out().join(file_name());
    fs::write(&file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
}

/// The reader and validator of the authors of SPDX.
const VALIDATOR: Environment = Environment {
    name: "spdx",
    packages: &["spdx-tools==0.8.3"],
};

/// Fails, with what it found, unless the validator takes the list.
pub fn validate(list: &Path) -> Result<()> {
    let python = VALIDATOR.python()?;
    let mut validate = Command::new(python.with_file_name("pyspdxtools"));
    step::run(validate.arg("--infile").arg(list))
}

/// The texts of the licences of all crates from elsewhere.
pub fn licences(release: &Release) -> Result<String> {
    let mut text = String::new();
    for package in Crates::of(release)?.packages.values() {
        let folder = package.manifest_path.parent().context("a manifest")?;
        if package.source.is_none() {
            continue;
        }
        let licence = package.license.as_deref().unwrap_or("see below");
        text += &format!(
            "{0}\n{1} {2}: {licence}\n",
            "=".repeat(80),
            package.name,
            package.version
        );
        for name in super::names(folder)? {
            if is_licence(&name) && folder.join(&name).is_file() {
                let octets = fs::read(folder.join(&name))?;
                let contents = String::from_utf8_lossy(&octets);
                text += &format!("{}\n{}\n", "-".repeat(80), contents.trim_end());
            }
        }
    }
    Ok(text)
}

fn is_licence(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    [
        "LICENSE",
        "LICENCE",
        "COPYING",
        "COPYRIGHT",
        "NOTICE",
        "UNLICENSE",
    ]
    .iter()
    .any(|start| name.starts_with(start))
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    /// The registry; `None` for a crate of the workspace.
    source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `None` for one that is linked, else `build` or `dev`.
    kind: Option<String>,
}

/// What the programs are made of.
struct Crates {
    /// By name and version.
    packages: BTreeMap<(String, String), Package>,
    /// SPDX ids of a crate and of one that it needs.
    edges: BTreeSet<(String, String)>,
    /// SHA-256 of a crate's archive by name and version.
    sums: BTreeMap<(String, String), String>,
    compiler: String,
}

impl Crates {
    fn of(release: &Release) -> Result<Self> {
        let mut cargo = step::cargo();
        cargo.args(["metadata", "--locked", "--format-version", "1"]);
        cargo.args(["--features", FEATURES, "--filter-platform", &host()?]);
        let text = step::output(cargo.current_dir(release.root))?;
        let metadata = serde_json::from_str(&text).context("cargo metadata: unexpected output")?;
        let lock = fs::read_to_string(release.root.join("Cargo.lock"))?;
        let rustc = step::output(Command::new("rustc").arg("--version"))?;
        let mut crates = Self::select(metadata, sums(&lock));
        crates.compiler = rustc;
        Ok(crates)
    }

    /// Follows all that the roots need, except for their tests.
    fn select(metadata: Metadata, sums: BTreeMap<(String, String), String>) -> Self {
        let mut by_id: BTreeMap<_, _> = metadata
            .packages
            .into_iter()
            .map(|package| (package.id.clone(), package))
            .collect();
        let nodes: BTreeMap<_, _> = metadata
            .resolve
            .nodes
            .iter()
            .map(|node| (&node.id, node))
            .collect();
        let is_root =
            |package: &&Package| package.source.is_none() && ROOTS.contains(&package.name.as_str());
        let mut left: Vec<String> = by_id
            .values()
            .filter(is_root)
            .map(|package| package.id.clone())
            .collect();
        let (mut seen, mut edges) = (BTreeSet::new(), BTreeSet::new());
        while let Some(id) = left.pop() {
            let Some(node) = nodes.get(&id).filter(|_| seen.insert(id.clone())) else {
                continue;
            };
            let needed = node.deps.iter().filter(|dependency| {
                let mut kinds = dependency.dep_kinds.iter();
                kinds.any(|kind| kind.kind.as_deref() != Some("dev"))
            });
            for Dependency { pkg, .. } in needed {
                edges.insert((spdx_id(&by_id[&id]), spdx_id(&by_id[pkg])));
                left.push(pkg.clone());
            }
        }
        by_id.retain(|id, _| seen.contains(id));
        let key = |package: Package| ((package.name.clone(), package.version.clone()), package);
        Self {
            packages: by_id.into_values().map(key).collect(),
            edges,
            sums,
            compiler: String::new(),
        }
    }

    fn document(&self, epoch: u64, date: &str) -> Value {
        let packages: Vec<Value> = self
            .packages
            .values()
            .map(|one| self.package(one))
            .collect();
        let root = |name| self.packages.values().find(move |one| one.name == name);
        let describes = ROOTS
            .into_iter()
            .filter_map(root)
            .map(|package| relationship("SPDXRef-DOCUMENT", "DESCRIBES", &spdx_id(package)));
        let edges = self
            .edges
            .iter()
            .map(|(from, to)| relationship(from, "DEPENDS_ON", to));
        json!({
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": "SPDXRef-DOCUMENT",
            "name": format!("validator-{VERSION}"),
            // Unique, as SPDX asks, and the same for the same build.
            "documentNamespace": format!("urn:validator:{VERSION}:{epoch}"),
            "creationInfo": {
                "created": date,
                "creators": [format!("Tool: cargo-xtask-dist-{VERSION}")],
                "comment": format!("built by {}", self.compiler),
            },
            "packages": packages,
            "relationships": describes.chain(edges).collect::<Vec<_>>(),
        })
    }

    fn package(&self, package: &Package) -> Value {
        let Package {
            name,
            version,
            license,
            repository,
            ..
        } = package;
        let key = (name.clone(), version.clone());
        // SPDX knows no slash between licences, which old manifests have.
        let license = license.as_ref().map(|text| text.replace('/', " OR "));
        let license = license.unwrap_or_else(|| "NOASSERTION".to_owned());
        let mut value = json!({
            "SPDXID": spdx_id(package),
            "name": name,
            "versionInfo": version,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": false,
            "licenseConcluded": "NOASSERTION",
            "licenseDeclared": license,
            "copyrightText": "NOASSERTION",
        });
        if let Some(sum) = self.sums.get(&key) {
            value["checksums"] = json!([{ "algorithm": "SHA256", "checksumValue": sum }]);
            value["externalRefs"] = json!([{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": format!("pkg:cargo/{name}@{version}"),
            }]);
        }
        if let Some(repository) = repository {
            value["homepage"] = json!(repository);
        }
        value
    }
}

fn relationship(from: &str, kind: &str, to: &str) -> Value {
    json!({
        "spdxElementId": from,
        "relationshipType": kind,
        "relatedSpdxElement": to,
    })
}

/// An id with the letters that SPDX knows.
fn spdx_id(package: &Package) -> String {
    let letter = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' => letter,
        _ => '-',
    };
    // An underscore and a hyphen tell no two crates of a registry apart.
    let name = format!("{}-{}", package.name, package.version);
    format!(
        "SPDXRef-Package-{}",
        name.chars().map(letter).collect::<String>()
    )
}

/// The sums in `Cargo.lock`.
fn sums(lock: &str) -> BTreeMap<(String, String), String> {
    let entry = |text: &str| {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
        };
        Some(((field("name")?, field("version")?), field("checksum")?))
    };
    lock.split("[[package]]").filter_map(entry).collect()
}

/// The machine's name among Rust's targets.
fn host() -> Result<String> {
    let mut rustc = Command::new("rustc");
    let version = step::output(rustc.arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc names no host")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_list_has_what_is_in_the_program_and_nothing_else() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let release = Release::at(root, 0);
        let crates = Crates::of(&release).unwrap();
        let document = crates.document(0, "1970-01-01T00:00:00Z");
        let packages = document["packages"].as_array().unwrap();
        let names: BTreeSet<_> = packages
            .iter()
            .map(|package| package["name"].as_str().unwrap())
            .collect();
        // Verbs, OTG and the XDP programs are in it; tests and this program are not.
        for name in [
            "pfc-user",
            "validator-core",
            "ib-mad",
            "aya",
            "aya-ebpf",
            "sideway",
            "validator-otg",
            "tonic",
        ] {
            assert!(names.contains(name), "{name} is missing");
        }
        for name in ["criterion", "xtask", "clap_mangen"] {
            assert!(!names.contains(name), "{name} is not in the program");
        }
        let ids: BTreeSet<_> = packages
            .iter()
            .map(|one| one["SPDXID"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), packages.len());
        for package in packages {
            let own = [
                "pfc-user",
                "pfc-ebpf",
                "validator-core",
                "validator-otg",
                "ib-mad",
            ];
            let name = package["name"].as_str().unwrap();
            assert_ne!(
                package["checksums"].is_array(),
                own.contains(&name),
                "{package}"
            );
            assert_ne!(package["licenseDeclared"], "NOASSERTION", "{package}");
        }
        let relationships = document["relationships"].as_array().unwrap();
        assert!(relationships.len() > packages.len());
        for relationship in relationships {
            let related = relationship["relatedSpdxElement"].as_str().unwrap();
            assert!(ids.contains(related), "{relationship}");
        }
        let texts = licences(&release).unwrap();
        assert!(texts.contains("\naya 0.14.0: MIT OR Apache-2.0\n"));
        assert!(texts.contains("Permission is hereby granted"));
    }

    #[test]
    fn sums_are_of_crates_from_elsewhere() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
                    checksum = \"0af1\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let expected = [(("a".to_owned(), "1.0.0".to_owned()), "0af1".to_owned())];
        assert_eq!(sums(lock), BTreeMap::from(expected));
    }
}
