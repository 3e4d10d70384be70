//! Whole frames of MAC control: PFC (IEEE 802.3, annex 31D) and PAUSE (annex 31B).

use super::table::{Field, Table, value};

/// The address to which they are sent.
const TO: u128 = 0x0180_c200_0001;
/// EtherType of MAC control.
const MAC_CONTROL: u128 = 0x8808;

const DST: Field = value("dst", 0, 48, TO);
const SRC: Field = value("src", 48, 48, 0);
const ETHER_TYPE: Field = value("ether_type", 96, 16, MAC_CONTROL);

/// PFC.
pub const PFC: Table = Table {
    name: "pfc_pause",
    octets: 34,
    fields: &[
        DST,
        SRC,
        ETHER_TYPE,
        value("control_op_code", 112, 16, 0x0101),
        value("class_enable_vector", 128, 16, 0),
        value("pause_class_0", 144, 16, 0),
        value("pause_class_1", 160, 16, 0),
        value("pause_class_2", 176, 16, 0),
        value("pause_class_3", 192, 16, 0),
        value("pause_class_4", 208, 16, 0),
        value("pause_class_5", 224, 16, 0),
        value("pause_class_6", 240, 16, 0),
        value("pause_class_7", 256, 16, 0),
    ],
    ..Table::BASE
};

/// PAUSE.
pub const PAUSE: Table = Table {
    name: "ethernet_pause",
    octets: 18,
    fields: &[
        DST,
        SRC,
        ETHER_TYPE,
        value("control_op_code", 112, 16, 1),
        value("time", 128, 16, 0),
    ],
    ..Table::BASE
};

#[cfg(test)]
mod tests {
    use super::super::Protocol;
    use super::super::template::tests::{fixed, packet, render};

    #[test]
    fn pause_frames_are_made_octet_by_octet_without_stamp_or_filler() {
        let mut pfc = packet(&[Protocol::PfcPause]);
        pfc.headers[0].fields = vec![
            ("src", fixed(0x0000_fafe_0102)),
            ("class_enable_vector", fixed(0b1000)),
            ("pause_class_3", fixed(0xffff)),
        ];
        let mut expected = vec![
            1, 0x80, 0xc2, 0, 0, 1, 0, 0, 0xfa, 0xfe, 1, 2, 0x88, 8, 1, 1, 0, 8,
        ];
        expected.extend([0, 0, 0, 0, 0, 0, 0xff, 0xff]);
        expected.resize(60, 0);
        assert_eq!(render(&pfc, 0, 60), expected);
        let mut pause = packet(&[Protocol::EthernetPause]);
        pause.headers[0].fields = vec![("time", fixed(0x1234))];
        let frame = render(&pause, 0, 60);
        assert_eq!(frame[12..20], [0x88, 8, 0, 1, 0x12, 0x34, 0, 0]);
    }
}
