//! The testbed of `validator otg`: where the locations of its clients are.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use validator_core::quantity::Rate;
use validator_otg::{Place, Places};

use super::ConfigError;
use super::document::Document;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    ports: BTreeMap<String, PortTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PortTable {
    interface: String,
    namespace: Option<String>,
    line_rate: Option<Rate>,
    #[serde(default)]
    locations: Vec<String>,
}

/// Reads the ports; a location is the name of a port's table, or one of its `locations`.
pub fn load(file: &Path) -> Result<Places, ConfigError> {
    let name = file.display().to_string();
    let text = super::read(&name)?;
    places(&Document::parse(&name, &text)?)
}

fn places(document: &Document) -> Result<Places, ConfigError> {
    let file: File = document.decode()?;
    let mut places: BTreeMap<String, (Place, String)> = BTreeMap::new();
    for (name, table) in file.ports {
        let place = Place {
            interface: table.interface,
            namespace: table.namespace,
            line_rate: table.line_rate.map(|rate| rate.0),
        };
        let key = format!("ports.{name}");
        if place.interface.is_empty() {
            let key = format!("{key}.interface");
            return Err(document.error(&key, "expected the name of an interface, found nothing"));
        }
        for location in std::iter::once(name).chain(table.locations) {
            let before = places.insert(location.clone(), (place.clone(), key.clone()));
            if let Some((_, other)) = before {
                let problem = format!("the location \"{location}\" is that of {other}, too");
                return Err(document.error(&key, problem));
            }
        }
    }
    let places = places.into_iter();
    Ok(Places::new(
        places.map(|(location, (place, _))| (location, place)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Places, String> {
        let document = Document::parse("otg.toml", text).unwrap();
        places(&document).map_err(|error| error.to_string())
    }

    #[test]
    fn the_example_is_read() {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/otg/two-veths.toml");
        let places = load(Path::new(example)).unwrap();
        let place = places.find("10.36.78.53;1;1").unwrap();
        assert_eq!(place, places.find("p1").unwrap());
        assert_eq!(place.interface, "veth1");
        assert_eq!(place.line_rate.unwrap().bits_per_second(), 1_000_000_000);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, expected) in [
            ("", "missing field `ports`"),
            ("[ports.a]", "missing field `interface`"),
            ("[ports.a]\ninterface = \"\"", "otg.toml:2:13"),
            (
                "[ports.a]\ninterface = \"v\"\nspeed = 1",
                "unknown field `speed`",
            ),
            (
                "[ports.a]\ninterface = \"v\"\n[ports.b]\ninterface = \"w\"\nlocations = [\"a\"]",
                "the location \"a\" is that of ports.a, too",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}\nexpected: {expected}");
        }
    }
}
