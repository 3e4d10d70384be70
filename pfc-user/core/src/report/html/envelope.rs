//! A series of windows, thinned to the pixels that it is drawn on.

use std::fmt::Write;

use pfc_ebpf::units::Nanos;

use super::plot::{Scale, WIDTH};

/// Least and most frames of a window, by pixel column.
pub struct Envelope {
    columns: Vec<(u32, u32)>,
    /// True if a column stands for several windows.
    pub thinned: bool,
}

impl Envelope {
    /// One column for each window if there are few, else those of the scale. The pair is the begin
    /// of the first window and the width of each.
    pub fn of(counts: &[u32], (epoch, width): (Nanos, Nanos), scale: &Scale) -> Self {
        let width = width.max(1);
        let windows = i128::from(scale.span().div_ceil(width).max(1));
        let number = windows.min(scale.of_series() as i128);
        // Windows begin with the sender's clock, the drawing with the first phase.
        let offset = i128::from(scale.from) - i128::from(epoch);
        let first = offset.div_euclid(i128::from(width));
        let column = |index: i128| {
            let from = first + index * windows / number;
            let to = (first + (index + 1) * windows / number).max(from + 1);
            let inside = |at: i128| at.clamp(0, counts.len() as i128) as usize;
            let found = &counts[inside(from)..inside(to)];
            let most = found.iter().copied().max().unwrap_or(0);
            let least = found.iter().copied().min().unwrap_or(0);
            let outside = (found.len() as i128) < to - from;
            (if outside { 0 } else { least }, most)
        };
        Self {
            columns: (0..number).map(column).collect(),
            thinned: number < windows,
        }
    }

    /// A line of steps from left to right; 0 at 100, the peak at 0.
    pub fn path(&self, peak: u32, value: impl Fn(&(u32, u32)) -> u32) -> String {
        let y = |frames: u32| 100 - (f64::from(frames) / f64::from(peak) * 100.0).round() as u32;
        let mut d = String::new();
        let mut last = None;
        for (index, column) in self.columns.iter().enumerate() {
            let level = y(value(column));
            let x = (WIDTH * index as f64 / self.columns.len() as f64).round();
            match last {
                None => write!(d, "M{x} {level}"),
                Some(before) if before != level => write!(d, "H{x}V{level}"),
                Some(_) => Ok(()),
            }
            .expect("a String");
            last = Some(level);
        }
        d + &format!("H{WIDTH}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::html::plot::Columns;

    fn scale(from: Nanos, to: Nanos) -> Scale {
        Scale {
            from,
            to,
            columns: Columns::FINEST,
        }
    }

    #[test]
    fn few_windows_have_a_column_each() {
        let series = Envelope::of(&[4, 4, 2, 0], (0, 10), &scale(0, 40));
        assert!(!series.thinned);
        let path = series.path(4, |(_, most)| *most);
        assert_eq!(path, "M0 0H440V50H660V100H880");
    }

    #[test]
    fn thinning_keeps_the_least_and_the_most() {
        let mut counts = vec![10; 10_000];
        (counts[1_234], counts[7_777]) = (0, 20);
        let series = Envelope::of(&counts, (0, 10), &scale(0, 100_000));
        assert!(series.thinned && series.columns.len() == 440);
        let count = |column: (u32, u32)| series.columns.iter().filter(|c| **c == column).count();
        assert_eq!([(10, 10), (0, 10), (10, 20)].map(count), [438, 1, 1]);
    }

    #[test]
    fn a_drawing_may_begin_before_the_windows_or_after() {
        let of = |epoch, from, to| {
            let series = Envelope::of(&[1, 2, 3], (epoch, 10), &scale(from, to));
            series.columns
        };
        assert_eq!(of(100, 110, 130), [(2, 2), (3, 3)]);
        assert_eq!(of(100, 90, 120), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(of(100, 120, 140), [(3, 3), (0, 0)]);
    }
}
