//! Three servers take numbers of one sequence.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tally_engine::{CommitError, Engine};
use tokio::task::JoinSet;

use super::servers::SERVERS;
use crate::EngineFactory;
use crate::joins::{join, queue_of};
use crate::random::Random;
use crate::stand::Stand;

const TASKS: usize = 2 * SERVERS;
const ROUNDS: usize = 20;
/// More than anybody meets who is only unlucky.
const CONFLICTS_MAX: usize = 100;

/// An engine for each server, where the store can have several.
pub(super) async fn servers<F: EngineFactory>(stand: &Stand<F>) -> Vec<Arc<F::Engine>> {
    let mut engines: Vec<Arc<F::Engine>> = Vec::new();
    for _ in 0..SERVERS {
        let engine = match engines.first() {
            Some(first) if !stand.servers() => first.clone(),
            _ => stand.open().await,
        };
        engines.push(engine);
    }
    engines
}

/// They join one after the other. Gives each room, and what was given there, in order; and how often it conflicted.
async fn crowd<E: Engine>(
    engine: Arc<E>,
    task: usize,
    rooms: &'static [&'static str],
    answered: Arc<[AtomicU64; 2]>,
) -> (Vec<(usize, String, u64)>, usize) {
    let (mut random, mut given, mut conflicts) = (Random(task as u64), Vec::new(), 0);
    for round in 0..ROUNDS {
        let who: Vec<(usize, String)> = (0..=random.below(5))
            .map(|number| (random.below(rooms.len()), format!("t{task}r{round}n{number}")))
            .collect();
        let joining: Vec<(&str, &str)> = who.iter().map(|(room, who)| (rooms[*room], who.as_str())).collect();
        // Whatever was answered by now came before.
        let before = [0, 1].map(|room| answered[room].load(Ordering::SeqCst));
        let numbers = loop {
            match join(&*engine, &joining).await {
                Ok(numbers) => break numbers,
                Err(CommitError::Conflict) if conflicts < CONFLICTS_MAX => conflicts += 1,
                Err(error) => panic!("after {conflicts} conflicts: {error}"),
            }
        };
        for ((room, who), number) in who.into_iter().zip(numbers) {
            assert!(number > before[room], "{number} was given after {} was answered", before[room]);
            answered[room].fetch_max(number, Ordering::SeqCst);
            given.push((room, who, number));
        }
    }
    (given, conflicts)
}

async fn run<F: EngineFactory>(stand: &Stand<F>, rooms: &'static [&'static str]) -> usize {
    let engines = servers(stand).await;
    let answered = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(crowd(engines[task % SERVERS].clone(), task, rooms, answered.clone()));
    }
    let mut given: Vec<(usize, String, u64)> = Vec::new();
    let mut conflicts = 0;
    for (numbers, conflicted) in tasks.join_all().await {
        given.extend(numbers);
        conflicts += conflicted;
    }
    for (place, room) in rooms.iter().enumerate() {
        let queue = queue_of(&*engines[0], room).await;
        let mut told: Vec<(u64, &str)> =
            given.iter().filter(|(room, ..)| *room == place).map(|(_, who, number)| (*number, who.as_str())).collect();
        told.sort_unstable();
        let stored: Vec<(u64, &str)> = (1..).zip(queue.iter().map(String::as_str)).collect();
        assert_eq!(told, stored, "dense, each once, and what was told is what is there");
    }
    conflicts
}

pub(super) async fn numbers_of_three_servers_are_dense_in_order_and_without_conflict<F: EngineFactory>(
    stand: Stand<F>,
) {
    assert_eq!(run(&stand, &["sale"]).await, 0, "who takes a number is in nobody's way");
}

/// Each commit takes of one or of both, in any order.
pub(super) async fn sequences_of_three_servers_do_not_meet<F: EngineFactory>(stand: Stand<F>) {
    run(&stand, &["sale", "gate"]).await;
}
