//! NodeInfo (14.2.5.3).

use super::field::{attribute, codes};
use crate::mad::AttributeId;

attribute! {
    /// A node's kind and ports. All ports report the same, except PortGUID and LocalPortNum. The
    /// modifier is 0.
    NodeInfo = AttributeId::NODE_INFO;
    /// Base version of MADs that the node supports; 1.
    base_version, set_base_version: u8 = "BaseVersion" @ 0, 8;
    /// Class version of subnet management that the node supports; 1.
    class_version, set_class_version: u8 = "ClassVersion" @ 8, 8;
    /// Kind of node.
    node_type, set_node_type: NodeType = "NodeType" @ 16, 8;
    /// Number of physical ports; port 0 of a switch does not count.
    num_ports, set_num_ports: u8 = "NumPorts" @ 24, 8;
    /// GUID shared by the nodes of one system; 0 if the node does not tell.
    system_image_guid, set_system_image_guid: u64 = "SystemImageGUID" @ 32, 64;
    /// GUID of the node.
    node_guid, set_node_guid: u64 = "NodeGUID" @ 96, 64;
    /// GUID of the port at which the request arrived; for a switch that of port 0.
    port_guid, set_port_guid: u64 = "PortGUID" @ 160, 64;
    /// Number of entries of a port's partition table; for a switch that of port 0.
    partition_cap, set_partition_cap: u16 = "PartitionCap" @ 224, 16;
    /// Device, numbered by its vendor.
    device_id, set_device_id: u16 = "DeviceID" @ 240, 16;
    /// Revision, numbered by its vendor.
    revision, set_revision: u32 = "Revision" @ 256, 32;
    /// Number of the port at which the request arrived.
    local_port_number, set_local_port_number: u8 = "LocalPortNum" @ 288, 8;
    /// The vendor's OUI.
    vendor_id, set_vendor_id: u32 = "VendorID" @ 296, 24;
}

codes! {
    /// Kind of node.
    NodeType {
        /// Channel adapter: 1.
        ChannelAdapter = 1,
        /// Switch: 2.
        Switch = 2,
        /// Router: 3.
        Router = 3,
    }
}
