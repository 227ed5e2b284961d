//! What one server has ended is at an end on all of them. A like looks for a row that is there, or is
//! not, while another server removes that row, or makes it: one of the two has to give way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tally_core::Command;
use tally_core::command::{DeleteObject, Suspend};
use tally_core::rows::{Edge, EdgeKey, Key, ListKey, Row, Side};
use tally_core::view::Wants;
use tally_engine::Engine;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::servers::{Clocks, SERVERS, Servers, answered};
use crate::random::Random;
use crate::sample::{call, edge_key, list, object, put, relate, subject, unrelate};
use crate::stand::Stand;
use crate::sweeper::Sweeper;
use crate::universe::Universe;
use crate::{EngineFactory, walk};

const ROUNDS: usize = 20;

/// One of several things that are ended while all servers relate to them.
struct Race {
    /// The relation, and the edges that everybody makes and removes.
    relation: &'static str,
    edges: Vec<(String, String)>,
    /// How it ends, and the code of what is answered from then on.
    end: Command,
    code: &'static str,
}

impl Race {
    /// Everybody goes on until they are refused. Nobody who began after the end was answered may get through.
    async fn run<F: EngineFactory>(self, servers: &Servers<F>, round: usize) {
        let Self { relation, edges, end, code } = self;
        let (ended, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(Semaphore::new(0)));
        let mut tasks = JoinSet::new();
        for task in 0..2 * SERVERS {
            let (runner, edges) = (servers.runner(task), edges.clone());
            let (ended, answers) = (ended.clone(), answers.clone());
            let mut random = Random((round * 100 + task) as u64);
            tasks.spawn(async move {
                loop {
                    let (to, who) = random.pick(&edges);
                    let began_after = ended.load(Ordering::SeqCst);
                    let reply = answered(&runner, call(relate(relation, to, who))).await.reply;
                    answers.add_permits(1);
                    if let Err(refusal) = reply {
                        return assert_eq!(refusal.code(), code);
                    }
                    assert!(!began_after, "{who} could relate to {to}, and that was at an end");
                    if random.percent(40) {
                        let reply = answered(&runner, call(unrelate(relation, to, who))).await.reply;
                        reply.expect("what is there can always be taken back");
                    }
                }
            });
        }
        // In the middle of it, each time a little later.
        let so_many = (round % 10) as u32;
        let _ = answers.acquire_many(so_many).await.expect("nobody closes it");
        servers.run(round, end).await;
        let keys = || edges.iter().map(|(to, who)| edge_key(relation, to, who));
        let then = there(&**servers.engine(round), keys()).await;
        ended.store(true, Ordering::SeqCst);
        while let Some(task) = tasks.join_next().await {
            task.expect("no task panics");
        }
        // Nor may anybody who had looked before the end write after it.
        let mut now = there(&**servers.engine(round), keys()).await;
        now.retain(|edge| !then.contains(edge));
        assert_eq!(now, [], "made after it was at an end");
    }
}

/// The edges of these that are there at one moment.
async fn there<E: Engine>(engine: &E, keys: impl Iterator<Item = EdgeKey>) -> Vec<(Key, Row)> {
    let wants = Wants::rows(keys.map(Key::Edge).collect());
    let loaded = engine.load(&wants).await.expect("a load works");
    wants.rows.into_iter().zip(loaded.rows).filter_map(|(key, row)| Some((key, row?))).collect()
}

/// What is left in a list once every job has ended.
async fn left<F: EngineFactory>(servers: &Servers<F>, round: usize, list: &ListKey) -> Vec<(EdgeKey, Edge)> {
    servers.sweep(round + 1, Sweeper::ALL).await;
    servers.stand.drain(servers.engine(round)).await;
    walk::all(&**servers.engine(round), list, 100).await
}

fn numbered(prefix: &str, many: usize) -> Vec<String> {
    (0..many).map(|n| format!("{prefix}{n}")).collect()
}

fn texts(from: &[String]) -> Vec<&str> {
    from.iter().map(String::as_str).collect()
}

fn universe(subjects: &[String], objects: &[String], relation: &str) -> Universe {
    Universe::new(&texts(subjects), &texts(objects), &[relation])
}

pub(super) async fn an_object_deleted_on_one_server_takes_no_more_likes_on_another<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let (subjects, objects) = (numbered("s", 10), numbered("post:", ROUNDS));
    for (round, to) in objects.iter().enumerate() {
        servers.run(round, put(to, "open")).await;
        let edges = subjects.iter().map(|who| (to.clone(), who.clone())).collect();
        let end = Command::from(DeleteObject { object: object(to) });
        Race { relation: "mark", edges, end, code: "object_not_found" }.run(&servers, round).await;
        let left = left(&servers, round, &list(Side::Object, to, None, false)).await;
        assert_eq!(left, [], "{to} is gone, and so is everything before that");
    }
    servers.stop(&universe(&subjects, &objects, "mark")).await;
}

pub(super) async fn a_subject_suspended_on_one_server_is_suspended_on_all<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let (subjects, objects) = (numbered("s", ROUNDS), numbered("post:", 10));
    for (round, who) in subjects.iter().enumerate() {
        let edges = objects.iter().map(|to| (to.clone(), who.clone())).collect();
        let end = Command::from(Suspend { subject: subject(who) });
        Race { relation: "like", edges, end, code: "forbidden" }.run(&servers, round).await;
        let left = left(&servers, round, &list(Side::Subject, who, None, false)).await;
        assert_eq!(left, [], "nothing of {who} is to be seen");
    }
    servers.stop(&universe(&subjects, &objects, "like")).await;
}
