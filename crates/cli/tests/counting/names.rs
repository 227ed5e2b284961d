//! Names are declared, so a typing error is a 404 with a hint and not something new that is counted.

use crate::support::*;

#[tokio::test]
async fn without_any_settings_one_of_each_is_there() {
    let server = Server::start("").await;
    let client = server.client();
    assert_eq!(client.post("/v1/counters/views/post:1").ok().await["value"], 1);
    let body = json!({"members": ["alice"]});
    assert_eq!(client.post("/v1/uniques/dau/2026-01-01").json(&body).ok().await["estimate"], 1);
    assert_eq!(client.put("/v1/attendance/daily/today/alice").ok().await["count"], 1);
    assert_eq!(client.post("/v1/boards/points/alice").json(&json!({"by": 3})).ok().await["rank"], 1);
}

#[tokio::test]
async fn a_name_that_is_not_declared_is_a_404_with_the_nearest_one() {
    let server = Server::start("[limits.posting]\nrate = \"5/min\"\n").await;
    let client = server.client();
    for (method, path, code, near) in [
        ("POST", "/v1/counters/view/x", "counter_not_found", "`views`"),
        ("GET", "/v1/counters/view/x", "counter_not_found", "`views`"),
        ("GET", "/v1/uniques/dao/x", "unique_not_found", "`dau`"),
        ("GET", "/v1/uniques/dao?keys=x", "unique_not_found", "`dau`"),
        ("PUT", "/v1/attendance/dayly/today/alice", "attendance_not_found", "`daily`"),
        ("GET", "/v1/attendance/dayly/today", "attendance_not_found", "`daily`"),
        ("GET", "/v1/attendance/dayly/today/alice", "attendance_not_found", "`daily`"),
        ("GET", "/v1/attendance/dayly?days=2026-01-01", "attendance_not_found", "`daily`"),
        ("GET", "/v1/subjects/alice/attendance/dayly", "attendance_not_found", "`daily`"),
        ("DELETE", "/v1/boards/point/alice", "board_not_found", "`points`"),
        ("GET", "/v1/boards/point", "board_not_found", "`points`"),
        ("GET", "/v1/boards/point/alice", "board_not_found", "`points`"),
        ("GET", "/v1/seasons/point", "board_not_found", "`points`"),
        ("POST", "/v1/limits/postin/alice", "limit_not_found", "`posting`"),
        ("GET", "/v1/limits/postin/alice", "limit_not_found", "`posting`"),
        ("GET", "/v1/limits/something-else/alice", "limit_not_found", "[limits.NAME]"),
    ] {
        let problem = client.request(method.parse().unwrap(), path).problem(404, code).await;
        assert!(problem["detail"].as_str().unwrap().contains(near), "{method} {path}: {problem}");
    }
    client.get("/v1/counters/Not%20A%20Name/x").problem(400, "bad_request").await;
}

#[tokio::test]
async fn ids_are_any_text_and_never_meet() {
    let server = Server::start("").await;
    let client = server.client();
    for key in ["a/b", "a b", "ключ", "%", "a,b", "today", "me", "👍"] {
        let path = format!("/v1/counters/views/{}", encode(key));
        assert_eq!(client.post(&path).ok().await["key"], key);
        assert_eq!(client.post(&path).ok().await["value"], 2, "{key}");
    }
    for member in ["a/b", "seasons", "앨리스"] {
        let path = format!("/v1/boards/points/{}", encode(member));
        assert_eq!(client.put(&path).json(&json!({"score": 1})).ok().await["member"], member);
        assert_eq!(client.get(&path).ok().await["score"], 1, "{member}");
    }
    for key in ["", "%00", "%0A"] {
        let answer = client.post(&format!("/v1/counters/views/{key}")).send().await;
        assert!(matches!(answer.status, 400 | 404), "{key}: {}", answer.text());
    }
    client.post(&format!("/v1/counters/views/{}", "x".repeat(257))).problem(400, "bad_request").await;
}

#[tokio::test]
async fn bodies_are_read_to_the_letter() {
    let server = Server::start("[limits.posting]\nrate = \"5/min\"\n").await;
    let client = server.client();
    let cases = [
        ("POST", "/v1/counters/views/x", r#"{"bye": 1}"#),
        ("POST", "/v1/counters/views/x", r#"{"by": "1"}"#),
        ("POST", "/v1/counters/views/x", r#"{"by": 1.5}"#),
        ("POST", "/v1/counters/views/x", r#"{"by": 9223372036854775808}"#),
        ("POST", "/v1/counters/views/x", "[1]"),
        ("POST", "/v1/uniques/dau/x", "{}"),
        ("POST", "/v1/uniques/dau/x", r#"{"members": "alice"}"#),
        ("POST", "/v1/uniques/dau/x", r#"{"members": [""]}"#),
        ("POST", "/v1/uniques/dau/x", r#"{"members": []}"#),
        ("POST", "/v1/boards/points/x", "{}"),
        ("POST", "/v1/boards/points/x", r#"{"by": 1, "score": 2}"#),
        ("PUT", "/v1/boards/points/x", r#"{"by": 1}"#),
        ("PUT", "/v1/boards/points/x", r#"{"score": 9007199254740993}"#),
        ("POST", "/v1/limits/posting/x", r#"{"cost": 0}"#),
        ("POST", "/v1/limits/posting/x", r#"{"cost": -1}"#),
        ("POST", "/v1/limits/posting/x", r#"{"cost": 6}"#),
    ];
    for (method, path, body) in cases {
        let request = client.request(method.parse().unwrap(), path).body("application/json", body);
        let answer = request.send().await;
        assert_eq!(answer.problem(400, "bad_request")["status"], 400, "{method} {path} {body}");
    }
    client.post("/v1/counters/views/x").body("text/plain", "1").problem(415, "unsupported_media_type").await;
    assert_eq!(client.get("/v1/counters/views/x").ok().await["value"], 0, "nothing was counted");
    assert_eq!(client.get("/v1/limits/posting/x").ok().await["remaining"], 5);
    client.verified().await;
}
