//! Who may use the server.

use std::net::SocketAddr;

use subtle::ConstantTimeEq as _;

/// Fewest letters of a token.
const SHORTEST: usize = 16;

/// The token that requests have to bring, if any.
#[derive(Clone, Default)]
pub struct Access(Option<String>);

impl Access {
    /// Anyone who reaches the server; for addresses of the machine itself alone.
    pub fn open() -> Self {
        Self(None)
    }

    /// Those who bring the token.
    ///
    /// # Errors
    ///
    /// One that is short enough to be guessed, or cannot be in a header.
    pub fn token(text: &str) -> Result<Self, String> {
        let token = text.trim();
        if token.len() < SHORTEST || !token.chars().all(|letter| letter.is_ascii_graphic()) {
            return Err(format!(
                "a token is at least {SHORTEST} letters, digits and signs without spaces; make \
                 one by: openssl rand -hex 32"
            ));
        }
        Ok(Self(Some(token.to_owned())))
    }

    /// Refuses to listen where others reach the server without a token.
    ///
    /// # Errors
    ///
    /// An address that is not of the machine itself, without a token.
    pub fn listens(&self, address: SocketAddr) -> Result<(), String> {
        if self.0.is_some() || address.ip().is_loopback() {
            return Ok(());
        }
        Err(format!(
            "{address} can be reached from other machines, and whoever reaches it sends frames as \
             root: give a token file, or listen on 127.0.0.1 and come through ssh -L"
        ))
    }

    /// True if the value of `authorization` has the token. The time that it takes does not depend
    /// on the letters.
    pub fn allows(&self, authorization: Option<&[u8]>) -> bool {
        let Some(token) = &self.0 else { return true };
        let Some(value) = authorization else {
            return false;
        };
        let brought = value.strip_prefix(b"Bearer ").unwrap_or(value);
        brought.ct_eq(token.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    #[test]
    fn another_address_than_the_machines_own_needs_a_token() {
        let open = Access::open();
        assert!(open.listens("127.0.0.1:1".parse().unwrap()).is_ok());
        assert!(open.listens("[::1]:1".parse().unwrap()).is_ok());
        let refused = open.listens("0.0.0.0:1".parse().unwrap()).unwrap_err();
        assert!(refused.contains("token"), "{refused}");
        let token = Access::token(TOKEN).unwrap();
        assert!(token.listens("0.0.0.0:1".parse().unwrap()).is_ok());
    }

    #[test]
    fn only_the_token_is_let_in() {
        let access = Access::token(&format!("{TOKEN}\n")).unwrap();
        assert!(access.allows(Some(format!("Bearer {TOKEN}").as_bytes())));
        assert!(access.allows(Some(TOKEN.as_bytes())));
        for wrong in [
            "",
            "Bearer ",
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcde",
        ] {
            assert!(!access.allows(Some(wrong.as_bytes())), "{wrong}");
        }
        assert!(!access.allows(None));
        assert!(Access::open().allows(None));
    }

    #[test]
    fn a_short_token_is_refused() {
        assert!(Access::token("secret").is_err());
        assert!(Access::token("two words of some length").is_err());
    }
}
