//! Arguments of `validator otg`.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::plan::Nanos;
use crate::quantity::{Span, value};

const ACCESS: &str = "\
Who reaches the addresses sends frames as root. Beyond loopback a token is therefore required, which
clients send as `Authorization: Bearer TOKEN` (gRPC: metadata `authorization`). snappi cannot send
one: let it come through `ssh -L 8443:localhost:8443 -L 40051:localhost:40051`.";

/// Serve the Open Traffic Generator API (snappi, otgen) on ports of this machine, as root: gRPC, and
/// HTTP with and without TLS on one port.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = ACCESS)]
pub struct OtgArgs {
    /// Testbed file: the ports and their locations; configs/otg has an example. Without it,
    /// locations are names of interfaces.
    #[arg(long, value_name = "FILE")]
    pub testbed: Option<PathBuf>,
    /// Address for gRPC; port 0 takes any free port.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:40051")]
    pub grpc: SocketAddr,
    /// Address for HTTP, plain and by TLS; /metrics and /counters have the engine's own counts.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8443")]
    pub http: SocketAddr,
    /// Stop flows without an end when no request came for so long.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = time)]
    pub lease: Nanos,
    /// File with the token that clients have to present; surrounding white space is ignored.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

fn time(text: &str) -> Result<Nanos, String> {
    match value::<Span>(text)?.0 {
        0 => Err("expected a time above 0".to_owned()),
        time => Ok(time),
    }
}
