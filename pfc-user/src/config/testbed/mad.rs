//! The part of a testbed that the MAD cases use.

use std::fmt;
use std::path::PathBuf;

use ib_mad::mad::{Lid, MKey};
use ib_mad::sma::fault::Fault;
use ib_mad::smp::{Path, Route};
use serde::{Deserialize, Deserializer, Serialize, de};
use validator_core::keys;
use validator_core::plan::Nanos;
use validator_core::quantity::Span;

use crate::config::ConfigError;
use crate::config::constraints::{faults, given, positive, refuse, required};
use crate::config::document::Document;

/// The tester's port of the MAD cases, and the way to the DUT.
#[derive(Clone, Debug, PartialEq)]
pub struct MadTestbed {
    /// Transport of the packets.
    pub transport: MadTransport,
    /// Way to the DUT.
    pub route: Route,
    /// Key that the DUT has before the run; 0 for none.
    pub m_key_current: MKey,
    /// M_KEY_DUT; not 0.
    pub m_key_dut: MKey,
    /// M_KEY_OTHER; neither 0 nor M_KEY_DUT.
    pub m_key_other: MKey,
    /// Least time to wait for an answer.
    pub timeout: Nanos,
}

/// Transport of the packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MadTransport {
    /// The simulated agent: the tool starts `validator dut sma`, which speaks ibsim's protocol.
    #[serde(skip)]
    Sim {
        /// Faults in force.
        faults: Vec<Fault>,
        /// Further arguments for its process.
        args: Vec<String>,
    },
    /// A server of ibsim's socket protocol that runs already.
    Ibsim {
        /// IBSIM_SOCKNAME of the server.
        socket: String,
        /// Node of the fabric that the tester is (SIM_HOST).
        host: String,
    },
    /// A port of a real adapter.
    Umad {
        /// Device, such as `mlx5_0`.
        device: String,
        /// Port, from 1.
        port: u8,
        /// Folder of sysfs: `/sys`, or another in tests.
        sysfs: PathBuf,
    },
}

impl MadTransport {
    /// Its kind, as the file has it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Sim { .. } => "sim",
            Self::Ibsim { .. } => "ibsim",
            Self::Umad { .. } => "umad",
        }
    }

    /// Its place, for people.
    pub fn place(&self) -> String {
        match self {
            Self::Sim { .. } => "the simulated fabric".to_owned(),
            Self::Ibsim { socket, host } => format!("ibsim {socket} {host}"),
            Self::Umad { device, port, .. } => format!("umad {device} port {port}"),
        }
    }
}

