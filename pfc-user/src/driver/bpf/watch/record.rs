//! Records of the programs, as others see them.

use pfc_ebpf::abi::watch::{Control, FlowState, HEADERS};

use super::{ControlFrame, Flow};

/// A MAC control frame with its tag where it belongs.
pub fn control(record: &Control) -> ControlFrame {
    const ADDRESSES: usize = 12;
    let mut octets = record.octets[..(record.length as usize).min(HEADERS)].to_vec();
    let mut length = record.length;
    if record.tpid != 0 && octets.len() >= ADDRESSES {
        octets.splice(
            ADDRESSES..ADDRESSES,
            record
                .tpid
                .to_be_bytes()
                .into_iter()
                .chain(record.tci.to_be_bytes()),
        );
        length += 4;
    }
    ControlFrame {
        time: record.time,
        length,
        octets,
    }
}

/// A flow, by its key and its state.
pub fn flow(key: u64, state: &FlowState) -> Flow {
    Flow {
        run: (key >> 16) as u16,
        flow: key as u16,
        priority: u8::try_from(state.priority)
            .ok()
            .filter(|priority| *priority < 8),
        lowest: !state.not_lowest,
        next: state.next,
        distinct: state.distinct,
        duplicate: state.duplicate,
        beyond_window: state.beyond_window,
    }
}
