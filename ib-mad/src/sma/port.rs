//! PortInfo of one port (14.2.5.6), save what the M_Key protects: [`super::protection`] has that.

use super::node::NodeConfig;
use crate::attr::{self, Attribute, PortInfo, PortState};
use crate::mad::Lid;
use crate::smp::DATA;

/// A field: first bit and width.
type Bits = (u32, u32);

const GID_PREFIX: Bits = (64, 64);
const CAPABILITY_MASK: Bits = (160, 32);
const LINK_WIDTH_ENABLED: Bits = (232, 8);
const LINK_WIDTH_SUPPORTED: Bits = (240, 8);
const LINK_WIDTH_ACTIVE: Bits = (248, 8);
const LINK_SPEED_SUPPORTED: Bits = (256, 4);
const LINK_DOWN_DEFAULT_STATE: Bits = (268, 4);
const LINK_SPEED_ACTIVE: Bits = (280, 4);
const LINK_SPEED_ENABLED: Bits = (284, 4);
const NEIGHBOR_MTU: Bits = (288, 4);
const MASTER_SM_SL: Bits = (292, 4);
const VL_CAP: Bits = (296, 4);
const VL_HIGH_LIMIT: Bits = (304, 8);
const VL_ARBITRATION_HIGH_CAP: Bits = (312, 8);
const VL_ARBITRATION_LOW_CAP: Bits = (320, 8);
const INIT_TYPE_REPLY: Bits = (328, 4);
const MTU_CAP: Bits = (332, 4);
const VL_STALL_COUNT: Bits = (336, 3);
const HOQ_LIFE: Bits = (339, 5);
const OPERATIONAL_VLS: Bits = (344, 4);
const ENFORCEMENT: Bits = (348, 4);
const GUID_CAP: Bits = (400, 8);
const TRAP_SUPPRESSION: Bits = (409, 2);
const SUBNET_TIMEOUT: Bits = (411, 5);
const ERROR_THRESHOLDS: Bits = (424, 8);

/// Fields that a Set changes to any value.
const FREE: [Bits; 11] = [
    GID_PREFIX,
    MASTER_SM_SL,
    VL_HIGH_LIMIT,
    INIT_TYPE_REPLY,
    VL_STALL_COUNT,
    HOQ_LIFE,
    ENFORCEMENT,
    TRAP_SUPPRESSION,
    SUBNET_TIMEOUT,
    ERROR_THRESHOLDS,
    NEIGHBOR_MTU,
];

/// Multicast LIDs start here (4.1.3).
const MULTICAST_LIDS: u16 = 0xc000;
/// MTU of 4096 octets.
const MTU_4096: u64 = 5;
/// PortPhysicalState.
const POLLING: u8 = 2;
const DISABLED: u8 = 3;
const LINK_UP: u8 = 5;

/// A port.
#[derive(Clone, Debug)]
pub(super) struct Port {
    info: PortInfo,
}

/// A Set that carries an invalid value; nothing of it is done.
pub(super) struct Invalid;

fn get(info: &PortInfo, (offset, width): Bits) -> u64 {
    attr::get(info.data(), offset, width)
}

fn set(info: &mut PortInfo, (offset, width): Bits, value: u64) {
    let mut data: [u8; DATA] = *info.data();
    attr::set(&mut data, offset, width, value);
    *info = PortInfo::from_data(data);
}

impl Port {
    /// `managed`: whether it is an adapter's port or port 0 of a switch, which have what switch ports with a link have not.
    pub(super) fn new(config: &NodeConfig, managed: bool) -> Self {
        let mut info = PortInfo::default();
        if managed {
            set(&mut info, (128, 16), config.lid.0.into());
            set(&mut info, (144, 16), config.master_sm_lid.0.into());
            set(&mut info, GID_PREFIX, 0xfe80_0000_0000_0000);
            // IsNoticeSupported, IsTrapSupported.
            set(&mut info, CAPABILITY_MASK, 0xc);
            set(&mut info, SUBNET_TIMEOUT, config.subnet_timeout.into());
            set(&mut info, (419, 5), config.response_time_value.into());
            set(&mut info, GUID_CAP, 1);
        }
        // 1X and 4X, of which 4X is active; SDR to QDR, of which QDR is.
        set(&mut info, LINK_WIDTH_ENABLED, 3);
        set(&mut info, LINK_WIDTH_SUPPORTED, 3);
        set(&mut info, LINK_WIDTH_ACTIVE, 2);
        set(&mut info, LINK_SPEED_SUPPORTED, 7);
        set(&mut info, LINK_SPEED_ENABLED, 7);
        set(&mut info, LINK_SPEED_ACTIVE, 4);
        set(&mut info, LINK_DOWN_DEFAULT_STATE, POLLING.into());
        set(&mut info, NEIGHBOR_MTU, MTU_4096);
        set(&mut info, MTU_CAP, MTU_4096);
        // VL0 to VL7.
        set(&mut info, VL_CAP, 4);
        set(&mut info, OPERATIONAL_VLS, 4);
        set(&mut info, VL_ARBITRATION_HIGH_CAP, 8);
        set(&mut info, VL_ARBITRATION_LOW_CAP, 8);
        set(&mut info, ERROR_THRESHOLDS, 0x88);
        let mut port = Self { info };
        port.set_state(config.port_state);
        port
    }

