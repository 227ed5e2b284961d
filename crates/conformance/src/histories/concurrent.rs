//! Many tasks at once through real runners. Nobody knows who comes first; whatever the order was,
//! it must add up.

use std::collections::BTreeSet;

use tally_core::command::{Batch, Relate, Toggle, Unrelate};
use tally_core::rows::Side;
use tally_core::{Catalog, Command, batch};
use tally_engine::{Failure, Place, SystemClock};
use tokio::task::JoinSet;

use crate::auditor::assert_sound;
use crate::random::Random;
use crate::running::Running;
use crate::sample::{catalog, list, name, relate, unrelate};
use crate::stand::Stand;
use crate::transitions::Transitions;
use crate::universe::Universe;
use crate::{EngineFactory, walk};

fn universe() -> Universe {
    Universe::new(
        &["s0", "s1", "s2", "s3", "s4"],
        &["post:0", "post:1", "post:2", "post:3"],
        &["like", "pin", "shelf", "reaction"],
    )
}

fn random_command(random: &mut Random, universe: &Universe) -> Command {
    let relation = random.pick(&universe.relations).clone();
    let (object, subject) = (random.pick(&universe.objects).clone(), random.pick(&universe.subjects).clone());
    let kind = (relation == name("reaction")).then(|| random.pick(&universe.kinds).clone());
    match random.below(20) {
        0..=9 => Command::from(Relate { relation, object, subject, kind, meta: None }),
        10..=15 => Command::from(Unrelate { relation, object, subject }),
        16..=18 => Command::from(Toggle { relation, object, subject, kind, meta: None }),
        _ => {
            let commands = (0..4).map(|_| match random_command(random, universe) {
                Command::Batch(batch::Command::Batch(Batch { mut commands, .. })) => commands.remove(0),
                command => command,
            });
            Command::from(Batch { commands: commands.collect(), atomic: true })
        }
    }
}

/// Tasks with seeded commands, spread over so many runners on one engine.
async fn many_tasks<F: EngineFactory>(stand: Stand<F>, runners: usize) {
    const TASKS: u64 = 16;
    const COMMANDS: usize = 40;
    let (engine, catalog, universe) = (stand.open().await, catalog(), universe());
    let mut running = Vec::new();
    for _ in 0..runners {
        running.push(Running::start(&engine, &catalog, SystemClock).await);
    }
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let runner = running[task as usize % runners].runner.clone();
        let universe = universe.clone();
        tasks.spawn(async move {
            let mut random = Random(task);
            let mut replies = Vec::new();
            for _ in 0..COMMANDS {
                let call = crate::sample::call(random_command(&mut random, &universe));
                match runner.apply(call).await {
                    Ok(decided) => replies.extend(decided.reply.ok()),
                    // Given up after too many conflicts: nothing was done.
                    Err(Failure::Overloaded) => {}
                    Err(failure) => panic!("{failure}"),
                }
            }
            replies
        });
    }
    let mut transitions = Transitions::default();
    while let Some(replies) = tasks.join_next().await {
        replies.expect("no task panics").iter().for_each(|reply| transitions.take(reply));
    }
    for one in running {
        one.stop().await;
    }
    stand.drain(&engine).await;
    assert_sound(&*engine, &universe).await;
    assert_limits(&*engine, &universe, &catalog).await;
    let dump = universe.dump(&*engine).await;
    transitions.assert_in(&dump);
    assert!(transitions.len() > 40, "only {} edges were touched", transitions.len());
    let engine = stand.reopen(engine).await;
    assert_eq!(universe.dump(&*engine).await, dump, "everything was answered, so everything is there");
}

async fn assert_limits<E: tally_engine::Engine>(engine: &E, universe: &Universe, catalog: &Catalog) {
    for relation in &universe.relations {
        let Some(limit) = catalog.relation(relation).expect("declared").limit_per_subject else { continue };
        for subject in &universe.subjects {
            let mine = list(Side::Subject, subject.as_str(), Some(relation.as_str()), false);
            assert!(walk::all(engine, &mine, 10).await.len() <= limit as usize, "{subject} in {relation}");
        }
    }
}

pub(super) async fn many_tasks_on_one_runner_add_up<F: EngineFactory>(stand: Stand<F>) {
    many_tasks(stand, 1).await;
}

pub(super) async fn many_tasks_on_two_runners_add_up<F: EngineFactory>(stand: Stand<F>) {
    many_tasks(stand, 2).await;
}

