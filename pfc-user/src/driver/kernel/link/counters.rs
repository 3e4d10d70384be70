//! Counters that rise when a frame is lost on the tester's own side.

use std::{fs, io};

use rtnetlink::packet_route::link::Stats64;
use validator_core::evidence::pfc::DropCounter;
use validator_core::nic;

use super::{LinkError, Namespace, ethtool, find, standard_counters};

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
    let what = || format!("cannot read the driver's counters of {interface}");
    let counters = namespace.run(|| ethtool::counters(interface))?;
    counters.map_err(|error| LinkError::system(what(), error))
}

/// Frames that the kernel dropped between driver and protocols since boot, over all CPUs:
/// `netdev_max_backlog` was full.
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

/// Rise of each counter of `place`. Counters that did not rise are listed with 0, as proof that
/// they were read. Counters whose names differ in numbers alone belong to queues and are summed.
///
/// Each queue is compared with itself: in a sum, a queue that was reset would hide another's
/// losses.
pub fn drop_rises(
    place: &str,
    before: &[(String, u64)],
    after: &[(String, u64)],
) -> Vec<DropCounter> {
    let mut rises: Vec<(String, DropCounter)> = Vec::new();
    for (index, (name, value)) in after.iter().enumerate() {
        // Some drivers have one name for all queues: the n-th of the name is the n-th queue's.
        let nth = named(&after[..index], name).count();
        let old = named(before, name).nth(nth).unwrap_or(0);
        // A driver that was reset counts from 0 again.
        let rise = value.checked_sub(old).unwrap_or(*value);
        let family = without_numbers(name);
        match rises.iter_mut().find(|(known, _)| *known == family) {
            Some((_, counter)) => {
                if counter.counter != *name {
                    counter.counter.clone_from(&family);
                }
                counter.rise = counter.rise.saturating_add(rise);
            }
            None => rises.push((
                family,
                DropCounter {
                    place: place.to_owned(),
                    counter: name.clone(),
                    rise,
                },
            )),
        }
    }
    rises.into_iter().map(|(_, counter)| counter).collect()
}

fn named<'c>(counters: &'c [(String, u64)], name: &'c str) -> impl Iterator<Item = u64> + 'c {
    let of_name = counters.iter().filter(move |(counter, _)| counter == name);
    of_name.map(|(_, value)| *value)
}

/// The name with `*` for each number.
fn without_numbers(name: &str) -> String {
    let mut family = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '0'..='9' if family.ends_with('*') => {}
            '0'..='9' => family.push('*'),
            other => family.push(other),
        }
    }
    family
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
    // rx_dropped also counts frames that got as far as XDP and then found no protocol that wants
    // them, such as LLDP. Where the driver has losses of its own in other counters, it says
    // nothing (linux/if_link.h sends them to rx_missed_errors).
    if private.is_empty() {
        losses.push(("rx_dropped".to_owned(), standard.rx_dropped));
    }
    losses.extend(nic::losses(driver, &private));
    losses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(counters: &[(&str, u64)]) -> Vec<(String, u64)> {
        counters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    }

    #[test]
    fn private_counters_stand_behind_the_standard_ones() {
        let mlx5 = list(&[("rx_xdp_drop", 7), ("rx_out_of_buffer", 1)]);
        let found = losses("mlx5_core", &Stats64::default(), mlx5);
        assert_eq!(found.len(), 7, "{found:?}");
        assert_eq!(found[6], ("rx_out_of_buffer".to_owned(), 1));
    }

    #[test]
    fn rx_dropped_counts_only_where_the_driver_tells_nothing_more() {
        let mut standard = Stats64::default();
        standard.rx_dropped = 5;
        assert!(losses("", &standard, Vec::new()).contains(&("rx_dropped".to_owned(), 5)));
        assert!(
            losses("veth", &standard, list(&[("rx_queue_0_drops", 0)]))
                .iter()
                .all(|(_, value)| *value == 0)
        );
    }

    #[test]
    fn rises_list_every_counter_and_survive_a_reset() {
        let rises = drop_rises(
            "tx port",
            &list(&[("a", 3), ("b", 9)]),
            &list(&[("a", 5), ("b", 2), ("c", 0)]),
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

    fn rises(before: &[(&str, u64)], after: &[(&str, u64)]) -> Vec<(String, u64)> {
        drop_rises("port", &list(before), &list(after))
            .into_iter()
            .map(|rise| (rise.counter, rise.rise))
            .collect()
    }

    #[test]
    fn queues_are_told_as_one() {
        let before = [("rx_queue_0_drops", 5), ("rx_queue_10_drops", 7)];
        let after = [("rx_queue_0_drops", 6), ("rx_queue_10_drops", 9)];
        let sum = [("rx_queue_*_drops".to_owned(), 3)];
        assert_eq!(rises(&before, &after), sum);
        // Queue 0 was reset, and lost as many since as queue 10 had: a sum would show nothing.
        let after = [("rx_queue_0_drops", 0), ("rx_queue_10_drops", 12)];
        let sum = [("rx_queue_*_drops".to_owned(), 5)];
        assert_eq!(rises(&before, &after), sum);
        // A queue that was added meanwhile.
        let sum = [("rx_queue_*_drops".to_owned(), 12)];
        assert_eq!(rises(&before[..1], &after), sum);
    }

    #[test]
    fn queues_without_numbers_are_told_apart_by_their_order() {
        let name = "drv dropped rx total";
        let rises = rises(&[(name, 5), (name, 100)], &[(name, 5), (name, 101)]);
        assert_eq!(rises, [(name.to_owned(), 1)]);
    }

    #[test]
    fn softnet_drops_are_summed_over_cpus() {
        let text = "00000010 00000002 00000000\n00000020 0000000a 00000000\n";
        assert_eq!(parse_softnet(text), Some(12));
        assert_eq!(parse_softnet("no numbers"), None);
    }
}
