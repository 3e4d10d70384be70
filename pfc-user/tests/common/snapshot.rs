//! Texts that the tests compare with files in `tests/snapshots`.
//!
//! A test whose text differs names the first line that does. Where the change is meant, write the
//! files again and read the difference in git:
//!
//! ```sh
//! VALIDATOR_RECORD=snapshots cargo test -p pfc-user --test rules
//! ```

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The file of that name.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(name)
}

/// Asserts that the file of that name has this text, or writes it there where that is asked for.
pub fn check(name: &str, found: &str) {
    let path = path(name);
    if env::var("VALIDATOR_RECORD").is_ok_and(|what| what == "snapshots") {
        return fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let differs = |(number, found): &(usize, &str)| expected.lines().nth(*number) != Some(found);
    if let Some((number, found)) = found.lines().enumerate().find(differs) {
        panic!(
            "{name}:{}\n   found {found}\nexpected {}\n\
             (VALIDATOR_RECORD=snapshots writes the file again)",
            number + 1,
            expected.lines().nth(number).unwrap_or("no such line"),
        );
    }
    assert_eq!(found, expected, "{name} has more than was found");
}
