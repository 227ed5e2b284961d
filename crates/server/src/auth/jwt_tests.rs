//! Tokens that are accepted, and every way in which one is not.

use std::time::Instant;

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tally_settings::JwtSettings;

use super::TOKEN_BYTES_MAX;
use super::jwks::Jwks;
use super::jwt::{JwtError, JwtVerifier, LEEWAY_S};
use super::testing::*;

#[tokio::test]
async fn each_algorithm_is_accepted_with_its_own_key() {
    let verifier = with_document().await;
    let keys = [(Algorithm::RS256, "rsa", rsa()), (Algorithm::ES256, "ec", ec()), (Algorithm::EdDSA, "ed", ed())];
    for (algorithm, kid, key) in keys {
        let token = encode(&header(algorithm, kid), &claims(), &key).unwrap();
        assert_eq!(verdict(&verifier, &token).await.as_deref(), Ok("alice"), "{algorithm:?}");
        assert_eq!(verdict(&verifier, &token).await.as_deref(), Ok("alice"), "{algorithm:?}, remembered");
    }
}

#[tokio::test]
async fn claims_decide() {
    let verifier = with_document().await;
    let now_s = now_s();
    let bad = |name: &str| Err(JwtError::BadClaim(name.to_owned()));
    let long = "x".repeat(257);
    let cases: Vec<(Value, Result<&str, JwtError>)> = vec![
        (json!({}), Ok("alice")),
        (json!({"iss": "https://securetoken.google.com/another"}), Err(JwtError::WrongIssuer)),
        (json!({"iss": [ISSUER]}), Err(JwtError::WrongIssuer)),
        (json!({"iss": null}), bad("iss")),
        (json!({"iss": 7}), bad("iss")),
        (json!({"aud": "another"}), Err(JwtError::WrongAudience)),
        (json!({"aud": ["another"]}), Err(JwtError::WrongAudience)),
        (json!({"aud": ["another", AUDIENCE]}), Ok("alice")),
        (json!({"aud": []}), Err(JwtError::WrongAudience)),
        (json!({"aud": null}), bad("aud")),
        (json!({"aud": 7}), bad("aud")),
        (json!({"exp": now_s - LEEWAY_S - 1}), Err(JwtError::Expired)),
        (json!({"exp": null}), bad("exp")),
        (json!({"exp": "tomorrow"}), bad("exp")),
        (json!({"nbf": now_s + 600}), Err(JwtError::NotYetValid)),
        (json!({"nbf": now_s - 600}), Ok("alice")),
        (json!({"nbf": "now"}), bad("nbf")),
        (json!({"sub": null}), bad("sub")),
        (json!({"sub": ""}), bad("sub")),
        (json!({"sub": 42}), bad("sub")),
        (json!({"sub": "a\nb"}), bad("sub")),
        (json!({"sub": long}), bad("sub")),
        (json!({"sub": "사용자 1"}), Ok("사용자 1")),
    ];
    for (changes, expected) in cases {
        let got = verdict(&verifier, &token(changes.clone())).await;
        assert_eq!(got, expected.map(str::to_owned), "{changes}");
    }
}

#[tokio::test]
async fn another_claim_may_hold_the_subject_and_all_claims_are_kept() {
    let folder = Folder::new();
    let path = folder.write("jwks.json", &document().to_string());
    let settings = JwtSettings { subject_claim: "user_id".to_owned(), ..settings(&path) };
    let verifier = JwtVerifier::new(&settings, Jwks::open(&path).await.unwrap());
    // The shape of a Firebase ID token.
    let firebase = json!({
        "user_id": "u1", "sub": "u1", "auth_time": now_s(), "email": "a@example.org", "email_verified": true,
        "firebase": {"identities": {"email": ["a@example.org"]}, "sign_in_provider": "password"},
    });
    let user = verifier.verify(&token(firebase.clone())).await.unwrap();
    assert_eq!(user.subject.as_str(), "u1");
    assert_eq!(user.auth["claims"]["firebase"], firebase["firebase"]);
    assert_eq!(user.auth["claims"]["email_verified"], json!(true));
    let without = verifier.verify(&token(json!({}))).await.unwrap_err();
    assert_eq!(without, JwtError::BadClaim("user_id".to_owned()));
}

