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
    /// Highest LID that the linear forwarding table has an entry for; packets to higher ones are discarded.
    linear_fdb_top, set_linear_fdb_top: u16 = "LinearFDBTop" @ 48, 16;
    /// Where packets go to whose LID is not in the random forwarding table.
    default_port, set_default_port: u8 = "DefaultPort" @ 64, 8;
    /// Where multicast packets go to that are not in the table and did not come in there.
    default_multicast_primary_port, set_default_multicast_primary_port: u8 = "DefaultMulticastPrimaryPort" @ 72, 8;
    /// Where multicast packets go to that are not in the table and came in by the primary port.
    default_multicast_not_primary_port, set_default_multicast_not_primary_port: u8 = "DefaultMulticastNotPrimaryPort" @ 80, 8;
    /// How long a packet may stay in the switch: 4.096 us * 2^n; more than 19 is without end.
    life_time_value, set_life_time_value: u8 = "LifeTimeValue" @ 88, 5;
    /// Some PortState has changed from Down to Initialized, or from another to Down; 1 in a Set clears it.
    port_state_change, set_port_state_change: bool = "PortStateChange" @ 93, 1;
    /// Which short cuts there are in setting the SL to VL mapping tables.
    optimized_sl_to_vl_mapping_programming, set_optimized_sl_to_vl_mapping_programming: u8 =
        "OptimizedSLtoVLMappingProgramming" @ 94, 2;
    /// Number of LIDs that the random forwarding table can have for a port.
    lids_per_port, set_lids_per_port: u16 = "LIDsPerPort" @ 96, 16;
    /// Number of entries of the partition enforcement table of a port; 0 if there is none.
    partition_enforcement_cap, set_partition_enforcement_cap: u16 = "PartitionEnforcementCap" @ 112, 16;
    /// Can check P_Keys of packets that come in.
    inbound_enforcement_cap, set_inbound_enforcement_cap: bool = "InboundEnforcementCap" @ 128, 1;
    /// Can check P_Keys of packets that go out.
    outbound_enforcement_cap, set_outbound_enforcement_cap: bool = "OutboundEnforcementCap" @ 129, 1;
    /// Can discard raw packets that come in.
    filter_raw_inbound_cap, set_filter_raw_inbound_cap: bool = "FilterRawInboundCap" @ 130, 1;
    /// Can discard raw packets that go out.
    filter_raw_outbound_cap, set_filter_raw_outbound_cap: bool = "FilterRawOutboundCap" @ 131, 1;
    /// Port 0 is an enhanced one, which has what a channel adapter's port has.
    enhanced_port_0, set_enhanced_port_0: bool = "EnhancedPort0" @ 132, 1;
    /// Highest LID that the multicast forwarding table has an entry for; 0 says nothing about that.
    multicast_fdb_top, set_multicast_fdb_top: u16 = "MulticastFDBTop" @ 144, 16;
}
