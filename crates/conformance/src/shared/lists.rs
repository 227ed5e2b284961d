//! What is listed was so at one moment, also where an edge moves all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tally_core::command::{Batch, Command};
use tally_core::reply::Reply;
use tally_core::rows::{Key, ListKey, Row, Side};
use tally_engine::{Engine, Range};
use tokio::task::JoinSet;

use super::servers::{Clocks, SERVERS, Servers};
use super::truth::clients;
use crate::EngineFactory;
use crate::random::Random;
use crate::sample::{call, name, react, relate, unrelate};
use crate::stand::Stand;
use crate::universe::Universe;

const POSTS: [&str; 3] = ["post:1", "post:2", "post:3"];

/// Alice likes one post at a time, and reacts to one in one way or another: each of her lists has one entry, always.
fn of_alice(random: &mut Random) -> Command {
    if random.below(2) == 0 {
        return react("reaction", "post:1", "alice", ["like", "love", "wow"][random.below(3)]);
    }
    let likes = relate("like", POSTS[random.below(3)], "alice");
    let mut commands: Vec<Command> = POSTS.iter().map(|post| unrelate("like", post, "alice")).collect();
    commands.push(likes);
    Command::from(Batch { atomic: true, commands })
}

pub(super) async fn a_list_is_of_one_moment<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    for first in [relate("like", "post:1", "alice"), react("reaction", "post:1", "alice", "wow")] {
        super::servers::answered(&servers.runner(0), call(first)).await.reply.expect("nothing refuses it");
    }
    let (done, mut readers) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
    for server in 0..SERVERS {
        let (engine, done) = (servers.engine(server).clone(), done.clone());
        readers.spawn(async move {
            let mut read = 0;
            while !done.load(Ordering::Relaxed) {
                for relation in ["like", "reaction"] {
                    let relation = Some(name(relation));
                    let list = ListKey { side: Side::Subject, id: "alice".into(), relation, hidden: false };
                    let range = Range::List { list, after: None };
                    let page = engine.scan(&range, 10).await.expect("a scan works");
                    let is_edge = |(key, row): &(Key, Row)| matches!((key, row), (Key::Edge(_), Row::Edge(_)));
                    assert!(page.items.len() == 1 && page.items.iter().all(is_edge), "{range:?}: {:?}", page.items);
                    read += 1;
                }
                // A store in memory never waits.
                tokio::task::yield_now().await;
            }
            read
        });
    }
    let answers = clients(&servers, |random| call(of_alice(random))).await;
    assert!(answers.iter().all(|(_, answer)| matches!(answer, Ok(Reply::Relation(_) | Reply::Batch(_)))));
    done.store(true, Ordering::Relaxed);
    assert!(readers.join_all().await.into_iter().all(|read| read > 0));
    servers.stop(&Universe::default()).await;
}
