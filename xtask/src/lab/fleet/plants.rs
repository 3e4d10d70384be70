//! What is planted in the fleet, and the alert that has to name it.

use anyhow::Result;

use super::Fleet;
use super::network::Host;

/// A fault on one host.
pub struct Plant {
    /// It in words.
    pub what: &'static str,
    host: Host,
    kind: Kind,
    /// The alert that it has to raise, if any: its name, and its labels beside the instance.
    alert: Option<(&'static str, &'static str)>,
}

enum Kind {
    /// Pause frames of that kind come to a port.
    Frames(&'static str),
    /// The pair loses frames of that priority.
    Loss(u8),
    /// Its exporter is killed.
    Killed,
}

/// One of each, and a loss that is none of an alert's business. Each is on a host of its own.
pub const PLANTS: [Plant; 5] = [
    Plant {
        what: "a PFC storm, with XON in it",
        host: Host::new(4),
        kind: Kind::Frames("storm"),
        alert: Some(("ValidatorPfcStorm", "interface=eth2 priority=3")),
    },
    Plant {
        what: "short pauses without XON",
        host: Host::new(9),
        kind: Kind::Frames("pause"),
        alert: Some(("ValidatorOneWayPause", "interface=eth2 priority=4")),
    },
    Plant {
        what: "loss on lossless priority 3",
        host: Host::new(13),
        kind: Kind::Loss(3),
        alert: Some(("ValidatorLosslessLoss", "pair=eth0:eth1 priority=3")),
    },
    Plant {
        what: "a killed exporter",
        host: Host::new(17),
        kind: Kind::Killed,
        alert: Some(("ValidatorExporterBlind", "reason=down")),
    },
    Plant {
        what: "loss on lossy priority 0",
        host: Host::new(2),
        kind: Kind::Loss(0),
        alert: None,
    },
];

impl Plant {
    /// The alert that it has to raise.
    pub fn alert(&self) -> Option<String> {
        let (name, labels) = self.alert?;
        Some(format!("{name} instance={} {labels}", self.host.address()))
    }

    /// Plants it.
    pub fn plant(&self, fleet: &mut Fleet<'_>) -> Result<()> {
        match self.kind {
            Kind::Frames(kind) => fleet.traffic.order(kind, self.host, true),
            Kind::Loss(priority) => fleet.network.lose(self.host, priority),
            Kind::Killed => fleet.exporter(self.host).kill(),
        }
    }

    /// Takes it away.
    pub fn clear(&self, fleet: &mut Fleet<'_>) -> Result<()> {
        match self.kind {
            Kind::Frames(kind) => fleet.traffic.order(kind, self.host, false),
            Kind::Loss(_) => fleet.network.mend(self.host),
            Kind::Killed => fleet.restart(self.host),
        }
    }

    /// A query that has a value once the fault shows in the figures, for one without an alert.
    pub fn shows(&self) -> Option<String> {
        match (&self.alert, &self.kind) {
            (None, Kind::Loss(priority)) => Some(format!(
                "validator:pair_lost:ratio1m{{instance=\"{}\",priority=\"{priority}\"}} > 0.03",
                self.host.address()
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn each_plant_has_a_host_of_its_own_and_each_alert_a_plant() {
        let hosts: BTreeSet<_> = PLANTS.iter().map(|plant| plant.host).collect();
        assert_eq!(hosts.len(), PLANTS.len());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let alerts = std::fs::read_to_string(root.join("configs/prometheus/alerts.yml")).unwrap();
        let published: BTreeSet<_> = alerts
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- alert: "))
            .collect();
        let planted = PLANTS.iter().filter_map(|plant| Some(plant.alert?.0));
        assert_eq!(planted.collect::<BTreeSet<_>>(), published);
    }
}
