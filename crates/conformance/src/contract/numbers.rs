//! Numbers that are given at the commit.

use tally_core::rows::{Change, Changes, Key, NUMBER_MAX, Row, Seq, TotalKey};
use tally_core::time::Stamp;
use tally_core::view::{View, Wants};
use tally_engine::{CommitError, Engine, Mark, Range, Seen, StoreError};

use crate::EngineFactory;
use crate::driver::write;
use crate::joins::{Joins, entry_key, join, last, queue_of, sequence, ticket, ticket_key};
use crate::sample::{count_of, edge, edge_key, total_of};
use crate::stand::Stand;

async fn commit<E: Engine>(engine: &E, view: &View, changes: &Changes) -> Result<Vec<u64>, CommitError> {
    let committed = engine.commit(Seen { mark: Mark::default(), view }, changes).await?;
    engine.settle(committed.mark).await?;
    Ok(committed.numbers)
}

pub(super) async fn numbers_are_dense_in_a_commit_and_over_commits<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    assert_eq!(last(&*engine, "sale").await, 0);
    assert_eq!(join(&*engine, &[("sale", "ann")]).await, Ok(vec![1]), "the first is 1");
    let several = [("sale", "bob"), ("sale", "eve"), ("sale", "dan")];
    assert_eq!(join(&*engine, &several).await, Ok(vec![2, 3, 4]));
    assert_eq!(join(&*engine, &[("sale", "eve"), ("sale", "fay"), ("sale", "ann")]).await, Ok(vec![3, 5, 1]));
    assert_eq!(queue_of(&*engine, "sale").await, ["ann", "bob", "eve", "dan", "fay"]);
    // Nobody has to carry them.
    let changes = Changes { numbers: vec![(sequence("sale"), 7)], stamp: Stamp(9), ..Changes::default() };
    assert_eq!(commit(&*engine, &View::default(), &changes).await, Ok(vec![6]));
    assert_eq!(join(&*engine, &[("sale", "gus")]).await, Ok(vec![13]));
    let nobody: Vec<(&str, String)> = (0..300).map(|number| ("sale", format!("s{number}"))).collect();
    let many: Vec<(&str, &str)> = nobody.iter().map(|(room, who)| (*room, who.as_str())).collect();
    assert_eq!(join(&*engine, &many).await, Ok((14..314).collect()));
}

/// They may be anywhere in the store, and so may other rows and totals of the commit.
pub(super) async fn sequences_of_one_commit_do_not_meet<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    join(&*engine, &[("sale", "ann"), ("gate", "ann"), ("gate", "bob")]).await.expect("nobody else writes");
    for round in 0..5 {
        let newcomers = [0, 1, 2, 3].map(|number| format!("s{round}{number}"));
        let [a, b, c, d] = newcomers.each_ref().map(String::as_str);
        let who = [("gate", a), ("sale", b), ("fair", c), ("gate", d)];
        let mut joins = Joins::new(&*engine, &who).await.expect("a load works");
        let like = Key::Edge(edge_key("like", "post:1", a));
        joins.view.fill_row(like.clone(), None);
        joins.view.set(like, Some(Row::Edge(edge(round + 1)))).expect("it was loaded");
        let mut changes = joins.changes();
        changes.adds = vec![(count_of("like", "post:1"), 1), (total_of("like", a), 1)];
        let numbers = commit(&*engine, &joins.view, &changes).await;
        let of = |room: &str| changes.numbers.iter().position(|(taken, _)| *taken == sequence(room)).expect("taken");
        let numbers = numbers.expect("nobody else writes");
        assert_eq!(
            [numbers[of("gate")], numbers[of("sale")], numbers[of("fair")]],
            [3 + 2 * round, 2 + round, 1 + round]
        );
    }
    let (gate, sale) = (queue_of(&*engine, "gate").await, queue_of(&*engine, "sale").await);
    assert_eq!((gate.len(), sale.len(), queue_of(&*engine, "fair").await.len()), (12, 6, 5));
    assert_eq!((gate[4].as_str(), gate[5].as_str(), sale[2].as_str()), ("s10", "s13", "s11"));
    let total = engine.load(&Wants::totals(vec![count_of("like", "post:1")])).await.expect("a load works");
    assert_eq!(total.totals, [5]);
}

