//! HTTPS: a certificate chain and its key from PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tally_settings::TlsSettings;

/// Why HTTPS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate file is absent, or may not be read.
    #[error("cannot read {}: {reason}", path.display())]
    CertUnreadable {
        /// The file.
        path: PathBuf,
        /// What the system, or the PEM parser, said.
        reason: String,
    },
    /// The certificate file has no certificate.
    #[error("{} holds no certificate", .0.display())]
    NoCert(PathBuf),
    /// The key file is absent, or may not be read.
    #[error("cannot read {}: {reason}", path.display())]
    KeyUnreadable {
        /// The file.
        path: PathBuf,
        /// What the system, or the PEM parser, said.
        reason: String,
    },
    /// The key file has no private key.
    #[error("{} holds no private key", .0.display())]
    NoKey(PathBuf),
    /// The key is not the certificate's.
    #[error("the key in {} does not belong to the certificate in {}", key.display(), cert.display())]
    Mismatch {
        /// The certificate file.
        cert: PathBuf,
        /// The key file.
        key: PathBuf,
    },
    /// The certificate or the key is of a kind that cannot be used.
    #[error("the certificate and key cannot be used: {0}")]
    Unusable(rustls::Error),
}

impl TlsError {
    /// Whether the key file, rather than the certificate file, is to blame.
    pub fn is_about_key(&self) -> bool {
        matches!(self, TlsError::KeyUnreadable { .. } | TlsError::NoKey(_) | TlsError::Mismatch { .. })
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            TlsError::CertUnreadable { .. } | TlsError::KeyUnreadable { .. } => {
                "name a PEM file that the server may read"
            }
            TlsError::NoCert(_) => "it should have -----BEGIN CERTIFICATE-----, the server's first",
            TlsError::NoKey(_) => "it should have -----BEGIN PRIVATE KEY-----, without a passphrase",
            TlsError::Mismatch { .. } => "name the key that the certificate was made with",
            TlsError::Unusable(_) => "use an RSA (2048 bits or more), ECDSA or Ed25519 certificate",
        }
    }
}

/// Makes aws-lc-rs the cryptography of the whole process. Safe to call again.
pub fn install_crypto() {
    if CryptoProvider::get_default().is_none() {
        // Losing the race to another thread is fine: it installed the same.
        let _ = aws_lc_rs::default_provider().install_default();
    }
}

/// Loads a certificate chain and key, for HTTP/2 and HTTP/1.1.
pub fn server_config(settings: &TlsSettings) -> Result<Arc<ServerConfig>, TlsError> {
    install_crypto();
    let chain = certificates(&settings.cert)?;
    let key = private_key(&settings.key)?;
    let mut config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                TlsError::Mismatch { cert: settings.cert.clone(), key: settings.key.clone() }
            }
            other => TlsError::Unusable(other),
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The certificates of a PEM file; at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |reason: String| TlsError::CertUnreadable { path: path.to_path_buf(), reason };
    let text = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    let chain = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unreadable(error.to_string()))?;
    if chain.is_empty() { Err(TlsError::NoCert(path.to_path_buf())) } else { Ok(chain) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let unreadable = |reason: String| TlsError::KeyUnreadable { path: path.to_path_buf(), reason };
    let text = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::NoKey(path.to_path_buf()),
        other => unreadable(other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_and_its_key_serve_both_versions_of_http() {
        let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keys");
        let settings = TlsSettings { cert: keys.join("cert.pem"), key: keys.join("ec.pem") };
        let config = server_config(&settings).unwrap();
        assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
        install_crypto();
        assert!(CryptoProvider::get_default().is_some());
    }

    #[test]
    fn every_mistake_has_its_own_words() {
        let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keys");
        let broken = |cert: &str, key: &str| {
            let settings = TlsSettings { cert: keys.join(cert), key: keys.join(key) };
            server_config(&settings).unwrap_err()
        };
        assert!(matches!(broken("none.pem", "ec.pem"), TlsError::CertUnreadable { .. }));
        assert!(matches!(broken("ec.pem", "ec.pem"), TlsError::NoCert(_)));
        assert!(matches!(broken("cert.pem", "none.pem"), TlsError::KeyUnreadable { .. }));
        assert!(matches!(broken("cert.pem", "rsa_public.pem"), TlsError::NoKey(_)));
        assert!(matches!(broken("cert.pem", "rsa.pem"), TlsError::Mismatch { .. }));
    }
}
