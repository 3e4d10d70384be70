//! Frames of a window compared by what no device changes, so that a loss shows for which duplicates
//! make up. No I/O.

use pfc_ebpf::abi::watch::{CLASSES, Sketch};

/// Comparison of the frames that two ports saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Each came as often as it was sent.
    Same,
    /// So many, at least, did not come as often as they were sent.
    Different(u64),
    /// They cannot be told apart, and why.
    Untold(&'static str),
}

/// Compares `sent` and `received` frames, all of a window. `counted` frames were sent by the
/// counters; `allowance` of those received may have been in flight at its edges.
pub fn compare(sent: &Sketch, received: &Sketch, counted: u64, allowance: u64) -> Compared {
    if sent.unsorted + received.unsorted > 0 {
        return Compared::Untold(
            "frames were merged where they were counted (`ethtool -K DEV gso off tso off gro off`)",
        );
    }
    if sent.sorted() != counted {
        return Compared::Untold("frames were being sent while the window was read");
    }
    let classes = sent.classes.iter().zip(received.classes);
    let missing: u64 = classes
        .map(|(sent, received)| sent.saturating_sub(received))
        .sum();
    if missing > 0 {
        return Compared::Different(missing);
    }
    if !are_distinct(sent) {
        return Compared::Untold("the frames are alike");
    }
    // A lost frame and a duplicate of one class are not seen where others are in flight.
    if allowance == 0 && sent.digest != received.digest {
        return Compared::Different(1);
    }
    Compared::Same
}

/// True if the frames are spread over the classes as frames that differ are: those that are alike
/// share a class. Six standard deviations, and one pair, allow for chance.
fn are_distinct(sent: &Sketch) -> bool {
    let pairs = |frames: f64| frames * (frames - 1.0) / 2.0;
    let found: f64 = sent.classes.iter().map(|frames| pairs(*frames as f64)).sum();
    let expected = pairs(sent.sorted() as f64) / CLASSES as f64;
    found <= expected + 6.0 * expected.sqrt() + 1.0
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
        let Compared::Different(missing) = compare(&sent, &replaced, 1000, 0) else {
            panic!("not seen");
        };
        assert!((35..=40).contains(&missing), "{missing}");
        // The same where others are in flight, which adds frames and takes none away.
        let more = sketch((40..1000).chain(500..540).chain(5000..5010));
        assert!(matches!(
            compare(&sent, &more, 1000, 10),
            Compared::Different(missing) if missing > 30
        ));
    }

    #[test]
    fn one_frame_in_place_of_another_of_its_class_is_seen_where_none_is_in_flight() {
        let sent = sketch(0..10);
        let mut other = sent;
        other.digest = other.digest.wrapping_add(1);
        assert_eq!(compare(&sent, &other, 10, 0), Compared::Different(1));
        assert_eq!(compare(&sent, &other, 10, 1), Compared::Same);
    }

    #[test]
    fn frames_that_cannot_be_told_apart_prove_nothing() {
        for alike in [3, 1000, 1_000_000] {
            let sketch = sketch(std::iter::repeat_n(7, alike));
            assert_eq!(
                compare(&sketch, &sketch, alike as u64, 0),
                Compared::Untold("the frames are alike")
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
            Compared::Untold(_)
        ));
        assert!(matches!(
            compare(&sketch(0..10), &sketch(0..10), 11, 0),
            Compared::Untold(_)
        ));
    }
}
