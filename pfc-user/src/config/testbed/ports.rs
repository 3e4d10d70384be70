//! The tester's ports of the PFC cases.

use std::collections::BTreeMap;
use std::fmt;

use pfc_ebpf::units::LineRate;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use validator_core::evidence::xdp::XdpMode;
use validator_core::keys;
use validator_core::plan::{PortName, PortRole};
use validator_core::quantity::Rate;

use super::dut::Kind;
use crate::config::ConfigError;
use crate::config::constraints::{refuse, required};
use crate::config::document::Document;

/// The tester's ports, but for the interfaces of tx and rx, which [`super::Dut`] has.
#[derive(Clone, Debug, PartialEq)]
pub struct Ports {
    /// Their speed. `None`: the speed of the link; never with a simulated DUT or a bridge.
    pub line_rate: Option<LineRate>,
    /// Mode in which the XDP programs are attached.
    pub xdp: XdpMode,
    /// Sender of the test traffic.
    pub sender: Sender,
    /// Further ports.
    pub more: BTreeMap<PortName, FurtherPort>,
}

/// A further port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherPort {
    /// Its part.
    pub role: PortRole,
    /// Its interface; `None` where the tool makes it.
    pub interface: Option<Port>,
}

impl Ports {
    /// Names of all: tx, rx, and the further ones.
    pub fn names(&self) -> impl Iterator<Item = &PortName> {
        [&PortName::TX, &PortName::RX]
            .into_iter()
            .chain(self.more.keys())
    }

    /// Names of the further ports that have this part.
    pub fn further(&self, role: PortRole) -> impl Iterator<Item = &PortName> {
        let of_role = self.more.iter().filter(move |(_, port)| port.role == role);
        of_role.map(|(name, _)| name)
    }
}

keys::table! {
    /// A port.
    #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
    pub struct Port: "ports.tx, ports.rx, rc.port", "" {
        /// Its interface. Mandatory.
        pub interface: String = "text", "";
        /// The named network namespace that it is in.
        pub namespace: Option<String> = "text", "where the tool is started";
    }
}

keys::table! {
    /// A further port, under a name of its own such as `tx2`.
    #[derive(Deserialize)]
    pub(super) struct Further: "ports.NAME", "ports.NAME." {
        /// Its part: it sends data, as `tx` does, or receives it, as `rx` does, in cases that have
        /// several ports of that part. Mandatory.
        role: PortRole = "`tx` or `rx`", "";
        /// Its interface. Mandatory with `external`, and only there.
        interface: Option<String> = "text", "";
        /// The named network namespace that it is in. Only with `external`.
        namespace: Option<String> = "text", "where the tool is started";
    }
}

/// Sender of the test traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sender {
    /// Live frames where the frame rate asks for them and the port takes them, else sendmmsg.
    #[default]
    Auto,
    /// The XDP program that makes frames in the kernel.
    LiveFrames,
    /// A thread with a packet socket.
    Sendmmsg,
}

keys::table! {
    /// The tester's ports of the PFC cases.
    #[derive(Default, Deserialize)]
    pub(super) struct Table: "ports", "ports." {
        /// Sends the data. Mandatory with `external`, and only there.
        pub(super) tx: Option<Port> = "port", "";
        /// Receives it, and sends the storm. Mandatory with `external`, and only there.
        pub(super) rx: Option<Port> = "port", "";
        /// Speed of the ports. Mandatory with `sim` and `bridge`, and on veth and tap.
        line_rate: Option<Rate> = "rate", "the link's speed";
        /// Way in which XDP programs are attached: in the driver, in the kernel's generic path, or
        /// the first of these that works.
        #[serde(default)]
        xdp: XdpMode = "`auto`, `driver`, `skb`", "\"auto\"";
        /// Sender of the test traffic. `auto` takes live frames, which the kernel makes, from some
        /// 200,000 frames a second on where the tx port takes them.
        #[serde(default)]
        sender: Sender = "`auto`, `live-frames`, `sendmmsg`", "\"auto\"";
    }
}

/// The whole of `[ports]`: its settings, and the further ports by name.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) settings: Table,
    further: BTreeMap<String, Further>,
}

impl<'de> Deserialize<'de> for Tables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ports;

        impl<'de> Visitor<'de> for Ports {
            type Value = Tables;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of ports")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Tables, A::Error> {
                let mut further = BTreeMap::new();
                let settings = Settings {
                    map,
                    further: &mut further,
                };
                let settings = Table::deserialize(MapAccessDeserializer::new(settings))?;
                Ok(Tables { settings, further })
            }
        }

        deserializer.deserialize_map(Ports)
    }
}

/// The settings in a map, from which it takes the further ports.
struct Settings<'f, A> {
    map: A,
    further: &'f mut BTreeMap<String, Further>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Settings<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if settings().any(|setting| setting == key) {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            let port = self.map.next_value_seed(Named(&key))?;
            self.further.insert(key, port);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Names of the settings in `[ports]`.
fn settings() -> impl Iterator<Item = &'static str> {
    let keys = Table::TABLE.keys.iter();
    keys.filter_map(|key| key.path.strip_prefix("ports."))
}

/// Reads the further port of that name. What is no table is a misspelt setting.
struct Named<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for Named<'_> {
    type Value = Further;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Further, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Named<'_> {
    type Value = Further;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table for a further port")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Further, A::Error> {
        Further::deserialize(MapAccessDeserializer::new(map))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Further, E> {
        Err(self.unknown())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Further, E> {
        Err(self.unknown())
    }
}

impl Named<'_> {
    fn unknown<E: Error>(&self) -> E {
        let settings: Vec<String> = settings().map(|name| format!("`{name}`")).collect();
        E::custom(format!(
            "unknown field `{}`, expected one of {}, or a table with the role of a further port",
            self.0,
            settings.join(", ")
        ))
    }
}

/// Longest name of a port, which is an interface's where the tool makes it.
const NAME: usize = 15;

/// The settings in `tables`, checked, for a DUT of that kind.
pub(super) fn read(document: &Document, kind: Kind, tables: Tables) -> Result<Ports, ConfigError> {
    let Tables { settings, further } = tables;
    if kind != Kind::External {
        let what = "a veth has no speed of its own; say it, such as line_rate = \"1G\"";
        required(document, "ports.line_rate", settings.line_rate, what)?;
    }
    let mut more = BTreeMap::new();
    for (name, port) in further {
        let key = format!("ports.{name}");
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > NAME || !name.chars().all(plain) {
            let problem = format!(
                "expected a name of up to {NAME} letters, digits, `-` and `_`, found {name:?}"
            );
            return Err(document.error(&key, problem));
        }
        let Further {
            role,
            interface,
            namespace,
        } = port;
        let interface = if kind == Kind::External {
            let what = "a port of an external DUT needs one, such as \"eth3\"";
            let interface = required(document, &format!("{key}.interface"), interface, what)?;
            Some(Port {
                interface,
                namespace,
            })
        } else {
            for (part, given) in [("interface", &interface), ("namespace", &namespace)] {
                let key = format!("{key}.{part}");
                refuse(document, &[(&key, given.is_some())], OWN_PORTS)?;
            }
            None
        };
        more.insert(PortName::new(name), FurtherPort { role, interface });
    }
    Ok(Ports {
        line_rate: settings.line_rate.map(|rate| rate.0),
        xdp: settings.xdp,
        sender: settings.sender,
        more,
    })
}

/// Why a port of an own DUT has no interface in the file.
pub(super) const OWN_PORTS: &str = "the tool makes its own ports for this kind of DUT; remove it, \
    or set dut.kind = \"external\"";
