//! Locations of the tests' configurations.

use validator_otg::{Place, Places};

/// A location of sonic-mgmt's kind; others are interfaces.
pub fn places() -> Places {
    let place = |interface: &str| Place {
        interface: interface.into(),
        namespace: Some("tester".into()),
        line_rate: None,
    };
    Places::new([
        ("10.36.78.53;1;1".to_owned(), place("veth0")),
        ("10.36.78.53;1;2".to_owned(), place("veth1")),
    ])
}
