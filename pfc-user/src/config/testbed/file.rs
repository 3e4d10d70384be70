//! The reader of testbed files, with the mistakes that it refuses.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, Priority};
use serde::Deserialize;

use super::{
    Addresses, Destination, Dut, Hooks, PfcTestbed, Port, Sender, Testbed, Tolerances, XdpMode,
    mad, rc,
};
use crate::config::ConfigError;
use crate::config::address::{UnicastMac, is_of_a_host};
use crate::config::constraints::{faults, positive, priority_set};
use crate::config::document::Document;
use crate::dut::switch::config::Scheduler;
use crate::evidence::Identity;
use crate::plan::Nanos;
use crate::quantity::{Octets, Rate, Span};

const SECOND: Nanos = 1_000_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    dut: Option<DutTable>,
    ports: Option<PortsTable>,
    qos: Option<QosTable>,
    addresses: Option<AddressesTable>,
    limits: Option<LimitsTable>,
    facts: Option<FactsTable>,
    hooks: Option<HooksTable>,
    mad: Option<mad::Table>,
    rc: Option<rc::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DutTable {
    /// None of a testbed without PFC cases, which may describe its DUT all the same.
    kind: Option<Kind>,
    faults: Option<Vec<String>>,
    args: Option<Vec<String>>,
    scheduler: Option<Scheduler>,
    ports: Option<DutPortsTable>,
    vendor: Option<String>,
    model: Option<String>,
    serial: Option<String>,
    software: Option<String>,
}

impl DutTable {
    /// The description of the device, taken out.
    fn identity(&mut self) -> Identity {
        let word = |given: &mut Option<String>| given.take().unwrap_or_default();
        Identity {
            vendor: word(&mut self.vendor),
            model: word(&mut self.model),
            serial: word(&mut self.serial),
            software: word(&mut self.software),
        }
    }
}

