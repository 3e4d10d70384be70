//! The PAUSE and PFC frames that the program logged, in memory: a segment of CONTROLS for each CPU.

use std::mem::offset_of;
use std::ops::Range;

use pfc_ebpf::abi::account::Control;

use crate::driver::bpf::mmap::Words;

/// Records that a CPU has room for where there are few CPUs: a storm of one sender for 3 s at 800
/// Gbit/s.
const MOST: usize = 262_144;
/// Octets that all records may take, about.
const MEMORY: usize = 16 << 20;
const WORDS: usize = size_of::<Control>() / size_of::<u64>();

/// Records that each of `cpus` has room for.
pub fn segment(cpus: usize) -> usize {
    MOST.min(MEMORY / size_of::<Control>() / cpus.max(1)).max(1)
}

/// The log, and how far it has been read.
pub struct Log {
    words: Words,
    segment: usize,
    /// By CPU: records that have been read.
    read: Vec<usize>,
}

impl Log {
    /// The log in `words`, of [`segment`] records for each of `cpus`.
    pub fn new(words: Words, cpus: usize) -> Self {
        Self {
            words,
            segment: segment(cpus),
            read: vec![0; cpus],
        }
    }

    /// Words that the log of `cpus` CPUs takes.
    pub fn words(cpus: usize) -> usize {
        segment(cpus) * cpus * WORDS
    }

    /// The places of a CPU's records.
    pub fn places(&self, cpu: usize) -> Range<u32> {
        let first = cpu * self.segment;
        first as u32..(first + self.segment) as u32
    }

    /// The next record of that CPU that is whole.
    fn next(&mut self, cpu: usize) -> Option<Control> {
        let read = &mut self.read[cpu];
        if *read == self.segment {
            return None;
        }
        let at = (cpu * self.segment + *read) * WORDS;
        // The time, its first word, is written last: what is loaded after it is whole.
        const { assert!(offset_of!(Control, time) == 0) };
        let record: Control = self.words.value(at);
        if record.time == 0 {
            return None;
        }
        *read += 1;
        Some(record)
    }

    /// Takes the records that have not been taken, CPU by CPU.
    pub fn take(&mut self) -> Vec<Control> {
        (0..self.read.len())
            .flat_map(|cpu| std::iter::from_fn(|| self.next(cpu)).collect::<Vec<_>>())
            .collect()
    }

    /// Forgets all records. The program has to be still.
    pub fn clear(&mut self) {
        for cpu in 0..self.read.len() {
            // Records that have not been read may be there as well.
            while self.next(cpu).is_some() {}
            let first = cpu * self.segment * WORDS;
            self.words.zero(first..first + self.read[cpu] * WORDS);
            self.read[cpu] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_cpus_have_room_each_for_seconds_of_the_fastest_storm_and_many_share() {
        assert_eq!((segment(1), segment(2)), (MOST, MOST));
        // Every 14 us, a third of the pause at 800 Gbit/s.
        const { assert!(MOST as u64 > 3_000_000_000 / 14_000) };
        for cpus in [16, 256, 4096] {
            assert!(segment(cpus) >= 100);
            assert!(Log::words(cpus) * 8 <= MEMORY);
        }
    }
}
