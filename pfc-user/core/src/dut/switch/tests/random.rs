//! Any input within the buffers' limits: nothing is lost, doubled, swapped or changed, and no pause
//! is broken.

use std::collections::BTreeMap;

use pfc_ebpf::units::LineRate;

use super::lab::*;
use crate::plan::Nanos;

/// A small generator (xorshift64*), so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

/// Frames by the port where they leave, that where they came in, and priority; in order.
type Streams = BTreeMap<(usize, usize, u8), Vec<Vec<u8>>>;

/// When a priority of a port is paused, from the PFC sent to it alone: (from, until) without gaps
/// between refreshes.
type Paused = BTreeMap<(usize, u8), Vec<(Nanos, Nanos)>>;

#[test]
fn random_traffic_is_carried_faithfully() {
    for seed in 1..=20 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed);
        // Rates at which every octet takes whole nanoseconds.
        let rate = LineRate::from_bits_per_second(1_000_000_000 << random.below(4)).unwrap();
        let mut config = config();
        config.line_rate = rate;
        let ports = 2 + random.below(7) as usize;
        let mut switch = introduced(ports, config);
        let mut now = MS;
        let mut offered = Streams::new();
        let mut paused = Paused::new();
        for sequence in 0..3000 {
            now += random.below(3) * random.below(10_000);
            let (port, flow) = (random.below(ports as u64) as usize, random.below(8) as u8);
            if random.below(20) == 0 {
                let quanta = random.below(3) * random.below(200);
                switch.ingress(port, now, pfc(flow, quanta as u16));
                let spans = paused.entry((port, flow)).or_default();
                if let Some(last) = spans.last_mut() {
                    last.1 = last.1.min(now);
                }
                spans.push((now, now + rate.bits_to_nanos(quanta * 512)));
            } else {
                let to = (port + 1 + random.below(ports as u64 - 1) as usize) % ports;
                let frame = frame_of(flow, sequence, 64 + random.below(1450) as usize);
                let frame = between(port, to, frame);
                offered
                    .entry((to, port, flow))
                    .or_default()
                    .push(frame.clone());
                switch.ingress(port, now, frame);
            }
            if random.below(5) == 0 {
                now += random.below(100);
                switch.advance(now);
                now += 1;
            }
        }
        let mut free = vec![0; ports];
        let mut carried = Streams::new();
        for departure in departures(&mut switch, now + 1000 * MS) {
            let start = departure.at - rate.frame_nanos(departure.frame.len());
            assert!(
                start >= free[departure.port],
                "seed {seed}: two frames on the wire at {start}"
            );
            free[departure.port] = departure.at;
            let (flow, _) = stamp(&departure.frame).expect("no PFC: the buffers are far from full");
            let spans = paused
                .get(&(departure.port, flow))
                .into_iter()
                .flatten()
                .filter(|_| set(&[3, 4]).contains(priority(flow)));
            for (from, until) in spans {
                assert!(
                    start < *from || start >= *until,
                    "seed {seed}: flow {flow} began at {start}, paused {from} to {until}"
                );
            }
            let from = usize::from(departure.frame[11]);
            carried
                .entry((departure.port, from, flow))
                .or_default()
                .push(departure.frame);
        }
        assert!(carried == offered, "seed {seed}");
        assert!(switch.drops().is_empty());
    }
}
