//! The line rate that a run takes.
//!
//! Pause times are in quanta of 512 bit times of the link, whatever a testbed says. At a rate below
//! the link's speed every pause would be thought longer than it is: the storm's frames would be too
//! far apart to keep the DUT paused, a DUT that rightly goes on would be a leak, and one that goes
//! on too late would pass. So a port that knows its speed decides, and `limits.load` says which
//! share of it is sent.

use anyhow::{Context, Result, bail};
use pfc_ebpf::units::LineRate;
use validator_core::{nic, preflight};

use super::{Found, find_all};
use crate::config::{self, Dut};
use crate::driver::kernel::link::LinkState;

/// The line rate that a run would take, without bringing anything up.
pub fn planned_line_rate(config: &config::PfcTestbed) -> Result<LineRate> {
    match &config.dut {
        Dut::External { .. } => {
            let ports = find_all(config)?;
            ports.iter().try_for_each(Found::usable)?;
            line_rate(config.ports.line_rate, &ports)
        }
        _ => config.ports.line_rate.context("ports.line_rate is missing"),
    }
}

pub(super) fn line_rate(asked: Option<LineRate>, ports: &[Found]) -> Result<LineRate> {
    let ports = ports
        .iter()
        .map(|port| (port.interface.as_str(), &port.state));
    decided(asked, &ports.collect::<Vec<_>>())
}

fn decided(asked: Option<LineRate>, ports: &[(&str, &LinkState)]) -> Result<LineRate> {
    let speed = |state: &LinkState| nic::own_speed(state.kind.as_deref(), state.speed);
    if let Some(rate) = asked {
        for (interface, state) in ports {
            if let Some(wrong) = preflight::wrong_line_rate(interface, speed(state), rate) {
                bail!("{wrong}");
            }
        }
        return Ok(rate);
    }
    let mut first: Option<(&str, u64)> = None;
    for (interface, state) in ports {
        let Some(speed) = speed(state) else {
            bail!(
                "{interface} ({}) has no speed that means something: veth and tap report 10 \
                 Gbit/s whatever they are; set line_rate under [ports] in the testbed",
                state.driver
            );
        };
        let mbits = |speed: u64| speed / 1_000_000;
        match first {
            Some((other, of_other)) if of_other != speed => bail!(
                "the ports differ in speed: {other} has {} Mbit/s, {interface} has {} Mbit/s; the \
                 test plan wants equal ones",
                mbits(of_other),
                mbits(speed)
            ),
            _ => first = Some((interface, speed)),
        }
    }
    let (interface, speed) = first.context("a testbed has the ports tx and rx")?;
    LineRate::from_bits_per_second(speed).with_context(|| format!("the speed of {interface}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A port whose driver reports that speed in Mbit/s; of that kind where it is a software link.
    fn port(name: &str, speed: Option<u64>, kind: Option<&str>) -> (String, LinkState) {
        let state = LinkState {
            index: 1,
            driver: "driver".into(),
            kind: kind.map(str::to_owned),
            ethernet: true,
            mac: [2; 6],
            mtu: 1500,
            up: true,
            carrier: true,
            speed: speed.map(|speed| speed * 1_000_000),
        };
        (name.into(), state)
    }

    fn decide(
        asked: Option<u64>,
        tx: (String, LinkState),
        rx: (String, LinkState),
    ) -> Result<u64, String> {
        let asked = asked.map(|rate| LineRate::from_bits_per_second(rate * 1_000_000).unwrap());
        decided(
            asked,
            &[tx, rx]
                .each_ref()
                .map(|(name, state)| (name.as_str(), state)),
        )
        .map(|rate| rate.bits_per_second() / 1_000_000)
        .map_err(|error| error.to_string())
    }

    #[test]
    fn the_line_rate_is_what_is_asked_or_what_both_links_have() {
        let real = |name, speed| port(name, Some(speed), None);
        let veth = |name| port(name, Some(10_000), Some("veth"));
        assert_eq!(
            decide(None, real("a", 25_000), real("b", 25_000)),
            Ok(25_000)
        );
        assert_eq!(
            decide(Some(25_000), real("a", 25_000), real("b", 25_000)),
            Ok(25_000)
        );
        assert_eq!(
            decide(Some(40_000), veth("a"), veth("b")),
            Ok(40_000),
            "a veth's report of 10 Gbit/s is no bound"
        );
        for (asked, tx, rx, message) in [
            (
                Some(1000),
                real("a", 25_000),
                real("b", 25_000),
                "line_rate 1 Gbit/s is below the speed of a, 25000 Mbit/s; without line_rate the \
                 link's speed is taken, and limits.load says which share of it to send",
            ),
            (
                Some(40_000),
                real("a", 40_000),
                real("b", 25_000),
                "line_rate 40 Gbit/s is above the speed of b, 25000 Mbit/s; without line_rate \
                 the link's speed is taken, and limits.load says which share of it to send",
            ),
            (
                None,
                real("a", 25_000),
                real("b", 10_000),
                "the ports differ in speed: a has 25000 Mbit/s, b has 10000 Mbit/s; the test \
                 plan wants equal ones",
            ),
            (
                None,
                real("a", 25_000),
                veth("b"),
                "b (driver) has no speed that means something: veth and tap report 10 Gbit/s \
                 whatever they are; set line_rate under [ports] in the testbed",
            ),
        ] {
            assert_eq!(decide(asked, tx, rx), Err(message.to_owned()));
        }
    }
}
