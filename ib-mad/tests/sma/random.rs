//! Random packets in random states.

use std::time::Duration;

use ib_mad::attr::PortState;
use ib_mad::mad::{AttributeId, LENGTH, Lid, MKey};
use ib_mad::sma::{Fabric, Fault, NodeConfig};
use ib_mad::smp::Smp;
use ib_mad::transport::Received;

use super::{DUT_LID, adapter, fabric, switch};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.next() as usize % choices.len()]
    }

    /// Makes a packet of mostly known values, and random octets for the rest.
    fn smp(&mut self) -> Smp {
        let mut octets = [0; LENGTH];
        for chunk in octets.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_be_bytes());
        }
        octets[0] = 1;
        octets[1] = self.of(&[0x01, 0x81]);
        octets[2] = self.of(&[1, 1, 1, 1, 1, 1, 1, 2]);
        octets[3] = self.of(&[1, 1, 2, 2, 2, 7, 5, 0x81, 0x42]);
        octets[4] &= self.of(&[0x7f, 0x7f, 0xff]);
        octets[6..8].copy_from_slice(&self.of(&[
            [0, 0],
            [0, 1],
            [0, 1],
            [0, 1],
            [1, 1],
            [0, 64],
            [255, 255],
        ]));
        let attributes = [0x02u16, 0x10, 0x11, 0x12, 0x15, 0x15, 0x19, 0x1a, 0x20];
        octets[16..18].copy_from_slice(&self.of(&attributes).to_be_bytes());
        if !self.next().is_multiple_of(8) {
            octets[20..23].fill(0);
            octets[23] = self.of(&[0, 0, 1, 2, 5, 255]);
        }
        octets[24..31].fill(0);
        octets[31] = self.of(&[0, 1, 2]);
        if !self.next().is_multiple_of(8) {
            octets[32..36].fill(0xff);
        }
        octets[129] = self.of(&[1, 1, 1, 2]);
        if self.next().is_multiple_of(2) {
            // A PortInfo that may be valid: a small key, no change of state, an MTU and LIDs.
            octets[64..71].fill(0);
            octets[71] = self.of(&[0, 1, 2]);
            octets[80..84].copy_from_slice(&[0, 2, 0, 1]);
            octets[64 + 29] = 0;
            octets[64 + 32] = self.of(&[0, 0, 1, 3, 4]);
            octets[64 + 33] = self.of(&[0, 0, 0x20]);
            octets[64 + 35] = 0;
            octets[64 + 36] = 0x50;
            octets[64 + 43] = 0x40;
        }
        Smp::parse(&octets).unwrap()
    }
}

fn configs() -> [NodeConfig; 3] {
    [
        switch(),
        NodeConfig {
            linear_fdb_cap: 1000,
            m_key: MKey(1),
            m_key_protect_bits: 2,
            m_key_lease_period: 3,
            ..switch()
        },
        adapter(),
    ]
}

fn run(fabric: &mut Fabric, seed: u64) -> Vec<Vec<Received>> {
    let mut random = Random(seed);
    let mut now = Duration::ZERO;
    (0..5000)
        .map(|_| {
            now += Duration::from_millis(random.next() % 2000);
            let smp = random.smp();
            let came = fabric.send(
                now,
                &smp,
                random.of(&[DUT_LID, DUT_LID, Lid(1), Lid::PERMISSIVE]),
            );
            // A disabled link would end the run.
            for node in [&mut fabric.tester, &mut fabric.dut] {
                if node.port_state(1) == Some(PortState::Down) {
                    node.set_port_state(1, PortState::Active);
                }
            }
            came
        })
        .collect()
}

#[test]
fn a_good_node_answers_the_same_to_the_same() {
    for (seed, config) in (1..).zip(configs()) {
        let first = run(&mut fabric(config.clone(), &[]), seed);
        assert_eq!(first, run(&mut fabric(config, &[]), seed));
        let answers = first.iter().filter(|came| !came.is_empty()).count();
        assert!(
            answers > 500,
            "only {answers} of {} packets were answered",
            first.len()
        );
        for delivery in first.iter().flatten() {
            let smp = Smp::parse(&delivery.octets).unwrap();
            assert!(smp.method().is_response() || smp.attribute() == AttributeId::NOTICE);
            assert!(
                smp.is_returning() == smp.is_directed()
                    && (smp.hops().0 == 0 || !smp.is_directed())
            );
        }
    }
}

#[test]
fn no_fault_panics() {
    for entry in Fault::CATALOGUE {
        for config in configs() {
            run(&mut fabric(config, &[entry.name.parse().unwrap()]), 99);
        }
    }
}
