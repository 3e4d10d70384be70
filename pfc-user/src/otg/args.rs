//! Arguments of `validator otg`.

use std::net::SocketAddr;
use std::path::PathBuf;

use validator_core::quantity::{Span, time};

const ACCESS: &str = "\
Who reaches the addresses sends frames as root. Beyond loopback, either a token is therefore
required, which clients send as `Authorization: Bearer TOKEN` (gRPC: metadata `authorization`), or a
certificate that an authority in the file of --client-ca has signed, which clients show by TLS; with
both options, both. snappi can do neither: let it come through
`ssh -L 8443:localhost:8443 -L 40051:localhost:40051`.";

/// Serve the Open Traffic Generator API (snappi, otgen) on ports of this machine, as root: gRPC and
/// HTTP, each plain and by TLS on one port.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = ACCESS)]
pub struct OtgArgs {
    /// Testbed file: the ports and their locations; configs/otg has an example. Without it,
    /// locations are names of interfaces.
    #[arg(long, value_name = "FILE")]
    pub testbed: Option<PathBuf>,
    /// Address for gRPC, plain and by TLS; port 0 takes any free port.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:40051")]
    pub grpc: SocketAddr,
    /// Address for HTTP, plain and by TLS; /metrics and /counters have the engine's own counts.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8443")]
    pub http: SocketAddr,
    /// Stop flows without an end when no request came for so long; those for /metrics do not count.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = time)]
    pub lease: Span,
    /// File with the token that clients have to present; surrounding white space is ignored.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Authorities (PEM), one of which has to have signed the certificate of each client; plain
    /// connections are then refused.
    #[arg(long, value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
    /// The server's certificate (PEM), with those between it and its authority; without it, one is
    /// made at start, which proves nothing.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The private key of --cert (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}
