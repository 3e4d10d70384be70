//! The part of a testbed that the RC cases use.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;
use validator_core::fault::requester::Fault;
use validator_core::keys;

use super::{Port, XdpMode};
use crate::config::ConfigError;
use crate::config::address::is_of_a_host;
use crate::config::constraints::{faults, given, refuse, required};
use crate::config::document::Document;

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

keys::table! {
    /// The DUT of the RC cases, and the tester's port.
    #[derive(Deserialize)]
    pub(super) struct Table: "rc", "rc." {
        /// The simulated requester, or an adapter with `validator agent` on its host. Mandatory.
        dut: Kind = "`sim`, `agent`", "";
        /// Faults of the simulated requester, such as `"one-retry-less"`. Only with `sim`.
        faults: Option<Vec<String>> = "list of text", "[]";
        /// Further arguments for its process. Only with `sim`.
        args: Option<Vec<String>> = "list of text", "[]";
        /// Address at which the agent listens. Mandatory with `agent`, and only there.
        agent: Option<String> = "host:port", "";
        /// File with the shared token. Only with `agent`.
        token_file: Option<PathBuf> = "file", "the environment variable `VALIDATOR_TOKEN`";
        /// The tester's port that the adapter's packets come in by. Mandatory with `agent`, and
        /// only there.
        port: Option<Port> = "port", "";
        /// The tester's address on that port. Mandatory with `agent`.
        address: Option<IpAddr> = "IP address", "`198.18.16.1` with `sim`";
        /// How the XDP program is attached.
        #[serde(default)]
        xdp: XdpMode = "`auto`, `driver`, `skb`", "\"auto\"";
        /// True if the DUT supports Automatic Path Migration, which makes the case not applicable.
        apm: Option<bool> = "true, false", "the device's own flag";
    }
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
    match table.dut {
        Kind::Sim => {
            let keys = given!(table at "rc.": agent token_file port);
            refuse(document, &keys, "only dut = \"agent\" takes it")
        }
        Kind::Agent => {
            let keys = given!(table at "rc.": faults args);
            refuse(document, &keys, "only dut = \"sim\" takes it")
        }
    }
}

/// The tester's address.
fn address(document: &Document, table: &Table) -> Result<IpAddr, ConfigError> {
    let default = match table.dut {
        // RFC 2544 sets 198.18.0.0/15 aside for tests of network devices.
        Kind::Sim => Some(IpAddr::from([198, 18, 16, 1])),
        Kind::Agent => None,
    };
    let what = "say the tester's address on that port, such as address = \"198.18.16.1\"";
    let address = required(document, "rc.address", table.address.or(default), what)?;
    if !is_of_a_host(address) {
        let problem = format!("expected the unicast address of the tester's port, found {address}");
        return Err(document.error("rc.address", problem));
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
            agent: required(
                document,
                "rc.agent",
                table.agent,
                "say where `validator agent` listens, such as agent = \"10.0.0.2:18515\"",
            )?,
            token_file: table.token_file,
            port: required(
                document,
                "rc.port",
                table.port,
                "say which port the DUT's packets come in by, such as port = { interface = \
                 \"eth1\" }",
            )?,
        },
    })
}
