//! Tests: orders that do not agree with the rows in them.

use std::collections::BTreeSet;

use tally_core::rows::{
    BoardKey, Change, Changes, Key, OrderKey, Row, Score, ScoreKey, Standing, Ticket, TicketKey, TicketState,
};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_core::{Name, SubjectId};
use tally_engine::{Engine, Finding, Mend, Seen};

use crate::ordered::ROWS_AT_ONCE;
use crate::store::Batch;
use crate::{Embedded, Options, keys};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Of every kind that there is, next to each other.
fn orders() -> Vec<OrderKey> {
    let board = |season, levels| BoardKey { board: name("points"), season: Timestamp(season), levels }.into();
    let rooms = ["sale", "sale-2"].map(|room| OrderKey::Queue(name(room)));
    [board(0, false), board(0, true), board(60_000, false)].into_iter().chain(rooms).collect()
}

/// A row that may stand in an order. Of tickets, one in five does not wait any more.
fn row(order: &OrderKey, number: u64) -> (Key, Row) {
    match order {
        OrderKey::Board(board) => {
            let key = ScoreKey { board: board.clone(), member: SubjectId::new(&format!("m{number}")).unwrap() };
            (Key::Score(key), Row::Score(Score { score: (number % 7) as i64, reached: Stamp(1 + number / 2) }))
        }
        OrderKey::Queue(room) => {
            let state = if number % 5 == 1 { TicketState::Left } else { TicketState::Waiting };
            let ticket = Ticket::new(SubjectId::new("ann").unwrap(), "t", state, Timestamp(1), Timestamp(2));
            (
                Key::Ticket(TicketKey { room: room.clone(), seq: tally_core::rows::Seq::Given(number) }),
                Row::Ticket(ticket),
            )
        }
    }
}

fn entry(order: &OrderKey, number: u64) -> Vec<u8> {
    let (key, row) = row(order, number);
    keys::order_entry(order, &row.stands(&key).unwrap().1)
}

/// How many stand in an order of so many rows.
fn standing(order: &OrderKey, rows: u64) -> u64 {
    (0..rows).map(|number| row(order, number)).filter(|(key, row)| row.stands(key).is_some()).count() as u64
}

async fn filled(engine: &Embedded, rows: u64) {
    for order in orders() {
        let rows = (0..rows).map(|number| row(&order, number));
        let rows = rows.map(|(key, row)| (key, Change { before: None, after: Some(row) })).collect();
        let changes = Changes { rows, stamp: Stamp(1), ..Changes::default() };
        let mark = engine.load(&Wants::default()).await.unwrap().mark;
        engine.commit(Seen { mark, view: &View::default() }, &changes).await.unwrap();
    }
}

/// Orders that are off.
async fn off(engine: &Embedded) -> BTreeSet<OrderKey> {
    let mut found = BTreeSet::new();
    let mut tell = |finding| {
        if let Finding::Order { order, .. } = finding {
            found.insert(order);
        }
    };
    engine.audit(&mut tell).await.unwrap();
    found
}

/// Has an order read into memory.
async fn before(engine: &Embedded, order: &OrderKey) -> u64 {
    let ranks = vec![Standing::end(order.clone())];
    engine.load(&Wants { ranks, ..Wants::default() }).await.unwrap().ranks[0]
}

#[tokio::test]
async fn an_order_that_lost_somebody_or_has_one_too_many_is_found_and_put_right() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open(folder.path(), Options::default()).unwrap();
    let rows = 2 * ROWS_AT_ONCE as u64 + 7;
    filled(&engine, rows).await;
    assert_eq!(off(&engine).await, BTreeSet::new());
    let damages: [fn(&OrderKey, &mut Batch); 4] = [
        |order, batch| batch.delete(&entry(order, 9)),
        |order, batch| batch.put(&entry(order, 99_999), b""),
        // As many as before, and of scores the same places.
        |order, batch| {
            batch.delete(&entry(order, 8));
            batch.put(&[entry(order, 8), b"7".to_vec()].concat(), b"");
        },
        // Somebody who cannot be.
        |order, batch| batch.put(&[entry(order, 8), vec![0]].concat(), b""),
    ];
    for damage in damages {
        for order in orders() {
            let mut batch = Batch::new();
            damage(&order, &mut batch);
            engine.store.apply(&batch).unwrap();
            assert_eq!(off(&engine).await, BTreeSet::from([order.clone()]));
            assert!(engine.mend(&Mend::Order(order.clone())).await.unwrap());
            assert_eq!(off(&engine).await, BTreeSet::new());
            assert_eq!(before(&engine, &order).await, standing(&order, rows), "what is in memory is right as well");
            assert_eq!(off(&engine).await, BTreeSet::new());
        }
    }
}

/// One who left the queue, and still stands in it.
#[tokio::test]
async fn a_row_that_stands_no_more_has_no_place() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open(folder.path(), Options::default()).unwrap();
    filled(&engine, 20).await;
    let order = OrderKey::Queue(name("sale"));
    let place = TicketKey { room: name("sale"), seq: tally_core::rows::Seq::Given(6) }.place();
    let mut batch = Batch::new();
    batch.put(&keys::order_entry(&order, &place), b"");
    engine.store.apply(&batch).unwrap();
    assert_eq!(off(&engine).await, BTreeSet::from([order.clone()]));
    assert!(engine.mend(&Mend::Order(order.clone())).await.unwrap());
    assert_eq!(before(&engine, &order).await, standing(&order, 20));
    assert_eq!(off(&engine).await, BTreeSet::new());
}

#[tokio::test]
async fn an_order_in_memory_that_is_not_that_of_the_tables_is_found_and_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open(folder.path(), Options::default()).unwrap();
    filled(&engine, 100).await;
    for order in orders() {
        let right = standing(&order, 100);
        assert_eq!(before(&engine, &order).await, right);
        assert_eq!(off(&engine).await, BTreeSet::new());
        // A change that never was.
        let (key, gone) = row(&order, 4);
        let changes = Changes { rows: vec![(key, Change { before: Some(gone), after: None })], ..Changes::default() };
        engine.orders.note(u64::MAX, &changes);
        assert_eq!(before(&engine, &order).await, right - 1);
        assert_eq!(off(&engine).await, BTreeSet::from([order.clone()]));
        assert!(engine.mend(&Mend::Order(order.clone())).await.unwrap());
        assert_eq!(before(&engine, &order).await, right);
        assert_eq!(off(&engine).await, BTreeSet::new());
    }
}
