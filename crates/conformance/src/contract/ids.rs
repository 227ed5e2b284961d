//! Ids are opaque: whatever they hold, two that differ never meet.

use std::collections::BTreeSet;

use tally_core::rows::{EdgeKey, Side};
use tally_engine::Engine;

use crate::EngineFactory;
use crate::auditor::{assert_sound, edges};
use crate::driver::Hand;
use crate::sample::{batch, catalog, list, relate, unrelate};
use crate::stand::Stand;
use crate::universe::Universe;
use crate::walk;

/// What separators, patterns, quotes, slots, case, spaces and alphabets could confuse.
const TRICKY: [&str; 40] = [
    "_",
    "__",
    ":",
    "::",
    "/",
    "//",
    "%",
    "%2F",
    "%00",
    "\\0",
    "a",
    "ab",
    "b",
    "a_b",
    "a:b",
    "a/b",
    "a_",
    "_b",
    "a ",
    " a",
    "A",
    "*",
    "?",
    "[a]",
    "{a}",
    "{b}",
    "'",
    "\"",
    "`",
    "$1",
    ";--",
    "null",
    "0",
    "00",
    "é",
    "e\u{301}",
    "👍",
    "👍🏽",
    "\u{10ffff}",
    "\u{a0}",
];

async fn existing<E: Engine>(engine: &E, universe: &Universe) -> BTreeSet<EdgeKey> {
    edges(&universe.dump(engine).await).map(|(key, _)| key.clone()).collect()
}

/// Every second pair of all tricky ids is made, then a third of those is removed: what is there is
/// exactly what was made and not removed.
pub(super) async fn ids_that_look_alike_are_not_the_same<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let objects: Vec<String> = TRICKY.iter().map(|id| format!("post:{id}")).collect();
    let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
    let universe = Universe::new(&TRICKY, &objects, &["like"]);
    let mut hand = Hand::new(&*engine, &catalog);
    let all: Vec<EdgeKey> = universe.edges().collect();
    let made: Vec<&EdgeKey> = all.iter().step_by(2).collect();
    let removed: Vec<&EdgeKey> = made.iter().copied().step_by(3).collect();
    for some in made.chunks(100) {
        hand.run(batch(some.iter().map(|key| relate("like", key.object.as_str(), key.subject.as_str())))).await;
    }
    for some in removed.chunks(100) {
        hand.run(batch(some.iter().map(|key| unrelate("like", key.object.as_str(), key.subject.as_str())))).await;
    }
    stand.drain(&engine).await;
    let mut expected: BTreeSet<EdgeKey> = made.into_iter().cloned().collect();
    removed.into_iter().for_each(|key| {
        expected.remove(key);
    });
    assert_eq!(existing(&*engine, &universe).await, expected);
    assert_sound(&*engine, &universe).await;
}

pub(super) async fn ids_that_begin_alike_have_lists_of_their_own<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let mut hand = Hand::new(&*engine, &catalog);
    for (to, who) in [("post:1", "a"), ("post:10", "ab"), ("post:1:0", "a:b"), ("post:1 ", "a "), ("posts:1", "a/b")] {
        hand.run(relate("like", to, who)).await;
    }
    stand.drain(&engine).await;
    for (to, who) in [("post:1", "a"), ("post:10", "ab"), ("post:1:0", "a:b"), ("post:1 ", "a "), ("posts:1", "a/b")] {
        assert_eq!(walk::others(&*engine, &list(Side::Object, to, Some("like"), false)).await, [who]);
        assert_eq!(walk::others(&*engine, &list(Side::Object, to, None, false)).await, [who]);
        assert_eq!(walk::others(&*engine, &list(Side::Subject, who, Some("like"), false)).await, [to]);
        assert_eq!(walk::others(&*engine, &list(Side::Subject, who, None, false)).await, [to]);
    }
    assert_eq!(walk::others(&*engine, &list(Side::Object, "post:", None, false)).await, [""; 0]);
    assert_eq!(walk::others(&*engine, &list(Side::Subject, "a_", None, false)).await, [""; 0]);
}
