//! The history, and every world that one fault in it can lead to.

use std::collections::BTreeSet;
use std::sync::Arc;

use tally_core::command::{
    Add, Attend, Call, ChangeScore, DeleteObject, Forget, Observe, Once, Restore, ScoreChange, Suspend, Take, Toggle,
};
use tally_core::reply::{CounterReply, EdgeReply, JobReply, ObjectReply, Reply, TakeReply};
use tally_core::rows::{BoardKey, ChunkKey, CountKey, Edge, Key, Row, ScoreKey, Subject, TotalKey, UsedState};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{Command, Day, KeyId, Refusal, counter, limit};
use tally_engine::Failure;
use tally_engine::clock::ManualClock;
use tally_engine::memory::Memory;

use crate::EngineFactory;
use crate::auditor::edges;
use crate::running::Running;
use crate::sample::{batch, catalog, name, object, put, react, relate, replay_key, subject, unrelate};
use crate::stand::Stand;
use crate::sweeper::Sweeper;
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
        Once(Command::from(Toggle { relation, object, subject, kind: None, meta: None }))
    };
    vec![
        Run(put("post:1", "open")),
        Run(relate("like", "post:1", "ann")),
        Run(batch([relate("like", "post:1", "bob"), relate("mark", "post:1", "bob"), relate("pin", "post:2", "bob")])),
        // Several rows each: the subject's days and the day's bits, a score and where it stands.
        Run(attend("bob")),
        Run(batch([count(3), score("bob", 5), score("ann", 7), attend("ann"), observe(&["ann", "bob"]), take()])),
        Once(count(4)),
        Once(count(4)),
        Run(react("reaction", "post:2", "ann", "like")),
        Run(react("reaction", "post:2", "ann", "wow")),
        toggle(),
        toggle(),
        Run(Command::from(Suspend { subject: subject("ann") })),
        Act::Sweep,
        Run(Command::from(DeleteObject { object: object("post:1") })),
        Run(relate("pin", "post:3", "cid")),
        Act::Sweep,
        Run(unrelate("like", "post:2", "cid")),
        Run(Command::from(Restore { subject: subject("ann") })),
        Run(Command::from(Forget { subject: subject("bob") })),
        Act::Sweep,
        Run(relate("like", "post:2", "ann")),
    ]
}

fn key(text: &str) -> KeyId {
    KeyId::new(text).expect("a sample is a valid key")
}

fn count(by: i64) -> Command {
    Command::from(Add { counter: name("views"), key: key("post:1"), by })
}

fn score(who: &str, to: i64) -> Command {
    Command::from(ChangeScore { board: name("points"), member: subject(who), change: ScoreChange::To(to) })
}

fn attend(who: &str) -> Command {
    Command::from(Attend { sheet: name("daily"), day: Some(DAY), subject: subject(who), present: true })
}

fn observe(who: &[&str]) -> Command {
    let members = who.iter().map(|&member| member.to_owned()).collect();
    Command::from(Observe { unique: name("dau"), key: key("today"), members })
}

fn take() -> Command {
    Command::from(Take { limit: name("door"), key: key("ann"), cost: 2 })
}

/// Before the jobs of the history, so that they find it.
const DAY: Day = Day(0);

pub(super) fn universe() -> Universe {
    let objects = ["post:1", "post:2", "post:3"];
    let relations = ["like", "mark", "pin", "reaction"];
    let (sheet, board) = (name("daily"), BoardKey { board: name("points"), season: Timestamp(0), levels: false });
    let mut rows = vec![
        Key::Unique(CountKey { name: name("dau"), key: key("today") }),
        Key::Limit(limit::key_of("door", "ann")),
        Key::Sheet(sheet.clone()),
        Key::Day((sheet.clone(), DAY)),
        Key::Chunk(ChunkKey { sheet: sheet.clone(), day: DAY, chunk: 1 << 13 }),
    ];
    for who in ["ann", "bob"] {
        rows.push(Key::Attendee((sheet.clone(), subject(who))));
        rows.push(Key::Score(ScoreKey { board: board.clone(), member: subject(who) }));
    }
    let counter = TotalKey::Counter(CountKey { name: name("views"), key: key("post:1") });
    Universe {
        replays: vec![replay_key("app", "k"), replay_key("app", "count")],
        counted: (rows, vec![counter, TotalKey::Present { sheet, day: DAY }]),
        ..Universe::new(&["ann", "bob", "cid"], &objects, &relations)
    }
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
            let key =
                if matches!(command, Command::Counter(counter::Command::Add(Add { .. }))) { "count" } else { "k" };
            let once = Once { key: replay_key("app", key), fields: Arc::new(vec![("op".into(), 1)]) };
            Call { once: Some(once), ..crate::sample::call(command) }
        }
        Act::Sweep => return Sweeper { edges: 2, ..Sweeper::ALL }.run(stand, engine, running).await.map(|_| None),
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
        Reply::Relation(edge) => {
            Reply::Relation(EdgeReply { created_at: edge.created_at.map(|_| Timestamp::default()), ..edge })
        }
        Reply::Object(object) => {
            Reply::Object(ObjectReply { created_at: Timestamp::default(), updated_at: Timestamp::default(), ..object })
        }
        Reply::Batch(replies) => Reply::Batch(replies.into_iter().map(|reply| reply.map(blank)).collect()),
        Reply::Counter(count) => {
            Reply::Counter(CounterReply { last_at: count.last_at.map(|_| Timestamp::default()), ..count })
        }
        // How long a limit lasts still.
        Reply::Limit(take) => Reply::Limit(TakeReply { reset_ms: 0, ..take }),
        Reply::Unique(_)
        | Reply::Attendance(_)
        | Reply::Board(_)
        | Reply::Ticket(_)
        | Reply::Admit(_)
        | Reply::Room(_)
        | Reply::Done { .. } => reply,
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
            Row::Subject(Subject { suspended, forgotten }) => {
                suspended.iter_mut().for_each(|row| row.at = Timestamp::default());
                forgotten.iter_mut().for_each(|row| row.before = Stamp::default());
            }
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
    Sweeper::ALL.run(&stand, &engine, &running).await.expect("the oracle works");
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
