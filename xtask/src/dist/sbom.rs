//! The list of what is in the program, in SPDX 2.3, and the licences of others in it.
//!
//! The packages are the crates that are linked into the program and the XDP programs, or that
//! generate code for them, as cargo resolves them for this machine; and what is in the programs
//! without being a crate of cargo's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Release;
use crate::files;
use crate::lab;
use crate::step;
use crate::toolchain::Toolchain;
use crate::workspace::VERSION;

/// Crates that programs of ours are made of, with their features.
const FEATURES: &str = "pfc-user/verbs,pfc-user/otg,pfc-ebpf/bpf,pfc-ebpf/trace";
/// The crates of both programs.
const ROOTS: [&str; 2] = ["pfc-user", "pfc-ebpf"];

/// Something of others' in the programs that cargo does not know as a crate.
struct Part {
    name: &'static str,
    version: String,
    license: &'static str,
    copyright: &'static str,
    /// The crate that it came in by, and how.
    within: (&'static str, &'static str),
    /// A file of the tree with its licence.
    text: &'static str,
}

/// Its version is that of the snappi which carries it.
const MODEL_VERSION: &str = "1.62.0";

/// `compiler`: of the program; `bpf`: of the XDP programs, each as `rustc --version` prints it.
fn parts(compiler: &str, bpf: Option<&str>) -> Vec<Part> {
    let of_rust = |name, version: &str, root| Part {
        name,
        version: version.split(' ').nth(1).unwrap_or(version).to_owned(),
        license: "MIT OR Apache-2.0",
        copyright: "NOASSERTION",
        within: (root, "DEPENDS_ON"),
        text: "LICENSE-APACHE",
    };
    let model = Part {
        name: "open-traffic-generator-model",
        version: MODEL_VERSION.to_owned(),
        license: "MIT",
        copyright: "Copyright (c) 2021 Open Traffic Generator",
        within: ("validator-otg", "CONTAINS"),
        text: "pfc-user/otg/model/LICENSE-MIT",
    };
    let mut parts = vec![model, of_rust("rust-std", compiler, "pfc-user")];
    parts.extend(bpf.map(|version| of_rust("rust-core", version, "pfc-ebpf")));
    parts
}

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

/// Fails, with what it found, unless the validator of SPDX's authors takes the list.
pub fn validate(root: &Path, list: &Path) -> Result<()> {
    let python = lab::python(root, "spdx")?;
    let mut validate = Command::new(python.with_file_name("pyspdxtools"));
    step::run(validate.arg("--infile").arg(list))
}

/// The texts of the licences of all that is from elsewhere.
pub fn licences(release: &Release) -> Result<String> {
    let crates = Crates::of(release)?;
    let mut text = String::new();
    for part in &crates.parts {
        let file = release.root.join(part.text);
        text += &heading(part.name, &part.version, part.license);
        text += &body(&files::read(&file)?);
    }
    for package in crates.packages.values() {
        let folder = package.manifest_path.parent().context("a manifest")?;
        if package.source.is_none() {
            continue;
        }
        let licence = package.license.as_deref().unwrap_or("see below");
        text += &heading(&package.name, &package.version, licence);
        for name in super::names(folder)? {
            if is_licence(&name) && folder.join(&name).is_file() {
                let octets = fs::read(folder.join(&name))?;
                text += &body(&String::from_utf8_lossy(&octets));
            }
        }
    }
    Ok(text)
}

fn heading(name: &str, version: &str, licence: &str) -> String {
    format!("{}\n{name} {version}: {licence}\n", "=".repeat(80))
}

