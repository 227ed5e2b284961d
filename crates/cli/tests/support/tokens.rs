//! An issuer of users' tokens, with the keys of the server's own tests.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const ISSUER: &str = "https://issuer.example";
pub const AUDIENCE: &str = "tally-tests";
pub const RSA_PUBLIC: &[u8] = include_bytes!("../../../server/tests/keys/rsa_public.pem");

pub fn rsa() -> EncodingKey {
    EncodingKey::from_rsa_pem(include_bytes!("../../../server/tests/keys/rsa.pem")).unwrap()
}

pub fn rsa_other() -> EncodingKey {
    EncodingKey::from_rsa_pem(include_bytes!("../../../server/tests/keys/rsa_other.pem")).unwrap()
}

pub fn ec() -> EncodingKey {
    EncodingKey::from_ec_pem(include_bytes!("../../../server/tests/keys/ec.pem")).unwrap()
}

pub fn ed() -> EncodingKey {
    EncodingKey::from_ed_pem(include_bytes!("../../../server/tests/keys/ed.pem")).unwrap()
}

/// The issuer's public keys in a file, and the settings that name it.
pub struct Issuer {
    folder: TempDir,
}

impl Issuer {
    pub fn new() -> Self {
        // Normally the server's business, but here there is none in this process.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let folder = TempDir::new().unwrap();
        let jwk = |key: &EncodingKey, algorithm, kid: &str| {
            let mut jwk = Jwk::from_encoding_key(key, algorithm).unwrap();
            jwk.common.key_id = Some(kid.to_owned());
            serde_json::to_value(jwk).unwrap()
        };
        let keys = json!({"keys": [
            jwk(&rsa(), Algorithm::RS256, "rsa"),
            jwk(&ec(), Algorithm::ES256, "ec"),
            jwk(&ed(), Algorithm::EdDSA, "ed"),
        ]});
        std::fs::write(folder.path().join("jwks.json"), keys.to_string()).unwrap();
        Self { folder }
    }

    /// Publishes all keys but this one from now on.
    pub fn withdraw(&self, kid: &str) {
        let path = self.folder.path().join("jwks.json");
        let mut keys: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        keys["keys"].as_array_mut().unwrap().retain(|key| key["kid"] != kid);
        std::fs::write(&path, keys.to_string()).unwrap();
    }

    /// `[auth.jwt]` for a settings file.
    pub fn config(&self) -> String {
        let path: &Path = &self.folder.path().join("jwks.json");
        format!("[auth.jwt]\njwks = {path:?}\nissuer = {ISSUER:?}\naudience = {AUDIENCE:?}\n")
    }
}

pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Claims of a user that are good for an hour.
pub fn claims(subject: &str) -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "iat": now_s(), "exp": now_s() + 3600})
}

/// Signs claims with a key of the issuer, or of someone else.
pub fn sign(algorithm: Algorithm, kid: &str, key: &EncodingKey, claims: &Value) -> String {
    let header = Header { kid: Some(kid.to_owned()), ..Header::new(algorithm) };
    encode(&header, claims, key).unwrap()
}

/// A good token of a user.
pub fn user(subject: &str) -> String {
    sign(Algorithm::EdDSA, "ed", &ed(), &claims(subject))
}

/// The same with some claims changed; `null` takes one away.
pub fn user_with(subject: &str, changes: Value) -> String {
    let mut claims = claims(subject);
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    sign(Algorithm::EdDSA, "ed", &ed(), &claims)
}
