//! Begin and end of flows.

use pfc_ebpf::units::Nanos;
use validator_core::engine::plan::{End, Schedule, Span};

use crate::reader::Reader;

/// The least gap of Ethernet, in octets (IEEE 802.3, 4A.4.2), which is the model's default.
const GAP: u32 = 12;
/// Longest time, about 31 years: beyond it nothing is meant.
const LONGEST: f64 = 1e18;
const NONE: Span = Span::Octets(0);

/// Reads when a flow begins and ends.
pub fn read(flow: &Reader<'_>) -> Option<Schedule> {
    let Some(duration) = flow.child("duration") else {
        return Some(Schedule {
            delay: NONE,
            end: End::Never,
            gap: GAP,
        });
    };
    let chosen = duration.choice("continuous");
    let reader = match &*chosen {
        "continuous" | "fixed_packets" | "fixed_seconds" | "burst" => duration.object(&chosen),
        other => {
            duration.refuse_choice(
                other,
                "continuous, fixed_packets, fixed_seconds and burst are",
            );
            return None;
        }
    };
    let end = match &*chosen {
        "continuous" => Some(End::Never),
        "fixed_packets" => packets(&reader).map(End::Frames),
        "fixed_seconds" => seconds(&reader).map(End::Time),
        _ => burst(&reader),
    };
    let gap = gap(&reader);
    let delay = if chosen == "burst" {
        Some(NONE)
    } else {
        span(&reader.object("delay"), 0.0)
    };
    Some(Schedule {
        delay: delay?,
        end: end?,
        gap: gap?,
    })
}

fn gap(reader: &Reader<'_>) -> Option<u32> {
    let gap = reader.integer("gap").unwrap_or(u64::from(GAP));
    let known = u32::try_from(gap).ok();
    if known.is_none() {
        reader.error("gap", format!("must be at most {}, found {gap}", u32::MAX));
    }
    known
}

fn packets(reader: &Reader<'_>) -> Option<u64> {
    let packets = reader.integer("packets").unwrap_or(1);
    if packets == 0 {
        reader.error("packets", "must be 1 or more, found 0");
    }
    (packets > 0).then_some(packets)
}

fn seconds(reader: &Reader<'_>) -> Option<Nanos> {
    let seconds = reader.float("seconds").unwrap_or(1.0);
    let found = nanos(seconds * 1e9).filter(|nanos| *nanos > 0);
    if found.is_none() {
        reader.error("seconds", format!("must be above 0, found {seconds}"));
    }
    found
}

fn burst(reader: &Reader<'_>) -> Option<End> {
    let frames = packets(reader)?;
    let bursts = reader.integer("bursts");
    let gap = span(&reader.object("inter_burst_gap"), f64::from(GAP))?;
    Some(End::Bursts {
        // 0, the model's default, is without end.
        bursts: bursts.filter(|bursts| *bursts > 0),
        frames,
        gap,
    })
}

/// Reads a delay or a gap: `octets` by default, or as much time.
fn span(reader: &Reader<'_>, octets: f64) -> Option<Span> {
    let chosen = reader.choice("bytes");
    // The model's defaults in time are those of 1 Gbit/s: 8 ns an octet.
    let (default, unit) = match &*chosen {
        "bytes" => (octets, 1.0),
        "nanoseconds" => (octets * 8.0, 1.0),
        "microseconds" => (octets * 0.008, 1000.0),
        other => {
            reader.refuse_choice(other, "bytes, nanoseconds and microseconds are");
            return None;
        }
    };
    let value = reader.float(&chosen).unwrap_or(default);
    let Some(value) = nanos(value * unit) else {
        reader.error(&chosen, format!("must be 0 to 1e18 ns, found {value}"));
        return None;
    };
    Some(if chosen == "bytes" {
        Span::Octets(value)
    } else {
        Span::Time(value)
    })
}

/// The nearest whole number; `None` for what is none of 0 to [`LONGEST`].
fn nanos(value: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the bounds are checked"
    )]
    (0.0..=LONGEST)
        .contains(&value)
        .then(|| value.round() as u64)
}
