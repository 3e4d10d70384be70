//! Arguments of `validator dut switch`.

use std::path::PathBuf;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};
use validator_core::fault::switch::Fault;
use validator_core::quantity::{octets, rate};

use super::config::{Scheduler, SwitchConfig, Weights};

/// A lossless switch with two to eight ports, simulated on interfaces of this host.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = Fault::help())]
pub struct SwitchArgs {
    /// Interface of a port, of this network namespace or as NAMESPACE:IFACE; once for each port.
    #[arg(long = "port", value_name = "IFACE", num_args = 1, required = true)]
    pub(super) ports: Vec<String>,
    /// Emulated speed of the ports, such as 2.5G.
    #[arg(long, value_name = "RATE", default_value = "1G", value_parser = rate)]
    line_rate: LineRate,
    /// Lossless priorities, such as 3,4; none by default.
    #[arg(long, value_name = "PRIORITY", value_delimiter = ',', value_parser = priority)]
    lossless: Vec<Priority>,
    /// The field that determines a frame's priority: dscp or pcp.
    #[arg(long, value_name = "FIELD", default_value = "dscp", value_parser = trust)]
    trust: Trust,
    /// Priorities of the 64 DSCPs, separated by commas; DSCP mod 8 by default.
    #[arg(long, value_name = "PRIORITIES", value_parser = dscp_map)]
    dscp_map: Option<DscpMap>,
    /// Octets that all ports and priorities hold together; no bound by default.
    #[arg(long, value_name = "OCTETS", value_parser = octets)]
    buffer: Option<u64>,
    /// Octets held of a lossless priority that came in at one port, above which that sends
    /// XOFF, such as 512KiB, which is the default.
    #[arg(long, value_name = "OCTETS", value_parser = octets)]
    xoff: Option<u64>,
    /// Fill level in octets at or below which XON is sent (default 256 KiB).
    #[arg(long, value_name = "OCTETS", value_parser = octets)]
    xon: Option<u64>,
    /// Send no XON, as the standard allows: XOFF is no longer repeated, and runs out.
    #[arg(long)]
    no_xon: bool,
    /// Pause time that XOFF asks for, in quanta of 512 bit times; XOFF is repeated each third of it
    /// (default 65535).
    #[arg(long, value_name = "QUANTA", value_parser = clap::value_parser!(u16).range(1..))]
    xoff_quanta: Option<u16>,
    /// Headroom in octets beyond XOFF (default 1 MiB).
    #[arg(long, value_name = "OCTETS", value_parser = octets)]
    headroom: Option<u64>,
    /// Queue of a lossy priority at one port in octets (default 4 MiB).
    #[arg(long, value_name = "OCTETS", value_parser = octets)]
    lossy_queue: Option<u64>,
    /// Order in which the priorities are served: strict (the highest first), round-robin (frame by
    /// frame) or drr (deficit round robin, octet by octet).
    #[arg(long, value_name = "ORDER", default_value = "round-robin")]
    scheduler: Scheduler,
    /// Shares of the eight priorities in the octets that drr sends, such as 1,1,1,2,4,1,1,1; equal
    /// by default.
    #[arg(long, value_name = "WEIGHTS")]
    weights: Option<Weights>,
    /// Inject a fault; may be given several times.
    #[arg(long = "fault", value_name = "NAME[=VALUE]")]
    pub(super) faults: Vec<Fault>,
    /// Unix socket at which whoever connects is told the counts of each port so far, as JSON.
    #[arg(long, value_name = "SOCKET")]
    pub(super) counters: Option<PathBuf>,
}

/// Priority by DSCP.
#[derive(Clone, Copy, Debug)]
struct DscpMap([Priority; Dscp::COUNT]);

impl SwitchArgs {
    /// Configuration; its addresses are replaced by the interfaces' own.
    pub(super) fn config(&self) -> SwitchConfig {
        let mut config = SwitchConfig::new(self.line_rate, self.lossless.iter().copied().collect());
        config.trust = self.trust;
        config.dscp_to_priority = self.dscp_map.map_or(config.dscp_to_priority, |map| map.0);
        config.buffer = self.buffer.unwrap_or(config.buffer);
        config.xoff = self.xoff.unwrap_or(config.xoff);
        config.xon = self.xon.unwrap_or(config.xon);
        config.sends_xon = !self.no_xon;
        config.xoff_quanta = self.xoff_quanta.map_or(config.xoff_quanta, Quanta);
        config.headroom = self.headroom.unwrap_or(config.headroom);
        config.lossy_queue = self.lossy_queue.unwrap_or(config.lossy_queue);
        config.scheduler = self.scheduler;
        config.weights = self.weights.unwrap_or_default();
        config
    }
}

