//! Numbers that a batch takes.

use super::{Reading, Stop, View};
use crate::id::Name;
use crate::room::rows::queue;
use crate::rows::{EntryKey, Key, OrderKey, Place, Row, Seq, SequenceKey, Standing, Ticket, TicketKey, TicketState};
use crate::time::{Stamp, Timestamp};
use crate::view::Moment;
use crate::{SubjectId, view::Wants};

fn room(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn ticket_key(seq: Seq) -> Key {
    Key::Ticket(TicketKey { room: room("sale"), seq })
}

fn entry_key(who: &str) -> Key {
    let subject = SubjectId::new(who).unwrap();
    Key::Entry(EntryKey { room: room("sale"), subject, token: "t".into() })
}

fn ticket(who: &str) -> Option<Row> {
    let who = SubjectId::new(who).unwrap();
    Some(Row::Ticket(Ticket::new(who, "t", TicketState::Waiting, Timestamp(1), Timestamp(2))))
}

fn join(view: &mut View, who: &str) -> Result<Seq, Stop> {
    if let Some(Row::Entry(seq)) = view.row(&entry_key(who))? {
        return Ok(seq);
    }
    let seq = view.take_number(&queue(&room("sale")));
    view.set(ticket_key(seq), ticket(who))?;
    view.set(entry_key(who), Some(Row::Entry(seq)))?;
    Ok(seq)
}

/// A view in which nobody has joined.
fn empty(reading: Reading, who: &[&str]) -> View {
    let mut view = View::new(reading, 4, 1);
    view.begin_load(true);
    who.iter().for_each(|who| view.fill_row(entry_key(who), None));
    view.begin_round();
    view
}

fn taken(view: &View) -> Vec<(SequenceKey, u32)> {
    view.changes(Stamp(1)).numbers
}

#[test]
fn what_is_taken_back_leaves_no_hole() {
    let mut view = empty(Reading::Lean, &["a", "b", "c"]);
    assert_eq!(join(&mut view, "a"), Ok(Seq::Taken(0)));
    let refused = view.savepoint();
    assert_eq!(join(&mut view, "b"), Ok(Seq::Taken(1)));
    view.take_number(&queue(&room("other")));
    view.rollback(refused);
    assert_eq!(taken(&view), [(queue(&room("sale")), 1)]);
    assert_eq!(join(&mut view, "c"), Ok(Seq::Taken(1)));
    assert_eq!(view.row(&ticket_key(Seq::Taken(1))), Ok(ticket("c")));
    let changes = view.changes(Stamp(1));
    assert_eq!((changes.numbers, changes.rows.len()), (vec![(queue(&room("sale")), 2)], 4));
}

#[test]
fn every_round_begins_with_none() {
    let mut view = empty(Reading::Lean, &["a"]);
    let start = view.savepoint();
    assert_eq!(join(&mut view, "a"), Ok(Seq::Taken(0)));
    assert_eq!(join(&mut view, "b"), Err(Stop::Miss));
    view.rollback(start);
    assert!(taken(&view).is_empty() && view.changes(Stamp(1)).is_empty());
    assert_eq!(view.take_missing(), Wants::rows(vec![entry_key("b")]));
    view.fill_row(entry_key("b"), None);
    view.begin_round();
    assert_eq!(view.row(&ticket_key(Seq::Taken(0))), Ok(None), "not that of the round before");
    assert_eq!((join(&mut view, "b"), join(&mut view, "a")), (Ok(Seq::Taken(0)), Ok(Seq::Taken(1))));
}

#[test]
fn a_row_without_a_number_is_new_and_neither_loaded_nor_guarded() {
    for reading in [Reading::Whole, Reading::Lean, Reading::Counted] {
        let mut view = empty(reading, &["a"]);
        let start = view.savepoint();
        assert!(view.want(&[ticket_key(Seq::Taken(0))], &[]).is_ok() && view.has(&ticket_key(Seq::Taken(1))));
        assert_eq!(view.row(&ticket_key(Seq::Taken(0))), Ok(None));
        assert_eq!(join(&mut view, "a"), Ok(Seq::Taken(0)));
        assert_eq!(view.row(&ticket_key(Seq::Taken(0))), Ok(ticket("a")));
        view.end_command(start, true);
        view.judge();
        assert!(!view.misses());
        assert_eq!(view.seen().map(|(key, _)| key.clone()).collect::<Vec<_>>(), [entry_key("a")], "{reading:?}");
        assert_eq!(view.loaded().rows, [entry_key("a")]);
        assert_eq!(view.row(&ticket_key(Seq::Given(1))), Err(Stop::Miss), "one that is given is loaded");
    }
}

#[test]
fn who_saw_a_number_of_the_batch_is_answered_as_of_the_commit() {
    let mut view = empty(Reading::Lean, &["a", "b"]);
    for _ in 0..2 {
        let start = view.savepoint();
        assert_eq!(join(&mut view, "a"), Ok(Seq::Taken(0)));
        view.end_command(start, true);
    }
    let start = view.savepoint();
    view.row(&ticket_key(Seq::Taken(0))).unwrap();
    view.end_command(start, true);
    let start = view.savepoint();
    view.row(&entry_key("b")).unwrap();
    view.row(&ticket_key(Seq::Taken(9))).unwrap();
    view.end_command(start, true);
    let at_commit = || Moment::Commit(vec![]);
    assert_eq!(view.judge().moments, [at_commit(), at_commit(), at_commit(), Moment::Load(vec![])]);
}

#[test]
fn numbers_alone_are_something_to_commit() {
    let mut view = empty(Reading::Lean, &[]);
    view.take_number(&queue(&room("sale")));
    assert!(!view.changes(Stamp(1)).is_empty());
}

fn stands(seq: Seq) -> Standing {
    Standing::at(OrderKey::Queue(room("sale")), Place::of_number(seq))
}

/// Joins, and shows how many wait before.
fn position(view: &mut View, who: &str) -> u64 {
    let seq = join(view, who).unwrap();
    view.before(&stands(seq))
}

/// The runner moves what was shown by how far what the commit tells is from what the view comes to.
#[test]
fn a_position_is_corrected_to_that_of_its_own_call() {
    let mut view = empty(Reading::Lean, &["a", "b", "c"]);
    let first = ticket_key(Seq::Given(1));
    view.fill_row(first.clone(), ticket("x"));
    let mut shown = Vec::new();
    for who in ["a", "b"] {
        let start = view.savepoint();
        shown.push((stands(Seq::Taken(shown.len() as u32)), position(&mut view, who)));
        view.end_command(start, true);
    }
    let start = view.savepoint();
    view.set(first, None).unwrap();
    view.end_command(start, true);
    let start = view.savepoint();
    shown.push((stands(Seq::Taken(2)), position(&mut view, "c")));
    view.end_command(start, true);
    let first = shown[0].0.clone();
    let moments = view.judge().moments;
    assert_eq!(view.told_ranks(), std::slice::from_ref(&first), "one is told for all who wait for a number");
    for moment in [&moments[0], &moments[1], &moments[3]] {
        assert_eq!(*moment, Moment::Commit(vec![first.clone()]));
    }
    // Seven waited, of whom the first has left: right after the commit the first of these has six before it.
    let off = 6_u64.wrapping_sub(view.final_rank(&first));
    let corrected = shown.iter().map(|(_, shown)| shown.wrapping_add(off));
    assert_eq!(corrected.collect::<Vec<_>>(), [7, 8, 8], "the first two joined before it left");
}

#[test]
fn a_position_that_is_loaded_is_behind_all_that_wait() {
    let mut view = empty(Reading::Whole, &["a", "b"]);
    for (place, who) in ["a", "b"].into_iter().enumerate() {
        view.fill_rank(stands(Seq::Taken(place as u32)), 7);
        assert_eq!(position(&mut view, who), 7 + place as u64);
    }
    assert_eq!(view.final_rank(&stands(Seq::Taken(0))), 7, "who comes later stands behind");
}

#[test]
fn a_rehearsed_position_is_loaded_without_a_row_that_nobody_has() {
    let mut view = empty(Reading::Lean, &["a"]);
    let start = view.savepoint();
    assert_eq!(position(&mut view, "a"), 0);
    view.row(&ticket_key(Seq::Taken(0))).unwrap();
    view.rollback(start);
    view.end_command(start, true);
    let missing = view.take_missing();
    assert_eq!((missing.rows, missing.ranks), (vec![entry_key("a")], vec![stands(Seq::Taken(0))]));
}
