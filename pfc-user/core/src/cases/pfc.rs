//! The four cases of the PFC test plan, and further ones.

mod checks;
mod class_map;
mod enable_vector;
pub mod feasibility;
mod generation;
mod global_pause;
mod independent_times;
mod invalid_frames;
mod judge;
mod lossy;
mod multi_lossless;
mod no_congestion;
mod oversubscription;
pub mod parameters;
mod pause_time;
pub mod planning;
pub mod port;
mod probing;
mod resolution;
mod response_time;
pub mod settle;
mod single_lossless;
mod sizes;
mod source_address;
pub mod stimulate;
mod timer_reload;
pub mod unfolding;
mod victim;
mod zero_time;

pub use judge::delivery::leaked;
pub use judge::probe::held_by_probes;

pub(super) use judge::consistency::check as consistent;

use judge::Pfc;
use parameters::{PfcParameters, Sets, Storm, StormChoice};
use planning::{NotApplicable, RepetitionRequest};
use port::PortContext;

use pfc_ebpf::units::Quanta;

use super::judge::Table;
use crate::plan::RepetitionPlan;
use crate::verdict::{Case, Step};

/// The document of the four.
const DOCUMENT: &str = "PFC test plan, revision 0.2 (SONiC)";

/// Steps of cases 1 and 2.
const LOSSLESS_STEPS: &[Step] = &[
    Step::phase(
        "baseline: test and background traffic without a storm; every counter is shown alive",
    ),
    Step::new("1", "start the PFC storm on the lossless priorities"),
    Step::new(
        "2",
        "after the lead start test traffic (lossless, 50 %) and background traffic (lossy, 50 %) \
     together",
    ),
    Step::new("3", "keep both running, then stop both"),
    Step::new(
        "4",
        "verify: all background frames received while the storm runs, no test frame received",
    ),
    Step::new("5", "stop the storm; wait until the DUT has drained"),
    Step::new("6", "start test and background traffic again"),
    Step::new("7", "verify: all test frames received"),
    Step::phase(
        "probe: on running traffic single pauses that run out, that an XON ends, that a later \
         frame shortens, of lossless and lossy priorities together, and at full load; in every \
         second repetition before step 1",
    ),
    Step::new("8", "repeat with the next lossless priorities"),
];

/// A case of this family.
pub struct PfcCase {
    /// Its description.
    pub case: Case,
    /// The repetition for a request on a testbed.
    pub plan: fn(&PortContext, &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable>,
    /// The repetitions on a DUT whose lossless set is fixed.
    unfold: unfolding::Unfold,
    /// Its checks.
    table: Table<Pfc>,
    /// The sets of priorities that make sense in it.
    sets: Sets,
}

/// The four of the test plan, then the further ones.
pub static CASES: [PfcCase; 18] = [
    single_lossless::CASE,
    multi_lossless::CASE,
    lossy::CASE,
    global_pause::CASE,
    enable_vector::CASE,
    class_map::CASE,
    sizes::CASE,
    zero_time::CASE,
    independent_times::CASE,
    timer_reload::CASE,
    pause_time::CASE,
    response_time::CASE,
    invalid_frames::CASE,
    source_address::CASE,
    generation::CASE,
    no_congestion::CASE,
    oversubscription::CASE,
    victim::CASE,
];

impl PfcCase {
    /// True if the case has that check.
    pub fn has_check(&self, id: &str) -> bool {
        self.table.rows.iter().any(|row| row.id == id)
    }

    /// The parameters that this case uses, the others at fixed values; `is_fixed`: the DUT's
    /// lossless set is.
    pub fn used(&self, parameters: &PfcParameters, is_fixed: bool) -> PfcParameters {
        let mut used = parameters.clone();
        if !self.has_check("resume") {
            used.durations.resume = 0;
        }
        used.durations = match self.sets.storm {
            StormChoice::Without => used.durations.without_storm(),
            StormChoice::Traffic => used.durations.of_traffic(),
            _ => used.durations,
        };
        if matches!(self.sets.storm, StormChoice::Without | StormChoice::Traffic) {
            used.storm = Storm {
                quanta: Quanta::MAX,
                interval: None,
            };
        }
        used.short &= is_fixed;
        used
    }

    /// Ids of the rows that are judged.
    #[cfg(test)]
    pub(super) fn judged(&self) -> Vec<&'static str> {
        self.table.rows.iter().map(|row| row.id).collect()
    }
}
