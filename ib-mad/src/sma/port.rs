//! PortInfo of one port (14.2.5.6), except the fields of the M_Key, which are in
//! [`super::protection`].

use super::config::NodeConfig;
use super::fault::Component;
use super::reply::Invalid;
use crate::attr::{Field, FieldError, PortInfo, PortState};
use crate::mad::Lid;

/// Multicast LIDs start here (4.1.3).
const MULTICAST_LIDS: u16 = 0xc000;
/// MTU of 4096 octets.
const MTU_4096: u8 = 5;
/// PortPhysicalState; LinkDownDefaultState uses the same codes.
const SLEEP: u8 = 1;
const POLLING: u8 = 2;
const DISABLED: u8 = 3;
const LINK_UP: u8 = 5;

/// A port.
#[derive(Clone, Debug)]
pub(super) struct Port {
    info: PortInfo,
    /// True for an adapter's port and for port 0 of a switch: only these have LID, M_Key and the
    /// like.
    managed: bool,
}

impl Port {
    pub(super) fn new(config: &NodeConfig, managed: bool) -> Self {
        let mut port = Self {
            info: defaults(config, managed).expect("each default fits its field"),
            managed,
        };
        port.set_state(PortState::from_bits(config.port_state.into()));
        port
    }

    pub(super) fn info(&self) -> PortInfo {
        self.info
    }

    pub(super) fn lid(&self) -> Lid {
        Lid(self.info.lid())
    }

    /// True if `lid` is one of the port's LIDs.
    pub(super) fn has_lid(&self, lid: Lid) -> bool {
        let base = u32::from(self.info.lid());
        base != 0 && (base..base + (1 << self.info.lmc())).contains(&lid.0.into())
    }

    pub(super) fn state(&self) -> PortState {
        self.info.port_state()
    }

    /// Changes a bit of `component`, as a fault wants it.
    pub(super) fn change(&mut self, component: Component) {
        let info = &mut self.info;
        let changed = match component {
            Component::Lid => info.set_lid(info.lid() ^ 0x20),
            Component::MasterSmLid => info.set_master_sm_lid(info.master_sm_lid() ^ 0x20),
            Component::Lmc => info.set_lmc(info.lmc() ^ 1),
            Component::MasterSmSl => info.set_master_sm_sl(info.master_sm_sl() ^ 1),
            Component::CapabilityMask => info.set_capability_mask(info.capability_mask() ^ 0x20),
            Component::GidPrefix => info.set_gid_prefix(info.gid_prefix() ^ 1),
        };
        changed.expect("a bit within the field");
    }

    /// Sets the state, and the physical state with it.
    pub(super) fn set_state(&mut self, state: PortState) {
        let physical = if state == PortState::Down {
            POLLING
        } else {
            LINK_UP
        };
        self.set_states(state, physical);
    }

    fn set_states(&mut self, state: PortState, physical: u8) {
        let fits = "both states have four bits";
        let state = PortState::from_bits(state.into_bits() & 0xf);
        self.info.set_port_state(state).expect(fits);
        self.info.set_port_physical_state(physical).expect(fits);
    }

    /// Applies a Set completely or not at all.
    pub(super) fn set(&mut self, wanted: &PortInfo) -> Result<(), Invalid> {
        let mut next = self.clone();
        next.set_link(wanted)?;
        if self.managed {
            next.set_addresses(wanted)?;
        }
        next.change_state(wanted.port_state(), wanted.port_physical_state())?;
        *self = next;
        Ok(())
    }

    fn set_link(&mut self, wanted: &PortInfo) -> Result<(), Invalid> {
        let info = &mut self.info;
        let width = choose(
            wanted.link_width_enabled(),
            0xff,
            info.link_width_enabled(),
            info.link_width_supported(),
        )?;
        info.set_link_width_enabled(width)?;
        let speed = choose(
            wanted.link_speed_enabled(),
            0xf,
            info.link_speed_enabled(),
            info.link_speed_supported(),
        )?;
        info.set_link_speed_enabled(speed)?;
        match wanted.link_down_default_state() {
            0 => {}
            state @ (SLEEP | POLLING) => info.set_link_down_default_state(state)?,
            _ => return Err(Invalid),
        }
        match wanted.neighbor_mtu() {
            mtu if (1..=info.mtu_cap()).contains(&mtu) => info.set_neighbor_mtu(mtu)?,
            _ => return Err(Invalid),
        }
        match wanted.operational_vls() {
            0 => {}
            vls if vls <= info.vl_cap() => info.set_operational_vls(vls)?,
            _ => return Err(Invalid),
        }
        info.set_vl_high_limit(wanted.vl_high_limit())?;
        info.set_init_type_reply(wanted.init_type_reply())?;
        info.set_vl_stall_count(wanted.vl_stall_count())?;
        info.set_hoq_life(wanted.hoq_life())?;
        info.set_partition_enforcement_inbound(wanted.partition_enforcement_inbound())?;
        info.set_partition_enforcement_outbound(wanted.partition_enforcement_outbound())?;
        info.set_filter_raw_inbound(wanted.filter_raw_inbound())?;
        info.set_filter_raw_outbound(wanted.filter_raw_outbound())?;
        info.set_local_phy_errors(wanted.local_phy_errors())?;
        info.set_overrun_errors(wanted.overrun_errors())?;
        Ok(())
    }

