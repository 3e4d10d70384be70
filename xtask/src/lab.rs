//! `cargo xtask lab`: devices, kernels and network cards that this machine does not have, in
//! virtual machines.

pub mod archive;
mod browser;
pub mod chromium;
mod events;
mod fleet;
mod guest;
mod initrd;
mod kernel;
mod modules;
pub mod namespace;
pub mod network;
mod nic;
pub mod otg;
pub mod packages;
mod prometheus;
pub mod python;
pub mod rxe;
mod script;
pub mod userspace;

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
    /// Every BPF program on every kernel of the range, in QEMU with virtual time
    Kernel(kernel::KernelLab),
    /// Drivers of real network cards in QEMU with virtual time: check, watch and PFC cases
    Nic(nic::NicLab),
    /// Clients of the Open Traffic Generator API against `validator otg` (as root)
    Otg(otg::Otg),
    /// Debian's Prometheus on 20 exporters: its alerts fire for what is planted, and clear (as
    /// root)
    Fleet(fleet::FleetLab),
    /// Setup and demo as on a freshly installed machine, in chroots (as root)
    Userspace(userspace::Userspace),
    /// Part of `cargo xtask test`: rdma_rxe
    #[command(hide = true)]
    TestRxe,
    /// Part of `cargo xtask test`: boots kernels
    #[command(hide = true)]
    TestKernel {
        #[arg(value_enum)]
        kernels: Vec<packages::Kernel>,
    },
    /// Part of `cargo xtask test`: a driver of a real network card
    #[command(hide = true)]
    TestNic,
    /// Part of `cargo xtask test`: snappi against `validator otg`
    #[command(hide = true)]
    TestOtg,
    /// Part of `cargo xtask test --full`: pages in a browser
    #[command(hide = true)]
    TestBrowser,
    /// Part of `cargo xtask test --full`: the fleet
    #[command(hide = true)]
    TestFleet,
    /// Part of `cargo xtask test`: rules and queries for Prometheus
    #[command(hide = true)]
    TestPrometheus,
}

/// Returns the validator's own exit code.
pub fn run(root: &Path, lab: &Lab) -> Result<ExitCode> {
    match &lab.device {
        Device::Rxe(options) => rxe::run(root, options),
        Device::Kernel(options) => kernel::run(root, options),
        Device::Userspace(options) => userspace::run(root, options),
        Device::Otg(options) => otg::run(root, options),
        Device::TestOtg => otg::smoke::test(root),
        Device::TestRxe => rxe::test(root),
        Device::Nic(options) => nic::run(root, options),
        Device::TestNic => nic::test_one(root),
        Device::TestBrowser => browser::test(root),
        Device::Fleet(options) => fleet::run(root, options),
        Device::TestFleet => fleet::test(root),
        Device::TestPrometheus => prometheus::test(root),
        Device::TestKernel { kernels } => kernel::test(root, kernels),
    }
}