fn priority(text: &str) -> Result<Priority, String> {
    let number = text
        .parse()
        .map_err(|_| format!("expected a priority of 0 to 7, found {text:?}"))?;
    Priority::new(number).map_err(|error| error.to_string())
}

fn trust(text: &str) -> Result<Trust, String> {
    match text {
        "dscp" => Ok(Trust::Dscp),
        "pcp" => Ok(Trust::Pcp),
        _ => Err("expected dscp or pcp".into()),
    }
}

fn dscp_map(text: &str) -> Result<DscpMap, String> {
    let priorities: Vec<Priority> = text.split(',').map(priority).collect::<Result<_, _>>()?;
    let found = priorities.len();
    priorities
        .try_into()
        .map(DscpMap)
        .map_err(|_| format!("expected 64 priorities, found {found}"))
}

#[cfg(test)]
mod tests {
    use super::super::config::Priorities;
    use super::*;
    use crate::dut::parsed;

    fn options(line: &str) -> Result<SwitchArgs, String> {
        parsed(line)
    }

    #[test]
    fn two_ports_are_enough() {
        let rate = LineRate::from_bits_per_second(1_000_000_000).unwrap();
        let options = options("switch --port a --port b").unwrap();
        assert_eq!(options.ports, ["a", "b"]);
        assert_eq!(
            options.config(),
            SwitchConfig::new(rate, Priorities::default())
        );
        assert!(options.faults.is_empty());
        assert_eq!(options.counters, None);
    }

    #[test]
    fn everything_can_be_set() {
        let map = (0..64)
            .map(|dscp| (dscp / 8).to_string())
            .collect::<Vec<_>>()
            .join(",");
        let line = format!(
            "switch --port a --port b --line-rate 2.5G --lossless 3,4 --trust pcp --dscp-map {map} \
             --xoff 9KiB --xon 8 --no-xon --xoff-quanta 300 --headroom 7B --lossy-queue 6 --scheduler drr \
             --buffer 1MiB --weights 1,1,1,2,4,1,1,255 \
             --fault leaks=5 --fault dips \
             --counters /run/switch.sock"
        );
        let options = options(&line).unwrap();
        let mut expected = SwitchConfig::new(
            LineRate::from_bits_per_second(2_500_000_000).unwrap(),
            Priorities(0b11000),
        );
        expected.trust = Trust::Pcp;
        expected.dscp_to_priority =
            std::array::from_fn(|dscp| Priority::new(dscp as u8 / 8).unwrap());
        (
            expected.xoff,
            expected.xon,
            expected.headroom,
            expected.lossy_queue,
        ) = (9 << 10, 8, 7, 6);
        expected.sends_xon = false;
        expected.xoff_quanta = Quanta(300);
        expected.scheduler = Scheduler::Drr;
        expected.buffer = 1 << 20;
        expected.weights = "1,1,1,2,4,1,1,255".parse().unwrap();
        assert_eq!(options.config(), expected);
        assert_eq!(options.faults, ["leaks=5".parse().unwrap(), Fault::Dips]);
        assert_eq!(options.counters, Some("/run/switch.sock".into()));
    }

    #[test]
    fn wrong_values_say_what_was_expected() {
        for (flags, message) in [
            ("--port b --lossless 8", "priority must be 0 to 7, found 8"),
            ("--port b --trust vlan", "expected dscp or pcp"),
            (
                "--weights 1,2",
                "expected 8 weights of 1 to 255, separated by commas, found \"1,2\"",
            ),
            (
                "--weights 1,1,1,0,1,1,1,1",
                "expected 8 weights of 1 to 255",
            ),
            ("--port b --xoff-quanta 0", "0 is not in 1..=65535"),
            (
                "--port b --scheduler fair",
                "expected strict, round-robin or drr, found \"fair\"",
            ),
            (
                "--port b --line-rate fast",
                "expected a rate with its unit (K, M, G, T for bit/s), such as \"25G\"",
            ),
            (
                "--port b --line-rate 0",
                "line rate in bit/s must be 1000000 to",
            ),
            ("--port b --dscp-map 1,2", "expected 64 priorities, found 2"),
            ("--port b --fault nothing", "no fault is called \"nothing\""),
        ] {
            let error = options(&format!("switch --port a {flags}")).unwrap_err();
            assert!(error.contains(message), "{flags}: {error}");
        }
    }
}
