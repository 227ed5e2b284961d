//! Commits: visible at once, all or nothing, and never lost to another.

use serde_json::json;
use tally_core::rows::{Key, Object, Row, Side};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_engine::{CommitError, Engine, Mark, Range, Seen};

use crate::EngineFactory;
use crate::auditor::assert_sound;
use crate::driver::Hand;
use crate::sample::{batch, catalog, count_of, edge, edge_key, list, meta, object, put, relate, total_of};
use crate::stand::Stand;
use crate::universe::Universe;

pub(super) async fn a_commit_is_seen_by_the_next_load<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = Universe::new(&["alice"], &["post:1"], &["like"]);
    let mut hand = Hand::new(&*engine, &catalog);
    let draft = hand.draft(relate("like", "post:1", "alice")).await;
    assert_eq!(universe.dump(&*engine).await, Default::default(), "a draft is nothing yet");
    let committed = draft.commit(&*engine).await.expect("nobody else writes");
    assert!(committed.mark >= draft.mark, "time does not go back");
    let dump = universe.dump(&*engine).await;
    assert_eq!(dump.rows.len(), 1);
    assert_eq!(dump.totals, [(count_of("like", "post:1"), 1), (total_of("like", "alice"), 1)].into());
}

/// A commit over many rows of which only one has moved leaves no trace of the others: not in rows,
/// not in totals, not in lists.
pub(super) async fn a_commit_that_conflicts_writes_nothing<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = Universe::new(&["alice", "bob"], &["post:1", "post:2", "post:3"], &["like", "mark"]);
    let mut hand = Hand::new(&*engine, &catalog);
    hand.run(put("post:2", "open")).await;
    let several = batch([
        relate("like", "post:1", "alice"),
        relate("mark", "post:2", "alice"),
        relate("like", "post:3", "alice"),
        put("post:3", "open"),
    ]);
    let late = hand.draft(several).await;
    hand.run(put("post:2", "closed")).await;
    let before = universe.dump(&*engine).await;
    assert_eq!(late.commit(&*engine).await, Err(CommitError::Conflict));
    stand.drain(&engine).await;
    assert_eq!(universe.dump(&*engine).await, before);
    assert_sound(&*engine, &universe).await;
}

/// Two servers that like one post at once do not stand in each other's way, and both are told
/// what the count became.
pub(super) async fn additions_do_not_conflict<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = Universe::new(&["alice", "bob", "carol"], &["post:1"], &["like"]);
    let mut hand = Hand::new(&*engine, &catalog);
    hand.run(relate("like", "post:1", "carol")).await;
    let first = hand.draft(relate("like", "post:1", "alice")).await;
    let second = hand.draft(relate("like", "post:1", "bob")).await;
    for (draft, count) in [(first, 2), (second, 3)] {
        let committed = draft.commit(&*engine).await.expect("a blind addition never conflicts");
        let key = count_of("like", "post:1");
        let place = draft.changes.adds.iter().position(|(added, _)| *added == key).expect("a like adds to the count");
        let told = match committed.totals {
            Some(totals) => totals[place],
            None => draft.view.final_total(&key).expect("the count was loaded"),
        };
        assert_eq!(told, count);
    }
    stand.drain(&engine).await;
    assert_sound(&*engine, &universe).await;
}

/// Every mark that an engine hands out can be waited for.
pub(super) async fn what_was_committed_can_be_settled<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let mut hand = Hand::new(&*engine, &catalog);
    engine.settle(Mark::default()).await.expect("the beginning is durable");
    let draft = hand.draft(relate("like", "post:1", "alice")).await;
    engine.settle(draft.mark).await.expect("what was loaded becomes durable");
    let committed = draft.commit(&*engine).await.expect("nobody else writes");
    let load = engine.load(&Wants::totals(vec![count_of("like", "post:1")])).await;
    engine.settle(committed.mark).await.expect("what was committed becomes durable");
    engine.settle(load.expect("a load works").mark).await.expect("so does what was loaded behind it");
    engine.settle(committed.mark).await.expect("again, at once");
    engine.ping().await.expect("an engine that takes writes says so");
}

