//! The ranks in the answers to scores, with all three ways to rank equal ones: each is that of one moment, and all of them
//! are of one order.

use std::sync::Arc;

use tally_core::command::{Batch, Call, ChangeScore, Command, Once, Rehearse, ScoreChange};
use tally_core::reply::Reply;
use tally_core::rows::{BoardKey, Key};
use tally_core::time::Timestamp;
use tally_engine::{Engine, OrderFrom, Range};

use super::servers::{Clocks, Servers, answered};
use super::truth::{Answer, clients, runner_of};
use crate::EngineFactory;
use crate::random::Random;
use crate::sample::{call, name, replay_key, subject};
use crate::stand::Stand;
use crate::universe::Universe;

/// One for each way.
const BOARDS: [&str; 3] = ["points", "shared", "dense"];
const ROUNDS: usize = 24;

fn score(board: &str, member: &str, change: ScoreChange) -> Command {
    Command::from(ChangeScore { board: name(board), member: subject(member), change })
}

/// With a key that nobody else has: its answer is written down.
fn once(key: String, command: Command) -> Call {
    Call { once: Some(Once { key: replay_key("app", &key), fields: Arc::default() }), ..call(command) }
}

fn assert_leads(answer: &Answer) {
    match answer {
        Ok(Reply::Board(score)) => assert_eq!(score.rank, score.score.map(|_| 1), "{answer:?}"),
        Ok(Reply::Batch(answers)) => answers.iter().for_each(assert_leads),
        other => panic!("{other:?}"),
    }
}

/// Nobody but alice ever scores.
fn of_alice(random: &mut Random) -> Command {
    let change = match random.below(4) {
        0 => ScoreChange::Leave,
        1 => ScoreChange::To(5),
        _ => ScoreChange::By(random.below(3) as i64 - 1),
    };
    score(BOARDS[random.below(3)], "alice", change)
}

pub(super) async fn who_is_alone_on_a_board_leads_it<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    let draw = |random: &mut Random| match random.below(5) {
        0 => {
            let commands = (0..3).map(|_| of_alice(random)).collect();
            call(Command::from(Batch { atomic: random.below(2) == 0, commands }))
        }
        1 => call(Command::from(Rehearse { commands: (0..2).map(|_| of_alice(random)).collect() })),
        2 => once(format!("{}", random.0), of_alice(random)),
        _ => call(of_alice(random)),
    };
    for (_, answer) in clients(&servers, draw).await {
        assert_leads(&answer);
    }
    servers.stop(&Universe::default()).await;
}

/// Two members move at once, each on a server of its own, with a key or without. Gives their ranks.
async fn at_once<F: EngineFactory>(servers: &Servers<F>, board: &str, round: usize, to: [i64; 2]) -> [u64; 2] {
    let send = |place: usize, member: &str| {
        let command = score(board, member, ScoreChange::To(to[place]));
        let call = match round % 4 {
            0 => once(format!("{board} {round} {member}"), command),
            1 if place == 0 => once(format!("{board} {round} {member}"), command),
            2 => call(Command::from(Batch { atomic: true, commands: vec![command] })),
            _ => call(command),
        };
        let runner = runner_of(servers, place);
        tokio::spawn(async move { answered(&runner, call).await.reply })
    };
    let (ann, bob) = (send(0, "ann"), send(1, "bob"));
    [ann.await, bob.await].map(|answer| rank(&answer.expect("it does not panic")))
}

fn rank(answer: &Answer) -> u64 {
    match answer {
        Ok(Reply::Board(score)) => score.rank.expect("it has a score"),
        Ok(Reply::Batch(answers)) => rank(&answers[0]),
        other => panic!("{other:?}"),
    }
}

/// From 5 to 15 and from 20 to 10: whoever comes first, both then lead or neither does.
pub(super) async fn two_who_pass_each_other_are_told_of_one_order<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    for board in BOARDS {
        for round in 0..ROUNDS {
            servers.run(0, score(board, "ann", ScoreChange::To(5))).await;
            servers.run(1, score(board, "bob", ScoreChange::To(20))).await;
            let [ann, bob] = at_once(&servers, board, round, [15, 10]).await;
            assert!(ann == bob && ann <= 2, "{board}, round {round}: ann is told {ann}, bob {bob}");
        }
    }
    servers.stop(&Universe::default()).await;
}

/// Two reach the same score at once: whoever stands first was never second.
pub(super) async fn who_reached_a_score_first_is_told_so<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    for (board, second) in [("points", 2), ("shared", 1), ("dense", 1)] {
        for round in 0..ROUNDS {
            servers.run(0, score(board, "ann", ScoreChange::To(5))).await;
            servers.run(1, score(board, "bob", ScoreChange::To(4))).await;
            let told = at_once(&servers, board, round, [30, 30]).await;
            let key = BoardKey { board: name(board), season: Timestamp(0), levels: false };
            let range = Range::Order { order: key.into(), from: OrderFrom::Rank(0) };
            let page = servers.engine(2).scan(&range, 2).await.expect("a scan works");
            let leads = |member: &str| matches!(&page.items[0].0, Key::Score(key) if key.member == subject(member));
            let [first, other] = if leads("ann") { told } else { [told[1], told[0]] };
            assert!(first == 1 && (1..=second).contains(&other), "{board}, round {round}: {told:?}");
        }
    }
    servers.stop(&Universe::default()).await;
}
