//! Faults under load: every answer that was given is there, exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tally_engine::{CommitError, Engine, SystemClock};
use tally_testing::until;
use tokio::task::JoinSet;

use super::wires::{WAYS, Wires};
use super::{Hands, Networked};
use crate::auditor::findings;
use crate::joins::{join, last, queue_of};
use crate::random::Random;
use crate::running::Running;
use crate::sample::catalog;
use crate::stand::Stand;

const SEEDS: u64 = 2;
const FAULTS: usize = 8;

/// One fault or another, until the network is told to pass everything on.
fn break_somehow(wires: &Wires, random: &mut Random) {
    match random.below(8) {
        0 => wires.cut(),
        1 => wires.hang(),
        2 => wires.drop_answers(),
        3 => wires.delay(Duration::from_millis(20)),
        way => wires.cut_every(2 + random.below(5), WAYS[way % 4]),
    }
}

async fn assert_sound<F: Networked>(stand: &Stand<F>, engine: &F::Engine) {
    stand.drain(engine).await;
    assert_eq!(findings(engine).await, Vec::<String>::new(), "the audit found something");
}

pub(super) async fn every_way_of_failing_under_load_is_survived<F: Networked>(stand: Stand<F>) {
    let (wires, near) = stand.behind_shortly();
    let (engine, outside) = (near.open().await, stand.open().await);
    let running = Running::start(&engine, &catalog(), SystemClock).await;
    let hands = Hands::on(&running.runner, "hand");
    hands.until_answered(50).await;
    for swallows in [false, false, true] {
        if swallows {
            wires.drop_answers();
        } else {
            wires.cut();
        }
        hands.until_failed().await;
        wires.pass();
        hands.until_answered(50).await;
    }
    for way in WAYS {
        wires.cut_every(3, way);
        hands.until_told(50).await;
        wires.pass();
        hands.until_answered(50).await;
    }
    wires.delay(Duration::from_millis(20));
    hands.until_answered(50).await;
    wires.pass();
    hands.check(&*outside).await;
    running.stop().await;
    assert_sound(&stand, &outside).await;
}

/// One server is behind the network, and the other is not.
pub(super) async fn what_two_servers_were_told_is_there_after_faults_at_random<F: Networked>(stand: Stand<F>) {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let (stand, mut random) = (stand.another(), Random(seed));
        let (wires, near) = stand.behind_shortly();
        let (engine, outside) = (near.open().await, stand.open().await);
        let running = Running::start(&engine, &catalog(), SystemClock).await;
        let beside = Running::start(&outside, &catalog(), SystemClock).await;
        let hands = [Hands::on(&running.runner, "near"), Hands::on(&beside.runner, "far")];
        for _ in 0..FAULTS {
            break_somehow(&wires, &mut random);
            hands[0].until_told(1 + random.below(40)).await;
            hands[1].until_answered(10).await;
            wires.pass();
            hands[0].until_answered(20).await;
        }
        for hands in hands {
            hands.check(&*outside).await;
        }
        running.stop().await;
        beside.stop().await;
        assert_sound(&stand, &outside).await;
    }
}

/// What became of each who joined.
#[derive(Default)]
struct Joined {
    numbers: BTreeMap<u64, String>,
    /// Certainly not done.
    refused: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

/// Joins with somebody new each time, until it is told to end.
async fn joining<E: Engine>(engine: Arc<E>, task: String, ended: Arc<AtomicBool>, told: Arc<AtomicUsize>) -> Joined {
    let mut joined = Joined::default();
    for round in 0.. {
        if ended.load(Ordering::SeqCst) {
            break;
        }
        let who = format!("{task}r{round}");
        match join(&*engine, &[("sale", &who)]).await {
            Ok(numbers) => {
                let before = joined.numbers.insert(numbers[0], who);
                assert_eq!(before, None, "{} was given twice", numbers[0]);
            }
            Err(CommitError::Conflict) => drop(joined.refused.insert(who)),
            Err(CommitError::Store(error)) if error.is_transient() => drop(joined.unknown.insert(who)),
            Err(error) => panic!("{error}"),
        }
        told.fetch_add(1, Ordering::SeqCst);
    }
    joined
}

pub(super) async fn numbers_stay_dense_and_unique_after_faults_at_random<F: Networked>(stand: Stand<F>) {
    const TASKS: usize = 4;
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let (stand, mut random) = (stand.another(), Random(100 + seed));
        let (wires, near) = stand.behind_shortly();
        let (engine, outside) = (near.open().await, stand.open().await);
        let ended = Arc::new(AtomicBool::new(false));
        let told = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (server, near) = (task % 2, engine.clone());
            let engine = if server == 0 { near } else { outside.clone() };
            tasks.spawn(joining(engine, format!("t{task}"), ended.clone(), told[server].clone()));
        }
        let until_told = async |server: usize, more: usize| {
            let goal = told[server].load(Ordering::SeqCst) + more;
            until("somebody is told", async || (told[server].load(Ordering::SeqCst) >= goal).then_some(())).await;
        };
        let until_given = async |more: u64| {
            let goal = last(&*outside, "sale").await + more;
            until("numbers are given", async || (last(&*outside, "sale").await >= goal).then_some(())).await;
        };
        for _ in 0..FAULTS {
            break_somehow(&wires, &mut random);
            until_told(0, 1 + random.below(5)).await;
            until_given(5).await;
            wires.pass();
            until_told(0, 5).await;
        }
        ended.store(true, Ordering::SeqCst);
        let mut all = Joined::default();
        for joined in tasks.join_all().await {
            for (number, who) in joined.numbers {
                let before = all.numbers.insert(number, who);
                assert_eq!(before, None, "{number} was given twice");
            }
            all.refused.extend(joined.refused);
            all.unknown.extend(joined.unknown);
        }
        stand.drain(&outside).await;
        check(&all, &queue_of(&*outside, "sale").await);
    }
}

/// Dense is what is there already: now each number is of whom it was given to, and nobody has two.
fn check(all: &Joined, queue: &[String]) {
    let everybody: BTreeSet<&String> = queue.iter().collect();
    assert_eq!(everybody.len(), queue.len(), "somebody is there twice");
    for (number, who) in (1..).zip(queue) {
        assert!(!all.refused.contains(who), "{who} has {number}, and was certainly not to have any");
        match all.numbers.get(&number) {
            Some(told) => assert_eq!(told, who, "{number}"),
            None => assert!(all.unknown.contains(who), "{who} has {number}, and was never told"),
        }
    }
    for (number, who) in &all.numbers {
        assert!(everybody.contains(who), "{who} was told {number}, and is not there");
    }
}
