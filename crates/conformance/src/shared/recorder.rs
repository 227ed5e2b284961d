//! Writes down who asked what when, and what was answered, edge by edge.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tally_core::Command;
use tally_core::command::{Relate, Toggle, Unrelate};
use tally_core::reply::{EdgeReply, Reply};
use tally_core::rows::{EdgeKey, Key, Row};
use tally_core::view::Wants;
use tally_engine::{Engine, Failure, Runner};

use super::linear::{Action, Answer, Op, State, is_linearizable};
use crate::random::Random;
use crate::sample::{call, name};
use crate::universe::Universe;

/// A history in the making.
#[derive(Default)]
pub(super) struct Recorder {
    moments: AtomicU64,
    ops: Mutex<BTreeMap<EdgeKey, Vec<Op>>>,
}

impl Recorder {
    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }

    fn take(&self, key: EdgeKey, op: Op) {
        self.ops.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().push(op);
    }

    /// Sends something to do with an edge. Says whether it was answered.
    pub(super) async fn write(&self, runner: &Runner, key: &EdgeKey, action: Action) -> bool {
        let asked = self.moment();
        let answer = runner.apply(call(command(key, &action))).await;
        let at = self.moment();
        let answered = match answer {
            Ok(decided) => match decided.reply.expect("nothing here is to be refused") {
                Reply::Relation(edge) => Some((at, answer_of(edge))),
                other => panic!("{other:?} is not an edge"),
            },
            // Nothing was done, and that is certain.
            Err(Failure::Overloaded) => return true,
            // It may have been done, and may still be.
            Err(_) => None,
        };
        let known = answered.is_some();
        self.take(key.clone(), Op { asked, answered, action });
        known
    }

    /// Reads an edge past the runner, as queries do. What could not be read says nothing.
    pub(super) async fn read<E: Engine>(&self, engine: &E, key: &EdgeKey) {
        let asked = self.moment();
        let wants = Wants::rows(vec![Key::Edge(key.clone())]);
        let Ok(mut loaded) = engine.load(&wants).await else { return };
        if engine.settle(loaded.mark).await.is_err() {
            return;
        }
        let at = self.moment();
        let state = match loaded.rows.remove(0) {
            Some(Row::Edge(edge)) => State::Present(edge.kind),
            None => State::Absent,
            Some(other) => panic!("{other:?} is not an edge"),
        };
        self.take(
            key.clone(),
            Op { asked, answered: Some((at, Answer { state, changed: false })), action: Action::Read },
        );
    }

    /// Something at random, on an edge at random. Says whether it was answered.
    pub(super) async fn anything<E: Engine>(
        &self,
        random: &mut Random,
        universe: &Universe,
        runner: &Runner,
        engine: &E,
    ) -> bool {
        let edges: Vec<EdgeKey> = universe.edges().collect();
        let key = random.pick(&edges);
        let kind = (key.relation == name("reaction")).then(|| random.pick(&universe.kinds).clone());
        match random.below(20) {
            0..=6 => self.write(runner, key, Action::Relate(kind)).await,
            7..=11 => self.write(runner, key, Action::Unrelate).await,
            12..=14 => self.write(runner, key, Action::Toggle(kind)).await,
            _ => {
                self.read(engine, key).await;
                true
            }
        }
    }

    /// Every edge's history can have happened one after another.
    pub(super) fn assert_linearizable(&self) {
        for (key, ops) in self.ops.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            ops.sort_by_key(|op| op.asked);
            if !is_linearizable(ops) {
                let mut shown = String::new();
                ops.iter().for_each(|op| writeln!(shown, "  {op:?}").expect("a string takes everything"));
                panic!("there is no order for what was answered on {key:?}:\n{shown}");
            }
        }
    }

    /// How much was written down.
    pub(super) fn len(&self) -> usize {
        self.ops.lock().unwrap_or_else(PoisonError::into_inner).values().map(Vec::len).sum()
    }
}

fn answer_of(edge: EdgeReply) -> Answer {
    let state = if edge.active { State::Present(edge.kind) } else { State::Absent };
    Answer { state, changed: edge.changed }
}

fn command(key: &EdgeKey, action: &Action) -> Command {
    let EdgeKey { object, relation, subject } = key.clone();
    match action {
        Action::Relate(kind) => Command::from(Relate { relation, object, subject, kind: kind.clone(), meta: None }),
        Action::Toggle(kind) => Command::from(Toggle { relation, object, subject, kind: kind.clone(), meta: None }),
        Action::Unrelate => Command::from(Unrelate { relation, object, subject }),
        Action::Read => unreachable!("reads go past the runner"),
    }
}
