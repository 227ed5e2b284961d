//! What three servers count at once adds up.

use std::collections::BTreeSet;
use std::sync::Arc;

use tally_core::command::{Add, Attend, Batch, Call, ChangeScore, Command, Observe, Once, ScoreChange, Take};
use tally_core::reply::Reply;
use tally_core::rows::{BoardKey, CountKey, Key, Row, TotalKey};
use tally_core::time::Timestamp;
use tally_core::view::Wants;
use tally_core::{Day, KeyId, Refusal};
use tally_engine::{Engine, OrderFrom, Range};
use tokio::task::JoinSet;

use super::servers::{Clocks, SERVERS, Servers, answered};
use crate::EngineFactory;
use crate::sample::{call, name, replay_key, subject};
use crate::stand::Stand;
use crate::universe::Universe;

const TASKS: usize = 3 * SERVERS;
const EACH: usize = 20;

fn key(text: &str) -> KeyId {
    KeyId::new(text).expect("a sample is a valid key")
}

/// Runs what each task does on its server, and gives all replies.
async fn all<F: EngineFactory>(
    servers: &Servers<F>,
    each: usize,
    command: impl Fn(usize, usize) -> Call + Send + Sync + 'static,
) -> Vec<Result<Reply, Refusal>> {
    let (command, mut tasks) = (Arc::new(command), JoinSet::new());
    for task in 0..TASKS {
        let (runner, command) = (servers.runner(task), command.clone());
        tasks.spawn(async move {
            let mut replies = Vec::new();
            for number in 0..each {
                replies.push(answered(&runner, command(task, number)).await.reply);
            }
            replies
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

pub(super) async fn additions_of_three_servers_add_up<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    let add =
        |_, number| call(Command::from(Add { counter: name("views"), key: key("home"), by: [3, -1][number % 2] }));
    let replies = all(&servers, EACH, add).await;
    let total = TotalKey::Counter(CountKey { name: name("views"), key: key("home") });
    let expected = (TASKS * EACH) as i64;
    for server in 0..SERVERS {
        let loaded = servers.engine(server).load(&Wants::totals(vec![total.clone()])).await.expect("a load works");
        assert_eq!(loaded.totals, [expected]);
    }
    assert_eq!(replies.len(), TASKS * EACH);
    assert!(replies.iter().all(Result::is_ok));
    servers.stop(&Universe::default()).await;
}

/// The same key fifty times, from everywhere at once.
pub(super) async fn a_retried_addition_counts_once<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let replies = all(&servers, EACH, |_, number| {
        let once = Once { key: replay_key("app", &format!("k{}", number % 4)), fields: Arc::default() };
        let command = Command::from(Add { counter: name("views"), key: key("home"), by: 1 });
        Call { once: Some(once), ..call(command) }
    })
    .await;
    let values: BTreeSet<i64> = replies
        .into_iter()
        .map(|reply| match reply {
            Ok(Reply::Counter(count)) => count.value,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(values, BTreeSet::from([1, 2, 3, 4]), "each of four keys has one effect and one answer");
    servers.stop(&Universe::default()).await;
}

pub(super) async fn members_seen_by_three_servers_are_all_kept<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    // Few enough to be counted exactly.
    all(&servers, EACH, |task, number| {
        let members = vec![format!("user {}", (task * EACH + number) % 150)];
        call(Command::from(Observe { unique: name("dau"), key: key("today"), members }))
    })
    .await;
    let row = Key::Unique(CountKey { name: name("dau"), key: key("today") });
    let loaded = servers.engine(1).load(&Wants::rows(vec![row])).await.expect("a load works");
    assert!(matches!(&loaded.rows[0], Some(Row::Unique(sketch)) if sketch.estimate() == 150), "{:?}", loaded.rows);
    servers.stop(&Universe::default()).await;
}

pub(super) async fn scores_of_three_servers_add_up<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    all(&servers, EACH, |task, number| {
        let member = subject(&format!("m{}", (task + number) % 4));
        call(Command::from(ChangeScore { board: name("points"), member, change: ScoreChange::By(1) }))
    })
    .await;
    let board = BoardKey { board: name("points"), season: Timestamp(0), levels: false };
    let page = servers.engine(2).scan(&Range::Order { order: board.into(), from: OrderFrom::Rank(0) }, 10).await;
    let page = page.expect("a scan works");
    let scores = page.items.iter().map(|(_, row)| if let Row::Score(score) = row { score.score } else { 0 });
    assert_eq!((page.items.len(), scores.sum::<i64>()), (4, (TASKS * EACH) as i64));
    servers.stop(&Universe::default()).await;
}

/// Many changes of one member, each of which stands on the one before: they come in one batch, and need a few loads.
pub(super) async fn one_member_may_score_hundreds_of_times_at_once<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    for board in ["points", "dense"] {
        let mut tasks = JoinSet::new();
        for _ in 0..200 {
            let runner = servers.runner(0);
            let command =
                Command::from(ChangeScore { board: name(board), member: subject("ann"), change: ScoreChange::By(1) });
            tasks.spawn(async move { answered(&runner, call(command)).await.reply });
        }
        let scores: BTreeSet<Option<i64>> = tasks
            .join_all()
            .await
            .into_iter()
            .map(|reply| match reply {
                Ok(Reply::Board(score)) => score.score.filter(|_| score.rank == Some(1)),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(scores, (1..=200).map(Some).collect(), "each of them counts once, and leads");
        let commands =
            vec![
                Command::from(ChangeScore { board: name(board), member: subject("bob"), change: ScoreChange::By(3) });
                150
            ];
        let Reply::Batch(replies) = servers.run(1, Command::from(Batch { atomic: true, commands })).await else {
            panic!()
        };
        assert!(matches!(replies.last(), Some(Ok(Reply::Board(score))) if score.score == Some(450)));
    }
    servers.stop(&Universe::default()).await;
}

/// The second of two equal commands asks where the first has just put the member.
pub(super) async fn a_batch_may_repeat_itself<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let score = |who: &str| {
        Command::from(ChangeScore { board: name("points"), member: subject(who), change: ScoreChange::To(5) })
    };
    servers.run(0, score("first")).await;
    let commands = vec![score("ann"), score("bob"), score("ann"), score("first"), score("bob")];
    let Reply::Batch(replies) = servers.run(0, Command::from(Batch { atomic: true, commands })).await else { panic!() };
    let ranks = replies.into_iter().map(|reply| match reply {
        Ok(Reply::Board(score)) => (score.rank, score.changed),
        other => panic!("{other:?}"),
    });
    let expected = [(2, true), (3, true), (2, false), (1, false), (3, false)];
    assert_eq!(ranks.collect::<Vec<_>>(), expected.map(|(rank, changed)| (Some(rank), changed)));
    servers.stop(&Universe::default()).await;
}

pub(super) async fn days_marked_by_three_servers_add_up<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    let day = Day(20_000);
    let replies = all(&servers, EACH, move |task, number| {
        // Numbers and names, each by several hands.
        let who = (task / 3 * EACH + number) % 40;
        let who = if who.is_multiple_of(2) { format!("{who}") } else { format!("user {who}") };
        call(Command::from(Attend { sheet: name("daily"), day: Some(day), subject: subject(&who), present: true }))
    })
    .await;
    let changed =
        replies.iter().filter(|reply| matches!(reply, Ok(Reply::Attendance(attend)) if attend.changed)).count();
    assert_eq!(changed, 40, "each is marked once");
    let total = TotalKey::Present { sheet: name("daily"), day };
    let loaded = servers.engine(1).load(&Wants::totals(vec![total])).await.expect("a load works");
    assert_eq!(loaded.totals, [40]);
    servers.stop(&Universe::default()).await;
}

/// A thousand want through a door for a hundred.
pub(super) async fn a_limit_lets_exactly_as_many_through<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let replies =
        all(&servers, 112, |_, _| call(Command::from(Take { limit: name("door"), key: key("everybody"), cost: 1 })))
            .await;
    assert!(replies.len() >= 1_000);
    let allowed = replies.iter().filter(|reply| reply.is_ok()).count();
    let refused = replies.iter().filter(|reply| matches!(reply, Err(Refusal::RateLimited(_)))).count();
    assert_eq!((allowed, refused), (100, replies.len() - 100));
    servers.stop(&Universe::default()).await;
}
