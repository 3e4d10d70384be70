//! UDP (RFC 768; over IPv6 RFC 8200, 8.1).

use super::{Malformed, Octets, Part, fold, ip};

/// Length of the header.
pub const LEN: usize = 8;

/// A whole UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Destination port.
    pub destination: u16,
    /// Octets of header and payload, all of them in the frame.
    pub length: usize,
}

/// Reads the UDP header that begins the payload of `ip`.
#[inline(always)]
pub fn parse(frame: &(impl Octets + ?Sized), ip: &ip::Header) -> Result<Header, Malformed> {
    let Some(header) = frame.part::<LEN>(ip.payload) else {
        return Err(Malformed::UdpTruncated);
    };
    read(header, ip)
}

/// Reads the UDP header `header` that begins the payload of `ip`.
#[inline(always)]
pub fn read(header: impl Part, ip: &ip::Header) -> Result<Header, Malformed> {
    let length = header.word::<4>() as usize;
    if length < LEN || length > ip.length {
        return Err(Malformed::UdpTruncated);
    }
    Ok(Header {
        destination: header.word::<2>(),
        length,
    })
}

/// True if the checksum over the pseudo header and the whole datagram is right.
///
/// Zero, by which a sender says that there is no checksum, is not taken: every test frame is sent
/// with one, so that zero was written on the way. Nor is a datagram longer than [`super::MAX_SUM`]
/// less the addresses.
#[inline(always)]
pub fn is_intact(frame: &(impl Octets + ?Sized), ip: &ip::Header, udp: &Header) -> bool {
    let sum = if ip.addresses.at + ip.addresses.length == ip.payload {
        frame.sum(ip.addresses.at, ip.addresses.length + udp.length)
    } else {
        // Options of IPv4 stand between.
        let addresses = frame.sum(ip.addresses.at, ip.addresses.length);
        addresses.and_then(|addresses| {
            Some(fold(
                addresses as u32 + frame.sum(ip.payload, udp.length)? as u32,
            ))
        })
    };
    let Some(sum) = sum else { return false };
    let sent = frame.word(ip.payload + 6).unwrap_or(0);
    sent != 0 && fold(sum as u32 + ip::UDP as u32 + udp.length as u32) == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    // Source 0a000001, destination 0a000002, then a datagram with the odd payload 01 02 03; the sum
    // was worked out by hand: 0a00+0001+0a00+0002+0011+000b + 04d2+c350+000b+0102+0300 = e04e,
    // so that the checksum is 1fb1.
    const PACKET: [u8; 19] = [
        10, 0, 0, 1, 10, 0, 0, 2, 0x04, 0xd2, 0xc3, 0x50, 0, 11, 0x1f, 0xb1, 1, 2, 3,
    ];
    const IP: ip::Header = ip::Header {
        dscp: 0,
        protocol: ip::UDP,
        fragment: false,
        addresses: ip::Addresses { at: 0, length: 8 },
        payload: 8,
        length: 11,
    };

    #[test]
    fn an_odd_datagram_is_intact_until_a_bit_flips() {
        let udp = parse(&PACKET[..], &IP).unwrap();
        assert_eq!(
            udp,
            Header {
                destination: 50_000,
                length: 11
            }
        );
        assert!(is_intact(&PACKET[..], &IP, &udp));
        for bit in 0..PACKET.len() * 8 {
            let mut packet = PACKET;
            packet[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_intact(&packet[..], &IP, &udp), "bit {bit}");
        }
    }

    #[test]
    fn no_checksum_is_not_intact() {
        let mut packet = PACKET;
        packet[14..16].fill(0);
        assert!(!is_intact(
            &packet[..],
            &IP,
            &Header {
                destination: 50_000,
                length: 11
            }
        ));
    }

    #[test]
    fn lengths_have_to_fit() {
        let with_length = |length: u8| {
            let mut packet = PACKET;
            packet[13] = length;
            parse(&packet[..], &IP)
        };
        assert_eq!(with_length(7), Err(Malformed::UdpTruncated));
        assert_eq!(with_length(8).map(|udp| udp.length), Ok(8));
        assert_eq!(with_length(12), Err(Malformed::UdpTruncated));
        assert_eq!(
            parse(&PACKET[..15], &ip::Header { length: 7, ..IP }),
            Err(Malformed::UdpTruncated)
        );
    }
}
