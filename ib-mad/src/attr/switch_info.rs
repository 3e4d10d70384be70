//! SwitchInfo (14.2.5.4).

use super::field::attribute;
use crate::mad::AttributeId;

attribute! {
    /// A switch's tables. The modifier is 0.
    SwitchInfo = AttributeId::SWITCH_INFO;
    /// Number of entries of the linear forwarding table, from LID 0 on; 0 if there is none.
    linear_fdb_cap, set_linear_fdb_cap: u16 = "LinearFDBCap" @ 0, 16;
    /// Number of entries of the random forwarding table; 0 if there is none.
    random_fdb_cap, set_random_fdb_cap: u16 = "RandomFDBCap" @ 16, 16;
    /// Number of entries of the multicast forwarding table, from LID 0xc000 on; 0 if there is none.
    multicast_fdb_cap, set_multicast_fdb_cap: u16 = "MulticastFDBCap" @ 32, 16;
    /// Highest LID in the linear forwarding table; packets to higher LIDs are discarded.
    linear_fdb_top, set_linear_fdb_top: u16 = "LinearFDBTop" @ 48, 16;
    /// Egress port of packets whose LID is not in the random forwarding table.
    default_port, set_default_port: u8 = "DefaultPort" @ 64, 8;
    /// Egress port of multicast packets that are not in the table and did not arrive at this port.
    default_multicast_primary_port, set_default_multicast_primary_port: u8 =
        "DefaultMulticastPrimaryPort" @ 72, 8;
    /// Egress port of multicast packets that are not in the table and arrived at the primary port.
    default_multicast_not_primary_port, set_default_multicast_not_primary_port: u8 =
        "DefaultMulticastNotPrimaryPort" @ 80, 8;
    /// Longest time of a packet in the switch: 4.096 us * 2^n; above 19 there is no limit.
    life_time_value, set_life_time_value: u8 = "LifeTimeValue" @ 88, 5;
    /// Set when a PortState changes from Down to Initialized, or from another state to Down; 1 in a
    /// Set clears it.
    port_state_change, set_port_state_change: bool = "PortStateChange" @ 93, 1;
    /// Supported short cuts for setting the SL to VL mapping tables.
    optimized_sl_to_vl_mapping_programming, set_optimized_sl_to_vl_mapping_programming: u8 =
        "OptimizedSLtoVLMappingProgramming" @ 94, 2;
    /// Number of LIDs per port in the random forwarding table.
    lids_per_port, set_lids_per_port: u16 = "LIDsPerPort" @ 96, 16;
    /// Number of entries of the partition enforcement table of a port; 0 if there is none.
    partition_enforcement_cap, set_partition_enforcement_cap: u16 =
        "PartitionEnforcementCap" @ 112, 16;
    /// True if the switch can check the P_Keys of incoming packets.
    inbound_enforcement_cap, set_inbound_enforcement_cap: bool = "InboundEnforcementCap" @ 128, 1;
    /// True if the switch can check the P_Keys of outgoing packets.
    outbound_enforcement_cap, set_outbound_enforcement_cap: bool =
        "OutboundEnforcementCap" @ 129, 1;
    /// True if the switch can discard incoming raw packets.
    filter_raw_inbound_cap, set_filter_raw_inbound_cap: bool = "FilterRawInboundCap" @ 130, 1;
    /// True if the switch can discard outgoing raw packets.
    filter_raw_outbound_cap, set_filter_raw_outbound_cap: bool = "FilterRawOutboundCap" @ 131, 1;
    /// True if port 0 is an enhanced one, with the features of a channel adapter's port.
    enhanced_port_0, set_enhanced_port_0: bool = "EnhancedPort0" @ 132, 1;
    /// Highest LID in the multicast forwarding table; 0 if the switch does not tell.
    multicast_fdb_top, set_multicast_fdb_top: u16 = "MulticastFDBTop" @ 144, 16;
}
