//! The faults of the simulated devices, by name: shared by testbed files, by the driver that starts
//! the devices, and by the devices.

pub mod requester;
pub mod switch;

use std::str::FromStr;

use ib_mad::catalogue::Kind;

pub use ib_mad::sma::fault as sma;

/// A kind of value that is read and written as a number.
const fn number<T: FromStr + ToString>(shape: &'static str, expected: &'static str) -> Kind<T> {
    Kind {
        shape,
        expected,
        read: |text| text.parse().ok(),
        write: T::to_string,
    }
}
