//! Three servers let people into one queue, and each is told its position.

use std::collections::BTreeSet;
use std::sync::Arc;

use tally_core::rows::Seq;
use tally_core::view::Wants;
use tally_engine::{CommitError, Engine, OrderFrom, Range};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::numbers::servers;
use super::servers::SERVERS;
use crate::EngineFactory;
use crate::joins::{Joins, queue_order, stands_at, ticket_key};
use crate::random::Random;
use crate::stand::Stand;

const TASKS: usize = 2 * SERVERS;
const ROUNDS: usize = 16;

/// What one was told.
#[derive(Clone, Copy)]
struct Told {
    seq: u64,
    position: u64,
}

/// One task's people. Some of those who joined before leave again, each by the task that let it in.
struct Crowd<E> {
    engine: Arc<E>,
    /// Where one runner writes, whoever decides on a load is alone until its commit.
    turn: Option<Arc<Mutex<()>>>,
    leaves: bool,
    random: Random,
    waiting: Vec<(u64, String)>,
    told: Vec<Told>,
    left: Vec<u64>,
    conflicts: usize,
}

impl<E: Engine> Crowd<E> {
    async fn run(mut self, task: usize) -> Self {
        for round in 0..ROUNDS {
            let count = 1 + self.random.below(4);
            let who: Vec<String> = (0..count).map(|number| format!("t{task}r{round}n{number}")).collect();
            let leave = self.leaves && self.random.percent(70) && !self.waiting.is_empty();
            let gone = leave.then(|| self.waiting.remove(self.random.below(self.waiting.len())));
            let (numbers, ranks) = loop {
                let turn = self.turn.clone();
                let _alone = match &turn {
                    Some(turn) => Some(turn.lock().await),
                    None => None,
                };
                match self.join(&who, gone.as_ref()).await {
                    Ok(told) => break told,
                    Err(CommitError::Conflict) => self.conflicts += 1,
                    Err(error) => panic!("{error}"),
                }
            };
            self.left.extend(gone.map(|(seq, _)| seq));
            assert_eq!(ranks.len(), count);
            let first = numbers[0];
            for (offset, ((seq, position), who)) in numbers.into_iter().zip(ranks).zip(who).enumerate() {
                assert_eq!(seq, first + offset as u64, "one commit's numbers follow each other");
                self.told.push(Told { seq, position });
                self.waiting.push((seq, who));
            }
        }
        self
    }

    async fn join(&self, who: &[String], gone: Option<&(u64, String)>) -> Result<(Vec<u64>, Vec<u64>), CommitError> {
        let joining: Vec<(&str, &str)> = who.iter().map(|who| ("sale", who.as_str())).collect();
        let mut joins = Joins::new(&*self.engine, &joining).await?;
        if let Some((seq, whose)) = gone {
            joins.leave("sale", *seq, whose);
        }
        joins.show(&*self.engine, &[]).await?;
        joins.commit_told(&*self.engine).await
    }
}

async fn run<F: EngineFactory>(stand: &Stand<F>, leaves: bool) -> (Vec<Told>, BTreeSet<u64>, usize) {
    let engines = servers(stand).await;
    let turn = (!stand.servers()).then(Arc::default);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (engine, random, turn) = (engines[task % SERVERS].clone(), Random(task as u64), turn.clone());
        let (waiting, told, left) = (Vec::new(), Vec::new(), Vec::new());
        let crowd = Crowd { engine, turn, leaves, random, waiting, told, left, conflicts: 0 };
        tasks.spawn(crowd.run(task));
    }
    let (mut told, mut left, mut conflicts, mut waiting) = (Vec::new(), BTreeSet::new(), 0, BTreeSet::new());
    for crowd in tasks.join_all().await {
        told.extend(crowd.told);
        left.extend(crowd.left);
        conflicts += crowd.conflicts;
        waiting.extend(crowd.waiting.iter().map(|(seq, _)| *seq));
    }
    told.sort_unstable_by_key(|told| told.seq);
    for engine in &engines {
        stand.drain(engine).await;
        check(&**engine, &waiting, told.len() as u64).await;
    }
    (told, left, conflicts)
}

/// Rows and their order agree, on every server.
async fn check<E: Engine>(engine: &E, waiting: &BTreeSet<u64>, last: u64) {
    let ranks = (1..=last + 1).map(|seq| stands_at("sale", Seq::Given(seq))).collect();
    let found = engine.load(&Wants { ranks, ..Wants::default() }).await.expect("a load works").ranks;
    let expected: Vec<u64> = (1..=last + 1).map(|seq| waiting.range(..seq).count() as u64).collect();
    assert_eq!(found, expected);
    let range = Range::Order { order: queue_order("sale"), from: OrderFrom::Rank(0) };
    let page = engine.scan(&range, 1_000).await.expect("a scan works");
    let page: Vec<_> = page.items.into_iter().map(|(key, _)| key).collect();
    assert_eq!(page, waiting.iter().map(|seq| ticket_key("sale", Seq::Given(*seq))).collect::<Vec<_>>());
}

/// Nobody leaves, so whoever has the n-th number has n - 1 before it, whenever that was.
pub(super) async fn a_position_is_exact_at_its_commit_and_joins_do_not_conflict<F: EngineFactory>(stand: Stand<F>) {
    let (told, _, conflicts) = run(&stand, false).await;
    for (number, told) in (1..).zip(told) {
        assert_eq!((told.seq, told.position), (number, number - 1));
    }
    assert_eq!(conflicts, 0, "who joins is in nobody's way");
}

/// Whoever leaves has gone before whoever joins in the same commit or later, and what a server tells cannot be true of no moment.
pub(super) async fn positions_while_others_leave_are_of_one_moment<F: EngineFactory>(stand: Stand<F>) {
    let (told, left, _) = run(&stand, true).await;
    let mut gone = 0;
    for Told { seq, position } in told {
        let before = left.range(..seq).count() as u64;
        let off = (seq - 1).checked_sub(position).expect("nobody stands before who has joined later");
        assert!(off <= before, "{seq} was told {position}, and only {before} before it ever left");
        // Numbers are in the order of commits, and nobody comes back.
        assert!(off >= gone, "{seq} was told {position}, but {gone} had left before");
        gone = off;
    }
}
