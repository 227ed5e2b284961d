//! Keys that sign: made, sealed, opened, shown.

use std::path::{Path, PathBuf};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{DecodingKey, EncodingKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tally::core::Timestamp;
use tally::core::rows::Signer;

/// How a private part begins that is encrypted, and how one that is not.
const SEALED: &str = "aes256gcm:";
const PLAIN: &str = "plain:";
/// Bytes of a key's name.
const KID_BYTES: usize = 12;

/// A file with a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("admission.{setting}: {}: {why}", file.display())]
pub struct KeyFileError {
    setting: &'static str,
    file: PathBuf,
    why: String,
}

/// A key that signs admissions, and checks them.
pub struct SigningKey {
    /// What it is called.
    pub kid: String,
    /// From when on it signs.
    pub signs_from: Timestamp,
    public: String,
    /// For signing.
    pub private: EncodingKey,
    /// For checking.
    pub checking: DecodingKey,
}

impl SigningKey {
    /// A new one, as it is stored.
    pub fn generate(seal: Option<&SealKey>) -> Result<Signer, String> {
        let unable = |_| "no key could be made".to_owned();
        let pair = Ed25519KeyPair::generate().map_err(unable)?;
        let pkcs8 = pair.to_pkcs8v1().map_err(unable)?;
        let (kid, public) = names(&pair);
        let private = match seal {
            Some(seal) => format!("{SEALED}{}", seal.seal(&kid, pkcs8.as_ref())?),
            None => format!("{PLAIN}{}", URL_SAFE_NO_PAD.encode(pkcs8.as_ref())),
        };
        Ok(Signer { kid, public, private, created_at: Timestamp(0), signs_from: Timestamp(0) })
    }

    /// One that is stored.
    pub fn open(signer: &Signer, seal: Option<&SealKey>) -> Result<Self, String> {
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| "the stored key is broken".to_owned());
        let pkcs8 = match (signer.private.strip_prefix(SEALED), signer.private.strip_prefix(PLAIN), seal) {
            (Some(sealed), _, Some(seal)) => seal.open(&signer.kid, decode(sealed)?)?,
            (Some(_), _, None) => {
                return Err("the key that signs admissions is encrypted: set admission.seal_key_file".into());
            }
            (None, Some(plain), _) => decode(plain)?,
            (None, None, _) => return Err("the stored key is none that this version knows".into()),
        };
        Ok(Self { signs_from: signer.signs_from, ..Self::of(&pkcs8)? })
    }

    /// One from a PEM file.
    pub fn from_file(file: &Path) -> Result<Self, KeyFileError> {
        let wrong = |why: String| KeyFileError { setting: "signing_key_file", file: file.into(), why };
        let der = PrivatePkcs8KeyDer::from_pem_file(file).map_err(|error| wrong(error.to_string()))?;
        Self::of(der.secret_pkcs8_der()).map_err(wrong)
    }

    fn of(pkcs8: &[u8]) -> Result<Self, String> {
        let wrong = || "it is no Ed25519 key in PKCS#8; make one with: openssl genpkey -algorithm ed25519".to_owned();
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8).map_err(|_| wrong())?;
        let (kid, public) = names(&pair);
        let checking = DecodingKey::from_ed_components(&public).map_err(|_| wrong())?;
        Ok(Self { kid, signs_from: Timestamp(0), public, private: EncodingKey::from_ed_der(pkcs8), checking })
    }

    /// Its public part, as a JSON Web Key.
    pub fn public_jwk(&self) -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "x": self.public, "kid": self.kid, "use": "sig", "alg": "EdDSA"})
    }
}

/// What a key is called, and its public part.
fn names(pair: &Ed25519KeyPair) -> (String, String) {
    let public = pair.public_key().as_ref();
    (URL_SAFE_NO_PAD.encode(&Sha256::digest(public)[..KID_BYTES]), URL_SAFE_NO_PAD.encode(public))
}

/// What keys in the store are encrypted with.
pub struct SealKey(RandomizedNonceKey);

impl SealKey {
    /// From a file of hexadecimal digits.
    pub fn from_file(file: &Path) -> Result<Self, KeyFileError> {
        let wrong = |why: String| KeyFileError { setting: "seal_key_file", file: file.into(), why };
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        let digits: Option<Vec<u8>> = text.trim().chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
        let hint = || wrong("it has 64 hexadecimal digits; make one with: openssl rand -hex 32".into());
        let digits = digits.filter(|digits| digits.len() == 64).ok_or_else(hint)?;
        let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        RandomizedNonceKey::new(&AES_256_GCM, &bytes).map(Self).map_err(|_| hint())
    }

    fn seal(&self, kid: &str, plain: &[u8]) -> Result<String, String> {
        let mut bytes = plain.to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::from(kid.as_bytes()), &mut bytes);
        let nonce = nonce.map_err(|_| "the key could not be encrypted".to_owned())?;
        Ok(URL_SAFE_NO_PAD.encode([nonce.as_ref().as_slice(), &bytes].concat()))
    }

    fn open(&self, kid: &str, mut sealed: Vec<u8>) -> Result<Vec<u8>, String> {
        let wrong = || "the key that signs admissions was encrypted with another admission.seal_key_file".to_owned();
        let (nonce, rest) = sealed.split_at_mut_checked(NONCE_LEN).ok_or_else(wrong)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| wrong())?;
        let plain = self.0.open_in_place(nonce, Aad::from(kid.as_bytes()), rest).map_err(|_| wrong())?;
        Ok(plain.to_vec())
    }
}
