//! Users' tokens, with the issuer's keys from a file.

use jsonwebtoken::{Algorithm, EncodingKey};

use crate::support::tokens::*;
use crate::support::*;

async fn server() -> (Issuer, Server) {
    let issuer = Issuer::new();
    let server = Server::start(&issuer.config()).await;
    (issuer, server)
}

/// What the server makes of a token: whom it speaks for, or the refusal's detail.
async fn verdict(server: &Server, token: &str) -> Result<String, String> {
    let answer = server.client_as(Some(token)).put("/v1/relations/like/post:1/me").send().await;
    if answer.status == 200 {
        return Ok(answer.json()["subject"].as_str().unwrap().to_owned());
    }
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    Err(answer.problem(401, "unauthenticated")["detail"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn every_supported_algorithm_signs_in() {
    let (_issuer, server) = server().await;
    for (algorithm, kid, key) in
        [(Algorithm::RS256, "rsa", rsa()), (Algorithm::ES256, "ec", ec()), (Algorithm::EdDSA, "ed", ed())]
    {
        let token = sign(algorithm, kid, &key, &claims(kid));
        assert_eq!(verdict(&server, &token).await.as_deref(), Ok(kid));
    }
    let mut fans = server.client().subjects("like", "post:1").await;
    fans.sort();
    assert_eq!(fans, ["ec", "ed", "rsa"]);
}

#[tokio::test]
async fn every_wrong_token_is_refused_with_its_reason() {
    let (_issuer, server) = server().await;
    let good = user("alice");
    let (head, tail) = good.rsplit_once('.').unwrap();
    let broken = |text: &str| format!("{head}.{text}");
    let mut other = tail.as_bytes().to_vec();
    other[10] = if other[10] == b'A' { b'B' } else { b'A' };
    let cases = [
        (user_with("alice", json!({"exp": now_s() - 120})), "expired"),
        (user_with("alice", json!({"exp": null})), "exp"),
        (user_with("alice", json!({"nbf": now_s() + 600})), "not valid yet"),
        (user_with("alice", json!({"aud": "someone-else"})), "audience"),
        (user_with("alice", json!({"aud": null})), "aud"),
        (user_with("alice", json!({"iss": "https://evil.example"})), "issuer"),
        (user_with("alice", json!({"iss": [ISSUER]})), "issuer"),
        (user_with("alice", json!({"sub": null})), "sub"),
        (user_with("alice", json!({"sub": 42})), "sub"),
        (user_with("alice", json!({"sub": ""})), "sub"),
        (user_with("alice", json!({"sub": "a\nb"})), "sub"),
        (user_with("alice", json!({"sub": "me"})), "sub"),
        (sign(Algorithm::RS256, "rsa", &rsa_other(), &claims("alice")), "signature"),
        (sign(Algorithm::RS256, "nobody-knows", &rsa(), &claims("alice")), "key"),
        (sign(Algorithm::RS256, "ed", &rsa(), &claims("alice")), "algorithm"),
        (sign(Algorithm::RS512, "rsa", &rsa(), &claims("alice")), "algorithm"),
        (broken(""), ""),
        (broken(std::str::from_utf8(&other).unwrap()), "signature"),
        (format!("{good}.more"), ""),
        ("..".to_owned(), "token"),
        ("a.b.c".to_owned(), "Token"),
    ];
    for (token, reason) in cases {
        let detail = verdict(&server, &token).await.unwrap_err();
        assert!(detail.to_lowercase().contains(&reason.to_lowercase()), "{reason}: {detail}");
        assert!(token.is_empty() || !detail.contains(&token), "an error never tells the token");
    }
    assert_eq!(server.client().verified().await, 0);
}

#[tokio::test]
async fn a_token_cannot_choose_how_it_is_checked() {
    let (_issuer, server) = server().await;
    // HMAC with the public key as the secret, the classic confusion.
    let hmac = EncodingKey::from_secret(RSA_PUBLIC);
    for kid in ["rsa", "ec", "ed"] {
        verdict(&server, &sign(Algorithm::HS256, kid, &hmac, &claims("alice"))).await.unwrap_err();
    }
    // No signature at all.
    let base64 = |text: &str| {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut out = String::new();
        for chunk in text.as_bytes().chunks(3) {
            let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
            for n in 0..=chunk.len() {
                out.push(char::from(DIGITS[(bits >> (18 - 6 * n) & 63) as usize]));
            }
        }
        out
    };
    for algorithm in ["none", "None", "NONE", ""] {
        let header = base64(&json!({"alg": algorithm, "kid": "rsa", "typ": "JWT"}).to_string());
        let payload = base64(&claims("alice").to_string());
        verdict(&server, &format!("{header}.{payload}.")).await.unwrap_err();
        verdict(&server, &format!("{header}.{payload}")).await.unwrap_err();
    }
    assert_eq!(server.client().verified().await, 0);
}

#[tokio::test]
async fn conditions_see_the_claims() {
    let issuer = Issuer::new();
    let config = "[relations.like]\nread = \"public\"\nwhen.relate = \"auth.claims.email_verified == true\"\n";
    let server = Server::start(&format!("{}{config}", issuer.config())).await;
    let try_as = async |changes: Value| {
        let client = server.client_as(Some(&user_with("alice", changes)));
        client.put("/v1/relations/like/post:1/me").send().await
    };
    try_as(json!({})).await.problem(403, "condition_failed");
    try_as(json!({"email_verified": false})).await.problem(403, "condition_failed");
    assert_eq!(try_as(json!({"email_verified": true})).await.status, 200);
}

#[tokio::test]
async fn without_an_issuer_no_token_is_accepted() {
    let server = Server::start("").await;
    verdict(&server, &user("alice")).await.unwrap_err();
}
