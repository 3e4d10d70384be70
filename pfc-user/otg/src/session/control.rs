//! States that a client asks for: links, captures, protocols, traffic.

use prost_reflect::DynamicMessage;
use validator_core::engine::Order;
use validator_core::engine::plan::{FlowIndex, PortIndex};

use super::{Session, Warnings};
use crate::error::Refusal;
use crate::reader::{self, Reader};

/// Change of state to carry out.
enum Control {
    /// Links up or down.
    Link(Vec<PortIndex>, bool),
    /// Captures begun or ended.
    Capture(Vec<PortIndex>, bool),
    /// Flows.
    Transmit(Vec<FlowIndex>, Order),
    /// Addresses are answered for from the configuration on; nothing is to be done.
    Nothing,
}

impl Session {
    /// Carries out a change of state.
    ///
    /// # Errors
    ///
    /// All that is wrong in it; and what the engine cannot do.
    pub fn set_control_state(&mut self, state: &DynamicMessage) -> Result<Warnings, Refusal> {
        let (control, mut warnings) = reader::read(state, |reader| self.control(reader))?;
        match control {
            Some(Control::Link(ports, up)) => {
                for port in ports {
                    self.engine.link(port, up)?;
                }
            }
            Some(Control::Capture(ports, on)) => {
                self.engine.capture(&ports, on)?;
                if !on {
                    warnings.extend(self.overflows(&ports)?);
                }
            }
            Some(Control::Transmit(flows, order)) => self.engine.transmit(&flows, order)?,
            Some(Control::Nothing) | None => {}
        }
        warnings.extend(self.happened());
        Ok(warnings)
    }

    /// Reads a change of state; `None` only with an error.
    fn control(&self, reader: &Reader<'_>) -> Option<Control> {
        match &*reader.choice("") {
            "port" => self.port(&reader.object("port")),
            "protocol" => {
                protocol(&reader.object("protocol"));
                Some(Control::Nothing)
            }
            "traffic" => self.traffic(&reader.object("traffic")),
            _ => reader.fail("choice", "is missing: port, protocol or traffic"),
        }
    }

    fn port(&self, reader: &Reader<'_>) -> Option<Control> {
        match &*reader.choice("") {
            "link" => {
                let link = reader.object("link");
                let ports = self.ports_of(&link, "port_names");
                let up = either(&link, "up", "down")?;
                Some(Control::Link(ports, up))
            }
            "capture" => {
                let capture = reader.object("capture");
                let ports = self.capturing(&capture);
                let on = either(&capture, "start", "stop")?;
                if on && ports.is_empty() {
                    capture.warn(
                        "state",
                        "start changes nothing: the configuration in force has no capture",
                    );
                }
                Some(Control::Capture(ports, on))
            }
            _ => reader.fail("choice", "is missing: link or capture"),
        }
    }

    /// The named ports, which have to have a capture; without names, all that have one.
    fn capturing(&self, reader: &Reader<'_>) -> Vec<PortIndex> {
        let named = reader.has("port_names");
        let mut ports = self.ports_of(reader, "port_names");
        ports.retain(|port| {
            let names = &self.force.ports[port.0];
            if named && names.capture.is_none() {
                reader.error(
                    "port_names",
                    format!(
                        "names \"{}\", which no capture of the configuration has",
                        names.name
                    ),
                );
            }
            names.capture.is_some()
        });
        ports
    }

    fn traffic(&self, reader: &Reader<'_>) -> Option<Control> {
        if !reader.chooses("flow_transmit", "flow_transmit is") {
            return None;
        }
        let transmit = reader.object("flow_transmit");
        let flows = self.flows_of(&transmit, "flow_names");
        let order = match transmit.enumeration("state").as_deref() {
            Some("start") => Order::Start,
            Some("stop") => Order::Stop,
            Some("pause") => Order::Pause,
            Some("resume") => Order::Resume,
            _ => return transmit.fail("state", "is missing: start, stop, pause or resume"),
        };
        Some(Control::Transmit(flows, order))
    }
}

fn protocol(reader: &Reader<'_>) {
    if reader.chooses("all", "it needs a control plane; all is") {
        let all = reader.object("all");
        if either(&all, "start", "stop") == Some(false) {
            all.warn(
                "state",
                "stop changes nothing: addresses are answered for as long as their configuration \
                 is in force",
            );
        }
    }
}

/// True for the first of two states; an error if it is neither.
fn either(reader: &Reader<'_>, yes: &str, no: &str) -> Option<bool> {
    match reader.enumeration("state") {
        Some(state) if state == yes => Some(true),
        Some(state) if state == no => Some(false),
        _ => reader.fail("state", format!("is missing: {yes} or {no}")),
    }
}
