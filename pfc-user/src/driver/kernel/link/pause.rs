//! PAUSE (802.3x) settings and the standard counters of MAC control frames: ethtool's netlink
//! family.

use std::io;

use validator_core::evidence::preflight::{FrameCounts, Pause};

use super::genetlink::query;
use super::netlink::{attribute, find, find_u64};

// `linux/ethtool_netlink.h`.
const MSG_PAUSE_GET: u8 = 21;
const MSG_STATS_GET: u8 = 32;
const NESTED: u16 = 1 << 15;
const A_PAUSE_HEADER: u16 = 1;
const A_STATS_HEADER: u16 = 2;
const A_HEADER_DEV_NAME: u16 = 2;
const A_HEADER_FLAGS: u16 = 3;
const FLAG_STATS: u32 = 1 << 2;
const A_PAUSE_AUTONEG: u16 = 2;
const A_PAUSE_RX: u16 = 3;
const A_PAUSE_TX: u16 = 4;
const A_PAUSE_STATS: u16 = 5;
const A_PAUSE_STAT_TX_FRAMES: u16 = 2;
const A_PAUSE_STAT_RX_FRAMES: u16 = 3;
const A_STATS_GROUPS: u16 = 3;
const A_STATS_GRP: u16 = 4;
const A_STATS_GRP_STAT: u16 = 4;
const A_BITSET_NOMASK: u16 = 1;
const A_BITSET_SIZE: u16 = 2;
const A_BITSET_VALUE: u16 = 4;
/// `ETHTOOL_STATS_ETH_CTRL`: the attributes of the MAC control entity (IEEE 802.3, 30.3.3).
const STATS_ETH_CTRL: u32 = 2;
const A_ETH_CTRL_TX: u16 = 0;
const A_ETH_CTRL_RX: u16 = 1;

/// Family of generic netlink.
const ETHTOOL: &str = "ethtool";

fn header(kind: u16, interface: &str, flags: u32) -> Vec<u8> {
    let name = [interface.as_bytes(), &[0]].concat();
    let value = [
        attribute(A_HEADER_DEV_NAME, &name),
        attribute(A_HEADER_FLAGS, &flags.to_ne_bytes()),
    ]
    .concat();
    attribute(kind | NESTED, &value)
}

/// The settings of `interface`, with aPAUSEMACCtrlFrames where the driver counts them. `EOPNOTSUPP`
/// where it has no such settings.
pub fn pause(interface: &str) -> io::Result<Pause> {
    Ok(read_pause(&query(
        ETHTOOL,
        MSG_PAUSE_GET,
        header(A_PAUSE_HEADER, interface, FLAG_STATS),
    )?))
}

fn read_pause(answer: &[u8]) -> Pause {
    let on = |kind| {
        find(answer, kind).is_some_and(|value| value.first().is_some_and(|octet| *octet != 0))
    };
    Pause {
        autonegotiated: on(A_PAUSE_AUTONEG),
        receives: on(A_PAUSE_RX),
        sends: on(A_PAUSE_TX),
        frames: find(answer, A_PAUSE_STATS)
            .map(|stats| FrameCounts {
                received: find_u64(stats, A_PAUSE_STAT_RX_FRAMES),
                sent: find_u64(stats, A_PAUSE_STAT_TX_FRAMES),
            })
            .unwrap_or_default(),
    }
}

/// aMACControlFrames of `interface`: of every kind, as far as the driver counts them.
pub fn mac_control(interface: &str) -> io::Result<FrameCounts> {
    let groups = [
        attribute(A_BITSET_NOMASK, &[]),
        attribute(A_BITSET_SIZE, &32u32.to_ne_bytes()),
        attribute(A_BITSET_VALUE, &(1u32 << STATS_ETH_CTRL).to_ne_bytes()),
    ]
    .concat();
    let request = [
        header(A_STATS_HEADER, interface, 0),
        attribute(A_STATS_GROUPS | NESTED, &groups),
    ]
    .concat();
    Ok(read_mac_control(&query(ETHTOOL, MSG_STATS_GET, request)?))
}

fn read_mac_control(answer: &[u8]) -> FrameCounts {
    let group = find(answer, A_STATS_GRP).unwrap_or_default();
    // One nest a statistic, and in it the value with the statistic's number as its kind.
    let statistic =
        |kind| super::netlink::all(group, A_STATS_GRP_STAT).find_map(|value| find_u64(value, kind));
    FrameCounts {
        received: statistic(A_ETH_CTRL_RX),
        sent: statistic(A_ETH_CTRL_TX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_counters_are_read() {
        let number = |kind, value: u64| attribute(kind, &value.to_ne_bytes());
        let stats = [
            number(A_PAUSE_STAT_TX_FRAMES, 3),
            number(A_PAUSE_STAT_RX_FRAMES, 7),
        ]
        .concat();
        let answer = [
            header(A_PAUSE_HEADER, "eth0", 0),
            attribute(A_PAUSE_AUTONEG, &[1]),
            attribute(A_PAUSE_RX, &[0]),
            attribute(A_PAUSE_TX, &[1]),
            attribute(A_PAUSE_STATS | NESTED, &stats),
        ]
        .concat();
        let frames = FrameCounts {
            received: Some(7),
            sent: Some(3),
        };
        assert_eq!(
            read_pause(&answer),
            Pause {
                autonegotiated: true,
                receives: false,
                sends: true,
                frames
            }
        );
        assert_eq!(
            read_pause(&answer[..answer.len() - stats.len() - 4]).frames,
            FrameCounts::default(),
            "a driver that counts none"
        );
        assert_eq!(read_pause(&[]), Pause::default());

        let statistic = |kind, value| attribute(A_STATS_GRP_STAT | NESTED, &number(kind, value));
        let group = [
            attribute(2, &2u32.to_ne_bytes()),
            statistic(A_ETH_CTRL_TX, 1),
            statistic(A_ETH_CTRL_RX, 9),
            statistic(2, 5),
        ]
        .concat();
        let answer = [
            header(A_STATS_HEADER, "eth0", 0),
            attribute(A_STATS_GRP | NESTED, &group),
        ]
        .concat();
        assert_eq!(
            read_mac_control(&answer),
            FrameCounts {
                received: Some(9),
                sent: Some(1)
            }
        );
        assert_eq!(
            read_mac_control(&attribute(A_STATS_GRP | NESTED, &[])),
            FrameCounts::default()
        );
    }
}
