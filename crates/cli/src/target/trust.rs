//! A certificate of one's own, or of one's own authority, in place of those that the machine trusts.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tally_server::tls::certificates;

use crate::failure::Failure;

/// Trusts only what is in a file.
pub(super) fn only(file: &Path) -> Result<ClientConfig, Failure> {
    let known = certificates(file).map_err(|error| Failure::usage(format!("--ca: {error}; {}", error.hint())))?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(known.iter().cloned());
    let authorities = WebPkiServerVerifier::builder(Arc::new(roots)).build();
    let authorities =
        authorities.map_err(|error| Failure::usage(format!("--ca: {} cannot be used: {error}", file.display())))?;
    let config = ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusted { known, authorities }))
        .with_no_client_auth();
    Ok(config)
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
