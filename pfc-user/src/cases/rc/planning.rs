//! From parameters to a repetition.

use crate::plan::rc::{RcParameters, RcPlan};

/// R_Key and virtual address that the document asks for in step 5.
const R_KEY: u32 = 0x1_2345;
const ADDRESS: u64 = 0x99_9000;

/// The repetition with these parameters.
pub fn plan(parameters: &RcParameters) -> RcPlan {
    let RcParameters {
        retry_count,
        timeout,
        path_mtu,
    } = *parameters;
    RcPlan {
        name: format!("retry {retry_count}, time-out {timeout}, PMTU {path_mtu}"),
        retry_count,
        timeout,
        path_mtu,
        r_key: R_KEY,
        address: ADDRESS,
        // One shows that a retry is answered as well as a first request; each further one takes another T_tr.
        control_drops: retry_count.min(1),
    }
}
