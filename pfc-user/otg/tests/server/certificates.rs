//! Certificates of clients and of the server, over both transports.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, crypto};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::{Code, Request};
use validator_otg::{Access, Certificates, Options, Server, Tls};

use crate::client::{exchange, send};
use crate::rpc::Client;
use crate::served::Served;

const NAME: &str = "tester.example";

/// An authority that signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
struct Signed {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn sign(&self) -> Signed {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([NAME.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Signed { certificate, key }
    }

    fn pem(&self) -> Vec<u8> {
        self.0.pem().into()
    }

    /// A client that takes servers of this authority, and shows its own certificate if it has one.
    fn client(&self, own: Option<&Signed>, protocol: &str) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let chain: Vec<CertificateDer<'static>> = vec![own.certificate.der().clone()];
                let key = PrivatePkcs8KeyDer::from(own.key.serialize_der());
                builder.with_client_auth_cert(chain, key.into()).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.into()];
        TlsConnector::from(Arc::new(config))
    }
}

impl Signed {
    fn pem(&self) -> [Vec<u8>; 2] {
        [
            self.certificate.pem().into(),
            self.key.serialize_pem().into(),
        ]
    }
}

async fn connect(client: TlsConnector, server: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(NAME).unwrap();
    client
        .connect(name, TcpStream::connect(server).await?)
        .await
}

/// A server that asks clients for certificates of that authority.
async fn served(clients: &Authority) -> Served {
    let certificates = Certificates {
        own: Some(clients.sign().pem()),
        clients: Some(clients.pem()),
    };
    Served::with(Access::open(), &certificates).await
}

#[tokio::test]
async fn a_client_with_a_certificate_of_the_authority_is_served_over_both_transports() {
    let authority = Authority::new();
    let served = served(&authority).await;
    let own = authority.sign();
    let stream = connect(authority.client(Some(&own), "http/1.1"), served.http).await;
    // On loopback, but a certificate has proven the name.
    let host = ["Host: tester.example"];
    let reply = exchange(stream.unwrap(), "GET /config", &host, b"").await;
    assert_eq!((reply.status, &reply.body[..]), (200, &b"{}"[..]));
    let stream = connect(authority.client(Some(&own), "h2"), served.grpc).await;
    let mut client = Client::over(stream.unwrap()).await;
    let version = client.unary("GetVersion", Request::new(Bytes::new()));
    assert!(!version.await.unwrap().is_empty());
    served.stop().await;
}

#[tokio::test]
async fn without_a_certificate_of_the_authority_nothing_is_served() {
    let authority = Authority::new();
    let served = served(&authority).await;
    let foreign = Authority::new().sign();
    for own in [None, Some(&foreign)] {
        for (protocol, server) in [("http/1.1", served.http), ("h2", served.grpc)] {
            // In TLS 1.3 a client learns with the first octets that it was turned away.
            let turned_away = async {
                let mut stream = connect(authority.client(own, protocol), server).await?;
                stream.read_to_end(&mut Vec::new()).await
            };
            let error = turned_away.await.expect_err("no answer");
            assert!(error.to_string().contains("alert"), "{protocol}: {error}");
        }
    }
    let plain = send(served.http, "GET /counters", "").await;
    assert_eq!(plain.status, 401);
    assert!(
        plain.errors()[0].contains("client certificate"),
        "{plain:?}"
    );
    let mut client = Client::connect(served.grpc).await;
    let plain = client.unary("GetVersion", Request::new(Bytes::new())).await;
    let status = plain.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    assert!(
        status.message().contains("client certificate"),
        "{status:?}"
    );
    served.stop().await;
}

#[tokio::test]
async fn the_servers_own_certificate_proves_it_and_the_one_made_at_start_does_not() {
    let authority = Authority::new();
    let own = Certificates {
        own: Some(authority.sign().pem()),
        clients: None,
    };
    for (certificates, proves) in [(own, true), (Certificates::default(), false)] {
        let served = Served::with(Access::open(), &certificates).await;
        for (protocol, server) in [("http/1.1", served.http), ("h2", served.grpc)] {
            let connected = connect(authority.client(None, protocol), server).await;
            assert_eq!(connected.is_ok(), proves, "{protocol}: {connected:?}");
        }
        // Plain connections are taken beside it.
        assert_eq!(send(served.http, "GET /config", "").await.status, 200);
        served.stop().await;
    }
}

#[tokio::test]
async fn an_address_for_others_needs_an_authority_of_clients_or_a_token() {
    let authority = Authority::new();
    let asks = Certificates {
        clients: Some(authority.pem()),
        own: None,
    };
    for (certificates, listens) in [(asks, true), (Certificates::default(), false)] {
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        let server = Server::bind(Options {
            grpc: any,
            http: any,
            access: Access::open(),
            tls: Tls::new(&certificates).unwrap(),
            lease: Duration::from_secs(600),
            warn: |text| println!("{text}"),
        });
        assert_eq!(server.await.is_ok(), listens);
    }
}

#[test]
fn files_without_what_is_expected_are_refused_in_words() {
    let authority = Authority::new();
    let [chain, key] = authority.sign().pem();
    let [_, other_key] = authority.sign().pem();
    let own = |chain: &[u8], key: &[u8]| Certificates {
        own: Some([chain.to_vec(), key.to_vec()]),
        clients: None,
    };
    let clients = |text: &[u8]| Certificates {
        own: None,
        clients: Some(text.to_vec()),
    };
    for (certificates, part) in [
        (own(b"", &key), "a certificate in PEM is expected"),
        (own(&chain, b"nothing"), "a private key in PEM is expected"),
        (own(&chain, &other_key), "the server's certificate: "),
        (clients(&key), "a certificate in PEM is expected"),
    ] {
        let Err(error) = Tls::new(&certificates) else {
            panic!("{part}: it was taken");
        };
        assert!(error.contains(part), "{error}");
    }
}
