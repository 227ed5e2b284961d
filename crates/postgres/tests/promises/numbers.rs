//! Numbers that are given at a commit whose answer is lost.

use tally_core::SubjectId;
use tally_core::room::rows::queue;
use tally_core::rows::{Key, Row, Seq, SequenceKey, Ticket, TicketKey, TicketState};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_engine::{CommitError, Engine, Mark, Seen};
use tally_testing::{Cut, Direction};

use crate::network::{holds, once, proxied};
use crate::support::{Outsider, engine, name, shared, until};

/// These join, each in a room, in one commit. Gives the number of each.
async fn join<E: Engine>(engine: &E, who: &[(&str, &str)]) -> Result<Vec<u64>, CommitError> {
    let (mut view, mut taken) = (View::default(), Vec::new());
    for (room, who) in who {
        let seq = view.take_number(&queue(&name(room)));
        let who = SubjectId::new(who).unwrap();
        let row = Ticket::new(who, "t", TicketState::Waiting, Timestamp(1), Timestamp(2));
        view.set(Key::Ticket(TicketKey { room: name(room), seq }), Some(Row::Ticket(row))).unwrap();
        taken.push((queue(&name(room)), seq));
    }
    let changes = view.changes(Stamp(1));
    let committed = engine.commit(Seen { mark: Mark::default(), view: &view }, &changes).await?;
    let of = |sequence: &SequenceKey| changes.numbers.iter().position(|(taken, _)| taken == sequence).unwrap();
    Ok(taken.iter().map(|(sequence, seq)| seq.given(committed.numbers[of(sequence)])).collect())
}

/// Who has the tickets from 1 on, and how many are given.
async fn queue_of<E: Engine>(engine: &E, room: &str) -> (Vec<String>, u64) {
    let ticket = |seq| Key::Ticket(TicketKey { room: name(room), seq: Seq::Given(seq) });
    let keys = (1..40).map(ticket).chain([queue(&name(room)).key()]).collect();
    let mut rows = engine.load(&Wants::rows(keys)).await.unwrap().rows;
    let last = SequenceKey::last(rows.pop().unwrap().as_ref());
    let whose = |row| match row {
        Some(Row::Ticket(ticket)) => Some(ticket.subject.as_str().to_owned()),
        _ => None,
    };
    (rows.into_iter().map(whose).take_while(Option::is_some).flatten().collect(), last)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_was_swallowed_still_tells_its_numbers() {
    let (proxy, url, direct) = proxied("");
    let (near, other) = (engine(&url), engine(&direct));
    near.prepare().await.unwrap();
    let outside = Outsider::of(&direct).await;
    assert_eq!(join(&*near, &[("sale", "ann"), ("gate", "ann"), ("sale", "bob")]).await, Ok(vec![1, 1, 2]));
    proxy.drop_answers();
    let calling = tokio::spawn({
        let near = near.clone();
        async move { join(&*near, &[("sale", "eve"), ("gate", "eve"), ("sale", "dan")]).await }
    });
    let given = "SELECT last FROM sequence WHERE home = 'sale'";
    until("it is done", async || (outside.number(given).await == 4).then_some(())).await;
    // Others take some before anybody asks what became of it.
    assert_eq!(join(&*other, &[("sale", "fay"), ("gate", "fay")]).await, Ok(vec![5, 3]));
    proxy.pass();
    assert_eq!(calling.await.unwrap(), Ok(vec![3, 2, 4]), "its own, and not those that came after");
    assert_eq!(join(&*near, &[("sale", "gus")]).await, Ok(vec![6]));
    let expected = ["ann", "bob", "eve", "dan", "fay", "gus"].map(str::to_owned).to_vec();
    assert_eq!(queue_of(&*other, "sale").await, (expected, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_anywhere_leaves_no_hole_and_gives_nothing_twice() {
    let (proxy, url, direct) = proxied("");
    let (near, other) = (engine(&url), engine(&direct));
    near.prepare().await.unwrap();
    let mut expected = Vec::new();
    for (cut, side, word) in [
        (Cut::Before, Direction::Request, "BEGIN"),
        (Cut::After, Direction::Request, "BEGIN"),
        (Cut::Before, Direction::Request, "COMMIT"),
        (Cut::After, Direction::Request, "COMMIT"),
        (Cut::Before, Direction::Answer, "COMMIT"),
    ] {
        let who = format!("s{}", expected.len());
        proxy.cut_when(cut, once(move |direction, bytes| direction == side && holds(bytes, word)));
        let number = loop {
            match join(&*near, &[("sale", &who)]).await {
                Ok(numbers) => break numbers[0],
                // Certainly not done.
                Err(CommitError::Conflict) => {}
                Err(error) => panic!("{cut:?} {side:?} {word}: {error}"),
            }
        };
        proxy.pass();
        expected.push(who);
        assert_eq!(number, expected.len() as u64, "{cut:?} {side:?} {word}");
    }
    assert_eq!(queue_of(&*other, "sale").await, (expected, 5));
}

/// Whoever takes numbers waits for who has taken some, and is then given those behind; or the very same, if that one is taken back.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_sequence_is_given_what_comes_next() {
    let application = crate::support::unique();
    let url = shared(&format!("&application_name={application}"));
    let engine = engine(&url);
    engine.prepare().await.unwrap();
    let (outside, watching) = (Outsider::of(&url).await, Outsider::of(&url).await);
    assert_eq!(join(&*engine, &[("sale", "ann")]).await, Ok(vec![1]));
    for (end, next) in [("ROLLBACK", 2), ("COMMIT", 8)] {
        outside.run("BEGIN; UPDATE sequence SET last = last + 5 WHERE home = 'sale'").await;
        let calling = tokio::spawn({
            let engine = engine.clone();
            async move { join(&*engine, &[("sale", "bob")]).await }
        });
        watching.until_waiting(&application, 1).await;
        outside.run(end).await;
        assert_eq!(calling.await.unwrap(), Ok(vec![next]), "{end}");
    }
}
