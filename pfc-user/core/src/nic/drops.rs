//! Private counters of a driver that count frames lost on the port.
//!
//! A name mostly shows by itself what it counts, also with an unknown driver: the worst that a word
//! too many does is to leave a verdict open. What a program drops on purpose (XDP_DROP) is no loss,
//! and a driver that has no counter for it but takes it for one would leave every verdict open.

/// Private counters of a driver whose meaning differs from their names. Names are compared in lower
/// case, with one `_` for any separator of words; `{}` is the number of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Drops {
    /// Counters of losses whose names do not show it.
    pub lost: &'static [&'static str],
    /// Names with a word for a loss that count no loss, or the sum of other counters.
    pub not_lost: &'static [&'static str],
    /// Losses that include the drops of a program, each with the counter of those drops alone.
    pub with_own: &'static [(&'static str, &'static str)],
}

impl Drops {
    /// The names show what the counters count.
    pub const BY_NAME: Self = Self {
        lost: &[],
        not_lost: &[],
        with_own: &[],
    };

    fn is_loss(&self, name: &str) -> bool {
        const LOST: [&str; 6] = ["drop", "discard", "missed", "no_buf", "nobuf", "out_of_buf"];
        let is = |patterns: &[&str]| {
            patterns
                .iter()
                .any(|pattern| number(&plain(pattern), name).is_some())
        };
        // Drops by our own program, with any other words in the name. On the way out the counter
        // has redirected frames that did not leave.
        let own = name.contains("xdp_drop") && !name.starts_with("tx");
        if own || is(self.not_lost) {
            return false;
        }
        is(self.lost) || LOST.iter().any(|word| name.contains(word))
    }

    /// Frames in the counter `name` that a program dropped on purpose, by another of the counters
    /// `all`.
    fn own(&self, name: &str, all: &[(String, u64)]) -> u64 {
        let other = self.with_own.iter().find_map(|(with, alone)| {
            let queue = number(with, name)?;
            Some(alone.replacen("{}", queue, 1))
        });
        let value = |other: &String| all.iter().find(|(name, _)| plain(name) == *other);
        other
            .as_ref()
            .and_then(value)
            .map_or(0, |(_, value)| *value)
    }
}

/// The counters of lost frames among the private ones of `driver`, in their order: names, of which
/// several queues may have the same, and values without the drops that a program made on purpose.
pub fn losses(driver: &str, private: &[(String, u64)]) -> Vec<(String, u64)> {
    let drops = super::of(driver).drops;
    let loss = |(name, value): &(String, u64)| {
        let known_as = plain(name);
        let own = || drops.own(&known_as, private);
        drops
            .is_loss(&known_as)
            .then(|| (name.trim().to_owned(), value.saturating_sub(own())))
    };
    private.iter().filter_map(loss).collect()
}

