//! Rates of flows.

use validator_core::engine::plan::Rate;

use crate::reader::Reader;

/// Reads the rate of a flow.
pub fn read(flow: &Reader<'_>) -> Option<Rate> {
    let Some(rate) = flow.child("rate") else {
        return Some(Rate::FramesPerSecond(1000));
    };
    let chosen = rate.choice("pps");
    match &*chosen {
        "pps" => {
            let frames = rate.integer("pps").unwrap_or(1000);
            Some(Rate::FramesPerSecond(frames))
        }
        "percentage" => percentage(&rate),
        "bps" => bits(&rate, &chosen, 1_000_000_000, 1),
        "kbps" => bits(&rate, &chosen, 1_000_000, 1000),
        "mbps" => bits(&rate, &chosen, 1000, 1_000_000),
        "gbps" => bits(&rate, &chosen, 1, 1_000_000_000),
        other => rate.refuse_choice(other, "pps, percentage, bps, kbps, mbps and gbps are"),
    }
}

fn percentage(rate: &Reader<'_>) -> Option<Rate> {
    let percent = rate.float("percentage").unwrap_or(100.0);
    let within = rate.within("percentage", percent, 0.0..=100.0);
    within.map(Rate::Percent)
}

/// The model's default is 1 Gbit/s in each unit.
fn bits(rate: &Reader<'_>, field: &str, default: u64, unit: u64) -> Option<Rate> {
    let value = rate.integer(field).unwrap_or(default);
    let bits = value.checked_mul(unit).map(Rate::BitsPerSecond);
    rate.or_error(field, bits, || {
        format!("is {value}, more than any line has")
    })
}
