//! Measures frames on a veth pair: receivers side by side, senders side by side, and how ours scale
//! with flows, queues and length. `cargo bench -p pfc-user --bench wire [--
//! receivers|cross|senders|growth|endurance]`, as root.
//!
//! All runs are interleaved: each round has every contender once. The sender has the first CPU; a
//! process at the other end has the last one. The kernel's work for a frame happens on the sender's
//! CPU. Only in `cross` does the kernel's part of receiving happen on the last CPU.

#[path = "../common/mod.rs"]
mod common;
mod growth;
mod link;
#[path = "../common/live.rs"]
mod live;
#[path = "../../tests/common/napi.rs"]
mod napi;
mod ours;
mod peer;
mod receiver;
mod receivers;
mod senders;

use std::env;
use std::process::ExitCode;

use anyhow::Result;
use common::{Extent, Report};

const REPORT: Report = Report("wire");

type Section = (&'static str, fn(Extent) -> Result<()>);

const SECTIONS: [Section; 5] = [
    ("receivers", receivers::run),
    ("cross", receivers::cross),
    ("senders", senders::run),
    ("growth", growth::run),
    ("endurance", growth::endurance),
];

fn main() -> ExitCode {
    // cargo adds --bench.
    let asked: Vec<String> = env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if !nix::unistd::geteuid().is_root() {
        REPORT.skip("all", "needs root, for network namespaces and XDP");
        return ExitCode::SUCCESS;
    }
    let mut code = ExitCode::SUCCESS;
    for (name, section) in SECTIONS {
        if !asked.is_empty() && !asked.iter().any(|asked| asked == name) {
            continue;
        }
        println!("{name}");
        if let Err(error) = section(Extent::asked()) {
            eprintln!("error in {name}: {error:#}");
            code = ExitCode::FAILURE;
        }
    }
    code
}
