//! Lengths of frames.

use pfc_ebpf::flow_stamp::Form;
use validator_core::engine::packet::Packet;
use validator_core::engine::plan::{Length, Metrics};

use crate::reader::Reader;

/// Least length of an Ethernet frame with FCS (IEEE 802.3, 4A.4.2).
pub const LEAST: u32 = 64;
/// Greatest length that the engine sends, with FCS.
pub const GREATEST: u32 = 16_000;

/// Shortest frames of a flow, in octets with FCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortest {
    /// Octets that its headers and FCS take.
    pub headers: u32,
    /// The shortest frame, with a whole stamp if the flow is counted.
    pub whole: u32,
    /// The shortest frame that may be asked for: the stamp of a flow that is counted may be short.
    pub frame: u32,
    /// Latency is measured, for which a stamp has to be whole.
    pub timed: bool,
}

impl Shortest {
    /// Computes it for frames of this packet with these counts, by a stamp of that form at least.
    pub fn of(packet: &Packet, metrics: Metrics) -> Self {
        let whole = metrics.stamp.and(Some(Form::Whole));
        Self {
            headers: packet.shortest(None),
            whole: packet.shortest(whole).max(LEAST),
            frame: packet.shortest(metrics.stamp).max(LEAST),
            timed: metrics.latency,
        }
    }

    /// Returns the stamp that frames of these lengths are counted by, and the shortest frames of
    /// the flow from then on.
    pub fn counted(self, length: &Length) -> (Form, Self) {
        if length.bounds().0 < self.whole {
            return (Form::Short, self);
        }
        let frame = self.whole;
        (Form::Whole, Self { frame, ..self })
    }

    /// Returns the reason why a frame of `length` octets is too short.
    fn why(self, length: u64) -> String {
        let Self { headers, frame, .. } = self;
        if (u64::from(headers)..u64::from(frame)).contains(&length) && frame > LEAST {
            let stamp = frame - headers;
            let switch = if self.timed {
                "latency.enable"
            } else {
                "enable"
            };
            format!(
                " (headers and FCS take {headers}, and the stamp that the flow is counted by \
                 {stamp}: ask for {frame}, or set metrics.{switch} to false)"
            )
        } else if frame > LEAST {
            format!(" (the flow's headers, its stamp if it is counted, and FCS take {frame})")
        } else {
            String::new()
        }
    }
}

/// Consequence of frames that have no room for a whole stamp.
pub const SHORT: &str = "leaves room for a short stamp alone: latency is not measured, and a copy \
                         that comes more than 512 frames late counts as a frame";

/// The model's distributions.
const MIXES: [(&str, &[(u32, f32)]); 5] = [
    ("imix", &[(64, 7.0), (570, 4.0), (1518, 1.0)]),
    (
        "ipsec_imix",
        &[(90, 58.67), (92, 2.0), (594, 23.66), (1418, 15.67)],
    ),
    (
        "ipv6_imix",
        &[(60, 58.67), (496, 2.0), (594, 23.66), (1518, 15.67)],
    ),
    (
        "standard_imix",
        &[(58, 58.67), (62, 2.0), (594, 23.66), (1518, 15.67)],
    ),
    (
        "tcp_imix",
        &[(90, 58.67), (92, 2.0), (594, 23.66), (1518, 15.67)],
    ),
];

/// Reads the lengths of a flow's frames, none below `shortest`. Without a size, they have that
/// length, as clients expect; where it is more than [`LEAST`], a warning says so.
pub fn read(flow: &Reader<'_>, shortest: Shortest) -> Option<Length> {
    let Some(size) = flow.child("size") else {
        let least = shortest.frame;
        if least > LEAST {
            flow.warn("size", format!("is not given: frames have {least} octets"));
        }
        return checked(flow, "size", u64::from(least), shortest).map(Length::Fixed);
    };
    match &*size.choice("fixed") {
        "fixed" => {
            let length = size.integer("fixed").unwrap_or(u64::from(LEAST));
            checked(&size, "fixed", length, shortest).map(Length::Fixed)
        }
        "increment" => increment(&size.object("increment"), shortest),
        "random" => random(&size.object("random"), shortest),
        "weight_pairs" => weights(&size.object("weight_pairs"), shortest),
        other => size.refuse_choice(other, "fixed, increment, random and weight_pairs are"),
    }
}