/// A name in lower case, with one `_` between words.
fn plain(name: &str) -> String {
    let words = name.split(|character: char| character.is_whitespace() || character == '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("_").to_lowercase()
}

/// The number at `{}` where `name` is of that pattern; empty where the pattern has none.
pub(super) fn number<'n>(pattern: &str, name: &'n str) -> Option<&'n str> {
    let Some((before, after)) = pattern.split_once("{}") else {
        return (pattern == name).then_some("");
    };
    let number = name.strip_prefix(before)?.strip_suffix(after)?;
    let digits = !number.is_empty() && number.bytes().all(|octet| octet.is_ascii_digit());
    digits.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(driver: &str, counters: &[(&str, u64)]) -> Vec<(String, u64)> {
        let counters: Vec<_> = counters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect();
        losses(driver, &counters)
    }

    fn names(driver: &str, counters: &[&str]) -> Vec<String> {
        let counters: Vec<_> = counters.iter().map(|name| (*name, 1)).collect();
        found(driver, &counters)
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn what_a_program_drops_on_purpose_is_no_loss_whatever_its_name() {
        for (driver, name) in [
            ("veth", "rx_queue_0_xdp_drops"),
            ("virtio_net", "rx_queue_3_xdp_drops"),
            ("virtio_net", "rx3_xdp_drops"),
            ("vmxnet3", "       xdp drops"),
            ("mlx5_core", "rx_xdp_drop"),
            ("mlx5_core", "rx17_xdp_drop"),
            ("ena", "queue_0_rx_xdp_drop"),
            ("fsl_enetc", "Rx ring  0 XDP drops"),
            ("fsl_dpaa2_eth", "[drv] xdp drop"),
            ("mvneta", "rx_xdp_drop"),
            ("unheard-of", "RX XDP Drops"),
        ] {
            assert_eq!(found(driver, &[(name, 9)]), [], "{driver}: {name}");
        }
    }

    #[test]
    fn losses_are_found_whatever_a_driver_calls_them() {
        for (driver, name) in [
            ("veth", "rx_queue_0_drops"),
            ("igb", "rx_queue_7_drops"),
            ("igb", "rx_missed_errors"),
            ("igc", "rx_no_buffer_count"),
            ("e1000", "rx_missed_errors"),
            ("e1000e", "rx_no_buffer_count"),
            ("ixgbe", "rx_no_dma_resources"),
            ("ixgbe", "rx_missed_errors"),
            ("i40e", "port.rx_dropped"),
            ("ice", "rx_dropped.nic"),
            ("mlx5_core", "rx_out_of_buffer"),
            ("mlx5_core", "rx_discards_phy"),
            ("mlx5_core", "rx_buff_alloc_err"),
            ("vmxnet3", "  pkts rx OOB"),
            ("vmxnet3", "  rx buf alloc fail"),
            ("vmxnet3", "drv dropped rx total"),
            ("ena", "rx_drops"),
            ("ena", "rx_overruns"),
            ("bnxt_en", "rx_total_discard_pkts"),
            ("fsl_enetc", "Rx ring 12 alloc errors"),
            ("fsl_enetc", "Tx ring  0 XDP drops"),
            ("virtio_net", "tx_queue_0_xdp_tx_drops"),
            ("bnxt_en", "[0]: rx_buf_errors"),
            ("fsl_dpaa2_eth", "[hw] rx nobuffer discards"),
            ("st_gmac", "mmc_rx_fifo_overflow"),
            ("mvneta", "rx_discard"),
            ("mvneta", "rx_overrun"),
            ("tsnep", "rx_dropped_frames"),
            ("tsnep", "rx_0_fifo_overflow_errors"),
            ("unheard-of", "rx_no_buffer"),
        ] {
            assert_eq!(names(driver, &[name]), [name.trim()], "{driver}: {name}");
        }
    }

    #[test]
    fn what_is_not_ours_or_no_frame_is_no_loss() {
        for (driver, name) in [
            ("mlx5_core", "rx_steer_missed_packets"),
            ("mlx5_core", "tx3_tls_drop_bypass_req"),
            ("ixgbe", "rx_dropped"),
            ("ixgbe", "fdir_miss"),
            ("e1000e", "dropped_smbus"),
            ("bnxt_en", "[3]: missed_irqs"),
        ] {
            assert_eq!(
                names(driver, &[name]),
                Vec::<String>::new(),
                "{driver}: {name}"
            );
        }
        // No counter of an unknown driver is excused.
        assert_eq!(names("unheard-of", &["dropped_smbus"]), ["dropped_smbus"]);
    }

    #[test]
    fn each_queue_of_virtio_net_is_told_without_what_its_program_dropped() {
        for [zero, zero_own, ten, ten_own] in [
            [
                "rx_queue_0_drops",
                "rx_queue_0_xdp_drops",
                "rx_queue_10_drops",
                "rx_queue_10_xdp_drops",
            ],
            ["rx0_drops", "rx0_xdp_drops", "rx10_drops", "rx10_xdp_drops"],
        ] {
            let counters = [(zero, 9), (zero_own, 8), (ten, 70), (ten_own, 65)];
            let losses = [(zero.to_owned(), 1), (ten.to_owned(), 5)];
            assert_eq!(found("virtio_net", &counters), losses);
        }
        // A sum over the queues, listed beside them: another version may have it alone.
        let sum = [("rx_drops", 79), ("rx_xdp_drops", 73)];
        assert_eq!(found("virtio_net", &sum), [("rx_drops".to_owned(), 6)]);
        // veth counts a program's drops apart.
        let veth = [("rx_queue_0_drops", 1), ("rx_queue_0_xdp_drops", 8)];
        assert_eq!(found("veth", &veth), [("rx_queue_0_drops".to_owned(), 1)]);
    }

    #[test]
    fn a_name_that_stands_once_for_each_queue_is_found_for_each() {
        let counters = [
            ("drv dropped rx total", 3),
            ("xdp drops", 100),
            ("drv dropped rx total", 4),
            ("xdp drops", 200),
        ];
        let name = "drv dropped rx total".to_owned();
        assert_eq!(found("vmxnet3", &counters), [(name.clone(), 3), (name, 4)]);
    }
}
