//! Transmissions of a request: the packets that belong to one.

use pfc_ebpf::wire::roce;

use crate::plan::Nanos;

/// Different packets that follow each other within this part of T_tr were sent at once.
const AT_ONCE: Nanos = 16;

/// Puts packets into transmissions, in the order in which they come.
#[derive(Debug, Default)]
pub(super) struct Transmissions {
    /// Opcode and PSN of each packet of the last one.
    of_last: Vec<(u8, u32)>,
    previous: Option<Nanos>,
}

impl Transmissions {
    /// True if the packet at `time` begins a transmission. One whose opcode and PSN the last
    /// transmission has already is a retry, however soon it comes: T_tr is under test. Another
    /// packet belongs to the last transmission only if it was sent at once with it.
    pub(super) fn begins(
        &mut self,
        time: Nanos,
        packet: Option<&roce::Packet>,
        t_tr: Nanos,
    ) -> bool {
        let key = packet.map(|packet| (packet.bth.opcode, packet.bth.psn));
        let is_apart = |previous| time.saturating_sub(previous) > t_tr / AT_ONCE;
        let begins = self.previous.is_none_or(is_apart)
            || key.is_some_and(|key| self.of_last.contains(&key));
        if begins {
            self.of_last.clear();
        }
        self.of_last.extend(key);
        self.previous = self.previous.max(Some(time));
        begins
    }
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::wire::ip::{Addresses, Header};
    use pfc_ebpf::wire::roce::{Bth, Packet, RC_READ_REQUEST};

    use super::*;

    const T_TR: Nanos = 67_108_864;

    fn packet(psn: u32) -> Packet {
        let ip = Header {
            dscp: 0,
            protocol: 17,
            fragment: false,
            addresses: Addresses { at: 26, length: 8 },
            payload: 34,
            length: 52,
        };
        let bth = Bth {
            opcode: RC_READ_REQUEST,
            pad: 0,
            version: 0,
            partition: 0xffff,
            destination: 2,
            ack_request: true,
            psn,
        };
        let (at, length) = (42, 44);
        Packet {
            ip,
            at,
            length,
            bth,
        }
    }

    /// True for each packet that begins a transmission.
    fn begin(packets: &[(Nanos, Option<u32>)]) -> Vec<bool> {
        let mut sorted = Transmissions::default();
        let begins = |&(time, psn): &(Nanos, Option<u32>)| {
            sorted.begins(time, psn.map(packet).as_ref(), T_TR)
        };
        packets.iter().map(begins).collect()
    }

    #[test]
    fn a_psn_that_comes_again_is_a_retry_however_soon() {
        let adaptive = [0, 2, 6, 14, 30].map(|ms| (ms * 1_000_000, Some(7)));
        assert_eq!(begin(&adaptive), [true; 5]);
        // Two packets of one message, and their retry.
        let two = [
            (0, Some(7)),
            (5, Some(8)),
            (1_000_000, Some(7)),
            (1_000_005, Some(8)),
        ];
        assert_eq!(begin(&two), [true, false, true, false]);
    }

    #[test]
    fn other_packets_are_told_apart_by_time() {
        let at_once = T_TR / 16;
        for psns in [[Some(7), Some(8)], [None, None], [Some(7), None]] {
            let [first, second] = psns;
            assert_eq!(begin(&[(9, first), (9 + at_once, second)]), [true, false]);
            assert_eq!(begin(&[(9, first), (10 + at_once, second)]), [true, true]);
        }
    }
}
