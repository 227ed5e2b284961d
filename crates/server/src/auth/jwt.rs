//! Users' tokens: JSON Web Tokens whose algorithm is fixed by the key, never by the token.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Value, json};
use tally::core::command::Auth;
use tally::core::id::SubjectId;
use tally_settings::JwtSettings;

use super::jwks::{Jwks, Key};
use super::keys::sha256;
use super::token_cache::TokenCache;
use super::{Claims, TOKEN_BYTES_MAX};

/// How far clocks may differ.
pub const LEEWAY_S: u64 = 30;

/// Why a token was refused. Safe to show: it holds nothing of the token but a claim's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwtError {
    /// Longer than any honest token.
    #[error("the token has more than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    /// Not a token, or one without a signature (`alg: none`).
    #[error("not a signed JSON Web Token")]
    Malformed,
    /// Signed with another algorithm than the key is for.
    #[error("the token's algorithm is not its key's")]
    WrongAlgorithm,
    /// Signed with a key that the issuer does not publish.
    #[error("the token's key is not among the issuer's keys")]
    UnknownKid,
    /// Changed on the way, or signed by someone else.
    #[error("the token's signature is wrong")]
    BadSignature,
    /// From another issuer.
    #[error("the token is from another issuer")]
    WrongIssuer,
    /// For another application.
    #[error("the token is for another audience")]
    WrongAudience,
    /// No longer good.
    #[error("the token has expired; get a new one")]
    Expired,
    /// Not good yet.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// Without something that it must say.
    #[error("the token has no usable claim `{0}`")]
    BadClaim(String),
    /// The issuer's keys could not be had so far.
    #[error("the issuer's keys are not available right now")]
    KeysUnavailable,
}

/// What a good token says.
#[derive(Debug)]
pub struct User {
    /// Whom it speaks for.
    pub subject: SubjectId,
    /// `kind`, `subject` and all of its `claims`, as conditions see them.
    pub auth: Auth,
    /// Its `exp`, in seconds since 1970.
    pub expires_s: u64,
}

/// Verifies users' tokens.
pub struct JwtVerifier {
    jwks: Arc<Jwks>,
    issuers: Vec<String>,
    audiences: Vec<String>,
    subject_claim: String,
    cache: TokenCache,
}

impl JwtVerifier {
    /// Verifies against these keys.
    pub fn new(settings: &JwtSettings, jwks: Arc<Jwks>) -> Self {
        JwtVerifier {
            jwks,
            issuers: settings.issuers.clone(),
            audiences: settings.audiences.clone(),
            subject_claim: settings.subject_claim.clone(),
            cache: TokenCache::default(),
        }
    }

    /// Who a token speaks for, now.
    pub async fn verify(&self, token: &str) -> Result<Arc<User>, JwtError> {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.verify_at(token, now_s, Instant::now()).await
    }

    /// Who a token speaks for at a given moment.
    pub async fn verify_at(&self, token: &str, now_s: u64, now: Instant) -> Result<Arc<User>, JwtError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(JwtError::TooLong);
        }
        let hash = sha256(token);
        let mut keys = self.jwks.current(now);
        let version = keys.as_ref().map(|keys| keys.version);
        if let Some(user) = version.and_then(|version| self.cache.get(&hash, version, now_s)) {
            return Ok(user);
        }
        let header = decode_header(token).map_err(|_| JwtError::Malformed)?;
        // A critical extension that we do not know must not be ignored (RFC 7515, 4.1.11).
        if header.crit.is_some() {
            return Err(JwtError::Malformed);
        }
        let kid = header.kid.as_deref();
        let known = keys.as_ref().is_some_and(|keys| keys.find(kid).is_some());
        if !known && (kid.is_some() || keys.is_none()) {
            keys = self.jwks.current_for_unknown_kid(now).await;
        }
        let keys = keys.ok_or(JwtError::KeysUnavailable)?;
        let key = keys.find(kid).ok_or(JwtError::UnknownKid)?;
        if header.alg != key.algorithm {
            return Err(JwtError::WrongAlgorithm);
        }
        let claims = self.claims(token, key)?;
        let expires_s = check_times(&claims, now_s)?;
        let subject = claims
            .get(&self.subject_claim)
            .and_then(Value::as_str)
            .and_then(|text| SubjectId::new(text).ok())
            .filter(|subject| !subject.is_me())
            .ok_or_else(|| JwtError::BadClaim(self.subject_claim.clone()))?;
        let auth = Arc::new(json!({"kind": "user", "subject": subject.as_str(), "claims": claims}));
        let user = Arc::new(User { subject, auth, expires_s });
        self.cache.put(hash, &user, keys.version, now_s);
        Ok(user)
    }

    /// The claims behind a right signature, from our issuer and for our audience.
    fn claims(&self, token: &str, key: &Key) -> Result<Claims, JwtError> {
        let mut validation = Validation::new(key.algorithm);
        validation.set_issuer(&self.issuers);
        validation.set_audience(&self.audiences);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        // Times are checked by `check_times`, against the caller's clock.
        validation.validate_exp = false;
        let claims = decode::<Claims>(token, &key.decoding, &validation).map_err(refused)?.claims;
        // The library takes a list of issuers that has ours in it; a token has one issuer.
        if claims.get("iss").is_some_and(Value::is_string) { Ok(claims) } else { Err(JwtError::WrongIssuer) }
    }
}

