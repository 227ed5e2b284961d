//! What a recount finds is put right: an edge that stands on one side alone.

use tally_core::rows::{ListKey, Side};
use tally_engine::{Engine, Finding, Mend, Range};

use crate::support::{Store, name, shared, shared_cluster};

/// Writes past Tally, as nobody should.
pub(crate) async fn write(url: &str, words: &[&str]) {
    let mut command = redis::Cmd::new();
    words.iter().for_each(|word| _ = command.arg(word));
    let (base, _) = url.split_once('?').unwrap();
    let changed: i64 = match base.strip_prefix("redis+cluster://") {
        Some(hosts) => {
            let nodes = hosts.split(',').map(|host| format!("redis://{host}"));
            let client = redis::cluster::ClusterClient::new(nodes).unwrap();
            command.query_async(&mut client.get_async_connection().await.unwrap()).await.unwrap()
        }
        None => {
            let client = redis::Client::open(base).unwrap();
            command.query_async(&mut client.get_multiplexed_async_connection().await.unwrap()).await.unwrap()
        }
    };
    assert!(changed >= 0);
}

/// Takes away one side of a like, makes one side of another, and mends both.
async fn both_sides_agree_again(url: &str) {
    let store = Store::open(url).await;
    for who in ["ann", "bob"] {
        store.like("post:1", who).await.unwrap();
    }
    let prefix = store.engine.options().prefix.clone();
    write(url, &["ZREM", &format!("{prefix}:s:{{ann}}:like"), "post:1"]).await;
    write(url, &["ZADD", &format!("{prefix}:s:{{cid}}:like"), "-5", "post:1"]).await;
    write(url, &["ZADD", &format!("{prefix}:s:{{bob}}:like"), "-5", "post:1"]).await;
    let (found, edges) = store.findings().await;
    assert_eq!(edges, 2, "the object's side counts");
    let mut strays = std::collections::BTreeSet::new();
    for finding in &found {
        let Finding::Stray { edge: Some(edge), .. } = finding else { panic!("{finding:?}") };
        strays.insert(edge.clone());
    }
    let who: Vec<&str> = strays.iter().map(|edge| edge.subject.as_str()).collect();
    assert_eq!(who, ["ann", "bob", "cid"]);
    for edge in &strays {
        assert!(store.engine.mend(&Mend::Lists(edge.clone())).await.unwrap());
    }
    assert_eq!(store.assert_sound().await, 2);
    for (who, likes) in [("ann", 1), ("bob", 1), ("cid", 0)] {
        let (side, relation) = (Side::Subject, Some(name("like")));
        let list = ListKey { side, id: who.into(), relation, hidden: false };
        let range = Range::List { list, after: None };
        assert_eq!(store.engine.scan(&range, 10).await.unwrap().items.len(), likes, "{who}");
    }
    store.stop().await;
}

#[tokio::test]
async fn an_edge_on_one_side_alone_is_mended() {
    both_sides_agree_again(&shared("")).await;
}

#[tokio::test]
async fn an_edge_on_one_side_alone_is_mended_on_a_cluster() {
    both_sides_agree_again(&shared_cluster("")).await;
}
