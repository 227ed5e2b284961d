//! What was settled is there when the store is opened again.

use std::sync::Arc;

use serde_json::json;
use tally_core::command::{Call, Forget, Once, PutApiKey, Relate, Suspend, Sweep};
use tally_core::rows::{ApiKey, Role};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{Catalog, Command};
use tally_engine::Engine;

use crate::EngineFactory;
use crate::auditor::assert_sound;
use crate::driver::{Draft, Hand, Step, apply};
use crate::sample::{batch, catalog, meta, name, object, put, react, relate, replay_key, subject, unrelate};
use crate::stand::Stand;
use crate::universe::Universe;

/// One of everything.
async fn fill<E: Engine>(engine: &E, catalog: &Catalog) -> Universe {
    let mut universe = Universe::new(
        &["alice", "bob", "carol"],
        &["post:1", "post:2", "post:3"],
        &["like", "note", "mark", "pin", "reaction"],
    );
    let mut hand = Hand::new(engine, catalog);
    hand.run(put("post:1", "open")).await;
    hand.run(batch(["alice", "bob", "carol"].map(|who| relate("like", "post:1", who)))).await;
    hand.run(relate("mark", "post:1", "bob")).await;
    hand.run(relate("pin", "post:2", "bob")).await;
    hand.run(react("reaction", "post:2", "alice", "wow")).await;
    hand.run(react("reaction", "post:2", "alice", "love")).await;
    hand.run(unrelate("like", "post:1", "alice")).await;
    let (note, text) = (name("note"), meta(&json!({"text": "안녕"})));
    let (to, who) = (object("post:3"), subject("carol"));
    hand.run(Command::from(Relate { relation: note, object: to, subject: who, kind: None, meta: Some(text) })).await;
    let suspend = hand.step(Command::from(Suspend { subject: subject("carol") }));
    apply(engine, catalog, &suspend).await;
    let carols = universe.edges().filter(|key| key.subject.as_str() == "carol").collect();
    let job = suspend.call.command.job().expect("it begins a job");
    hand.run(Command::from(Sweep { job, before: Stamp(u64::MAX), edges: carols })).await;
    let key =
        ApiKey { hash: "h".into(), role: Role::Admin, name: "n".into(), created_at: Timestamp(1), revoked_at: None };
    hand.run(Command::from(PutApiKey { id: "k1".into(), key })).await;
    let once = Once { key: replay_key("app", "k"), fields: Arc::new(vec![("op".into(), 1)]) };
    let toggle = hand.step(relate("like", "post:3", "bob"));
    let toggle = Step { call: Call { once: Some(once), ..toggle.call }, ..toggle };
    apply(engine, catalog, &toggle).await;
    universe.jobs = vec![job];
    universe.api_keys = vec!["k1".into()];
    universe.replays = vec![replay_key("app", "k")];
    universe
}

/// Waits until everything that is there is durable.
async fn settle<E: Engine>(engine: &E) {
    let loaded = engine.load(&tally_core::Wants::default()).await.expect("a load works");
    engine.settle(loaded.mark).await.expect("what is there becomes durable");
}

pub(super) async fn reopening_keeps_everything<F: EngineFactory>(stand: Stand<F>) {
    let (mut engine, catalog) = (stand.open().await, catalog());
    let universe = fill(&*engine, &catalog).await;
    settle(&*engine).await;
    let before = universe.dump(&*engine).await;
    assert_eq!((before.rows.len(), before.totals.len()), (12, 12), "{before:#?}");
    for _ in 0..3 {
        engine = stand.reopen(engine).await;
        stand.drain(&engine).await;
        assert_eq!(universe.dump(&*engine).await, before);
        assert_sound(&*engine, &universe).await;
    }
}

/// Time never runs backwards over a restart, also when the clock did.
pub(super) async fn reopening_keeps_the_newest_stamp<F: EngineFactory>(stand: Stand<F>) {
    let (mut engine, catalog) = (stand.open().await, catalog());
    let newest = Stamp::at(Timestamp(1_700_000_000_123));
    for (stamp, to) in [(newest, "post:1"), (Stamp(newest.0 + 7), "post:2")] {
        let call = crate::sample::call(relate("like", to, "alice"));
        let draft = Draft::new(&*engine, &catalog, &Step { stamp, id: 1, call }).await;
        let committed = draft.commit(&*engine).await.expect("nobody else writes");
        engine.settle(committed.mark).await.expect("it becomes durable");
        engine = stand.reopen(engine).await;
        assert_eq!(engine.prepare().await, Ok(stamp));
    }
}

pub(super) async fn what_was_deleted_stays_deleted<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = fill(&*engine, &catalog).await;
    settle(&*engine).await;
    let engine = stand.reopen(engine).await;
    let step = Step {
        stamp: Stamp(1 << 40),
        id: 1,
        call: crate::sample::call(Command::from(Forget { subject: subject("bob") })),
    };
    apply(&*engine, &catalog, &step).await;
    let edges = universe.edges().filter(|key| key.subject.as_str() == "bob").collect();
    let job = step.call.command.job().expect("it begins a job");
    let sweep = Command::from(Sweep { job, before: Stamp(u64::MAX), edges });
    let step = Step { stamp: Stamp(1 << 41), id: 2, call: crate::sample::call(sweep) };
    apply(&*engine, &catalog, &step).await;
    settle(&*engine).await;
    let before = universe.dump(&*engine).await;
    assert!(crate::auditor::edges(&before).all(|(key, _)| key.subject.as_str() != "bob"));
    let engine = stand.reopen(engine).await;
    stand.drain(&engine).await;
    assert_eq!(universe.dump(&*engine).await, before);
    assert_sound(&*engine, &universe).await;
}
