//! Forgetting and suspending while the subject goes on: what comes after the request begins anew and stays, however far
//! the job is, and whoever asks twice has one job.

use std::sync::Arc;

use tally_core::command::{
    Add, Attend, ChangeScore, Declare, DeleteObject, Forget, Restore, ScoreChange, Suspend, Sweep, Toggle,
};
use tally_core::reply::{EdgeReply, Reply};
use tally_core::rows::{BoardKey, Key, Names, Row, ScoreKey, TotalKey};
use tally_core::time::Timestamp;
use tally_core::view::Wants;
use tally_core::{Catalog, Command, Day, KeyId, Refusal};
use tally_engine::clock::ManualClock;
use tally_engine::{Engine, Range};

use crate::auditor::{assert_sound, edges};
use crate::running::Running;
use crate::sample::{batch, catalog, name, object, react, relate, subject, unrelate};
use crate::stand::Stand;
use crate::sweeper::Sweeper;
use crate::universe::Universe;
use crate::{Case, EngineFactory, cases};

/// Every case.
pub(crate) fn cases<F: EngineFactory>() -> Vec<Case<F>> {
    use crate::forgetting as begun;
    cases![
        begun:
            what_comes_after_a_forgetting_begins_anew,
            forgetting_again_takes_what_came_since,
            a_suspension_outlives_a_forgetting,
            asking_twice_is_one_job,
            what_is_not_declared_any_more_is_forgotten_too,
            nothing_is_left_of_who_was_forgotten,
    ]
}

const DAY: u32 = 20_000;

fn universe() -> Universe {
    let objects: Vec<String> = (0..8).map(|n| format!("post:{n}")).collect();
    let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
    Universe::new(&["alice", "bob"], &objects, &["like", "pin", "reaction"])
}

fn forget() -> Command {
    Command::from(Forget { subject: subject("alice") })
}

fn attend(day: u32, who: &str) -> Command {
    Command::from(Attend { sheet: name("daily"), day: Some(Day(day)), subject: subject(who), present: true })
}

fn score(board: &str, by: i64) -> Command {
    Command::from(ChangeScore { board: name(board), member: subject("alice"), change: ScoreChange::By(by) })
}

async fn fill(running: &Running) {
    for n in 0..6 {
        running.run(batch(["alice", "bob"].map(|who| relate("like", &format!("post:{n}"), who)))).await;
    }
    running.run(batch([relate("pin", "post:1", "alice"), react("reaction", "post:1", "alice", "like")])).await;
    for day in [DAY - 1, DAY, DAY + 7] {
        running.run(batch([attend(day, "alice"), attend(day, "bob")])).await;
    }
    running.run(batch([score("points", 100), score("dense", 5)])).await;
}

async fn edge(running: &Running, command: Command) -> EdgeReply {
    match running.run(command).await {
        Reply::Relation(edge) => edge,
        other => panic!("{other:?} is not an edge"),
    }
}

/// What alice does after the request, each answered as if nothing had been before it.
async fn live_on(running: &Running) {
    let again = edge(running, relate("like", "post:0", "alice")).await;
    assert_eq!((again.active, again.changed, again.count), (true, true, 2), "an old like is a new one");
    let gone = edge(running, unrelate("like", "post:1", "alice")).await;
    assert_eq!((gone.active, gone.changed, gone.count), (false, false, 1), "an old like is not there");
    let (relation, object, who) = (name("like"), object("post:2"), subject("alice"));
    let toggle = Command::from(Toggle { relation, object, subject: who, kind: None, meta: None });
    let toggled = edge(running, toggle).await;
    assert_eq!((toggled.active, toggled.changed), (true, true), "there was none to take away");
    assert!(edge(running, relate("pin", "post:2", "alice")).await.changed, "old pins do not count");
    let second = running.apply(relate("pin", "post:3", "alice")).await.expect("the store works").reply;
    assert!(matches!(second, Err(Refusal::LimitExceeded { .. })), "{second:?}: but new ones do");
    assert!(edge(running, react("reaction", "post:1", "alice", "wow")).await.changed);
    let Reply::Attendance(day) = running.run(attend(DAY, "alice")).await else { panic!("another reply") };
    assert_eq!((day.changed, day.streak, day.count), (true, 1, 2), "the days before are gone");
    for board in ["points", "dense"] {
        let Reply::Board(found) = running.run(score(board, 10)).await else { panic!("another reply") };
        assert_eq!((found.score, found.rank), (Some(10), Some(1)), "the score begins anew");
    }
}

