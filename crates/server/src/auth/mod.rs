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

#[cfg(test)]
mod jwks_tests;
#[cfg(test)]
mod jwt_tests;
#[cfg(test)]
mod testing;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};
use tally::core::command::Auth;
use tally::core::id::SubjectId;
use tally::core::rows::Role;
use tally_settings::Settings;

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
        /// `kind`, `subject` and all `claims`, ready for conditions: built once for a token, not per request.
        auth: Auth,
    },
    /// Anyone at all: the server runs with `--dev`.
    Dev,
    /// The same, in a browser's page that keeps its origin to itself: a file, or a frame that any site has put in a
    /// sandbox.
    DevPage,
    /// Somebody who has not said who they are, where that is not asked: see [`crate::http::visitor`].
    Nobody,
}

impl Principal {
    /// The user's own id, which path segment `me` stands for.
    pub fn subject(&self) -> Option<&SubjectId> {
        match self {
            Principal::User { subject, .. } => Some(subject),
            Principal::Key { .. } | Principal::Dev | Principal::DevPage | Principal::Nobody => None,
        }
    }

    /// What conditions know as `auth`: `kind` (`key`, `user`, `dev` or `nobody`), a key's `role`, a user's `subject`
    /// and `claims`.
    pub fn auth(&self) -> Auth {
        static OTHERS: LazyLock<[Auth; 5]> = LazyLock::new(|| {
            let key = |role| Arc::new(json!({"kind": "key", "role": role}));
            let kind = |kind| Arc::new(json!({"kind": kind}));
            [key(Role::Read), key(Role::Service), key(Role::Admin), kind("dev"), kind("nobody")]
        });
        let [read, service, admin, dev, nobody] = &*OTHERS;
        Arc::clone(match self {
            Principal::User { auth, .. } => auth,
            Principal::Key { role: Role::Read, .. } => read,
            Principal::Key { role: Role::Service, .. } => service,
            Principal::Key { role: Role::Admin, .. } => admin,
            Principal::Dev | Principal::DevPage => dev,
            Principal::Nobody => nobody,
        })
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
    /// The key of the environment cannot be used.
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
        Ok(Authenticator { dev: settings.dev, keys: KeyRing::new(admin).with_dev(settings.dev), jwt })
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

    /// Until when a credential that was accepted is good, in seconds since 1970, as far as is known now; an
    /// error once it is not. What is opened with it asks now and then, and ends with it.
    pub async fn good_until(&self, header: Option<&[u8]>) -> Result<Option<u64>, AuthError> {
        let Some(header) = header else { return if self.dev { Ok(None) } else { Err(AuthError::BadHeader) } };
        let token = bearer(header).filter(|token| token.len() <= TOKEN_BYTES_MAX);
        match (token, &self.jwt) {
            (Some(token), _) if self.keys.verify(token).is_some() => Ok(None),
            (Some(token), Some(jwt)) if token.contains('.') => Ok(Some(jwt.verify(token).await?.expires_s)),
            _ if self.dev => Ok(None),
            _ => Err(AuthError::UnknownKey),
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
                Ok(Principal::User { subject: user.subject.clone(), auth: Arc::clone(&user.auth) })
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
    use tally::core::time::Timestamp;

    use super::testing::{token, verifier, with_document};
    use super::*;

    fn header(token: &str) -> Vec<u8> {
        format!("Bearer {token}").into_bytes()
    }

    #[tokio::test]
    async fn keys_and_tokens_become_principals() {
        let admin = AdminKey::new("an-admin-key-of-the-environment").unwrap();
        let auth = Authenticator { dev: false, keys: KeyRing::new(Some(admin)), jwt: Some(with_document().await) };
        let made = keys::NewKey::generate(Role::Read, "dashboards", Timestamp(1)).unwrap();
        auth.keys.put(&made.id, &made.stored);
        let who = async |token: &str| auth.authenticate(Some(&header(token))).await;
        let key = |id: &str, role| Ok(Some(Principal::Key { id: id.into(), role }));
        assert_eq!(who("an-admin-key-of-the-environment").await, key("admin", Role::Admin));
        assert_eq!(who(&made.token).await, key(&made.id, Role::Read));
        let alice = who(&token(json!({}))).await.unwrap().unwrap();
        assert_eq!(alice.subject().unwrap().as_str(), "alice");
        assert_eq!(alice.auth()["kind"], json!("user"));
        assert_eq!(alice.auth()["subject"], json!("alice"));
        assert_eq!(alice.auth()["claims"]["iss"], json!(super::testing::ISSUER));
        let dashboards = who(&made.token).await.unwrap().unwrap();
        assert_eq!(*dashboards.auth(), json!({"kind": "key", "role": "read"}));
        assert_eq!(auth.authenticate(None).await, Ok(None));
        assert_eq!(auth.authenticate(Some(b"Basic YTpi")).await, Err(AuthError::BadHeader));
        assert_eq!(who("an-admin-key-of-someone-else").await, Err(AuthError::UnknownKey));
        assert_eq!(who("a.b.c").await, Err(AuthError::Token(JwtError::Malformed)));
        assert_eq!(who(&"x".repeat(TOKEN_BYTES_MAX + 1)).await, Err(AuthError::Token(JwtError::TooLong)));
    }

    #[tokio::test]
    async fn dev_is_everyone_except_who_says_otherwise() {
        let mut auth = Authenticator { dev: true, keys: KeyRing::new(None), jwt: None };
        assert_eq!(auth.authenticate(None).await, Ok(Some(Principal::Dev)));
        assert_eq!(auth.authenticate(Some(b"Basic YTpi")).await, Ok(Some(Principal::Dev)));
        assert_eq!(auth.authenticate(Some(&header("whatever"))).await, Ok(Some(Principal::Dev)));
        auth.jwt = Some(with_document().await);
        let alice = auth.authenticate(Some(&header(&token(json!({}))))).await.unwrap().unwrap();
        assert_eq!(alice.subject().unwrap().as_str(), "alice");
        let expired = auth.authenticate(Some(&header(&token(json!({"exp": 1}))))).await;
        assert_eq!(expired, Err(AuthError::Token(JwtError::Expired)));
    }

    #[tokio::test]
    async fn only_missing_keys_are_worth_another_try() {
        // Nobody listens there.
        let jwt = verifier("http://127.0.0.1:9/jwks").await;
        let auth = Authenticator { dev: false, keys: KeyRing::new(None), jwt: Some(jwt) };
        let error = auth.authenticate(Some(&header(&token(json!({}))))).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert!(!auth.authenticate(Some(&header("a.b.c"))).await.unwrap_err().is_transient());
    }

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
