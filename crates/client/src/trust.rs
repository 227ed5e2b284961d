//! A certificate of one's own, or of one's own authority, in place of those that the machine trusts.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::error::CaError;

/// Trusts only what is in a file.
pub(crate) fn only(file: &Path) -> Result<ClientConfig, CaError> {
    let unusable = |reason: String| CaError::Unusable { path: file.to_path_buf(), reason };
    let known = certificates(file)?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(known.iter().cloned());
    // Named here, so that this works whatever the process has made its own.
    let crypto = Arc::new(aws_lc_rs::default_provider());
    let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), crypto.clone()).build();
    let authorities = authorities.map_err(|error| unusable(error.to_string()))?;
    let config = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusted { known, authorities }))
        .with_no_client_auth();
    Ok(config)
}

/// The certificates of a PEM file; at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, CaError> {
    let unreadable = |reason: String| CaError::Unreadable { path: file.to_path_buf(), reason };
    let text = std::fs::read(file).map_err(|error| unreadable(error.to_string()))?;
    let known = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unreadable(error.to_string()))?;
    if known.is_empty() { Err(CaError::Empty(file.to_path_buf())) } else { Ok(known) }
}

/// An authority's certificate is judged by the usual rules. A server's own is it or is not: those that openssl makes by
/// themselves are marked as authorities, which the usual rules refuse for a server.
#[derive(Debug)]
struct Trusted {
    known: Vec<CertificateDer<'static>>,
    authorities: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.known.iter().any(|known| known.as_ref() == shown.as_ref()) {
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities.verify_server_cert(shown, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}