keys::table! {
    /// The DUT of the MAD cases, and the way to it.
    #[derive(Deserialize)]
    pub(super) struct Table: "mad", "mad." {
        /// The simulated agent, an ibsim that runs already, or a port of a real adapter. Mandatory.
        transport: Kind = "`sim`, `ibsim`, `umad`", "";
        /// Faults of the simulated agent, such as `"shows-key"`. Only with `sim`.
        faults: Option<Vec<String>> = "list of text", "[]";
        /// Further arguments for its process, such as `"--node", "ca"`. Only with `sim`.
        args: Option<Vec<String>> = "list of text", "[]";
        /// IBSIM_SOCKNAME of the server. Mandatory with `ibsim`, and only there.
        socket: Option<String> = "text", "";
        /// Node of the fabric that the tester is. Mandatory with `ibsim`, and only there.
        host: Option<String> = "text", "";
        /// Adapter, such as `mlx5_0`. Mandatory with `umad`, and only there.
        device: Option<String> = "text", "";
        /// Its port. Only with `umad`.
        port: Option<u8> = "number", "1";
        /// Place of sysfs. Only with `umad`.
        sysfs: Option<PathBuf> = "folder", "\"/sys\"";
        /// Directed route to the DUT: 0, then the egress port of each hop, such as `"0,1"`.
        path: Option<String> = "ports", "the next node";
        /// The DUT's LID, in place of `path`.
        lid: Option<i64> = "number", "";
        /// The M_Key that the DUT has now; 0 is none.
        m_key_current: Option<Key> = "key", "\"0x0000000000000000\"";
        /// M_KEY_DUT, which the DUT has during a subcase.
        m_key_dut: Option<Key> = "key", "\"0x56414c4944415445\"";
        /// M_KEY_OTHER, the wrong key.
        m_key_other: Option<Key> = "key", "\"0x4f54484552204b59\"";
        /// Least time to wait for an answer, at most 10 s. The DUT's own RespTimeValue and
        /// SubnetTimeOut may make it longer.
        timeout: Option<Span> = "time", "\"200ms\"";
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Sim,
    Ibsim,
    Umad,
}

/// A key, written as `"0x0123456789abcdef"`, or as a number where TOML's 63 bits are enough.
#[derive(Clone, Copy)]
struct Key(u64);

struct KeyVisitor;

impl de::Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key of 64 bits in hexadecimal, such as \"0x0123456789abcdef\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Key, E> {
        let digits = text
            .strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(&digits.replace('_', ""), 16).ok());
        digits
            .map(Key)
            .ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Key, E> {
        number
            .try_into()
            .map(Key)
            .map_err(|_| de::Error::invalid_value(de::Unexpected::Signed(number), &self))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

/// Time-out where none is given.
const TIMEOUT: Nanos = 200_000_000;
/// Longest that makes sense: a case waits no longer for any answer.
const LONGEST: Nanos = 10_000_000_000;
/// Highest unicast LID (4.1.3).
const LAST_UNICAST: i64 = 0xbfff;

/// The part in `table`, checked.
pub(super) fn read(document: &Document, table: Table) -> Result<MadTestbed, ConfigError> {
    if table.port == Some(0) {
        return Err(document.error("mad.port", "expected a port from 1, found 0"));
    }
    let transport_port = (table.transport == Kind::Umad).then(|| table.port.unwrap_or(1));
    let route = route(document, &table, transport_port)?;
    let key = |name: &str, given: Option<Key>, default: u64| {
        let key = given.map_or(default, |key| key.0);
        if key == 0 {
            let problem = "expected a key other than 0: with key 0 nothing is protected";
            return Err(document.error(&format!("mad.{name}"), problem));
        }
        Ok(MKey(key))
    };
    let m_key_dut = key("m_key_dut", table.m_key_dut, 0x5641_4c49_4441_5445)?;
    let m_key_other = key("m_key_other", table.m_key_other, 0x4f54_4845_5220_4b59)?;
    if m_key_dut == m_key_other {
        let name = if table.m_key_other.is_some() {
            "mad.m_key_other"
        } else {
            "mad.m_key_dut"
        };
        let problem = format!("expected M_KEY_DUT and M_KEY_OTHER to differ, both are {m_key_dut}");
        return Err(document.error(name, problem));
    }
    let timeout = positive(document, "mad.timeout", table.timeout, TIMEOUT, LONGEST)?;
    let m_key_current = MKey(table.m_key_current.map_or(0, |key| key.0));
    for (name, key) in [("M_KEY_DUT", m_key_dut), ("M_KEY_OTHER", m_key_other)] {
        if key == m_key_current {
            let problem = format!("expected another key than {name}, both are {key}");
            return Err(document.error("mad.m_key_current", problem));
        }
    }
    Ok(MadTestbed {
        transport: transport(document, table)?,
        route,
        m_key_current,
        m_key_dut,
        m_key_other,
        timeout,
    })
}

/// `port`: the adapter's, where a real one is used.
fn route(document: &Document, table: &Table, port: Option<u8>) -> Result<Route, ConfigError> {
    let path = |text: &str| {
        text.parse::<Path>()
            .map_err(|error| document.error("mad.path", error.to_string()))
    };
    match (&table.path, table.lid) {
        (Some(_), Some(_)) => {
            Err(document.error("mad.lid", "expected either path or lid, found both"))
        }
        (Some(text), None) => {
            let path = path(text)?;
            if path.ports().is_empty() {
                return Err(document.error(
                    "mad.path",
                    "the path 0 ends at the tester's own port; \
                     expected the way to the DUT, such as 0,1",
                ));
            }
            // Linux sends a directed route by no other port than the one that it was opened for
            // (smi_handle_dr_smp_send).
            if let Some(port) = port.filter(|port| path.ports()[0] != *port) {
                let problem = format!(
                    "the first hop leaves by the adapter's port, {port}; expected 0,{port} and \
                     what follows, found {path}"
                );
                return Err(document.error("mad.path", problem));
            }
            Ok(Route::Directed(path))
        }
        (None, Some(lid @ 1..=LAST_UNICAST)) => Ok(Route::Lid(Lid(lid as u16))),
        (None, Some(lid)) => Err(document.error(
            "mad.lid",
            format!("expected a unicast LID, 1 to {LAST_UNICAST}, found {lid}"),
        )),
        // The plan's topology: the DUT is the next node.
        (None, None) => Ok(Route::Directed(path(&format!("0,{}", port.unwrap_or(1)))?)),
    }
}

fn transport(document: &Document, table: Table) -> Result<MadTransport, ConfigError> {
    let kind = table.transport;
    let of_sim = given!(table at "mad.": faults args);
    let of_ibsim = given!(table at "mad.": socket host);
    let of_umad = given!(table at "mad.": device port sysfs);
    for (of, word, keys) in [
        (Kind::Sim, "sim", &of_sim[..]),
        (Kind::Ibsim, "ibsim", &of_ibsim),
        (Kind::Umad, "umad", &of_umad),
    ] {
        if kind != of {
            let problem = format!("only transport = \"{word}\" takes it");
            refuse(document, keys, &problem)?;
        }
    }
    Ok(match kind {
        Kind::Sim => MadTransport::Sim {
            faults: faults(document, "mad.faults", &table.faults.unwrap_or_default())?,
            args: table.args.unwrap_or_default(),
        },
        Kind::Ibsim => MadTransport::Ibsim {
            socket: required(
                document,
                "mad.socket",
                table.socket,
                "say the server's IBSIM_SOCKNAME, such as socket = \"sim\"",
            )?,
            host: required(
                document,
                "mad.host",
                table.host,
                "say which node of the fabric the tester is, such as host = \"Hca1\"",
            )?,
        },
        Kind::Umad => MadTransport::Umad {
            device: required(
                document,
                "mad.device",
                table.device,
                "say the adapter's name in /sys/class/infiniband, such as device = \"mlx5_0\"",
            )?,
            port: table.port.unwrap_or(1),
            sysfs: table.sysfs.unwrap_or_else(|| "/sys".into()),
        },
    })
}
