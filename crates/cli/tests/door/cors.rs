//! Pages of other origins, as `[http.cors]` allows them.

use crate::LIKE;
use crate::support::*;

const APP: &str = "https://app.example";

async fn preflight(server: &Server, origin: &str) -> Answer {
    let asked = server.client_as(None).request("OPTIONS".parse().unwrap(), LIKE);
    let asked = asked.header("origin", origin).header("access-control-request-method", "PUT");
    asked.header("access-control-request-headers", "authorization, content-type, idempotency-key").send().await
}

fn listed(answer: &Answer, header: &str) -> Vec<String> {
    let text = answer.header(header).unwrap_or_else(|| panic!("no {header}: {answer:?}"));
    text.split(',').map(|item| item.trim().to_ascii_lowercase()).collect()
}

#[tokio::test]
async fn without_settings_no_page_may_read_anything() {
    let server = Server::start("").await;
    let refused = preflight(&server, APP).await;
    assert_eq!(refused.status, 405);
    let answer = server.client().get(LIKE).header("origin", APP).send().await;
    for answer in [refused, answer] {
        assert!(!answer.headers.keys().any(|name| name.as_str().starts_with("access-control")), "{answer:?}");
    }
}

#[tokio::test]
async fn a_named_origin_may_and_others_may_not() {
    let issuer = tokens::Issuer::new();
    let cors = format!("[http.cors]\norigins = [{APP:?}, \"http://localhost:3000\"]\n");
    let server = Server::start(&format!("{}{cors}", issuer.config())).await;
    let allowed = preflight(&server, APP).await;
    assert_eq!((allowed.status, allowed.body.len()), (204, 0));
    assert_eq!(allowed.header("access-control-allow-origin"), Some(APP));
    for method in ["get", "put", "post", "delete"] {
        assert!(listed(&allowed, "access-control-allow-methods").contains(&method.to_owned()), "{method}");
    }
    for name in ["authorization", "content-type", "idempotency-key"] {
        assert!(listed(&allowed, "access-control-allow-headers").contains(&name.to_owned()), "{name}");
    }
    assert!(allowed.header("access-control-max-age").unwrap().parse::<u32>().unwrap() > 0);
    assert!(listed(&allowed, "vary").contains(&"origin".to_owned()));
    assert_eq!(allowed.header("access-control-allow-credentials"), None);

    let refused = preflight(&server, "https://app.example.evil.example").await;
    refused.problem(403, "forbidden");
    assert_eq!((refused.header("access-control-allow-origin"), refused.header("vary")), (None, Some("origin")));

    let user = server.client_as(Some(&tokens::user("alice")));
    for (answer, status) in [
        (user.put(LIKE).header("origin", APP).send().await, 200),
        (user.put("/v1/relations/nope/post:1/alice").header("origin", APP).send().await, 404),
        (server.client_as(None).put(LIKE).header("origin", APP).send().await, 401),
    ] {
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("access-control-allow-origin"), Some(APP), "refusals can be read, too");
        for name in ["retry-after", "idempotent-replayed", "ratelimit", "ratelimit-policy", "tally-cost"] {
            assert!(listed(&answer, "access-control-expose-headers").contains(&name.to_owned()), "{name}");
        }
    }
    let other = user.put(LIKE).header("origin", "https://other.example").send().await;
    assert_eq!(
        (other.status, other.header("access-control-allow-origin"), other.header("vary")),
        (200, None, Some("origin"))
    );
    let plain = user.put(LIKE).send().await;
    assert_eq!((plain.header("access-control-allow-origin"), plain.header("vary")), (None, Some("origin")));
}

#[tokio::test]
async fn every_page_may_where_a_star_says_so_but_without_credentials() {
    let server = Server::start("[http.cors]\norigins = \"*\"\n").await;
    let allowed = preflight(&server, APP).await;
    assert_eq!((allowed.status, allowed.header("access-control-allow-origin")), (204, Some("*")));
    assert_eq!(allowed.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn an_api_key_in_a_page_is_warned_of() {
    let server = Server::start(&format!("[http.cors]\norigins = {APP:?}\n")).await;
    let client = server.client();
    client.put(LIKE).header("origin", &format!("http://{}", server.address())).ok().await;
    assert!(!server.log().contains("a page in a browser sent an API key"), "its own pages are not meant");
    client.put(LIKE).header("origin", APP).ok().await;
    assert!(server.log().contains("a page in a browser sent an API key"), "{}", server.log());
    assert!(!server.log().contains(ADMIN_KEY));
    let output = server::binary().args(["doctor", "--url", &format!("http://{}", server.address())]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("API key") && text.contains("page"), "{text}");
}