    pub(super) fn info(&self) -> PortInfo {
        self.info
    }

    pub(super) fn lid(&self) -> Lid {
        Lid(self.info.lid())
    }

    /// Whether `lid` is one of its LIDs.
    pub(super) fn has_lid(&self, lid: Lid) -> bool {
        let base = u32::from(self.info.lid());
        base != 0 && (base..base + (1 << self.info.lmc())).contains(&lid.0.into())
    }

    pub(super) fn state(&self) -> u8 {
        get(&self.info, (260, 4)) as u8
    }

    /// The physical state follows.
    pub(super) fn set_state(&mut self, state: u8) {
        set(&mut self.info, (260, 4), state.into());
        let physical = if state == 1 { POLLING } else { LINK_UP };
        set(&mut self.info, (264, 4), physical.into());
    }

    /// Does what a Set says. `managed` as in [`Self::new`].
    pub(super) fn set(&mut self, wanted: &PortInfo, managed: bool) -> Result<(), Invalid> {
        let mut next = self.info;
        for field in FREE {
            set(&mut next, field, get(wanted, field));
        }
        if managed {
            for field in [(128, 16), (144, 16)] {
                let lid = get(wanted, field);
                // A LID that stays as it was may be 0: no SM has been here.
                if lid != get(&self.info, field) && !(1..MULTICAST_LIDS.into()).contains(&lid) {
                    return Err(Invalid);
                }
                set(&mut next, field, lid);
            }
            set(&mut next, (277, 3), get(wanted, (277, 3)));
        } else {
            for field in [GID_PREFIX, MASTER_SM_SL, SUBNET_TIMEOUT] {
                set(&mut next, field, 0);
            }
        }
        if !(1..=get(&next, MTU_CAP)).contains(&get(wanted, NEIGHBOR_MTU)) {
            return Err(Invalid);
        }
        choose(&mut next, wanted, LINK_WIDTH_ENABLED, LINK_WIDTH_SUPPORTED)?;
        choose(&mut next, wanted, LINK_SPEED_ENABLED, LINK_SPEED_SUPPORTED)?;
        match get(wanted, LINK_DOWN_DEFAULT_STATE) {
            0 => {}
            state @ 1..=2 => set(&mut next, LINK_DOWN_DEFAULT_STATE, state),
            _ => return Err(Invalid),
        }
        match get(wanted, OPERATIONAL_VLS) {
            0 => {}
            vls if vls <= get(&next, VL_CAP) => set(&mut next, OPERATIONAL_VLS, vls),
            _ => return Err(Invalid),
        }
        let mut port = Self { info: next };
        port.change_state(wanted.port_state(), wanted.port_physical_state())?;
        *self = port;
        Ok(())
    }

    /// The transitions that a Set may ask for (7.2.7, 14.2.5.6).
    fn change_state(&mut self, state: PortState, physical: u8) -> Result<(), Invalid> {
        match (state, physical, self.info.port_state()) {
            (PortState::NoChange, 0, _) => {}
            (PortState::Armed, 0, PortState::Initialized | PortState::Armed) => self.set_state(3),
            (PortState::Active, 0, PortState::Armed | PortState::Active) => self.set_state(4),
            // The link goes down and, as nothing keeps it there, is trained again at once.
            (PortState::Down, 0, _) | (PortState::Down | PortState::NoChange, 1 | POLLING, _) => self.set_state(2),
            (PortState::Down | PortState::NoChange, DISABLED, _) => {
                self.set_state(1);
                set(&mut self.info, (264, 4), DISABLED.into());
            }
            _ => return Err(Invalid),
        }
        Ok(())
    }
}

/// An enabled set of widths or speeds: 0 changes nothing, all ones stands for what is supported.
fn choose(next: &mut PortInfo, wanted: &PortInfo, enabled: Bits, supported: Bits) -> Result<(), Invalid> {
    let (choice, supported) = (get(wanted, enabled), get(next, supported));
    let all = u64::MAX >> (64 - enabled.1);
    match choice {
        0 => {}
        choice if choice == all => set(next, enabled, supported),
        choice if choice & !supported == 0 => set(next, enabled, choice),
        _ => return Err(Invalid),
    }
    Ok(())
}
