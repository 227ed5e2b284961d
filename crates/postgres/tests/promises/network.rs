//! A network that fails: nothing answered is lost, nothing is done twice, and it goes on by itself.

use std::sync::atomic::{AtomicBool, Ordering};

use tally_core::command::{Batch, Command, Relate};
use tally_core::reply::Reply;
use tally_core::{ObjectId, relation};
use tally_engine::{Engine, News, Together, Topic};
use tally_testing::{Cut, Direction, Proxy};

use crate::ledger::Hands;
use crate::support::{Outsider, Store, relate, shared, unavailable, until, with_schema};

/// A place on the shared instance that is reached through a proxy, and the same without it.
pub(crate) fn proxied(more: &str) -> (Proxy, String, String) {
    let direct = shared(more);
    let (front, back) = direct.split_once('@').unwrap();
    let (address, path) = back.split_once('/').unwrap();
    let proxy = Proxy::start(address.parse().unwrap()).unwrap();
    let through = format!("{front}@{}/{path}", proxy.address());
    (proxy, through, direct)
}

pub(crate) fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|part| part == word.as_bytes())
}

/// Says yes once.
pub(crate) fn once(
    matches: impl Fn(Direction, &[u8]) -> bool + Send + Sync,
) -> impl Fn(Direction, &[u8]) -> bool + Send + Sync {
    let done = AtomicBool::new(false);
    move |direction, bytes| matches(direction, bytes) && !done.swap(true, Ordering::SeqCst)
}

/// More than the network carries in one piece.
fn long_batch(round: usize) -> Command {
    let meta = serde_json::json!({"text": "x".repeat(10_000)});
    let meta = Some(std::sync::Arc::new(meta.as_object().unwrap().clone()));
    let commands = (0..20).map(|n| match relate("like", "post:1", &format!("fan-{round}-{n}")) {
        Command::Relation(relation::Command::Relate(Relate { relation, object, subject, kind, .. })) => {
            Command::from(Relate { relation, object, subject, kind, meta: meta.clone() })
        }
        other => other,
    });
    Command::from(Batch { atomic: true, commands: commands.collect() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_during_a_commit_costs_no_answer() {
    let (proxy, url, direct) = proxied("");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&direct).await;
    store.like("post:1", "before").await.unwrap();
    let mut count = 1;
    for (round, (cut, side, word)) in [
        (Cut::Before, Direction::Request, "BEGIN"),
        (Cut::After, Direction::Request, "BEGIN"),
        (Cut::Before, Direction::Request, "COMMIT"),
        (Cut::After, Direction::Request, "COMMIT"),
        (Cut::Before, Direction::Answer, "COMMIT"),
        (Cut::After, Direction::Answer, "COMMIT"),
    ]
    .into_iter()
    .enumerate()
    {
        for long in [false, true] {
            let commits = outside.commits().await;
            proxy.cut_when(cut, once(move |direction, bytes| direction == side && holds(bytes, word)));
            let replies = if long {
                match store.apply(long_batch(round)).await.unwrap() {
                    Reply::Batch(replies) => replies.into_iter().map(Result::unwrap).collect(),
                    other => panic!("{other:?}"),
                }
            } else {
                vec![Reply::Relation(store.like("post:1", &format!("fan-{round}")).await.unwrap())]
            };
            proxy.pass();
            count += i64::try_from(replies.len()).unwrap();
            for reply in &replies {
                let edge = crate::support::edge(reply.clone());
                assert!(edge.changed && edge.active, "{cut:?} {side:?} {word} {long}");
            }
            let last = crate::support::edge(replies.last().unwrap().clone());
            assert_eq!(last.count, count, "{cut:?} {side:?} {word} {long}");
            assert_eq!(outside.commits().await, commits + 1, "{cut:?} {side:?} {word} {long}: committed once");
        }
    }
    assert_eq!(store.assert_sound().await, count.unsigned_abs());
    assert!(outside.number("SELECT count(*) FROM lane WHERE fenced").await >= 6, "lost answers were looked up");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_failing_under_load_is_survived() {
    let (proxy, url, _) = proxied("&timeout_ms=500");
    let store = Store::open(&url).await;
    let hands = Hands::on(&store);
    hands.until_answered(50).await;
    for _ in 0..3 {
        proxy.cut();
        hands.until_failed().await;
        proxy.pass();
        hands.until_answered(50).await;
    }
    proxy.drop_answers();
    hands.until_failed().await;
    proxy.pass();
    hands.until_answered(50).await;
    for (cut, side) in [
        (Cut::Before, Direction::Request),
        (Cut::After, Direction::Request),
        (Cut::Before, Direction::Answer),
        (Cut::After, Direction::Answer),
    ] {
        let seen = std::sync::atomic::AtomicUsize::new(0);
        // Every third message, whatever is in it.
        proxy.cut_when(cut, move |direction, _| {
            direction == side && seen.fetch_add(1, Ordering::SeqCst).is_multiple_of(3)
        });
        hands.until_failed().await;
        proxy.pass();
        hands.until_answered(50).await;
    }
    proxy.delay(std::time::Duration::from_millis(20));
    hands.until_answered(50).await;
    proxy.pass();
    hands.check(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_said_to_be_one_and_ends() {
    let (proxy, url, _) = proxied("&timeout_ms=500");
    let store = Store::open(&url).await;
    store.like("post:1", "before").await.unwrap();
    let hands = Hands::on(&store);
    hands.until_answered(20).await;
    proxy.hang();
    hands.until_failed().await;
    let why = unavailable(store.like("post:1", "alice").await);
    assert!(why.contains("PostgreSQL"), "{why}");
    let why = store.count("post:1").await.unwrap_err();
    assert!(why.is_transient(), "{why}");
    assert!(store.engine.ping().await.unwrap_err().is_transient());
    proxy.pass();
    hands.until_answered(50).await;
    hands.check(&store).await;
    assert!(!store.like("post:1", "before").await.unwrap().changed, "what was answered is there");
    until("it is well again", async || store.engine.ping().await.ok()).await;
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
