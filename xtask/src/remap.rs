//! Paths of this machine, replaced by fixed ones in what is built: the same source then gives the
//! same octets in whatever folder.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Places of the workspace, of cargo's folder, and of the crates in it.
const WORKSPACE: &str = "/usr/src/validator";
const CARGO: &str = "/usr/src/cargo";
const CRATES: &str = "/usr/src/crates";

/// Each folder, and the path to write in its place. Of several that apply, the last counts.
pub fn folders(root: &Path) -> Vec<(PathBuf, &'static str)> {
    let home = cargo_home();
    let mut folders = vec![(home.clone(), CARGO)];
    // One folder a registry. Its name has a hash of the registry's address, which a mirror changes.
    // One without a host is `cargo package`'s own, for the crates of a workspace.
    let registries = fs::read_dir(home.join("registry/src"));
    let mut registries: Vec<PathBuf> = registries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('-'))
        .map(|entry| entry.path())
        .collect();
    registries.sort();
    folders.extend(registries.into_iter().map(|folder| (folder, CRATES)));
    folders.push((root.to_owned(), WORKSPACE));
    folders
}

/// Options of rustc.
pub fn of_rustc(root: &Path) -> Vec<String> {
    let option =
        |(from, to): (PathBuf, &str)| format!("--remap-path-prefix={}={to}", from.display());
    folders(root).into_iter().map(option).collect()
}

/// Options of rustc in one line, for variables that split it at spaces. Leaves out folders with
/// spaces in their names.
pub fn in_words(root: &Path) -> String {
    let mut options = of_rustc(root);
    options.retain(|option| !option.contains(char::is_whitespace));
    options.join(" ")
}

/// Options of a C compiler in one line.
pub fn of_cc(root: &Path) -> String {
    let option = |(from, to): (PathBuf, &str)| {
        let option = format!("-ffile-prefix-map={}={to}", from.display());
        (!option.contains(char::is_whitespace)).then_some(option)
    };
    let options: Vec<_> = folders(root).into_iter().filter_map(option).collect();
    options.join(" ")
}

fn cargo_home() -> PathBuf {
    let set = env::var_os("CARGO_HOME").map(PathBuf::from);
    set.unwrap_or_else(|| {
        let home = env::var_os("HOME").unwrap_or_default();
        PathBuf::from(home).join(".cargo")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_counts_where_it_lies_in_another_folder() {
        let root = cargo_home().join("work space");
        let options = of_rustc(&root);
        let last = format!("--remap-path-prefix={}={WORKSPACE}", root.display());
        assert_eq!(options.last(), Some(&last));
        assert!(options.len() >= 2);
        // Its name would become two words.
        assert!(!in_words(&root).contains(WORKSPACE));
        assert!(!of_cc(&root).contains(WORKSPACE));
        assert!(of_cc(Path::new("/x")).ends_with("-ffile-prefix-map=/x=/usr/src/validator"));
    }
}
