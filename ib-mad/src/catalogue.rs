//! Faults of simulated devices, by name: one row each, from which parsing, printing and help
//! follow.

use std::str::FromStr;
use std::time::Duration;

/// A fault as the user finds it in the help.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name.
    pub name: &'static str,
    /// The shape of its value; empty when it takes none. Every value may be left out.
    pub value: &'static str,
    /// The device's behaviour with it.
    pub does: &'static str,
    /// The checks that it makes fail, separated by commas. Where it makes none fail, `none: ` and
    /// what comes of it.
    pub fails: &'static str,
}

/// Reading and writing of a fault's value.
#[derive(Clone, Copy, Debug)]
pub struct Kind<T> {
    /// Its shape in the help, such as `N`.
    pub shape: &'static str,
    /// Its range, for errors.
    pub expected: &'static str,
    /// Reads it; `None` where it does not fit.
    pub read: fn(&str) -> Option<T>,
    /// Writes it as it is read.
    pub write: fn(&T) -> String,
}

/// A time in milliseconds.
pub const MILLISECONDS: Kind<Duration> = Kind {
    shape: "MILLISECONDS",
    expected: "a number of milliseconds",
    read: |text| text.parse().ok().map(Duration::from_millis),
    write: |time| time.as_millis().to_string(),
};

/// Reason why a fault could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No such fault.
    #[error("no fault is called {name:?}: see `validator dut {device} --help` for all of them")]
    Unknown {
        /// The name that was given.
        name: String,
        /// The device whose help has them.
        device: &'static str,
    },
    /// The value does not fit.
    #[error("{name} takes {expected}, found {found:?}")]
    Value {
        /// Fault.
        name: &'static str,
        /// Its range.
        expected: &'static str,
        /// The value that was given.
        found: String,
    },
}

impl<T: FromStr + ToString> Kind<T> {
    /// A value that is read and written as a number.
    pub const fn number(shape: &'static str, expected: &'static str) -> Self {
        Self {
            shape,
            expected,
            read: |text| text.parse().ok(),
            write: T::to_string,
        }
    }
}

impl<T> Kind<T> {
    /// Reads the value of the fault `name`; `default` where none is given.
    pub fn value(
        &self,
        name: &'static str,
        given: Option<&str>,
        default: &str,
    ) -> Result<T, FaultError> {
        let text = given.unwrap_or(default);
        (self.read)(text).ok_or_else(|| FaultError::Value {
            name,
            expected: self.expected,
            found: text.into(),
        })
    }
}

/// A fault as it is written, `NAME[=VALUE]`, found in the catalogue of `device`: its name, and its
/// value where one is given.
pub fn find<'t>(
    catalogue: &[Entry],
    device: &'static str,
    text: &'t str,
) -> Result<(&'static str, Option<&'t str>), FaultError> {
    let (name, value) = text
        .split_once('=')
        .map_or((text, None), |(name, value)| (name, Some(value)));
    let entry = catalogue.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| FaultError::Unknown {
        name: name.to_owned(),
        device,
    })?;
    match value {
        Some(found) if entry.value.is_empty() => Err(FaultError::Value {
            name: entry.name,
            expected: "no value",
            found: found.to_owned(),
        }),
        _ => Ok((entry.name, value)),
    }
}

/// The catalogue as text, a line each, under a heading.
pub fn help(catalogue: &[Entry], heading: &str) -> String {
    let shown = |Entry { name, value, .. }: &Entry| {
        if value.is_empty() {
            (*name).to_owned()
        } else {
            format!("{name}[={value}]")
        }
    };
    let width = catalogue.iter().map(|entry| shown(entry).len()).max();
    let width = width.unwrap_or(0);
    let mut text = format!("{heading}\n");
    for entry in catalogue {
        let fails = if entry.fails.is_empty() {
            String::new()
        } else {
            format!(" ({})", entry.fails)
        };
        text += &format!("  {:width$}  {}{fails}\n", shown(entry), entry.does);
    }
    text
}

/// The value of the first of some faults that is of one kind; `None` where none is.
#[macro_export]
macro_rules! value_of {
    ($faults:expr, $Kind:path) => {
        $faults.iter().find_map(|fault| match *fault {
            $Kind(value) => Some(value),
            _ => None,
        })
    };
}

/// Declares an enum of faults, one row each:
///
/// ```text
/// Variant(value: Type, KIND, "default") "name": "behaviour" => "checks that it makes fail";
/// ```
///
/// A fault without a value has no parentheses. The enum gets a `CATALOGUE` of [`Entry`]s, `help`,
/// [`FromStr`](std::str::FromStr) and [`Display`](std::fmt::Display), and a test that the two
/// agree.
#[macro_export]
macro_rules! faults {
    (
        $(#[$meta:meta])*
        pub enum $Fault:ident of $device:literal under $heading:literal {
            $(
                $Variant:ident $(($value:ident: $Type:ty, $kind:expr, $default:literal))?
                $name:literal: $does:expr => $fails:literal;
            )*
        }
    ) => {
        $(#[$meta])*
        pub enum $Fault {
            $(#[doc = $does] $Variant $(($Type))?,)*
        }

        impl $Fault {
            /// Every fault, in the order of the enum.
            pub const CATALOGUE: [$crate::catalogue::Entry; [$($name),*].len()] = [
                $($crate::catalogue::Entry {
                    name: $name,
                    value: {
                        let shapes: &[&str] = &["", $($kind.shape)?];
                        shapes[shapes.len() - 1]
                    },
                    does: $does,
                    fails: $fails,
                },)*
            ];

            /// The catalogue as text, a line each.
            pub fn help() -> String {
                $crate::catalogue::help(&Self::CATALOGUE, $heading)
            }
        }

        impl std::str::FromStr for $Fault {
            type Err = $crate::catalogue::FaultError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let (name, given) = $crate::catalogue::find(&Self::CATALOGUE, $device, text)?;
                match name {
                    $($name => Ok(Self::$Variant $(({
                        let $value = $kind.value($name, given, $default)?;
                        $value
                    }))?),)*
                    name => unreachable!("{name} is in the catalogue"),
                }
            }
        }

        impl std::fmt::Display for $Fault {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$Variant $(($value))? => {
                        f.write_str($name)?;
                        $(write!(f, "={}", ($kind.write)($value))?;)?
                        Ok(())
                    })*
                }
            }
        }

        #[cfg(test)]
        mod catalogue_test {
            #[test]
            fn every_fault_is_read_by_its_name_and_written_as_it_is_read() {
                for entry in super::$Fault::CATALOGUE {
                    let fault: super::$Fault = entry.name.parse().unwrap();
                    let written = fault.to_string();
                    assert_eq!(written.split('=').next(), Some(entry.name));
                    assert_eq!(written.contains('='), !entry.value.is_empty(), "{written}");
                    assert_eq!(written.parse(), Ok(fault));
                }
            }
        }
    };
}
