//! The closing line of a lab.

use anyhow::{Result, bail};

/// Prints the failures and a closing line like libtest's. Fails if there are any.
pub fn close(passed: usize, failed: &[String]) -> Result<()> {
    for line in failed {
        println!("failed: {line}");
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "test result: {word}. {passed} passed; {} failed; 0 ignored",
        failed.len()
    );
    if !failed.is_empty() {
        bail!("{} of the lab's steps failed", failed.len());
    }
    Ok(())
}
