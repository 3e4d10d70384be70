//! Counters of PAUSE/PFC frames that a port's driver and MAC keep, and their log of a repetition.

use std::collections::BTreeMap;

use pfc_ebpf::units::Nanos;
use validator_core::evidence::mac::{self, MacCounter, MacReading, MacReport};
use validator_core::nic;

use super::{LinkError, dcb, ethtool, pause};
use crate::driver::kernel::netns::Namespace;

/// Reads all counters of `interface` in `namespace`.
pub fn read(namespace: &Namespace, interface: &str) -> Result<MacReading, LinkError> {
    let read = namespace.run(|| {
        Ok::<_, std::io::Error>(MacReading {
            // An interface that is gone is an error; statistics that a driver has not are none.
            private: ethtool::counters(interface)?,
            driver: ethtool::driver(interface).unwrap_or_default(),
            pause: pause::pause(interface)
                .map(|pause| pause.frames)
                .unwrap_or_default(),
            mac_control: pause::mac_control(interface).unwrap_or_default(),
            pfc: dcb::pfc(interface).unwrap_or_default(),
        })
    })?;
    read.map_err(|error| {
        LinkError::system(format!("cannot read the counters of {interface}"), error)
    })
}

/// Reads the counters of a port, live or simulated.
pub type Reader = Box<dyn FnMut() -> Result<MacReading, LinkError>>;

/// Proof that counters of a port count at all: it holds for the rest of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// PFC setting of the port at that time: with another one the proof holds no more.
    enabled: Option<u8>,
    /// Proof by the counter's name.
    shown: BTreeMap<String, String>,
}

impl Alive {
    fn how(&self, enabled: Option<u8>, counter: &str) -> Option<String> {
        self.shown
            .get(counter)
            .filter(|_| self.enabled == enabled)
            .cloned()
    }

    fn note(&mut self, enabled: Option<u8>, counter: &str, how: &str) {
        if self.enabled != enabled {
            *self = Self {
                enabled,
                shown: BTreeMap::new(),
            };
        }
        self.shown
            .entry(counter.to_owned())
            .or_insert_with(|| how.to_owned());
    }
}

/// The readings of one repetition.
pub struct MacLog {
    reader: Reader,
    report: MacReport,
}

impl MacLog {
    /// A log without readings: sees which counters there are. `port` is `tx` or `rx`.
    pub fn begin(mut reader: Reader, port: &str, interface: &str, alive: &Alive) -> Self {
        let mut report = MacReport {
            port: port.to_owned(),
            interface: interface.to_owned(),
            driver: String::new(),
            lag: 0,
            enabled: None,
            readings: Vec::new(),
            counters: Vec::new(),
            error: None,
        };
        match reader() {
            Ok(reading) => {
                let enabled = reading.pfc.map(|pfc| pfc.enabled);
                let known = |(counter, _): (MacCounter, u64)| MacCounter {
                    alive: alive.how(enabled, &counter.name),
                    ..counter
                };
                report.counters = nic::counters(&reading).into_iter().map(known).collect();
                report.lag = if report.counters.is_empty() {
                    0
                } else {
                    nic::of(&reading.driver).lag
                };
                (report.driver, report.enabled) = (reading.driver, enabled);
            }
            Err(error) => report.error = Some(error.to_string()),
        }
        Self { reader, report }
    }

    /// The port, and the names of its counters.
    pub fn instruments(&self) -> (String, Vec<String>) {
        let names = self.report.counters.iter().map(|counter| &counter.name);
        (self.report.port.clone(), names.cloned().collect())
    }

    /// Age that the counts may have when they are read.
    pub fn lag(&self) -> Nanos {
        self.report.lag
    }

    /// Reads all counters; `before` is what begins now. What cannot be read makes the log useless,
    /// and nothing else.
    pub fn read(&mut self, before: &str, now: Nanos) {
        if self.report.error.is_some() {
            return;
        }
        match (self.reader)() {
            Ok(reading) => self.add(&reading, before, now),
            Err(error) => self.report.error = Some(error.to_string()),
        }
    }

