//! A JSON Web Key Set: which of its keys can sign for users, and with which one algorithm each.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Why a key set cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwksError {
    /// The file is absent, or may not be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The URL did not answer with a document.
    #[error("cannot fetch the key set: {0}")]
    Unfetched(String),
    /// Not a key set.
    #[error("not a JSON Web Key Set: {0}")]
    Malformed(String),
    /// A key set in which no key can be used.
    #[error("the key set has no key for RS256, ES256 or EdDSA signatures")]
    NoUsableKey,
}

/// A public key with the one algorithm that it verifies.
pub struct Key {
    pub(crate) algorithm: Algorithm,
    pub(crate) decoding: DecodingKey,
}

/// The usable keys of one document.
pub struct KeySet {
    by_kid: HashMap<String, Arc<Key>>,
    nameless: Vec<Arc<Key>>,
    /// Made from the document, so it changes exactly when the document does.
    pub(crate) version: u64,
}

impl KeySet {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, JwksError> {
        let json = std::fs::read(path)
            .map_err(|error| JwksError::Unreadable { path: path.to_path_buf(), reason: error.to_string() })?;
        Self::parse(&json)
    }

    /// Reads a document. Keys for other purposes or of other kinds are left out, as RFC 7517 asks, rather
    /// than spoiling the rest.
    pub fn parse(json: &[u8]) -> Result<Self, JwksError> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<serde_json::Value>,
        }
        let document: Document =
            serde_json::from_slice(json).map_err(|error| JwksError::Malformed(error.to_string()))?;
        let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(Sha256::digest(json));
        let version = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let mut set = KeySet { by_kid: HashMap::new(), nameless: Vec::new(), version };
        for value in document.keys {
            let Ok(jwk) = serde_json::from_value::<Jwk>(value) else { continue };
            let Some(key) = usable(&jwk).map(Arc::new) else { continue };
            match jwk.common.key_id {
                // The first of two keys with one name stays: which one is meant cannot be known.
                Some(kid) => {
                    set.by_kid.entry(kid).or_insert(key);
                }
                None => set.nameless.push(key),
            }
        }
        if set.by_kid.is_empty() && set.nameless.is_empty() {
            return Err(JwksError::NoUsableKey);
        }
        Ok(set)
    }

    /// The key of this name. A token without a name fits only a set with a single key: trying several
    /// keys would let a token choose.
    pub fn find(&self, kid: Option<&str>) -> Option<&Arc<Key>> {
        match kid {
            Some(kid) => self.by_kid.get(kid),
            None if self.by_kid.len() + self.nameless.len() == 1 => {
                self.nameless.first().or_else(|| self.by_kid.values().next())
            }
            None => None,
        }
    }
}

/// A key for verifying signatures, whose algorithm follows from its type and curve. An `alg` that says
/// otherwise makes it a key for something else.
fn usable(jwk: &Jwk) -> Option<Key> {
    let for_signatures = matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let operations = jwk.common.key_operations.as_deref();
    let for_verifying = operations.is_none_or(|listed| listed.contains(&KeyOperations::Verify));
    let (algorithm, named) = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            (Algorithm::ES256, KeyAlgorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
        }
        _ => return None,
    };
    let agrees = jwk.common.key_algorithm.is_none_or(|alg| alg == named);
    if !(for_signatures && for_verifying && agrees) {
        return None;
    }
    Some(Key { algorithm, decoding: DecodingKey::from_jwk(jwk).ok()? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ed(extra: serde_json::Value) -> serde_json::Value {
        let mut key = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        let fields = extra.as_object().unwrap().clone();
        key.as_object_mut().unwrap().extend(fields);
        key
    }

    fn parse(keys: serde_json::Value) -> Result<KeySet, JwksError> {
        KeySet::parse(json!({ "keys": keys }).to_string().as_bytes())
    }

    #[test]
    fn only_keys_for_our_algorithms_and_for_signatures_are_taken() {
        let cases = [
            (ed(json!({})), true),
            (ed(json!({"alg": "EdDSA"})), true),
            (ed(json!({"use": "sig", "key_ops": ["verify"]})), true),
            (ed(json!({"use": "enc"})), false),
            (ed(json!({"key_ops": ["sign"]})), false),
            (ed(json!({"alg": "RS256"})), false),
            (ed(json!({"alg": "HS256"})), false),
            (ed(json!({"crv": "X25519"})), false),
            (json!({"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "alg": "HS256"}), false),
            (json!({"kty": "RSA", "n": "AQAB", "e": "AQAB", "alg": "RS256"}), true),
            (json!({"kty": "RSA", "n": "AQAB", "e": "AQAB", "alg": "RS512"}), false),
            (json!({"kty": "RSA", "n": "AQAB", "e": "AQAB", "alg": "PS256"}), false),
            (json!({"kty": "RSA", "n": "not base64!", "e": "AQAB"}), false),
            (json!({"kty": "EC", "crv": "P-384", "x": "AQAB", "y": "AQAB"}), false),
            (json!({"kty": "AKP", "alg": "ML-DSA-44", "pub": "AQAB"}), false),
            (json!("nonsense"), false),
        ];
        for (key, taken) in cases {
            assert_eq!(parse(json!([key])).is_ok(), taken, "{key}");
        }
    }

    #[test]
    fn one_odd_key_does_not_spoil_the_rest() {
        let set = parse(json!([{"kty": "??"}, ed(json!({"kid": "a"})), 7])).unwrap();
        assert!(set.find(Some("a")).is_some());
    }

    #[test]
    fn a_nameless_token_fits_only_a_single_key() {
        let find = |keys, kid: Option<&str>| parse(keys).unwrap().find(kid).is_some();
        assert!(find(json!([ed(json!({}))]), None));
        assert!(find(json!([ed(json!({"kid": "a"}))]), None));
        assert!(!find(json!([ed(json!({"kid": "a"})), ed(json!({"kid": "b"}))]), None));
        assert!(!find(json!([ed(json!({}))]), Some("a")));
        assert!(!find(json!([ed(json!({"kid": "a"}))]), Some("A")));
        assert!(!find(json!([ed(json!({"kid": "a"}))]), Some("")));
    }

    #[test]
    fn documents_that_are_no_key_set() {
        for json in ["", "[]", "{}", "{\"keys\": {}}", "{\"keys\": []}", "<html>"] {
            assert!(KeySet::parse(json.as_bytes()).is_err(), "{json}");
        }
    }
}
