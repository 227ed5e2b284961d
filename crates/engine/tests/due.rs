//! What is due is done, in its time.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

use std::sync::Arc;
use std::time::Duration;

use tally_core::command::{Add, Call, Command, Forget, Once, Sweep};
use tally_core::reply::Done;
use tally_core::room::{Join, PutRoom, Rate, RoomSettings};
use tally_core::rows::{JobId, Key, ReplayKey, Row, RowKind, Seq, TicketKey, TicketState};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::Wants;
use tally_core::{Catalog, KeyId, Name, SubjectId};
use tally_engine::due::{Bell, DueOptions, DueWork};
use tally_engine::memory::Memory;
use tally_engine::{Clock, Engine, MadeDue, Range, Runner, RunnerOptions};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// The time that passes in the test.
struct Virtual(Instant);

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        Timestamp(1_000_000 + self.0.elapsed().as_millis() as u64)
    }
}

struct World {
    engine: Arc<Memory>,
    runner: Runner,
    /// Another server on the same store, of which nothing is heard.
    elsewhere: Runner,
    bell: Arc<Bell>,
    _stop: watch::Sender<bool>,
}

impl World {
    /// A worker that looks of its own accord once a day.
    async fn start(mut catalog: Catalog, look_every: Duration) -> Self {
        catalog.declare_counter(
            Name::new("views").unwrap(),
            tally_core::catalog::CounterDef::new(Name::new("views").unwrap()),
        );
        let (engine, catalog) = (Arc::new(Memory::default()), Arc::new(catalog));
        let (clock, bell) = (Arc::new(Virtual(Instant::now())), Arc::new(Bell::new(catalog.clone())));
        let hears = bell.clone();
        let observer = Arc::new(move |settled: &tally_engine::Settled| hears.hear(settled));
        let options = RunnerOptions::default();
        let started = Runner::start(engine.clone(), catalog.clone(), clock.clone(), options, observer).await;
        let (runner, _) = started.unwrap();
        let unheard = Arc::new(|_: &tally_engine::Settled| {});
        let started = Runner::start(engine.clone(), catalog.clone(), clock.clone(), options, unheard).await;
        let (elsewhere, _) = started.unwrap();
        let (stop, stopped) = watch::channel(false);
        let options = DueOptions { look_every: Some(look_every), by_own_clock: false };
        let (at, by, rings) = (engine.clone(), runner.clone(), bell.clone());
        let work = DueWork { engine: at, runner: by, clock, catalog, options, bell: rings };
        tokio::spawn(work.run(stopped));
        Self { engine, runner, elsewhere, bell, _stop: stop }
    }

    async fn apply(&self, command: Command) {
        self.runner.apply(Call::system(command)).await.unwrap().reply.unwrap();
    }

    /// Counts once, and remembers it.
    async fn remember(&self, key: &str) {
        let once = Once { key: ReplayKey { caller: "app".into(), key: key.into() }, fields: Arc::default() };
        let command =
            Command::from(Add { counter: Name::new("views").unwrap(), key: KeyId::new("home").unwrap(), by: 1 });
        self.runner.apply(Call { once: Some(once), ..Call::system(command) }).await.unwrap().reply.unwrap();
    }

    async fn remembered(&self) -> usize {
        let range = Range::due(RowKind::Replay, Timestamp(u64::MAX));
        self.engine.scan(&range, 100_000).await.unwrap().items.len()
    }
}

fn remembering_for(ttl: Duration) -> Catalog {
    let mut catalog = Catalog::default();
    catalog.idempotency_ttl_ms = ttl.as_millis() as u64;
    catalog
}

#[tokio::test(start_paused = true)]
async fn what_is_made_and_is_due_sooner_than_the_next_look_is_done_in_its_time() {
    let world = World::start(remembering_for(30 * SECOND), DAY).await;
    sleep(SECOND).await;
    world.remember("a").await;
    sleep(29 * SECOND).await;
    world.remember("b").await;
    assert_eq!(world.remembered().await, 2, "neither is due");
    sleep(10 * SECOND).await;
    assert_eq!(world.remembered().await, 1, "the first was");
    sleep(30 * SECOND).await;
    assert_eq!(world.remembered().await, 0, "and then the second, which the last look has seen");
}

