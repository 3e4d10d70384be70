//! Writes a page of each family on a good, a failing and an inconclusive device, from the corpus of
//! evidence. The tests in a browser look at them.
//!
//! ```text
//! cargo run -p validator-core --example pages -- DIR
//! ```

#[path = "../tests/common/pages.rs"]
mod pages;

use std::path::Path;
use std::{env, fs};

use validator_core::verdict::Exit;
use validator_core::{cases, report};

fn main() {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [folder] = &arguments[..] else {
        panic!("expected one directory, found {}", arguments.len());
    };
    let folder = Path::new(folder);
    fs::create_dir_all(folder).expect("a directory that can be made");
    for (name, evidence) in pages::samples() {
        let results = cases::judge(&evidence);
        let exit = Exit::of(&results, evidence.interrupted);
        let page = report::html::page(&evidence, &results, exit);
        fs::write(folder.join(format!("{name}.html")), page).expect("a file that can be written");
        println!("{name}.html");
    }
}