fn increment(reader: &Reader<'_>, shortest: Shortest) -> Option<Length> {
    let start = reader.integer("start").unwrap_or(64);
    let end = reader.integer("end").unwrap_or(1518);
    let step = reader.integer("step").unwrap_or(1);
    if start > end {
        reader.error("start", format!("is {start}, above the end {end}"));
    }
    let known = u32::try_from(step).ok().filter(|step| *step > 0);
    let known = reader.or_error("step", known, || format!("must be 1 or more, found {step}"));
    Some(Length::Increment {
        start: checked(reader, "start", start, shortest)?,
        end: checked(reader, "end", end, shortest)?,
        step: known?,
    })
}

fn random(reader: &Reader<'_>, shortest: Shortest) -> Option<Length> {
    let min = reader.integer("min").unwrap_or(64);
    let max = reader.integer("max").unwrap_or(1518);
    if min > max {
        reader.error("min", format!("is {min}, above the greatest length {max}"));
    }
    Some(Length::Random {
        min: checked(reader, "min", min, shortest)?,
        max: checked(reader, "max", max, shortest)?,
    })
}

fn weights(reader: &Reader<'_>, shortest: Shortest) -> Option<Length> {
    if reader.choice("predefined") == "predefined" {
        let name = reader.enumeration("predefined").unwrap_or("imix".into());
        let mix = MIXES.iter().find(|mix| mix.0 == name);
        let (_, mix) =
            reader.or_error("predefined", mix, || format!("\"{name}\" is not supported"))?;
        let least = shortest.frame;
        if mix.iter().any(|pair| pair.0 < least) {
            let text =
                format!("has shorter frames than this flow's, which have {least} octets then");
            reader.warn("predefined", text);
        }
        let raised = mix
            .iter()
            .map(|(length, weight)| (*length.max(&least), *weight));
        return Some(Length::Weighted(raised.collect()));
    }
    let pairs = reader.children("custom");
    if pairs.is_empty() {
        reader.error("custom", "is empty: add a size and its weight");
    }
    let read = |pair: &Reader<'_>| {
        let size = pair.integer("size").unwrap_or(u64::from(LEAST));
        let weight = pair.float("weight").unwrap_or(1.0);
        if !(weight.is_finite() && weight > 0.0) {
            pair.error("weight", format!("must be above 0, found {weight}"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "it was an f32")]
        Some((checked(pair, "size", size, shortest)?, weight as f32))
    };
    let list = pairs.iter().map(read).collect::<Option<Vec<_>>>()?;
    Some(Length::Weighted(list))
}

/// Returns a length between the shortest and [`GREATEST`]; an error else.
fn checked(reader: &Reader<'_>, field: &str, length: u64, shortest: Shortest) -> Option<u32> {
    let known = u32::try_from(length)
        .ok()
        .filter(|length| (shortest.frame..=GREATEST).contains(length));
    reader.or_error(field, known, || {
        let (least, why) = (shortest.frame, shortest.why(length));
        format!("must be {least} to {GREATEST} octets with FCS{why}, found {length}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_takes_what_is_let_through_and_nothing_beyond() {
        for (length, taken) in [
            (LEAST - 1, false),
            (LEAST, true),
            (GREATEST, true),
            (GREATEST + 1, false),
        ] {
            let defects = Length::Fixed(length).check();
            assert_eq!(defects.is_empty(), taken, "{length}: {defects:?}");
        }
    }
}