/// The DUT's own names of the ports that the tester's are cabled to.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DutPortsTable {
    tx: String,
    rx: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Sim,
    Bridge,
    External,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortsTable {
    tx: Option<Port>,
    rx: Option<Port>,
    line_rate: Option<Rate>,
    #[serde(default)]
    xdp: XdpMode,
    #[serde(default)]
    sender: Sender,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct QosTable {
    trust: Option<TrustWord>,
    #[serde(default)]
    vlan: bool,
    dscp_map: Option<DscpMapValue>,
    lossless: Option<Vec<Priority>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TrustWord {
    Dscp,
    Pcp,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"sonic\", \"dscp-mod-8\", \"dscp-high-bits\", or an array of 64 \
     priorities (0 to 7)"
)]
enum DscpMapValue {
    Preset(Preset),
    Explicit(Vec<Priority>),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::config) enum Preset {
    Sonic,
    #[serde(rename = "dscp-mod-8")]
    DscpMod8,
    DscpHighBits,
}

impl Preset {
    pub(in crate::config) fn map(self) -> [Priority; Dscp::COUNT] {
        match self {
            // SONiC's default map, `AZURE`: all but six code points have priority 1, and none has
            // 7.
            Self::Sonic => {
                let mut map = [Priority::from_low_bits(1); Dscp::COUNT];
                for (dscp, priority) in [(3, 3), (4, 4), (5, 2), (8, 0), (46, 5), (48, 6)] {
                    map[dscp] = Priority::from_low_bits(priority);
                }
                map
            }
            Self::DscpMod8 => std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8)),
            // The class selector.
            Self::DscpHighBits => {
                std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8 >> 3))
            }
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AddressesTable {
    source_ip: Option<IpAddr>,
    destination_ip: Option<IpAddr>,
    source_mac: Option<UnicastMac>,
    destination_mac: Option<UnicastMac>,
    gateway_mac: Option<UnicastMac>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    max_response: Option<Span>,
    headroom: Option<Octets>,
    max_residence: Option<Span>,
    min_throughput: Option<f64>,
    load: Option<f64>,
    max_burst: Option<Span>,
    attempts: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactsTable {
    watchdog: Option<Switched>,
    #[serde(default)]
    direct: bool,
    #[serde(default)]
    pfc_visible: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Switched {
    Off,
    On,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HooksTable {
    prepare: Option<String>,
    configure: Option<String>,
    counters: Option<String>,
    restore: Option<String>,
    timeout: Option<Span>,
}

/// The testbed in `document`, checked.
pub(in crate::config) fn read(document: &Document) -> Result<Testbed, ConfigError> {
    let mut file: File = document.decode()?;
    let name = std::mem::take(&mut file.name);
    let mad = file
        .mad
        .take()
        .map(|table| mad::read(document, table))
        .transpose()?;
    let rc = file
        .rc
        .take()
        .map(|table| rc::read(document, table))
        .transpose()?;
    let mut table = file.dut.take();
    let identity = table.as_mut().map(DutTable::identity).unwrap_or_default();
    let described = identity.known().next().is_some() && (mad.is_some() || rc.is_some());
    let pfc = match table.map(|table| (table.kind, table)) {
        Some((Some(kind), table)) => Some(pfc(document, kind, table, file)?),
        Some((None, _)) if !described => {
            let problem = "missing: expected \"sim\", \"bridge\" or \"external\"";
            return Err(document.error("dut.kind", problem));
        }
        Some((None, _)) | None => {
            let given = [
                ("ports", file.ports.is_some()),
                ("qos", file.qos.is_some()),
                ("addresses", file.addresses.is_some()),
                ("limits", file.limits.is_some()),
                ("facts", file.facts.is_some()),
                ("hooks", file.hooks.is_some()),
            ];
            if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
                return Err(document.error(
                    key,
                    "it goes with dut.kind, which is missing: say what the DUT of the PFC cases is",
                ));
            }
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
    kind: Kind,
    mut table: DutTable,
    file: File,
) -> Result<PfcTestbed, ConfigError> {
    let dut_ports = table.ports.take();
    let made_by_us = kind != Kind::External;
    let ports = file.ports.unwrap_or_default();
    let qos = file.qos.unwrap_or_default();
    let hooks = file.hooks.unwrap_or_default();
    let facts = file.facts.unwrap_or_default();
    for (key, given) in [
        ("facts.direct", facts.direct),
        ("facts.pfc_visible", facts.pfc_visible),
    ] {
        if made_by_us && given {
            return Err(document.error(key, "only a DUT of kind \"external\" takes it"));
        }
    }
    if made_by_us && dut_ports.is_some() {
        return Err(document.error("dut.ports", "only a DUT of kind \"external\" takes it"));
    }
    if made_by_us && ports.line_rate.is_none() {
        return Err(document.error(
            "ports.line_rate",
            "missing: a veth has no speed of its own; say it, such as line_rate = \"1G\"",
        ));
    }
    let trust = match qos.trust.unwrap_or(TrustWord::Dscp) {
        TrustWord::Dscp => Trust::Dscp,
        TrustWord::Pcp => Trust::Pcp,
    };
    if !made_by_us && trust == Trust::Dscp && qos.dscp_map.is_none() {
        return Err(document.error(
            "qos.dscp_map",
            "missing: say how the DUT maps DSCPs to priorities, such as dscp_map = \"sonic\"",
        ));
    }
    Ok(PfcTestbed {
        line_rate: ports.line_rate.map(|rate| rate.0),
        xdp: ports.xdp,
        sender: ports.sender,
        dut: dut(document, kind, table, ports)?,
        trust,
        vlan: qos.vlan,
        dscp_map: dscp_map(document, qos.dscp_map)?,
        lossless: lossless(document, qos.lossless, made_by_us)?,
        addresses: addresses(document, &file.addresses.unwrap_or_default())?,
        limits: limits(document, &file.limits.unwrap_or_default())?,
        direct: facts.direct,
        pfc_visible: facts.pfc_visible,
        watchdog: match facts.watchdog {
            Some(Switched::On) => Some("on".to_owned()),
            Some(Switched::Off) => Some("off".to_owned()),
            None => made_by_us.then(|| "off".to_owned()),
        },
        dut_ports: dut_ports.map_or_else(Default::default, |ports| [ports.tx, ports.rx]),
        hooks: Hooks {
            prepare: hooks.prepare,
            configure: hooks.configure,
            counters: hooks.counters,
            restore: hooks.restore,
            timeout: positive(
                document,
                "hooks.timeout",
                hooks.timeout,
                60 * SECOND,
                600 * SECOND,
            )?,
        },
    })
}

fn dut(
    document: &Document,
    kind: Kind,
    dut: DutTable,
    ports: PortsTable,
) -> Result<Dut, ConfigError> {
    for (key, given) in [
        ("dut.faults", dut.faults.is_some()),
        ("dut.args", dut.args.is_some()),
        ("dut.scheduler", dut.scheduler.is_some()),
    ] {
        if kind != Kind::Sim && given {
            return Err(document.error(key, "only a DUT of kind \"sim\" takes it"));
        }
    }
    if kind != Kind::External {
        for (key, given) in [("ports.tx", &ports.tx), ("ports.rx", &ports.rx)] {
            if given.is_some() {
                return Err(document.error(
                    key,
                    "the tool makes its own ports for this kind of DUT; \
                     remove it, or set dut.kind = \"external\"",
                ));
            }
        }
    }
    match kind {
        Kind::Sim => Ok(Dut::Sim {
            faults: faults(document, "dut.faults", &dut.faults.unwrap_or_default())?,
            args: dut.args.unwrap_or_default(),
            scheduler: dut.scheduler.unwrap_or_default(),
        }),
        Kind::Bridge => Ok(Dut::Bridge),
        Kind::External => {
            let missing = |key| {
                document.error(
                    key,
                    "missing: an external DUT needs both ports, such as { interface = \"eth1\" }",
                )
            };
            let tx = ports.tx.ok_or_else(|| missing("ports.tx"))?;
            let rx = ports.rx.ok_or_else(|| missing("ports.rx"))?;
            if tx == rx {
                return Err(document.error(
                    "ports.rx",
                    format!(
                        "port {} is used twice; tx and rx must be different ports",
                        rx.interface
                    ),
                ));
            }
            Ok(Dut::External { tx, rx })
        }
    }
}

fn dscp_map(
    document: &Document,
    value: Option<DscpMapValue>,
) -> Result<[Priority; Dscp::COUNT], ConfigError> {
    match value {
        None => Ok(Preset::DscpMod8.map()),
        Some(DscpMapValue::Preset(preset)) => Ok(preset.map()),
        Some(DscpMapValue::Explicit(priorities)) => {
            priorities.try_into().map_err(|found: Vec<_>| {
                document.error(
                    "qos.dscp_map",
                    format!(
                        "expected 64 priorities, one for each DSCP from 0; found {}",
                        found.len()
                    ),
                )
            })
        }
    }
}

fn lossless(
    document: &Document,
    given: Option<Vec<Priority>>,
    made_by_us: bool,
) -> Result<Vec<Priority>, ConfigError> {
    match given {
        Some(_) if made_by_us => Err(document.error(
            "qos.lossless",
            "only a DUT of kind \"external\" takes it: the simulated switch is given the lossless \
             priorities of each repetition, and a bridge has none",
        )),
        Some(priorities) => priority_set(document, "qos.lossless", &priorities),
        None if made_by_us => Ok(Vec::new()),
        None => Err(document.error(
            "qos.lossless",
            "missing: say which priorities are lossless on the DUT, such as lossless = [3, 4]",
        )),
    }
}

fn addresses(document: &Document, table: &AddressesTable) -> Result<Addresses, ConfigError> {
    // RFC 2544 sets 198.18.0.0/15 aside for tests of network devices.
    let source_ip = table
        .source_ip
        .unwrap_or(Ipv4Addr::new(198, 18, 0, 1).into());
    let destination_ip = table
        .destination_ip
        .unwrap_or(Ipv4Addr::new(198, 18, 0, 2).into());
    if source_ip.is_ipv4() != destination_ip.is_ipv4() {
        let key = if table.destination_ip.is_some() {
            "addresses.destination_ip"
        } else {
            "addresses.source_ip"
        };
        return Err(document.error(
            key,
            format!(
                "source {source_ip} and destination \
         {destination_ip} must be of one family, IPv4 or IPv6"
            ),
        ));
    }
    if source_ip == destination_ip {
        return Err(document.error(
            "addresses.destination_ip",
            format!("source and destination must differ, both are {source_ip}"),
        ));
    }
    for (key, address) in [
        ("addresses.source_ip", source_ip),
        ("addresses.destination_ip", destination_ip),
    ] {
        if !is_of_a_host(address) {
            return Err(document.error(
                key,
                format!("expected the unicast address of a host, found {address}"),
            ));
        }
    }
    let destination = match (table.destination_mac, table.gateway_mac) {
        (None, None) => Destination::RxPort,
        (Some(mac), None) => Destination::Mac(mac.0),
        (None, Some(mac)) => Destination::Gateway(mac.0),
        (Some(_), Some(_)) => {
            return Err(document.error(
                "addresses.gateway_mac",
                "expected either destination_mac (the DUT bridges) or gateway_mac (the DUT \
                 routes), found both",
            ));
        }
    };
    Ok(Addresses {
        source_ip,
        destination_ip,
        source_mac: table.source_mac.map(|mac| mac.0),
        destination,
    })
}

fn limits(document: &Document, table: &LimitsTable) -> Result<Tolerances, ConfigError> {
    const MAX_BURST: Nanos = 4_000_000;
    const ATTEMPTS: RangeInclusive<u32> = 1..=10;
    const LEAST_LOAD: f64 = 0.01;
    let limits = Tolerances {
        max_response: positive(
            document,
            "limits.max_response",
            table.max_response,
            1_000_000,
            SECOND,
        )?,
        headroom: headroom(document, table.headroom)?,
        max_residence: positive(
            document,
            "limits.max_residence",
            table.max_residence,
            SECOND,
            60 * SECOND,
        )?,
        min_throughput: share(
            document,
            "limits.min_throughput",
            table.min_throughput,
            0.99,
        )?,
        load: share(document, "limits.load", table.load, 1.0)?,
        max_burst: positive(
            document,
            "limits.max_burst",
            table.max_burst,
            MAX_BURST,
            MAX_BURST,
        )?,
        attempts: table.attempts.unwrap_or(3),
    };
    if !ATTEMPTS.contains(&limits.attempts) {
        let (least, most) = (ATTEMPTS.start(), ATTEMPTS.end());
        return Err(document.error(
            "limits.attempts",
            format!("expected {least} to {most}, found {}", limits.attempts),
        ));
    }
    if limits.load < LEAST_LOAD {
        let problem = format!(
            "expected at least {LEAST_LOAD}, found {}: with less, nothing is there to be paused",
            limits.load
        );
        return Err(document.error("limits.load", problem));
    }
    Ok(limits)
}

fn headroom(document: &Document, given: Option<Octets>) -> Result<u64, ConfigError> {
    // More than any switch has in all.
    const MOST: Octets = Octets(1 << 30);
    let given = given.unwrap_or(Octets(1 << 20));
    if given > MOST {
        let problem = format!("expected at most {MOST}, found {given}");
        return Err(document.error("limits.headroom", problem));
    }
    Ok(given.0)
}

fn share(
    document: &Document,
    key: &str,
    given: Option<f64>,
    default: f64,
) -> Result<f64, ConfigError> {
    match given.unwrap_or(default) {
        share if share > 0.0 && share <= 1.0 => Ok(share),
        found => Err(document.error(
            key,
            format!("expected a share above 0 and at most 1, found {found}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code points of that priority.
    fn dscps(preset: Preset, priority: u8) -> Vec<u8> {
        let map = preset.map();
        (0..64)
            .filter(|dscp| map[usize::from(*dscp)].get() == priority)
            .collect()
    }

    #[test]
    fn the_sonic_map_has_no_dscp_for_priority_7() {
        let found: Vec<_> = [0, 2, 3, 4, 5, 6, 7]
            .map(|priority| dscps(Preset::Sonic, priority))
            .to_vec();
        assert_eq!(
            found,
            [
                vec![8],
                vec![5],
                vec![3],
                vec![4],
                vec![46],
                vec![48],
                vec![]
            ]
        );
        assert_eq!(dscps(Preset::Sonic, 1).len(), 58);
    }

    #[test]
    fn the_other_presets_have_eight_dscps_for_each_priority() {
        for priority in 0..8 {
            assert_eq!(
                dscps(Preset::DscpMod8, priority),
                (0..8).map(|n| 8 * n + priority).collect::<Vec<_>>()
            );
            assert_eq!(
                dscps(Preset::DscpHighBits, priority),
                (0..8).map(|n| 8 * priority + n).collect::<Vec<_>>()
            );
        }
    }
}
