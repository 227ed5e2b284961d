//! What the tests of tokens and key sets share: an issuer that signs, and a folder of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tally_settings::JwtSettings;

use super::jwks::Jwks;
use super::jwt::{JwtError, JwtVerifier, User};

pub(super) const ISSUER: &str = "https://securetoken.google.com/my-project";
pub(super) const AUDIENCE: &str = "my-project";
pub(super) const RSA_PUBLIC: &[u8] = include_bytes!("../../tests/keys/rsa_public.pem");

pub(super) fn rsa() -> EncodingKey {
    EncodingKey::from_rsa_pem(include_bytes!("../../tests/keys/rsa.pem")).unwrap()
}

pub(super) fn rsa_other() -> EncodingKey {
    EncodingKey::from_rsa_pem(include_bytes!("../../tests/keys/rsa_other.pem")).unwrap()
}

pub(super) fn ec() -> EncodingKey {
    EncodingKey::from_ec_pem(include_bytes!("../../tests/keys/ec.pem")).unwrap()
}

pub(super) fn ed() -> EncodingKey {
    EncodingKey::from_ed_pem(include_bytes!("../../tests/keys/ed.pem")).unwrap()
}

/// The public half of a key, as the issuer publishes it.
pub(super) fn jwk(key: &EncodingKey, algorithm: Algorithm, kid: &str) -> Value {
    let mut jwk = Jwk::from_encoding_key(key, algorithm).unwrap();
    jwk.common.key_id = Some(kid.to_owned());
    serde_json::to_value(jwk).unwrap()
}

/// Three keys: `rsa`, `ec` and `ed`.
pub(super) fn document() -> Value {
    json!({"keys": [
        jwk(&rsa(), Algorithm::RS256, "rsa"),
        jwk(&ec(), Algorithm::ES256, "ec"),
        jwk(&ed(), Algorithm::EdDSA, "ed"),
    ]})
}

pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Claims of alice that are good now.
pub(super) fn claims() -> Value {
    let now_s = now_s();
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now_s, "exp": now_s + 3600})
}

pub(super) fn header(algorithm: Algorithm, kid: &str) -> Header {
    Header { kid: Some(kid.to_owned()), ..Header::new(algorithm) }
}

/// A token of `claims()` with some of them changed; `null` takes one away.
pub(super) fn token(changes: Value) -> String {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    encode(&header(Algorithm::EdDSA, "ed"), &claims, &ed()).unwrap()
}

pub(super) fn settings(jwks: &str) -> JwtSettings {
    JwtSettings {
        jwks: jwks.to_owned(),
        issuers: vec![ISSUER.to_owned()],
        audiences: vec![AUDIENCE.to_owned()],
        subject_claim: "sub".to_owned(),
    }
}

pub(super) async fn verifier(jwks: &str) -> JwtVerifier {
    JwtVerifier::new(&settings(jwks), Jwks::open(jwks).await.unwrap())
}

/// A verifier with the three keys, from a file that may go away afterwards.
pub(super) async fn with_document() -> JwtVerifier {
    let folder = Folder::new();
    verifier(&folder.write("jwks.json", &document().to_string())).await
}

/// What `verify` answers now, in the form that tables compare: the subject, or the refusal.
pub(super) async fn verdict(verifier: &JwtVerifier, token: &str) -> Result<String, JwtError> {
    let user: Result<Arc<User>, JwtError> = verifier.verify_at(token, now_s(), Instant::now()).await;
    user.map(|user| user.subject.to_string())
}

/// A folder of one test's own, removed when it ends.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("tally-auth-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> String {
        let path: &Path = &self.0.join(name);
        std::fs::write(path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
