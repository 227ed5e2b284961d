//! Tests: the disk fails, and works again, in the middle of a commit or of a read.

use std::path::Path;

use tally_core::rows::{BoardKey, Change, Changes, Key, Place, Row, Score, ScoreKey, SequenceKey, Standing, TotalKey};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::{CommitError, Engine, Finding, Mend, Seen};

use crate::store::{Batch, by_hand::ByHand};
use crate::{Embedded, Orders};

fn open(folder: &Path) -> (Embedded, ByHand) {
    let (store, log) = ByHand::open(folder);
    (Embedded { store, orders: Orders::default(), committing: Default::default() }, log)
}

fn total() -> TotalKey {
    TotalKey::Object { object: ObjectId::new("post:1").unwrap(), relation: Name::new("like").unwrap() }
}

/// One more.
fn more() -> Changes {
    Changes { adds: vec![(total(), 1)], stamp: Stamp(1), ..Changes::default() }
}

fn board() -> BoardKey {
    BoardKey { board: Name::new("points").unwrap(), season: Timestamp(0), levels: false }
}

fn score(member: &str, score: i64) -> Changes {
    let key = Key::Score(ScoreKey { board: board(), member: SubjectId::new(member).unwrap() });
    let change = Change { before: None, after: Some(Row::Score(Score { score, reached: Stamp(1) })) };
    Changes { rows: vec![(key, change)], stamp: Stamp(1), ..Changes::default() }
}

fn last() -> Vec<Standing> {
    vec![Standing::end(board().into())]
}

async fn commit(engine: &Embedded, changes: &Changes) {
    let view = View::default();
    let mark = engine.load(&Wants::default()).await.unwrap().mark;
    engine.commit(Seen { mark, view: &view }, changes).await.unwrap();
}

async fn members(engine: &Embedded) -> u64 {
    engine.load(&Wants { ranks: last(), ..Wants::default() }).await.unwrap().ranks[0]
}

#[tokio::test]
async fn a_commit_that_was_gathered_from_what_was_taken_back_is_a_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, mut log) = open(folder.path());
    commit(&engine, &more()).await;
    log.sync(&engine.store);
    commit(&engine, &more()).await;

    let (view, changes, mut batch) = (View::default(), more(), Batch::new());
    let mark = engine.load(&Wants::default()).await.unwrap().mark;
    let made = engine.gather(&Seen { mark, view: &view }, &changes, &mut batch).unwrap();
    log.fail(&engine.store);
    log.recover(&engine.store);
    let outcome = engine.put(made, &changes, &mut batch);
    assert!(matches!(outcome, Err(CommitError::Conflict)), "{outcome:?}");

    commit(&engine, &more()).await;
    let loaded = engine.load(&Wants { totals: [total()].into_iter().collect(), ..Wants::default() }).await.unwrap();
    assert_eq!(loaded.totals, [2], "one was refused, two were not");
}

#[tokio::test]
async fn a_number_that_was_taken_back_is_given_again_and_one_that_lasts_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, mut log) = open(folder.path());
    let sequence = SequenceKey { home: "sale".into(), name: "queue".into() };
    let taking = Changes { numbers: vec![(sequence, 2)], stamp: Stamp(1), ..Changes::default() };
    let take = async || {
        let seen = Seen { mark: engine.load(&Wants::default()).await.unwrap().mark, view: &View::default() };
        engine.commit(seen, &taking).await.unwrap()
    };
    assert_eq!(take().await.numbers, [1]);
    log.sync(&engine.store);
    let lost = take().await;
    assert_eq!(lost.numbers, [3]);

    let (view, mut batch) = (View::default(), Batch::new());
    let mark = engine.load(&Wants::default()).await.unwrap().mark;
    let made = engine.gather(&Seen { mark, view: &view }, &taking, &mut batch).unwrap();
    log.fail(&engine.store);
    engine.settle(lost.mark).await.unwrap_err();
    log.recover(&engine.store);
    let outcome = engine.put(made, &taking, &mut batch);
    assert!(matches!(outcome, Err(CommitError::Conflict)), "{outcome:?}");
    assert_eq!(take().await.numbers, [3], "nobody was answered with it");
}

#[tokio::test]
async fn the_order_of_a_board_never_keeps_a_score_that_was_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, mut log) = open(folder.path());
    commit(&engine, &score("alice", 1)).await;
    log.sync(&engine.store);
    assert_eq!(members(&engine).await, 1);
    commit(&engine, &score("bob", 2)).await;
    assert_eq!(members(&engine).await, 2);

    // The log cannot be read when bob is refused, so his rows go later.
    let (at, away) = (folder.path().join("log"), folder.path().join("away"));
    std::fs::rename(&at, &away).unwrap();
    log.fail(&engine.store);
    std::fs::rename(&away, &at).unwrap();
    let seen = engine.load(&Wants { ranks: last(), ..Wants::default() }).await.unwrap();
    assert_eq!(seen.ranks, [2], "what is not gone yet is read");
    engine.settle(seen.mark).await.unwrap_err();

    log.recover(&engine.store);
    assert_eq!(members(&engine).await, 1);
}

#[tokio::test]
async fn an_order_from_before_something_was_taken_back_does_not_go_with_rows_from_after() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, mut log) = open(folder.path());
    commit(&engine, &score("alice", 1)).await;
    assert_eq!(members(&engine).await, 1);
    // As it is when somebody has just seen that the board is there, and reads rows only now.
    log.fail(&engine.store);
    log.recover(&engine.store);
    let wants = Wants { ranks: last(), ..Wants::default() };
    assert!(engine.read_rows(&wants).unwrap().is_none(), "the board has to be read again");
    assert_eq!(members(&engine).await, 0);
}

/// What is mended is written past the runner: it lasts when that is told, or it never was.
#[tokio::test]
async fn an_order_that_was_mended_while_the_disk_failed_is_mended_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, mut log) = open(folder.path());
    for (number, who) in ["alice", "bob"].into_iter().enumerate() {
        commit(&engine, &score(who, number as i64)).await;
    }
    let mut batch = Batch::new();
    let ghost = Place { score: 9, reached: 9, id: "ghost".into() };
    batch.put(&crate::keys::order_entry(&board().into(), &ghost), b"");
    engine.store.apply(&batch).unwrap();
    log.sync(&engine.store);
    let off = async || {
        let mut off = 0;
        engine.audit(&mut |finding| off += usize::from(matches!(finding, Finding::Order { .. }))).await.unwrap();
        off
    };
    assert_eq!((off().await, members(&engine).await), (1, 3));

    let mend = Mend::Order(board().into());
    let (mended, ()) = tokio::join!(engine.mend(&mend), async { log.fail(&engine.store) });
    assert!(mended.is_err(), "{mended:?}");
    log.recover(&engine.store);
    assert_eq!((off().await, members(&engine).await), (1, 3), "it is as it was");
    let (mended, ()) = tokio::join!(engine.mend(&mend), async { log.sync(&engine.store) });
    assert!(mended.unwrap());
    assert_eq!((off().await, members(&engine).await), (0, 2));
    drop(engine);
    let (engine, _log) = open(folder.path());
    assert_eq!(members(&engine).await, 2, "and lasts");
}
