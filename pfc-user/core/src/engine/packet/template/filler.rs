//! What stands behind the headers: octets that count up, and their sums.

use std::sync::LazyLock;

use pfc_ebpf::wire::fold;

/// Longest frame that is made, without FCS.
pub const LONGEST: usize = 16 * 1024;

/// Octets that count up from 0.
pub static FILLER: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..LONGEST).map(|place| place as u8).collect());

/// Sums of the first octets of the filler, by their number.
static SUMS: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let mut sum = 0;
    let mut sums = vec![0];
    for (place, octet) in FILLER.iter().enumerate() {
        let high = if place % 2 == 0 { 8 } else { 0 };
        sum = fold(u32::from(sum) + (u32::from(*octet) << high));
        sums.push(sum);
    }
    sums
});

/// The ones-complement sum of so many octets of filler.
pub fn filler_sum(octets: usize) -> u16 {
    SUMS[octets]
}
