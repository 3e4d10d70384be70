//! Scales, ticks and figures of the drawings, and marks on a scale.

use std::collections::BTreeSet;
use std::fmt::Display;

use pfc_ebpf::units::Nanos;

use super::markup::{Element, el};
use super::words;

/// Width of the plot of a time line.
pub const WIDTH: f64 = 880.0;

/// A time with three or four digits and its unit, such as `33.55 ms`.
pub fn time(nanos: Nanos) -> String {
    let (unit, factor) = match nanos {
        0..1_000 => return format!("{nanos} ns"),
        1_000..1_000_000 => ("us", 1e3),
        1_000_000..1_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let value = nanos as f64 / factor;
    let decimals = match value {
        ..10.0 => 3,
        ..100.0 => 2,
        _ => 1,
    };
    format!("{} {unit}", shortest(value, decimals))
}

/// A number without trailing zeros.
pub fn shortest(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A whole number with thin spaces between its thousands.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out
}

/// Resolution of a time line: the greatest number of columns that the marks of a row have.
#[derive(Clone, Copy, Debug)]
pub struct Columns(u32);

impl Columns {
    /// Columns as fine as the drawing.
    pub const FINEST: Self = Self(WIDTH as u32);
    /// Fewest columns: a coarser time line hardly shows anything.
    const COARSEST: u32 = 50;

    /// Returns columns half as fine, if those still show something.
    pub fn coarser(self) -> Option<Self> {
        (self.0 / 2 >= Self::COARSEST).then_some(Self(self.0 / 2))
    }

    fn width(self) -> f64 {
        WIDTH / f64::from(self.0)
    }
}

/// Times that a time line spans, on the [`WIDTH`] of its plot.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Begin.
    pub from: Nanos,
    /// End, after the begin.
    pub to: Nanos,
    /// Columns.
    pub columns: Columns,
}

impl Scale {
    /// The length of the time that it spans.
    pub fn span(&self) -> Nanos {
        self.to.saturating_sub(self.from).max(1)
    }

    /// Pixels from the left edge to `time`.
    pub fn x(&self, time: Nanos) -> f64 {
        let offset = time.clamp(self.from, self.to.max(self.from)) - self.from;
        offset as f64 / self.span() as f64 * WIDTH
    }

    /// Left edge of the column of `time`.
    fn column(&self, time: Nanos) -> u32 {
        let width = self.columns.width();
        ((self.x(time) / width).floor() * width) as u32
    }

    /// Right edge of the column that ends at or after `time`.
    fn column_end(&self, time: Nanos) -> u32 {
        let width = self.columns.width();
        ((self.x(time) / width).ceil() * width).ceil() as u32
    }

    /// Columns of a series, whose steps are at least two pixels wide.
    pub fn of_series(&self) -> usize {
        self.columns.0 as usize / 2
    }

    /// A rectangle at least one pixel wide.
    pub fn rect(
        &self,
        (from, to): (Nanos, Nanos),
        (y, height): (f64, f64),
        class: &str,
        tip: impl Display,
    ) -> Element {
        let (left, right) = (self.x(from), self.x(to));
        el("rect")
            .with("x", format_args!("{left:.1}"))
            .with("y", format_args!("{y:.1}"))
            .with("width", format_args!("{:.1}", (right - left).max(1.0)))
            .with("height", format_args!("{height:.1}"))
            .class(class)
            .tip(tip)
    }

    /// One path of spans, each at least a pixel wide and none drawn twice; `None` without spans.
    pub fn boxes(
        &self,
        spans: impl Iterator<Item = (Nanos, Nanos)>,
        (y, height): (f64, f64),
        class: &str,
        tip: impl Display,
    ) -> Option<Element> {
        let mut pixels: Vec<(u32, u32)> = spans
            .map(|(from, to)| {
                let left = self.column(from);
                (left, self.column_end(to).max(left + 1))
            })
            .collect();
        pixels.sort_unstable();
        // Spans that touch are one.
        pixels.dedup_by(|next, last| {
            let touches = next.0 <= last.1;
            if touches {
                last.1 = last.1.max(next.1);
            }
            touches
        });
        let drawn = pixels.iter().map(|(from, to)| {
            let width = to - from;
            format!("M{from} {y:.0}h{width}v{height:.0}h-{width}z")
        });
        let d: String = drawn.collect();
        (!d.is_empty()).then(|| el("path").with("d", d).class(class).tip(tip))
    }

    /// A vertical line at each time, none drawn twice; `None` without times. `tip` has the first
    /// time and the number of times.
    pub fn lines(
        &self,
        times: &[Nanos],
        (top, height): (f64, f64),
        class: &str,
        tip: impl Fn(String, String) -> String,
    ) -> Option<Element> {
        let first = times.iter().min()?;
        let places: BTreeSet<u32> = times.iter().map(|time| self.column(*time)).collect();
        let lines = places.iter().map(|x| format!("M{x} {top:.0}v{height:.0}"));
        let tip = tip(self.seconds(*first), count(times.len() as u64));
        Some(words::path(class, lines.collect::<String>()).tip(tip))
    }

    /// Seconds from the begin to `time`, for people.
    pub fn seconds(&self, time: Nanos) -> String {
        let offset = time.saturating_sub(self.from);
        shortest(offset as f64 / 1e9, 6)
    }

    /// Times of at most ten ticks, in seconds from the begin, with their labels.
    pub fn ticks(&self) -> Vec<(Nanos, String)> {
        let span = self.span() as f64 / 1e9;
        let raw = span / 8.0;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= raw)
            .unwrap_or(raw);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        (0..=8)
            .map(|tick| f64::from(tick) * step)
            .take_while(|at| *at <= span)
            .map(|at| {
                let time = self.from.saturating_add((at * 1e9) as Nanos);
                (time, format!("{at:.decimals$} s"))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_few_digits() {
        let times = [0, 999, 1_500, 33_553_920, 999_999_999, 4_500_000_000];
        assert_eq!(
            times.map(time),
            ["0 ns", "999 ns", "1.5 us", "33.55 ms", "1000 ms", "4.5 s"]
        );
        assert_eq!(count(1_234_567), "1\u{2009}234\u{2009}567");
        assert_eq!(count(12), "12");
    }

    #[test]
    fn ticks_are_round_and_few() {
        let scale = Scale {
            from: 5_000_000_000,
            to: 5_950_000_000,
            columns: Columns::FINEST,
        };
        let ticks = scale.ticks();
        let labels: Vec<&str> = ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["0.0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s"]);
        assert_eq!(ticks[1].0, 5_200_000_000);
        assert_eq!(scale.x(0), 0.0);
        assert_eq!(scale.x(u64::MAX), WIDTH);
    }

    #[test]
    fn no_time_at_all_is_drawn_without_a_panic() {
        for (from, to) in [(0, 0), (9, 3), (0, u64::MAX)] {
            let scale = Scale {
                from,
                to,
                columns: Columns::FINEST,
            };
            assert!(scale.x(7).is_finite());
            assert!(scale.ticks().len() <= 10);
        }
    }
}
