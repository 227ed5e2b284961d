//! Every answer, also a refusal and one that changed nothing, could have been true at one moment.
//!
//! Three servers and twelve clients meet on one key, without any fault. What is stored is checked elsewhere; here it
//! is what they are told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tally_core::command::{Add, Attend, Batch, Call, ChangeScore, Command, Once, Rehearse, ScoreChange};
use tally_core::reply::Reply;
use tally_core::{Day, KeyId, Refusal, counter};
use tally_engine::Runner;
use tokio::task::JoinSet;

use super::servers::{Clocks, SERVERS, Servers, answered};
use crate::EngineFactory;
use crate::random::Random;
use crate::sample::{call, name, react, relate, replay_key, subject, unrelate};
use crate::stand::Stand;
use crate::universe::Universe;

const CLIENTS: usize = 12;
const EACH: usize = 40;
const CROWD: usize = 100;
/// So many at once that the totals of a batch are not loaded.
const FILLING: usize = 260;

pub(super) type Answer = Result<Reply, Refusal>;

fn key(text: &str) -> KeyId {
    KeyId::new(text).expect("a sample is a valid key")
}

/// The runner of a client's server. Where a store is for one server, so are its clients.
pub(super) fn runner_of<F: EngineFactory>(servers: &Servers<F>, client: usize) -> Runner {
    servers.runner(if servers.stand.servers() { client } else { 0 })
}

