//! The book's generated pages are what the code says.
//!
//! lane: computing

use std::fs;
use std::path::Path;

#[test]
fn generated_pages_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference");
    let pages = validator::docs::pages().unwrap();
    for (name, text) in &pages {
        let found = fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(
            found == *text,
            "docs/reference/{name} is not what the code says: run cargo xtask docs"
        );
    }
    let there = fs::read_dir(&folder).unwrap().count();
    assert_eq!(
        there,
        pages.len(),
        "a page in docs/reference is not generated"
    );
}
