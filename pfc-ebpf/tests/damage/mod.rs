//! Damage to frames.

/// Damages a frame in up to three places: flips a bit, changes an octet or the length, or swaps two
/// octets. `below` returns an arbitrary number below its argument.
pub fn damage(frame: &mut Vec<u8>, mut below: impl FnMut(usize) -> usize) {
    for _ in 0..below(4) {
        // Most damage goes where the headers are.
        let near = [frame.len(), frame.len().min(80)][below(2)].max(1);
        let at = below(near);
        match below(5) {
            0 if at < frame.len() => frame[at] ^= 1 << below(8),
            1 if at < frame.len() => frame[at] = below(256) as u8,
            2 => frame.truncate(at),
            3 => {
                let more = below(64);
                frame.extend((0..more).map(|_| below(256) as u8));
            }
            4 if at < frame.len() => {
                let other = below(frame.len());
                frame.swap(at, other);
            }
            _ => {}
        }
    }
}
