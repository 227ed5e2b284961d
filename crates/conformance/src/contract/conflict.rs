//! What was decided on must not have moved: not a row, not an absence, not a total.

use serde_json::json;
use tally_core::command::{DeleteObject, Relate, Suspend};
use tally_core::{Command, relation};
use tally_engine::CommitError;

use crate::EngineFactory;
use crate::auditor::assert_sound;
use crate::driver::Hand;
use crate::sample::{catalog, meta, object, put, relate, subject, unrelate};
use crate::stand::Stand;
use crate::universe::Universe;

/// Two decisions on one state of the store, both committed: the second must be refused, with
/// nothing of it written; and once decided again it must go through.
async fn second_conflicts<F: EngineFactory>(stand: Stand<F>, before: &[Command], first: Command, second: Command) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe =
        Universe::new(&["alice", "bob"], &["post:1", "post:2"], &["like", "note", "mark", "pin", "reaction"]);
    let mut hand = Hand::new(&*engine, &catalog);
    for command in before {
        hand.run(command.clone()).await;
    }
    let (a, b) = (hand.draft(first).await, hand.draft(second.clone()).await);
    a.commit(&*engine).await.expect("the first of two is in nobody's way");
    let after_first = universe.dump(&*engine).await;
    assert_eq!(b.commit(&*engine).await, Err(CommitError::Conflict), "{second:?}");
    stand.drain(&engine).await;
    assert_eq!(universe.dump(&*engine).await, after_first, "a conflict writes nothing");
    let again = hand.draft(second).await;
    if !again.changes.is_empty() {
        again.commit(&*engine).await.expect("decided on what is there now, it goes through");
    }
    stand.drain(&engine).await;
    assert_sound(&*engine, &universe).await;
}

fn note(text: &str) -> Command {
    match relate("note", "post:1", "alice") {
        Command::Relation(relation::Command::Relate(Relate { relation, object, subject, kind, .. })) => {
            Command::from(Relate { relation, object, subject, kind, meta: Some(meta(&json!({"text": text}))) })
        }
        other => other,
    }
}

pub(super) async fn conflict_on_a_moved_row<F: EngineFactory>(stand: Stand<F>) {
    second_conflicts(stand, &[note("a")], note("b"), note("c")).await;
}

pub(super) async fn conflict_on_a_row_made_meanwhile<F: EngineFactory>(stand: Stand<F>) {
    let like = relate("like", "post:1", "alice");
    second_conflicts(stand, &[], like.clone(), like).await;
}

pub(super) async fn conflict_on_a_row_removed_meanwhile<F: EngineFactory>(stand: Stand<F>) {
    let (like, unlike) = (relate("like", "post:1", "alice"), unrelate("like", "post:1", "alice"));
    second_conflicts(stand, &[like], unlike.clone(), unlike).await;
}

/// The object is deleted between the check and the write.
pub(super) async fn conflict_on_a_row_that_was_only_looked_at<F: EngineFactory>(stand: Stand<F>) {
    let delete = Command::from(DeleteObject { object: object("post:1") });
    second_conflicts(stand, &[put("post:1", "open")], delete, relate("mark", "post:1", "alice")).await;
}

/// The subject is suspended between the check and the write.
pub(super) async fn conflict_on_an_absence_that_was_only_looked_at<F: EngineFactory>(stand: Stand<F>) {
    let suspend = Command::from(Suspend { subject: subject("alice") });
    second_conflicts(stand, &[], suspend, relate("like", "post:1", "alice")).await;
}

/// The last place under a limit is taken between the check and the write.
pub(super) async fn conflict_on_a_total_that_was_decided_on<F: EngineFactory>(stand: Stand<F>) {
    second_conflicts(stand, &[], relate("pin", "post:1", "alice"), relate("pin", "post:2", "alice")).await;
}

/// Much may happen between a load and its commit, as long as it happens elsewhere.
pub(super) async fn rows_elsewhere_do_not_conflict<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = Universe::new(&["alice", "bob"], &["post:1", "post:2"], &["like", "note", "pin", "reaction"]);
    let mut hand = Hand::new(&*engine, &catalog);
    let drafts = [relate("like", "post:1", "alice"), relate("pin", "post:1", "alice"), note("a")];
    let mut waiting = Vec::new();
    for command in drafts {
        waiting.push(hand.draft(command).await);
    }
    for command in [
        relate("like", "post:1", "bob"),
        relate("like", "post:2", "alice"),
        relate("pin", "post:1", "bob"),
        relate("note", "post:1", "bob"),
        put("post:1", "open"),
        Command::from(Suspend { subject: subject("bob") }),
    ] {
        hand.run(command).await;
    }
    for draft in waiting {
        draft.commit(&*engine).await.expect("nothing that it stands on has moved");
    }
    stand.drain(&engine).await;
    assert_sound(&*engine, &universe).await;
}
