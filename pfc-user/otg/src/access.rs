//! Clients that may use the server.

use std::net::SocketAddr;

use subtle::ConstantTimeEq as _;

use crate::connections::Peer;
use crate::error::{Refusal, Why};

/// Fewest letters of a token.
const SHORTEST: usize = 16;

/// Credentials that requests have to bring: a token, a certificate, both, or none.
#[derive(Clone, Default)]
pub struct Access {
    token: Option<String>,
    certificates: bool,
}

impl Access {
    /// Admits anyone who reaches the server; for addresses of the machine itself alone.
    pub fn open() -> Self {
        Self::default()
    }

    /// Admits clients that bring the token.
    ///
    /// # Errors
    ///
    /// A token that is short enough to be guessed, or cannot be in a header.
    pub fn token(text: &str) -> Result<Self, String> {
        let token = text.trim();
        if token.len() < SHORTEST || !token.chars().all(|letter| letter.is_ascii_graphic()) {
            return Err(format!(
                "a token is at least {SHORTEST} letters, digits and signs without spaces; make \
                 one by: openssl rand -hex 32"
            ));
        }
        Ok(Self {
            token: Some(token.to_owned()),
            certificates: false,
        })
    }

    /// Requires, in addition, that clients have shown a certificate.
    #[must_use]
    pub fn with_certificates(self) -> Self {
        Self {
            certificates: true,
            ..self
        }
    }

    /// Refuses to listen where others reach the server without a token or a certificate.
    ///
    /// # Errors
    ///
    /// An address that is not of the machine itself, without either.
    pub fn listens(&self, address: SocketAddr) -> Result<(), String> {
        if self.token.is_some() || self.certificates || address.ip().is_loopback() {
            return Ok(());
        }
        Err(format!(
            "{address} can be reached from other machines, and whoever reaches it sends frames as \
             root: give a token file or the authority of clients' certificates, or listen on \
             127.0.0.1 and come through ssh -L"
        ))
    }

    /// Returns a warning where clients may send the token in clear text beyond this machine. Where
    /// certificates are asked for, they cannot: plain connections are refused.
    pub fn exposes(&self, address: SocketAddr) -> Option<String> {
        let plain = self.token.is_some() && !self.certificates;
        (plain && !address.ip().is_loopback()).then(|| {
            format!(
                "whoever comes to {address} without TLS sends the token in clear text: come by \
                 https://, over gRPC by TLS, or ask for client certificates, too"
            )
        })
    }

    /// Refuses a request from `peer` that lacks a credential, with this value of `authorization`.
    /// The words are those of its transport: the place of the token, and the way by which
    /// certificates come.
    ///
    /// # Errors
    ///
    /// A request without the token, or over a connection that has not shown a certificate.
    pub fn admits(
        &self,
        peer: Peer,
        authorization: Option<&[u8]>,
        (place, way): (&str, &str),
    ) -> Result<(), Refusal> {
        let text = if self.certificates && !peer.proven {
            format!(
                "a client certificate is needed: come by {way} with one that the server's \
                 authority has signed"
            )
        } else if !self.is_token(authorization) {
            format!("a token is needed: send it as {place}: Bearer TOKEN")
        } else {
            return Ok(());
        };
        Err(Refusal::new(Why::Unproven, text))
    }

    /// Returns true if the value of `authorization` has the token. The time that this takes does
    /// not depend on the letters.
    fn is_token(&self, authorization: Option<&[u8]>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let Some(value) = authorization else {
            return false;
        };
        // The scheme is written in any case (RFC 9110, 11.1).
        const SCHEME: &[u8] = b"Bearer ";
        let brought = match value.split_at_checked(SCHEME.len()) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case(SCHEME) => token,
            _ => value,
        };
        brought.ct_eq(token.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";
    const UNKNOWN: Peer = Peer {
        proven: false,
        tls: false,
    };
    const PROVEN: Peer = Peer {
        proven: true,
        tls: true,
    };

    /// Credential that a request lacks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Lacking {
        Token,
        Certificate,
    }

    fn lacking(access: &Access, peer: Peer, value: Option<&[u8]>) -> Option<Lacking> {
        let refusal = access.admits(peer, value, ("PLACE", "WAY")).err()?;
        assert_eq!(refusal.why, Why::Unproven);
        Some(match &refusal.errors[..] {
            [error] if error.contains("PLACE: Bearer") => Lacking::Token,
            [error] if error.contains("come by WAY") => Lacking::Certificate,
            errors => panic!("{errors:?}"),
        })
    }

    #[test]
    fn another_address_than_the_machines_own_needs_a_token_or_certificates() {
        let open = Access::open();
        assert!(open.listens("127.0.0.1:1".parse().unwrap()).is_ok());
        assert!(open.listens("[::1]:1".parse().unwrap()).is_ok());
        let refused = open.listens("0.0.0.0:1".parse().unwrap()).unwrap_err();
        assert!(refused.contains("token"), "{refused}");
        for access in [
            Access::token(TOKEN).unwrap(),
            Access::open().with_certificates(),
        ] {
            assert!(access.listens("0.0.0.0:1".parse().unwrap()).is_ok());
        }
    }

    #[test]
    fn a_token_is_exposed_beyond_loopback_unless_plain_connections_are_refused() {
        let token = Access::token(TOKEN).unwrap();
        let any = "192.0.2.1:8443".parse().unwrap();
        let warning = token.exposes(any).unwrap();
        assert!(warning.contains("192.0.2.1:8443"), "{warning}");
        assert!(warning.contains("clear text"), "{warning}");
        assert_eq!(token.exposes("127.0.0.1:8443".parse().unwrap()), None);
        assert_eq!(token.with_certificates().exposes(any), None);
        assert_eq!(Access::open().with_certificates().exposes(any), None);
    }

    #[test]
    fn only_the_token_is_let_in() {
        let access = Access::token(&format!("{TOKEN}\n")).unwrap();
        let brought = |value: &str| lacking(&access, UNKNOWN, Some(value.as_bytes()));
        for scheme in ["Bearer", "bearer", "BEARER"] {
            assert_eq!(brought(&format!("{scheme} {TOKEN}")), None);
        }
        assert_eq!(brought(TOKEN), None);
        for wrong in [
            "",
            "Bearer ",
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcde",
        ] {
            assert_eq!(brought(wrong), Some(Lacking::Token), "{wrong}");
        }
        // A certificate is no token, where none is asked for.
        assert_eq!(lacking(&access, PROVEN, None), Some(Lacking::Token));
        assert_eq!(lacking(&Access::open(), UNKNOWN, None), None);
    }

    #[test]
    fn where_certificates_are_asked_for_each_connection_has_to_show_one() {
        let access = Access::open().with_certificates();
        assert_eq!(lacking(&access, PROVEN, None), None);
        assert_eq!(lacking(&access, UNKNOWN, None), Some(Lacking::Certificate));
        let both = Access::token(TOKEN).unwrap().with_certificates();
        let token = Some(TOKEN.as_bytes());
        assert_eq!(lacking(&both, PROVEN, token), None);
        assert_eq!(lacking(&both, PROVEN, None), Some(Lacking::Token));
        assert_eq!(lacking(&both, UNKNOWN, token), Some(Lacking::Certificate));
    }

    #[test]
    fn a_short_token_is_refused() {
        assert!(Access::token("secret").is_err());
        assert!(Access::token("two words of some length").is_err());
    }
}
