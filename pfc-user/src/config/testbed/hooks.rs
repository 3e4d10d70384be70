//! Commands of the user.

use pfc_ebpf::units::SECOND;
use serde::Deserialize;
use validator_core::keys;
use validator_core::plan::Nanos;
use validator_core::quantity::Span;

use crate::config::ConfigError;
use crate::config::constraints::positive;
use crate::config::document::Document;

/// Commands of the user, run by the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// Makes the DUT ready, once.
    pub prepare: Option<String>,
    /// Makes the priorities of `VALIDATOR_LOSSLESS` (such as `3,4`) lossless on the DUT.
    pub configure: Option<String>,
    /// Prints the DUT's counters.
    pub counters: Option<String>,
    /// Puts back what the others have changed.
    pub restore: Option<String>,
    /// Longest time for each.
    pub timeout: Nanos,
}

impl Hooks {
    /// True if there is one.
    pub(in crate::config) fn any(&self) -> bool {
        let all = [
            &self.prepare,
            &self.configure,
            &self.counters,
            &self.restore,
        ];
        all.iter().any(|hook| hook.is_some())
    }
}

keys::table! {
    /// Commands of the user, run by the shell, with what they are run for in variables of the
    /// environment.
    #[derive(Default, Deserialize)]
    pub(super) struct Table: "hooks", "hooks." {
        /// Makes the DUT ready, once, before anything is measured. Of JSON that it prints,
        /// `"watchdog": "off"` stands for `facts.watchdog`.
        prepare: Option<String> = "command", "";
        /// Makes the priorities of `VALIDATOR_LOSSLESS` (such as `3,4`) lossless on the DUT, before
        /// each repetition. One that it fails for is `inconclusive`.
        configure: Option<String> = "command", "";
        /// Prints the DUT's counters, before and after each repetition. Of whole numbers in JSON
        /// the reports have the changes.
        counters: Option<String> = "command", "";
        /// Puts back what the others have changed, at the end of the run, however it ends. After a
        /// run that was killed, the next one does it.
        restore: Option<String> = "command", "";
        /// Longest time for each. At most 10min. The first MiB of what they print is kept.
        timeout: Option<Span> = "time", "\"60s\"";
    }
}

/// The hooks in `table`, checked.
pub(super) fn read(document: &Document, table: Table) -> Result<Hooks, ConfigError> {
    let (default, most) = (60 * SECOND, 600 * SECOND);
    Ok(Hooks {
        prepare: table.prepare,
        configure: table.configure,
        counters: table.counters,
        restore: table.restore,
        timeout: positive(document, "hooks.timeout", table.timeout, default, most)?,
    })
}
