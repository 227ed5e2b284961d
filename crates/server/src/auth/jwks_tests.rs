//! Key sets that change, go away, or are asked for by a thousand at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::routing::get;
use futures_util::future::join_all;
use jsonwebtoken::{Algorithm, encode};
use serde_json::json;

use super::jwks::{FILE_CHECK_EVERY, Jwks, REFRESH_MIN, RETRY_WITHOUT_KEYS, UNKNOWN_KID_EVERY};
use super::jwt::JwtError;
use super::testing::*;

/// An issuer's server that counts how often it is asked.
struct Issuer {
    hits: AtomicUsize,
    /// `None`: it fails.
    document: Mutex<Option<String>>,
}

impl Issuer {
    async fn start(document: Option<String>) -> (Arc<Self>, String) {
        let issuer = Arc::new(Issuer { hits: AtomicUsize::new(0), document: Mutex::new(document) });
        let answering = Arc::clone(&issuer);
        let answer = move || {
            answering.hits.fetch_add(1, Ordering::SeqCst);
            let document = answering.document.lock().unwrap().clone();
            let cached = [(CACHE_CONTROL, "public, max-age=7200")];
            async move { document.map(|json| (cached, json)).ok_or(StatusCode::INTERNAL_SERVER_ERROR) }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks", listener.local_addr().unwrap());
        let app = Router::new().route("/jwks", get(answer));
        tokio::spawn(async move { axum::serve(listener, app).await });
        (issuer, url)
    }

    fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    fn publish(&self, document: Option<String>) {
        *self.document.lock().unwrap() = document;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_unknown_keys_cause_one_fetch() {
    let (issuer, url) = Issuer::start(Some(document().to_string())).await;
    let verifier = verifier(&url).await;
    assert_eq!(issuer.hits(), 1);
    let tokens: Vec<String> =
        (0..1_000).map(|n| encode(&header(Algorithm::EdDSA, &format!("kid-{n}")), &claims(), &ed()).unwrap()).collect();
    let verdicts = join_all(tokens.iter().map(|token| verdict(&verifier, token))).await;
    assert!(verdicts.iter().all(|verdict| *verdict == Err(JwtError::UnknownKid)));
    assert_eq!(issuer.hits(), 2);
    // Known keys cost nothing at all.
    assert!(verdict(&verifier, &token(json!({}))).await.is_ok());
    assert_eq!(issuer.hits(), 2);
}

#[tokio::test]
async fn a_new_key_is_found_but_not_more_often_than_allowed() {
    let (issuer, url) = Issuer::start(Some(document().to_string())).await;
    let verifier = verifier(&url).await;
    let signed = |kid: &str| encode(&header(Algorithm::EdDSA, kid), &claims(), &ed()).unwrap();
    let start = Instant::now();
    let at = async |kid: &str, now| verifier.verify_at(&signed(kid), now_s(), now).await.map(|_| ());
    issuer.publish(Some(json!({"keys": [jwk(&ed(), Algorithm::EdDSA, "second")]}).to_string()));
    assert_eq!(at("second", start).await, Ok(()));
    issuer.publish(Some(json!({"keys": [jwk(&ed(), Algorithm::EdDSA, "third")]}).to_string()));
    assert_eq!(at("third", start + UNKNOWN_KID_EVERY - Duration::from_millis(1)).await, Err(JwtError::UnknownKid));
    assert_eq!(issuer.hits(), 2);
    assert_eq!(at("third", start + UNKNOWN_KID_EVERY).await, Ok(()));
    assert_eq!(issuer.hits(), 3);
    // What the issuer no longer publishes is no longer good, remembered or not.
    assert_eq!(at("second", start + UNKNOWN_KID_EVERY).await, Err(JwtError::UnknownKid));
}

#[tokio::test]
async fn an_issuer_that_fails_does_not_take_the_keys_away() {
    let (issuer, url) = Issuer::start(Some(document().to_string())).await;
    let verifier = verifier(&url).await;
    let start = Instant::now();
    let stranger = encode(&header(Algorithm::EdDSA, "unknown"), &claims(), &ed()).unwrap();
    let broken = [None, Some("<html>".to_owned()), Some(json!({"keys": []}).to_string()), Some("x".repeat(2 << 20))];
    for (index, document) in broken.into_iter().enumerate() {
        issuer.publish(document);
        let now = start + UNKNOWN_KID_EVERY * u32::try_from(index).unwrap();
        let refused = verifier.verify_at(&stranger, now_s(), now).await.unwrap_err();
        assert_eq!(refused, JwtError::UnknownKid);
        assert_eq!(issuer.hits(), 2 + index);
        assert!(verdict(&verifier, &token(json!({}))).await.is_ok());
    }
}

#[tokio::test]
async fn without_any_keys_nobody_is_told_that_their_token_is_wrong() {
    let (issuer, url) = Issuer::start(None).await;
    let verifier = verifier(&url).await;
    let token = token(json!({}));
    assert_eq!(verdict(&verifier, &token).await, Err(JwtError::KeysUnavailable));
    issuer.publish(Some(document().to_string()));
    let later = Instant::now() + UNKNOWN_KID_EVERY;
    assert!(verifier.verify_at(&token, now_s(), later).await.is_ok());
}

#[tokio::test]
async fn the_next_refresh_is_soon_while_there_are_no_keys_and_calm_otherwise() {
    let (issuer, url) = Issuer::start(None).await;
    let jwks = Jwks::open(&url).await.unwrap();
    assert_eq!(jwks.refresh().await, RETRY_WITHOUT_KEYS);
    issuer.publish(Some(document().to_string()));
    assert_eq!(jwks.refresh().await, Duration::from_secs(7_200), "as the issuer's Cache-Control says");
    issuer.publish(None);
    assert_eq!(jwks.refresh().await, REFRESH_MIN);
    assert!(jwks.current(Instant::now()).is_some());
}

#[tokio::test]
async fn a_changed_file_is_read_again() {
    let folder = Folder::new();
    let path = folder.write("jwks.json", &document().to_string());
    let verifier = verifier(&path).await;
    let start = Instant::now();
    let token = token(json!({}));
    let at = async |now| verifier.verify_at(&token, now_s(), now).await.map(|_| ());
    assert_eq!(at(start).await, Ok(()));
    folder.write("jwks.json", &json!({"keys": [jwk(&rsa(), Algorithm::RS256, "rsa")]}).to_string());
    assert_eq!(at(start).await, Ok(()), "not looked at yet");
    assert_eq!(at(start + FILE_CHECK_EVERY * 2).await, Err(JwtError::UnknownKid));
    folder.write("jwks.json", "half a docu");
    assert_eq!(at(start + FILE_CHECK_EVERY * 4).await, Err(JwtError::UnknownKid), "the last good keys stay");
    folder.write("jwks.json", &document().to_string());
    assert_eq!(at(start + FILE_CHECK_EVERY * 6).await, Ok(()));
}

#[tokio::test]
async fn a_wrong_file_is_an_error_at_once() {
    let folder = Folder::new();
    assert!(Jwks::open(&folder.write("a.json", "{}")).await.is_err());
    assert!(Jwks::open(&folder.write("b.json", "{\"keys\": []}")).await.is_err());
    let missing = folder.write("c.json", "") + ".missing";
    assert!(Jwks::open(&missing).await.err().unwrap().to_string().contains("c.json.missing"));
}
