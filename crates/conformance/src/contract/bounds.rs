//! What the limits allow, every engine takes.

use serde_json::json;
use tally_core::Command;
use tally_core::command::{Forget, PutObject, Relate, Sweep};
use tally_core::limits::{ATOMIC_COMMANDS_MAX, ID_BYTES_MAX, META_BYTES_MAX, NAME_BYTES_MAX, TYPE_BYTES_MAX};
use tally_core::reply::Reply;
use tally_core::rows::{Key, Row};
use tally_core::time::Stamp;
use tally_engine::Engine;

use crate::EngineFactory;
use crate::auditor::assert_sound;
use crate::driver::{Hand, apply, write};
use crate::sample::{batch, catalog, edge, edge_key, meta, name, object, relate, subject, total_of};
use crate::stand::Stand;
use crate::universe::Universe;

/// The longest ids there are, two of each that differ only in their last byte.
pub(super) async fn the_longest_ids_fit<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let ends = ["a", "b"];
    let subjects = ends.map(|end| format!("{}{end}", "s".repeat(ID_BYTES_MAX - 1)));
    let objects = ends.map(|end| format!("{}:{}{end}", "t".repeat(TYPE_BYTES_MAX), "👍".repeat(63) + "xyz"));
    let relations = ends.map(|end| format!("{}{end}", "r".repeat(NAME_BYTES_MAX - 1)));
    let universe = Universe::new(
        &subjects.each_ref().map(String::as_str),
        &objects.each_ref().map(String::as_str),
        &relations.each_ref().map(String::as_str),
    );
    let mut adds = std::collections::BTreeMap::new();
    let mut rows = Vec::new();
    for (n, key) in (1..).zip(universe.edges()) {
        for total in key.totals(&edge(n)) {
            *adds.entry(total).or_insert(0) += 1;
        }
        rows.push((Key::Edge(key), Some(Row::Edge(edge(n)))));
    }
    assert_eq!(rows.len(), 8);
    write(&*engine, rows, adds).await;
    let engine = stand.reopen(engine).await;
    stand.drain(&engine).await;
    assert_eq!(universe.dump(&*engine).await.rows.len(), 8);
    assert_sound(&*engine, &universe).await;
}

pub(super) async fn the_largest_meta_fits<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = Universe::new(&["alice"], &["post:1"], &["note"]);
    let mut hand = Hand::new(&*engine, &catalog);
    for letter in ["x", "y"] {
        let large = meta(&json!({"text": letter.repeat(META_BYTES_MAX - r#"{"text":""}"#.len())}));
        let (relation, object, subject) = (name("note"), object("post:1"), subject("alice"));
        hand.run(Command::from(PutObject { object: object.clone(), status: None, attributes: large.clone() })).await;
        hand.run(Command::from(Relate { relation, object, subject, kind: None, meta: Some(large) })).await;
    }
    stand.drain(&engine).await;
    assert_sound(&*engine, &universe).await;
    let engine = stand.reopen(engine).await;
    let dump = universe.dump(&*engine).await;
    match &dump.rows[&Key::Edge(edge_key("note", "post:1", "alice"))] {
        Row::Edge(edge) => {
            let text = edge.meta.as_ref().expect("it has meta")["text"].as_str().expect("a text").len();
            assert_eq!(text, META_BYTES_MAX - r#"{"text":""}"#.len());
        }
        other => panic!("{other:?}"),
    }
}

/// As many commands as one commit may hold, each with the longest subject, and a step of a job over
/// all of them.
pub(super) async fn the_largest_batch_fits<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let mut hand = Hand::new(&*engine, &catalog);
    let objects: Vec<String> = (0..ATOMIC_COMMANDS_MAX).map(|n| format!("post:{n:0>256}")).collect();
    let who = "s".repeat(ID_BYTES_MAX);
    let decided = hand.run(batch(objects.iter().map(|to| relate("like", to, &who)))).await;
    match decided.reply {
        Ok(Reply::Batch(replies)) => assert!(replies.len() == ATOMIC_COMMANDS_MAX && replies.iter().all(Result::is_ok)),
        other => panic!("{other:?}"),
    }
    let wants = tally_core::Wants::totals(vec![total_of("like", &who)]);
    assert_eq!(engine.load(&wants).await.expect("a load works").totals, [ATOMIC_COMMANDS_MAX as i64]);
    let step = hand.step(Command::from(Forget { subject: subject(&who) }));
    apply(&*engine, &catalog, &step).await;
    let edges = objects.iter().map(|to| edge_key("like", to, &who)).collect();
    let job = step.call.command.job().expect("it begins a job");
    hand.run(Command::from(Sweep { job, before: Stamp(u64::MAX), edges })).await;
    stand.drain(&engine).await;
    assert_eq!(engine.load(&wants).await.expect("a load works").totals, [0]);
    assert_eq!(crate::auditor::findings(&*engine).await, [""; 0]);
}