/// What alice has now: her edges, her days, her scores.
async fn assert_new_life<E: Engine>(engine: &E, universe: &Universe) {
    let dump = universe.dump(engine).await;
    let mut mine: Vec<String> = edges(&dump)
        .filter(|(key, _)| key.subject.as_str() == "alice")
        .map(|(key, edge)| {
            format!("{} {} {:?}", key.relation, key.object, edge.kind.as_ref().map(|kind| kind.as_str()))
        })
        .collect();
    mine.sort();
    assert_eq!(mine, ["like post:0 None", "like post:2 None", "pin post:2 None", "reaction post:1 Some(\"wow\")"]);
    let board = |board: &str| BoardKey { board: name(board), season: Timestamp(0), levels: false };
    let scores = ["points", "dense"].map(|of| Key::Score(ScoreKey { board: board(of), member: subject("alice") }));
    let day = |day| TotalKey::Present { sheet: name("daily"), day: Day(day) };
    let mut rows = vec![Key::Attendee((name("daily"), subject("alice"))), Key::Subject(subject("alice"))];
    rows.extend(scores);
    let wants = Wants { rows, totals: [DAY - 1, DAY, DAY + 7].map(day).to_vec(), ranks: Vec::new() };
    let found = engine.load(&wants).await.expect("a load works");
    assert_eq!(found.totals, [1, 2, 1], "bob on each, alice on one");
    let Some(Row::Attendee(attendee)) = &found.rows[0] else { panic!("alice was there once") };
    assert_eq!((attendee.days.bitmap().len(), attendee.forgotten.bitmap().len()), (1, 0));
    assert_eq!(found.rows[1], None, "nothing is marked any more");
    for row in &found.rows[2..] {
        assert!(matches!(row, Some(Row::Score(score)) if score.score == 10), "{row:?}");
    }
}

/// Whatever comes between two steps, and wherever the process ends.
async fn what_comes_after_a_forgetting_begins_anew<F: EngineFactory>(stand: Stand<F>) {
    for steps in [0, 1, 2, 4] {
        let stand = stand.another();
        let (engine, catalog, universe) = (stand.open().await, catalog(), universe());
        let running = Running::start(&engine, &catalog, ManualClock::at(1_000)).await;
        fill(&running).await;
        running.run(forget()).await;
        if steps == 0 {
            live_on(&running).await;
        }
        let sweep = Sweeper { edges: 2, steps, times: 1 };
        sweep.run(&stand, &engine, &running).await.expect("the store works");
        if steps > 0 {
            live_on_after(&running, &universe, &*engine).await;
        }
        running.stop().await;
        let engine = stand.reopen(engine).await;
        let running = Running::start(&engine, &catalog, ManualClock::at(500)).await;
        assert!(Sweeper { steps: usize::MAX, ..sweep }.run(&stand, &engine, &running).await.expect("the store works"));
        assert_new_life(&*engine, &universe).await;
        let third = running.apply(relate("pin", "post:3", "alice")).await.expect("the store works").reply;
        assert!(matches!(third, Err(Refusal::LimitExceeded { .. })), "{third:?}");
        running.stop().await;
        stand.drain(&engine).await;
        assert_sound(&*engine, &universe).await;
    }
}