fn refused(error: jsonwebtoken::errors::Error) -> JwtError {
    match error.kind() {
        ErrorKind::InvalidSignature => JwtError::BadSignature,
        ErrorKind::InvalidIssuer => JwtError::WrongIssuer,
        ErrorKind::InvalidAudience => JwtError::WrongAudience,
        ErrorKind::InvalidAlgorithm => JwtError::WrongAlgorithm,
        ErrorKind::MissingRequiredClaim(name) => JwtError::BadClaim(name.clone()),
        _ => JwtError::Malformed,
    }
}

/// `exp`, after it and `nbf` were held against the clock.
fn check_times(claims: &Claims, now_s: u64) -> Result<u64, JwtError> {
    let seconds = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(value) => match (value.as_u64(), value.as_f64()) {
            (Some(whole), _) => Ok(Some(whole)),
            // A fraction is allowed (RFC 7519); what is below zero or past the end of time saturates.
            (None, Some(fraction)) => Ok(Some(fraction as u64)),
            (None, None) => Err(JwtError::BadClaim(name.to_owned())),
        },
    };
    let expires_s = seconds("exp")?.ok_or_else(|| JwtError::BadClaim("exp".to_owned()))?;
    if expires_s.saturating_add(LEEWAY_S) <= now_s {
        return Err(JwtError::Expired);
    }
    if seconds("nbf")?.is_some_and(|from_s| from_s > now_s.saturating_add(LEEWAY_S)) {
        return Err(JwtError::NotYetValid);
    }
    Ok(expires_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        const NOW: u64 = 1_700_000_000;
        let cases = [
            (json!({"exp": NOW + 1}), Ok(NOW + 1)),
            (json!({"exp": NOW - LEEWAY_S + 1}), Ok(NOW - LEEWAY_S + 1)),
            (json!({"exp": NOW - LEEWAY_S}), Err(JwtError::Expired)),
            (json!({"exp": 0}), Err(JwtError::Expired)),
            (json!({"exp": -1}), Err(JwtError::Expired)),
            (json!({"exp": u64::MAX}), Ok(u64::MAX)),
            (json!({"exp": 1e300}), Ok(u64::MAX)),
            (json!({"exp": 1_700_000_100.9}), Ok(NOW + 100)),
            (json!({"exp": "1800000000"}), Err(JwtError::BadClaim("exp".into()))),
            (json!({"exp": null}), Err(JwtError::BadClaim("exp".into()))),
            (json!({}), Err(JwtError::BadClaim("exp".into()))),
            (json!({"exp": NOW + 9, "nbf": NOW + LEEWAY_S}), Ok(NOW + 9)),
            (json!({"exp": NOW + 9, "nbf": NOW + LEEWAY_S + 1}), Err(JwtError::NotYetValid)),
            (json!({"exp": NOW + 9, "nbf": "soon"}), Err(JwtError::BadClaim("nbf".into()))),
        ];
        for (claims, expected) in cases {
            assert_eq!(check_times(claims.as_object().unwrap(), NOW), expected, "{claims}");
        }
    }
}
