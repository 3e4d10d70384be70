//! Evidence is input from a file.

use pfc_ebpf::wire::Malformed;

use super::*;

/// A small generator (xorshift), so that the test is the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// Every number in `value`, but not more than three of each list: the rest is like them.
fn numbers<'v>(value: &'v mut serde_json::Value, found: &mut Vec<&'v mut serde_json::Value>) {
    match value {
        serde_json::Value::Number(_) => found.push(value),
        serde_json::Value::Array(list) => list
            .iter_mut()
            .take(3)
            .for_each(|item| numbers(item, found)),
        serde_json::Value::Object(members) => members
            .values_mut()
            .for_each(|member| numbers(member, found)),
        _ => {}
    }
}

fn count_numbers(value: &serde_json::Value) -> usize {
    let mut value = value.clone();
    let mut found = Vec::new();
    numbers(&mut value, &mut found);
    found.len()
}

#[test]
fn numbers_that_no_tester_measures_never_end_in_a_panic() {
    let extremes = [
        0,
        1,
        2,
        u64::from(u32::MAX),
        1 << 38,
        1 << 48,
        1 << 53,
        (1 << 60) - 1,
        1 << 60,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut judged, mut contradictions) = (0, 0);
    for (case, ..) in REPETITIONS {
        let mut evidence = good(case);
        // Lists that are empty in good evidence have numbers too.
        with_gap(&mut evidence);
        evidence.storm.as_mut().unwrap().histogram =
            GapHistogram(vec![(11 * MS, 100), (12 * MS, 3), (40 * MS, 1)]);
        evidence.sender.stalls.push(Stall { from: 1, to: 2 });
        withhold(&mut evidence, 3, MS);
        dut(&mut evidence).stalls.push(Stall { from: 1, to: 2 });
        evidence
            .ports
            .rx
            .counts
            .malformed
            .push((Malformed::Stamp, 1));
        evidence.ports.rx.counts.damaged.push((Malformed::Stamp, 1));
        // The number of tampers is linear in these; keep the test quick.
        let mut seen = 0;
        evidence.arrivals.records.retain(|_| {
            seen += 1;
            seen % 50 == 0
        });
        evidence.windows.offered.truncate(120);
        evidence.windows.received.truncate(120);
        let whole = serde_json::to_value(&evidence).unwrap();
        let count = count_numbers(&whole);
        let mut tampers: Vec<Vec<(usize, u64)>> = (0..count)
            .flat_map(|index| extremes.iter().map(move |value| vec![(index, *value)]))
            .filter(|_| random.below(4) == 0)
            .collect();
        tampers.extend((0..300).map(|_| {
            (0..3)
                .map(|_| (random.below(count), extremes[random.below(extremes.len())]))
                .collect()
        }));
        for tamper in tampers {
            let mut value = whole.clone();
            let mut found = Vec::new();
            numbers(&mut value, &mut found);
            for (index, number) in &tamper {
                *found[*index] = (*number).into();
            }
            // A number that does not fit its type is refused when the file is read.
            let Ok(strange) = serde_json::from_value::<PfcEvidence>(value) else {
                continue;
            };
            judged += 1;
            contradictions += usize::from(
                results(case, &strange)
                    .iter()
                    .all(|result| result.verdict == Verdict::Error),
            );
        }
    }
    assert!(
        judged > 1000 && contradictions > 100 && contradictions < judged,
        "{contradictions} contradictions of {judged}"
    );
}
