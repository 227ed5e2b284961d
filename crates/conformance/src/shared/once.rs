//! One key, one effect, one answer, whichever server is asked.

use std::sync::Arc;

use tally_core::Command;
use tally_core::command::{Call, Forget, Once, Toggle};
use tally_core::reply::Reply;
use tally_engine::Engine;
use tokio::task::JoinSet;

use super::servers::{Clocks, SERVERS, Servers, answered};
use crate::EngineFactory;
use crate::auditor::edges;
use crate::sample::{call, name, object, relate, replay_key, subject};
use crate::stand::Stand;
use crate::sweeper::Sweeper;
use crate::universe::Universe;

/// Sends it to every server several times at once. Gives the answer that all of them got.
async fn everywhere<F: EngineFactory>(servers: &Servers<F>, key: &str, command: &Command) -> Reply {
    let once = Once { key: replay_key("app", key), fields: Arc::new(vec![("op".into(), 1)]) };
    let call = Call { once: Some(once), ..call(command.clone()) };
    let mut tasks = JoinSet::new();
    for task in 0..4 * SERVERS {
        let (runner, call) = (servers.runner(task), call.clone());
        tasks.spawn(async move { answered(&runner, call).await });
    }
    let decided = tasks.join_all().await;
    assert_eq!(decided.iter().filter(|decided| !decided.replayed).count(), 1, "one is the first: {decided:?}");
    let mut answers: Vec<_> = decided.into_iter().map(|decided| decided.reply).collect();
    let first = answers.remove(0);
    answers.iter().for_each(|other| assert_eq!(*other, first, "{key} has one answer"));
    first.expect("nothing here is to be refused")
}

pub(super) async fn one_answer_for_one_idempotency_key_on_any_server<F: EngineFactory>(stand: Stand<F>) {
    const ROUNDS: usize = 12;
    let servers = Servers::start(stand, Clocks::Apart).await;
    let fans: Vec<String> = (0..ROUNDS).map(|n| format!("fan{n}")).collect();
    let mut names: Vec<&str> = fans.iter().map(String::as_str).collect();
    names.extend(["alice", "gone"]);
    let keys = (0..ROUNDS).flat_map(|n| [replay_key("app", &format!("t{n}")), replay_key("app", &format!("f{n}"))]);
    let universe = Universe { replays: keys.collect(), ..Universe::new(&names, &["post:1"], &["like"]) };
    for (round, fan) in fans.iter().enumerate() {
        // A toggle is the one thing that a second time would undo; somebody else moves the count.
        let (relation, object, who) = (name("like"), object("post:1"), subject("alice"));
        let toggle = Command::from(Toggle { relation, object, subject: who, kind: None, meta: None });
        let key = format!("t{round}");
        let (reply, _) =
            tokio::join!(everywhere(&servers, &key, &toggle), servers.run(round, relate("like", "post:1", fan)));
        let Reply::Relation(edge) = reply else { panic!("{reply:?} is not an edge") };
        assert_eq!((edge.active, edge.changed), (round % 2 == 0, true), "toggled once by every key");

        // A job begun twice would be two jobs.
        let forget = Command::from(Forget { subject: subject("gone") });
        let reply = everywhere(&servers, &format!("f{round}"), &forget).await;
        assert!(matches!(reply, Reply::Job(_)), "{reply:?} is not a job");
        let open = servers.engine(round).scan(&tally_engine::Range::OPEN_JOBS, 10).await.expect("a scan works");
        assert_eq!(open.items.len(), 1, "one key begins one job");
        servers.sweep(round, Sweeper::ALL).await;
    }
    let dump = servers.stop(&universe).await;
    assert_eq!(edges(&dump).count(), ROUNDS, "every fan, and alice an even number of times");
}
