//! The process of `validator otg`.

use std::fs;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};
use validator_otg::{Access, Options, Places, Server};

use super::args::OtgArgs;
use super::engine;
use crate::agent::process::until_signal;
use crate::config;

/// Serves clients until SIGTERM or SIGINT. Writes the addresses to `stdout` as soon as they can
/// connect.
///
/// Handles signals, so that the calling thread should be the only one of its process.
///
/// # Errors
///
/// A testbed or token file that cannot be used, addresses that cannot be listened on, and no
/// engine.
pub fn main(args: &OtgArgs, mut stdout: impl Write) -> Result<()> {
    let places = match &args.testbed {
        Some(file) => config::otg::load(file)?,
        None => Places::default(),
    };
    let access = access(args)?;
    // Blocked until there are handlers, so that no signal after the addresses is lost.
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    signals
        .thread_block()
        .context("SIGINT and SIGTERM cannot be blocked")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the server's runtime cannot be made")?;
    runtime.block_on(async {
        let server = Server::bind(Options {
            grpc: args.grpc,
            http: args.http,
            access,
            lease: Duration::from_nanos(args.lease),
            tell: |text| eprintln!("validator: {text}"),
        })
        .await?;
        let engine = engine::open()?;
        let (grpc, http) = server.addresses()?;
        writeln!(
            stdout,
            "ready: gRPC {grpc}, HTTP http://{http} and https://{http}"
        )?;
        stdout.flush()?;
        server.run(engine, places, until_signal(signals)).await?;
        Ok(())
    })
}

fn access(args: &OtgArgs) -> Result<Access> {
    let Some(file) = &args.token_file else {
        return Ok(Access::open());
    };
    let text = fs::read_to_string(file)
        .with_context(|| format!("the token cannot be read from {}", file.display()))?;
    Access::token(&text)
        .map_err(anyhow::Error::msg)
        .with_context(|| file.display().to_string())
}
