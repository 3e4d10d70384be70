//! Faults of simulated devices as their user finds them: by name, with what each does and which check it makes fail.

/// A fault as the user finds it in the help.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name.
    pub name: &'static str,
    /// The shape of its value; empty when it takes none. Every value may be left out.
    pub value: &'static str,
    /// What the device then does.
    pub does: &'static str,
    /// The check that it is there to fail; empty where it is there for another end.
    pub fails: &'static str,
}

pub(super) const fn entry(
    name: &'static str,
    value: &'static str,
    does: &'static str,
    fails: &'static str,
) -> Entry {
    Entry {
        name,
        value,
        does,
        fails,
    }
}

/// Why a fault could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No such fault.
    #[error("no fault is called {name:?}: see `validator dut {device} --help` for all of them")]
    Unknown {
        /// What was given.
        name: String,
        /// The device whose help has them.
        device: &'static str,
    },
    /// The value does not fit.
    #[error("{name} takes {expected}, found {found:?}")]
    Value {
        /// Fault.
        name: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What was given.
        found: String,
    },
}

/// A fault as it is written, `NAME[=VALUE]`, found in the catalogue of `device`: its name, and its value where one is given.
pub(super) fn find<'t>(
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

/// The catalogue as text, a line each.
pub(super) fn help(catalogue: &[Entry]) -> String {
    let shown = |Entry { name, value, .. }: &Entry| {
        if value.is_empty() {
            (*name).to_owned()
        } else {
            format!("{name}[={value}]")
        }
    };
    let width = catalogue
        .iter()
        .map(|entry| shown(entry).len())
        .max()
        .unwrap_or(0);
    let mut text = String::from("Faults, each with the check that it makes fail, if any:\n");
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
