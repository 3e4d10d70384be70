//! Counters that rise when a frame is lost on the tester's own side.

use std::{fs, io};

use rtnetlink::packet_route::link::Stats64;

use super::{LinkError, Namespace, ethtool, find, standard_counters};
use crate::evidence::pfc::DropCounter;

const SOFTNET: &str = "/proc/net/softnet_stat";

/// The counters of `interface` that mean lost frames, with their present values.
pub fn statistics(namespace: &Namespace, interface: &str) -> Result<Vec<(String, u64)>, LinkError> {
    let standard = standard_counters(&find(namespace, interface)?);
    let driver = namespace.run(|| ethtool::driver(interface))?;
    Ok(losses(
        &driver.unwrap_or_default(),
        &standard,
        private(namespace, interface)?,
    ))
}

/// Frames that `interface` says it sent, and its driver's private counters.
pub fn transmitted(
    namespace: &Namespace,
    interface: &str,
) -> Result<(u64, Vec<(String, u64)>), LinkError> {
    let standard = standard_counters(&find(namespace, interface)?);
    Ok((standard.tx_packets, private(namespace, interface)?))
}

/// The counters that a driver has of its own, if it has any.
fn private(namespace: &Namespace, interface: &str) -> Result<Vec<(String, u64)>, LinkError> {
    match namespace.run(|| ethtool::counters(interface))? {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(Vec::new()),
        other => other.map_err(|error| {
            LinkError::system(
                format!("cannot read the driver's counters of {interface}"),
                error,
            )
        }),
    }
}

/// Frames that the kernel dropped between driver and protocols since boot, over all CPUs: `netdev_max_backlog` was full.
pub fn softnet_dropped() -> io::Result<u64> {
    let text = fs::read_to_string(SOFTNET)?;
    parse_softnet(&text).ok_or_else(|| {
        io::Error::other(format!(
            "{SOFTNET}: expected hexadecimal columns, found {text:?}"
        ))
    })
}

fn parse_softnet(text: &str) -> Option<u64> {
    text.lines()
        .map(|cpu| u64::from_str_radix(cpu.split_ascii_whitespace().nth(1)?, 16).ok())
        .sum()
}

/// By how much each counter of `place` rose; those that did not rise are listed with 0, as proof of where was looked.
pub fn drop_rises(
    place: &str,
    before: &[(String, u64)],
    after: &[(String, u64)],
) -> Vec<DropCounter> {
    let old = |name: &str| {
        before
            .iter()
            .find(|(counter, _)| counter == name)
            .map_or(0, |(_, value)| *value)
    };
    let rise = |(counter, value): &(String, u64)| DropCounter {
        place: place.to_owned(),
        counter: counter.clone(),
        // A driver that was reset counts from 0 again.
        rise: value.checked_sub(old(counter)).unwrap_or(*value),
    };
    after.iter().map(rise).collect()
}

fn losses(driver: &str, standard: &Stats64, private: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let mut losses = vec![
        ("rx_errors".to_owned(), standard.rx_errors),
        ("tx_errors".to_owned(), standard.tx_errors),
        ("tx_dropped".to_owned(), standard.tx_dropped),
        ("rx_missed_errors".to_owned(), standard.rx_missed_errors),
        ("rx_fifo_errors".to_owned(), standard.rx_fifo_errors),
        ("rx_over_errors".to_owned(), standard.rx_over_errors),
    ];
    // rx_dropped also counts frames that got as far as XDP and then found no protocol that wants them, such as LLDP. Where the
    // driver has losses of its own in other counters, it says nothing (linux/if_link.h sends them to rx_missed_errors).
    if private.is_empty() {
        losses.push(("rx_dropped".to_owned(), standard.rx_dropped));
    }
    let dropped_by_xdp = |queue: &str| {
        let name = format!("{queue}_xdp_drops");
        private
            .iter()
            .find(|(counter, _)| *counter == name)
            .map_or(0, |(_, value)| *value)
    };
    for (name, value) in private.iter().filter(|(name, _)| is_loss(name)) {
        // virtio_net counts what a program dropped among the drops of the queue as well; veth does not.
        let ours = if driver == "virtio_net" {
            name.strip_suffix("_drops").map_or(0, dropped_by_xdp)
        } else {
            0
        };
        losses.push((name.clone(), value.saturating_sub(ours)));
    }
    losses
}

