//! The crates for a registry, in the order in which they are published.
//!
//! They are packaged from a copy of the tree, for two things differ there: the crate of the program
//! has the compiled XDP programs in it, so that nobody needs eBPF tools to install it, and a name
//! that is free.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Release, empty};
use crate::build_ebpf::{PROGRAMS, TRACED};
use crate::workspace::VERSION;
use crate::{step, workspace};

/// Each needs those before it.
const PUBLISHED: [&str; 5] = [
    "ib-mad",
    "pfc-ebpf",
    "validator-core",
    "validator-otg",
    PROGRAM,
];
/// The published name of `pfc-user`.
const PROGRAM: &str = "lossless-validator";

/// The objects that the program includes.
fn objects() -> impl Iterator<Item = &'static str> {
    let plain = PROGRAMS.into_iter().filter(|name| *name != "bench");
    plain.chain(TRACED.map(|(_, object)| object))
}

/// Makes the crates without compiling them. The XDP programs must have been built.
pub fn write(release: &Release) -> Result<()> {
    let tree = stage(release)?;
    step::run(&mut cargo(&tree))?;
    for name in PUBLISHED {
        let file = format!("{name}-{VERSION}.crate");
        let made = tree.join("target/package").join(&file);
        fs::copy(&made, release.out().join(&file))
            .with_context(|| format!("cannot copy {}", made.display()))?;
    }
    Ok(())
}

/// Makes the crates, and compiles each and its examples as a registry would hand it out. They lie in
/// a workspace of their own, so that each finds the others, and none a file outside its crate. Cargo
/// would compile them too, but takes what it once unpacked of a crate for any later one of the same
/// version, and leaves the examples out.
pub fn verify(release: &Release) -> Result<()> {
    let tree = stage(release)?;
    step::run(&mut cargo(&tree))?;
    let folder = &release.work.join("unpacked");
    empty(folder)?;
    for name in PUBLISHED {
        let file = tree.join(format!("target/package/{name}-{VERSION}.crate"));
        let mut unpack = Command::new("tar");
        step::run(unpack.arg("-xf").arg(file).arg("-C").arg(folder))?;
    }
    let manifest = folder.join("Cargo.toml");
    fs::write(&manifest, unpacked())
        .with_context(|| format!("cannot write {}", manifest.display()))?;
    // The versions are those of the tree.
    fs::copy(tree.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    // One by one: together, a crate would get the features that another asks for.
    for name in PUBLISHED {
        let mut cargo = step::cargo();
        cargo.args(["check", "--quiet", "--lib", "--bins", "--examples"]);
        cargo.arg("--package").arg(name);
        cargo.arg("--target-dir").arg(tree.join("target"));
        step::run(cargo.current_dir(folder))?;
    }
    Ok(())
}

/// The manifest of a workspace of the unpacked crates.
fn unpacked() -> String {
    let mut members = String::new();
    let mut sources = String::new();
    for name in PUBLISHED {
        members += &format!("    \"{name}-{VERSION}\",\n");
        sources += &format!("{name} = {{ path = \"{name}-{VERSION}\" }}\n");
    }
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\n{members}]\n\n[patch.crates-io]\n{sources}"
    )
}

fn cargo(tree: &Path) -> Command {
    let mut cargo = step::cargo();
    // The tree is no commit, and cargo writes the program's new name into its lock file.
    cargo.args([
        "package",
        "--quiet",
        "--allow-dirty",
        "--no-verify",
        "--target-dir",
        "target",
    ]);
    cargo.args(PUBLISHED.iter().flat_map(|name| ["--package", name]));
    cargo.current_dir(tree);
    cargo
}

