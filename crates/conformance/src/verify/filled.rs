//! A store with rows of every kind, made by the rules alone.

use std::sync::Arc;

use tally_core::command::{Add, Attend, ChangeScore, Forget, Observe, Once, ScoreChange, Take};
use tally_core::rows::{Key, Row, Ticket, TicketKey, TicketState};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{Catalog, Command, Day};
use tally_engine::Engine;

use super::{findings, words};
use crate::EngineFactory;
use crate::counting::generate::{catalog, key, steps};
use crate::counting::lockstep::all_rows;
use crate::driver::{Step, apply, write};
use crate::sample::{call, name, relate, replay_key, subject};
use crate::stand::Stand;

/// Whom no random command is about.
pub(super) const WHO: [&str; 5] = ["eve", "fay", "8", "80000", "gil"];
/// A day on which all of them were there.
pub(super) const DAY: Day = Day(20_100);
/// A score that three of them have, on a board with dense ranks.
pub(super) const SCORE: i64 = 700;

/// A ticket that no rule wrote; one in four does not wait any more.
fn ticket(seq: u64) -> (Key, Option<Row>) {
    let state = if seq.is_multiple_of(4) { TicketState::Left } else { TicketState::Waiting };
    let ticket = Ticket::new(subject(WHO[0]), &format!("t{seq}"), state, Timestamp(seq), Timestamp(seq + 1));
    (Key::Ticket(TicketKey { room: name("sale"), seq: tally_core::rows::Seq::Given(seq) }), Some(Row::Ticket(ticket)))
}

/// A store, and a hand that goes on in its time.
pub(super) struct Filled<'a, E> {
    pub(super) engine: &'a E,
    pub(super) catalog: Catalog,
    next: Timestamp,
}

impl<'a, E: Engine> Filled<'a, E> {
    /// What random commands did, and above that what cases are about. Somebody is in the midst of being forgotten.
    pub(super) async fn new(engine: &'a E, seed: u64) -> Self {
        let catalog = catalog();
        let steps = steps(seed, 60);
        for step in &steps {
            apply(engine, &catalog, step).await;
        }
        let mut filled = Self { engine, catalog, next: Timestamp(10_000_000) };
        for (number, who) in WHO.into_iter().enumerate() {
            for day in DAY.0..DAY.0 + 3 {
                for sheet in ["daily", "gym"] {
                    let command = Command::from(Attend {
                        sheet: name(sheet),
                        day: Some(Day(day)),
                        subject: subject(who),
                        present: true,
                    });
                    filled.run(command).await;
                }
            }
            let score = if number < 3 { SCORE } else { SCORE + number as i64 };
            for board in ["dense", "shared", "points", "weekly"] {
                let change = ScoreChange::To(score);
                filled.run(Command::from(ChangeScore { board: name(board), member: subject(who), change })).await;
            }
            filled.run(Command::from(Add { counter: name("views"), key: key("home"), by: 2 })).await;
            filled
                .run(Command::from(Observe { unique: name("dau"), key: key("home"), members: vec![who.into()] }))
                .await;
            filled.run(Command::from(Take { limit: name("bucket"), key: key(who), cost: 1 })).await;
            filled.run(relate("like", "post:9", who)).await;
        }
        write(engine, (1..40).map(ticket), []).await;
        filled.run(Command::from(Forget { subject: subject(WHO[4]) })).await;
        filled
    }

    pub(super) async fn run(&mut self, command: Command) {
        self.next = self.next.plus_ms(1_500);
        let once = Once { key: replay_key("app", &format!("at {}", self.next.0)), fields: Arc::default() };
        let call = tally_core::Call { once: Some(once), ..call(command) };
        let step = Step { stamp: Stamp::at(self.next), id: self.next.0 * 1_000, call };
        let decided = apply(self.engine, &self.catalog, &step).await;
        assert!(decided.reply.is_ok(), "{:?} was refused: {:?}", step.call.command, decided.reply);
    }
}

pub(super) async fn rows_of_every_kind_agree_and_are_counted<F: EngineFactory>(stand: Stand<F>) {
    for seed in 0..4 {
        let stand = stand.another();
        let engine = stand.open().await;
        Filled::new(&*engine, seed).await;
        stand.drain(&engine).await;
        let found: Vec<String> = findings(&*engine).await.iter().map(words).collect();
        assert_eq!(found, Vec::<String>::new(), "seed {seed}");
        let rows = all_rows(&*engine, 1_000).await;
        let audited = engine.audit(&mut |_| {}).await.expect("an audit works");
        let edges = rows.keys().filter(|key| matches!(key, Key::Edge(_))).count() as u64;
        let counters = rows.keys().filter(|key| matches!(key, Key::Counter(_))).count();
        assert_eq!((audited.rows, audited.edges), ((rows.len() - counters) as u64, edges), "seed {seed}");
        let days = rows.keys().filter(|key| matches!(key, Key::Day(..))).count() as u64;
        assert!(audited.totals > days, "{audited:?}: totals of {days} days and of edges");
    }
}