    fn add(&mut self, reading: &MacReading, before: &str, now: Nanos) {
        let report = &mut self.report;
        if report.enabled != reading.pfc.map(|pfc| pfc.enabled) {
            report.error = Some(format!(
                "the PFC settings of {} were changed meanwhile",
                report.interface
            ));
        }
        let found = nic::counters(reading);
        for counter in &mut report.counters {
            match found
                .iter()
                .find(|(other, _)| other.name == counter.name && other.source == counter.source)
            {
                Some((_, value)) => counter.values.push(*value),
                None => {
                    report.error = Some(format!(
                        "{} has lost its counter {}",
                        report.interface, counter.name
                    ))
                }
            }
        }
        report.readings.push(mac::Reading {
            before: before.to_owned(),
            time: now,
        });
    }

    /// Returns the readings. Counters that rose count as alive from now on; `during` names the
    /// step.
    pub fn finish(self, during: &str, alive: &mut Alive) -> MacReport {
        for (counter, _) in rises(&self.report) {
            alive.note(
                self.report.enabled,
                &counter,
                &format!("it rose in {during}"),
            );
        }
        self.report
    }
}

/// The counters that rose, each with by how much.
pub fn rises(report: &MacReport) -> Vec<(String, u64)> {
    let rise = |counter: &MacCounter| {
        counter
            .rise()
            .filter(|rise| *rise > 0)
            .map(|rise| (counter.name.clone(), rise))
    };
    report.counters.iter().filter_map(rise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use validator_core::evidence::preflight::Pfc;

    fn reading(xoff: u64, enabled: u8) -> MacReading {
        let private = vec![
            ("port.rx_priority_3_xoff_rx".into(), xoff),
            ("rx_packets".into(), 9),
        ];
        MacReading {
            driver: "i40e".into(),
            private,
            pfc: Some(Pfc {
                enabled,
                ..Pfc::default()
            }),
            ..MacReading::default()
        }
    }

    /// Gives reading by reading; an error when there is no more.
    fn recorded(readings: Vec<MacReading>) -> Reader {
        let mut readings = readings.into_iter();
        Box::new(move || {
            let end = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            readings
                .next()
                .ok_or_else(|| LinkError::system("the recording of counters", end()))
        })
    }

    fn log(readings: Vec<MacReading>, alive: &mut Alive) -> MacReport {
        let count = readings.len();
        let readings = [vec![readings[0].clone()], readings].concat();
        let mut log = MacLog::begin(recorded(readings), "tx", "eth0", alive);
        for index in 0..count {
            log.read("storm", index as Nanos);
        }
        log.finish("lossless 3", alive)
    }

    #[test]
    fn what_rose_is_alive_for_the_rest_of_the_run() {
        let mut alive = Alive::default();
        let first = log(
            vec![reading(5, 0), reading(5, 0), reading(8, 0)],
            &mut alive,
        );
        assert_eq!(
            (first.driver.as_str(), first.enabled, first.error),
            ("i40e", Some(0), None)
        );
        let counter = &first.counters[0];
        assert_eq!(
            (counter.values.as_slice(), counter.rise(), &counter.alive),
            (&[5, 5, 8][..], Some(3), &None)
        );
        let second = log(vec![reading(8, 0), reading(8, 0)], &mut alive);
        assert_eq!(
            second.counters[0].alive.as_deref(),
            Some("it rose in lossless 3")
        );
        assert_eq!(second.counters[0].rise(), Some(0));
        let third = log(vec![reading(8, 0x10), reading(8, 0x10)], &mut alive);
        assert_eq!(
            third.counters[0].alive, None,
            "with another PFC setting it may not count"
        );
    }

    #[test]
    fn what_cannot_be_trusted_is_said() {
        let alive = &mut Alive::default();
        assert!(
            log(vec![reading(5, 0), reading(5, 8)], alive)
                .error
                .unwrap()
                .contains("PFC settings of eth0")
        );
        let mut gone = reading(5, 0);
        gone.private.remove(0);
        assert!(
            log(vec![reading(5, 0), gone], alive)
                .error
                .unwrap()
                .contains("port.rx_priority_3_xoff_rx")
        );
        assert_eq!(
            log(vec![reading(5, 0), reading(1, 0)], alive).counters[0].rise(),
            None,
            "a reset"
        );
        let mut ended = MacLog::begin(recorded(Vec::new()), "tx", "eth0", alive);
        ended.read("baseline", 0);
        assert!(ended.finish("", alive).error.is_some());
    }
}
