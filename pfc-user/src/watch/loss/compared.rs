//! Frames of a window compared by what no device changes, so that a loss shows for which duplicates
//! make up. No I/O.

use pfc_ebpf::abi::watch::{CLASSES, Sketch};

use super::{Row, Verdict, Window};

/// Comparison of the frames that two ports saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Each came as often as it was sent.
    Same,
    /// At least this many frames did not come as often as they were sent. Where frames are
    /// `distinct`, hardly more.
    Different {
        /// Frames that are missing.
        least: u64,
        /// Frames can be told apart.
        distinct: bool,
    },
    /// Frames cannot be told apart; the text says why.
    Unknown(&'static str),
}

/// Compares `sent` and `received` frames, all of a window. `counted` frames were sent by the
/// counters; `allowance` of those received may have been in flight at its edges.
pub fn compare(sent: &Sketch, received: &Sketch, counted: u64, allowance: u64) -> Compared {
    if sent.unsorted + received.unsorted > 0 {
        return Compared::Unknown(
            "frames were merged where they were counted (`ethtool -K DEV gso off tso off gro off`)",
        );
    }
    if sent.sorted() != counted {
        return Compared::Unknown("frames were being sent while the window was read");
    }
    let classes = sent.classes.iter().zip(received.classes);
    let missing: u64 = classes
        .map(|(sent, received)| sent.saturating_sub(received))
        .sum();
    let distinct = are_distinct(sent);
    if missing > 0 {
        let least = missing;
        return Compared::Different { least, distinct };
    }
    if !distinct {
        return Compared::Unknown("the frames are alike");
    }
    // A lost frame and a duplicate of one class are not seen where others are in flight.
    if allowance == 0 && sent.digest != received.digest {
        return Compared::Different { least: 1, distinct };
    }
    Compared::Same
}

/// True if the frames are spread over the classes as frames that differ are: those that are alike
/// share a class. Six standard deviations, and one pair, allow for chance.
fn are_distinct(sent: &Sketch) -> bool {
    let pairs = |frames: f64| frames * (frames - 1.0) / 2.0;
    let found: f64 = sent
        .classes
        .iter()
        .map(|frames| pairs(*frames as f64))
        .sum();
    let expected = pairs(sent.sorted() as f64) / CLASSES as f64;
    found <= expected + 6.0 * expected.sqrt() + 1.0
}

/// True if no more frames are missing by comparison than by counts.
pub(super) fn none_lost_by_comparison(window: &Window, rows: &[Row]) -> bool {
    match window.compared {
        Some(Compared::Same) => true,
        Some(Compared::Different { least, distinct }) => {
            let lost: u64 = rows.iter().map(|row| row.lost).sum();
            distinct && least <= lost
        }
        _ => false,
    }
}

/// True if all that came are test frames, none of them twice: then each that was sent and is not
/// missing by number is one of those that came.
pub(super) fn none_lost_by_stamps(window: &Window, flows: &[Row]) -> bool {
    let received = &window.flows_received;
    !flows.is_empty()
        && flows.iter().all(|row| row.verdict == Verdict::NoLoss)
        && window.stamped >= window.received.iter().sum()
        && received.iter().all(|flow| flow.duplicate == 0)
}

/// Reason why frames that are balanced are not said to be without loss.
pub(super) fn balanced(window: &Window) -> String {
    let why = match &window.compared {
        Some(Compared::Unknown(why)) => why,
        _ => "the sender's were not to be seen",
    };
    format!(
        "as many came as were sent; frames could not be compared ({why}), so that duplicates may \
         make up for lost ones"
    )
}

/// Reason why nothing is said of frames that are balanced and yet others than those sent.
pub(super) fn different(frames: u64) -> String {
    format!(
        "as many came as were sent, but at least {frames} of them are others: frames were lost and \
         duplicated, or changed on the way"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sketch of frames with these hashes.
    fn sketch(hashes: impl IntoIterator<Item = u64>) -> Sketch {
        let mut sketch = Sketch::ZERO;
        for hash in hashes {
            let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            sketch.digest = sketch.digest.wrapping_add(hash);
            sketch.classes[(hash >> 32) as usize % CLASSES] += 1;
        }
        sketch
    }

    #[test]
    fn a_loss_for_which_duplicates_make_up_is_seen() {
        let sent = sketch(0..1000);
        assert_eq!(compare(&sent, &sketch(0..1000), 1000, 0), Compared::Same);
        let replaced = sketch((40..1000).chain(500..540));
        let found = compare(&sent, &replaced, 1000, 0);
        assert!(
            matches!(
                found,
                Compared::Different {
                    least: 35..=40,
                    distinct: true
                }
            ),
            "{found:?}"
        );
        // The result is the same with others in flight, which adds frames and takes none away.
        let more = sketch((40..1000).chain(500..540).chain(5000..5010));
        assert!(matches!(
            compare(&sent, &more, 1000, 10),
            Compared::Different { least: 31..=40, .. }
        ));
    }

    #[test]
    fn one_frame_in_place_of_another_of_its_class_is_seen_where_none_is_in_flight() {
        let sent = sketch(0..10);
        let mut other = sent;
        other.digest = other.digest.wrapping_add(1);
        let one = Compared::Different {
            least: 1,
            distinct: true,
        };
        assert_eq!(compare(&sent, &other, 10, 0), one);
        assert_eq!(compare(&sent, &other, 10, 1), Compared::Same);
    }

    #[test]
    fn frames_that_cannot_be_told_apart_prove_nothing() {
        for alike in [3, 1000, 1_000_000] {
            let sketch = sketch(std::iter::repeat_n(7, alike));
            assert_eq!(
                compare(&sketch, &sketch, alike as u64, 0),
                Compared::Unknown("the frames are alike")
            );
        }
        for distinct in [1, 2, 10, 100, 100_000] {
            let sketch = sketch(0..distinct);
            assert_eq!(compare(&sketch, &sketch, distinct, 0), Compared::Same);
        }
        let mut merged = sketch(0..10);
        merged.unsorted = 1;
        assert!(matches!(
            compare(&sketch(0..10), &merged, 10, 0),
            Compared::Unknown(_)
        ));
        assert!(matches!(
            compare(&sketch(0..10), &sketch(0..10), 11, 0),
            Compared::Unknown(_)
        ));
    }
}
