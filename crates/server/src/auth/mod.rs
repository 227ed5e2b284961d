//! Who is calling, and what they may do.
//!
//! `keys.rs` knows API keys, `jwt.rs` users' tokens with the keys of `jwks.rs`, `policy.rs` the one table
//! of who may do what. This file joins the first two: from an `Authorization` header to a [`Principal`].

pub mod jwks;
pub mod jwt;
mod key_set;
pub mod keys;
pub mod policy;
mod token_cache;

use std::sync::Arc;

use serde_json::{Map, Value};
use tally::core::id::SubjectId;
use tally::core::rows::Role;

use crate::config::Settings;
use jwks::{Jwks, JwksError};
use jwt::{JwtError, JwtVerifier};
use keys::{AdminKey, KeyError, KeyRing};

/// The claims of a token, as they were signed.
pub type Claims = Map<String, Value>;

/// Longest credential that is looked at; a longer one is refused before any work.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// Who is calling.
#[derive(Debug, Clone, PartialEq)]
pub enum Principal {
    /// A server, with an API key.
    Key {
        /// The public part of the key; `admin` for the key of the environment.
        id: Arc<str>,
        /// What it may do.
        role: Role,
    },
    /// A user, with a token.
    User {
        /// Whom the token speaks for.
        subject: SubjectId,
        /// Everything else that it says, for conditions.
        claims: Arc<Claims>,
    },
    /// Anyone at all: the server runs with `--dev`.
    Dev,
}

impl Principal {
    /// The user's own id, which path segment `me` stands for.
    pub fn subject(&self) -> Option<&SubjectId> {
        match self {
            Principal::User { subject, .. } => Some(subject),
            Principal::Key { .. } | Principal::Dev => None,
        }
    }
}

/// Why a credential was not accepted. Never holds the credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The header is not `Bearer …`.
    #[error("the Authorization header should be `Bearer` and an API key or a token")]
    BadHeader,
    /// Neither a known API key nor, as users' tokens are off, anything else.
    #[error("the API key is unknown or was revoked")]
    UnknownKey,
    /// A token that was not accepted.
    #[error(transparent)]
    Token(#[from] JwtError),
}

impl AuthError {
    /// Whether the same credential may be right later: a 503 rather than a 401.
    pub fn is_transient(&self) -> bool {
        matches!(self, AuthError::Token(JwtError::KeysUnavailable))
    }
}

/// Why authentication cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The key of the environment is too weak.
    #[error("TALLY_ADMIN_KEY: {0}")]
    AdminKey(#[from] KeyError),
    /// The users' key set cannot be used.
    #[error("auth.jwt.jwks: {0}")]
    Jwks(#[from] JwksError),
}

/// Turns credentials into principals.
pub struct Authenticator {
    dev: bool,
    /// The API keys; kept up with the store by whoever owns it.
    pub keys: KeyRing,
    jwt: Option<JwtVerifier>,
}

impl Authenticator {
    /// Sets authentication up as configured. A JWKS URL that does not answer now is asked again later;
    /// a JWKS file must be right. Must be called inside the runtime, where the refreshing task will live.
    pub async fn new(settings: &Settings) -> Result<Self, SetupError> {
        let admin = settings.admin_key.as_ref().map(|key| AdminKey::new(key.expose())).transpose()?;
        let jwt = match &settings.jwt {
            Some(jwt) => Some(JwtVerifier::new(jwt, Jwks::open(&jwt.jwks).await?)),
            None => None,
        };
        Ok(Authenticator { dev: settings.dev, keys: KeyRing::new(admin), jwt })
    }

    /// Who sends this `Authorization` header; nobody without one. With `--dev` everyone is [`Principal::Dev`]
    /// unless they say who they are, so that both sides of a policy can be tried.
    pub async fn authenticate(&self, header: Option<&[u8]>) -> Result<Option<Principal>, AuthError> {
        match header {
            None => Ok(self.dev.then_some(Principal::Dev)),
            Some(header) => match self.identify(header).await {
                Err(AuthError::BadHeader | AuthError::UnknownKey) if self.dev => Ok(Some(Principal::Dev)),
                identified => identified.map(Some),
            },
        }
    }

    async fn identify(&self, header: &[u8]) -> Result<Principal, AuthError> {
        let token = bearer(header).ok_or(AuthError::BadHeader)?;
        if token.len() > TOKEN_BYTES_MAX {
            return Err(JwtError::TooLong.into());
        }
        if let Some(principal) = self.keys.verify(token) {
            return Ok(principal);
        }
        match &self.jwt {
            // Only a token has dots, so a mistyped key is not called a broken token.
            Some(jwt) if token.contains('.') => {
                let user = jwt.verify(token).await?;
                Ok(Principal::User { subject: user.subject.clone(), claims: Arc::clone(&user.claims) })
            }
            _ => Err(AuthError::UnknownKey),
        }
    }
}

/// The credential of `Bearer …`; the scheme's case does not matter (RFC 9110).
fn bearer(header: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(header).ok()?;
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let cases: &[(&str, Option<&str>)] = &[
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("BEARER abc", Some("abc")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Basic abc", None),
            ("abc", None),
            ("", None),
        ];
        for (header, token) in cases {
            assert_eq!(bearer(header.as_bytes()), *token, "{header}");
        }
        assert_eq!(bearer(b"Bearer \xff"), None);
    }
}
