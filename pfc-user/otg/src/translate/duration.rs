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
    let end: fn(&Reader<'_>) -> Option<End> = match &*chosen {
        "continuous" => |_| Some(End::Never),
        "fixed_packets" => |reader| reader.count("packets").map(End::Frames),
        "fixed_seconds" => |reader| seconds(reader).map(End::Time),
        "burst" => burst,
        other => {
            return duration.refuse_choice(
                other,
                "continuous, fixed_packets, fixed_seconds and burst are",
            );
        }
    };
    let reader = duration.object(&chosen);
    let (end, gap) = (end(&reader), gap(&reader));
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
    reader.or_error("gap", u32::try_from(gap).ok(), || {
        format!("must be at most {}, found {gap}", u32::MAX)
    })
}

fn seconds(reader: &Reader<'_>) -> Option<Nanos> {
    let seconds = reader.float("seconds").unwrap_or(1.0);
    let found = nanos(seconds * 1e9).filter(|nanos| *nanos > 0);
    reader.or_error("seconds", found, || {
        format!("must be above 0, found {seconds}")
    })
}

fn burst(reader: &Reader<'_>) -> Option<End> {
    let frames = reader.count("packets")?;
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
        other => return reader.refuse_choice(other, "bytes, nanoseconds and microseconds are"),
    };
    let value = reader.float(&chosen).unwrap_or(default);
    let value = reader.or_error(&chosen, nanos(value * unit), || {
        format!("must be 0 to 1e18 ns, found {value}")
    })?;
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
