//! `cargo xtask`: sets up, builds, shows and tests the validator. `cargo xtask help` lists
//! commands.

mod bench;
mod build_ebpf;
mod demo;
mod dist;
mod docs;
mod files;
mod lab;
mod portable;
mod remap;
mod screenshots;
mod setup;
mod step;
mod test;
mod toolchain;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Sets up, builds, shows and tests the validator"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what is missing to build and test, saying what and why
    Setup(setup::Install),
    /// Build the XDP programs and target/release/validator with them in it
    BuildEbpf,
    /// Set up, build, and run cases on the simulated devices (as root)
    Demo(demo::Demo),
    /// Run in QEMU or chroots: soft-RoCE, kernels, network cards, fresh systems (as root)
    Lab(lab::Lab),
    /// Set up, build, and run every benchmark
    Bench(bench::Bench),
    /// Build what others install: Debian packages and crates, reproducibly
    Dist(dist::Dist),
    /// Write the generated pages of the book, check its links, and build it
    Docs(docs::Docs),
    /// Make the pictures of the documentation, from real runs (as root)
    Screenshots(screenshots::Screenshots),
    /// Set up, build, and run every test; what needs root is skipped without it
    Test(test::Test),
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let done = match Arguments::parse().command {
        Command::Setup(options) => {
            setup::run(&setup::EVERYTHING, &options).map(|()| ExitCode::SUCCESS)
        }
        Command::BuildEbpf => build_ebpf::run(root).map(|()| ExitCode::SUCCESS),
        Command::Demo(options) => demo::run(root, &options),
        Command::Lab(options) => lab::run(root, &options),
        Command::Bench(options) => bench::run(root, &options),
        Command::Dist(options) => dist::run(root, &options),
        Command::Docs(options) => docs::run(root, &options).map(|()| ExitCode::SUCCESS),
        Command::Screenshots(options) => screenshots::run(root, &options),
        Command::Test(options) => test::run(root, &options),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments_are_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_demo_passes_on_what_is_not_its_own() {
        let arguments = Arguments::parse_from([
            "xtask",
            "demo",
            "--no-install",
            "--out",
            "x",
            "--no-install",
        ]);
        let Command::Demo(demo) = arguments.command else {
            panic!("another command")
        };
        assert!(demo.setup.no_install);
        assert_eq!(demo.arguments, ["--out", "x", "--no-install"]);
    }
}