fn body(licence: &str) -> String {
    format!("{}\n{}\n", "-".repeat(80), licence.trim_end())
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

/// Parts that the programs are made of.
struct Crates {
    /// By name and version.
    packages: BTreeMap<(String, String), Package>,
    /// SPDX ids of a crate and of one that it needs.
    edges: BTreeSet<(String, String)>,
    /// SHA-256 of a crate's archive by name and version.
    sums: BTreeMap<(String, String), String>,
    parts: Vec<Part>,
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
        let version =
            |toolchain: Toolchain| step::output(Command::new(toolchain.rustc).arg("--version"));
        let bpf = Toolchain::find().map(version).transpose()?;
        let mut crates = Self::select(metadata, sums(&lock));
        crates.parts = parts(&rustc, bpf.as_deref());
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
            parts: Vec::new(),
            compiler: String::new(),
        }
    }

    fn document(&self, epoch: u64, date: &str) -> Value {
        let packages: Vec<Value> = self
            .packages
            .values()
            .map(|one| self.package(one))
            .chain(self.parts.iter().map(Part::package))
            .collect();
        let root = |name| self.packages.values().find(move |one| one.name == name);
        let parts = self.parts.iter().filter_map(|part| {
            let (within, how) = part.within;
            Some(relationship(&spdx_id(root(within)?), how, &part.spdx_id()))
        });
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
            "relationships": describes.chain(edges).chain(parts).collect::<Vec<_>>(),
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
        let mut value = entry(&spdx_id(package), name, version, &license, "NOASSERTION");
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

impl Part {
    fn spdx_id(&self) -> String {
        format!("SPDXRef-Part-{}", self.name)
    }

    fn package(&self) -> Value {
        entry(
            &self.spdx_id(),
            self.name,
            &self.version,
            self.license,
            self.copyright,
        )
    }
}

/// A package in the words of SPDX.
fn entry(id: &str, name: &str, version: &str, license: &str, copyright: &str) -> Value {
    json!({
        "SPDXID": id,
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": license,
        "copyrightText": copyright,
    })
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
            "open-traffic-generator-model",
            "rust-std",
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
            // Cargo knows no sum of them.
            let own = [
                "pfc-user",
                "pfc-ebpf",
                "validator-core",
                "validator-otg",
                "ib-mad",
                "open-traffic-generator-model",
                "rust-std",
                "rust-core",
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
        for part in &crates.parts {
            let is_its = |one: &&Value| one["relatedSpdxElement"] == part.spdx_id().as_str();
            assert_eq!(
                relationships.iter().filter(is_its).count(),
                1,
                "{}",
                part.name
            );
        }
        let texts = licences(&release).unwrap();
        assert!(texts.contains("\naya 0.14.0: MIT OR Apache-2.0\n"));
        assert!(texts.contains("Permission is hereby granted"));
        assert!(texts.contains("\nopen-traffic-generator-model 1.62.0: MIT\n"));
        assert!(texts.contains("Copyright (c) 2021 Open Traffic Generator\n"));
        assert!(texts.contains("\nrust-std 1."));
    }

    #[test]
    fn parts_are_those_of_the_tree_and_of_the_compilers() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let model = fs::read_to_string(root.join("pfc-user/otg/src/model.rs")).unwrap();
        assert!(model.contains(&format!("VERSION: &str = \"{MODEL_VERSION}\";")));
        let parts = parts(
            "rustc 1.95.0 (59807616e 2026-04-14)",
            Some("rustc 1.97.0-nightly (x)"),
        );
        let versions: Vec<_> = parts.iter().map(|part| part.version.as_str()).collect();
        assert_eq!(versions, [MODEL_VERSION, "1.95.0", "1.97.0-nightly"]);
        let licence = fs::read_to_string(root.join(parts[0].text)).unwrap();
        assert!(licence.contains(parts[0].copyright));
    }

    /// A licence that is no crate's own belongs to something of others', which has to be a part.
    #[test]
    fn every_licence_in_the_tree_is_that_of_a_part_or_our_own() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        if !root.join(".git").exists() {
            return println!("skipped: needs a clone");
        }
        let mut list = crate::workspace::git(root);
        list.args(["ls-files", "*LICENSE*", "*COPYING*", "*NOTICE*"]);
        let listed = step::output(&mut list).unwrap();
        let own = |file: &&str| {
            ["LICENSE-MIT", "LICENSE-APACHE"].iter().any(|name| {
                file.ends_with(name)
                    && fs::read(root.join(file)).unwrap() == fs::read(root.join(name)).unwrap()
            })
        };
        let foreign: BTreeSet<_> = listed
            .lines()
            .filter(|file| !own(file))
            .map(str::to_owned)
            .collect();
        let parts = parts("", None);
        let mut texts: BTreeSet<_> = parts.iter().map(|part| part.text.to_owned()).collect();
        texts.remove("LICENSE-APACHE");
        assert_eq!(foreign, texts);
    }

    #[test]
    fn sums_are_of_crates_from_elsewhere() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
                    checksum = \"0af1\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let expected = [(("a".to_owned(), "1.0.0".to_owned()), "0af1".to_owned())];
        assert_eq!(sums(lock), BTreeMap::from(expected));
    }
}
