//! Arguments of `validator dut requester`.

use std::net::{IpAddr, SocketAddr};

use validator_core::fault::requester::Fault;
use validator_core::quantity;

/// Default environment variable of the token; `validator agent` reads the same one.
const TOKEN_VARIABLE: &str = "VALIDATOR_TOKEN";

type Mac = [u8; 6];

/// An RC requester, simulated on an interface of the current network namespace. It speaks the
/// protocol of `validator agent` and sends RDMA READ requests over RoCEv2 when a tester asks.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = Fault::help())]
pub struct RequesterArgs {
    /// Interface of the adapter's port.
    #[arg(long, value_name = "IFACE")]
    pub interface: String,
    /// Its IP address, IPv4 or IPv6.
    #[arg(long, value_name = "IP")]
    pub address: IpAddr,
    /// MAC address of the tester, or of the router to it.
    #[arg(long, value_name = "MAC", value_parser = mac)]
    pub peer_mac: Mac,
    /// Address for testers to connect to; port 0 takes any free port.
    #[arg(long, value_name = "IP:PORT")]
    pub listen: SocketAddr,
    /// Require the token in this environment variable (default VALIDATOR_TOKEN); necessary beyond
    /// loopback.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = TOKEN_VARIABLE)]
    pub token_env: Option<String>,
    /// Inject a fault; may be given several times.
    #[arg(long = "fault", value_name = "NAME[=VALUE]")]
    pub faults: Vec<Fault>,
}

fn mac(text: &str) -> Result<Mac, String> {
    let mac = quantity::mac(text, 2..=2).filter(|mac| mac[0] & 1 == 0);
    mac.ok_or_else(|| {
        format!(
            "expected the MAC address of one interface such as 02:00:00:00:00:01, found {text:?}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dut::parsed;

    const LEAST: &str =
        "--interface a --address 192.0.2.1 --peer-mac 02:00:00:00:0a:Fe --listen 127.0.0.1:0";

    fn options(flags: &str) -> Result<RequesterArgs, String> {
        parsed(&format!("requester {flags}"))
    }

    #[test]
    fn port_and_address_are_enough() {
        let expected = RequesterArgs {
            interface: "a".into(),
            address: [192, 0, 2, 1].into(),
            peer_mac: [2, 0, 0, 0, 10, 254],
            listen: ([127, 0, 0, 1], 0).into(),
            token_env: None,
            faults: Vec::new(),
        };
        assert_eq!(options(LEAST), Ok(expected));
    }

    #[test]
    fn faults_and_a_token_may_be_given() {
        let faults = [Fault::NoRetry, Fault::WrongStatus(9)];
        assert_eq!(
            options(&format!("{LEAST} --fault no-retry --fault wrong-status=9"))
                .unwrap()
                .faults,
            faults
        );
        for (flags, name) in [
            ("--token-env", "VALIDATOR_TOKEN"),
            ("--token-env SECRET", "SECRET"),
        ] {
            assert_eq!(
                options(&format!("{LEAST} {flags}"))
                    .unwrap()
                    .token_env
                    .as_deref(),
                Some(name)
            );
        }
    }

    #[test]
    fn wrong_values_say_what_was_expected() {
        let mac = |found: &str| {
            format!(
                "expected the MAC address of one interface such as 02:00:00:00:00:01, found \
                 {found:?}"
            )
        };
        for (flags, message) in [
            (
                LEAST.replace("02:00:00:00:0a:Fe", "02:00:00:00:0a"),
                mac("02:00:00:00:0a"),
            ),
            (LEAST.replace("02:", "+2:"), mac("+2:00:00:00:0a:Fe")),
            (LEAST.replace("02:", "ff:"), mac("ff:00:00:00:0a:Fe")),
            (
                LEAST.replace("127.0.0.1:0", "127.0.0.1"),
                "invalid socket address syntax".into(),
            ),
            (
                LEAST.replace("192.0.2.1", "host"),
                "invalid IP address syntax".into(),
            ),
            (
                format!("{LEAST} --fault nothing"),
                "no fault is called \"nothing\"".into(),
            ),
            (String::new(), "--interface <IFACE>".into()),
        ] {
            let error = options(&flags).unwrap_err();
            assert!(error.contains(&message), "{flags}: {error}");
        }
    }
}