pub(super) async fn a_key_and_a_column_carry_the_same_number<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    for who in [["ann", "bob"], ["eve", "dan"]] {
        join(&*engine, &who.map(|who| ("sale", who))).await.expect("nobody else writes");
    }
    for (number, who) in ["ann", "bob", "eve", "dan"].into_iter().enumerate() {
        let seq = Seq::Given(number as u64 + 1);
        let keys = vec![entry_key("sale", who), ticket_key("sale", seq)];
        let loaded = engine.load(&Wants::rows(keys)).await.expect("a load works");
        assert_eq!(loaded.rows, [Some(Row::Entry(seq)), Some(ticket(who))]);
    }
    let page = engine.scan(&Range::Rows { after: None }, 100).await.expect("a scan works");
    assert_eq!(page.items.len(), 4 + 4 + 1, "tickets, entries, and the sequence: {:?}", page.items);
    assert!(page.items.contains(&(sequence("sale").key(), Row::Sequence(4))));
    // What was filled in is a row like any other.
    let key = ticket_key("sale", Seq::Given(2));
    write(&*engine, [(key.clone(), None), (entry_key("sale", "bob"), None)], []).await;
    assert_eq!(engine.load(&Wants::rows(vec![key])).await.expect("a load works").rows, [None]);
    assert_eq!(join(&*engine, &[("sale", "bob")]).await, Ok(vec![5]), "a number is given once");
}

pub(super) async fn what_is_taken_back_or_conflicts_leaves_no_hole<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    join(&*engine, &[("sale", "ann")]).await.expect("nobody else writes");
    let mut joins = Joins::new(&*engine, &[("sale", "bob")]).await.expect("a load works");
    let start = joins.view.savepoint();
    joins.view.take_number(&sequence("sale"));
    joins.view.take_number(&sequence("gate"));
    joins.view.rollback(start);
    let (one, late) = (&[("sale", "eve"), ("gate", "eve")], &[("sale", "eve"), ("sale", "dan"), ("gate", "dan")]);
    let (first, second) = (Joins::new(&*engine, one).await, Joins::new(&*engine, late).await);
    assert_eq!(joins.commit(&*engine).await, Ok(vec![2]));
    assert_eq!(first.expect("a load works").commit(&*engine).await, Ok(vec![3, 1]));
    // Eve has joined meanwhile, so all of it is decided anew.
    assert_eq!(second.expect("a load works").commit(&*engine).await, Err(CommitError::Conflict));
    assert_eq!((last(&*engine, "sale").await, last(&*engine, "gate").await), (3, 1));
    assert_eq!(join(&*engine, late).await, Ok(vec![3, 4, 2]));
    assert_eq!(queue_of(&*engine, "sale").await, ["ann", "bob", "eve", "dan"]);
    assert_eq!(queue_of(&*engine, "gate").await, ["eve", "dan"]);
}

pub(super) async fn a_row_that_is_there_gets_a_number<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    join(&*engine, &[("sale", "ann"), ("sale", "bob")]).await.expect("nobody else writes");
    let again = |view: &mut View, before: u64| {
        view.fill_row(entry_key("sale", "ann"), Some(Row::Entry(Seq::Given(before))));
        let seq = view.take_number(&sequence("sale"));
        view.set(entry_key("sale", "ann"), Some(Row::Entry(seq))).expect("it was loaded");
        view.set(ticket_key("sale", seq), Some(ticket("ann"))).expect("it is new");
    };
    let (mut view, mut late) = (View::default(), View::default());
    again(&mut view, 1);
    again(&mut late, 2);
    assert_eq!(commit(&*engine, &late, &late.changes(Stamp(2))).await, Err(CommitError::Conflict));
    assert_eq!(commit(&*engine, &view, &view.changes(Stamp(2))).await, Ok(vec![3]));
    let loaded = engine.load(&Wants::rows(vec![entry_key("sale", "ann")])).await.expect("a load works");
    assert_eq!(loaded.rows, [Some(Row::Entry(Seq::Given(3)))]);
    assert_eq!(queue_of(&*engine, "sale").await, ["ann", "bob", "ann"]);
}