/// The same when the job is under way: counts are what is left.
async fn live_on_after<E: Engine>(running: &Running, universe: &Universe, engine: &E) {
    assert_sound(engine, universe).await;
    for command in
        [relate("like", "post:0", "alice"), relate("like", "post:2", "alice"), relate("pin", "post:2", "alice")]
    {
        assert!(edge(running, command).await.changed, "what was there before is gone");
    }
    assert!(edge(running, react("reaction", "post:1", "alice", "wow")).await.changed);
    assert!(!edge(running, unrelate("like", "post:1", "alice")).await.changed);
    running.run(attend(DAY, "alice")).await;
    running.run(batch([score("points", 10), score("dense", 10)])).await;
    assert_sound(engine, universe).await;
}

/// The same job goes on, and takes what was made in between as well.
async fn forgetting_again_takes_what_came_since<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog, universe) = (stand.open().await, catalog(), universe());
    let running = Running::start(&engine, &catalog, ManualClock::at(1_000)).await;
    fill(&running).await;
    let first = running.run(forget()).await;
    // The walk is over, and the job would end with the next step.
    let open = engine.scan(&Range::OPEN_JOBS, 10).await.expect("a scan works").items;
    let [(Key::Job(id), Row::Job(job))] = &open[..] else { panic!("one job, not {open:?}") };
    let walked: Vec<_> = universe.edges().filter(|key| key.subject.as_str() == "alice").collect();
    running.run(Command::from(Sweep { job: *id, before: job.before, edges: walked })).await;
    live_on(&running).await;
    let second = running.run(forget()).await;
    match (&first, &second) {
        (Reply::Job(first), Reply::Job(second)) => assert_eq!(first.job, second.job, "one subject, one job"),
        other => panic!("{other:?} are not two jobs"),
    }
    let ended = running.run(Command::from(Sweep { job: *id, before: job.before, edges: Vec::new() })).await;
    assert!(matches!(&ended, Reply::Job(job) if job.finished_at.is_none()), "{ended:?}: there is more to walk");
    assert!(Sweeper { edges: 2, ..Sweeper::ALL }.run(&stand, &engine, &running).await.expect("the store works"));
    let dump = universe.dump(&*engine).await;
    assert_eq!(edges(&dump).filter(|(key, _)| key.subject.as_str() == "alice").count(), 0);
    assert_nobody(&*engine).await;
    running.stop().await;
    stand.drain(&engine).await;
    assert_sound(&*engine, &universe).await;
}

/// No row is left that names alice.
async fn assert_nobody<E: Engine>(engine: &E) {
    let page = engine.scan(&Range::Rows { after: None }, 10_000).await.expect("a scan works");
    for (key, row) in &page.items {
        let text = format!("{key:?} {row:?}");
        assert!(!text.contains("alice"), "{text} is left");
    }
}

async fn nothing_is_left_of_who_was_forgotten<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let running = Running::start(&engine, &catalog, ManualClock::at(1_000)).await;
    fill(&running).await;
    running.run(forget()).await;
    assert!(Sweeper::ALL.run(&stand, &engine, &running).await.expect("the store works"));
    assert_nobody(&*engine).await;
    running.stop().await;
}

async fn a_suspension_outlives_a_forgetting<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog, universe) = (stand.open().await, catalog(), universe());
    let running = Running::start(&engine, &catalog, ManualClock::at(1_000)).await;
    fill(&running).await;
    running.run(Command::from(Suspend { subject: subject("alice") })).await;
    running.run(forget()).await;
    let refused = async || {
        let reply = running.apply(relate("like", "post:7", "alice")).await.expect("the store works").reply;
        assert!(matches!(reply, Err(Refusal::Suspended(_))), "{reply:?}");
    };
    refused().await;
    assert!(Sweeper { edges: 2, ..Sweeper::ALL }.run(&stand, &engine, &running).await.expect("the store works"));
    refused().await;
    running.run(Command::from(Restore { subject: subject("alice") })).await;
    assert!(Sweeper::ALL.run(&stand, &engine, &running).await.expect("the store works"));
    let dump = universe.dump(&*engine).await;
    assert_eq!(
        edges(&dump).filter(|(key, _)| key.subject.as_str() == "alice").count(),
        0,
        "restoring brings nothing back"
    );
    assert!(edge(&running, relate("like", "post:7", "alice")).await.changed);
    running.stop().await;
}