#[tokio::test(start_paused = true)]
async fn more_than_goes_into_one_step_is_done_at_once() {
    const MANY: usize = 5_000;
    let world = World::start(remembering_for(30 * SECOND), DAY).await;
    for n in 0..MANY {
        world.remember(&n.to_string()).await;
    }
    assert_eq!(world.remembered().await, MANY);
    sleep(40 * SECOND).await;
    assert_eq!(world.remembered().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_has_ended_goes_after_its_time_and_no_other_does() {
    let mut catalog = Catalog::default();
    catalog.jobs_ttl_ms = 60_000;
    let world = World::start(catalog, SECOND).await;
    let forget = |who: &str| Command::from(Forget { subject: SubjectId::new(who).unwrap() });
    let ids = ["early", "late", "open"].map(|who| forget(who).job().unwrap());
    for (id, who) in ids.into_iter().zip(["early", "late", "open"]) {
        if who == "late" {
            sleep(30 * SECOND).await;
        }
        world.apply(forget(who)).await;
        if who != "open" {
            world.apply(Command::from(Sweep { job: id, before: Stamp(u64::MAX), edges: Vec::new() })).await;
        }
    }
    // The jobs that there are, and whether each has ended.
    let jobs = async || -> Vec<Option<bool>> {
        let wants = Wants::rows(ids.iter().copied().map(Key::Job).collect());
        let rows = world.engine.load(&wants).await.unwrap().rows;
        rows.into_iter().map(|row| row.map(|row| matches!(row, Row::Job(job) if job.finished_at.is_some()))).collect()
    };
    sleep(29 * SECOND).await;
    assert_eq!(jobs().await, [Some(true), Some(true), Some(false)]);
    sleep(5 * SECOND).await;
    assert_eq!(jobs().await, [None, Some(true), Some(false)]);
    sleep(30 * SECOND).await;
    assert_eq!(jobs().await, [None, None, Some(false)]);
    sleep(10 * DAY).await;
    assert_eq!(jobs().await, [None, None, Some(false)], "what has not ended stays");
}

/// Whoever acts late finds that it is not due, or not there.
#[tokio::test(start_paused = true)]
async fn a_command_that_comes_too_late_or_too_soon_changes_nothing() {
    let world = World::start(remembering_for(30 * SECOND), DAY).await;
    world.remember("a").await;
    let keys = [
        (RowKind::Replay, Key::Replay(ReplayKey { caller: "app".into(), key: "a".into() })),
        (RowKind::Replay, Key::Replay(ReplayKey { caller: "app".into(), key: "gone".into() })),
        (RowKind::Job, Key::Job(JobId(7))),
    ];
    for (kind, key) in keys {
        let settling = tally_core::due::settling(kind).unwrap();
        let decided = world.runner.apply(Call::system((settling.command)(vec![key]))).await.unwrap();
        assert_eq!(decided.reply.unwrap(), tally_core::command::Reply::Done(Done { changed: false }));
    }
    assert_eq!(world.remembered().await, 1);
}

/// A room that lets one in a second, and one that waits in it.
async fn somebody_waits(world: &World) -> TicketKey {
    let room = Name::new("sale").unwrap();
    let settings = RoomSettings { rate_per_s: Rate::new(1.0).unwrap(), ..RoomSettings::default() };
    let fresh = ["a secret".into(), "a seed".into()];
    let put = Command::from(PutRoom { room: room.clone(), settings, fresh, declared: false });
    world.elsewhere.apply(Call::system(put)).await.unwrap().reply.unwrap();
    for who in ["alice", "bob"] {
        let subject = Some(SubjectId::new(who).unwrap());
        let join = Join { room: room.clone(), subject, token: None, fresh: String::new(), ip: None };
        world.elsewhere.apply(Call::system(Command::from(join))).await.unwrap().reply.unwrap();
    }
    TicketKey { room, seq: Seq::Given(2) }
}

async fn state(world: &World, ticket: &TicketKey) -> TicketState {
    let found = world.engine.load(&Wants::rows(vec![Key::Ticket(ticket.clone())])).await.unwrap();
    let Some(Row::Ticket(ticket)) = &found.rows[0] else { panic!("it is there") };
    ticket.state
}

#[tokio::test(start_paused = true)]
async fn what_another_server_made_due_is_done_in_its_time_when_it_is_told() {
    let world = World::start(Catalog::default(), DAY).await;
    sleep(SECOND / 10).await;
    let ticket = somebody_waits(&world).await;
    world.bell.ring();
    sleep(SECOND * 9 / 10).await;
    assert_eq!(state(&world, &ticket).await, TicketState::Waiting, "it is not due");
    sleep(SECOND / 5).await;
    assert_eq!(state(&world, &ticket).await, TicketState::Ready);
}

#[tokio::test(start_paused = true)]
async fn what_was_told_in_vain_is_done_soon_all_the_same() {
    let world = World::start(Catalog::default(), DAY).await;
    sleep(SECOND / 10).await;
    let ticket = somebody_waits(&world).await;
    sleep(3 * SECOND).await;
    assert_eq!(state(&world, &ticket).await, TicketState::Ready);
}

#[tokio::test]
async fn others_are_told_of_what_they_do_and_somebody_waits_for() {
    let bell = Bell::new(Arc::new(Catalog::default()));
    let at = Timestamp(1_000_000);
    let settled = |kind, after_ms| {
        let due = vec![MadeDue { kind, partition: 3, at: at.plus_ms(after_ms) }];
        tally_engine::Settled { totals: Vec::new(), commands: 1, conflicts: 0, broken: 0, due, at }
    };
    assert!(bell.concerns_others(&settled(RowKind::Gate, 0)), "nothing is this server's yet");
    assert!(bell.concerns_others(&settled(RowKind::Gate, 1_000)));
    assert!(!bell.concerns_others(&settled(RowKind::Gate, 60_000)), "it looks itself before that");
    assert!(!bell.concerns_others(&settled(RowKind::Replay, 0)), "nobody waits for it");
    let world = World::start(Catalog::default(), DAY).await;
    while world.bell.concerns_others(&settled(RowKind::Gate, 0)) {
        tokio::task::yield_now().await;
    }
}
