//! The part of a testbed that the RC cases use.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use serde::Deserialize;

use super::{Port, XdpMode};
use crate::config::ConfigError;
use crate::config::address::is_of_a_host;
use crate::config::constraints::faults;
use crate::config::document::Document;
use crate::fault::requester::Fault;

/// The tester's port of the RC cases, and what drives the DUT's queue pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RcTestbed {
    /// The device under test.
    pub dut: RcDut,
    /// The tester's address, to which the DUT's queue pairs send.
    pub address: IpAddr,
    /// Mode in which the XDP program is attached.
    pub xdp: XdpMode,
    /// True if the DUT supports Automatic Path Migration; `None`: as its agent says.
    pub apm: Option<bool>,
}

/// The device under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RcDut {
    /// The simulated requester; the tool makes its link.
    Sim {
        /// Faults in force.
        faults: Vec<Fault>,
        /// Further arguments for its process.
        args: Vec<String>,
    },
    /// An adapter on a host where `validator agent` runs.
    Agent {
        /// The agent: host and port.
        agent: String,
        /// File with the shared token. `None`: the environment variable VALIDATOR_TOKEN, if set.
        token_file: Option<PathBuf>,
        /// The tester's port that the adapter's packets come in by.
        port: Port,
    },
}

impl RcDut {
    /// Its kind, as the file has it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Sim { .. } => "sim",
            Self::Agent { .. } => "agent",
        }
    }
}

/// The table `[rc]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    dut: Kind,
    faults: Option<Vec<String>>,
    args: Option<Vec<String>>,
    agent: Option<String>,
    token_file: Option<PathBuf>,
    port: Option<Port>,
    address: Option<IpAddr>,
    #[serde(default)]
    xdp: XdpMode,
    apm: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Sim,
    Agent,
}

/// The part in `table`, checked.
pub(super) fn read(document: &Document, table: Table) -> Result<RcTestbed, ConfigError> {
    check_keys(document, &table)?;
    Ok(RcTestbed {
        address: address(document, &table)?,
        xdp: table.xdp,
        apm: table.apm,
        dut: dut(document, table)?,
    })
}

/// Refuses the keys of the other kind of DUT.
fn check_keys(document: &Document, table: &Table) -> Result<(), ConfigError> {
    for (key, given, of) in [
        ("faults", table.faults.is_some(), Kind::Sim),
        ("args", table.args.is_some(), Kind::Sim),
        ("agent", table.agent.is_some(), Kind::Agent),
        ("token_file", table.token_file.is_some(), Kind::Agent),
        ("port", table.port.is_some(), Kind::Agent),
    ] {
        if given && table.dut != of {
            let word = if of == Kind::Sim { "sim" } else { "agent" };
            return Err(document.error(
                &format!("rc.{key}"),
                format!("only dut = \"{word}\" takes it"),
            ));
        }
    }
    Ok(())
}

fn missing(document: &Document, key: &str, what: &str) -> ConfigError {
    document.error(&format!("rc.{key}"), format!("missing: {what}"))
}

/// The tester's address.
fn address(document: &Document, table: &Table) -> Result<IpAddr, ConfigError> {
    let address = match (table.address, table.dut) {
        (Some(address), _) => address,
        // RFC 2544 sets 198.18.0.0/15 aside for tests of network devices.
        (None, Kind::Sim) => Ipv4Addr::new(198, 18, 16, 1).into(),
        (None, Kind::Agent) => {
            return Err(missing(
                document,
                "address",
                "say the tester's address on that port, such as address = \"198.18.16.1\"",
            ));
        }
    };
    if !is_of_a_host(address) {
        return Err(document.error(
            "rc.address",
            format!("expected the unicast address of the tester's port, found {address}"),
        ));
    }
    if table.dut == Kind::Sim && address.is_ipv6() {
        return Err(document.error(
            "rc.address",
            "the simulated requester's link has IPv4 addresses only; give one, or leave it out",
        ));
    }
    Ok(address)
}

fn dut(document: &Document, table: Table) -> Result<RcDut, ConfigError> {
    Ok(match table.dut {
        Kind::Sim => RcDut::Sim {
            faults: faults(document, "rc.faults", &table.faults.unwrap_or_default())?,
            args: table.args.unwrap_or_default(),
        },
        Kind::Agent => RcDut::Agent {
            agent: table.agent.ok_or_else(|| {
                missing(
                    document,
                    "agent",
                    "say where `validator agent` listens, such as agent = \"10.0.0.2:18515\"",
                )
            })?,
            token_file: table.token_file,
            port: table.port.ok_or_else(|| {
                missing(
                    document,
                    "port",
                    "say which port the DUT's packets come in by, \
                     such as port = { interface = \"eth1\" }",
                )
            })?,
        },
    })
}
