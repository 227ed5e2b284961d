//! What happens below the requests: sizes, slowness, old protocols, several requests at once.

use crate::support::raw::{Raw, exchange, parse};
use crate::support::*;

fn head(method: &str, path: &str, more: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: tally\r\nauthorization: Bearer {ADMIN_KEY}\r\n{more}\r\n")
}

const LIKE: &str = "/v1/relations/like/post:1/alice";
const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn a_body_that_says_it_is_too_large_is_refused_before_it_is_sent() {
    let server = Server::start("").await;
    for (method, path, bytes) in [("PUT", LIKE, (1 << 20) + 1), ("POST", "/v1/batch", (8 << 20) + 1)] {
        let request = head(method, path, &format!("{JSON}content-length: {bytes}\r\nconnection: close\r\n"));
        exchange(&server, request).await.problem(413, "too_large");
    }
    let fits = format!("{{{}}}", " ".repeat((1 << 20) - 2));
    assert_eq!(server.client().put(LIKE).body("application/json", fits).send().await.status, 200);
}

#[tokio::test]
async fn a_chunked_body_is_cut_at_the_same_limit() {
    let server = Server::start("[bounds]\nbody_bytes_max = 4096\nbatch_bytes_max = 8192\n").await;
    for (method, path, bytes_max) in [("PUT", LIKE, 4096), ("POST", "/v1/batch", 8192)] {
        let mut raw = Raw::connect(&server).await;
        raw.send(head(method, path, &format!("{JSON}transfer-encoding: chunked\r\n"))).await;
        let chunk = format!("400\r\n{}\r\n", " ".repeat(1024));
        for _ in 0..bytes_max / 1024 {
            raw.send(&chunk).await;
        }
        // One byte more, of a chunk that never ends; the answer comes all the same.
        raw.send("400\r\nx").await;
        parse(&raw.read_some().await).problem(413, "too_large");
    }
    let chunked = head("PUT", LIKE, &format!("{JSON}transfer-encoding: chunked\r\nconnection: close\r\n"));
    let small = exchange(&server, format!("{chunked}2\r\n{{}}\r\n0\r\n\r\n")).await;
    assert_eq!(small.status, 200, "{small:?}");
}

#[tokio::test]
async fn headers_that_are_too_large_or_too_many_are_refused_and_harm_nobody() {
    let server = Server::start("[bounds]\nheader_bytes_max = 16384\n").await;
    let large = format!("x-large: {}\r\n", "x".repeat(2 << 20));
    let many: String = (0..5_000).map(|n| format!("x-{n}: 1\r\n")).collect();
    let long_path = format!("/v1/relations/like/post:{}", "x".repeat(1 << 20));
    for request in [head("GET", "/healthz", &large), head("GET", "/healthz", &many), head("GET", &long_path, "")] {
        let mut raw = Raw::connect(&server).await;
        raw.send(request).await;
        let bytes = raw.rest().await;
        // The server may hang up while the rest is still on its way, and the answer is lost with it.
        if !bytes.is_empty() {
            assert!([400, 414, 431].contains(&parse(&bytes).status), "{:?}", parse(&bytes));
        }
    }
    server.client().get("/healthz").ok().await;
}

#[tokio::test]
async fn a_client_that_is_slow_with_its_headers_is_cut() {
    let server = Server::start("[bounds]\nheader_read_timeout_ms = 200\nidle_timeout_ms = 200\n").await;
    let mut slow = Raw::connect(&server).await;
    slow.send("GET /healthz HTTP/1.1\r\nhost: ta").await;
    let silent = Raw::connect(&server).await;
    let mut idle = Raw::connect(&server).await;
    idle.send(head("GET", "/healthz", "")).await;
    assert_eq!(parse(&idle.read_some().await).status, 200);
    let (slow, silent, idle) = tokio::join!(slow.rest(), silent.rest(), idle.rest());
    for bytes in [slow, silent, idle] {
        assert!(bytes.is_empty() || parse(&bytes).status == 400, "{:?}", String::from_utf8_lossy(&bytes));
    }
    server.client().get("/healthz").ok().await;
}

