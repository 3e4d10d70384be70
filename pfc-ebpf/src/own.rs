//! Damaged test frames: what could not be counted by flow and phase, and yet is of the present run
//! and no other sender's.

use crate::abi::account::Config;
use crate::stamp::{self, FIRST_SOURCE_PORT, SOURCE_PORTS, Stamp};
use crate::wire::{Octets, Part, ethernet, ip, udp};

/// Octets from the first address of an IPv4 header to the end of the UDP header.
const IPV4_PARTS: usize = 8 + udp::LEN;
/// Octets from the first address of an IPv6 header to the end of the UDP header.
const IPV6_PARTS: usize = 32 + udp::LEN;

/// True if these longs of the addresses are those of the test.
macro_rules! addresses_fit {
    ($found:ident, $config:ident, $($long:literal)*) => {
        true $(&& $found.summand::<{ 4 * $long }>() == $config.addresses[$long] as u64)*
    };
}

/// True if stamp and run fit, or if IP addresses and UDP ports do. MAC addresses, TTL and DSCP
/// decide nothing: routers change them. Test frames have no IP options, so that everything stands
/// at a fixed place behind the tags, whatever the headers say of themselves.
#[inline(always)]
pub fn is_test_frame(frame: &(impl Octets + ?Sized), config: &Config) -> bool {
    let Ok(header) = ethernet::parse(frame) else {
        return false;
    };
    if config.ipv6 != 0 {
        let parts = frame.part::<IPV6_PARTS>(header.payload + 8);
        if let Some(parts) = parts
            && addresses_fit!(parts, config, 0 1 2 3 4 5 6 7)
            && ports_fit(parts.inner::<32, { udp::LEN }>(), config)
        {
            return true;
        }
        return is_stamped(frame, header.payload + ip::IPV6_LEN, config);
    }
    let parts = frame.part::<IPV4_PARTS>(header.payload + 12);
    if let Some(parts) = parts
        && addresses_fit!(parts, config, 0 1)
        && ports_fit(parts.inner::<8, { udp::LEN }>(), config)
    {
        return true;
    }
    is_stamped(frame, header.payload + ip::IPV4_LEN, config)
}

/// True if the ports are those of one of the flows.
#[inline(always)]
fn ports_fit(header: impl Part, config: &Config) -> bool {
    let flow = header.word::<0>().wrapping_sub(FIRST_SOURCE_PORT);
    let flows = config.flows.min(SOURCE_PORTS as u32);
    (flow as u32) < flows && header.word::<2>() == stamp::UDP_PORT
}

/// True if a whole stamp of this run stands behind the UDP header at `udp`.
#[inline(always)]
fn is_stamped(frame: &(impl Octets + ?Sized), udp: usize, config: &Config) -> bool {
    let Some(part) = frame.part::<{ stamp::LEN }>(udp + udp::LEN) else {
        return false;
    };
    matches!(Stamp::read(part), Ok(stamp) if stamp.run == config.run)
}
