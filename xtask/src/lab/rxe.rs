//! Prerequisites of the tests and the lab of rdma_rxe.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::step::{self, step};
use crate::test::suite;

/// Fails with the reason if the labs in QEMU cannot run here.
pub fn check_machine() -> Result<()> {
    if !step::is_root() {
        bail!(
            "the lab needs root: it makes a network namespace and a tap; run it with sudo or as \
             root"
        );
    }
    if !cfg!(target_arch = "x86_64") {
        bail!("the lab's kernel and QEMU are Debian's for x86-64, and this machine is another");
    }
    if !Path::new("/dev/net/tun").exists() {
        bail!(
            "there is no /dev/net/tun, which the link to the guest needs: `modprobe tun`, or allow \
             the container to use it"
        );
    }
    Ok(())
}

/// Builds the validator with verbs for the guest, `target/suite/validator`.
pub fn build_agent(root: &Path) -> Result<()> {
    step("validator with verbs, for the guest", || {
        step::run(&mut agent_build(root))
    })
}

/// Returns the command that builds it as the tests do, which need it as well. With `cargo build`
/// the dependencies would have other features, and all be built once more.
pub fn agent_build(root: &Path) -> Command {
    let mut cargo = step::cargo();
    cargo
        .args(["test", "--no-run", "--test", "cases"])
        .args(suite::with(suite::VERBS))
        .current_dir(root);
    cargo
}
