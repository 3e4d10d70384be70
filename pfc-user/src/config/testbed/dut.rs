//! The device under test of the PFC cases, and the description of any.

use std::collections::BTreeMap;

use serde::Deserialize;
use validator_core::evidence::Identity;
use validator_core::fault::switch::Fault;
use validator_core::keys;
use validator_core::plan::PortName;

use super::Port;
use super::ports;
use crate::config::ConfigError;
use crate::config::constraints::{faults, given, refuse, required};
use crate::config::document::Document;
use crate::dut::switch::config::Scheduler;

/// The device under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dut {
    /// The simulated switch; the tool makes its ports.
    Sim {
        /// Faults in force.
        faults: Vec<Fault>,
        /// Further arguments for its process.
        args: Vec<String>,
        /// Order in which it serves its priorities.
        scheduler: Scheduler,
    },
    /// A Linux bridge; the tool makes it and its ports.
    Bridge,
    /// A device that is there already.
    External {
        /// The port that sends data.
        tx: Port,
        /// The port that receives it, and sends the storm.
        rx: Port,
        /// The DUT's own names of the ports that the tester's are cabled to, by the tester's; of
        /// all or of none.
        names: BTreeMap<String, String>,
    },
}

impl Dut {
    /// Its kind, as the file has it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Sim { .. } => "sim",
            Self::Bridge => "bridge",
            Self::External { .. } => "external",
        }
    }

    /// Its own name of its port to the tester's port of that name; empty where not declared.
    pub fn port_name(&self, port: &PortName) -> &str {
        let name = match self {
            Self::External { names, .. } => names.get(&port.to_string()),
            _ => None,
        };
        name.map_or("", String::as_str)
    }
}

keys::table! {
    /// The device under test of the PFC cases, and the description of any.
    #[derive(Deserialize)]
    pub(super) struct Table: "dut", "dut." {
        // Absent in a testbed without PFC cases, which may describe its DUT all the same.
        /// The simulated switch, a Linux bridge, or a device that is there already. Mandatory for
        /// PFC cases.
        pub(super) kind: Option<Kind> = "`sim`, `bridge`, `external`", "";
        /// Faults of the simulated switch, such as `"leaks=100"`. Only with `sim`.
        faults: Option<Vec<String>> = "list of text", "[]";
        /// Further arguments for its process, such as `"--xoff", "512KiB"`. Only with `sim`.
        args: Option<Vec<String>> = "list of text", "[]";
        /// Order in which the simulated switch serves its priorities: the highest first, frame by
        /// frame, or octet by octet (deficit round robin). Only with `sim`.
        scheduler: Option<Scheduler> = "`strict`, `round-robin`, `drr`", "`round-robin`";
        /// The DUT's own names of the ports that the tester's are cabled to, one for each, for
        /// hooks. Only with `external`.
        ports: Option<BTreeMap<String, String>> = "`{ tx = \"...\", rx = \"...\" }`", "";
        /// Its maker, for the reports.
        vendor: Option<String> = "text", "";
        /// Its model, for the reports.
        model: Option<String> = "text", "";
        /// Its serial number, for the reports.
        serial: Option<String> = "text", "";
        /// Its operating system or firmware with the version, for the reports.
        software: Option<String> = "text", "";
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Sim,
    Bridge,
    External,
}

impl Table {
    /// The description of the device, taken out.
    pub(super) fn identity(&mut self) -> Identity {
        let word = |given: &mut Option<String>| given.take().unwrap_or_default();
        Identity {
            vendor: word(&mut self.vendor),
            model: word(&mut self.model),
            serial: word(&mut self.serial),
            software: word(&mut self.software),
        }
    }
}

/// The device of that kind, with the tester's ports that it is cabled to, checked.
pub(super) fn read(
    document: &Document,
    kind: Kind,
    dut: Table,
    ports: &mut ports::Table,
) -> Result<Dut, ConfigError> {
    if kind != Kind::Sim {
        let keys = given!(dut at "dut.": faults args scheduler);
        refuse(document, &keys, "only a DUT of kind \"sim\" takes it")?;
    }
    if kind != Kind::External {
        let keys = given!(dut at "dut.": ports);
        refuse(document, &keys, "only a DUT of kind \"external\" takes it")?;
        let keys = given!(ports at "ports.": tx rx);
        refuse(document, &keys, ports::OWN_PORTS)?;
    }
    match kind {
        Kind::Sim => Ok(Dut::Sim {
            faults: faults(document, "dut.faults", &dut.faults.unwrap_or_default())?,
            args: dut.args.unwrap_or_default(),
            scheduler: dut.scheduler.unwrap_or_default(),
        }),
        Kind::Bridge => Ok(Dut::Bridge),
        Kind::External => {
            let what = "an external DUT needs both ports, such as { interface = \"eth1\" }";
            let tx = required(document, "ports.tx", ports.tx.take(), what)?;
            let rx = required(document, "ports.rx", ports.rx.take(), what)?;
            if tx == rx {
                let interface = rx.interface;
                let problem =
                    format!("port {interface} is used twice; tx and rx must be different ports");
                return Err(document.error("ports.rx", problem));
            }
            let names = dut.ports.unwrap_or_default();
            Ok(Dut::External { tx, rx, names })
        }
    }
}
