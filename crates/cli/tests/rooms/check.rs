//! What proxies ask: is whoever asks inside?

use jsonwebtoken::{Algorithm, Header};

use crate::support::*;
use crate::world::*;

const CHECK: &str = "/v1/rooms/sale/check";
const TRUSTED: &str = "[http]\ntrusted_proxies = [\"127.0.0.1\"]\n";

#[tokio::test]
async fn an_admission_opens_and_nothing_else_does() {
    let server = Server::start("").await;
    let (client, anybody) = (server.client(), server.client_as(None));
    room(&client, "sale", open()).await;
    room(&client, "other", open()).await;
    let claim = enter(&anybody, "sale").await;
    let admission = claim["admission"].as_str().unwrap();
    let with = |name: &str, value: String| anybody.get(CHECK).header(name, &value).send();
    for (name, value) in [
        ("tally-admission", admission.to_owned()),
        ("cookie", format!("a=b; tally_sale={admission}; c=d")),
        ("authorization", format!("Bearer {admission}")),
    ] {
        let answer = with(name, value).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        assert_eq!(answer.header("tally-subject"), claim["subject"].as_str());
        assert_eq!(answer.header("tally-seq"), Some("1"));
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "HEAD"] {
        let path = format!("{CHECK}/cart/1?x=%20");
        let asked = anybody.request(method.parse().unwrap(), &path).header("tally-admission", admission);
        assert_eq!(asked.send().await.status, 200, "{method}");
    }
    anybody.get(CHECK).problem(401, "unauthenticated").await;
    let foreign = anybody.get("/v1/rooms/other/check").header("tally-admission", admission).send().await;
    foreign.problem(401, "unauthenticated");
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let says: Value = {
        let header = jsonwebtoken::decode_header(admission).unwrap();
        let claims = jsonwebtoken::dangerous::insecure_decode::<Value>(admission).unwrap().claims;
        let forged = Header { kid: header.kid, ..Header::new(Algorithm::EdDSA) };
        let forged = jsonwebtoken::encode(&forged, &claims, &crate::support::tokens::ed()).unwrap();
        with("tally-admission", forged).await.problem(401, "unauthenticated");
        claims
    };
    assert_eq!(says["aud"], "sale");
    for wrong in ["", "x", "a.b.c", &admission[..admission.len() - 4], &format!("{admission}x")] {
        with("tally-admission", wrong.to_owned()).await.problem(401, "unauthenticated");
    }
    client.post(&format!("{}/done", path(&claim))).ok().await;
    with("tally-admission", admission.to_owned()).await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn an_admission_ends_unless_it_is_used() {
    let server = Server::start("").await;
    let (client, anybody) = (server.client(), server.client_as(None));
    let settings = json!({"mode": "off", "join": "any", "admission_ttl_ms": 1_500});
    room(&client, "sale", settings.clone()).await;
    let claim = enter(&anybody, "sale").await;
    let check = |admission: &str| anybody.get(CHECK).header("tally-admission", admission).send();
    let admission = claim["admission"].as_str().unwrap();
    assert_eq!(check(admission).await.status, 200);
    until("it ends", async || (check(admission).await.status == 401).then_some(())).await;
    let mut renewable = settings;
    renewable["renewable"] = json!(true);
    renewable["admission_ttl_ms"] = json!(3_000);
    room(&client, "sale", renewable).await;
    let claim = enter(&anybody, "sale").await;
    let first = claim["admission"].as_str().unwrap().to_owned();
    let fresh = until("it is prolonged", async || {
        let answer = check(&first).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        cookie(&answer, "tally_sale").map(|(value, rest)| (value.to_owned(), rest.to_owned()))
    })
    .await;
    assert!(fresh.0 != first && fresh.1.contains("HttpOnly") && fresh.1.contains("SameSite=Lax"), "{fresh:?}");
    assert_eq!(check(&fresh.0).await.status, 200);
}

#[tokio::test]
async fn whoever_is_refused_is_sent_to_wait_and_nowhere_else() {
    for (config, expected) in [(TRUSTED, "/wait/sale?return=%2Fcart%3Fa%3D1"), ("", "/wait/sale")] {
        let server = Server::start(config).await;
        room(&server.client(), "sale", open()).await;
        let anybody = server.client_as(None);
        for header in ["x-forwarded-uri", "x-original-uri"] {
            let asked = anybody.get(&format!("{CHECK}?deny=302")).header(header, "/cart?a=1").send().await;
            assert_eq!((asked.status, asked.header("location")), (302, Some(expected)), "{config}");
        }
        for evil in ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"] {
            let page = anybody.get(&format!("/wait/sale?return={}", encode(evil))).send().await;
            assert_eq!((page.status, page.header("location")), (200, None), "{evil}: nobody is sent there");
            assert!(!page.text().contains("evil") && !page.text().contains("alert"), "{}", page.text());
        }
    }
}

#[tokio::test]
async fn only_trusted_proxies_say_from_where_somebody_comes() {
    let limited = json!({"mode": "hold", "join": "any", "rate_limit": "2/hour per ip"});
    for (config, expected) in [(TRUSTED, [201, 201, 201, 201]), ("", [201, 201, 429, 429])] {
        let server = Server::start(config).await;
        room(&server.client(), "sale", limited.clone()).await;
        let anybody = server.client_as(None);
        for (place, status) in expected.into_iter().enumerate() {
            let from = format!("203.0.113.9, 198.51.100.{}", place % 2);
            let joined = anybody.post("/v1/rooms/sale/tickets").header("x-forwarded-for", &from).send().await;
            assert_eq!(joined.status, status, "{config} {place}");
        }
    }
}
