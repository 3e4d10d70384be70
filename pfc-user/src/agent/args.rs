//! Arguments of `validator agent`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use super::backend::Selection;

/// Environment variable with the token. An argument would be seen by all users of the host.
pub const TOKEN_VARIABLE: &str = "VALIDATOR_TOKEN";

const TOKEN: &str = "\
Whoever reaches the address can use the adapter, and beyond loopback a token is required: a secret of your choice, in a file or in
the environment variable VALIDATOR_TOKEN; the file wins. It is sent in clear: keep the address in a network that you trust.";

/// The verbs agent, to run on the DUT host of the RC cases: it opens, uses and closes queue pairs as the tester asks.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = TOKEN)]
pub struct AgentArgs {
    /// Where the tester connects to; port 0 is any that is free.
    #[arg(long, value_name = "IP:PORT")]
    pub listen: SocketAddr,
    /// RDMA device; else the first with a port that is up.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Port of the device; else the first that is up.
    #[arg(long, value_name = "NUMBER", value_parser = RangedU64ValueParser::<u8>::new().range(1..=254))]
    port: Option<u8>,
    /// Index of the source GID; else the first of RoCEv2 that fits the tester's address.
    #[arg(long, value_name = "INDEX")]
    gid_index: Option<u8>,
    /// File with the token that the tester must know; white space around it is not part of it.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

impl AgentArgs {
    /// Which adapter to use.
    pub fn selection(&self) -> Selection {
        Selection {
            device: self.device.clone(),
            port: self.port,
            gid_index: self.gid_index,
        }
    }
}
