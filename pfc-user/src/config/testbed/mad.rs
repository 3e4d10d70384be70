//! The part of a testbed that the MAD cases use.

use std::fmt;
use std::path::PathBuf;

use ib_mad::mad::{Lid, MKey};
use ib_mad::sma::fault::Fault;
use ib_mad::smp::{Path, Route};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::config::ConfigError;
use crate::config::constraints::{faults, positive};
use crate::config::document::Document;
use crate::plan::Nanos;
use crate::quantity::Span;

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

/// The table `[mad]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    transport: Kind,
    faults: Option<Vec<String>>,
    args: Option<Vec<String>>,
    socket: Option<String>,
    host: Option<String>,
    device: Option<String>,
    port: Option<u8>,
    sysfs: Option<PathBuf>,
    path: Option<String>,
    lid: Option<i64>,
    m_key_current: Option<Key>,
    m_key_dut: Option<Key>,
    m_key_other: Option<Key>,
    timeout: Option<Span>,
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
            return Err(document.error(
                &format!("mad.{name}"),
                "expected a key other than 0: with key 0 nothing is protected",
            ));
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
        return Err(document.error(
            name,
            format!("expected M_KEY_DUT and M_KEY_OTHER to differ, both are {m_key_dut}"),
        ));
    }
    let timeout = positive(document, "mad.timeout", table.timeout, TIMEOUT, LONGEST)?;
    let m_key_current = MKey(table.m_key_current.map_or(0, |key| key.0));
    for (name, key) in [("M_KEY_DUT", m_key_dut), ("M_KEY_OTHER", m_key_other)] {
        if key == m_key_current {
            return Err(document.error(
                "mad.m_key_current",
                format!("expected another key than {name}, both are {key}"),
            ));
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
    for (key, given, of) in [
        ("faults", table.faults.is_some(), Kind::Sim),
        ("args", table.args.is_some(), Kind::Sim),
        ("socket", table.socket.is_some(), Kind::Ibsim),
        ("host", table.host.is_some(), Kind::Ibsim),
        ("device", table.device.is_some(), Kind::Umad),
        ("port", table.port.is_some(), Kind::Umad),
        ("sysfs", table.sysfs.is_some(), Kind::Umad),
    ] {
        if given && kind != of {
            let word = match of {
                Kind::Sim => "sim",
                Kind::Ibsim => "ibsim",
                Kind::Umad => "umad",
            };
            return Err(document.error(
                &format!("mad.{key}"),
                format!("only transport = \"{word}\" takes it"),
            ));
        }
    }
    let missing =
        |key: &str, what: &str| document.error(&format!("mad.{key}"), format!("missing: {what}"));
    Ok(match kind {
        Kind::Sim => MadTransport::Sim {
            faults: faults(document, "mad.faults", &table.faults.unwrap_or_default())?,
            args: table.args.unwrap_or_default(),
        },
        Kind::Ibsim => MadTransport::Ibsim {
            socket: table.socket.ok_or_else(|| {
                missing(
                    "socket",
                    "say the server's IBSIM_SOCKNAME, such as socket = \"sim\"",
                )
            })?,
            host: table.host.ok_or_else(|| {
                missing(
                    "host",
                    "say which node of the fabric the tester is, such as host = \"Hca1\"",
                )
            })?,
        },
        Kind::Umad => MadTransport::Umad {
            device: table.device.ok_or_else(|| {
                missing(
                    "device",
                    "say the adapter's name in /sys/class/infiniband, such as device = \"mlx5_0\"",
                )
            })?,
            port: table.port.unwrap_or(1),
            sysfs: table.sysfs.unwrap_or_else(|| "/sys".into()),
        },
    })
}
