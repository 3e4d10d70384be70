//! Captures: which ports, which frames, and the format of the file.

mod filters;

use validator_core::engine::plan::{Captures, Keeps};

use super::names::Names;
use super::ports::{Capture, Format, Ports};
use crate::reader::Reader;

/// Reads the captures into the ports that they are for.
pub fn read(config: &Reader<'_>, ports: &mut Ports, names: &mut Names) {
    for reader in config.children("captures") {
        names.take(&reader);
        let filters = filters::read(&reader);
        let keeps = match reader.truth("overwrite") {
            Some(false) => Keeps::First,
            // The model's default.
            Some(true) | None => Keeps::Newest,
        };
        let format = match reader.enumeration("format").as_deref() {
            Some("pcapng") => Format::PcapNg,
            // The model's default.
            Some("pcap") | None => Format::Pcap,
            Some(other) => {
                reader.error("format", format!("\"{other}\" is not supported"));
                Format::Pcap
            }
        };
        let octets = reader.integer("packet_size");
        let octets = octets.map(|octets| u32::try_from(octets).unwrap_or(u32::MAX));
        for name in reader.texts("port_names") {
            let Some(index) = ports.find(&reader, "port_names", name) else {
                continue;
            };
            let (port, names) = ports.get_mut(index);
            port.captures = Captures {
                filters: filters.clone(),
                keeps,
            };
            let capture = Capture {
                format,
                octets,
                keeps,
            };
            if names.capture.replace(capture).is_some() {
                reader.error(
                    "port_names",
                    format!("names {name}, as a capture before it does"),
                );
            }
        }
    }
}
