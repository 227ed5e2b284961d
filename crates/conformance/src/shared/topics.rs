//! What servers tell each other reaches those who watch it.

use std::collections::BTreeSet;

use tally_engine::{Engine, News, Together, Topic};

use crate::EngineFactory;
use crate::sample::{name, object};
use crate::stand::Stand;

fn counts(id: &str) -> Topic {
    Topic::Counts(object(id))
}

/// Hears until these were told, each by its name; gives all that was heard.
async fn hear<E: Engine>(engine: &E, wanted: &[Topic]) -> BTreeSet<Topic> {
    let mut heard = BTreeSet::new();
    while !wanted.iter().all(|topic| heard.contains(topic)) {
        match engine.news().await {
            News::Of(topics) => heard.extend(topics),
            // A connection has begun.
            News::Anything => {}
        }
    }
    heard
}

pub(super) async fn a_topic_is_told_to_those_who_watch_it<F: EngineFactory>(stand: Stand<F>) {
    if !stand.servers() {
        return;
    }
    let (listener, teller) = (stand.open().await, stand.open().await);
    let (watched, other, odd) = (counts("post:1"), counts("post:2"), counts("post:keys"));
    let room = Topic::Room(name("due"));
    listener.watch(vec![watched.clone(), odd.clone(), room.clone()], true);
    // What is watched is told once when all know of it.
    hear(&*listener, &[watched.clone(), odd.clone(), room.clone()]).await;
    for topic in [&other, &watched, &Topic::Keys, &odd, &room] {
        teller.tell(topic.clone());
    }
    let first = hear(&*listener, &[watched.clone(), Topic::Keys, odd.clone(), room]).await;
    assert!(!first.contains(&other), "nobody watches {other}");
    // Who watches no more is not told, and others are.
    listener.watch(vec![odd.clone()], false);
    listener.watch(vec![other.clone()], true);
    hear(&*listener, std::slice::from_ref(&other)).await;
    for topic in [&other, &watched, &Topic::Jobs, &Topic::Due] {
        teller.tell(topic.clone());
    }
    hear(&*listener, &[other, watched, Topic::Jobs, Topic::Due]).await;
    for engine in [listener, teller] {
        engine.close().await;
    }
}
