//! TLS to the store: used where the URL asks for it, and refused where the certificate is not to be trusted.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tally_testing::redis::Options;
use tally_testing::{Postgres, Redis};
use tempfile::TempDir;

use crate::support::server::{binary, refused_start};
use crate::support::*;

fn key(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/keys").join(name)
}

/// Serves from a store over TLS; not with an authority that has not signed its certificate.
async fn check(url: impl Fn(&str) -> String) {
    let words = refused_start(&["--listen", "127.0.0.1:0", "--store", &url("cert.pem")]).await;
    assert!(words.contains("certificate") || words.contains("TLS") || words.contains("UnknownIssuer"), "{words}");
    let server = Server::start_on(&url("authority.pem"), "").await;
    assert_eq!(server.client().like("post:1", "alice").await["count"], 1);
    assert_eq!(server.client().verified().await, 1);
}

#[tokio::test]
async fn postgresql_is_spoken_to_over_tls() {
    let postgres = Postgres::start(Default::default()).unwrap();
    // Its key must be its own file, and nobody else's to read.
    let user = std::fs::metadata(format!("/proc/{}", postgres.pid().unwrap())).unwrap().uid();
    let folder = TempDir::new().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let own = |name: &str| {
        let path = folder.path().join(name);
        std::fs::copy(key(name), &path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&path, Some(user), None).unwrap();
        path.display().to_string()
    };
    let (cert, private) = (own("signed.pem"), own("signed_key.pem"));
    let (client, connection) = tokio_postgres::connect(&postgres.url(), tokio_postgres::NoTls).await.unwrap();
    let driving = tokio::spawn(connection);
    for statement in [
        format!("ALTER SYSTEM SET ssl_cert_file = '{cert}'"),
        format!("ALTER SYSTEM SET ssl_key_file = '{private}'"),
        "ALTER SYSTEM SET ssl = on".to_owned(),
        "SELECT pg_reload_conf()".to_owned(),
    ] {
        client.simple_query(&statement).await.unwrap();
    }
    until("it has taken the settings", async || {
        let shown = client.query_one("SHOW ssl", &[]).await.unwrap();
        (shown.get::<_, &str>(0) == "on").then_some(())
    })
    .await;
    let url = |ca: &str| format!("{}?sslmode=verify-full&sslrootcert={}", postgres.url(), key(ca).display());
    check(&url).await;
    let doctor = binary().args(["doctor", "--store", &url("authority.pem")]).output().unwrap();
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(text.contains("encryption") && text.contains("TLS"), "{text}");
    drop(client);
    driving.await.unwrap().unwrap();
}

#[tokio::test]
async fn redis_is_spoken_to_over_tls() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let options = Options::default()
        .with("tls-port", &port.to_string())
        .with("tls-cert-file", &key("signed.pem").display().to_string())
        .with("tls-key-file", &key("signed_key.pem").display().to_string())
        .with("tls-ca-cert-file", &key("authority.pem").display().to_string())
        .with("tls-auth-clients", "no");
    let _redis = Redis::start(options).unwrap();
    let root = |ca: &str| key(ca).display().to_string();
    check(|ca| format!("rediss://127.0.0.1:{port}?may_vanish=1&sslrootcert={}", root(ca))).await;
}
