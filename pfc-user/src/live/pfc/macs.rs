//! The counters of both ports' MACs over a repetition.

use anyhow::Result;
use validator_core::evidence::mac::MacReport;
use validator_core::plan::Nanos;

use crate::driver::bringup::testbed::Testbed;
use crate::driver::kernel::clock;
use crate::driver::kernel::link::mac::MacLog;

/// A log for each port.
pub(super) struct Macs {
    tx: MacLog,
    rx: MacLog,
}

impl Macs {
    /// Sees which counters there are.
    pub(super) fn begin(testbed: &Testbed) -> Result<Self> {
        Ok(Self {
            tx: testbed.tx.mac_log("tx")?,
            rx: testbed.rx.mac_log("rx")?,
        })
    }

    /// The counters of each port.
    pub(super) fn instruments(&self) -> Vec<(String, Vec<String>)> {
        vec![self.tx.instruments(), self.rx.instruments()]
    }

    /// Wait until the counters include every frame received.
    pub(super) fn lag(&self) -> Nanos {
        self.tx.lag().max(self.rx.lag())
    }

    /// Reads all counters; `before` is what begins now.
    pub(super) fn read(&mut self, before: &str) {
        for log in [&mut self.tx, &mut self.rx] {
            log.read(before, clock::now());
        }
    }

    /// The readings; what rose is alive from now on.
    pub(super) fn finish(self, repetition: &str, testbed: &mut Testbed) -> Vec<MacReport> {
        vec![
            self.tx.finish(repetition, &mut testbed.tx.mac_alive),
            self.rx.finish(repetition, &mut testbed.rx.mac_alive),
        ]
    }
}
