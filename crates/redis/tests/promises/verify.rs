//! The recount next to servers that write: it finds what is wrong, and nothing that is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tally_core::command::{Batch, Command};
use tally_core::rows::{EdgeKey, TotalKey};
use tally_core::{ObjectId, SubjectId};
use tally_engine::{Engine, Finding, Mend};
use tokio::task::JoinSet;

use crate::mend::write;
use crate::support::{KINDS, Store, name, react, relate, shared, shared_cluster, toggle, unrelate};

/// What an audit finds while others write.
async fn found(store: &Store) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut tell = |finding: Finding| {
        if !matches!(finding, Finding::Progress(_)) {
            found.push(finding);
        }
    };
    store.engine.audit(&mut tell).await.unwrap();
    found
}

/// Reactions by as many, in few batches.
async fn react_all(store: &Store, to: &str, number: usize) {
    let all: Vec<Command> = (0..number).map(|who| react(to, &format!("fan-{who}"), KINDS[who % 3])).collect();
    for commands in all.chunks(500) {
        store.apply(Command::from(Batch { atomic: false, commands: commands.to_vec() })).await.unwrap();
    }
}

/// Likes and reactions that come, go and change, until it is dropped.
struct Load(Arc<AtomicBool>, JoinSet<()>);

impl Load {
    fn on(store: &Store, posts: &'static [&'static str]) -> Self {
        let (ended, mut hands) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for hand in 0..6_usize {
            let (runner, ended) = (store.runner.clone(), ended.clone());
            hands.spawn(async move {
                for turn in hand.. {
                    if ended.load(Ordering::SeqCst) {
                        break;
                    }
                    let (to, who) = (posts[turn % posts.len()], format!("hand-{}", hand / 2));
                    let command = match turn % 5 {
                        0 => unrelate("reaction", to, &who),
                        1 | 2 => toggle(to, &who),
                        _ => react(to, &who, KINDS[turn / 5 % 3]),
                    };
                    drop(runner.apply(tally_core::command::Call::system(command)).await.unwrap());
                }
            });
        }
        Self(ended, hands)
    }

    async fn end(self) {
        self.0.store(true, Ordering::SeqCst);
        self.1.join_all().await;
    }
}

/// A sound store stays sound in the eyes of who looks; what is off by two is off by two, whoever writes meanwhile.
async fn finds_what_is_wrong_and_nothing_else(url: &str) {
    let store = Store::open(url).await;
    // One that is counted at once, and one that is counted part by part.
    react_all(&store, "post:long", 6_000).await;
    let posts: &[&str] = &["post:short", "post:long"];
    let load = Load::on(&store, posts);
    for _ in 0..12 {
        assert_eq!(found(&store).await, []);
    }
    let prefix = store.engine.options().prefix.clone();
    for post in posts {
        write(url, &["HINCRBY", &format!("{prefix}:o:{{{post}}}:reaction:kinds"), "wow", "2"]).await;
    }
    for _ in 0..3 {
        let mut drifts = found(&store).await;
        drifts.sort_by_key(|finding| format!("{finding:?}"));
        assert_eq!(drifts.len(), 2, "{drifts:?}");
        for (finding, post) in drifts.iter().zip(["post:long", "post:short"]) {
            let Finding::Drift { total, stored, counted } = finding else { panic!("{finding:?}") };
            let (object, relation) = (ObjectId::new(post).unwrap(), name("reaction"));
            assert_eq!(*total, TotalKey::Kind { object, relation, kind: name("wow") });
            assert_eq!(stored - counted, 2, "{drifts:?}");
        }
    }
    load.end().await;
    for post in posts {
        write(url, &["HINCRBY", &format!("{prefix}:o:{{{post}}}:reaction:kinds"), "wow", "-2"]).await;
    }
    store.assert_sound().await;
    store.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recount_under_load_finds_what_is_wrong_and_nothing_else() {
    finds_what_is_wrong_and_nothing_else(&shared("")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recount_of_a_cluster_under_load_finds_what_is_wrong_and_nothing_else() {
    finds_what_is_wrong_and_nothing_else(&shared_cluster("")).await;
}

/// As many as are looked at together, and twice as many; and one that is empty when it is looked at.
#[tokio::test(flavor = "multi_thread")]
async fn lists_of_any_length_are_recounted() {
    let store = Store::open(&shared("")).await;
    let mut edges = 0;
    for (to, number) in [("post:1", 1_000), ("post:2", 2_000), ("post:4", 4_000)] {
        let all: Vec<Command> = (0..number).map(|who| relate("like", to, &format!("fan-{who}"))).collect();
        for commands in all.chunks(500) {
            store.apply(Command::from(Batch { atomic: false, commands: commands.to_vec() })).await.unwrap();
        }
        edges += number;
    }
    assert_eq!(store.assert_sound().await, edges);
}

async fn an_edge_is_shown_or_hidden(url: &str) {
    let store = Store::open(url).await;
    for who in ["ann", "bob"] {
        store.like("post:1", who).await.unwrap();
    }
    let prefix = store.engine.options().prefix.clone();
    // On both sides, so that they agree.
    write(url, &["ZADD", &format!("{prefix}:o:{{post:1}}:like:hidden"), "-5", "ann"]).await;
    write(url, &["ZADD", &format!("{prefix}:s:{{ann}}:like:hidden"), "-5", "post:1"]).await;
    let found = store.findings().await.0;
    assert!(!found.is_empty());
    for finding in found {
        let Finding::Stray { found, edge: Some(edge) } = finding else { panic!("{finding:?}") };
        assert!(found.contains("both shown and hidden"), "{found}");
        let (object, subject) = (ObjectId::new("post:1").unwrap(), SubjectId::new("ann").unwrap());
        assert_eq!(edge, EdgeKey { object, relation: name("like"), subject });
        assert!(store.engine.mend(&Mend::Lists(edge)).await.unwrap());
    }
    assert_eq!(store.assert_sound().await, 2);
    assert!(store.like("post:1", "ann").await.unwrap().active);
    store.stop().await;
}

#[tokio::test]
async fn an_edge_that_is_both_shown_and_hidden_is_found_and_mended() {
    an_edge_is_shown_or_hidden(&shared("")).await;
}

#[tokio::test]
async fn an_edge_that_is_both_shown_and_hidden_is_found_and_mended_on_a_cluster() {
    an_edge_is_shown_or_hidden(&shared_cluster("")).await;
}
