//! Facts about the DUT of the PFC cases that cannot be read from here.

use serde::Deserialize;
use validator_core::keys;

use super::dut::Kind;
use crate::config::ConfigError;
use crate::config::constraints::refuse;
use crate::config::document::Document;

keys::table! {
    /// Facts that cannot be read from here.
    #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
    pub struct Facts: "facts", "facts." {
        /// The DUT's PFC watchdog. The PFC checks are inconclusive unless it is declared as off, or
        /// `hooks.prepare` says so. With `on`, cases that need it off are refused.
        pub watchdog: Option<Switched> =
            "`off`, `on`", "`off` with `sim` and `bridge`, else not known";
        /// The other end of a port that is a veth is the DUT's own, with no bridge between: PAUSE
        /// and PFC frames of the DUT then reach the program. Only with `external`.
        #[serde(default)]
        pub direct: bool = "`true`, `false`", "`false`";
        /// PAUSE and PFC frames of the DUT reach the program on the tx port, whatever the kind of
        /// port. Only with `external`.
        #[serde(default)]
        pub pfc_visible: bool = "`true`, `false`", "`false`";
        /// The DUT obeys PFC from 00-00-00-00-00-00, as sonic-mgmt expects of SONiC; no standard
        /// asks for it. `pfc.source-address` judges it then.
        #[serde(default)]
        pub zero_source: bool = "`true`, `false`", "`false`";
    }
}

/// State of the PFC watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switched {
    /// It drops nothing.
    Off,
    /// It may drop what a storm holds.
    On,
}

impl Switched {
    /// Its word in files and evidence.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }
}

/// The facts, checked, of a DUT of that kind.
pub(super) fn read(
    document: &Document,
    kind: Kind,
    mut facts: Facts,
) -> Result<Facts, ConfigError> {
    if kind != Kind::External {
        let keys = [
            ("facts.direct", facts.direct),
            ("facts.pfc_visible", facts.pfc_visible),
        ];
        refuse(document, &keys, "only a DUT of kind \"external\" takes it")?;
        // A DUT that the tool makes has none.
        facts.watchdog.get_or_insert(Switched::Off);
    }
    Ok(facts)
}
