//! The embedded store is held to the suite: as it comes, and with an overlay so small that rows
//! move into the tables all the time.

use std::sync::Arc;

use tally_conformance::{EngineFactory, Trial, run, trials};
use tally_core::command::{Batch, Relate};
use tally_core::{Call, Catalog, Command, Name, ObjectId, SubjectId};
use tally_embedded::{Embedded, Options};
use tally_engine::{Runner, RunnerOptions, SystemClock};
use tempfile::TempDir;

struct Folder(Options);

impl EngineFactory for Folder {
    type Engine = Embedded;
    type Place = TempDir;

    fn place(&self) -> TempDir {
        tempfile::tempdir().expect("a temporary folder can be made")
    }

    async fn open(&self, place: &TempDir) -> Embedded {
        Embedded::open(place.path(), self.0.clone()).expect("a store opens in an empty folder or in its own")
    }
}

/// An answer comes after the sync, which no reading can tell: a store that is closed in good order
/// has synced everything in any case.
async fn answered_is_on_disk(options: Options) {
    let place = tempfile::tempdir().expect("a temporary folder can be made");
    let engine = Arc::new(Embedded::open(place.path(), options).expect("a store opens in an empty folder"));
    let (catalog, limits) = (Arc::new(Catalog::default()), RunnerOptions::default());
    let started = Runner::start(engine.clone(), catalog, SystemClock, limits, Arc::new(|_| {})).await;
    let (runner, done) = started.expect("a runner starts");
    // Large enough that the disk takes longer than the way to the answer.
    let large = serde_json::json!({"text": "x".repeat(10_000)});
    let large = Arc::new(large.as_object().expect("an object").clone());
    for n in 0..5 {
        let like = |m| {
            Command::from(Relate {
                relation: Name::new("like").expect("a name"),
                object: ObjectId::new(&format!("post:{n}")).expect("an object"),
                subject: SubjectId::new(&format!("s{m}")).expect("a subject"),
                kind: None,
                meta: Some(large.clone()),
            })
        };
        let batch = Command::from(Batch { atomic: true, commands: (0..100).map(like).collect() });
        runner.apply(Call::system(batch)).await.expect("the store works").reply.expect("likes are allowed");
        let store = engine.store();
        assert_eq!(store.durable(), store.position(), "answered before it was on disk");
    }
    drop(runner);
    done.await.expect("a runner ends without a panic");
}

fn main() {
    // Hundreds of stores are opened; none of them needs a log of the usual size.
    let usual = Options { segment_bytes: 1 << 20, cache_bytes: 1 << 20, ..Options::default() };
    let small = Options { overlay_bytes_max: 4 << 10, ..usual.clone() };
    let mut all = trials("embedded", Folder(usual.clone()));
    all.push(Trial::test("embedded::durability::answered_is_on_disk", move || {
        tokio::runtime::Runtime::new()?.block_on(answered_is_on_disk(usual));
        Ok(())
    }));
    // Where rows lie makes no difference to the steps at which the crash suite fails them, and that
    // suite spends its time waiting for the disk; once is enough.
    all.extend(trials("embedded-small", Folder(small)).into_iter().filter(|trial| !trial.name().contains("::crash::")));
    run(all)
}
