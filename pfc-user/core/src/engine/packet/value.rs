//! The values that a field walks through.

use super::Value;

/// The lowest `bits` bits.
pub const fn mask(bits: usize) -> u128 {
    if bits >= 128 {
        u128::MAX
    } else {
        (1 << bits) - 1
    }
}

/// Numbers that look random, the same for the same seed and place (SplitMix64).
pub const fn scattered(seed: u64, place: u64) -> u64 {
    let mut mixed = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Value {
    /// Makes a list of these values in turn, or a fixed value if all are the same.
    pub fn of_each(values: impl Iterator<Item = u128>) -> Self {
        let values: Vec<u128> = values.collect();
        match values.first() {
            Some(first) if values.iter().all(|value| value == first) => Self::Fixed(*first),
            _ => Self::List(values),
        }
    }

    /// The value in frame `number`, for a field of `bits` bits.
    pub fn at(&self, number: u64, bits: usize) -> u128 {
        let walked = |count: u64| u128::from(number % count.max(1));
        let value = match self {
            Self::Fixed(value) => *value,
            Self::List(values) => match values.len() {
                0 => 0,
                length => values[(number % length as u64) as usize],
            },
            Self::Increment { start, step, count } => {
                start.wrapping_add(step.wrapping_mul(walked(*count)))
            }
            Self::Decrement { start, step, count } => {
                start.wrapping_sub(step.wrapping_mul(walked(*count)))
            }
            Self::Random {
                min,
                max,
                seed,
                count,
            } => {
                let place = number % (*count).max(1);
                let high = u128::from(scattered(*seed, 2 * place));
                let random = high << 64 | u128::from(scattered(*seed, 2 * place + 1));
                match (max - min).checked_add(1) {
                    Some(width) => min + random % width,
                    None => random,
                }
            }
            Self::Bad => 0,
        };
        value & mask(bits)
    }

    /// Frames after which the values come again.
    pub fn walk(&self) -> u64 {
        match self {
            Self::Fixed(_) | Self::Bad => 1,
            Self::List(values) => values.len().max(1) as u64,
            Self::Increment { count, .. }
            | Self::Decrement { count, .. }
            | Self::Random { count, .. } => (*count).max(1),
        }
    }

    /// The one value of all frames, where there is one.
    pub(super) fn constant(&self, bits: usize) -> Option<u128> {
        let one = match self {
            Self::Fixed(_) => true,
            Self::List(values) => values.len() == 1,
            Self::Increment { count, step, .. } | Self::Decrement { count, step, .. } => {
                *count <= 1 || *step == 0
            }
            Self::Random { count, .. } => *count <= 1,
            Self::Bad => false,
        };
        one.then(|| self.at(0, bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(value: &Value, bits: usize, frames: u64) -> Vec<u128> {
        (0..frames).map(|number| value.at(number, bits)).collect()
    }

    #[test]
    fn lists_and_counters_begin_again_at_their_end() {
        let list = Value::List(vec![3, 5, 9]);
        assert_eq!(first(&list, 8, 7), [3, 5, 9, 3, 5, 9, 3]);
        let up = Value::Increment {
            start: 254,
            step: 1,
            count: 3,
        };
        assert_eq!(first(&up, 8, 4), [254, 255, 0, 254]);
        let down = Value::Decrement {
            start: 1,
            step: 2,
            count: 2,
        };
        assert_eq!(first(&down, 16, 3), [1, 0xffff, 1]);
    }

    #[test]
    fn random_values_stay_within_their_bounds_and_come_again() {
        let random = Value::Random {
            min: 10,
            max: 12,
            seed: 7,
            count: 50,
        };
        let found = first(&random, 8, 50);
        assert_eq!(first(&random, 8, 100)[50..], found);
        for value in 10..=12 {
            assert!(found.contains(&value), "{value} is not among {found:?}");
        }
        assert!(found.iter().all(|value| (10..=12).contains(value)));
    }

    #[test]
    fn a_walk_of_one_step_stands_still() {
        let walk = |count| Value::Increment {
            start: 7,
            step: 1,
            count,
        };
        assert_eq!(walk(1).constant(8), Some(7));
        assert_eq!(walk(2).constant(8), None);
        assert_eq!(Value::Fixed(0x1ff).constant(8), Some(0xff));
    }
}
