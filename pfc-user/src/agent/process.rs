//! `validator agent`.

use std::env::{self, VarError};
use std::fs;
use std::io::Write;
use std::net::TcpListener;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{SigSet, Signal};
use tokio::signal::unix::{SignalKind, signal};

use super::args::{AgentArgs, TOKEN_VARIABLE};
use super::backend::{Backend, Selection};
use super::protocol::Failure;
use super::server::{self, ServerOptions};

/// `validator agent`: serves testers with real verbs until SIGTERM or SIGINT.
///
/// # Errors
/// Fails as [`run`] does, and in a build without verbs.
pub fn main(args: &AgentArgs, stdout: impl Write) -> Result<()> {
    run(args, open, stdout)
}

/// Serves testers until SIGTERM or SIGINT. Writes a line `ready: ADDRESS` to `stdout` as soon as
/// they can connect.
///
/// Handles signals, so that the calling thread should be the only one of its process.
///
/// # Errors
/// Fails if the token cannot be read, if there is none and the address is not loopback, without
/// such an adapter, and if the address cannot be bound.
pub fn run(
    args: &AgentArgs,
    mut open: impl FnMut(&Selection) -> Result<Box<dyn Backend>, Failure> + Send,
    mut stdout: impl Write,
) -> Result<()> {
    let token = token(args)?;
    if token.is_none() && !args.listen.ip().is_loopback() {
        bail!(
            "on {} anyone who reaches this host could use its adapter: set a token by --token-file \
             or {TOKEN_VARIABLE}, here and for the tester, or listen on 127.0.0.1",
            args.listen
        );
    }
    // Blocked until there are handlers, so that no signal after `ready` is lost.
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    signals
        .thread_block()
        .context("SIGINT and SIGTERM cannot be blocked")?;
    let selection = args.selection();
    // Report a missing adapter now rather than to the first tester.
    drop(open(&selection)?);
    let listener = TcpListener::bind(args.listen)
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = listener
        .local_addr()
        .context("the agent's address cannot be read")?;
    writeln!(stdout, "ready: {address}")?;
    stdout.flush()?;
    server::serve(
        listener,
        ServerOptions {
            token,
            ..ServerOptions::default()
        },
        move || open(&selection),
        until_signal(signals),
    )
}

/// Returns at the first signal, or at once if signals cannot be received.
pub(crate) async fn until_signal(signals: SigSet) {
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return;
    };
    if signals.thread_unblock().is_ok() {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

fn token(args: &AgentArgs) -> Result<Option<String>> {
    let (token, source) = if let Some(file) = &args.token_file {
        (
            fs::read_to_string(file)
                .with_context(|| format!("the token cannot be read from {}", file.display()))?,
            file.display().to_string(),
        )
    } else {
        match env::var(TOKEN_VARIABLE) {
            Ok(token) => (token, TOKEN_VARIABLE.into()),
            Err(VarError::NotPresent) => return Ok(None),
            Err(VarError::NotUnicode(_)) => {
                bail!("{TOKEN_VARIABLE}: expected text, found octets that are no UTF-8")
            }
        }
    };
    let token = token.trim();
    ensure!(
        !token.is_empty(),
        "{source}: expected a token, found nothing"
    );
    Ok(Some(token.to_owned()))
}

#[cfg(feature = "verbs")]
fn open(selection: &Selection) -> Result<Box<dyn Backend>, Failure> {
    Ok(Box::new(super::verbs::VerbsBackend::new(selection)?))
}

#[cfg(not(feature = "verbs"))]
fn open(_: &Selection) -> Result<Box<dyn Backend>, Failure> {
    Err(Failure::new(
        super::protocol::FailureKind::NoDevice,
        "this validator was built without verbs, which its agent needs: build it with `cargo build \
         --release --features verbs`",
    ))
}
