//! Bits of PortInfo:CapabilityMask and PortInfo:CapabilityMask2 (14.2.5.6).

macro_rules! bits {
    ($type:ty: $( $(#[$doc:meta])* $name:ident = $bit:literal; )*) => { $(
        $(#[$doc])*
        #[doc = concat!("\n\nBit ", $bit, ".")]
        pub const $name: $type = 1 << $bit;
    )* };
}

/// CapabilityMask.
pub mod mask {
    bits! { u32:
        /// A subnet manager runs at the port.
        IS_SM = 1;
        /// Notice can be read with Get.
        IS_NOTICE_SUPPORTED = 2;
        /// The port sends traps.
        IS_TRAP_SUPPORTED = 3;
        /// Inter-packet delays beyond those of the specified rates.
        IS_OPTIONAL_IPD_SUPPORTED = 4;
        /// Automatic path migration.
        IS_AUTOMATIC_MIGRATION_SUPPORTED = 5;
        /// SLtoVLMappingTable.
        IS_SL_MAPPING_SUPPORTED = 6;
        /// The M_Key survives a loss of power.
        IS_M_KEY_NVRAM = 7;
        /// The P_Keys survive a loss of power.
        IS_P_KEY_NVRAM = 8;
        /// LedInfo.
        IS_LED_INFO_SUPPORTED = 9;
        /// The subnet manager at the port is disabled.
        IS_SM_DISABLED = 10;
        /// NodeInfo:SystemImageGUID is set.
        IS_SYSTEM_IMAGE_GUID_SUPPORTED = 11;
        /// Trap 259: bad P_Key at an external port of a switch.
        IS_P_KEY_SWITCH_EXTERNAL_PORT_TRAP_SUPPORTED = 12;
        /// The LinkSpeedExt fields.
        IS_EXTENDED_SPEEDS_SUPPORTED = 14;
        /// CapabilityMask2.
        IS_CAPABILITY_MASK2_SUPPORTED = 15;
        /// Communication management.
        IS_COMMUNICATION_MANAGEMENT_SUPPORTED = 16;
        /// SNMP tunnelling.
        IS_SNMP_TUNNELING_SUPPORTED = 17;
        /// InitType and InitTypeReply.
        IS_REINIT_SUPPORTED = 18;
        /// Device management.
        IS_DEVICE_MANAGEMENT_SUPPORTED = 19;
        /// Management classes of vendors.
        IS_VENDOR_CLASS_SUPPORTED = 20;
        /// Traps can follow a directed route.
        IS_DR_NOTICE_SUPPORTED = 21;
        /// Trap 144 at a change of CapabilityMask.
        IS_CAPABILITY_MASK_NOTICE_SUPPORTED = 22;
        /// Boot management.
        IS_BOOT_MANAGEMENT_SUPPORTED = 23;
        /// LinkRoundTripLatency.
        IS_LINK_ROUND_TRIP_LATENCY_SUPPORTED = 24;
        /// ClientReregister.
        IS_CLIENT_REREGISTRATION_SUPPORTED = 25;
        /// Trap 144 at a change of link speed, link width or NodeDescription.
        IS_OTHER_LOCAL_CHANGES_NOTICE_SUPPORTED = 26;
        /// LinkSpeedWidthPairsTable.
        IS_LINK_SPEED_WIDTH_PAIRS_TABLE_SUPPORTED = 27;
        /// VendorSpecificMadsTable.
        IS_VENDOR_SPECIFIC_MADS_TABLE_SUPPORTED = 28;
        /// MulticastPKeyTrapSuppressionEnabled.
        IS_MULTICAST_P_KEY_TRAP_SUPPRESSION_SUPPORTED = 29;
        /// SwitchInfo:MulticastFDBTop.
        IS_MULTICAST_FDB_TOP_SUPPORTED = 30;
        /// HierarchyInfo.
        IS_HIERARCHY_INFO_SUPPORTED = 31;
    }
}

/// CapabilityMask2; valid where [`mask::IS_CAPABILITY_MASK2_SUPPORTED`] is set.
pub mod mask2 {
    bits! { u16:
        /// NodeDescription can be set.
        IS_SET_NODE_DESCRIPTION_SUPPORTED = 0;
        /// PortInfoExtended.
        IS_PORT_INFO_EXTENDED_SUPPORTED = 1;
        /// Virtual ports.
        IS_VIRTUALIZATION_SUPPORTED = 2;
        /// SwitchPortStateTable.
        IS_SWITCH_PORT_STATE_TABLE_SUPPORTED = 3;
        /// Link width 2x.
        IS_LINK_WIDTH_2X_SUPPORTED = 4;
        /// Link speed HDR.
        IS_LINK_SPEED_HDR_SUPPORTED = 5;
        /// Link speed NDR.
        IS_LINK_SPEED_NDR_SUPPORTED = 10;
        /// The fields LinkSpeedExtActive2, LinkSpeedExtSupported2 and LinkSpeedExtEnabled2.
        IS_EXTENDED_SPEEDS2_SUPPORTED = 11;
        /// Link speed XDR.
        IS_LINK_SPEED_XDR_SUPPORTED = 12;
    }
}
