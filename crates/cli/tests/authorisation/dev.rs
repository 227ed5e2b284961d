//! Authentication off: on loopback only, said aloud, and never by surprise.

use crate::support::*;

#[tokio::test]
async fn dev_lets_everyone_do_everything_and_says_so() {
    let server = Server::start_with("", &["--dev"], None).await;
    let nobody = server.client_as(None);
    assert_eq!(nobody.like("post:1", "alice").await["changed"], true);
    assert_eq!(nobody.verified().await, 1);
    assert!(server.log().contains("AUTHENTICATION IS OFF"), "{}", server.log());
}

#[tokio::test]
async fn dev_is_refused_where_others_can_reach_it() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let words = refused_start(&["--dev", "--listen", listen]).await;
        assert!(words.contains("dev") && words.contains("127.0.0.1"), "{words}");
    }
}

#[tokio::test]
async fn without_dev_nobody_gets_in() {
    let server = Server::start("").await;
    server.client_as(None).put(&edge("like", "post:1", "alice")).problem(401, "unauthenticated").await;
    assert!(!server.log().contains("AUTHENTICATION IS OFF"));
}