#[tokio::test]
async fn a_body_that_never_ends_runs_into_the_time_limit() {
    let server = Server::start("[bounds]\nrequest_timeout_ms = 200\n").await;
    let mut raw = Raw::connect(&server).await;
    raw.send(head("PUT", LIKE, &format!("{JSON}content-length: 100\r\nconnection: close\r\n"))).await;
    raw.send("{").await;
    parse(&raw.rest().await).problem(400, "bad_request");
    let mut raw = Raw::connect(&server).await;
    raw.send(head("POST", "/v1/batch", &format!("{JSON}transfer-encoding: chunked\r\n"))).await;
    raw.send("1\r\n{\r\n").await;
    parse(&raw.rest().await).problem(400, "bad_request");
    assert_eq!(server.client().count("like", "post:1").await, 0);
}

#[tokio::test]
async fn a_client_that_hangs_up_in_the_middle_harms_nobody() {
    let server = Server::start("").await;
    for part in ["", "PUT", "PUT /v1/relations/like", &head("PUT", LIKE, &format!("{JSON}content-length: 100\r\n"))] {
        let mut raw = Raw::connect(&server).await;
        raw.send(part).await;
        drop(raw);
    }
    assert_eq!(server.client().like("post:1", "alice").await["changed"], true);
}

#[tokio::test]
async fn http_1_0_is_answered() {
    let server = Server::start("").await;
    let answer = exchange(&server, format!("PUT {LIKE} HTTP/1.0\r\nauthorization: Bearer {ADMIN_KEY}\r\n\r\n")).await;
    assert_eq!((answer.status, &answer.json()["changed"]), (200, &json!(true)), "{answer:?}");
}

#[tokio::test]
async fn http_2_is_answered() {
    let server = Server::start("").await;
    let stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let executor = hyper_util::rt::TokioExecutor::new();
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let mut ask = async |method: &str, path: &str| {
        let request = hyper::Request::builder()
            .method(method)
            .uri(format!("http://tally{path}"))
            .header("authorization", format!("Bearer {ADMIN_KEY}"))
            .body(http_body_util::Empty::<&[u8]>::new())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    assert_eq!(ask("PUT", LIKE).await.1["changed"], true);
    assert_eq!(ask("GET", "/v1/relations/like/post:1").await, (200, json!({"count": 1})));
    assert_eq!(ask("GET", "/nowhere").await.1["code"], "not_found");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start("").await;
    let mut requests: String =
        (0..20).map(|n| head("PUT", &format!("/v1/relations/like/post:1/fan-{n}"), "content-length: 0\r\n")).collect();
    requests += &head("GET", "/v1/relations/like/post:1", "connection: close\r\n");
    let mut raw = Raw::connect(&server).await;
    raw.send(requests).await;
    let text = String::from_utf8(raw.rest().await).unwrap();
    let subjects: Vec<&str> =
        text.split("\"subject\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(subjects, (0..20).map(|n| format!("fan-{n}")).collect::<Vec<_>>());
    assert_eq!(text.matches("HTTP/1.1 200").count(), 21);
    assert!(text.ends_with("{\"count\":20}"), "{text}");
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let server = Server::start("").await;
    let client = server.client();
    for path in ["/healthz", "/openapi.json", "/v1/relations/like/post:1"] {
        let answer = client.request("HEAD".parse().unwrap(), path).send().await;
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{path}");
        let length: usize = answer.header("content-length").unwrap().parse().unwrap();
        assert_eq!(length, client.get(path).send().await.body.len(), "{path}");
    }
    let missing = client.request("HEAD".parse().unwrap(), "/nowhere").send().await;
    assert_eq!((missing.status, missing.body.len()), (404, 0));
}

#[tokio::test]
async fn what_is_not_http_is_refused_and_harms_nobody() {
    let server = Server::start("").await;
    let junk: [&[u8]; 6] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"HELO tally\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: tally\r\n\r\n",
        b"PUT / HTTP/1.1\r\nhost: tally\r\ncontent-length: -5\r\n\r\n",
    ];
    for bytes in junk {
        let mut raw = Raw::connect(&server).await;
        raw.send(bytes).await;
        tokio::io::AsyncWriteExt::shutdown(&mut raw.0).await.unwrap();
        let answer = raw.rest().await;
        assert!(answer.is_empty() || parse(&answer).status == 400, "{:?}", String::from_utf8_lossy(&answer));
    }
    let both = head("PUT", LIKE, "content-length: 2\r\ntransfer-encoding: chunked\r\nconnection: close\r\n");
    // Two lengths are how requests are smuggled past a proxy: one of them rules, or it is refused.
    let answer = exchange(&server, format!("{both}{JSON}0\r\n\r\n")).await;
    assert!([200, 400].contains(&answer.status), "{answer:?}");
    assert!(!server.log().contains("panicked"), "{}", server.log());
    server.client().get("/healthz").ok().await;
}
