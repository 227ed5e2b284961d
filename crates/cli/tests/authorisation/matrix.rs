//! The whole matrix: every caller, every call, every read policy, one's own and someone else's.

use crate::support::*;

/// What the matrix says of a caller.
#[derive(Clone, Copy, PartialEq)]
enum May {
    Yes,
    No,
    /// Where the relation is public.
    Public,
    /// Where it is public or own.
    Own,
}
use May::{No, Own, Public, Yes};

/// A call, with `{r}` for the relation and `{s}` for the subject that it is about.
struct Call {
    method: &'static str,
    path: &'static str,
    body: Option<&'static str>,
    /// A key that reads, one that serves, the admin's, a user about itself, a user about another; and with `--dev` a
    /// page that keeps its origin to itself.
    may: [May; 6],
}

const fn call(method: &'static str, path: &'static str, may: [May; 6]) -> Call {
    Call { method, path, body: None, may }
}

const fn with(method: &'static str, path: &'static str, body: &'static str, may: [May; 6]) -> Call {
    Call { method, path, body: Some(body), may }
}

#[rustfmt::skip]
const CALLS: [Call; 56] = [
    //                                                                read  serv. admin self    other   page
    call("PUT",    "/v1/relations/{r}/post:1/{s}",                  [No,  Yes,  Yes,  Yes,    No,     Yes]),
    call("DELETE", "/v1/relations/{r}/post:1/{s}",                  [No,  Yes,  Yes,  Yes,    No,     Yes]),
    call("POST",   "/v1/relations/{r}/post:1/{s}/toggle",           [No,  Yes,  Yes,  Yes,    No,     Yes]),
    with("POST",   "/v1/batch",
         r#"{"commands":[{"op":"relate","relation":"{r}","object":"post:1","subject":"{s}"}]}"#,
                                                                    [No,  Yes,  Yes,  Yes,    No,     Yes]),
    call("GET",    "/v1/relations/{r}/post:1/{s}",                  [Yes, Yes,  Yes,  Own,    Public, Yes]),
    call("GET",    "/v1/relations/{r}/post:1?viewer={s}",           [Yes, Yes,  Yes,  Own,    Public, Yes]),
    with("POST",   "/v1/read", r#"{"viewer":"{s}","objects":["post:1"],"relations":["{r}"]}"#,
                                                                    [Yes, Yes,  Yes,  Own,    Public, Yes]),
    call("GET",    "/v1/relations/{r}/post:1/subjects",             [Yes, Yes,  Yes,  Public, Public, Yes]),
    call("GET",    "/v1/subjects/{s}/relations/{r}",                [Yes, Yes,  Yes,  Own,    Public, Yes]),
    call("GET",    "/v1/live?objects=post:1&relations={r}",         [Yes, Yes,  Yes,  Own,    Own,    Yes]),
    call("POST",   "/v1/subjects/{s}/suspend",                      [No,  Yes,  Yes,  No,     No,     No]),
    call("POST",   "/v1/subjects/{s}/restore",                      [No,  Yes,  Yes,  No,     No,     No]),
    call("DELETE", "/v1/subjects/{s}",                              [No,  Yes,  Yes,  Yes,    No,     No]),
    call("PUT",    "/v1/objects/post:1",                            [No,  Yes,  Yes,  No,     No,     No]),
    call("GET",    "/v1/objects/post:1",                            [Yes, Yes,  Yes,  No,     No,     No]),
    call("DELETE", "/v1/objects/post:1",                            [No,  Yes,  Yes,  No,     No,     No]),
    call("GET",    "/v1/jobs/job_0000000000000000",                 [Yes, Yes,  Yes,  No,     No,     No]),
    call("POST",   "/v1/verify",                                    [No,  No,   Yes,  No,     No,     No]),
    call("POST",   "/v1/backup",                                    [No,  No,   Yes,  No,     No,     No]),
    with("POST",   "/v1/keys", r#"{"role":"read"}"#,                [No,  No,   Yes,  No,     No,     No]),
    call("GET",    "/v1/keys",                                      [No,  No,   Yes,  No,     No,     No]),
    call("DELETE", "/v1/keys/nokey",                                [No,  No,   Yes,  No,     No,     No]),
    call("GET",    "/metrics",                                      [Yes, Yes,  Yes,  No,     No,     No]),
    call("GET",    "/v1/relations/{r}/post:2/subjects?limit=1",     [Yes, Yes,  Yes,  Public, Public, Yes]),
    call("POST",   "/v1/counters/views/post:1",                     [No,  Yes,  Yes,  No,     No,     Yes]),
    call("GET",    "/v1/counters/views/post:1",                     [Yes, Yes,  Yes,  Yes,    Yes,    Yes]),
    with("POST",   "/v1/read", r#"{"objects":["post:1"],"counters":["views"]}"#,
                                                                    [Yes, Yes,  Yes,  Yes,    Yes,    Yes]),
    with("POST",   "/v1/uniques/dau/day", r#"{"members":["{s}"]}"#, [No,  Yes,  Yes,  No,     No,     Yes]),
    call("GET",    "/v1/uniques/dau/day",                           [Yes, Yes,  Yes,  Yes,    Yes,    Yes]),
    call("GET",    "/v1/uniques/dau?keys=day,night",                [Yes, Yes,  Yes,  Yes,    Yes,    Yes]),
    call("PUT",    "/v1/attendance/daily/today/{s}",                [No,  Yes,  Yes,  Yes,    No,     Yes]),
    call("DELETE", "/v1/attendance/daily/today/{s}",                [No,  Yes,  Yes,  Yes,    No,     Yes]),
    call("GET",    "/v1/attendance/daily/today/{s}",                [Yes, Yes,  Yes,  Yes,    No,     Yes]),
    call("GET",    "/v1/subjects/{s}/attendance/daily",             [Yes, Yes,  Yes,  Yes,    No,     Yes]),
    call("GET",    "/v1/attendance/daily/today",                    [Yes, Yes,  Yes,  Yes,    Yes,    Yes]),
    call("GET",    "/v1/attendance/daily?days=2026-01-01",          [Yes, Yes,  Yes,  Yes,    Yes,    Yes]),
    with("POST",   "/v1/boards/points/{s}", r#"{"by":1}"#,          [No,  Yes,  Yes,  No,     No,     Yes]),
    with("PUT",    "/v1/boards/points/{s}", r#"{"score":1}"#,       [No,  Yes,  Yes,  No,     No,     Yes]),
    call("DELETE", "/v1/boards/points/{s}",                         [No,  Yes,  Yes,  No,     No,     Yes]),
    call("GET",    "/v1/boards/points/{s}",                         [Yes, Yes,  Yes,  Yes,    Yes,    Yes]),
    call("GET",    "/v1/boards/points",                             [Yes, Yes,  Yes,  Yes,    Yes,    Yes]),
    call("GET",    "/v1/seasons/points",                            [Yes, Yes,  Yes,  Yes,    Yes,    Yes]),
    call("POST",   "/v1/limits/posting/{s}",                        [No,  Yes,  Yes,  No,     No,     Yes]),
    call("GET",    "/v1/limits/posting/{s}",                        [Yes, Yes,  Yes,  No,     No,     Yes]),
    with("POST",   "/v1/batch", r#"{"commands":[{"op":"count","counter":"views","key":"post:1"}]}"#,
                                                                    [No,  Yes,  Yes,  No,     No,     Yes]),
    with("POST",   "/v1/batch", r#"{"commands":[{"op":"attend","sheet":"daily","subject":"{s}"}]}"#,
                                                                    [No,  Yes,  Yes,  Yes,    No,     Yes]),
    with("POST",   "/v1/batch",
         r#"{"atomic":true,"commands":[{"op":"score","board":"points","member":"{s}","by":1}]}"#,
                                                                    [No,  Yes,  Yes,  No,     No,     Yes]),
    with("POST",   "/v1/batch", r#"{"commands":[{"op":"take","limit":"posting","key":"{s}"}]}"#,
                                                                    [No,  Yes,  Yes,  No,     No,     Yes]),
    with("PUT",    "/v1/rooms/sale", r#"{"join":"token"}"#,         [No,  Yes,  Yes,  No,     No,     No]),
    with("POST",   "/v1/rooms/sale/tickets", r#"{"subject":"{s}"}"#,
                                                                    [No,  Yes,  Yes,  Yes,    No,     Yes]),
    call("GET",    "/v1/rooms/sale",                                [Yes, Yes,  Yes,  Yes,    Yes,    Yes]),
    call("GET",    "/v1/rooms",                                     [No,  Yes,  Yes,  No,     No,     No]),
    call("GET",    "/v1/rooms/sale/minutes",                        [No,  Yes,  Yes,  No,     No,     No]),
    with("POST",   "/v1/rooms/sale/admit", r#"{"count":1}"#,        [No,  Yes,  Yes,  No,     No,     No]),
    call("DELETE", "/v1/rooms/sale",                                [No,  Yes,  Yes,  No,     No,     No]),
    call("POST",   "/v1/admission/rotate",                          [No,  No,   Yes,  No,     No,     No]),
];

const RELATIONS: [(&str, May); 3] = [("like", Public), ("bookmark", Own), ("secret", No)];

async fn ask(client: &Client, call: &Call, relation: &str, subject: &str) -> (u16, Value) {
    ask_from(client, call, relation, subject, None).await
}

async fn ask_from(client: &Client, call: &Call, relation: &str, subject: &str, origin: Option<&str>) -> (u16, Value) {
    let fill = |text: &str| text.replace("{r}", relation).replace("{s}", subject);
    let mut request = client.request(call.method.parse().unwrap(), &fill(call.path));
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    if let Some(body) = call.body {
        request = request.body("application/json", fill(body));
    }
    let response = request.open().await;
    let status = response.status().as_u16();
    // An answer that is allowed may have no end.
    let problem = if status >= 400 { response.json().await.unwrap() } else { Value::Null };
    (status, problem)
}

fn allowed(may: May, policy: May) -> bool {
    match may {
        Yes => true,
        No => false,
        Public => policy == Public,
        Own => policy == Public || policy == Own,
    }
}

#[tokio::test]
async fn everyone_may_do_exactly_what_the_matrix_says() {
    let issuer = tokens::Issuer::new();
    let declared = "[relations.secret]\nread = \"none\"\n[limits.posting]\nrate = \"1000/s\"\n";
    let server = Server::start(&format!("{}{declared}", issuer.config())).await;
    let admin = server.client();
    let mut keys = Vec::new();
    for role in ["read", "service"] {
        let made = admin.post("/v1/keys").json(&json!({"role": role})).status(201).await;
        keys.push(server.client_as(made["key"].as_str()));
    }
    let (nobody, user) = (server.client_as(None), server.client_as(Some(&tokens::user("alice"))));
    let callers = [
        ("a read key", &keys[0], "alice"),
        ("a service key", &keys[1], "alice"),
        ("the admin", &admin, "alice"),
        ("alice on herself", &user, "alice"),
        ("alice on bob", &user, "bob"),
    ];
    let mut walked = 0;
    for call in &CALLS {
        for (relation, policy) in RELATIONS {
            let what = format!("{} {} in {relation}", call.method, call.path);
            let (status, problem) = ask(&nobody, call, relation, "alice").await;
            assert_eq!((status, &problem["code"]), (401, &json!("unauthenticated")), "nobody: {what}");
            for ((who, client, subject), may) in callers.iter().zip(&call.may) {
                let (status, problem) = ask(client, call, relation, subject).await;
                let refused = problem["code"] == "forbidden" || problem["cause"] == "forbidden";
                assert!(status != 401, "{who}: {what}: {problem}");
                assert_eq!(!refused, allowed(*may, policy), "{who}: {what}: {status} {problem}");
                walked += 1;
            }
        }
    }
    assert_eq!(walked, 56 * 3 * 5);
}

#[tokio::test]
async fn with_dev_a_page_without_an_origin_may_do_exactly_what_the_matrix_says() {
    let declared = "[relations.secret]\nread = \"none\"\n[limits.posting]\nrate = \"1000/s\"\n";
    let server = Server::start_with(declared, &["--dev"], None).await;
    let nobody = server.client_as(None);
    for call in &CALLS {
        for (origin, may) in [("null", call.may[5]), ("http://localhost:3000", Yes)] {
            for (relation, _) in RELATIONS {
                let (status, problem) = ask_from(&nobody, call, relation, "alice", Some(origin)).await;
                let what = format!("{origin}: {} {} in {relation}: {status} {problem}", call.method, call.path);
                assert_eq!(status == 403, may == No, "{what}");
                if may == No {
                    assert!(problem["detail"].as_str().unwrap().contains("http://localhost"), "{what}");
                }
            }
        }
    }
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs"] {
        assert_eq!(nobody.get(path).header("origin", "null").send().await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn anyone_may_ask_for_health_and_the_contract() {
    let server = Server::start("").await;
    let nobody = server.client_as(None);
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs", "/docs/docs.js", "/docs/docs.css"] {
        assert_eq!(nobody.get(path).send().await.status, 200, "{path}");
    }
    // A credential that is wrong does not make it worse.
    assert_eq!(server.client_as(Some("nonsense")).get("/healthz").send().await.status, 200);
}

#[tokio::test]
async fn a_refused_write_writes_nothing() {
    let issuer = tokens::Issuer::new();
    let server = Server::start(&issuer.config()).await;
    let user = server.client_as(Some(&tokens::user("alice")));
    for call in CALLS.iter().filter(|call| call.may[4] == No && call.method != "GET") {
        ask(&user, call, "like", "bob").await;
    }
    let mixed = json!({"atomic": false, "commands": [
        {"op": "relate", "relation": "like", "object": "post:1", "subject": "bob"},
        {"op": "relate", "relation": "like", "object": "post:1", "subject": "alice"},
        {"op": "count", "counter": "views", "key": "post:1"},
        {"op": "observe", "unique": "dau", "key": "day", "members": ["alice"]},
        {"op": "score", "board": "points", "member": "alice", "by": 1},
        {"op": "attend", "sheet": "daily", "subject": "bob"},
        {"op": "attend", "sheet": "daily", "subject": "alice"},
    ]});
    let answer = user.post("/v1/batch").json(&mixed).ok().await;
    assert_eq!(answer["results"][0]["code"], "forbidden");
    assert_eq!(answer["results"][1]["changed"], true);
    for refused in 2..=5 {
        assert_eq!(answer["results"][refused]["code"], "forbidden", "{answer}");
    }
    assert_eq!(answer["results"][6]["present"], true);
    let admin = server.client();
    assert_eq!(admin.get("/v1/counters/views/post:1").ok().await["value"], 0);
    assert_eq!(admin.get("/v1/uniques/dau/day").ok().await["estimate"], 0);
    assert_eq!(admin.get("/v1/boards/points").ok().await["members"], 0);
    assert_eq!(admin.get("/v1/attendance/daily/today").ok().await["count"], 1);
    assert_eq!(server.client().subjects("like", "post:1").await, ["alice"]);
    assert_eq!(server.client().verified().await, 1);
}