pub(super) async fn a_number_that_is_not_taken_is_refused<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let put = |key, row| (key, Change { before: None, after: Some(row) });
    let counted = |rows, numbers| {
        let adds: Vec<(TotalKey, i64)> = vec![(count_of("like", "post:1"), 1)];
        Changes { rows, adds, numbers, stamp: Stamp(1) }
    };
    let ann = || put(ticket_key("sale", Seq::Taken(1)), ticket("ann"));
    let entry = || put(entry_key("sale", "ann"), Row::Entry(Seq::Taken(0)));
    for changes in [
        counted(vec![ann()], vec![(sequence("sale"), 1)]),
        counted(vec![entry()], vec![]),
        counted(vec![entry()], vec![(sequence("gate"), 1)]),
    ] {
        let refused = engine.commit(Seen { mark: Mark::default(), view: &View::default() }, &changes).await;
        assert!(matches!(refused, Err(CommitError::Store(StoreError::Broken(_)))), "{refused:?}");
    }
    let page = engine.scan(&Range::Rows { after: None }, 10).await.expect("a scan works");
    assert_eq!(page.items, [], "nothing was written");
    let total = engine.load(&Wants::totals(vec![count_of("like", "post:1")])).await.expect("a load works");
    assert_eq!(total.totals, [0]);
}

/// Numbers are exact in every store and in every client, so there is an end to them.
pub(super) async fn a_sequence_ends_where_numbers_are_exact<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let (sale, gate) = (sequence("sale").key(), sequence("gate").key());
    write(&*engine, [(sale, Some(Row::Sequence(NUMBER_MAX - 2))), (gate, Some(Row::Sequence(1 << 52)))], []).await;
    assert_eq!(join(&*engine, &[("sale", "ann"), ("gate", "ann")]).await, Ok(vec![NUMBER_MAX - 1, (1 << 52) + 1]));
    let too_many = join(&*engine, &[("gate", "bob"), ("sale", "bob"), ("sale", "eve")]).await;
    assert!(matches!(too_many, Err(CommitError::Store(StoreError::Broken(_)))), "{too_many:?}");
    assert_eq!((last(&*engine, "sale").await, last(&*engine, "gate").await), (NUMBER_MAX - 1, (1 << 52) + 1));
    assert_eq!(join(&*engine, &[("sale", "eve")]).await, Ok(vec![NUMBER_MAX]));
    let keys = vec![ticket_key("sale", Seq::Given(NUMBER_MAX)), entry_key("sale", "bob")];
    let loaded = engine.load(&Wants::rows(keys)).await.expect("a load works");
    assert_eq!(loaded.rows, [Some(ticket("eve")), None]);
}

pub(super) async fn a_sequence_goes_on_when_reopened<F: EngineFactory>(stand: Stand<F>) {
    let mut engine = stand.open().await;
    for round in 0..3 {
        let (one, other) = (format!("a{round}"), format!("b{round}"));
        let numbers = join(&*engine, &[("sale", &one), ("sale", &other)]).await;
        assert_eq!(numbers, Ok(vec![2 * round + 1, 2 * round + 2]));
        engine = stand.reopen(engine).await;
    }
    assert_eq!(queue_of(&*engine, "sale").await, ["a0", "b0", "a1", "b1", "a2", "b2"]);
}
