//! Spacing of the frames of fast flows. It is judged by the stamp of every single frame, so that
//! the load of the machine does not matter.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::LineRate;
use validator::driver::traffic::Source;

use crate::traffic_live::bench::*;

const GIGABIT: u64 = 1_000_000_000;
const LENGTH: usize = 64;
/// Together 672 Mbit/s of layer 1.
const FRAMES: u64 = 1_000_000;
/// Fewer frames than the receiver has room for in its record.
const BURST: u64 = 50 * MS;

/// Sends `FRAMES` a second, shared by this number of flows. Asserts that no frame was stamped
/// before its rate allowed it, and that no burst was larger than the largest one allowed.
fn paced(flows: u16) {
    on_a_wire(|| {
        let each = rate(FRAMES, LENGTH) / u64::from(flows);
        let flows: Vec<_> = (0..flows)
            .map(|id| flow(id, id as u8 % 64, None, each, LENGTH))
            .collect();
        let setup = Setup {
            line: GIGABIT,
            logged: Some(Phase::Storm),
            ..Setup::new(&flows)
        };
        let mut wire = setup.open().unwrap();
        let burst = wire.burst(Phase::Storm, BURST);
        let sent = wire.sender.report().unwrap();
        assert_exact(&wire, &sent);
        let rings = wire.rx.take_rings().unwrap();
        assert_eq!(
            (rings.arrivals.len() as u64, rings.arrivals_lost),
            (total(&sent) - lost(&sent), 0)
        );

        let bits = u128::from(LineRate::frame_bits(LENGTH));
        let second = u128::from(GIGABIT);
        let all = u128::from(each) * flows.len() as u128;
        let mut left = vec![0u128; flows.len()];
        let (mut level, mut largest, mut before) = (0u128, 0u128, burst.from);
        for arrival in &rings.arrivals {
            let stamp = arrival.time - u64::from(arrival.latency);
            assert!((burst.from..burst.to).contains(&stamp) && stamp >= before);
            let left = &mut left[usize::from(arrival.flow)];
            let passed = u128::from(stamp - burst.from);
            // The first leaves within its time, for flows are staggered.
            assert!(
                *left * bits * second <= u128::from(each) * passed,
                "frame {left} of flow {} after {passed} ns",
                arrival.flow
            );
            *left += 1;
            level = level.saturating_sub(all * u128::from(stamp - before)) + bits * second;
            largest = largest.max(level);
            before = stamp;
        }
        let largest = largest.div_ceil(second) as u64;
        let reported = sent.report.max_burst;
        assert!(
            largest <= reported && reported <= setup.max_burst,
            "{largest} ns by the stamps, {reported} ns reported, at most {}",
            setup.max_burst
        );
        println!(
            "{} frames, the largest burst {largest} ns, stalls {:?}",
            rings.arrivals.len(),
            sent.report.stalls
        );
    });
}

#[test]
fn root_a_flow_of_a_million_frames_a_second_is_never_ahead_of_its_rate_nor_in_a_larger_burst() {
    paced(1);
}

#[test]
fn root_64_flows_of_a_million_frames_a_second_are_never_ahead_of_their_rates_nor_in_a_larger_burst()
{
    paced(64);
}
