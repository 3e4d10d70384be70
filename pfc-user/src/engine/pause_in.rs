//! Checks whether pause frames reach a port's program, which holds its queues by them, as far as
//! the machine tells.

use validator_core::engine::Warning;
use validator_core::engine::plan::{Obeys, Port};
use validator_core::evidence::preflight::Facts;
use validator_core::nic::{self, Feature, Receives};

use super::LiveEngine;
use super::port::LivePort;
use crate::driver::kernel::link;

impl LiveEngine {
    /// Returns warnings of what may keep pause frames from the ports that are to obey them.
    pub(super) fn kept_pauses(&self) -> Vec<Warning> {
        let ports = self.ports.iter().zip(&self.plan.ports);
        ports
            .filter_map(|(live, planned)| live.kept_pauses(planned))
            .collect()
    }
}

impl LivePort {
    fn kept_pauses(&self, planned: &Port) -> Option<Warning> {
        if planned.obeys == Obeys::Nothing {
            return None;
        }
        let why = match link::examine(&self.namespace, &self.interface) {
            Ok(facts) => obstacle(planned.obeys, &facts)?,
            Err(error) => format!("nobody can tell: {error}"),
        };
        Some(Warning(format!(
            "port \"{}\": pause frames that {} receives may hold none of its queues, and count \
             nowhere: {why}",
            planned.name, self.interface
        )))
    }
}

/// Reason why pause frames may not reach the program; `None` where none is known.
fn obstacle(obeys: Obeys, facts: &Facts) -> Option<String> {
    if facts.kind.is_some() {
        // Links in software have no MAC.
        return None;
    }
    let (driver, interface) = (&facts.driver.name, &facts.interface);
    let pause = facts.pause.as_ref().is_some_and(|pause| pause.receives);
    if obeys == Obeys::Pause && pause {
        return Some(format!(
            "its MAC obeys PAUSE itself; `ethtool -A {interface} autoneg off rx off` ends that"
        ));
    }
    let pfc = facts.pfc.as_ref().is_some_and(|pfc| pfc.enabled != 0);
    if matches!(obeys, Obeys::Pfc(_)) && pfc {
        return Some(format!(
            "its MAC obeys PFC itself; `dcb pfc set dev {interface} prio-pfc all:off` ends that"
        ));
    }
    let is_on = |feature: Feature| {
        let mut features = facts.features.iter();
        features.any(|fact| Some(&*fact.name) == feature.kernel_name() && fact.on)
    };
    match nic::find(driver).map_or(Receives::Unknown, |nic| nic.receives) {
        Receives::PassesOn => None,
        Receives::WithRxAll if is_on(Feature::RxAll) => None,
        Receives::WithRxAll => Some(format!(
            "the MAC of {driver} keeps them; `ethtool -K {interface} rx-all on` ends that"
        )),
        Receives::Keeps => Some(format!(
            "the MAC of {driver} keeps them, whatever is set; take a port of another NIC"
        )),
        Receives::ByHost => Some(format!(
            "{driver} passes on what its host hands over, whose bridge or MAC may keep them"
        )),
        Receives::Unknown => Some(format!(
            "most MACs keep them, and nothing is known of its driver \"{driver}\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use validator_core::evidence::preflight::{FeatureFact, Pause, Pfc};

    const OF_PFC: Obeys = Obeys::Pfc([None; 8]);

    fn facts(driver: &str) -> Facts {
        let mut facts = Facts {
            interface: "eth1".into(),
            ..Facts::default()
        };
        facts.driver.name = driver.into();
        facts
    }

    fn says(obeys: Obeys, facts: &Facts, part: &str) {
        let why = obstacle(obeys, facts).unwrap();
        assert!(why.contains(part), "{why}");
    }

    #[test]
    fn drivers_that_keep_pause_frames_or_may_are_named() {
        says(OF_PFC, &facts("mlx5_core"), "whatever is set");
        says(OF_PFC, &facts("virtio_net"), "its host hands over");
        says(OF_PFC, &facts("other"), "its driver \"other\"");
    }

    #[test]
    fn software_has_no_mac_that_keeps_them() {
        for kind in ["veth", "tun"] {
            let mut facts = facts(kind);
            facts.kind = Some(kind.into());
            assert_eq!(obstacle(OF_PFC, &facts), None);
        }
    }

    #[test]
    fn rx_all_passes_them_on() {
        let mut facts = facts("e1000e");
        says(OF_PFC, &facts, "`ethtool -K eth1 rx-all on`");
        facts.features.push(FeatureFact {
            name: "rx-all".into(),
            on: true,
            fixed: false,
        });
        assert_eq!(obstacle(OF_PFC, &facts), None);
    }

    #[test]
    fn a_mac_that_obeys_them_itself_is_named_for_that_kind() {
        let mut facts = facts("e1000e");
        facts.features.push(FeatureFact {
            name: "rx-all".into(),
            on: true,
            fixed: false,
        });
        facts.pause = Some(Pause {
            receives: true,
            ..Pause::default()
        });
        says(Obeys::Pause, &facts, "rx off");
        assert_eq!(obstacle(OF_PFC, &facts), None);
        facts.pfc = Some(Pfc {
            enabled: 1 << 3,
            ..Pfc::default()
        });
        says(OF_PFC, &facts, "prio-pfc all:off");
    }
}
