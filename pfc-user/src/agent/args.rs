//! Arguments of `validator agent`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use super::backend::Selection;

/// Environment variable with the token. An argument would be visible to all users of the host.
pub const TOKEN_VARIABLE: &str = "VALIDATOR_TOKEN";

const TOKEN: &str = "\
Anyone who reaches the address can use the adapter. Beyond loopback a token is therefore required:
a secret of your choice, in a file or in the environment variable VALIDATOR_TOKEN; the file wins.
The token is sent in clear: keep the address in a network that you trust.";

/// The verbs agent, to run on the DUT host of the RC cases: it opens, uses and closes queue pairs
/// for the tester.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = TOKEN)]
pub struct AgentArgs {
    /// Address for testers to connect to; port 0 takes any free port.
    #[arg(long, value_name = "IP:PORT")]
    pub listen: SocketAddr,
    /// RDMA device; by default the first with a port that is up.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Port of the device; by default the first that is up.
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = RangedU64ValueParser::<u8>::new().range(1..=254)
    )]
    port: Option<u8>,
    /// Index of the source GID; by default the first RoCEv2 GID that fits the tester's address.
    #[arg(long, value_name = "INDEX")]
    gid_index: Option<u8>,
    /// File with the token that testers must present; surrounding white space is ignored.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

impl AgentArgs {
    /// The adapter to use.
    pub fn selection(&self) -> Selection {
        Selection {
            device: self.device.clone(),
            port: self.port,
            gid_index: self.gid_index,
        }
    }
}
