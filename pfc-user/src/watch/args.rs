//! Arguments of `validator watch`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::LineRate;
use validator_core::quantity::{Span, rate, time};

use crate::config::arguments::{DscpMap, dscp_map};
use crate::output::Format;

/// Arguments of `validator watch`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct WatchArgs {
    /// Interfaces whose incoming frames are counted.
    #[arg(value_name = "IFACE", required_unless_present = "loss")]
    pub interfaces: Vec<String>,
    /// Judge what is lost between two ports: sent by interface TX, received by interface RX. Takes
    /// --duration, or until Ctrl-C.
    #[arg(long, value_name = "TX:RX", value_parser = pair)]
    pub loss: Option<Pair>,
    /// Longest time that a frame is on its way from TX to RX; bounds what was in flight when the
    /// window began.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10ms")]
    pub max_latency: Span,
    /// End after that time; without it, by Ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Span>,
    /// Time from one line, or redrawing, to the next.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1s")]
    pub interval: Span,
    /// Say on standard error what each program sees of frames, at most 100 lines a second for each
    /// CPU. Not at high rates: it slows the programs down.
    #[arg(long)]
    pub trace: bool,
    /// Which field tells the priority of a frame.
    #[arg(long, value_enum, default_value_t)]
    pub trust: TrustArg,
    /// Priority by DSCP, as the switches of this network have it: sonic, dscp-mod-8,
    /// dscp-high-bits, or 64 priorities separated by commas. Without it sonic, and the output says
    /// so. By PCP: --trust pcp.
    #[arg(long, value_name = "MAP", value_parser = dscp_map)]
    dscp_map: Option<DscpMap>,
    /// Speed of the ports, which turns quanta into time. Without it, what the driver reports (veth
    /// and tap: always 10G).
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub line_rate: Option<LineRate>,
    /// Where frames are counted. auto: XDP in the driver, else generic XDP; where another XDP
    /// program is, tcx ingress.
    #[arg(long, value_enum, default_value_t)]
    pub attach: AttachArg,
    /// Write JSON, one object a line: the same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Output format; json: one object a line.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Serve /metrics to Prometheus. A bare port is one of the loopback address. Goes on without
    /// any interface that is left, until one of those names is there again.
    #[arg(long, value_name = "ADDR", value_parser = listener)]
    pub prometheus: Option<SocketAddr>,
    /// Write PAUSE and PFC frames to this file, as pcapng.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
}

impl WatchArgs {
    /// The map from DSCPs to priorities, and whether it was named.
    pub fn dscp_map(&self) -> (DscpMap, bool) {
        match &self.dscp_map {
            Some(map) => (map.clone(), true),
            None => (DscpMap::sonic(), false),
        }
    }

    /// True if the output is JSON.
    pub fn is_json(&self) -> bool {
        self.json || self.format == Format::Json
    }
}

const EXIT_CODES: &str = "\
Exit codes:
    0  counted to the end; with --loss: no loss
    1  --loss: frames were lost
    2  usage error, or nothing could be attached
    3  --loss: inconclusive, or balanced: as many frames came as were sent, and duplicates may \
       make up for lost ones; or every interface was removed, or one of the pair before its \
       window opened
  130  interrupted; what was measured is reported";

/// Two ports that frames pass between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Interface that sends.
    pub tx: String,
    /// Interface that receives.
    pub rx: String,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tx, self.rx)
    }
}

/// Field that tells the priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TrustArg {
    /// The DSCP.
    #[default]
    Dscp,
    /// The PCP of the outermost VLAN tag.
    Pcp,
}

impl From<TrustArg> for Trust {
    fn from(argument: TrustArg) -> Self {
        match argument {
            TrustArg::Dscp => Self::Dscp,
            TrustArg::Pcp => Self::Pcp,
        }
    }
}

/// Place where frames are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AttachArg {
    /// The first that works.
    #[default]
    Auto,
    /// XDP in the driver.
    Driver,
    /// Generic XDP.
    Skb,
    /// tcx ingress: touches neither rings nor offloads.
    Tc,
}

fn pair(text: &str) -> Result<Pair, String> {
    match text.split_once(':') {
        Some((tx, rx)) if !tx.is_empty() && !rx.is_empty() && tx != rx && !rx.contains(':') => {
            Ok(Pair {
                tx: tx.to_owned(),
                rx: rx.to_owned(),
            })
        }
        _ => Err(
            "expected two different interfaces, the sending one first, such as eth0:eth1"
                .to_owned(),
        ),
    }
}

fn listener(text: &str) -> Result<SocketAddr, String> {
    let port = text
        .parse()
        .map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    port.or_else(|_| text.parse()).map_err(|_| {
        "expected a port, or an address and a port, such as 9477 or 192.0.2.1:9477".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_port_is_one_of_the_loopback_address() {
        assert_eq!(listener("9477").unwrap().to_string(), "127.0.0.1:9477");
        assert_eq!(listener("[::1]:1").unwrap().to_string(), "[::1]:1");
        assert_eq!(listener("0.0.0.0:80").unwrap().to_string(), "0.0.0.0:80");
        for wrong in ["", "localhost:1", "70000", ":9477", "192.0.2.1"] {
            assert!(
                listener(wrong).unwrap_err().contains("such as 9477"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_pair_is_of_two_ports() {
        assert_eq!(
            pair("a:b"),
            Ok(Pair {
                tx: "a".into(),
                rx: "b".into()
            })
        );
        for wrong in ["a", "a:", ":b", "a:a", "a:b:c", ""] {
            assert!(pair(wrong).is_err(), "{wrong}");
        }
    }
}