/// Every client sends what it draws, one after another.
pub(super) async fn clients<F: EngineFactory>(
    servers: &Servers<F>,
    draw: impl Fn(&mut Random) -> Call + Send + Sync + 'static,
) -> Vec<(Call, Answer)> {
    let (draw, mut tasks) = (Arc::new(draw), JoinSet::new());
    for client in 0..CLIENTS {
        let (runner, draw) = (runner_of(servers, client), draw.clone());
        let mut random = Random(client as u64 + 1);
        tasks.spawn(async move {
            let mut answers = Vec::new();
            for _ in 0..EACH {
                let call = draw(&mut random);
                answers.push((call.clone(), answered(&runner, call).await.reply));
            }
            answers
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

/// The same from a crowd on every server, all at once. Some come with so many others that the totals of their batch are
/// not loaded.
async fn crowd<F: EngineFactory>(servers: &Servers<F>, draw: impl Fn(&mut Random) -> Call) -> Vec<(Call, Answer)> {
    let mut tasks = JoinSet::new();
    for number in 0..CROWD * SERVERS {
        let (runner, call) = (runner_of(servers, number), draw(&mut Random(1_000 + number as u64)));
        tasks.spawn(async move { Some((call.clone(), answered(&runner, call).await.reply)) });
        if number % 30 < SERVERS {
            let others =
                (0..FILLING).map(|n| Command::from(Add { counter: name("views"), key: key(&format!("k{n}")), by: 1 }));
            let (runner, others) = (runner_of(servers, number), call_of_many(others.collect()));
            tasks.spawn(async move {
                assert!(answered(&runner, others).await.reply.is_ok());
                None
            });
        }
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

fn call_of_many(commands: Vec<Command>) -> Call {
    call(Command::from(Batch { atomic: false, commands }))
}

/// Nobody but one subject ever acts, so a count is 1 where it is in and 0 where it is not.
fn assert_alone(answer: &Answer) {
    match answer {
        Ok(Reply::Relation(edge)) => assert_eq!(edge.count, i64::from(edge.active), "{answer:?}"),
        Ok(Reply::Attendance(attend)) => assert_eq!(attend.count, i64::from(attend.present), "{answer:?}"),
        Ok(Reply::Batch(answers)) => answers.iter().for_each(assert_alone),
        other => panic!("{other:?}"),
    }
}

fn attend(present: bool) -> Command {
    Command::from(Attend { sheet: name("daily"), day: Some(Day(20_000)), subject: subject("alice"), present })
}

/// Something that one subject does.
fn of_alice(random: &mut Random) -> Command {
    match random.below(6) {
        0 => relate("like", "post:1", "alice"),
        1 => unrelate("like", "post:1", "alice"),
        2 => react("reaction", "post:1", "alice", ["like", "love", "wow"][random.below(3)]),
        3 => unrelate("reaction", "post:1", "alice"),
        4 => attend(true),
        _ => attend(false),
    }
}

pub(super) async fn a_subject_that_is_alone_is_counted_once_or_not_at_all<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    let draw = |random: &mut Random| match random.below(3) {
        0 => {
            let commands = (0..3).map(|_| of_alice(random)).collect();
            call(Command::from(Batch { atomic: random.below(2) == 0, commands }))
        }
        _ => call(of_alice(random)),
    };
    for (_, answer) in clients(&servers, draw).await.into_iter().chain(crowd(&servers, draw).await) {
        assert_alone(&answer);
    }
    servers.stop(&Universe::default()).await;
}

fn count(by: i64) -> Command {
    Command::from(Add { counter: name("views"), key: key("home"), by })
}

fn value(answer: &Answer) -> i64 {
    match answer {
        Ok(Reply::Counter(count)) => count.value,
        other => panic!("{other:?}"),
    }
}

/// Some of them with a key, whose answers are written down; some only look.
pub(super) async fn a_counter_tells_no_value_twice<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    let plain = |random: &mut Random| call(count([0, 1, 10, 100][random.below(4)]));
    let draw = move |random: &mut Random| match random.below(3) {
        0 => {
            let once = Once { key: replay_key("app", &format!("{}", random.0)), fields: Arc::default() };
            Call { once: Some(once), ..plain(random) }
        }
        _ => plain(random),
    };
    let mut answers = clients(&servers, draw).await;
    answers.extend(crowd(&servers, plain).await);
    let by =
        |call: &Call| if let Command::Counter(counter::Command::Add(Add { by, .. })) = call.command { by } else { 0 };
    let mut told: Vec<(i64, i64)> =
        answers.iter().map(|(call, answer)| (value(answer), by(call))).filter(|(_, by)| *by != 0).collect();
    told.sort_unstable();
    let mut last = 0;
    for (value, by) in &told {
        assert_eq!(value - by, last, "each is told what the one before it left");
        last = *value;
    }
    let values: BTreeSet<i64> = told.iter().map(|(value, _)| *value).chain([0]).collect();
    for (_, answer) in answers.iter().filter(|(call, _)| by(call) == 0) {
        assert!(values.contains(&value(answer)), "{answer:?} never was");
    }
    // Whoever asks again is told the same.
    for (number, (call, first)) in answers.into_iter().filter(|(call, _)| call.once.is_some()).enumerate() {
        let again = answered(&runner_of(&servers, number), call).await;
        assert!(again.replayed);
        assert_eq!(again.reply, first);
    }
    servers.stop(&Universe::default()).await;
}

/// What would become of additions shows each of them, and nothing is added.
pub(super) async fn a_rehearsal_counts_what_it_adds<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    for round in 0..2 {
        let commands = vec![count(1), count(1), count(1), count(2), count(5)];
        let Reply::Batch(answers) = servers.run(round, Command::from(Rehearse { commands })).await else { panic!() };
        assert_eq!(answers.iter().map(value).collect::<Vec<_>>(), [1, 2, 3, 5, 10]);
        let likes = ["ann", "bob"].map(|who| relate("like", "post:1", who)).to_vec();
        let Reply::Batch(answers) = servers.run(round, Command::from(Rehearse { commands: likes })).await else {
            panic!()
        };
        let counts = answers.iter().map(|answer| if let Ok(Reply::Relation(edge)) = answer { edge.count } else { 0 });
        assert_eq!(counts.collect::<Vec<_>>(), [1, 2]);
    }
    servers.stop(&Universe::default()).await;
}

/// One edge stays, one comes and goes: never three, so never too many for a limit of two.
pub(super) async fn a_limit_that_nobody_could_exceed_is_not_exceeded<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    servers.run(0, relate("pair", "post:0", "alice")).await;
    let draw = |random: &mut Random| match random.below(3) {
        0 => call(relate("pair", "post:0", "alice")),
        1 => call(relate("pair", "post:1", "alice")),
        _ => call(unrelate("pair", "post:1", "alice")),
    };
    for (_, answer) in clients(&servers, draw).await.into_iter().chain(crowd(&servers, draw).await) {
        assert!(answer.is_ok(), "{answer:?}");
    }
    servers.stop(&Universe::default()).await;
}

/// A counter and a score that always move together.
pub(super) async fn what_moves_together_is_told_together<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    let draw = |random: &mut Random| {
        let score =
            Command::from(ChangeScore { board: name("points"), member: subject("alice"), change: ScoreChange::By(1) });
        let commands = if random.below(2) == 0 { vec![count(1), score] } else { vec![score, count(1)] };
        call(Command::from(Batch { atomic: true, commands }))
    };
    for (_, answer) in clients(&servers, draw).await {
        let Ok(Reply::Batch(answers)) = &answer else { panic!("{answer:?}") };
        let told = answers.iter().map(|answer| match answer {
            Ok(Reply::Board(score)) => score.score,
            other => Some(value(other)),
        });
        let told: Vec<Option<i64>> = told.collect();
        assert_eq!(told[0], told[1], "{answer:?}");
    }
    servers.stop(&Universe::default()).await;
}

/// Days of several subjects in batches, which need several loads: what does not fit together was not read at once.
pub(super) async fn attendance_in_batches_is_never_at_odds_with_itself<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    let attend = |random: &mut Random| {
        let who = ["1", "2", "ann", "bob"][random.below(4)];
        let (day, present) = (Some(Day(20_000 + random.below(2) as u32)), random.below(2) == 0);
        Command::from(Attend { sheet: name("daily"), day, subject: subject(who), present })
    };
    let draw = move |random: &mut Random| {
        let commands = (0..1 + random.below(4)).map(|_| attend(random)).collect();
        call(Command::from(Batch { atomic: random.below(2) == 0, commands }))
    };
    for (_, answer) in clients(&servers, draw).await {
        let Ok(Reply::Batch(answers)) = &answer else { panic!("{answer:?}") };
        assert!(answers.iter().all(Result::is_ok), "{answer:?}");
        for attend in answers.iter().filter_map(|answer| match answer {
            Ok(Reply::Attendance(attend)) => Some(attend),
            _ => None,
        }) {
            assert!((i64::from(attend.present)..=4).contains(&attend.count), "{attend:?}");
        }
    }
    servers.stop(&Universe::default()).await;
}

/// Two subjects, of whom one never leaves.
pub(super) async fn a_count_never_leaves_out_who_is_there<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    servers.run(0, relate("like", "post:1", "stays")).await;
    let draw = |random: &mut Random| match random.below(4) {
        0 => call(relate("like", "post:1", "stays")),
        1 => call(unrelate("like", "post:1", "never")),
        2 => call(relate("like", "post:1", "alice")),
        _ => call(unrelate("like", "post:1", "alice")),
    };
    let mut seen: BTreeMap<(String, bool, i64), usize> = BTreeMap::new();
    for (_, answer) in clients(&servers, draw).await.into_iter().chain(crowd(&servers, draw).await) {
        let Ok(Reply::Relation(edge)) = &answer else { panic!("{answer:?}") };
        *seen.entry((edge.subject.to_string(), edge.active, edge.count)).or_default() += 1;
    }
    for (who, active, count) in seen.keys() {
        let possible = match (who.as_str(), active) {
            ("alice", active) => 1 + i64::from(*active)..=1 + i64::from(*active),
            _ => 1..=2,
        };
        assert!(possible.contains(count), "{seen:?}");
    }
    servers.stop(&Universe::default()).await;
}
