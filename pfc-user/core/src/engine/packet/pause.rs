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
