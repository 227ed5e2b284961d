//! SIGTERM: what was accepted is answered, and what was answered is there.

use crate::load::{Writer, loaded};
use crate::support::raw::{Raw, parse};
use crate::support::*;

#[tokio::test]
async fn a_request_in_flight_is_answered_before_the_server_goes() {
    let mut server = Server::start("").await;
    let body = r#"{"meta":{"said":"late"}}"#;
    let head = format!(
        "PUT /v1/relations/like/post:1/alice HTTP/1.1\r\nhost: tally\r\nauthorization: Bearer {ADMIN_KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        body.len()
    );
    let mut raw = Raw::connect(&server).await;
    raw.send(head).await;
    let goes_on = raw.read_some().await;
    assert!(goes_on.starts_with(b"HTTP/1.1 100"), "the request is in the server's hands");
    server.terminate();
    until("no new connections are taken", async || {
        let refused = tokio::net::TcpStream::connect(server.address()).await.is_err();
        refused.then_some(())
    })
    .await;
    raw.send(body).await;
    let answer = parse(&raw.rest().await);
    assert_eq!((answer.status, &answer.json()["changed"]), (200, &json!(true)), "{answer:?}");
    assert!(server.ended().await.success());
    server.restart().await;
    assert_eq!(server.client().subjects("like", "post:1").await, ["alice"]);
}

#[tokio::test]
async fn stopping_under_load_loses_nothing_that_was_answered() {
    let mut server = Server::start("").await;
    let mut writers: Vec<Writer> = (0..6).map(Writer::new).collect();
    for _ in 0..3 {
        loaded(&mut server, &mut writers, 60, async |server| {
            server.stop().await;
        })
        .await;
    }
}