/// Copies the tree and returns its folder.
fn stage(release: &Release) -> Result<PathBuf> {
    let tree = release.work.join("crates");
    empty(&tree)?;
    workspace::copy(release.root, &tree)?;
    let package = tree.join("pfc-user");
    empty(&package.join("objects"))?;
    for object in objects() {
        let from = release.root.join("target/ebpf-object").join(object);
        fs::copy(&from, package.join("objects").join(object))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let manifest = package.join("Cargo.toml");
    let text = renamed(&fs::read_to_string(&manifest)?)?;
    fs::write(&manifest, text).with_context(|| format!("cannot write {}", manifest.display()))?;
    Ok(tree)
}

/// The program's manifest under its published name.
fn renamed(manifest: &str) -> Result<String> {
    const OWN: &str = "[package]\nname = \"pfc-user\"\n";
    if !manifest.starts_with(OWN) {
        bail!("pfc-user/Cargo.toml: expected it to begin with the package's name");
    }
    Ok(manifest.replacen("pfc-user", PROGRAM, 1))
}

#[cfg(test)]
mod tests {
    use super::super::build::FEATURES;
    use super::*;

    /// Folders of the crates, in their order.
    const FOLDERS: [&str; PUBLISHED.len()] = [
        "ib-mad",
        "pfc-ebpf",
        "pfc-user/core",
        "pfc-user/otg",
        "pfc-user",
    ];

    fn read(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn each_crate_has_what_a_registry_asks_for() {
        for folder in FOLDERS {
            let manifest = read(&format!("{folder}/Cargo.toml"));
            for key in [
                "description = ",
                "license.workspace",
                "readme = ",
                "keywords = [",
            ] {
                assert!(manifest.contains(key), "{folder} has no {key}");
            }
            assert!(
                !manifest.contains("path = \"../"),
                "{folder} names no version of a crate"
            );
            for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
                assert_eq!(read(&format!("{folder}/{file}")), read(file));
            }
            assert!(!read(&format!("{folder}/README.md")).is_empty());
        }
        let program = renamed(&read("pfc-user/Cargo.toml")).unwrap();
        assert!(program.starts_with("[package]\nname = \"lossless-validator\"\n"));
        // Readers of the crate's page get what is in the package.
        let install = format!("cargo install {PROGRAM} --features {FEATURES}\n");
        assert!(read("pfc-user/README.md").contains(&install), "{install}");
    }

    /// A notice, which only says where the licence is, would do for neither registry nor licence.
    #[test]
    fn the_licences_are_whole() {
        let apache = read("LICENSE-APACHE");
        assert!(apache.len() > 10_000, "{} octets", apache.len());
        for part in [
            "Version 2.0, January 2004",
            "2. Grant of Copyright License.",
            "9. Accepting Warranty or Additional Liability.",
            "END OF TERMS AND CONDITIONS",
        ] {
            assert!(apache.contains(part), "LICENSE-APACHE: {part}");
        }
        let mit = read("LICENSE-MIT");
        for part in [
            "Permission is hereby granted",
            "WITHOUT WARRANTY OF ANY KIND",
        ] {
            assert!(mit.contains(part), "LICENSE-MIT: {part}");
        }
    }

    /// Names of crates in the table of a page's section, in order.
    fn listed(page: &str) -> Vec<&str> {
        let (_, section) = page.split_once("\n## Crates\n").unwrap();
        let section = section.split("\n## ").next().unwrap();
        section
            .lines()
            .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0))
            .collect()
    }

    #[test]
    fn the_page_has_the_crates_in_the_order_in_which_they_are_published() {
        assert_eq!(listed(&read("docs/packages.md")), PUBLISHED);
        let page = "\n## Crates\n| crate | x |\n|---|---|\n| `b` | 1 |\n| `a` | 2 |\n## C\n| `c` |";
        assert_eq!(listed(page), ["b", "a"]);
    }

    /// Each needs only those before it, by the manifests.
    #[test]
    fn each_crate_is_published_after_those_that_it_needs() {
        for (place, folder) in FOLDERS.iter().enumerate() {
            let manifest = read(&format!("{folder}/Cargo.toml"));
            for later in &PUBLISHED[place..] {
                assert!(
                    !manifest.lines().any(|line| {
                        line.starts_with(&format!("{later}.workspace"))
                            || line.starts_with(&format!("{later} = "))
                    }),
                    "{folder} needs {later}, which is published later"
                );
            }
        }
    }

    #[test]
    fn versions_are_those_of_the_workspace() {
        let manifest = read("Cargo.toml");
        assert!(manifest.contains(&format!("\nversion = \"{VERSION}\"\n")));
        for name in ["ib-mad", "pfc-ebpf", "validator-core", "validator-otg"] {
            let line = manifest
                .lines()
                .find(|line| line.starts_with(&format!("{name} = ")))
                .unwrap_or_else(|| panic!("{name} is no dependency of the workspace"));
            assert!(line.contains(&format!("version = \"{VERSION}\"")), "{line}");
        }
    }

    #[test]
    fn the_objects_are_those_that_the_program_includes() {
        let script = read("pfc-user/build.rs");
        for object in objects() {
            assert!(script.contains(&format!("\"{object}\"")), "{object}");
        }
        assert_eq!(script.matches("        \"").count(), objects().count());
    }
}
