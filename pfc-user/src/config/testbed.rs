//! The testbed: the tester's ports, the DUT, and the limits that verdicts are judged against. Each
//! table of its file has a module, with what it is read as.

mod addresses;
mod dut;
mod facts;
mod hooks;
mod limits;
pub mod mad;
mod ports;
mod qos;
pub mod rc;

use pfc_ebpf::abi::Trust;
use serde::Deserialize;

pub use addresses::{Addresses, Destination};
pub use dut::Dut;
pub use facts::{Facts, Switched};
pub use hooks::Hooks;
pub use limits::Tolerances;
pub use mad::{MadTestbed, MadTransport};
pub use ports::{Port, Ports, Sender};
pub use qos::Qos;
pub(super) use qos::{Preset, all_dscps};
pub use rc::{RcDut, RcTestbed};
use validator_core::cases::pfc::parameters;
use validator_core::evidence;
pub use validator_core::evidence::xdp::XdpMode;
use validator_core::keys;

use super::ConfigError;
use super::constraints::{given, refuse};
use super::document::Document;

/// Tables of a testbed.
pub const TESTBED: &[keys::Table] = &[
    keys::table! {
        /// A testbed has a name and at least one of the tables `[dut]`, `[mad]` and `[rc]`.
        "", "" {
            /// Its name in reports. Mandatory.
            name = "text", "";
        }
    },
    dut::Table::TABLE,
    ports::Table::TABLE,
    Port::TABLE,
    ports::Further::TABLE,
    qos::Table::TABLE,
    addresses::Table::TABLE,
    limits::Table::TABLE,
    Facts::TABLE,
    hooks::Table::TABLE,
    mad::Table::TABLE,
    rc::Table::TABLE,
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    dut: Option<dut::Table>,
    ports: Option<ports::Tables>,
    qos: Option<qos::Table>,
    addresses: Option<addresses::Table>,
    limits: Option<limits::Table>,
    facts: Option<Facts>,
    hooks: Option<hooks::Table>,
    mad: Option<mad::Table>,
    rc: Option<rc::Table>,
}

/// Ports and DUT by family of cases. The cases of an absent family are not applicable.
#[derive(Clone, Debug, PartialEq)]
pub struct Testbed {
    /// Its name.
    pub name: String,
    /// The file's text, and the `--set` arguments.
    pub toml: String,
    /// The DUT by its maker's words.
    pub identity: evidence::Identity,
    /// For the PFC cases.
    pub pfc: Option<PfcTestbed>,
    /// For the MAD cases.
    pub mad: Option<MadTestbed>,
    /// For the RC cases.
    pub rc: Option<RcTestbed>,
}

/// The part of a testbed that the PFC cases use.
#[derive(Clone, Debug, PartialEq)]
pub struct PfcTestbed {
    /// The device under test.
    pub dut: Dut,
    /// The tester's ports.
    pub ports: Ports,
    /// Its priorities.
    pub qos: Qos,
    /// Addresses of the test frames.
    pub addresses: Addresses,
    /// Limits that verdicts are judged against.
    pub limits: Tolerances,
    /// Facts that cannot be read.
    pub facts: Facts,
    /// Commands of the user.
    pub hooks: Hooks,
}

impl PfcTestbed {
    /// True if nothing changes the DUT's lossless set: it has the declared one in each repetition.
    pub fn is_fixed(&self) -> bool {
        matches!(self.dut, Dut::External { .. }) && self.hooks.configure.is_none()
    }

    /// The length of its shortest test frame, in octets without FCS, and of what it is the shortest.
    pub fn shortest_frame(&self) -> (usize, &'static str) {
        let is_tagged = self.qos.vlan || self.qos.trust == Trust::Pcp;
        parameters::shortest_frame(self.addresses.source_ip.is_ipv4(), is_tagged)
    }
}

impl Testbed {
    /// Its record in the evidence.
    pub fn record(&self) -> evidence::Testbed {
        let mut duts: Vec<&str> = Vec::new();
        duts.extend(self.pfc.as_ref().map(|pfc| pfc.dut.kind()));
        duts.extend(self.mad.as_ref().map(|mad| mad.transport.kind()));
        duts.extend(self.rc.as_ref().map(|rc| rc.dut.kind()));
        duts.dedup();
        evidence::Testbed {
            name: self.name.clone(),
            dut: duts.join(", "),
            identity: self.identity.clone(),
            toml: self.toml.clone(),
        }
    }
}