/// A reader pages through a list that others change under it: what was there throughout is seen
/// once, in order; nothing at all is seen twice.
pub(super) async fn pages_neither_skip_nor_repeat<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let running = Running::start(&engine, &catalog, SystemClock).await;
    let names = |prefix: &str, many: usize| (0..many).map(|n| format!("{prefix}{n:02}")).collect::<Vec<_>>();
    let (stay, churn) = (names("stay", 15), names("churn", 15));
    for (stays, comes) in stay.iter().zip(&churn) {
        running.run(relate("like", "post:1", stays)).await;
        running.run(relate("like", "post:1", comes)).await;
    }
    let mut tasks = JoinSet::new();
    for task in 0..3 {
        let (runner, churn) = (running.runner.clone(), churn.clone());
        tasks.spawn(async move {
            let mut random = Random(task);
            for _ in 0..60 {
                let who = random.pick(&churn);
                let command =
                    if random.percent(50) { unrelate("like", "post:1", who) } else { relate("like", "post:1", who) };
                runner.apply(crate::sample::call(command)).await.expect("the store works").reply.expect("allowed");
            }
        });
    }
    let posts = list(Side::Object, "post:1", Some("like"), false);
    let mut random = Random(77);
    let newest_first: Vec<&String> = stay.iter().rev().collect();
    for walk in 0..12 {
        let mut seen: Vec<String> = Vec::new();
        let mut after: Option<Place> = None;
        loop {
            let (page, more) = walk::page(&*engine, &posts, after, 1 + walk % 5).await;
            seen.extend(page.iter().map(|(key, _)| key.subject.as_str().to_owned()));
            let Some((key, edge)) = page.last().filter(|_| more) else { break };
            after = Some(Place::of(&posts, key, edge));
            // Something changes between any two pages, whatever the other tasks are up to; now and
            // then it is the very row that the next page goes on from.
            let who =
                if key.subject.as_str().starts_with("churn") { key.subject.as_str() } else { random.pick(&churn) };
            running.run(unrelate("like", "post:1", who)).await;
            running.run(relate("like", "post:1", who)).await;
        }
        let distinct: BTreeSet<&String> = seen.iter().collect();
        assert_eq!(distinct.len(), seen.len(), "something was seen twice: {seen:?}");
        let stayed: Vec<&String> = seen.iter().filter(|who| who.starts_with("stay")).collect();
        assert_eq!(stayed, newest_first, "what was there throughout is seen once, in order");
    }
    while let Some(task) = tasks.join_next().await {
        task.expect("no task panics");
    }
    running.stop().await;
}

/// Two servers race for the last place under a limit while a reader watches.
pub(super) async fn a_limit_holds_at_every_moment<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = Universe::new(&["alice"], &["post:0", "post:1", "post:2", "post:3", "post:4"], &["shelf"]);
    let servers =
        [Running::start(&engine, &catalog, SystemClock).await, Running::start(&engine, &catalog, SystemClock).await];
    let mut tasks = JoinSet::new();
    for task in 0..8_u64 {
        let (runner, universe) = (servers[task as usize % 2].runner.clone(), universe.clone());
        tasks.spawn(async move {
            let mut random = Random(task);
            let mut turned_away = 0;
            for _ in 0..40 {
                let to = random.pick(&universe.objects).as_str();
                let command =
                    if random.percent(65) { relate("shelf", to, "alice") } else { unrelate("shelf", to, "alice") };
                match runner.apply(crate::sample::call(command)).await {
                    Ok(decided) => turned_away += usize::from(decided.reply.is_err()),
                    Err(Failure::Overloaded) => {}
                    Err(failure) => panic!("{failure}"),
                }
            }
            turned_away
        });
    }
    let mine = list(Side::Subject, "alice", Some("shelf"), false);
    let mut turned_away = 0;
    while !tasks.is_empty() {
        let (page, _) = walk::page(&*engine, &mine, None, 10).await;
        assert!(page.len() <= 3, "{} on a shelf for three", page.len());
        if let Some(task) = tasks.try_join_next() {
            turned_away += task.expect("no task panics");
        }
        tokio::task::yield_now().await;
    }
    assert!(turned_away > 0, "the limit was never reached, so nothing was proven");
    for server in servers {
        server.stop().await;
    }
    stand.drain(&engine).await;
    assert_sound(&*engine, &universe).await;
}