    fn set_addresses(&mut self, wanted: &PortInfo) -> Result<(), Invalid> {
        let info = &mut self.info;
        info.set_lid(unicast(wanted.lid(), info.lid())?)?;
        info.set_master_sm_lid(unicast(wanted.master_sm_lid(), info.master_sm_lid())?)?;
        info.set_lmc(wanted.lmc())?;
        info.set_gid_prefix(wanted.gid_prefix())?;
        info.set_master_sm_sl(wanted.master_sm_sl())?;
        info.set_subnet_timeout(wanted.subnet_timeout())?;
        let suppression = wanted.multicast_p_key_trap_suppression_enabled();
        info.set_multicast_p_key_trap_suppression_enabled(suppression)?;
        Ok(())
    }

    /// Makes the transitions that a Set may ask for (7.2.7). A physical state may be set only while
    /// the link is down or goes down with it.
    fn change_state(&mut self, state: PortState, physical: u8) -> Result<(), Invalid> {
        use PortState::{Active, Armed, Down, Initialized, NoChange};
        match (state, physical, self.state()) {
            (NoChange, 0, _) | (Armed, 0, Armed) | (Active, 0, Active) => {}
            (Armed, 0, Initialized) => self.set_state(Armed),
            (Active, 0, Armed) => self.set_state(Active),
            // The link goes down. Nothing keeps it there, so it is trained again at once.
            (Down, 0, _) | (Down | NoChange, SLEEP | POLLING, _) => self.set_state(Initialized),
            (Down | NoChange, DISABLED, _) => self.set_states(Down, DISABLED),
            _ => return Err(Invalid),
        }
        Ok(())
    }
}

fn defaults(config: &NodeConfig, managed: bool) -> Result<PortInfo, FieldError> {
    let mut info = PortInfo::default();
    if managed {
        info.set_lid(config.lid.0)?;
        info.set_master_sm_lid(config.master_sm_lid.0)?;
        // The link-local prefix.
        info.set_gid_prefix(0xfe80 << 48)?;
        // IsNoticeSupported and IsTrapSupported.
        info.set_capability_mask(0xc)?;
        info.set_guid_cap(1)?;
        info.set_subnet_timeout(config.subnet_timeout & 0x1f)?;
        info.set_response_time_value(config.response_time_value & 0x1f)?;
    }
    // Widths 1x and 4x, with 4x in use; speeds 2.5, 5 and 10 Gbit/s a lane, with 10 in use.
    info.set_link_width_supported(3)?;
    info.set_link_width_enabled(3)?;
    info.set_link_width_active(2)?;
    info.set_link_speed_supported(7)?;
    info.set_link_speed_enabled(7)?;
    info.set_link_speed_active(4)?;
    info.set_link_down_default_state(POLLING)?;
    info.set_mtu_cap(MTU_4096)?;
    info.set_neighbor_mtu(MTU_4096)?;
    // VL 0 to VL 7.
    info.set_vl_cap(4)?;
    info.set_operational_vls(4)?;
    info.set_vl_arbitration_high_cap(8)?;
    info.set_vl_arbitration_low_cap(8)?;
    info.set_local_phy_errors(8)?;
    info.set_overrun_errors(8)?;
    Ok(info)
}

/// Returns the new mask of enabled widths or speeds: 0 changes nothing, and `all` stands for every
/// supported one.
fn choose(wanted: u8, all: u8, enabled: u8, supported: u8) -> Result<u8, Invalid> {
    match wanted {
        0 => Ok(enabled),
        _ if wanted == all => Ok(supported),
        _ if wanted & !supported == 0 => Ok(wanted),
        _ => Err(Invalid),
    }
}

/// Checks a LID that is set. It may stay 0: then no SM has configured the port yet.
fn unicast(wanted: u16, before: u16) -> Result<u16, Invalid> {
    match wanted {
        _ if wanted == before => Ok(wanted),
        1..MULTICAST_LIDS => Ok(wanted),
        _ => Err(Invalid),
    }
}
