//! Notice (13.4.8.2), and its contents in traps of subnet management (14.2.5.1).

use super::field::{attribute, codes, fields};
use crate::mad::{AttributeId, MKey, Method};
use crate::smp::DATA;

attribute! {
    /// Contents of a trap. In subnet management the attribute ends with DataDetails: IssuerGID is
    /// for subnet administration only.
    Notice = AttributeId::NOTICE;
    /// True if the specification defines the notice, false if a vendor does.
    is_generic, set_is_generic: bool = "IsGeneric" @ 0, 1;
    /// Severity.
    notice_type, set_notice_type: NoticeType = "Type" @ 1, 7;
    /// Generic notice: kind of node, 1 channel adapter, 2 switch, 3 router, 4 class manager.
    /// Vendor's notice: the vendor's OUI.
    producer_type_or_vendor_id, set_producer_type_or_vendor_id: u32 =
        "ProducerType/VendorID" @ 8, 24;
    /// Generic notice: number of the trap. Vendor's notice: the device, numbered by its vendor.
    trap_number_or_device_id, set_trap_number_or_device_id: u16 = "TrapNumber/DeviceID" @ 32, 16;
    /// LID of the port that issued the notice.
    issuer_lid, set_issuer_lid: u16 = "IssuerLID" @ 48, 16;
    /// For notices that are read with Get: changes with each.
    notice_toggle, set_notice_toggle: bool = "NoticeToggle" @ 64, 1;
    /// For notices that are read with Get: number of those not yet read.
    notice_count, set_notice_count: u16 = "NoticeCount" @ 65, 15;
}

codes! {
    /// Severity of a notice.
    NoticeType {
        /// 0.
        Fatal = 0,
        /// 1.
        Urgent = 1,
        /// 2.
        Security = 2,
        /// 3.
        SubnetManagement = 3,
        /// 4.
        Informational = 4,
        /// 0x7f: there is no notice to read.
        Empty = 0x7f,
    }
}

/// Definer of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeSource {
    /// The specification.
    Generic {
        /// Kind of node, 24 bits.
        producer_type: u32,
        /// Number of the trap.
        trap_number: u16,
    },
    /// A vendor.
    Vendor {
        /// OUI, 24 bits.
        vendor_id: u32,
        /// Device.
        device_id: u16,
    },
}

/// First octet of DataDetails.
const DETAILS: usize = 10;

impl Notice {
    /// Octets of DataDetails.
    pub const DETAILS: usize = DATA - DETAILS;

    /// Returns who defines the notice.
    pub fn source(&self) -> NoticeSource {
        let (producer_type, trap_number) = (
            self.producer_type_or_vendor_id(),
            self.trap_number_or_device_id(),
        );
        if self.is_generic() {
            NoticeSource::Generic {
                producer_type,
                trap_number,
            }
        } else {
            NoticeSource::Vendor {
                vendor_id: producer_type,
                device_id: trap_number,
            }
        }
    }

    /// Number of the trap; `None` for a vendor's notice.
    pub fn trap_number(&self) -> Option<u16> {
        self.is_generic().then(|| self.trap_number_or_device_id())
    }

    /// DataDetails: 432 bits from bit 80.
    pub fn data_details(&self) -> &[u8; Self::DETAILS] {
        self.0[DETAILS..].try_into().expect("54 octets")
    }

    /// Mutable access to DataDetails.
    pub fn data_details_mut(&mut self) -> &mut [u8; Self::DETAILS] {
        (&mut self.0[DETAILS..]).try_into().expect("54 octets")
    }

    /// DataDetails of trap 256; `None` for any other notice.
    pub fn bad_m_key(&self) -> Option<BadMKey> {
        (self.trap_number() == Some(BadMKey::TRAP_NUMBER)).then(|| BadMKey(*self.data_details()))
    }

    /// Makes this a notice of trap 256: sets IsGeneric, Type, TrapNumber and DataDetails. The
    /// caller sets producer and issuer.
    pub fn set_bad_m_key(&mut self, details: &BadMKey) -> Result<(), super::FieldError> {
        self.set_is_generic(true)?;
        self.set_notice_type(NoticeType::Security)?;
        self.set_trap_number_or_device_id(BadMKey::TRAP_NUMBER)?;
        *self.data_details_mut() = details.0;
        Ok(())
    }
}

fields! {
    /// DataDetails of trap 256: an SMP arrived with a wrong M_Key. Offsets count from the start of
    /// DataDetails.
    BadMKey [Notice::DETAILS] of AttributeId::NOTICE;
    /// LID of the requester.
    lid, set_lid: u16 = "LIDADDR" @ 16, 16;
    /// DrSLID of a directed-route SMP; 0 otherwise.
    dr_slid, set_dr_slid: u16 = "DRSLID" @ 32, 16;
    /// The SMP's method.
    method, set_method: Method = "METHOD" @ 48, 8;
    /// The SMP's attribute id.
    attribute, set_attribute: AttributeId = "ATTRIBUTEID" @ 64, 16;
    /// The SMP's attribute modifier.
    modifier, set_modifier: u32 = "ATTRIBUTEMODIFIER" @ 80, 32;
    /// The SMP's M_Key.
    m_key, set_m_key: MKey = "MKEY" @ 112, 64;
    /// True for a directed-route SMP.
    dr_notice, set_dr_notice: bool = "DRNotice" @ 184, 1;
    /// True if the return path has more hops than DRNoticeReturnPath has octets.
    dr_path_truncated, set_dr_path_truncated: bool = "DRPathTruncated" @ 185, 1;
    /// Number of octets of DRNoticeReturnPath that are in use.
    dr_hop_count, set_dr_hop_count: u8 = "DRHopCount" @ 186, 6;
}

/// First octet of DRNoticeReturnPath.
const RETURN_PATH: usize = 24;

impl BadMKey {
    /// Number of the trap.
    pub const TRAP_NUMBER: u16 = 256;
    /// Octets of DRNoticeReturnPath.
    pub const RETURN_PATH: usize = Notice::DETAILS - RETURN_PATH;

    /// All octets of DataDetails.
    pub fn octets(&self) -> &[u8; Notice::DETAILS] {
        &self.0
    }

    /// Mutable access to DRNoticeReturnPath: 240 bits from bit 192 of DataDetails.
    pub fn dr_notice_return_path_mut(&mut self) -> &mut [u8; Self::RETURN_PATH] {
        (&mut self.0[RETURN_PATH..]).try_into().expect("30 octets")
    }
}
