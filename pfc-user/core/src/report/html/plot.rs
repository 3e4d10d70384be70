//! Scales, ticks and figures of the drawings.

use pfc_ebpf::units::Nanos;

/// A time with three or four digits and its unit, such as `33.55 ms`.
pub fn time(nanos: Nanos) -> String {
    let (unit, factor) = match nanos {
        0..1_000 => return format!("{nanos} ns"),
        1_000..1_000_000 => ("us", 1e3),
        1_000_000..1_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let value = nanos as f64 / factor;
    let decimals = if value < 10.0 {
        3
    } else if value < 100.0 {
        2
    } else {
        1
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

/// Times that a drawing spans, and its width in pixels.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Begin.
    pub from: Nanos,
    /// End, after the begin.
    pub to: Nanos,
    /// Width in pixels.
    pub width: f64,
}

impl Scale {
    /// The length of the time that it spans.
    pub fn span(&self) -> Nanos {
        self.to.saturating_sub(self.from).max(1)
    }

    /// Pixels from the left edge to `time`.
    pub fn x(&self, time: Nanos) -> f64 {
        let offset = time.clamp(self.from, self.to.max(self.from)) - self.from;
        offset as f64 / self.span() as f64 * self.width
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
            width: 100.0,
        };
        let ticks = scale.ticks();
        let labels: Vec<&str> = ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["0.0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s"]);
        assert_eq!(ticks[1].0, 5_200_000_000);
        assert_eq!(scale.x(0), 0.0);
        assert_eq!(scale.x(u64::MAX), 100.0);
    }

    #[test]
    fn no_time_at_all_is_drawn_without_a_panic() {
        for (from, to) in [(0, 0), (9, 3), (0, u64::MAX)] {
            let scale = Scale {
                from,
                to,
                width: 10.0,
            };
            assert!(scale.x(7).is_finite());
            assert!(scale.ticks().len() <= 10);
        }
    }
}
