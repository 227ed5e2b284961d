//! The plainest rule that takes numbers: who joins a room gets the next one, and whoever has one keeps it.

use tally_core::room::rows::queue;
use tally_core::rows::{
    Changes, EntryKey, Key, OrderKey, Place, Row, Seq, SequenceKey, Standing, Ticket, TicketKey, TicketState,
};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_engine::{CommitError, Engine, Mark, Seen};

use crate::sample::{name, subject};

/// The order of who waits in a room.
pub(crate) fn queue_order(room: &str) -> OrderKey {
    OrderKey::Queue(name(room))
}

/// Where a ticket stands in it.
pub(crate) fn stands_at(room: &str, seq: Seq) -> Standing {
    Standing::at(queue_order(room), Place::of_number(seq))
}

pub(crate) fn ticket_key(room: &str, seq: Seq) -> Key {
    Key::Ticket(TicketKey { room: name(room), seq })
}

pub(crate) fn entry_key(room: &str, who: &str) -> Key {
    Key::Entry(EntryKey { room: name(room), subject: subject(who), token: "a \"token\"".into() })
}

pub(crate) fn ticket(who: &str) -> Row {
    let (joined_at, due_at) = (Timestamp(1_700_000_000_123), Timestamp(1_700_000_120_123));
    Row::Ticket(Ticket::new(subject(who), "a \"token\"", TicketState::Waiting, joined_at, due_at))
}

pub(crate) fn sequence(room: &str) -> SequenceKey {
    queue(&name(room))
}

/// Some who join, decided and not committed yet.
pub(crate) struct Joins {
    pub(crate) view: View,
    pub(crate) mark: Mark,
    /// The room of each, and its number.
    numbers: Vec<(String, Seq)>,
}

impl Joins {
    /// Loads what is known of them, and decides for each.
    pub(crate) async fn new<E: Engine>(engine: &E, who: &[(&str, &str)]) -> Result<Self, CommitError> {
        let mut joins = Self { view: View::default(), mark: Mark::default(), numbers: Vec::new() };
        let wants = Wants::rows(who.iter().map(|(room, who)| entry_key(room, who)).collect());
        let loaded = engine.load(&wants).await?;
        joins.mark = loaded.mark;
        for (key, row) in wants.rows.into_iter().zip(loaded.rows) {
            joins.view.fill_row(key, row);
        }
        for (room, who) in who {
            joins.join(room, who);
        }
        Ok(joins)
    }

    fn join(&mut self, room: &str, who: &str) {
        let known = self.view.row(&entry_key(room, who)).expect("it was loaded");
        let seq = match known {
            Some(Row::Entry(seq)) => seq,
            _ => {
                let seq = self.view.take_number(&sequence(room));
                self.view.set(ticket_key(room, seq), Some(ticket(who))).expect("it is new");
                self.view.set(entry_key(room, who), Some(Row::Entry(seq))).expect("it was loaded");
                seq
            }
        };
        self.numbers.push((room.to_owned(), seq));
    }

    /// A ticket that was given before waits no more.
    pub(crate) fn leave(&mut self, room: &str, seq: u64, who: &str) {
        let key = ticket_key(room, Seq::Given(seq));
        let Row::Ticket(waiting) = ticket(who) else { panic!("it is a ticket") };
        self.view.fill_row(key.clone(), Some(Row::Ticket(waiting.clone())));
        let left = Ticket { state: TicketState::Left, ..waiting };
        self.view.set(key, Some(Row::Ticket(left))).expect("it was loaded");
    }

    /// Loads the position of each who joins, and then these.
    async fn load_positions<E: Engine>(
        &mut self,
        engine: &E,
        others: &[Standing],
    ) -> Result<Vec<Standing>, CommitError> {
        let mut ranks: Vec<Standing> = self.numbers.iter().map(|(room, seq)| stands_at(room, *seq)).collect();
        ranks.extend_from_slice(others);
        let loaded = engine.load(&Wants { ranks: ranks.clone(), ..Wants::default() }).await?;
        for (standing, before) in ranks.iter().zip(loaded.ranks) {
            self.view.fill_rank(standing.clone(), before);
        }
        Ok(ranks)
    }

