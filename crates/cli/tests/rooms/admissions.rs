//! Admissions: one for each ticket, and anybody can check it.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};

use crate::support::*;
use crate::world::*;

/// Checks an admission as somebody does who has nothing but the public keys: what it says.
async fn checked(client: &Client, room: &str, admission: &str) -> Value {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let answer = client.get("/.well-known/jwks.json").send().await;
    assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
    let keys: JwkSet = serde_json::from_value(answer.json()).unwrap();
    let kid = decode_header(admission).unwrap().kid.unwrap();
    let key = DecodingKey::from_jwk(keys.find(&kid).unwrap()).unwrap();
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.set_audience(&[room]);
    validation.leeway = 0;
    validation.validate_nbf = true;
    decode::<Value>(admission, &key, &validation).unwrap().claims
}

#[tokio::test]
async fn twelve_claims_at_once_are_one_admission() {
    let server = Server::start("").await;
    let (client, anybody) = (server.client(), server.client_as(None));
    room(&client, "sale", open()).await;
    let ticket = join(&anybody, "sale", json!({})).await;
    let claims = join_all((0..12).map(|_| anybody.post(&format!("{}/claim", path(&ticket))).ok())).await;
    let texts: BTreeSet<String> = claims.iter().map(Value::to_string).collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    let claim = &claims[0];
    assert_eq!((&claim["state"], &claim["seq"], &claim["room"]), (&json!("ADMITTED"), &json!(1), &json!("sale")));
    let says = checked(&anybody, "sale", claim["admission"].as_str().unwrap()).await;
    assert_eq!((&says["sub"], &says["seq"], &says["jti"]), (&ticket["subject"], &json!(1), &claim["jti"]));
    assert_eq!((&says["iss"], &says["aud"]), (&json!("tally"), &json!("sale")));
    assert!(!claim["admission"].as_str().unwrap().contains(ticket["ticket"].as_str().unwrap()));
    assert!(says["nbf"].as_u64().unwrap() < says["exp"].as_u64().unwrap());
}

#[tokio::test]
async fn another_key_takes_over_in_time() {
    let server = Server::start("").await;
    let (client, anybody) = (server.client(), server.client_as(None));
    room(&client, "sale", open()).await;
    let before = enter(&anybody, "sale").await;
    anybody.post("/v1/admission/rotate").problem(401, "unauthenticated").await;
    let keys = client.post("/v1/admission/rotate").ok().await;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2, "{keys}");
    let again = client.post(&format!("{}/claim", path(&before))).ok().await;
    assert_eq!(again, before, "what was claimed stays as it is");
    let kid = |claim: &Value| decode_header(claim["admission"].as_str().unwrap()).unwrap().kid.unwrap();
    let next = enter(&anybody, "sale").await;
    assert_eq!(kid(&next), kid(&before), "the new key is shown before it signs");
    let keys = client.post("/v1/admission/rotate").json(&json!({"at_once": true})).ok().await;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1, "{keys}");
    let after = enter(&anybody, "sale").await;
    assert_eq!(kid(&after), keys["keys"][0]["kid"].as_str().unwrap());
    checked(&anybody, "sale", after["admission"].as_str().unwrap()).await;
    let check = |claim: &Value| {
        anybody.get("/v1/rooms/sale/check").header("tally-admission", claim["admission"].as_str().unwrap()).send()
    };
    assert_eq!((check(&before).await.status, check(&after).await.status), (401, 200));
}

#[tokio::test]
async fn the_key_is_kept_and_may_be_sealed_or_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let seal = file("seal", "0123456789abcdef".repeat(4).as_bytes());
    let pem = file("ed.pem", include_bytes!("../../../server/tests/keys/ed.pem"));
    for (config, is_file) in [
        (String::new(), false),
        (format!("[admission]\nseal_key_file = \"{seal}\"\n"), false),
        (format!("[admission]\nsigning_key_file = \"{pem}\"\n"), true),
    ] {
        let mut server = Server::start(&config).await;
        room(&server.client(), "sale", open()).await;
        let claim = enter(&server.client(), "sale").await;
        server.stop().await;
        server.restart().await;
        let client = server.client();
        assert_eq!(client.post(&format!("{}/claim", path(&claim))).ok().await, claim, "{config}");
        checked(&client, "sale", claim["admission"].as_str().unwrap()).await;
        if is_file {
            client.post("/v1/admission/rotate").problem(409, "conflict").await;
        }
    }
}
