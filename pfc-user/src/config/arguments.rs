//! Values of the command line, parsed like those of files.

use pfc_ebpf::units::{Dscp, Priority};
use validator_core::quantity::value;

use super::testbed::{Preset, all_dscps};

/// Priority by DSCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DscpMap {
    /// The argument as given.
    pub name: String,
    /// The priorities.
    pub map: [Priority; Dscp::COUNT],
}

impl DscpMap {
    /// SONiC's default map.
    pub fn sonic() -> Self {
        Self {
            name: "sonic".to_owned(),
            map: Preset::Sonic.map(),
        }
    }
}

/// Parses a map of DSCPs: a preset's name, or 64 priorities separated by commas.
pub fn dscp_map(text: &str) -> Result<DscpMap, String> {
    let map = if text.contains(',') {
        let priority = |text: &str| {
            let number: u8 = text
                .trim()
                .parse()
                .map_err(|_| format!("expected a priority (0 to 7), found \"{text}\""))?;
            Priority::new(number).map_err(|error| error.to_string())
        };
        let found: Vec<Priority> = text.split(',').map(priority).collect::<Result<_, _>>()?;
        all_dscps(found)?
    } else {
        value::<Preset>(text)
            .map_err(|error| format!("{error}, or 64 priorities separated by commas"))?
            .map()
    };
    Ok(DscpMap {
        name: text.to_owned(),
        map,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pfc_ebpf::units::LineRate;

    use validator_core::quantity::{Span, rate, time};

    #[test]
    fn values_are_read_as_in_files() {
        assert_eq!(time("1.5s"), Ok(Span(1_500_000_000)));
        assert_eq!(
            rate("25G").map(LineRate::bits_per_second),
            Ok(25_000_000_000)
        );
        assert_eq!(dscp_map("sonic").unwrap(), DscpMap::sonic());
        assert_eq!(DscpMap::sonic().map[3].get(), 3);
        let list = (0..64)
            .map(|dscp| (dscp / 8).to_string())
            .collect::<Vec<_>>()
            .join(",");
        assert_eq!(
            dscp_map(&list).unwrap().map,
            dscp_map("dscp-high-bits").unwrap().map
        );
    }

    #[test]
    fn errors_say_what_was_expected_and_found() {
        assert_eq!(time("0s").unwrap_err(), "expected a time above 0");
        assert!(
            time("5")
                .unwrap_err()
                .contains("expected a time with its unit"),
            "{:?}",
            time("5")
        );
        assert!(
            rate("fast")
                .unwrap_err()
                .contains("expected a rate with its unit"),
            "{:?}",
            rate("fast")
        );
        let unknown = dscp_map("azure").unwrap_err();
        assert!(
            unknown.contains("`azure`")
                && unknown.contains("dscp-mod-8")
                && unknown.contains("64 priorities"),
            "{unknown}"
        );
        assert_eq!(
            dscp_map("1,2").unwrap_err(),
            "expected 64 priorities, one for each DSCP from 0; found 2"
        );
        assert!(
            dscp_map("1,8")
                .unwrap_err()
                .contains("priority must be 0 to 7")
        );
    }
}
