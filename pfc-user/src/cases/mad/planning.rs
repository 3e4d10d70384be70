//! From testbed to repetitions.

use super::CASES;
use crate::config::MadTestbed;
use crate::plan::mad::{MadPlan, MadStimulus};

/// The repetitions of the case `case_id`; none of a case that is not of this family.
pub fn plan(case_id: &str, testbed: &MadTestbed) -> Vec<MadPlan> {
    CASES
        .iter()
        .find(|case| case.case.id == case_id)
        .map(|case| (case.plan)(testbed))
        .unwrap_or_default()
}

/// The one repetition of C14_024_10_01.
pub(super) fn forwarding_table(testbed: &MadTestbed) -> Vec<MadPlan> {
    vec![repetition(
        "blocks-0-to-767".into(),
        MadStimulus::LinearForwardingTable,
        testbed,
    )]
}

/// The subcases of C14_016_Get.
pub(super) fn m_key_get(testbed: &MadTestbed) -> Vec<MadPlan> {
    (0..=3)
        .map(|bits| {
            repetition(
                format!("protect-bits-{bits}"),
                MadStimulus::MKeyGet(bits),
                testbed,
            )
        })
        .collect()
}

fn repetition(name: String, stimulus: MadStimulus, testbed: &MadTestbed) -> MadPlan {
    MadPlan {
        name,
        stimulus,
        route: testbed.route.to_string(),
        m_key_current: testbed.m_key_current.0,
        m_key_dut: testbed.m_key_dut.0,
        m_key_other: testbed.m_key_other.0,
        timeout: testbed.timeout,
    }
}