/// The testbed in `document`, checked.
pub(in crate::config) fn read(document: &Document) -> Result<Testbed, ConfigError> {
    let mut file: File = document.decode()?;
    let name = std::mem::take(&mut file.name);
    let mad = file.mad.take().map(|table| mad::read(document, table));
    let mad = mad.transpose()?;
    let rc = file.rc.take().map(|table| rc::read(document, table));
    let rc = rc.transpose()?;
    let mut table = file.dut.take();
    let identity = table.as_mut().map(dut::Table::identity).unwrap_or_default();
    let described = identity.known().next().is_some() && (mad.is_some() || rc.is_some());
    let pfc = match table.map(|table| (table.kind, table)) {
        Some((Some(kind), table)) => Some(pfc(document, kind, table, file)?),
        Some((None, _)) if !described => {
            let problem = "missing: expected \"sim\", \"bridge\" or \"external\"";
            return Err(document.error("dut.kind", problem));
        }
        Some((None, _)) | None => {
            let tables = given!(file at "": ports qos addresses limits facts hooks);
            let problem = "it goes with dut.kind, which is missing: say what the DUT of the PFC \
                           cases is";
            refuse(document, &tables, problem)?;
            None
        }
    };
    if pfc.is_none() && mad.is_none() && rc.is_none() {
        let problem = "missing: expected [dut] for the PFC cases, [mad] for the MAD cases, [rc] \
         for the RC cases, or several of them";
        return Err(document.error("dut", problem));
    }
    Ok(Testbed {
        name,
        toml: document.record(),
        identity,
        pfc,
        mad,
        rc,
    })
}

fn pfc(
    document: &Document,
    kind: dut::Kind,
    dut: dut::Table,
    file: File,
) -> Result<PfcTestbed, ConfigError> {
    let mut ports = file.ports.unwrap_or_default();
    let pfc = PfcTestbed {
        facts: facts::read(document, kind, file.facts.unwrap_or_default())?,
        dut: dut::read(document, kind, dut, &mut ports.settings)?,
        ports: ports::read(document, kind, ports)?,
        qos: qos::read(document, kind, file.qos.unwrap_or_default())?,
        addresses: addresses::read(document, &file.addresses.unwrap_or_default())?,
        limits: limits::read(document, &file.limits.unwrap_or_default())?,
        hooks: hooks::read(document, file.hooks.unwrap_or_default())?,
    };
    if let Dut::External { names, .. } = &pfc.dut
        && !names.is_empty()
    {
        let ports: Vec<String> = pfc.ports.names().map(|name| name.to_string()).collect();
        if let Some(name) = names.keys().find(|name| !ports.contains(name)) {
            let problem = format!("the tester has no port {name}; it has {}", ports.join(", "));
            return Err(document.error(&format!("dut.ports.{name}"), problem));
        }
        let is_none = |name: &&String| name.is_empty() || name.contains(',');
        if let Some((port, name)) = names.iter().find(|(_, name)| is_none(name)) {
            let problem =
                format!("expected the DUT's own name of the port, without a comma, found {name:?}");
            return Err(document.error(&format!("dut.ports.{port}"), problem));
        }
        if let Some(port) = ports.iter().find(|port| !names.contains_key(*port)) {
            let problem = format!("the DUT's name of its port to {port} is missing");
            return Err(document.error("dut.ports", problem));
        }
    }
    if let Some(name) = pfc.ports.more.keys().next() {
        let (key, why) = match pfc.addresses.destination {
            Destination::RxPort => return Ok(pfc),
            Destination::Mac(_) => (
                "destination_mac",
                "a DUT floods what goes to an address that it has not learned",
            ),
            Destination::Gateway(_) => ("gateway_mac", "another network is behind its router"),
        };
        let problem = format!(
            "beside a further port ({name}) frames go to each port's own address: {why}; remove \
             the key or the port"
        );
        return Err(document.error(&format!("addresses.{key}"), problem));
    }
    Ok(pfc)
}
