//! The counters of the ports' MACs over a repetition.

use anyhow::Result;
use validator_core::evidence::mac::MacReport;
use validator_core::plan::Nanos;

use crate::driver::bringup::testbed::{Testbed, TesterPort};
use crate::driver::kernel::clock;
use crate::driver::kernel::link::mac::MacLog;

/// A log for each port: tx, rx, and the further ones.
pub(super) struct Macs(Vec<MacLog>);

impl Macs {
    /// Sees which counters there are.
    pub(super) fn begin(testbed: &Testbed) -> Result<Self> {
        let logs = testbed.ports().map(TesterPort::mac_log);
        Ok(Self(logs.collect::<Result<_>>()?))
    }

    /// The counters of each port.
    pub(super) fn instruments(&self) -> Vec<(String, Vec<String>)> {
        self.0.iter().map(MacLog::instruments).collect()
    }

    /// Wait until the counters include every frame received.
    pub(super) fn lag(&self) -> Nanos {
        self.0.iter().map(MacLog::lag).max().unwrap_or(0)
    }

    /// Reads all counters; `before` is what begins now.
    pub(super) fn read(&mut self, before: &str) {
        for log in &mut self.0 {
            log.read(before, clock::now());
        }
    }

    /// The readings; what rose is alive from now on.
    pub(super) fn finish(self, repetition: &str, testbed: &mut Testbed) -> Vec<MacReport> {
        let logs = self.0.into_iter().zip(testbed.ports_mut());
        logs.map(|(log, port)| log.finish(repetition, &mut port.mac_alive))
            .collect()
    }
}
