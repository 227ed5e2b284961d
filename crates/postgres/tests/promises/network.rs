//! A network that fails while news is on its way, and a host that is not there. What holds of any store is in the suite.

use tally_core::ObjectId;
use tally_engine::{Engine, News, Together, Topic};
use tally_testing::{Cut, Direction, Proxy, holds, once};

use crate::support::{Outsider, Store, shared, until, with_schema};

/// A place on the shared instance that is reached through a proxy, and the same without it.
pub(crate) fn proxied(more: &str) -> (Proxy, String, String) {
    let direct = shared(more);
    let (proxy, through) = Proxy::before(&direct).unwrap();
    (proxy, through, direct)
}

#[tokio::test(flavor = "multi_thread")]
async fn news_that_was_on_its_way_when_the_connection_broke_is_told_again() {
    let (proxy, url, direct) = proxied("");
    let (teller, listener) = (Store::open(&url).await, Store::open(&direct).await);
    let post = Topic::Counts(ObjectId::new("post:news").unwrap());
    listener.engine.watch(vec![post.clone()], true);
    let hear = async |wanted: News| {
        until("news comes", async || (listener.engine.news().await == wanted).then_some(())).await;
    };
    hear(News::of([post.clone()])).await;
    teller.engine.tell(Topic::Jobs);
    hear(News::of([Topic::Jobs])).await;
    proxy.cut_when(Cut::Before, once(|side, bytes| side == Direction::Request && holds(bytes, "post:news")));
    teller.engine.tell(post.clone());
    hear(News::of([post])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_not_there_is_unavailable() {
    let proxy = Proxy::start("127.0.0.1:1".parse().unwrap()).unwrap();
    proxy.cut();
    let url = with_schema(&format!("postgres://postgres@{}/postgres", proxy.address()), "&timeout_ms=500");
    let error = crate::support::engine(&url).prepare().await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("connecting to server"), "{error}");
}

/// A server that stood still for so long that it was taken for gone, while its connection held.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_taken_for_gone_says_again_what_is_watched_on_it() {
    let url = shared("");
    let listener = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    listener.engine.watch(vec![Topic::Counts(ObjectId::new("post:1").unwrap())], true);
    let is_watched = async || (outside.number("SELECT count(*) FROM watch").await == 1).then_some(());
    until("it is watched", is_watched).await;
    outside.run("WITH gone AS (DELETE FROM server) DELETE FROM watch").await;
    until("it is watched again", is_watched).await;
}
