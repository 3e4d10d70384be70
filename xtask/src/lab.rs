//! `cargo xtask lab`: devices under test that this machine does not have, in a virtual machine.

mod events;
mod guest;
mod initrd;
mod modules;
mod network;
mod packages;
pub mod rxe;
mod userspace;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

#[derive(clap::Args)]
pub struct Lab {
    #[command(subcommand)]
    device: Device,
}

#[derive(clap::Subcommand)]
enum Device {
    /// Soft-RoCE (rdma_rxe) of Debian's stock kernel in QEMU, for the RC cases (as root)
    Rxe(rxe::Rxe),
    /// Setup and demo as on a machine that has just been installed, in chroots (as root)
    Userspace(userspace::Userspace),
    /// The part of `cargo xtask test` that needs it
    #[command(hide = true)]
    TestRxe,
}

/// Ends with the validator's own exit code.
pub fn run(root: &Path, lab: &Lab) -> Result<ExitCode> {
    match &lab.device {
        Device::Rxe(options) => rxe::run(root, options),
        Device::Userspace(options) => userspace::run(root, options),
        Device::TestRxe => rxe::test(root),
    }
}
