//! The history, and every world that one fault in it can lead to.

use std::collections::BTreeSet;
use std::sync::Arc;

use tally_core::command::{Call, CountReply, EdgeReply, JobReply, ObjectReply, Once, Reply, TakeReply};
use tally_core::rows::{Edge, JobId, Row, Subject, UsedState};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{Command, Refusal};
use tally_engine::Failure;
use tally_engine::clock::ManualClock;
use tally_engine::memory::Memory;

use crate::EngineFactory;
use crate::auditor::edges;
use crate::running::Running;
use crate::sample::{batch, catalog, name, object, put, react, relate, replay_key, subject, unrelate};
use crate::stand::Stand;
use crate::sweeper::Sweep;
use crate::universe::{Dump, Universe};

/// One act of the history.
pub(super) enum Act {
    Run(Command),
    /// With an idempotency key.
    Once(Command),
    /// Every open job, as far as it gets.
    Sweep,
}

pub(super) fn history() -> Vec<Act> {
    use Act::{Once, Run};
    let toggle = || {
        let (relation, object, subject) = (name("like"), object("post:2"), subject("cid"));
        Once(Command::Toggle { relation, object, subject, kind: None, meta: None })
    };
    vec![
        Run(put("post:1", "open")),
        Run(relate("like", "post:1", "ann")),
        Run(batch([relate("like", "post:1", "bob"), relate("mark", "post:1", "bob"), relate("pin", "post:2", "bob")])),
        Run(react("reaction", "post:2", "ann", "like")),
        Run(react("reaction", "post:2", "ann", "wow")),
        toggle(),
        toggle(),
        Run(Command::Suspend { subject: subject("ann") }),
        Act::Sweep,
        Run(Command::DeleteObject { object: object("post:1") }),
        Run(relate("pin", "post:3", "cid")),
        Act::Sweep,
        Run(unrelate("like", "post:2", "cid")),
        Run(Command::Restore { subject: subject("ann") }),
        Run(Command::Forget { subject: subject("bob") }),
        Act::Sweep,
        Run(relate("like", "post:2", "ann")),
    ]
}

pub(super) fn universe() -> Universe {
    let objects = ["post:1", "post:2", "post:3"];
    let relations = ["like", "mark", "pin", "reaction"];
    Universe { replays: vec![replay_key("app", "k")], ..Universe::new(&["ann", "bob", "cid"], &objects, &relations) }
}

/// What an act was answered, a refusal too: without one act, a later one may be refused. A sweep has
/// no answer.
pub(super) type Answer = Option<Result<Reply, Refusal>>;

pub(super) async fn act<F: EngineFactory>(
    stand: &Stand<F>,
    engine: &F::Engine,
    running: &Running,
    act: Act,
) -> Result<Answer, Failure> {
    let call = match act {
        Act::Run(command) => crate::sample::call(command),
        Act::Once(command) => {
            let once = Once { key: replay_key("app", "k"), fields: Arc::new(vec![("op".into(), 1)]) };
            Call { once: Some(once), ..crate::sample::call(command) }
        }
        Act::Sweep => return Sweep { edges: 2, ..Sweep::ALL }.run(stand, engine, running).await.map(|_| None),
    };
    Ok(Some(running.runner.apply(call).await?.reply.map(blank)))
}

/// Leaves out what differs from run to run: fresh ids, and times, which a store may have of its own.
fn blank(reply: Reply) -> Reply {
    match reply {
        Reply::Job(job) => Reply::Job(JobReply {
            job: String::new(),
            created_at: Timestamp::default(),
            finished_at: job.finished_at.map(|_| Timestamp::default()),
            ..job
        }),
        Reply::Edge(edge) => {
            Reply::Edge(EdgeReply { created_at: edge.created_at.map(|_| Timestamp::default()), ..edge })
        }
        Reply::Object(object) => {
            Reply::Object(ObjectReply { created_at: Timestamp::default(), updated_at: Timestamp::default(), ..object })
        }
        Reply::Batch(replies) => Reply::Batch(replies.into_iter().map(|reply| reply.map(blank)).collect()),
        Reply::Count(count) => {
            Reply::Count(CountReply { last_at: count.last_at.map(|_| Timestamp::default()), ..count })
        }
        // How long a limit lasts still.
        Reply::Take(take) => Reply::Take(TakeReply { reset_ms: 0, ..take }),
        Reply::Unique(_) | Reply::Attend(_) | Reply::Score(_) | Reply::Done { .. } => reply,
    }
}

/// A remembered answer, blank as well.
fn blank_answer(answer: &str) -> String {
    let reply: Result<Reply, Refusal> = serde_json::from_str(answer).expect("a remembered answer can be read");
    serde_json::to_string(&reply.map(blank)).expect("and written")
}

/// A store without what differs from run to run: stamps become places in one order, times are blank.
pub(super) fn canonical(mut dump: Dump) -> Dump {
    let stamps: BTreeSet<Stamp> = edges(&dump).map(|(_, edge)| edge.created).collect();
    for row in dump.rows.values_mut() {
        match row {
            Row::Edge(Edge { created, .. }) => *created = Stamp(stamps.range(..*created).count() as u64),
            Row::Subject(Subject { job, suspended_at }) => (*job, *suspended_at) = (JobId(0), Timestamp::default()),
            Row::Object(object) => {
                (object.created_at, object.updated_at) = (Timestamp::default(), Timestamp::default());
            }
            Row::Replay(replay) => {
                (replay.answer, replay.expires_at) = (blank_answer(&replay.answer), Timestamp::default());
            }
            Row::Score(score) => score.reached = Stamp::default(),
            Row::Touched(at) => *at = Timestamp::default(),
            Row::Limit(used) => {
                used.look_at = Timestamp::default();
                match &mut used.state {
                    UsedState::Log(log) => log.iter_mut().for_each(|(at, _)| *at = 0),
                    UsedState::Window { start, .. } => *start = 0,
                    UsedState::Bucket { full_at } => *full_at = 0,
                }
            }
            _ => {}
        }
    }
    dump
}

/// What the history comes to: the answer of every act that is in it, and the store in the end.
pub(super) type World = (Vec<Option<Answer>>, Dump);

/// The history on the oracle, with one act left out or none, and its jobs finished.
async fn world(without: Option<usize>) -> World {
    struct Oracle;
    impl EngineFactory for Oracle {
        type Engine = Memory;
        type Place = ();
        fn place(&self) {}
        async fn open(&self, _place: &()) -> Memory {
            Memory::default()
        }
        fn reopens(&self) -> bool {
            false
        }
    }
    let stand = Stand::new(Arc::new(Oracle));
    let engine = stand.open().await;
    let running = Running::start(&engine, &catalog(), ManualClock::at(1_000)).await;
    let mut answers = Vec::new();
    for (number, one) in history().into_iter().enumerate() {
        let answer = if without == Some(number) { None } else { act(&stand, &engine, &running, one).await.ok() };
        answers.push(answer);
    }
    Sweep::ALL.run(&stand, &engine, &running).await.expect("the oracle works");
    running.stop().await;
    (answers, canonical(universe().dump(&*engine).await))
}

/// Every world that one fault can lead to.
pub(super) struct Worlds {
    /// With every act.
    pub(super) whole: World,
    /// Without one of them.
    pub(super) without: Vec<World>,
}

impl Worlds {
    pub(super) async fn new() -> Self {
        let mut worlds = Self { whole: world(None).await, without: Vec::new() };
        for act in 0..history().len() {
            worlds.without.push(world(Some(act)).await);
        }
        worlds
    }
}
