//! Short ways to start a runner, to name things and to look at answers.

use std::sync::{Arc, Mutex};

use tally_core::catalog::ReadPolicy;
use tally_core::command::{Call, Command, Decided, Relate, Unrelate};
use tally_core::reply::{EdgeReply, Reply};
use tally_core::rows::{EdgeKey, Key, Row, TotalKey};
use tally_core::time::Stamp;
use tally_core::view::{View, Wants};
use tally_core::{Catalog, Name, ObjectId, RelationDef, SubjectId, decide};
use tally_engine::clock::ManualClock;
use tally_engine::memory::Memory;
use tally_engine::{Clock, Engine, Failure, Runner, RunnerOptions, Seen, Settled};
use tokio::task::JoinHandle;

use crate::gated::{Gate, Gated};

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

pub(crate) fn object(text: &str) -> ObjectId {
    ObjectId::new(text).expect("a valid object")
}

pub(crate) fn subject(text: &str) -> SubjectId {
    SubjectId::new(text).expect("a valid subject")
}

pub(crate) fn edge_key(relation: &str, to: &str, who: &str) -> EdgeKey {
    EdgeKey { object: object(to), relation: name(relation), subject: subject(who) }
}

pub(crate) fn count_of(relation: &str, to: &str) -> TotalKey {
    TotalKey::Object { object: object(to), relation: name(relation) }
}

pub(crate) fn relate(relation: &str, to: &str, who: &str) -> Command {
    Command::from(Relate {
        relation: name(relation),
        object: object(to),
        subject: subject(who),
        kind: None,
        meta: None,
    })
}

pub(crate) fn unrelate(relation: &str, to: &str, who: &str) -> Command {
    Command::from(Unrelate { relation: name(relation), object: object(to), subject: subject(who) })
}

pub(crate) fn like(who: &str) -> Command {
    relate("like", "post:1", who)
}

pub(crate) fn unlike(who: &str) -> Command {
    unrelate("like", "post:1", who)
}

/// `like`, and `pin` of which a subject has one.
pub(crate) fn catalog() -> Arc<Catalog> {
    let mut catalog = Catalog::default();
    let pin = RelationDef { limit_per_subject: Some(1), ..RelationDef::new(name("pin"), ReadPolicy::Public) };
    catalog.declare(pin);
    Arc::new(catalog)
}

/// What was told of every batch: its commands, its conflicts, its defects and its totals.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Told {
    pub(crate) commands: usize,
    pub(crate) conflicts: u32,
    pub(crate) broken: usize,
    pub(crate) totals: Vec<(TotalKey, i64)>,
}

/// A runner, with what was told about it.
pub(crate) struct Bench {
    pub(crate) runner: Runner,
    pub(crate) done: JoinHandle<()>,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Bench {
    pub(crate) async fn start<E: Engine>(engine: &Arc<E>) -> Self {
        Self::with(engine, ManualClock::at(1_000), RunnerOptions::default()).await
    }

    /// A runner behind gates.
    pub(crate) async fn gated() -> (Arc<Gated>, Self) {
        let engine = Arc::new(Gated::default());
        let bench = Self::start(&engine).await;
        (engine, bench)
    }

    /// Closes a gate, and queues a command that has come there when this returns.
    pub(crate) async fn held_at(&self, gate: &Gate, command: Command) -> JoinHandle<Result<Decided, Failure>> {
        gate.close();
        let held = self.send(command);
        gate.has_seen(1).await;
        held
    }

    pub(crate) async fn with<E: Engine>(engine: &Arc<E>, clock: impl Clock, options: RunnerOptions) -> Self {
        let told: Arc<Mutex<Vec<Told>>> = Arc::default();
        let tell = told.clone();
        let observer = Arc::new(move |settled: &Settled| {
            let Settled { totals, commands, conflicts, broken, due: _, at: _ } = settled;
            let (commands, conflicts, broken) = (*commands, *conflicts, *broken);
            tell.lock().expect("no panic").push(Told { commands, conflicts, broken, totals: totals.clone() });
        });
        let started = Runner::start(engine.clone(), catalog(), clock, options, observer).await;
        let (runner, done) = started.expect("a runner starts");
        Self { runner, done, told }
    }

    pub(crate) fn told(&self) -> Vec<Told> {
        self.told.lock().expect("no panic").clone()
    }

    /// Queues a command, and goes on.
    pub(crate) fn send(&self, command: Command) -> JoinHandle<Result<Decided, Failure>> {
        let runner = self.runner.clone();
        tokio::spawn(async move { runner.apply(Call::system(command)).await })
    }

    /// Queues commands in this order, and returns when all of them wait.
    pub(crate) async fn queue(
        &self,
        commands: impl IntoIterator<Item = Command>,
    ) -> Vec<JoinHandle<Result<Decided, Failure>>> {
        let mut calls = Vec::new();
        for command in commands {
            let before = self.runner.waiting();
            calls.push(self.send(command));
            until(|| self.runner.waiting() > before).await;
        }
        calls
    }

    pub(crate) async fn apply(&self, command: Command) -> Result<Decided, Failure> {
        self.runner.apply(Call::system(command)).await
    }

    /// Applies a command that must be answered with an edge.
    pub(crate) async fn edge(&self, command: Command) -> EdgeReply {
        edge(self.apply(command).await)
    }
}

/// Gives way to other tasks until something is so. Bounded, so that what never comes is a failure
/// and not a test that hangs.
pub(crate) async fn until(so: impl Fn() -> bool) {
    for _ in 0..1_000_000 {
        if so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never came to that");
}

/// The edge of an answer.
pub(crate) fn edge(answer: Result<Decided, Failure>) -> EdgeReply {
    match answer.expect("it was answered").reply {
        Ok(Reply::Relation(edge)) => edge,
        other => panic!("{other:?} is not an edge"),
    }
}

/// The code of an answer's refusal.
pub(crate) fn code(answer: Result<Decided, Failure>) -> &'static str {
    answer.expect("it was answered").reply.expect_err("a refusal").code().name()
}

/// Whether an edge is in the store.
pub(crate) fn has(memory: &Memory, key: EdgeKey) -> bool {
    matches!(memory.dump().0.get(&Key::Edge(key)), Some(Row::Edge(_)))
}

/// A count in the store.
pub(crate) fn count(memory: &Memory, relation: &str, to: &str) -> i64 {
    memory.dump().1.get(&count_of(relation, to)).copied().unwrap_or(0)
}

/// Decides and commits a command at once, as another server on the same store would.
pub(crate) fn elsewhere(memory: &Memory, command: Command) {
    let (call, catalog) = (Call::system(command), catalog());
    let mut view = View::default();
    let committed = async {
        loop {
            if decide(&call, Stamp(7), Stamp(7), 7, &catalog, &mut view).is_ok() {
                break;
            }
            let Wants { rows, totals, ranks } = view.take_missing();
            let loaded =
                memory.load(&Wants { rows: rows.clone(), totals: totals.clone(), ranks: ranks.clone() }).await?;
            rows.into_iter().zip(loaded.rows).for_each(|(key, row)| view.fill_row(key, row));
            totals.into_iter().zip(loaded.totals).for_each(|(key, total)| view.fill_total(key, total));
        }
        memory.commit(Seen { mark: Default::default(), view: &view }, &view.changes(Stamp(7))).await
    };
    // The oracle never waits, so neither does this.
    let committed = futures_util::FutureExt::now_or_never(committed).expect("the oracle answers at once");
    committed.expect("nobody is in its way");
}
