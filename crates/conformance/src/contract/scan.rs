//! Lists of edges: their order, and how their pages hold together.

use tally_core::Command;
use tally_core::command::{Relate, Restore, Suspend, Sweep};
use tally_core::rows::{Edge, EdgeKey, Key, ListKey, Row, Side};
use tally_core::time::Stamp;
use tally_engine::{Engine, Place};

use crate::auditor::assert_sound;
use crate::driver::{Hand, write};
use crate::sample::{catalog, edge, edge_key, list, object, react, relate, subject, unrelate};
use crate::stand::Stand;
use crate::universe::Universe;
use crate::{EngineFactory, walk};

/// Writes edges as they are, with their totals.
async fn write_edges<E: Engine>(engine: &E, edges: Vec<(EdgeKey, Edge)>) {
    let mut totals = std::collections::BTreeMap::new();
    for (key, edge) in &edges {
        for total in key.totals(edge) {
            *totals.entry(total).or_insert(0) += 1;
        }
    }
    write(engine, edges.into_iter().map(|(key, edge)| (Key::Edge(key), Some(Row::Edge(edge)))), totals).await;
}

fn posts() -> ListKey {
    list(Side::Object, "post:1", Some("like"), false)
}

/// Imported edges may share a stamp; then the id across decides, byte by byte.
pub(super) async fn lists_are_newest_first_and_break_ties<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let stamps =
        [("m", 5), ("b", 7), ("a", 7), ("B", 7), ("é", 7), ("👍", 7), ("aa", 7), ("z", u64::MAX >> 1), ("y", 0)];
    let by_subject = stamps.map(|(who, at)| (edge_key("like", "post:1", who), edge(at)));
    let by_object = stamps.map(|(id, at)| (edge_key("like", &format!("post:{id}"), "alice"), edge(at)));
    write_edges(&*engine, by_subject.into_iter().chain(by_object).collect()).await;
    stand.drain(&engine).await;
    let order = ["z", "B", "a", "aa", "b", "é", "👍", "m", "y"];
    assert_eq!(walk::others(&*engine, &posts()).await, order);
    let objects = list(Side::Subject, "alice", Some("like"), false);
    assert_eq!(walk::others(&*engine, &objects).await, order.map(|id| format!("post:{id}")));
}

pub(super) async fn pages_of_every_size_make_up_the_list<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    // Three of each stamp, so that most pages end inside a tie.
    let edges: Vec<_> =
        (0..20_u64).map(|n| (edge_key("like", "post:1", &format!("s{n:02}")), edge(100 - n / 3))).collect();
    write_edges(&*engine, edges.clone()).await;
    stand.drain(&engine).await;
    for limit in 1..=21 {
        assert_eq!(walk::all(&*engine, &posts(), limit).await, edges, "pages of {limit}");
    }
    let (page, more) = walk::page(&*engine, &posts(), None, 20).await;
    assert!(page.len() == 20 && !more, "a page that ends with the list says so");
}

/// The row that a cursor names may itself go; the next page begins behind where it was.
pub(super) async fn deletions_between_pages_do_not_move_the_rest<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let mut hand = Hand::new(&*engine, &catalog);
    for who in ["a", "b", "c", "d", "e", "f", "g"] {
        hand.run(relate("like", "post:1", who)).await;
    }
    stand.drain(&engine).await;
    let (first, more) = walk::page(&*engine, &posts(), None, 3).await;
    assert_eq!(subjects(&first), ["g", "f", "e"]);
    assert!(more);
    let after = first.last().map(|(key, edge)| Place::of(&posts(), key, edge));
    for who in ["f", "e", "c"] {
        hand.run(unrelate("like", "post:1", who)).await;
    }
    stand.drain(&engine).await;
    let (rest, more) = walk::page(&*engine, &posts(), after, 3).await;
    assert_eq!(subjects(&rest), ["d", "b", "a"]);
    assert!(!more);
}

pub(super) async fn additions_between_pages_come_before_them<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let mut hand = Hand::new(&*engine, &catalog);
    for who in ["a", "b", "c", "d"] {
        hand.run(relate("like", "post:1", who)).await;
    }
    stand.drain(&engine).await;
    let (first, _) = walk::page(&*engine, &posts(), None, 2).await;
    assert_eq!(subjects(&first), ["d", "c"]);
    let after = first.last().map(|(key, edge)| Place::of(&posts(), key, edge));
    // One that is new, one that was seen and one that was to come are made anew.
    hand.run(relate("like", "post:1", "e")).await;
    for who in ["c", "b"] {
        hand.run(unrelate("like", "post:1", who)).await;
        hand.run(relate("like", "post:1", who)).await;
    }
    stand.drain(&engine).await;
    let (rest, _) = walk::page(&*engine, &posts(), after, 5).await;
    assert_eq!(subjects(&rest), ["a"]);
    assert_eq!(walk::others(&*engine, &posts()).await, ["b", "c", "e", "d", "a"]);
}

