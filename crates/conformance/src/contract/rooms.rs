//! What rooms ask of a store: rows of two sequences of one home in one commit, a number in a row that was there before, and rows
//! that are due and carry numbers.

use tally_core::room::rows::{NEVER, Recent, log, queue};
use tally_core::rows::{Gate, Gone, GoneKey, Key, Partitions, Row, RowKind, Seq};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_engine::{CommitError, Engine, Mark, Range, Seen};

use crate::EngineFactory;
use crate::joins::{entry_key, ticket, ticket_key};
use crate::sample::name;
use crate::stand::Stand;

fn gate(passed: Seq) -> Row {
    let recent = Box::new(Recent { let_in: vec![(1, 2), (3, 4)], minute: 7, since: [1, 2, 3, 4], longest_wait_ms: 9 });
    let (budget, budget_at) = (1_000_000_000_000, Timestamp(1_700_000_000_001));
    Row::Gate(Gate { passed, budget, budget_at, due_at: NEVER, is_full: true, swept: 5, recent })
}

fn gate_key() -> Key {
    Key::Gate(name("sale"))
}

fn gone_key(number: Seq) -> Key {
    Key::Gone(GoneKey { room: name("sale"), number })
}

fn gone(places: Vec<u64>) -> Row {
    Row::Gone(Gone { places, due_at: Timestamp(1_700_000_600_000) })
}

/// Two tickets and one place that was given up; the gate goes with the second ticket.
fn decided(before: Option<Row>, who: [&str; 2]) -> View {
    let mut view = View::default();
    view.fill_row(gate_key(), before);
    let [first, second] = who.map(|who| {
        let seq = view.take_number(&queue(&name("sale")));
        view.fill_row(entry_key("sale", who), None);
        view.set(ticket_key("sale", seq), Some(ticket(who))).expect("it is new");
        view.set(entry_key("sale", who), Some(Row::Entry(seq))).expect("it was loaded");
        seq
    });
    assert_ne!(first, second);
    let number = view.take_number(&log(&name("sale")));
    view.set(gone_key(number), Some(gone(vec![3, 9]))).expect("it is new");
    view.set(gate_key(), Some(gate(second))).expect("it was loaded");
    view
}

async fn commit<E: Engine>(engine: &E, view: &View) -> Result<Vec<(String, u64)>, CommitError> {
    let changes = view.changes(Stamp(1));
    let committed = engine.commit(Seen { mark: Mark::default(), view }, &changes).await?;
    engine.settle(committed.mark).await?;
    let names = changes.numbers.iter().map(|(sequence, _)| sequence.name.clone());
    let mut firsts: Vec<(String, u64)> = names.zip(committed.numbers).collect();
    firsts.sort();
    Ok(firsts)
}

pub(super) async fn two_sequences_of_one_home_in_one_commit<F: EngineFactory>(stand: Stand<F>) {
    let mut engine = stand.open().await;
    let who = [["ann", "bob"], ["cid", "dan"], ["eve", "fay"]];
    let mut before = None;
    for (round, who) in (0..).zip(who) {
        let firsts = commit(&*engine, &decided(before, who)).await.expect("nobody else writes");
        assert_eq!(firsts, [("log".to_owned(), round + 1), ("queue".to_owned(), 2 * round + 1)]);
        let seq = Seq::Given(2 * round + 2);
        let keys =
            vec![gate_key(), ticket_key("sale", seq), entry_key("sale", who[1]), gone_key(Seq::Given(round + 1))];
        let loaded = engine.load(&Wants::rows(keys)).await.expect("a load works");
        let expected = [gate(seq), ticket(who[1]), Row::Entry(seq), gone(vec![3, 9])];
        assert_eq!(loaded.rows, expected.map(Some), "round {round}");
        before = Some(gate(seq));
        engine = stand.reopen(engine).await;
    }
    // It was decided on a gate that has moved since.
    let late = decided(Some(gate(Seq::Given(4))), ["gus", "hal"]);
    assert_eq!(commit(&*engine, &late).await, Err(CommitError::Conflict));
    let loaded = engine.load(&Wants::rows(vec![gate_key(), gone_key(Seq::Given(4))])).await.expect("a load works");
    assert_eq!(loaded.rows, [before, None], "and nothing was written");
}

pub(super) async fn rows_that_were_given_numbers_are_due<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    commit(&*engine, &decided(None, ["ann", "bob"])).await.expect("nobody else writes");
    commit(&*engine, &decided(Some(gate(Seq::Given(2))), ["cid", "dan"])).await.expect("nobody else writes");
    stand.drain(&engine).await;
    let tickets: Vec<Key> = (1..=4).map(|seq| ticket_key("sale", Seq::Given(seq))).collect();
    let logged = [1, 2].map(|number| gone_key(Seq::Given(number))).to_vec();
    for (kind, expected) in [(RowKind::Ticket, tickets), (RowKind::Gone, logged), (RowKind::Gate, vec![gate_key()])] {
        let own: Partitions = expected.iter().map(Key::partition).collect();
        for partitions in [own, Partitions::ALL] {
            let range = Range::Due { kind, partitions, from: Timestamp(1), before: Timestamp(1 << 52) };
            let page = engine.scan(&range, 100).await.expect("a scan works").items;
            assert_eq!(page.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), expected, "{kind:?}");
        }
    }
}
