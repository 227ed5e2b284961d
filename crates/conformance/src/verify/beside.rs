//! Recounts while three servers write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tally_core::command::{Attend, ChangeScore, Forget, ScoreChange};
use tally_core::{Command, Day};
use tally_engine::Engine;
use tokio::task::JoinSet;

use super::{findings, repairs, words};
use crate::EngineFactory;
use crate::driver::write;
use crate::random::Random;
use crate::sample::{call, name, subject};
use crate::shared::servers::{Clocks, SERVERS, Servers};
use crate::stand::Stand;
use crate::sweeper::Sweeper;
use crate::universe::Universe;

const TASKS: usize = 2 * SERVERS;
const RECOUNTS: usize = 12;
const DAY: Day = Day(20_000);

/// Everybody comes and goes, scores, and is forgotten now and then.
fn command(random: &mut Random) -> Command {
    let who = *random.pick(&["ann", "bob", "7", "70000", "cid", "dan"]);
    let who = subject(who);
    match random.below(100) {
        0..=49 => {
            let sheet = *random.pick(&["daily", "daily", "gym"]);
            let (day, present) = (Some(Day(DAY.0 + random.below(3) as u32)), random.percent(60));
            Command::from(Attend { sheet: name(sheet), day, subject: who, present })
        }
        50..=95 => {
            let board = *random.pick(&["dense", "dense", "points", "shared"]);
            let change = match random.below(8) {
                0 => ScoreChange::Leave,
                number => ScoreChange::To(number as i64 % 3),
            };
            Command::from(ChangeScore { board: name(board), member: who, change })
        }
        _ => Command::from(Forget { subject: who }),
    }
}

/// Writers on all servers, until they are told to end.
struct Writers(Arc<AtomicBool>, JoinSet<()>);

impl Writers {
    fn start<F: EngineFactory>(servers: &Servers<F>) -> Self {
        let (over, mut tasks) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for task in 0..TASKS {
            let (runner, over) = (servers.runner(task), over.clone());
            tasks.spawn(async move {
                let mut random = Random(task as u64);
                while !over.load(Ordering::SeqCst) {
                    // What is damaged may refuse; nobody is harmed by that.
                    drop(runner.apply(call(command(&mut random))).await);
                }
            });
        }
        Self(over, tasks)
    }

    async fn end(self) {
        self.0.store(true, Ordering::SeqCst);
        self.1.join_all().await;
    }
}

async fn assert_agrees<E: Engine>(engine: &E, said: &str) {
    let found: Vec<String> = findings(engine).await.iter().map(words).collect();
    assert_eq!(found, Vec::<String>::new(), "{said}");
}

pub(super) async fn a_recount_beside_writers_finds_nothing<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let writers = Writers::start(&servers);
    for number in 0..RECOUNTS {
        assert_agrees(&**servers.engine(number), &format!("recount {number}")).await;
        servers.sweep(number, Sweeper::ALL).await;
    }
    writers.end().await;
    assert_agrees(&**servers.engine(0), "afterwards").await;
    servers.stop(&Universe::default()).await;
}

/// What is damaged is put right while everybody goes on, and whoever is being forgotten is.
pub(super) async fn what_is_put_right_beside_writers_does_no_harm<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    for who in ["eve", "9"] {
        for day in 0..3 {
            let (sheet, day) = (name("daily"), Some(Day(DAY.0 + day)));
            servers.run(0, Command::from(Attend { sheet, day, subject: subject(who), present: true })).await;
        }
        let (board, change) = (name("dense"), ScoreChange::To(1));
        servers.run(1, Command::from(ChangeScore { board, member: subject(who), change })).await;
    }
    damage(&**servers.engine(0)).await;
    let writers = Writers::start(&servers);
    let mut clean = 0;
    for round in 0.. {
        assert!(round < 50, "it does not come right");
        let found = findings(&**servers.engine(round)).await;
        clean = if found.is_empty() { clean + 1 } else { 0 };
        if clean == 3 {
            break;
        }
        for repair in repairs(&**servers.engine(round), found).await {
            // Refused where something else has to be put right before.
            drop(servers.runner(round).apply(call(repair)).await.expect("the store works"));
        }
    }
    servers.sweep(1, Sweeper::ALL).await;
    writers.end().await;
    assert_agrees(&**servers.engine(0), "afterwards").await;
    for who in ["eve", "9"] {
        let (sheet, day) = (name("daily"), Some(DAY));
        let gone = servers.run(0, Command::from(Attend { sheet, day, subject: subject(who), present: false })).await;
        assert!(matches!(&gone, tally_core::Reply::Attendance(gone) if gone.changed), "{who}: {gone:?}");
    }
    assert_agrees(&**servers.engine(0), "in the end").await;
    servers.stop(&Universe::default()).await;
}

/// Totals, a list and a level, all in the way of those who write.
async fn damage<E: Engine>(engine: &E) {
    use tally_core::rows::{BoardKey, Key, Row, Score, ScoreKey, TotalKey};
    let (sheet, board) = (name("daily"), name("dense"));
    let board = BoardKey { board, season: tally_core::Timestamp(0), levels: true };
    let level = Key::Score(ScoreKey { board, member: subject("1") });
    let row = Row::Score(Score { score: 1, reached: tally_core::time::Stamp(40) });
    let list = Key::Day((sheet.clone(), Day(DAY.0 + 1)));
    let total = TotalKey::Present { sheet, day: DAY };
    write(engine, [(level, Some(row)), (list, None)], [(total, 3)]).await;
}
