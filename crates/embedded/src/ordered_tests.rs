use std::collections::BTreeSet;

use tally_core::rows::{Among, Change, Changes, Row, Score, Standing};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_core::{Name, SubjectId};
use tally_engine::{Engine, Mend, Seen};

use super::*;
use crate::Options;

fn board(season: u64, levels: bool) -> BoardKey {
    BoardKey { board: Name::new("points").unwrap(), season: Timestamp(season), levels }
}

fn key(board: &BoardKey, number: u64) -> ScoreKey {
    ScoreKey { board: board.clone(), member: SubjectId::new(&format!("m{number}")).unwrap() }
}

fn score(number: u64) -> Score {
    Score { score: (number % 7) as i64, reached: Stamp(1 + number / 2) }
}

async fn filled(engine: &Embedded, members: u64) -> Vec<BoardKey> {
    let boards = vec![board(0, false), board(0, true), board(60_000, false)];
    for board in &boards {
        let rows = (0..members).map(|number| {
            (Key::Score(key(board, number)), Change { before: None, after: Some(Row::Score(score(number))) })
        });
        let changes = Changes { rows: rows.collect(), adds: Vec::new(), stamp: Stamp(1) };
        let mark = engine.load(&Wants::default()).await.unwrap().mark;
        engine.commit(Seen { mark, view: &View::default() }, &changes).await.unwrap();
    }
    boards
}

/// Boards whose orders are off.
async fn off(engine: &Embedded) -> BTreeSet<BoardKey> {
    let mut found = BTreeSet::new();
    engine
        .audit(&mut |finding| {
            if let Finding::Order { board, .. } = finding {
                found.insert(board);
            }
        })
        .await
        .unwrap();
    found
}

/// Has the order of a board read into memory.
async fn before(engine: &Embedded, board: &BoardKey) -> u64 {
    let ranks = vec![Standing { board: board.clone(), score: -1, among: Among::Last }];
    engine.load(&Wants { ranks, ..Wants::default() }).await.unwrap().ranks[0]
}

#[tokio::test]
async fn an_order_that_lost_somebody_or_has_one_too_many_is_found_and_put_right() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open(folder.path(), Options::default()).unwrap();
    let members = 2 * ROWS_AT_ONCE as u64 + 7;
    let boards = filled(&engine, members).await;
    assert_eq!(off(&engine).await, BTreeSet::new());
    let damages: [fn(&BoardKey, &mut Batch); 3] = [
        |board, batch| batch.delete(&keys::board_entry(&key(board, 9), score(9))),
        |board, batch| batch.put(&keys::board_entry(&key(board, 99_999), score(9)), b""),
        // As many as before, and the same places.
        |board, batch| {
            batch.delete(&keys::board_entry(&key(board, 8), score(8)));
            batch.put(&keys::board_entry(&key(board, 77_777), score(8)), b"");
        },
    ];
    for damage in damages {
        for board in &boards {
            let mut batch = Batch::new();
            damage(board, &mut batch);
            engine.store.apply(&batch).unwrap();
            assert_eq!(off(&engine).await, BTreeSet::from([board.clone()]));
            assert!(engine.mend(&Mend::Order(board.clone())).await.unwrap());
            assert_eq!(off(&engine).await, BTreeSet::new());
            assert_eq!(before(&engine, board).await, members, "what is in memory is right as well");
            assert_eq!(off(&engine).await, BTreeSet::new());
        }
    }
}

#[tokio::test]
async fn an_order_in_memory_that_is_not_that_of_the_tables_is_found_and_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open(folder.path(), Options::default()).unwrap();
    let boards = filled(&engine, 100).await;
    for board in &boards {
        assert_eq!(before(&engine, board).await, 100);
        assert_eq!(off(&engine).await, BTreeSet::new());
        // A change that never was.
        let change = Change { before: Some(Row::Score(score(4))), after: None };
        let changes = Changes { rows: vec![(Key::Score(key(board, 4)), change)], ..Changes::default() };
        engine.boards.note(u64::MAX, &changes);
        assert_eq!(before(&engine, board).await, 99);
        assert_eq!(off(&engine).await, BTreeSet::from([board.clone()]));
        assert!(engine.mend(&Mend::Order(board.clone())).await.unwrap());
        assert_eq!(before(&engine, board).await, 100);
        assert_eq!(off(&engine).await, BTreeSet::new());
    }
}