    /// Has the commit tell the position of each, and then these.
    pub(crate) async fn show<E: Engine>(&mut self, engine: &E, others: &[Standing]) -> Result<(), CommitError> {
        let ranks = self.load_positions(engine, others).await?;
        ranks.iter().for_each(|standing| self.view.tell_rank(standing));
        assert_eq!(self.view.told_ranks(), ranks, "each once");
        Ok(())
    }

    /// Has the commit stand on the position of each.
    pub(crate) async fn hold<E: Engine>(&mut self, engine: &E) -> Result<(), CommitError> {
        let ranks = self.load_positions(engine, &[]).await?;
        ranks.iter().for_each(|standing| self.view.hold_rank(standing));
        Ok(())
    }

    pub(crate) fn changes(&self) -> Changes {
        self.view.changes(Stamp(1))
    }

    /// The number of each.
    pub(crate) async fn commit<E: Engine>(&self, engine: &E) -> Result<Vec<u64>, CommitError> {
        Ok(self.commit_told(engine).await?.0)
    }

    /// The same, and the ranks that were told.
    pub(crate) async fn commit_told<E: Engine>(&self, engine: &E) -> Result<(Vec<u64>, Vec<u64>), CommitError> {
        let changes = self.changes();
        let (mut firsts, mut mark) = (Vec::new(), self.mark);
        let mut ranks: Vec<u64> = self.view.told_ranks().iter().map(|told| self.view.final_rank(told)).collect();
        if !changes.is_empty() {
            let committed = engine.commit(Seen { mark: self.mark, view: &self.view }, &changes).await?;
            assert_eq!(committed.numbers.len(), changes.numbers.len(), "every sequence is told");
            (firsts, mark) = (committed.numbers, committed.mark);
            ranks = committed.ranks.unwrap_or(ranks);
        }
        let first = |room: &str| {
            let place = changes.numbers.iter().position(|(taken, _)| *taken == sequence(room));
            place.map_or(0, |place| firsts[place])
        };
        let numbers = self.numbers.iter().map(|(room, seq)| seq.given(first(room))).collect();
        engine.settle(mark).await?;
        Ok((numbers, ranks))
    }
}

/// These join, each in a room, in one commit. Gives the number of each.
pub async fn join<E: Engine>(engine: &E, who: &[(&str, &str)]) -> Result<Vec<u64>, CommitError> {
    Joins::new(engine, who).await?.commit(engine).await
}

/// The last number given in a room.
pub(crate) async fn last<E: Engine>(engine: &E, room: &str) -> u64 {
    let loaded = engine.load(&Wants::rows(vec![sequence(room).key()])).await.expect("a load works");
    SequenceKey::last(loaded.rows[0].as_ref())
}

/// Who has the tickets from 1 on, as far as there are any.
pub(crate) async fn queue_of<E: Engine>(engine: &E, room: &str) -> Vec<String> {
    let until = last(engine, room).await + 3;
    let keys = (1..=until).map(|seq| ticket_key(room, Seq::Given(seq))).collect();
    let rows = engine.load(&Wants::rows(keys)).await.expect("a load works").rows;
    let whose = |row: &Option<Row>| match row {
        Some(Row::Ticket(ticket)) => Some(ticket.subject.as_str().to_owned()),
        _ => None,
    };
    let tickets: Vec<Option<String>> = rows.iter().map(whose).collect();
    let queue: Vec<String> = tickets.iter().map_while(Clone::clone).collect();
    let there = tickets.iter().flatten().count();
    assert_eq!(queue.len(), there, "there are holes among {tickets:?}");
    assert_eq!(queue.len() as u64, until - 3, "the sequence is where its tickets end");
    queue
}
