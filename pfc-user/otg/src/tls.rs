//! TLS: the certificate that the server shows, and the authorities of those that clients show.
//!
//! snappi and otgen ask for `https://` by default and verify nothing. For them there is a
//! certificate made at start, which proves no identity.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, crypto};
use tokio_rustls::TlsAcceptor;

/// Certificates, as the text of PEM files.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    /// The server's own with those between it and its authority, and its key. Without it, one is
    /// made.
    pub own: Option<[Vec<u8>; 2]>,
    /// Authorities one of which has to have signed a client's certificate. Without them, clients
    /// need none.
    pub clients: Option<Vec<u8>>,
}

/// TLS of the server's connections.
#[derive(Clone)]
pub struct Tls {
    config: ServerConfig,
    /// True if every client that connects by TLS has shown a certificate.
    pub(crate) proves_clients: bool,
}

impl Tls {
    /// Makes it with these certificates.
    ///
    /// # Errors
    ///
    /// Files that have no certificate or no key, and a key that is another certificate's.
    pub fn new(certificates: &Certificates) -> Result<Self, String> {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match &certificates.clients {
            None => builder.with_no_client_auth(),
            Some(text) => {
                let authorities = Arc::new(authorities(text)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(authorities, provider);
                let verifier = verifier.build().map_err(|error| error.to_string())?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let (chain, key) = match &certificates.own {
            None => made()?,
            Some([chain, key]) => (self::chain(chain)?, self::key(key)?),
        };
        let config = builder.with_single_cert(chain, key);
        Ok(Self {
            config: config.map_err(|error| format!("the server's certificate: {error}"))?,
            proves_clients: certificates.clients.is_some(),
        })
    }

    /// Accepts connections for that protocol, by its name in ALPN.
    pub(crate) fn acceptor(&self, protocol: &str) -> TlsAcceptor {
        let mut config = self.config.clone();
        config.alpn_protocols = vec![protocol.into()];
        TlsAcceptor::from(Arc::new(config))
    }
}

type Own = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A new certificate, signed by itself.
fn made() -> Result<Own, String> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| error.to_string())?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.der().clone()], key.into()))
}

fn chain(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let read = read.map_err(|error| format!("a certificate in PEM is expected: {error}"))?;
    if read.is_empty() {
        return Err("a certificate in PEM is expected, and there is none".into());
    }
    Ok(read)
}

fn key(text: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(text)
        .map_err(|error| format!("a private key in PEM is expected: {error}"))
}

fn authorities(text: &[u8]) -> Result<RootCertStore, String> {
    let mut authorities = RootCertStore::empty();
    for certificate in chain(text)? {
        let added = authorities.add(certificate);
        added.map_err(|error| format!("the clients' authority: {error}"))?;
    }
    Ok(authorities)
}
