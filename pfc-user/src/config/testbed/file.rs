//! The reader of testbed files, with the mistakes that it refuses.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, Priority, SECOND};
use serde::Deserialize;
use validator_core::cases::pfc::parameters::sorted_set;
use validator_core::evidence::Identity;
use validator_core::keys;
use validator_core::plan::Nanos;
use validator_core::quantity::{Octets, Rate, Span};

use super::{
    Addresses, Destination, Dut, Hooks, PfcTestbed, Port, Sender, Testbed, Tolerances, XdpMode,
    mad, rc,
};
use crate::config::ConfigError;
use crate::config::address::{UnicastMac, is_of_a_host};
use crate::config::constraints::{faults, given, positive, refuse, required};
use crate::config::document::Document;
use crate::dut::switch::config::Scheduler;

/// Tables of a testbed.
pub const TESTBED: &[keys::Table] = &[
    keys::table! {
        /// A testbed has a name and at least one of the tables `[dut]`, `[mad]` and `[rc]`.
        "", "" {
            /// Its name in reports. Mandatory.
            name = "text", "";
        }
    },
    DutTable::TABLE,
    PortsTable::TABLE,
    Port::TABLE,
    QosTable::TABLE,
    AddressesTable::TABLE,
    LimitsTable::TABLE,
    FactsTable::TABLE,
    HooksTable::TABLE,
    mad::Table::TABLE,
    rc::Table::TABLE,
];

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