pub(super) async fn an_engine_can_be_prepared_twice<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = Universe::new(&["alice"], &["post:1"], &["like"]);
    let mut hand = Hand::new(&*engine, &catalog);
    assert_eq!(engine.prepare().await, Ok(Stamp::default()), "a new store has no stamp");
    let step = hand.step(relate("like", "post:1", "alice"));
    crate::driver::apply(&*engine, &catalog, &step).await;
    let before = universe.dump(&*engine).await;
    assert_eq!(engine.prepare().await, Ok(step.stamp), "the newest stamp is known");
    assert_eq!(universe.dump(&*engine).await, before);
}

/// Read, add one, commit, and again after a conflict: what every lost update would show in.
pub(super) async fn increments_of_many_tasks_are_all_kept<F: EngineFactory>(stand: Stand<F>) {
    const TASKS: u64 = 8;
    const EACH: u64 = 25;
    let engine = stand.open().await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    while increment(&*engine).await.is_err_and(|error| error == CommitError::Conflict) {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no task panics");
    }
    assert_eq!(number(&load(&*engine).await.0), TASKS * EACH);
}

/// Whoever answers with what it read waits for the mark first. So a mark must cover everything that
/// was seen with it, also what was committed while it was being read.
pub(super) async fn a_mark_covers_what_was_seen<F: EngineFactory>(stand: Stand<F>) {
    const COMMITS: u64 = 600;
    let engine = stand.open().await;
    let (told, marks) = tokio::sync::watch::channel(vec![Mark::default()]);
    let writing = tokio::spawn({
        let engine = engine.clone();
        async move {
            for _ in 0..COMMITS {
                let mark = increment(&*engine).await.expect("nobody else writes");
                told.send_modify(|marks| marks.push(mark));
            }
        }
    });
    let mut reads = Vec::new();
    while !writing.is_finished() {
        let (row, mark) = load(&*engine).await;
        reads.push((number(&row), mark));
        let page = engine.scan(&posts(), 10).await.expect("a scan works");
        if let Some((_, Row::Edge(edge))) = page.items.first() {
            reads.push((edge.created.0, page.mark));
        }
        tokio::task::yield_now().await;
    }
    writing.await.expect("the writer does not panic");
    let marks = marks.borrow();
    for (seen, mark) in &reads {
        let index = usize::try_from(*seen).expect("a small number");
        assert!(*mark >= marks[index], "commit {seen} ended at {:?}, and was seen with {mark:?}", marks[index]);
    }
    assert!(reads.len() > 10, "only {} reads", reads.len());
}

fn posts() -> Range {
    Range::List { list: list(Side::Object, "post:1", Some("like"), false), after: None }
}

/// The row, among many that are not there: a load that takes its time meets more commits.
async fn load<E: Engine>(engine: &E) -> (Option<Row>, Mark) {
    let bystanders = (0..300).map(|n| Key::Object(object(&format!("nothing:{n}"))));
    let rows = [Key::Object(object("post:1"))].into_iter().chain(bystanders).collect();
    let mut loaded = engine.load(&Wants::rows(rows)).await.expect("a load works");
    (loaded.rows.remove(0), loaded.mark)
}

fn number(row: &Option<Row>) -> u64 {
    match row {
        Some(Row::Object(object)) => object.attributes["n"].as_u64().expect("a number"),
        _ => 0,
    }
}

/// Adds one to the number in a row, and puts an edge with that number for a stamp in a list.
async fn increment<E: Engine>(engine: &E) -> Result<Mark, CommitError> {
    let key = Key::Object(object("post:1"));
    let (row, mark) = load(engine).await;
    let next = number(&row) + 1;
    let attributes = meta(&json!({"n": next}));
    let object = Object { status: None, attributes, created_at: Timestamp(1), updated_at: Timestamp(1) };
    let mut view = View::default();
    view.fill_row(key.clone(), row);
    view.set(key, Some(Row::Object(object))).expect("the row was loaded");
    let liked = Key::Edge(edge_key("like", "post:1", &format!("s{next}")));
    view.fill_row(liked.clone(), None);
    view.set(liked, Some(Row::Edge(edge(next)))).expect("its absence was loaded");
    let changes = view.changes(Stamp(next));
    engine.commit(Seen { mark, view: &view }, &changes).await.map(|committed| committed.mark)
}
