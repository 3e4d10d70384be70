//! PAUSE (IEEE 802.3 Annex 31B) and PFC (IEEE 802.1Q clause 36, 802.3 Annex 31D) frames, as they are sent.

use pfc_ebpf::units::{Priority, Quanta};

/// MAC control frames go to this address, which bridges do not forward.
pub const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
/// EtherType of MAC control.
pub const ETHERTYPE: u16 = 0x8808;
/// Octets without FCS: the least that Ethernet allows.
pub const LENGTH: usize = 60;

/// A MAC control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacControl {
    /// 802.3x: pauses the whole link.
    Pause(Quanta),
    /// Priority-based flow control: a time for each priority whose bit is set in the vector.
    Pfc {
        /// Class-enable vector.
        vector: u8,
        /// Times of priorities 0 to 7.
        quanta: [Quanta; Priority::COUNT],
    },
}

impl MacControl {
    /// A PFC frame that sets the time of `priorities` to `quanta`: XOFF, or XON with [`Quanta::ZERO`].
    pub fn pfc(priorities: &[Priority], quanta: Quanta) -> Self {
        let mut times = [Quanta::ZERO; Priority::COUNT];
        let mut vector = 0;
        for priority in priorities {
            vector |= 1 << priority.get();
            times[priority.index()] = quanta;
        }
        Self::Pfc { vector, quanta: times }
    }

    /// The frame without FCS.
    pub fn emit(&self, source: [u8; 6]) -> [u8; LENGTH] {
        let mut frame = [0; LENGTH];
        frame[..6].copy_from_slice(&DESTINATION);
        frame[6..12].copy_from_slice(&source);
        let mut rest = frame[12..].chunks_exact_mut(2);
        let mut put = |word: u16| rest.next().expect("11 words fit").copy_from_slice(&word.to_be_bytes());
        put(ETHERTYPE);
        match self {
            Self::Pause(quanta) => [0x0001, quanta.0].into_iter().for_each(put),
            Self::Pfc { vector, quanta } => {
                [0x0101, u16::from(*vector)].into_iter().chain(quanta.map(|quanta| quanta.0)).for_each(put);
            }
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: [u8; 6] = [0x5a, 0x51, 0x52, 0x53, 0x54, 0x55];

    fn priority(value: u8) -> Priority {
        Priority::new(value).unwrap()
    }

    fn ascending(first: usize) -> [Quanta; 8] {
        std::array::from_fn(|i| Quanta(if i < first { 0 } else { 40_960 + i as u16 }))
    }

    /// As they left an open MAC's register-transfer model, without FCS; the zeros of the padding are left out here.
    #[test]
    fn frames_are_those_of_a_hardware_mac() {
        let vectors = [
            ("8808010100080000000000 00a003", MacControl::pfc(&[priority(3)], Quanta(40_963))),
            ("880801010008", MacControl::pfc(&[priority(3)], Quanta::ZERO)),
            ("8808010100ffa000a001a002a003a004a005a006a007", MacControl::Pfc { vector: 0xff, quanta: ascending(0) }),
            ("8808010100ff0000000000000000a004a005a006a007", MacControl::Pfc { vector: 0xff, quanta: ascending(4) }),
            ("8808010100f0", MacControl::pfc(&[4, 5, 6, 7].map(priority), Quanta::ZERO)),
            ("880800011234", MacControl::Pause(Quanta(4660))),
            ("88080001", MacControl::Pause(Quanta::ZERO)),
        ];
        for (expected, frame) in vectors {
            let expected: String = format!("0180c20000015a5152535455{expected}").replace(' ', "");
            let hex: String = frame.emit(SOURCE).iter().map(|octet| format!("{octet:02x}")).collect();
            assert_eq!(hex, format!("{expected:0<120}"), "{frame:?}");
        }
    }
}