#[tokio::test]
async fn a_token_does_not_choose_its_algorithm() {
    let verifier = with_document().await;
    let secret = EncodingKey::from_secret(RSA_PUBLIC);
    let sign = |algorithm, kid: &str, key: &EncodingKey| encode(&header(algorithm, kid), &claims(), key).unwrap();
    let cases = [
        // The public key is public; used as a shared secret it must not open anything.
        (sign(Algorithm::HS256, "rsa", &secret), JwtError::WrongAlgorithm),
        (sign(Algorithm::HS512, "ec", &secret), JwtError::WrongAlgorithm),
        (sign(Algorithm::RS384, "rsa", &rsa()), JwtError::WrongAlgorithm),
        (sign(Algorithm::PS256, "rsa", &rsa()), JwtError::WrongAlgorithm),
        // The right algorithm for the key that was used, under the name of another.
        (sign(Algorithm::ES256, "rsa", &ec()), JwtError::WrongAlgorithm),
        (sign(Algorithm::EdDSA, "ec", &ed()), JwtError::WrongAlgorithm),
        (sign(Algorithm::RS256, "rsa", &rsa_other()), JwtError::BadSignature),
        (unsigned(r#"{"alg":"none","typ":"JWT","kid":"rsa"}"#, ""), JwtError::Malformed),
        (unsigned(r#"{"alg":"None","typ":"JWT","kid":"rsa"}"#, ""), JwtError::Malformed),
        (unsigned(r#"{"typ":"JWT","kid":"rsa"}"#, ""), JwtError::Malformed),
        (unsigned(r#"{"alg":"RS256","typ":"JWT","kid":"rsa"}"#, ""), JwtError::BadSignature),
        (unsigned(r#"{"alg":"EdDSA","typ":"JWT","kid":"ed"}"#, &"A".repeat(86)), JwtError::BadSignature),
        (unsigned(r#"{"alg":"ES256","typ":"JWT","kid":"ec"}"#, &"A".repeat(86)), JwtError::BadSignature),
    ];
    for (token, expected) in cases {
        assert_eq!(verdict(&verifier, &token).await, Err(expected), "{token}");
    }
}

#[tokio::test]
async fn a_token_does_not_bring_its_own_key() {
    let verifier = with_document().await;
    let sign = |header: &Header, key: &EncodingKey| encode(header, &claims(), key).unwrap();
    let own = serde_json::from_value(jwk(&rsa_other(), Algorithm::RS256, "mine")).unwrap();
    let embedded = Header { jwk: Some(own), ..header(Algorithm::RS256, "rsa") };
    let pointed = Header { jku: Some("http://127.0.0.1:9/jwks".into()), ..header(Algorithm::RS256, "rsa") };
    let critical = Header { crit: Some(vec!["b64".into()]), ..header(Algorithm::EdDSA, "ed") };
    assert_eq!(verdict(&verifier, &sign(&embedded, &rsa_other())).await, Err(JwtError::BadSignature));
    assert_eq!(verdict(&verifier, &sign(&pointed, &rsa_other())).await, Err(JwtError::BadSignature));
    assert_eq!(verdict(&verifier, &sign(&critical, &ed())).await, Err(JwtError::Malformed));
    for kid in ["", "RSA", "rsa ", "mine", "../../etc/passwd", "rsa' OR '1'='1", "\u{0}"] {
        let token = sign(&header(Algorithm::RS256, kid), &rsa());
        assert_eq!(verdict(&verifier, &token).await, Err(JwtError::UnknownKid), "{kid:?}");
    }
    let nameless = Header::new(Algorithm::RS256);
    assert_eq!(verdict(&verifier, &sign(&nameless, &rsa())).await, Err(JwtError::UnknownKid));
}

#[tokio::test]
async fn a_changed_token_is_refused_wherever_it_was_changed() {
    let verifier = with_document().await;
    let token = token(json!({}));
    assert!(verdict(&verifier, &token).await.is_ok());
    for at in 0..token.len() {
        let mut changed = token.clone().into_bytes();
        // Two letters apart, so that the bits that base64 ignores at an end are not all that differs.
        changed[at] = if changed[at] == b'Q' { b'w' } else { b'Q' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(verdict(&verifier, &changed).await.is_err(), "at {at}: {changed}");
    }
    for cut in [1, token.len() / 2, token.len() - 1] {
        assert!(verdict(&verifier, &token[..cut]).await.is_err(), "cut at {cut}");
    }
    let parts: Vec<&str> = token.split('.').collect();
    let other = self::token(json!({"sub": "bob"}));
    let others: Vec<&str> = other.split('.').collect();
    let swapped = format!("{}.{}.{}", parts[0], others[1], parts[2]);
    assert_eq!(verdict(&verifier, &swapped).await, Err(JwtError::BadSignature));
}

#[tokio::test]
async fn what_is_no_token_is_refused() {
    let verifier = with_document().await;
    for text in ["", ".", "..", "...", "a.b.c", "a.b", "a.b.c.d", "\u{0}.\u{0}.\u{0}", "e30.e30.e30", "é.é.é"] {
        assert_eq!(verdict(&verifier, text).await, Err(JwtError::Malformed), "{text:?}");
    }
    let long = token(json!({"padding": "x".repeat(TOKEN_BYTES_MAX)}));
    assert_eq!(verdict(&verifier, &long).await, Err(JwtError::TooLong));
    assert_eq!(verdict(&verifier, &".".repeat(TOKEN_BYTES_MAX + 1)).await, Err(JwtError::TooLong));
}

#[tokio::test]
async fn a_remembered_token_still_expires() {
    let verifier = with_document().await;
    let now_s = now_s();
    let token = token(json!({"exp": now_s + 20}));
    let at = async |s| verifier.verify_at(&token, s, Instant::now()).await.map(|_| ());
    assert_eq!(at(now_s).await, Ok(()));
    assert_eq!(at(now_s + 19).await, Ok(()));
    assert_eq!(at(now_s + 20 + LEEWAY_S - 1).await, Ok(()));
    assert_eq!(at(now_s + 20 + LEEWAY_S).await, Err(JwtError::Expired));
}

/// A token with this header, alice's claims and this signature.
fn unsigned(header: &str, signature: &str) -> String {
    format!("{}.{}.{signature}", base64url(header.as_bytes()), base64url(claims().to_string().as_bytes()))
}

fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            text.push(char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]));
        }
    }
    text
}
