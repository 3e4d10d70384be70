//! Ethernet II with up to two VLAN tags (IEEE 802.3, 3.2.6; IEEE 802.1Q, 9.5).

use super::{Malformed, Octets, Part};

/// TPID of a customer tag.
pub const C_TAG: u16 = 0x8100;
/// TPID of a service tag.
pub const S_TAG: u16 = 0x88a8;
/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of MAC control frames (IEEE 802.3, 31.4.1.3).
pub const MAC_CONTROL: u16 = 0x8808;
/// Length of a VLAN tag.
pub const TAG_LEN: usize = 4;
/// Offset of the source address.
pub const SOURCE: usize = 6;
/// Length of the header without tags.
pub const LEN: usize = TYPE + 2;
/// Offset of the first tag, or of the EtherType.
pub const TYPE: usize = 12;

/// Fields before the payload, beside the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// VLAN tags: 0 to 2.
    pub tags: u8,
    /// PCP of the outermost tag, 0 to 7.
    pub pcp: u8,
    /// EtherType of the payload, or the length field of an IEEE 802.3 frame (below 0x0600).
    pub ethertype: u16,
    /// Offset of the payload.
    pub payload: usize,
}

const fn is_tag(ethertype: u16) -> bool {
    ethertype == C_TAG || ethertype == S_TAG
}

/// Reads addresses, tags and EtherType.
#[inline(always)]
pub fn parse(frame: &(impl Octets + ?Sized)) -> Result<Header, Malformed> {
    let Some(addresses) = frame.part::<LEN>(0) else {
        return Err(Malformed::EthernetTruncated);
    };
    let outer = addresses.word::<TYPE>();
    if !is_tag(outer) {
        return Ok(Header {
            tags: 0,
            pcp: 0,
            ethertype: outer,
            payload: TYPE + 2,
        });
    }
    let Some(tag) = frame.part::<4>(TYPE + 2) else {
        return Err(Malformed::EthernetTruncated);
    };
    let (pcp, inner) = (tag.octet::<0>() >> 5, tag.word::<2>());
    if !is_tag(inner) {
        return Ok(Header {
            tags: 1,
            pcp,
            ethertype: inner,
            payload: TYPE + 6,
        });
    }
    let Some(tag) = frame.part::<4>(TYPE + 6) else {
        return Err(Malformed::EthernetTruncated);
    };
    let ethertype = tag.word::<2>();
    if is_tag(ethertype) {
        return Err(Malformed::TooManyTags);
    }
    Ok(Header {
        tags: 2,
        pcp,
        ethertype,
        payload: TYPE + 10,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_after_addresses(tail: &[u8]) -> Result<Header, Malformed> {
        parse(&*[&[0; 12], tail].concat())
    }

    #[test]
    fn no_tag_one_tag_two_tags() {
        assert_eq!(
            parse_after_addresses(&[0x08, 0x00]),
            Ok(Header {
                tags: 0,
                pcp: 0,
                ethertype: IPV4,
                payload: 14
            })
        );
        assert_eq!(
            parse_after_addresses(&[0x81, 0x00, 0x60, 0x05, 0x86, 0xdd]),
            Ok(Header {
                tags: 1,
                pcp: 3,
                ethertype: IPV6,
                payload: 18
            })
        );
        assert_eq!(
            parse_after_addresses(&[0x88, 0xa8, 0xe0, 0x05, 0x81, 0x00, 0x20, 0x06, 0x08, 0x00]),
            Ok(Header {
                tags: 2,
                pcp: 7,
                ethertype: IPV4,
                payload: 22
            })
        );
    }

    #[test]
    fn a_third_tag_is_too_many() {
        assert_eq!(
            parse_after_addresses(&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 8, 0]),
            Err(Malformed::TooManyTags)
        );
    }

    #[test]
    fn cut_anywhere_it_is_truncated() {
        let whole = [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x08, 0x00];
        for length in [0, 1, 2, 3, 5, 6, 7, 9] {
            assert_eq!(
                parse_after_addresses(&whole[..length]),
                Err(Malformed::EthernetTruncated),
                "{length}"
            );
        }
        assert_eq!(parse(&[0u8; 0][..]), Err(Malformed::EthernetTruncated));
    }
}
