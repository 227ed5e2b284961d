//! A server's own clock never gets into a store that has one: not by a like, a counter, a limit or a key, in whatever
//! batches they come.

use std::sync::Arc;

use tally_core::command::{Add, Batch, Call, Command, Once, Take};
use tally_core::reply::Reply;
use tally_core::rows::{Key, Row};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::Wants;
use tally_core::{KeyId, Refusal, limit};
use tally_engine::Engine;
use tokio::task::JoinSet;

use super::servers::{Clocks, SERVERS, Servers, answered};
use crate::EngineFactory;
use crate::sample::{call, edge_key, name, relate, replay_key};
use crate::stand::Stand;
use crate::universe::Universe;

/// Batches of one, of a few, and of so many that nothing is loaded for them.
const SIZES: [usize; 3] = [1, 20, 300];

fn key(text: &str) -> KeyId {
    KeyId::new(text).expect("a sample is a valid key")
}

/// What the store takes the time to be.
async fn store_time<F: EngineFactory>(servers: &Servers<F>) -> Stamp {
    let loaded = servers.engine(0).load(&Wants::default()).await.expect("a load works");
    loaded.now.expect("a store that is shared tells the time")
}

/// Sends so many at once to one server.
async fn at_once<F: EngineFactory>(
    servers: &Servers<F>,
    server: usize,
    calls: Vec<Call>,
) -> Vec<Result<Reply, Refusal>> {
    let mut tasks = JoinSet::new();
    for call in calls {
        let runner = servers.runner(server);
        tasks.spawn(async move { answered(&runner, call).await.reply });
    }
    tasks.join_all().await
}

/// Each on its own where they are few, and all in one call where they are many.
fn counts(size: usize) -> Vec<Call> {
    let commands = (0..size).map(|n| Command::from(Add { counter: name("views"), key: key(&format!("k{n}")), by: 1 }));
    if size < 100 {
        return commands.map(call).collect();
    }
    vec![call(Command::from(Batch { atomic: false, commands: commands.collect() }))]
}

pub(super) async fn no_servers_clock_gets_into_the_store<F: EngineFactory>(stand: Stand<F>) {
    if !stand.servers() {
        // One server, one clock: there is nothing to tell apart.
        return;
    }
    let servers = Servers::start(stand, Clocks::Apart).await;
    let ttl_ms = crate::sample::catalog().idempotency_ttl_ms;
    for (round, size) in SIZES.into_iter().enumerate() {
        for server in 0..SERVERS {
            // A counter alone needs no row: a batch of them is decided on nothing but the time.
            for answer in at_once(&servers, server, counts(size)).await {
                assert!(answer.is_ok(), "{answer:?}");
            }
            let before = store_time(&servers).await;
            let who = format!("s{round}{server}");
            servers.run(server, relate("like", "post:1", &who)).await;
            let once = Once { key: replay_key("app", &who), fields: Arc::default() };
            let counting = Command::from(Add { counter: name("views"), key: key("home"), by: 1 });
            answered(&servers.runner(server), Call { once: Some(once), ..call(counting) }).await;
            servers.run(server, Command::from(Take { limit: name("door"), key: key(&who), cost: 1 })).await;
            let after = store_time(&servers).await;

            let limit = limit::key_of("door", &who);
            let rows = vec![
                Key::Edge(edge_key("like", "post:1", &who)),
                Key::Replay(replay_key("app", &who)),
                Key::Limit(limit),
            ];
            let loaded = servers.engine(server + 1).load(&Wants::rows(rows)).await.expect("a load works");
            let [Some(Row::Edge(edge)), Some(Row::Replay(replay)), Some(limit)] = &loaded.rows[..] else {
                panic!("{:?}", loaded.rows)
            };
            let within = |at: Timestamp| (before.time()..=Timestamp(after.time().0 + 1)).contains(&at);
            assert!(within(edge.created.time()), "a like of {:?}, between {before:?} and {after:?}", edge.created);
            assert!(within(Timestamp(replay.expires_at.0 - ttl_ms)), "a key until {:?}", replay.expires_at);
            let look_at = tally_core::limit::look_at(limit).expect("a limit is looked at some time");
            assert!(look_at.0 <= after.time().0 + 3_600_000, "a limit until {look_at:?}, and it is {after:?}");
        }
    }
    servers.stop(&Universe::default()).await;
}

/// The same key on all of them: the one that is ahead does not let it expire, the one behind does not keep it.
pub(super) async fn a_key_counts_once_whatever_the_clocks_say<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let counting = |name_of: &str| {
        let once = Once { key: replay_key("app", name_of), fields: Arc::default() };
        Call { once: Some(once), ..call(Command::from(Add { counter: name("views"), key: key(name_of), by: 1 })) }
    };
    for size in SIZES {
        for first in 0..SERVERS {
            let name_of = format!("{size} {first}");
            // In company that loads nothing.
            for server in (first..first + SERVERS).chain([first]) {
                let calls = counts(size).into_iter().chain([counting(&name_of)]).collect();
                let answers = at_once(&servers, server, calls).await;
                let own = answers.iter().filter_map(|answer| match answer {
                    Ok(Reply::Counter(count)) if count.key.as_str() == name_of => Some(count.value),
                    _ => None,
                });
                assert_eq!(own.collect::<Vec<_>>(), [1]);
            }
        }
    }
    servers.stop(&Universe::default()).await;
}
