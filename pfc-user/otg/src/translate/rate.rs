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
        other => {
            rate.refuse_choice(other, "pps, percentage, bps, kbps, mbps and gbps are");
            None
        }
    }
}

fn percentage(rate: &Reader<'_>) -> Option<Rate> {
    let percent = rate.float("percentage").unwrap_or(100.0);
    if (0.0..=100.0).contains(&percent) {
        return Some(Rate::Percent(percent));
    }
    rate.error("percentage", format!("must be 0 to 100, found {percent}"));
    None
}

/// The model's default is 1 Gbit/s in each unit.
fn bits(rate: &Reader<'_>, field: &str, default: u64, unit: u64) -> Option<Rate> {
    let value = rate.integer(field).unwrap_or(default);
    let bits = value.checked_mul(unit);
    if bits.is_none() {
        rate.error(field, format!("is {value}, more than any line has"));
    }
    bits.map(Rate::BitsPerSecond)
}
