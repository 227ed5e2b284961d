//! The plainest way to run a command: load, decide, commit, one after another, with stamps and ids
//! that the caller gives. What the runner does in batches is checked against this.

use tally_core::command::{Call, Decided};
use tally_core::decide::decide;
use tally_core::rows::{Changes, Key, Row, TotalKey};
use tally_core::time::Stamp;
use tally_core::view::{Stop, View, Wants};
use tally_core::{Catalog, Command};
use tally_engine::{CommitError, Committed, Engine, Mark, Seen, StoreError};

use crate::sample;

/// A call with everything that comes from outside.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) stamp: Stamp,
    pub(crate) id: u64,
    pub(crate) call: Call,
}

/// A decision that is not committed yet.
pub(crate) struct Draft {
    pub(crate) decided: Decided,
    pub(crate) view: View,
    pub(crate) mark: Mark,
    pub(crate) changes: Changes,
}

impl Draft {
    /// Loads and decides, on a store that works.
    pub(crate) async fn new<E: Engine>(engine: &E, catalog: &Catalog, step: &Step) -> Self {
        Self::try_new(engine, catalog, step).await.expect("a load works")
    }

    /// Loads and decides.
    pub(crate) async fn try_new<E: Engine>(engine: &E, catalog: &Catalog, step: &Step) -> Result<Self, StoreError> {
        let mut view = View::default();
        let mut mark = None;
        loop {
            let start = view.savepoint();
            match decide(&step.call, step.stamp, step.stamp, step.id, catalog, &mut view) {
                Ok(_) if view.misses() => {
                    view.rollback(start);
                    let wants = view.take_missing();
                    let found = fill(engine, &mut view, wants).await?;
                    mark = mark.or(Some(found));
                }
                Ok(decided) => {
                    let changes = view.changes(step.stamp);
                    return Ok(Self { decided, view, mark: mark.unwrap_or_default(), changes });
                }
                Err(Stop::Refused(refusal)) => panic!("a refusal is an answer, not a stop: {refusal}"),
                Err(Stop::Miss) => {
                    let wants = view.take_missing();
                    let found = fill(engine, &mut view, wants).await?;
                    mark = mark.or(Some(found));
                }
            }
        }
    }

    pub(crate) async fn commit<E: Engine>(&self, engine: &E) -> Result<Committed, CommitError> {
        engine.commit(Seen { mark: self.mark, view: &self.view }, &self.changes).await
    }
}

async fn fill<E: Engine>(engine: &E, view: &mut View, wants: Wants) -> Result<Mark, StoreError> {
    let loaded = engine.load(&wants).await?;
    assert_eq!(
        (loaded.rows.len(), loaded.totals.len(), loaded.ranks.len()),
        (wants.rows.len(), wants.totals.len(), wants.ranks.len()),
        "a load answers everything that was asked"
    );
    for (key, row) in wants.rows.into_iter().zip(loaded.rows) {
        view.fill_row(key, row);
    }
    for (key, total) in wants.totals.into_iter().zip(loaded.totals) {
        view.fill_total(key, total);
    }
    for (standing, before) in wants.ranks.into_iter().zip(loaded.ranks) {
        view.fill_rank(standing, before);
    }
    Ok(loaded.mark)
}

/// Runs a step that nobody else can be in the way of.
pub(crate) async fn apply<E: Engine>(engine: &E, catalog: &Catalog, step: &Step) -> Decided {
    let draft = Draft::new(engine, catalog, step).await;
    if !draft.changes.is_empty() {
        draft.commit(engine).await.expect("nobody else writes, so nothing can have moved");
    }
    draft.decided
}

/// Hands out stamps and ids, and runs commands on one engine.
pub(crate) struct Hand<'a, E> {
    pub(crate) engine: &'a E,
    pub(crate) catalog: &'a Catalog,
    next: u64,
}

impl<'a, E: Engine> Hand<'a, E> {
    pub(crate) fn new(engine: &'a E, catalog: &'a Catalog) -> Self {
        Self { engine, catalog, next: 1 }
    }

    /// A step of its own place in time.
    pub(crate) fn step(&mut self, command: Command) -> Step {
        let at = self.next;
        self.next += 10_000;
        Step { stamp: Stamp(at), id: at, call: sample::call(command) }
    }

    pub(crate) async fn draft(&mut self, command: Command) -> Draft {
        let step = self.step(command);
        Draft::new(self.engine, self.catalog, &step).await
    }

    /// Runs a command that must not be refused.
    pub(crate) async fn run(&mut self, command: Command) -> Decided {
        let step = self.step(command);
        let decided = apply(self.engine, self.catalog, &step).await;
        assert!(decided.reply.is_ok(), "{:?} was refused: {:?}", step.call.command, decided.reply);
        decided
    }
}

/// Writes rows as they are, past the rules, on the condition that nothing of them has moved.
pub(crate) async fn write<E: Engine>(
    engine: &E,
    rows: impl IntoIterator<Item = (Key, Option<Row>)>,
    adds: impl IntoIterator<Item = (TotalKey, i64)>,
) {
    let rows: Vec<(Key, Option<Row>)> = rows.into_iter().collect();
    let mut view = View::default();
    let wants = Wants::rows(rows.iter().map(|(key, _)| key.clone()).collect());
    let mark = fill(engine, &mut view, wants).await.expect("a load works");
    for (key, row) in rows {
        view.set(key, row).expect("the row was loaded");
    }
    let mut changes = view.changes(Stamp(1));
    changes.adds = adds.into_iter().collect();
    engine.commit(Seen { mark, view: &view }, &changes).await.expect("nobody else writes");
}
