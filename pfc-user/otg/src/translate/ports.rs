//! Ports, by their locations.

use std::collections::{BTreeMap, HashMap};

use validator_core::engine::plan::{Captures, Keeps, Obeys, Port, PortIndex};

use super::names::Names;
use crate::places::Places;
use crate::reader::Reader;

/// Format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Format of libpcap.
    Pcap,
    /// Successor of that format.
    PcapNg,
}

/// Capture that is asked for at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Format of the file.
    pub format: Format,
    /// Octets of each frame that are kept; `None` is all.
    pub octets: Option<u32>,
    /// Frames that are kept where memory is full.
    pub keeps: Keeps,
}

/// Names of a port, and its capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortNames {
    /// Name.
    pub name: String,
    /// Location, as the configuration has it.
    pub location: String,
    /// Capture that is asked for.
    pub capture: Option<Capture>,
}

/// Ports of a configuration.
#[derive(Debug, Default)]
pub struct Ports {
    by_name: HashMap<String, PortIndex>,
    list: Vec<(Port, PortNames)>,
}

impl Ports {
    /// The port that a field names; an error if there is none.
    pub fn find(&self, reader: &Reader<'_>, field: &str, name: &str) -> Option<PortIndex> {
        reader.or_error(field, self.by_name.get(name).copied(), || {
            let known: Vec<&str> = self.list.iter().map(|(port, _)| &*port.name).collect();
            format!(
                "names \"{name}\", which is no port of this configuration ({})",
                known.join(", ")
            )
        })
    }

    /// A port, to complete it.
    pub fn get_mut(&mut self, index: PortIndex) -> (&mut Port, &mut PortNames) {
        let (port, names) = &mut self.list[index.0];
        (port, names)
    }

    /// The name of a port.
    pub fn name(&self, index: PortIndex) -> &str {
        &self.list[index.0].0.name
    }

    /// Returns the ports for the plan, with their names.
    pub fn into_plan(self) -> (Vec<Port>, Vec<PortNames>) {
        self.list.into_iter().unzip()
    }
}

/// Reads the ports.
pub fn read(config: &Reader<'_>, places: &Places, names: &mut Names) -> Ports {
    let mut ports = Ports::default();
    let mut taken: BTreeMap<(Option<String>, String), String> = BTreeMap::new();
    for reader in config.children("ports") {
        let name = names.take(&reader).to_owned();
        let location = reader.required("location");
        let found = location.map(|location| places.find(location)).transpose();
        let found = found.map_err(|why| reader.error("location", why));
        let place = found.ok().flatten().unwrap_or_default();
        let location = location.unwrap_or_default();
        let key = (place.namespace.clone(), place.interface.clone());
        if !place.interface.is_empty()
            && let Some(other) = taken.insert(key, name.clone())
        {
            let text = format!("is \"{location}\", the interface that port {other} has already");
            reader.error("location", text);
        }
        let index = PortIndex(ports.list.len());
        ports.by_name.entry(name.clone()).or_insert(index);
        ports.list.push((
            Port {
                name: name.clone(),
                interface: place.interface,
                namespace: place.namespace,
                line_rate: place.line_rate,
                mtu: None,
                obeys: Obeys::Nothing,
                captures: Captures::default(),
            },
            PortNames {
                name,
                location: location.to_owned(),
                capture: None,
            },
        ));
    }
    ports
}
