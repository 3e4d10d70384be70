//! Network namespaces without names for a thread, and for the programs that it starts.

use std::thread;

use anyhow::{Context, Result, anyhow};
use nix::sched::{CloneFlags, unshare};

/// Runs `work` on a thread in a namespace of its own; programs that it starts are in it too.
pub fn in_namespace<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).context("cannot make a network namespace")?;
            work()
        });
        inside
            .join()
            .unwrap_or_else(|_| Err(anyhow!("the lab's thread panicked")))
    })
}