/// Whether a driver's private counter of that name counts lost frames. XDP_DROP is what our own program answers, and frames
/// for other addresses (`steer_missed`) are not ours.
fn is_loss(name: &str) -> bool {
    const LOST: [&str; 6] = ["drop", "discard", "missed", "no_buf", "nobuf", "out_of_buf"];
    const NOT_LOST: [&str; 2] = ["xdp_drop", "steer_missed"];
    LOST.iter().any(|part| name.contains(part)) && !NOT_LOST.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(counters: &[(&str, u64)]) -> Vec<(String, u64)> {
        counters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    }

    fn private_losses(driver: &str, counters: &[(&str, u64)]) -> Vec<(String, u64)> {
        let without = losses(driver, &Stats64::default(), named(&[("none", 0)]));
        losses(driver, &Stats64::default(), named(counters)).split_off(without.len())
    }

    #[test]
    fn what_a_program_drops_on_purpose_is_no_loss() {
        let veth = [
            ("rx_queue_0_xdp_packets", 9),
            ("rx_queue_0_drops", 1),
            ("rx_queue_0_xdp_drops", 8),
            ("peer_ifindex", 3),
        ];
        assert_eq!(
            private_losses("veth", &veth),
            named(&[("rx_queue_0_drops", 1)])
        );
        let virtio = [
            ("rx_queue_0_packets", 9),
            ("rx_queue_0_drops", 9),
            ("rx_queue_0_xdp_drops", 8),
        ];
        assert_eq!(
            private_losses("virtio_net", &virtio),
            named(&[("rx_queue_0_drops", 1)])
        );
        let mlx5 = [
            ("rx_xdp_drop", 7),
            ("rx0_xdp_drop", 7),
            ("rx_out_of_buffer", 1),
            ("rx_discards_phy", 2),
            ("rx_steer_missed_packets", 5),
        ];
        assert_eq!(
            private_losses("mlx5_core", &mlx5),
            named(&[("rx_out_of_buffer", 1), ("rx_discards_phy", 2)])
        );
        let ixgbe = [
            ("rx_no_buffer_count", 1),
            ("rx_missed_errors", 2),
            ("fdir_miss", 3),
        ];
        assert_eq!(
            private_losses("ixgbe", &ixgbe),
            named(&[("rx_no_buffer_count", 1), ("rx_missed_errors", 2)])
        );
    }

    #[test]
    fn rx_dropped_counts_only_where_the_driver_tells_nothing_more() {
        let mut standard = Stats64::default();
        standard.rx_dropped = 5;
        assert!(losses("", &standard, Vec::new()).contains(&("rx_dropped".to_owned(), 5)));
        assert!(
            losses("veth", &standard, named(&[("rx_queue_0_drops", 0)]))
                .iter()
                .all(|(_, value)| *value == 0)
        );
    }

    #[test]
    fn rises_list_every_counter_and_survive_a_reset() {
        let rises = drop_rises(
            "tx port",
            &named(&[("a", 3), ("b", 9)]),
            &named(&[("a", 5), ("b", 2), ("c", 0)]),
        );
        let rises: Vec<_> = rises
            .iter()
            .map(|rise| (rise.place.as_str(), rise.counter.as_str(), rise.rise))
            .collect();
        assert_eq!(
            rises,
            [
                ("tx port", "a", 2),
                ("tx port", "b", 2),
                ("tx port", "c", 0)
            ]
        );
    }

    #[test]
    fn softnet_drops_are_summed_over_cpus() {
        let text = "00000010 00000002 00000000\n00000020 0000000a 00000000\n";
        assert_eq!(parse_softnet(text), Some(12));
        assert_eq!(parse_softnet("no numbers"), None);
    }
}
