//! Places of ports: the meaning of a configuration's locations.

use std::collections::BTreeMap;

use pfc_ebpf::units::LineRate;

/// Longest name of an interface (`IFNAMSIZ` of Linux without the final zero).
const INTERFACE: usize = 15;

/// A port of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Network interface.
    pub interface: String,
    /// Named network namespace; `None` is the server's own.
    pub namespace: Option<String>,
    /// Line rate to take in place of the link's own, for links that have none, such as a veth.
    pub line_rate: Option<LineRate>,
}

/// Places by location.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(BTreeMap<String, Place>);

impl Places {
    /// Takes these places; any other location is the name of an interface.
    pub fn new(places: impl IntoIterator<Item = (String, Place)>) -> Self {
        Self(places.into_iter().collect())
    }

    /// Finds the place of a location.
    ///
    /// # Errors
    ///
    /// A location that is not known, and cannot be the name of an interface.
    pub fn find(&self, location: &str) -> Result<Place, String> {
        if let Some(place) = self.0.get(location) {
            return Ok(place.clone());
        }
        let letter = |letter: char| letter.is_ascii_graphic() && !"/;:".contains(letter);
        if (1..=INTERFACE).contains(&location.len()) && location.chars().all(letter) {
            return Ok(Place {
                interface: location.to_owned(),
                ..Place::default()
            });
        }
        let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
        Err(format!(
            "is \"{location}\", which is neither an interface nor a location of the testbed file \
             ({}): add it there",
            if known.is_empty() {
                "it has none".to_owned()
            } else {
                known.join(", ")
            }
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(interface: &str) -> Place {
        Place {
            interface: interface.into(),
            namespace: Some("tester".into()),
            line_rate: LineRate::from_bits_per_second(1_000_000_000).ok(),
        }
    }

    #[test]
    fn a_location_is_that_of_the_testbed_or_the_name_of_an_interface() {
        let places = Places::new([("10.0.0.1;1;2".to_owned(), place("veth0"))]);
        assert_eq!(places.find("10.0.0.1;1;2"), Ok(place("veth0")));
        assert_eq!(places.find("eth1").unwrap().interface, "eth1");
        for location in [
            "10.0.0.1;1;3",
            "",
            "an interface",
            "a-name-that-is-too-long",
        ] {
            let error = places.find(location).unwrap_err();
            assert!(error.contains("10.0.0.1;1;2"), "{error}");
        }
    }
}