fn subjects(page: &[(EdgeKey, Edge)]) -> Vec<&str> {
    page.iter().map(|(key, _)| key.subject.as_str()).collect()
}

pub(super) async fn hidden_edges_stand_in_lists_of_their_own<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = Universe::new(&["alice", "bob"], &["post:1", "post:2"], &["like", "reaction"]);
    let mut hand = Hand::new(&*engine, &catalog);
    for (to, who) in [("post:1", "alice"), ("post:1", "bob"), ("post:2", "alice")] {
        hand.run(relate("like", to, who)).await;
        hand.run(react("reaction", to, who, "wow")).await;
    }
    let step = hand.step(Command::from(Suspend { subject: subject("alice") }));
    crate::driver::apply(&*engine, &catalog, &step).await;
    let mine: Vec<EdgeKey> = universe.edges().filter(|key| key.subject.as_str() == "alice").collect();
    let (job, before) = (step.call.command.job().expect("it begins a job"), Stamp(u64::MAX));
    hand.run(Command::from(Sweep { job, before, edges: mine.clone() })).await;
    stand.drain(&engine).await;
    let list = |side, id, hidden| list(side, id, Some("like"), hidden);
    assert_eq!(walk::others(&*engine, &list(Side::Object, "post:1", false)).await, ["bob"]);
    assert_eq!(walk::others(&*engine, &list(Side::Object, "post:1", true)).await, ["alice"]);
    assert_eq!(walk::others(&*engine, &list(Side::Subject, "alice", false)).await, [""; 0]);
    assert_eq!(walk::others(&*engine, &list(Side::Subject, "alice", true)).await, ["post:2", "post:1"]);
    assert_sound(&*engine, &universe).await;
    let step = hand.step(Command::from(Restore { subject: subject("alice") }));
    crate::driver::apply(&*engine, &catalog, &step).await;
    let job = step.call.command.job().expect("it begins a job");
    hand.run(Command::from(Sweep { job, before, edges: mine })).await;
    stand.drain(&engine).await;
    assert_eq!(walk::others(&*engine, &list(Side::Object, "post:1", false)).await, ["bob", "alice"]);
    assert_eq!(walk::others(&*engine, &list(Side::Subject, "alice", true)).await, [""; 0]);
    assert_sound(&*engine, &universe).await;
}

/// Names of relations that begin alike do not run into one another.
pub(super) async fn a_list_over_all_relations_goes_one_by_one<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let relations = ["b-a", "b", "a", "b_a", "ba", "b0"];
    let mut edges = Vec::new();
    for (n, relation) in (0_u64..).zip(relations) {
        for who in ["x", "y"] {
            edges.push((edge_key(relation, "post:1", who), edge(100 - n)));
        }
    }
    write_edges(&*engine, edges.clone()).await;
    stand.drain(&engine).await;
    let every = list(Side::Object, "post:1", None, false);
    edges.sort_by(|(a, _), (b, _)| a.relation.cmp(&b.relation).then(a.subject.cmp(&b.subject)));
    for limit in 1..=13 {
        assert_eq!(walk::all(&*engine, &every, limit).await, edges, "pages of {limit}");
    }
}

/// An edge that changes stands in its lists as it is now, and once.
pub(super) async fn a_list_follows_its_edges<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = Universe::new(&["alice"], &["post:1"], &["note", "reaction"]);
    let mut hand = Hand::new(&*engine, &catalog);
    for kind in ["like", "love", "love", "wow"] {
        hand.run(react("reaction", "post:1", "alice", kind)).await;
    }
    for text in ["a", "b"] {
        let (relation, meta) = (crate::sample::name("note"), crate::sample::meta(&serde_json::json!({"text": text})));
        let (object, subject) = (object("post:1"), subject("alice"));
        hand.run(Command::from(Relate { relation, object, subject, kind: None, meta: Some(meta) })).await;
    }
    stand.drain(&engine).await;
    assert_sound(&*engine, &universe).await;
    let found = walk::all(&*engine, &list(Side::Subject, "alice", None, false), 10).await;
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].1.meta.as_ref().map(|meta| meta["text"].clone()), Some("b".into()));
    assert_eq!(found[1].1.kind.as_ref().map(|kind| kind.as_str().to_owned()), Some("wow".into()));
}

pub(super) async fn empty_lists_are_empty<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = Universe::new(&["alice", "post:1"], &["post:1", "post:2"], &["like", "note"]);
    let mut hand = Hand::new(&*engine, &catalog);
    hand.run(relate("like", "post:1", "alice")).await;
    hand.run(unrelate("like", "post:1", "alice")).await;
    stand.drain(&engine).await;
    for list in universe.lists() {
        let after = Place::of(&list, &edge_key("like", "post:1", "alice"), &Edge { created: Stamp(1), ..edge(1) });
        assert_eq!(walk::page(&*engine, &list, None, 10).await, (Vec::new(), false), "{list:?}");
        assert_eq!(walk::page(&*engine, &list, Some(after), 10).await, (Vec::new(), false), "{list:?}");
    }
}
