//! PortInfo (14.2.5.6).

use super::field::{attribute, codes};
use crate::mad::{AttributeId, MKey};

attribute! {
    /// A port. The modifier is the port's number. 0 means port 0 of a switch; on other nodes it
    /// means the port at which the request arrived.
    ///
    /// A mask of widths has the bits 1 (1x), 2 (4x), 4 (8x), 8 (12x) and 16 (2x).
    PortInfo = AttributeId::PORT_INFO;
    /// M_Key of the port; all ports of a switch share that of port 0.
    m_key, set_m_key: MKey = "M_Key" @ 0, 64;
    /// Upper half of the port's GIDs.
    gid_prefix, set_gid_prefix: u64 = "GidPrefix" @ 64, 64;
    /// Base LID.
    lid, set_lid: u16 = "LID" @ 128, 16;
    /// LID of the master SM.
    master_sm_lid, set_master_sm_lid: u16 = "MasterSMLID" @ 144, 16;
    /// Capabilities of the port (table of 14.2.5.6).
    capability_mask, set_capability_mask: u32 = "CapabilityMask" @ 160, 32;
    /// Result of the last diagnosis (14.2.5.6.1); 0 is good.
    diag_code, set_diag_code: u16 = "DiagCode" @ 192, 16;
    /// Lease period of the M_Key in seconds; 0 means that the lease never ends.
    m_key_lease_period, set_m_key_lease_period: u16 = "M_KeyLeasePeriod" @ 208, 16;
    /// Number of the port at which the request arrived.
    local_port_number, set_local_port_number: u8 = "LocalPortNum" @ 224, 8;
    /// Mask of the enabled widths. In a Set, 0 changes nothing and 255 enables all supported ones.
    link_width_enabled, set_link_width_enabled: u8 = "LinkWidthEnabled" @ 232, 8;
    /// Mask of the supported widths.
    link_width_supported, set_link_width_supported: u8 = "LinkWidthSupported" @ 240, 8;
    /// The width in use, as a mask.
    link_width_active, set_link_width_active: u8 = "LinkWidthActive" @ 248, 8;
    /// Mask of the supported speeds: 1 (2.5 Gbit/s a lane), 2 (5), 4 (10).
    link_speed_supported, set_link_speed_supported: u8 = "LinkSpeedSupported" @ 256, 4;
    /// State of the link layer.
    port_state, set_port_state: PortState = "PortState" @ 260, 4;
    /// State of the physical layer: 1 sleep, 2 polling, 3 disabled, 4 training, 5 link up, 6
    /// recovery, 7 test. 0 in a Set changes nothing.
    port_physical_state, set_port_physical_state: u8 = "PortPhysicalState" @ 264, 4;
    /// Behaviour of the physical layer while there is no link: 1 sleep, 2 polling. 0 in a Set
    /// changes nothing.
    link_down_default_state, set_link_down_default_state: u8 = "LinkDownDefaultState" @ 268, 4;
    /// Protection by the M_Key: 0 lets every Get pass and shows the key, 1 hides the key, 2 and 3
    /// let no Get pass without it.
    m_key_protect_bits, set_m_key_protect_bits: u8 = "M_KeyProtectBits" @ 272, 2;
    /// LID mask control: number of low LID bits that are ignored.
    lmc, set_lmc: u8 = "LMC" @ 277, 3;
    /// The speed in use, as a mask like LinkSpeedSupported; 0 if it is an extended one.
    link_speed_active, set_link_speed_active: u8 = "LinkSpeedActive" @ 280, 4;
    /// Mask of the enabled speeds. In a Set, 0 changes nothing and 15 enables all supported ones.
    link_speed_enabled, set_link_speed_enabled: u8 = "LinkSpeedEnabled" @ 284, 4;
    /// Largest packet that may be sent: 128 octets * 2^n, n from 1 to 5.
    neighbor_mtu, set_neighbor_mtu: u8 = "NeighborMTU" @ 288, 4;
    /// Service level towards the master SM for packets other than SMPs.
    master_sm_sl, set_master_sm_sl: u8 = "MasterSMSL" @ 292, 4;
    /// Supported data VLs: 1 is VL 0 alone, 2 up to VL 1, 3 up to VL 3, 4 up to VL 7, 5 up to VL
    /// 14.
    vl_cap, set_vl_cap: u8 = "VLCap" @ 296, 4;
    /// Initialisation that the port asks of the SM: bit 0 NoLoad, 1 PreserveContent, 2
    /// PreservePresence, 3 DoNotResuscitate.
    init_type, set_init_type: u8 = "InitType" @ 300, 4;
    /// Limit, in units of 4096 octets, of what the high-priority table may send before the
    /// low-priority table has its turn; 255 is no limit.
    vl_high_limit, set_vl_high_limit: u8 = "VLHighLimit" @ 304, 8;
    /// Entries of the high-priority table of VL arbitration.
    vl_arbitration_high_cap, set_vl_arbitration_high_cap: u8 = "VLArbitrationHighCap" @ 312, 8;
    /// Entries of the low-priority table of VL arbitration.
    vl_arbitration_low_cap, set_vl_arbitration_low_cap: u8 = "VLArbitrationLowCap" @ 320, 8;
    /// Initialisation that the SM has done, coded as InitType.
    init_type_reply, set_init_type_reply: u8 = "InitTypeReply" @ 328, 4;
    /// Largest supported packet, coded as NeighborMTU.
    mtu_cap, set_mtu_cap: u8 = "MTUCap" @ 332, 4;
    /// Number of successive packets discarded for their age that make a VL stalled.
    vl_stall_count, set_vl_stall_count: u8 = "VLStallCount" @ 336, 3;
    /// Longest time of a packet at the head of a VL's queue: 4.096 us * 2^n; above 19 there is no
    /// limit.
    hoq_life, set_hoq_life: u8 = "HOQLife" @ 339, 5;
    /// Data VLs in use, coded as VLCap; 0 in a Set changes nothing.
    operational_vls, set_operational_vls: u8 = "OperationalVLs" @ 344, 4;
    /// True if the switch checks the P_Keys of incoming packets.
    partition_enforcement_inbound, set_partition_enforcement_inbound: bool =
        "PartitionEnforcementInbound" @ 348, 1;
    /// True if the switch checks the P_Keys of outgoing packets.
    partition_enforcement_outbound, set_partition_enforcement_outbound: bool =
        "PartitionEnforcementOutbound" @ 349, 1;
    /// True if the switch discards incoming raw packets.
    filter_raw_inbound, set_filter_raw_inbound: bool = "FilterRawInbound" @ 350, 1;
    /// True if the switch discards outgoing raw packets.
    filter_raw_outbound, set_filter_raw_outbound: bool = "FilterRawOutbound" @ 351, 1;
    /// Number of requests with a wrong M_Key; stays at 0xffff.
    m_key_violations, set_m_key_violations: u16 = "M_KeyViolations" @ 352, 16;
    /// Number of packets with a wrong P_Key; stays at 0xffff.
    p_key_violations, set_p_key_violations: u16 = "P_KeyViolations" @ 368, 16;
    /// Number of packets with a wrong Q_Key; stays at 0xffff.
    q_key_violations, set_q_key_violations: u16 = "Q_KeyViolations" @ 384, 16;
    /// Number of entries of GUIDInfo.
    guid_cap, set_guid_cap: u8 = "GUIDCap" @ 400, 8;
    /// The SM sets it to ask clients to subscribe and join again.
    client_reregister, set_client_reregister: bool = "ClientReregister" @ 408, 1;
    /// Nonzero if multicast packets with a wrong P_Key cause no trap.
    multicast_p_key_trap_suppression_enabled, set_multicast_p_key_trap_suppression_enabled: u8 =
        "MulticastPKeyTrapSuppressionEnabled" @ 409, 2;
    /// Transit time of the subnet: 4.096 us * 2^n.
    subnet_timeout, set_subnet_timeout: u8 = "SubnetTimeOut" @ 411, 5;
    /// Longest time from request to answer: 4.096 us * 2^n.
    response_time_value, set_response_time_value: u8 = "RespTimeValue" @ 419, 5;
    /// Number of local physical errors that count as a broken link (7.12.2).
    local_phy_errors, set_local_phy_errors: u8 = "LocalPhyErrors" @ 424, 4;
    /// Number of successive flow control periods with overruns that count as an error (7.12.2).
    overrun_errors, set_overrun_errors: u8 = "OverrunErrors" @ 428, 4;
    /// The vendor's hint at the number of credits useful on a long link; 0 is no hint.
    max_credit_hint, set_max_credit_hint: u16 = "MaxCreditHint" @ 432, 16;
    /// The speed of the third table that is in use: 1 XDR.
    link_speed_ext_active_2, set_link_speed_ext_active_2: u8 = "LinkSpeedExtActive2" @ 449, 2;
    /// Mask of the supported speeds of the third table: 1 XDR.
    link_speed_ext_supported_2, set_link_speed_ext_supported_2: u8 =
        "LinkSpeedExtSupported2" @ 451, 2;
    /// Mask of the enabled speeds of the third table: 1 XDR.
    link_speed_ext_enabled_2, set_link_speed_ext_enabled_2: u8 = "LinkSpeedExtEnabled2" @ 453, 3;
    /// Round-trip time of the link, measured by the port.
    link_round_trip_latency, set_link_round_trip_latency: u32 = "LinkRoundTripLatency" @ 456, 24;
    /// Further capabilities of the port (table of 14.2.5.6).
    capability_mask_2, set_capability_mask_2: u16 = "CapabilityMask2" @ 480, 16;
    /// The extended speed in use, as a mask like LinkSpeedExtSupported; 0 if none is.
    link_speed_ext_active, set_link_speed_ext_active: u8 = "LinkSpeedExtActive" @ 496, 4;
    /// Mask of the supported extended speeds: 1 (FDR, 14.0625 Gbit/s a lane), 2 (EDR), 4 (HDR), 8
    /// (NDR).
    link_speed_ext_supported, set_link_speed_ext_supported: u8 = "LinkSpeedExtSupported" @ 500, 4;
    /// Mask of the enabled extended speeds. In a Set, 0 changes nothing and 31 enables all
    /// supported ones.
    link_speed_ext_enabled, set_link_speed_ext_enabled: u8 = "LinkSpeedExtEnabled" @ 507, 5;
}

codes! {
    /// State of a port's link layer.
    PortState {
        /// In a Set: keeps the state.
        NoChange = 0,
        /// No link.
        Down = 1,
        /// The link is up, and only SMPs pass.
        Initialized = 2,
        /// Waits for the SM to make it active.
        Armed = 3,
        /// All packets pass.
        Active = 4,
    }
}

impl PortState {
    /// True if SMPs pass the link.
    pub fn is_up(self) -> bool {
        matches!(self, Self::Initialized | Self::Armed | Self::Active)
    }
}
