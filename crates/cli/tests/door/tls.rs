//! HTTPS: both versions of HTTP, clients that do not speak it, and our own command line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::LIKE;
use crate::support::raw::Raw;
use crate::support::*;

fn key(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/keys").join(name)
}

/// A server whose certificate is this one.
async fn secured(cert: &str, private: &str, more: &str) -> Server {
    let config = format!("[tls]\ncert = {:?}\nkey = {:?}\n{more}", key(cert), key(private));
    Server::start(&config).await
}

fn connector(protocol: &str) -> TlsConnector {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(key("authority.pem")).unwrap()).unwrap();
    let mut config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn both_versions_of_http_are_answered_over_tls() {
    let server = secured("signed.pem", "signed_key.pem", "").await;
    let request = |method: &str| {
        let request = hyper::Request::builder().method(method).uri(format!("https://localhost{LIKE}"));
        let request = request.header("authorization", format!("Bearer {ADMIN_KEY}")).header("host", "localhost");
        request.body(Full::new(Bytes::new())).unwrap()
    };
    for protocol in ["h2", "http/1.1"] {
        let stream = TcpStream::connect(server.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector(protocol).connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
        let io = TokioIo::new(stream);
        let response = if protocol == "h2" {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request("PUT")).await.unwrap()
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request("PUT")).await.unwrap()
        };
        assert_eq!(response.status(), 200);
        let body: Value = serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!((&body["active"], &body["changed"]), (&json!(true), &json!(protocol == "h2")));
    }
}

#[tokio::test]
async fn who_does_not_finish_the_handshake_is_cut_and_harms_nobody() {
    let more = "[bounds]\nheader_read_timeout_ms = 300\n";
    let server = secured("cert.pem", "ec.pem", more).await;
    let silent = Raw::connect(&server).await;
    let mut half = Raw::connect(&server).await;
    half.send(b"\x16\x03\x01\x02\x00\x01").await;
    let mut plain = Raw::connect(&server).await;
    plain.send("GET /healthz HTTP/1.1\r\nhost: tally\r\n\r\n").await;
    let (silent, half, plain) = tokio::join!(silent.rest(), half.rest(), plain.rest());
    assert!(silent.is_empty() && half.is_empty());
    assert!(!String::from_utf8_lossy(&plain).contains("200"));
    assert_eq!(server.client().like("post:1", "alice").await["changed"], true);
}

#[tokio::test]
async fn the_command_line_says_how_to_trust_a_certificate_and_then_does() {
    let own = secured("cert.pem", "ec.pem", "").await;
    let signed = secured("signed.pem", "signed_key.pem", "").await;
    let count = |server: &Server, ca: Option<&str>| {
        let mut command = server::binary();
        command.args(["count", "like", "post:1", "--url", &format!("https://{}", server.address())]);
        if let Some(ca) = ca {
            command.arg("--ca").arg(key(ca));
        }
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (server, right, wrong) in [(&own, "cert.pem", "signed.pem"), (&signed, "authority.pem", "cert.pem")] {
        for ca in [None, Some(wrong)] {
            let (done, words) = count(server, ca);
            assert!(!done && words.contains("--ca FILE"), "{words}");
        }
        let (done, words) = count(server, Some(right));
        assert!(done, "{words}");
    }
    assert!(count(&signed, Some("signed.pem")).0, "the server's own will do");
    let (done, words) = count(&own, Some("none.pem"));
    assert!(!done && words.contains("cannot read"), "{words}");
    let doctor = server::binary()
        .args(["doctor", "--url", &format!("https://{}", own.address()), "--ca"])
        .arg(key("cert.pem"))
        .output()
        .unwrap();
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
}
