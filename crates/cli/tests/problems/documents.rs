//! Every refusal is a problem document with a stable code.

use crate::support::raw;
use crate::support::*;

const LIKE: &str = "/v1/relations/like/post:1/alice";
const BATCH: &str = "/v1/batch";

#[tokio::test]
async fn an_unknown_path_is_not_found() {
    let server = Server::start("").await;
    let client = server.client();
    let paths = ["/nowhere", "/v1", "/v1/", "/v2/relations/like/post:1", "/v1/relations", "/v1/relations/like/post:1/"];
    for path in paths {
        client.get(path).problem(404, "not_found").await;
        client.post(path).problem(404, "not_found").await;
    }
    // Nobody has to say who they are to be told that there is nothing.
    server.client_as(None).get("/nowhere").problem(404, "not_found").await;
}

#[tokio::test]
async fn a_wrong_method_names_the_right_ones() {
    let server = Server::start("").await;
    let client = server.client();
    let cases = [
        ("PATCH", LIKE, vec!["DELETE", "GET", "HEAD", "PUT"]),
        ("POST", "/v1/relations/like/post:1", vec!["GET", "HEAD"]),
        ("POST", "/v1/relations/like/post:1/subjects", vec!["DELETE", "GET", "HEAD", "PUT"]),
        ("GET", "/v1/relations/like/post:1/alice/toggle", vec!["POST"]),
        ("GET", BATCH, vec!["POST"]),
        ("PUT", "/v1/read", vec!["POST"]),
        ("DELETE", "/healthz", vec!["GET", "HEAD"]),
        ("POST", "/openapi.json", vec!["GET", "HEAD"]),
        ("BREW", "/healthz", vec!["GET", "HEAD"]),
    ];
    for (method, path, allowed) in cases {
        let answer = client.request(method.parse().unwrap(), path).send().await;
        answer.problem(405, "method_not_allowed");
        let mut named: Vec<&str> = answer.header("allow").unwrap().split(',').map(str::trim).collect();
        named.sort_unstable();
        assert_eq!(named, allowed, "{method} {path}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_what_it_should_be_is_refused() {
    let server = Server::start("").await;
    let client = server.client();
    let cases: [&[u8]; 12] = [
        b"{",
        b"nonsense",
        b"[]",
        b"\"text\"",
        b"42",
        b"{} {}",
        b"{\"meta\": 1}",
        b"{\"meta\": [1]}",
        b"{\"kind\": 7}",
        b"{\"kind\": \"Not A Name\"}",
        b"{\"unknown\": 1}",
        b"{\"meta\": {\"text\": \"\xff\xfe\"}}",
    ];
    for body in cases {
        let text = String::from_utf8_lossy(body);
        let answer = client.put(LIKE).body("application/json", body.to_vec()).send().await;
        assert_eq!(answer.problem(400, "bad_request")["status"], 400, "{text}");
        let answer = client.post(&format!("{LIKE}/toggle")).body("application/json", body.to_vec()).send().await;
        assert_eq!(answer.problem(400, "bad_request")["status"], 400, "{text}");
    }
    for body in ["", "{}", "null", r#"{"meta": null}"#, r#"{"meta": {}}"#] {
        let answer = client.put(LIKE).body("application/json", body.to_owned()).send().await;
        assert!(body == "null" || answer.status == 200, "{body}: {}", answer.text());
    }
    for body in ["", "{}", "[]", r#"{"commands": 1}"#, r#"{"commands": [], "atomik": true}"#, "[true, []]"] {
        client.post(BATCH).body("application/json", body.to_owned()).problem(400, "bad_request").await;
    }
}

#[tokio::test]
async fn deep_json_is_refused_and_harms_nobody() {
    let server = Server::start("").await;
    let client = server.client();
    let deep = format!("{{\"meta\": {{\"a\": {}1{}}}}}", "[".repeat(100_000), "]".repeat(100_000));
    client.put(LIKE).body("application/json", deep).problem(400, "bad_request").await;
    client.get("/healthz").ok().await;
}

#[tokio::test]
async fn another_media_type_is_refused() {
    let server = Server::start("").await;
    let client = server.client();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json5", "json"] {
        client.put(LIKE).body(kind, "{}").problem(415, "unsupported_media_type").await;
        client.post(BATCH).body(kind, r#"{"commands":[]}"#).problem(415, "unsupported_media_type").await;
    }
    for kind in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
        assert_eq!(client.put(LIKE).body(kind, "{}").send().await.status, 200, "{kind}");
    }
}

#[tokio::test]
async fn a_path_that_is_not_percent_encoded_utf8_is_refused() {
    let server = Server::start("").await;
    for id in ["%FF", "%C3%28", "%zz", "%", "%4", "a%2", "%ED%A0%80"] {
        for path in [
            format!("/v1/relations/like/post:1/{id}"),
            format!("/v1/relations/like/post:{id}"),
            format!("/v1/subjects/{id}/relations/like"),
            format!("/v1/objects/post:{id}"),
        ] {
            raw::ask(&server, "GET", &path).await.problem(400, "bad_request");
        }
        raw::ask(&server, "PUT", &format!("/v1/relations/like/post:1/{id}")).await.problem(400, "bad_request");
    }
    assert_eq!(server.client().verified().await, 0);
}

#[tokio::test]
async fn a_query_string_that_is_not_what_it_should_be_is_refused() {
    let server = Server::start("").await;
    for query in ["limit=x", "limit=1&limit=2", "cursor=1&cursor=2", "limit=%zz", "limit=%FF"] {
        let path = format!("/v1/relations/like/post:1/subjects?{query}");
        raw::ask(&server, "GET", &path).await.problem(400, "bad_request");
    }
    for viewer in ["", "%FF", "%zz", "%00", "%0A"] {
        let path = format!("/v1/relations/like/post:1?viewer={viewer}");
        raw::ask(&server, "GET", &path).await.problem(400, "bad_request");
    }
    for query in
        ["", "objects=post:1", "relations=like", "objects=nonsense&relations=like", "objects=%zz&relations=like"]
    {
        raw::ask(&server, "GET", &format!("/v1/live?{query}")).await.problem(400, "bad_request");
    }
}

#[tokio::test]
async fn who_is_not_known_is_told_how_to_say_so() {
    let server = Server::start("").await;
    let nobody = server.client_as(None);
    let calls =
        [("PUT", LIKE), ("GET", LIKE), ("DELETE", LIKE), ("POST", BATCH), ("POST", "/v1/read"), ("GET", "/v1/keys")];
    for (method, path) in calls {
        let answer = nobody.request(method.parse().unwrap(), path).send().await;
        answer.problem(401, "unauthenticated");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{method} {path}");
    }
    let odd = ["Basic YTpi", "Bearer", "Bearer ", "bearer nonsense", "an-admin-key-for-tests", "Bearer a.b.c"];
    for header in odd {
        let answer = nobody.put(LIKE).header("authorization", header).send().await;
        answer.problem(401, "unauthenticated");
        assert!(answer.header("www-authenticate").is_some(), "{header}");
    }
    let long = server.client_as(Some(&"x".repeat(9_000)));
    long.put(LIKE).problem(401, "unauthenticated").await;
    assert_eq!(nobody.put(LIKE).header("authorization", &format!("bEaReR  {ADMIN_KEY} ")).ok().await["changed"], true);
}

#[tokio::test]
async fn an_error_never_tells_a_secret() {
    let server = Server::start("").await;
    let secret = "tally_aaaaaaaaaaaa_ThisIsASecretThatNobodyMayEverReadInAnAnswerAtAll";
    let answer = server.client_as(Some(secret)).get(LIKE).send().await;
    answer.problem(401, "unauthenticated");
    assert!(!answer.text().contains("ThisIsASecret"), "{}", answer.text());
    server.client_as(None).get("/v1/relations/like/post:1").header("authorization", ADMIN_KEY).send().await;
    assert!(!server.log().contains("ThisIsASecret") && !server.log().contains(ADMIN_KEY), "{}", server.log());
}
