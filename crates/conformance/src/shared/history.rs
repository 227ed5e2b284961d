//! Whatever three servers answer about one edge at once, there is one order in which it is right.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::recorder::Recorder;
use super::servers::{Clocks, SERVERS, Servers};
use crate::EngineFactory;
use crate::random::Random;
use crate::stand::Stand;
use crate::universe::Universe;

pub(super) async fn histories_of_three_servers_are_linearizable<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    let recorder = Arc::new(Recorder::default());
    let universe = Universe::new(&["s0", "s1", "s2"], &["post:0"], &["like", "reaction"]);
    let mut tasks = JoinSet::new();
    for task in 0..3 * SERVERS {
        let (runner, engine) = (servers.runner(task), servers.engine(task + task / SERVERS).clone());
        let (recorder, universe) = (recorder.clone(), universe.clone());
        tasks.spawn(async move {
            let mut random = Random(task as u64);
            for _ in 0..50 {
                assert!(recorder.anything(&mut random, &universe, &runner, &*engine).await, "the store works");
            }
        });
    }
    tasks.join_all().await;
    for key in universe.edges() {
        recorder.read(&**servers.engine(0), &key).await;
    }
    assert!(recorder.len() > 200, "a history of {} operations proves little", recorder.len());
    recorder.assert_linearizable();
    servers.stop(&universe).await;
}