keys::table! {
    /// The device under test of the PFC cases, and the description of any.
    #[derive(Deserialize)]
    struct DutTable: "dut", "dut." {
        // Absent in a testbed without PFC cases, which may describe its DUT all the same.
        /// The simulated switch, a Linux bridge, or a device that is there already. Mandatory for
        /// PFC cases.
        kind: Option<Kind> = "`sim`, `bridge`, `external`", "";
        /// Faults of the simulated switch, such as `"leaks=100"`. Only with `sim`.
        faults: Option<Vec<String>> = "list of text", "[]";
        /// Further arguments for its process, such as `"--xoff", "512KiB"`. Only with `sim`.
        args: Option<Vec<String>> = "list of text", "[]";
        /// Order in which the simulated switch serves its priorities: the highest first, frame by
        /// frame, or octet by octet (deficit round robin). Only with `sim`.
        scheduler: Option<Scheduler> = "`strict`, `round-robin`, `drr`", "`round-robin`";
        /// The DUT's own names of the ports that the tester's tx and rx port are cabled to, for
        /// hooks. Only with `external`.
        ports: Option<DutPortsTable> = "`{ tx = \"...\", rx = \"...\" }`", "";
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

keys::table! {
    /// The tester's ports of the PFC cases.
    #[derive(Default, Deserialize)]
    struct PortsTable: "ports", "ports." {
        /// Sends the data. Mandatory with `external`, and only there.
        tx: Option<Port> = "port", "";
        /// Receives it, and sends the storm. Mandatory with `external`, and only there.
        rx: Option<Port> = "port", "";
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

keys::table! {
    /// How the DUT of the PFC cases tells priorities, and which are lossless.
    #[derive(Default, Deserialize)]
    struct QosTable: "qos", "qos." {
        /// The field that the DUT trusts. With `pcp`, test frames carry a priority tag, and their
        /// DSCP points to another priority than their PCP.
        trust: Option<Trust> = "`dscp`, `pcp`", "\"dscp\"";
        /// Test frames carry a priority tag with `trust = "dscp"` too; its PCP points to another
        /// priority than their DSCP. With `trust = "pcp"` they always carry one.
        #[serde(default)]
        vlan: bool = "`true`, `false`", "`false`";
        /// The DUT's map from DSCPs to priorities. Mandatory with `external` and `trust = "dscp"`.
        dscp_map: Option<DscpMapValue> =
            "`sonic`, `dscp-mod-8`, `dscp-high-bits`, or 64 priorities",
            "`dscp-mod-8` with `sim` and `bridge`";
        /// The lossless priorities that the DUT has now. Mandatory with `external`, and only there:
        /// the simulated switch takes those of each repetition, and a bridge has none.
        lossless: Option<Vec<Priority>> = "list of priorities", "";
    }
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

keys::table! {
    /// Addresses of the test frames.
    #[derive(Default, Deserialize)]
    struct AddressesTable: "addresses", "addresses." {
        /// Source address, IPv4 or IPv6.
        source_ip: Option<IpAddr> = "IP address", "\"198.18.0.1\"";
        /// Destination address, of the same family.
        destination_ip: Option<IpAddr> = "IP address", "\"198.18.0.2\"";
        /// Source MAC address.
        source_mac: Option<UnicastMac> = "MAC address", "the tx port's own";
        /// Destination MAC address, where the DUT bridges.
        destination_mac: Option<UnicastMac> = "MAC address", "the rx port's own";
        /// The DUT's MAC address, where it routes: MAC addresses, TTL and checksum may then change.
        /// Not together with `destination_mac`.
        gateway_mac: Option<UnicastMac> = "MAC address", "";
    }
}

keys::table! {
    /// Limits that PFC verdicts are judged by.
    #[derive(Default, Deserialize)]
    struct LimitsTable: "limits", "limits." {
        /// Longest time from a pause frame to the last data frame, and from an XON to the first. At
        /// most 1s.
        max_response: Option<Span> = "time", "\"1ms\"";
        /// Octets of one lossless priority that the DUT can take after its own XOFF. At most 1GiB.
        headroom: Option<Octets> = "octets", "\"1MiB\"";
        /// Longest time that a frame may wait in the DUT without being dropped for it. At most
        /// 1min.
        max_residence: Option<Span> = "time", "\"1s\"";
        /// Share of the offered rate that has to arrive during the 802.3x storm.
        min_throughput: Option<f64> = "share", "0.99";
        /// Share of the line rate that counts as 100 %, at least 0.01. 0.9998 leaves room for two
        /// clocks 100 ppm apart.
        load: Option<f64> = "share", "1.0";
        /// The sender's largest burst, at most 4 ms; less where the DUT's lossy queues are short.
        /// Two frames, where those take longer at the line rate.
        max_burst: Option<Span> = "time", "\"4ms\"";
        /// Times that a repetition is measured at most, as long as a check is inconclusive because
        /// the tester itself was disturbed.
        attempts: Option<u32> = "1 to 10", "3";
    }
}

keys::table! {
    /// Facts that cannot be read from here.
    #[derive(Default, Deserialize)]
    struct FactsTable: "facts", "facts." {
        /// The DUT's PFC watchdog. The PFC checks are inconclusive unless it is declared as off, or
        /// `hooks.prepare` says so. With `on`, cases that need it off are refused.
        watchdog: Option<Switched> = "`off`, `on`", "`off` with `sim` and `bridge`, else not known";
        /// The other end of a port that is a veth is the DUT's own, with no bridge between: PAUSE
        /// and PFC frames of the DUT then reach the program. Only with `external`.
        #[serde(default)]
        direct: bool = "`true`, `false`", "`false`";
        /// PAUSE and PFC frames of the DUT reach the program on the tx port, whatever the kind of
        /// port. Only with `external`.
        #[serde(default)]
        pfc_visible: bool = "`true`, `false`", "`false`";
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Switched {
    Off,
    On,
}

keys::table! {
    /// Commands of the user, run by the shell, with what they are run for in variables of the
    /// environment.
    #[derive(Default, Deserialize)]
    struct HooksTable: "hooks", "hooks." {
        /// Makes the DUT ready, once, before anything is measured. Of JSON that it prints,
        /// `"watchdog": "off"` stands for `facts.watchdog`.
        prepare: Option<String> = "command", "";
        /// Makes the priorities of `VALIDATOR_LOSSLESS` (such as `3,4`) lossless on the DUT, before
        /// each repetition. One that it fails for is `inconclusive`.
        configure: Option<String> = "command", "";
        /// Prints the DUT's counters, before and after each repetition. Of whole numbers in JSON
        /// the reports have the changes.
        counters: Option<String> = "command", "";
        /// Puts back what the others have changed, at the end of the run, however it ends. After a
        /// run that was killed, the next one does it.
        restore: Option<String> = "command", "";
        /// Longest time for each. At most 10min. The first MiB of what they print is kept.
        timeout: Option<Span> = "time", "\"60s\"";
    }
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
    if made_by_us {
        let keys = [
            ("facts.direct", facts.direct),
            ("facts.pfc_visible", facts.pfc_visible),
            ("dut.ports", dut_ports.is_some()),
        ];
        refuse(document, &keys, "only a DUT of kind \"external\" takes it")?;
        let what = "a veth has no speed of its own; say it, such as line_rate = \"1G\"";
        required(document, "ports.line_rate", ports.line_rate, what)?;
    }
    let trust = qos.trust.unwrap_or(Trust::Dscp);
    if !made_by_us && trust == Trust::Dscp {
        let what = "say how the DUT maps DSCPs to priorities, such as dscp_map = \"sonic\"";
        required(document, "qos.dscp_map", qos.dscp_map.as_ref(), what)?;
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
        watchdog: match (facts.watchdog, made_by_us) {
            (Some(Switched::On), _) => Some("on".to_owned()),
            (Some(Switched::Off), _) | (None, true) => Some("off".to_owned()),
            (None, false) => None,
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
    if kind != Kind::Sim {
        let keys = given!(dut at "dut.": faults args scheduler);
        refuse(document, &keys, "only a DUT of kind \"sim\" takes it")?;
    }
    if kind != Kind::External {
        let keys = given!(ports at "ports.": tx rx);
        let problem = "the tool makes its own ports for this kind of DUT; remove it, or set \
                       dut.kind = \"external\"";
        refuse(document, &keys, problem)?;
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
            let tx = required(document, "ports.tx", ports.tx, what)?;
            let rx = required(document, "ports.rx", ports.rx, what)?;
            if tx == rx {
                let interface = rx.interface;
                let problem =
                    format!("port {interface} is used twice; tx and rx must be different ports");
                return Err(document.error("ports.rx", problem));
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
            all_dscps(priorities).map_err(|problem| document.error("qos.dscp_map", problem))
        }
    }
}

/// Priorities of all DSCPs from 0 on.
pub(in crate::config) fn all_dscps(
    priorities: Vec<Priority>,
) -> Result<[Priority; Dscp::COUNT], String> {
    priorities.try_into().map_err(|found: Vec<_>| {
        let found = found.len();
        format!("expected 64 priorities, one for each DSCP from 0; found {found}")
    })
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
        None if made_by_us => Ok(Vec::new()),
        given => {
            let what = "say which priorities are lossless on the DUT, such as lossless = [3, 4]";
            let priorities = required(document, "qos.lossless", given, what)?;
            sorted_set(&priorities).map_err(|problem| document.error("qos.lossless", problem))
        }
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
        let problem = format!(
            "source {source_ip} and destination {destination_ip} must be of one family, IPv4 or \
             IPv6"
        );
        return Err(document.error(key, problem));
    }
    if source_ip == destination_ip {
        let problem = format!("source and destination must differ, both are {source_ip}");
        return Err(document.error("addresses.destination_ip", problem));
    }
    for (key, address) in [
        ("addresses.source_ip", source_ip),
        ("addresses.destination_ip", destination_ip),
    ] {
        if !is_of_a_host(address) {
            let problem = format!("expected the unicast address of a host, found {address}");
            return Err(document.error(key, problem));
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
    let time = |key: &str, given, default, most| {
        positive(document, &format!("limits.{key}"), given, default, most)
    };
    let limits = Tolerances {
        max_response: time("max_response", table.max_response, 1_000_000, SECOND)?,
        headroom: headroom(document, table.headroom)?,
        max_residence: time("max_residence", table.max_residence, SECOND, 60 * SECOND)?,
        min_throughput: share(document, "min_throughput", table.min_throughput, 0.99)?,
        load: share(document, "load", table.load, 1.0)?,
        max_burst: time("max_burst", table.max_burst, MAX_BURST, MAX_BURST)?,
        attempts: table.attempts.unwrap_or(3),
    };
    if !ATTEMPTS.contains(&limits.attempts) {
        let (least, most, found) = (ATTEMPTS.start(), ATTEMPTS.end(), limits.attempts);
        let problem = format!("expected {least} to {most}, found {found}");
        return Err(document.error("limits.attempts", problem));
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
        found => {
            let problem = format!("expected a share above 0 and at most 1, found {found}");
            Err(document.error(&format!("limits.{key}"), problem))
        }
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
