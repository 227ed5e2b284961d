//! An idempotency key means once, over all servers.

use futures_util::future::join_all;

use crate::database::{On, on, servers};
use crate::support::*;

on!(a_key_sent_to_every_server_has_one_effect_and_one_answer: postgres redis cluster);
async fn a_key_sent_to_every_server_has_one_effect_and_one_answer(on: On) {
    const TIMES: usize = 50;
    let servers: [Server; 3] = servers(&on.new_store(), "").await;
    let clients: Vec<Client> = servers.iter().map(Server::client).collect();
    let path = format!("{}/toggle", edge("like", "post:1", "alice"));
    for round in 0..5 {
        let key = format!("round-{round}");
        let sending = (0..TIMES).map(|n| clients[n % 3].post(&path).header("idempotency-key", &key).send());
        let answers = join_all(sending).await;
        let first = answers[0].json();
        assert_eq!((answers[0].status, &first["changed"]), (200, &json!(true)), "{first}");
        for answer in &answers {
            assert_eq!((answer.status, answer.json()), (200, first.clone()), "{}", answer.text());
        }
        let fresh = answers.iter().filter(|answer| answer.header("idempotent-replayed").is_none()).count();
        assert_eq!(fresh, 1, "one of them did it");
        for client in &clients {
            assert_eq!(client.count("like", "post:1").await, i64::from(round % 2 == 0));
        }
    }
    assert_eq!(clients[0].verified().await, 1);
}
