//! The process of `validator otg`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use nix::sys::signal::{SigSet, Signal};
use validator_otg::{Access, Certificates, Options, Places, Server, Tls};

use super::args::OtgArgs;
use crate::agent::process::until_signal;
use crate::config;
use crate::driver::bringup::journal::Journal;
use crate::engine::{self, LiveEngine};
use crate::output;

/// Puts back what a killed server left changed, and serves clients until SIGTERM or SIGINT. Writes
/// the addresses to `stdout` as soon as they can connect.
///
/// Handles signals, so that the calling thread should be the only one of its process.
///
/// # Errors
///
/// A file of the arguments that cannot be used, addresses that cannot be listened on, and no
/// engine.
pub fn main(args: &OtgArgs, mut stdout: impl Write) -> Result<()> {
    let places = match &args.testbed {
        Some(file) => config::otg::load(file)?,
        None => Places::default(),
    };
    let access = access(args)?;
    let tls = tls(args)?;
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
            tls,
            lease: Duration::from_nanos(args.lease.0),
            warn: |text| output::note(format_args!("validator: {text}")),
        })
        .await?;
        for line in Journal::open().recover()? {
            output::note(format_args!("validator: {line}"));
        }
        let engine = LiveEngine::new(engine::Options::default())
            .map_err(|problem| Error::msg(problem.to_string()))?;
        let (grpc, http) = server.addresses()?;
        writeln!(
            stdout,
            "ready: gRPC {grpc}, HTTP http://{http} and https://{http}"
        )?;
        stdout.flush()?;
        let engine = Box::new(engine);
        server.run(engine, places, until_signal(signals)).await;
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
        .map_err(Error::msg)
        .with_context(|| file.display().to_string())
}

fn tls(args: &OtgArgs) -> Result<Tls> {
    let read = |file: &PathBuf| {
        fs::read(file).with_context(|| format!("{} cannot be read", file.display()))
    };
    let own = match (&args.cert, &args.key) {
        (Some(chain), Some(key)) => Some([read(chain)?, read(key)?]),
        // clap takes neither without the other.
        _ => None,
    };
    let clients = args.client_ca.as_ref().map(read).transpose()?;
    let files = [&args.cert, &args.key, &args.client_ca]
        .into_iter()
        .flatten();
    let files: Vec<_> = files.map(|file| file.display().to_string()).collect();
    Tls::new(&Certificates { own, clients })
        .map_err(Error::msg)
        .with_context(|| format!("certificates: {}", files.join(", ")))
}
