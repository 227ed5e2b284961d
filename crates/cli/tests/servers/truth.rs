//! Three servers write at once, one dies, the store goes away: counts equal edges, and nothing answered is lost.

use futures_util::future::join_all;

use crate::database::{On, on, servers, verified};
use crate::support::*;
use crate::writers::{CONFIG, Field, GREEDY, LIMIT, Writer, check, watch_the_limit};

const WRITERS: usize = 9;
/// Writes that are answered between one blow and the next.
const CALM: usize = 120;

on!(three_servers_keep_one_truth: postgres redis cluster);
async fn three_servers_keep_one_truth(on: On) {
    let (store, url) = on.own();
    let mut servers: [Server; 3] = servers(&url, CONFIG).await;
    let field = Field::new(&servers);
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    let writing = join_all(writers.iter_mut().map(|writer| writer.run(&field)));
    let blows = async {
        field.until_answered(CALM).await;
        servers[1].kill();
        field.until_answered(CALM).await;
        servers[1].restart().await;
        field.servers.borrow_mut()[1] = servers[1].client();
        field.until_answered(CALM).await;
        let store = store.struck().await;
        field.until_answered(CALM).await;
        field.over.set(true);
        store
    };
    let (_, (), _store) = tokio::join!(writing, watch_the_limit(&field), blows);
    assert!(field.again.get() > 0, "nobody noticed that something was away");
    for server in &servers {
        check(&server.client(), &writers).await;
        assert!(server.client().objects("favorite", GREEDY).await.len() <= LIMIT);
    }
    let edges = writers.iter().flat_map(|writer| writer.known.values()).filter(|active| **active).count();
    for server in &servers {
        assert_eq!(verified(&server.client()).await, edges as u64);
    }
}
