//! Priorities of the DUT of the PFC cases.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, Priority};
use serde::Deserialize;
use validator_core::cases::pfc::parameters::sorted_set;
use validator_core::keys;

use super::dut::Kind;
use crate::config::ConfigError;
use crate::config::constraints::required;
use crate::config::document::Document;

/// How the DUT tells priorities, and which are lossless.
#[derive(Clone, Debug, PartialEq)]
pub struct Qos {
    /// The field that tells the DUT a frame's priority.
    pub trust: Trust,
    /// True: frames are tagged although the DSCP is that field.
    pub vlan: bool,
    /// Priority by DSCP.
    pub dscp_map: [Priority; Dscp::COUNT],
    /// Lossless priorities that an external DUT has without being configured, in ascending order;
    /// none of a DUT that the tool makes, which is given those of each repetition.
    pub lossless: Vec<Priority>,
}

keys::table! {
    /// How the DUT of the PFC cases tells priorities, and which are lossless.
    #[derive(Default, Deserialize)]
    pub(super) struct Table: "qos", "qos." {
        /// The field that the DUT trusts. With `pcp`, test frames carry a priority tag, and their
        /// DSCP points to another priority than their PCP.
        trust: Option<Trust> = "`dscp`, `pcp`", "\"dscp\"";
        /// Test frames carry a priority tag with `trust = "dscp"` too; its PCP points to another
        /// priority than their DSCP. With `trust = "pcp"` they always carry one.
        #[serde(default)]
        vlan: bool = "`true`, `false`", "`false`";
        /// The DUT's map from DSCPs to priorities. Mandatory with `external` and `trust = "dscp"`.
        dscp_map: Option<DscpMapValue> =
            "`sonic`, `dscp-mod-8`, `dscp-high-bits`, or 64 priorities",
            "`dscp-mod-8` with `sim` and `bridge`";
        /// The lossless priorities that the DUT has now. Mandatory with `external`, and only there:
        /// the simulated switch takes those of each repetition, and a bridge has none.
        lossless: Option<Vec<Priority>> = "list of priorities", "";
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"sonic\", \"dscp-mod-8\", \"dscp-high-bits\", or an array of 64 \
     priorities (0 to 7)"
)]
enum DscpMapValue {
    Preset(Preset),
    Explicit(Vec<Priority>),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::config) enum Preset {
    Sonic,
    #[serde(rename = "dscp-mod-8")]
    DscpMod8,
    DscpHighBits,
}

impl Preset {
    pub(in crate::config) fn map(self) -> [Priority; Dscp::COUNT] {
        match self {
            // SONiC's default map, `AZURE`: all but six code points have priority 1, and none has
            // 7.
            Self::Sonic => {
                let mut map = [Priority::from_low_bits(1); Dscp::COUNT];
                for (dscp, priority) in [(3, 3), (4, 4), (5, 2), (8, 0), (46, 5), (48, 6)] {
                    map[dscp] = Priority::from_low_bits(priority);
                }
                map
            }
            Self::DscpMod8 => std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8)),
            // The class selector.
            Self::DscpHighBits => {
                std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8 >> 3))
            }
        }
    }
}

/// The part in `table`, checked, for a DUT of that kind.
pub(super) fn read(document: &Document, kind: Kind, table: Table) -> Result<Qos, ConfigError> {
    let trust = table.trust.unwrap_or(Trust::Dscp);
    if kind == Kind::External && trust == Trust::Dscp {
        let what = "say how the DUT maps DSCPs to priorities, such as dscp_map = \"sonic\"";
        required(document, "qos.dscp_map", table.dscp_map.as_ref(), what)?;
    }
    Ok(Qos {
        trust,
        vlan: table.vlan,
        dscp_map: dscp_map(document, table.dscp_map)?,
        lossless: lossless(document, table.lossless, kind)?,
    })
}

fn dscp_map(
    document: &Document,
    value: Option<DscpMapValue>,
) -> Result<[Priority; Dscp::COUNT], ConfigError> {
    match value {
        None => Ok(Preset::DscpMod8.map()),
        Some(DscpMapValue::Preset(preset)) => Ok(preset.map()),
        Some(DscpMapValue::Explicit(priorities)) => {
            all_dscps(priorities).map_err(|problem| document.error("qos.dscp_map", problem))
        }
    }
}

/// Priorities of all DSCPs from 0 on.
pub(in crate::config) fn all_dscps(
    priorities: Vec<Priority>,
) -> Result<[Priority; Dscp::COUNT], String> {
    priorities.try_into().map_err(|found: Vec<_>| {
        let found = found.len();
        format!("expected 64 priorities, one for each DSCP from 0; found {found}")
    })
}

fn lossless(
    document: &Document,
    given: Option<Vec<Priority>>,
    kind: Kind,
) -> Result<Vec<Priority>, ConfigError> {
    let made_by_us = kind != Kind::External;
    match given {
        Some(_) if made_by_us => Err(document.error(
            "qos.lossless",
            "only a DUT of kind \"external\" takes it: the simulated switch is given the lossless \
             priorities of each repetition, and a bridge has none",
        )),
        None if made_by_us => Ok(Vec::new()),
        given => {
            let what = "say which priorities are lossless on the DUT, such as lossless = [3, 4]";
            let priorities = required(document, "qos.lossless", given, what)?;
            sorted_set(&priorities).map_err(|problem| document.error("qos.lossless", problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code points of that priority.
    fn dscps(preset: Preset, priority: u8) -> Vec<u8> {
        let map = preset.map();
        (0..64)
            .filter(|dscp| map[usize::from(*dscp)].get() == priority)
            .collect()
    }

    #[test]
    fn the_sonic_map_has_no_dscp_for_priority_7() {
        let found: Vec<_> = [0, 2, 3, 4, 5, 6, 7]
            .map(|priority| dscps(Preset::Sonic, priority))
            .to_vec();
        assert_eq!(
            found,
            [
                vec![8],
                vec![5],
                vec![3],
                vec![4],
                vec![46],
                vec![48],
                vec![]
            ]
        );
        assert_eq!(dscps(Preset::Sonic, 1).len(), 58);
    }

    #[test]
    fn the_other_presets_have_eight_dscps_for_each_priority() {
        for priority in 0..8 {
            assert_eq!(
                dscps(Preset::DscpMod8, priority),
                (0..8).map(|n| 8 * n + priority).collect::<Vec<_>>()
            );
            assert_eq!(
                dscps(Preset::DscpHighBits, priority),
                (0..8).map(|n| 8 * priority + n).collect::<Vec<_>>()
            );
        }
    }
}