async fn asking_twice_is_one_job<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let running = Running::start(&engine, &catalog, ManualClock::at(1_000)).await;
    fill(&running).await;
    let job = async |command: Command| match running.run(command).await {
        Reply::Job(job) => job,
        other => panic!("{other:?} is not a job"),
    };
    let who = || subject("alice");
    for command in [
        Command::from(Suspend { subject: who() }),
        Command::from(Restore { subject: who() }),
        Command::from(DeleteObject { object: object("post:1") }),
    ] {
        let first = job(command.clone()).await;
        assert_eq!(job(command.clone()).await.job, first.job, "an answer that was lost is given again");
        assert!(Sweeper::ALL.run(&stand, &engine, &running).await.expect("the store works"));
        let ended = job(command).await;
        assert_eq!(ended.job, first.job);
        assert!(Sweeper::ALL.run(&stand, &engine, &running).await.expect("the store works"));
    }
    for _ in 0..5 {
        job(forget()).await;
        assert!(Sweeper::ALL.run(&stand, &engine, &running).await.expect("the store works"));
    }
    let page = engine.scan(&Range::Rows { after: None }, 10_000).await.expect("a scan works");
    let jobs = page.items.iter().filter(|(key, _)| matches!(key, Key::Job(_))).count();
    assert_eq!(jobs, 4, "one for each thing that was asked for");
    running.stop().await;
}

/// A sheet and boards that are in no configuration when somebody is forgotten, and are again later.
async fn what_is_not_declared_any_more_is_forgotten_too<F: EngineFactory>(stand: Stand<F>) {
    let (engine, declared) = (stand.open().await, catalog());
    let running = Running::start(&engine, &declared, ManualClock::at(1_000)).await;
    running.run(Command::from(Declare)).await;
    fill(&running).await;
    let views = |object: &str| {
        Command::from(Add { counter: name("views"), key: KeyId::new(object).expect("a sample is a valid key"), by: 3 })
    };
    running.run(views("post:1")).await;
    running.stop().await;
    let nothing = Arc::new(Catalog::empty());
    let running = Running::start(&engine, &nothing, ManualClock::at(2_000)).await;
    running.run(Command::from(Declare)).await;
    running.run(forget()).await;
    running.run(Command::from(DeleteObject { object: object("post:1") })).await;
    assert!(Sweeper::ALL.run(&stand, &engine, &running).await.expect("the store works"));
    running.stop().await;
    assert_nobody(&*engine).await;
    let days = [DAY - 1, DAY].map(|day| TotalKey::Present { sheet: name("daily"), day: Day(day) });
    let level =
        ScoreKey { board: BoardKey { board: name("dense"), season: Timestamp(0), levels: true }, member: subject("5") };
    let wants = Wants { rows: vec![Key::Names, Key::Score(level)], totals: days.to_vec(), ranks: Vec::new() };
    let found = engine.load(&wants).await.expect("a load works");
    assert_eq!(found.totals, [1, 1], "bob is left");
    assert!(matches!(&found.rows[0], Some(Row::Names(Names { boards, .. })) if boards.contains(&name("dense"))));
    assert_eq!(found.rows[1], None, "nobody has that score any more");
    let running = Running::start(&engine, &declared, ManualClock::at(3_000)).await;
    let Reply::Counter(views) = running.run(views("post:1")).await else { panic!("another reply") };
    assert_eq!(views.value, 3, "the object's counter began anew");
    running.stop().await;
}
