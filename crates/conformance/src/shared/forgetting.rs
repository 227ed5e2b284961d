//! A subject goes on, on other servers, while it is being forgotten on one.

use std::collections::BTreeSet;

use tally_core::Command;
use tally_core::command::Forget;
use tally_core::reply::Reply;

use super::servers::{Clocks, Servers};
use crate::EngineFactory;
use crate::auditor::edges;
use crate::sample::{batch, relate, subject, unrelate};
use crate::stand::Stand;
use crate::sweeper::Sweeper;
use crate::universe::Universe;

const POSTS: usize = 24;
const ROUNDS: usize = 4;

fn post(number: usize) -> String {
    format!("post:{number}")
}

/// Whatever is answered after the request was is there in the end, and nothing else is.
pub(super) async fn what_is_answered_after_a_forgetting_stays<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let objects: Vec<String> = (0..POSTS).map(post).collect();
    let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
    let universe = Universe::new(&["ann", "bob"], &objects, &["like"]);
    for round in 0..ROUNDS {
        servers.run(round, batch(objects.iter().map(|to| relate("like", to, "ann")))).await;
        servers.run(round + 1, relate("like", objects[round], "bob")).await;
        servers.run(round, Command::from(Forget { subject: subject("ann") })).await;
        let live_on = async |server: usize| {
            for number in (server..POSTS).step_by(3) {
                let made = servers.run(server, relate("like", &post(number), "ann")).await;
                assert!(matches!(&made, Reply::Relation(edge) if edge.changed), "{made:?} is a new like");
                if number % 2 == 0 {
                    let gone = servers.run(server + 1, unrelate("like", &post(number), "ann")).await;
                    assert!(matches!(&gone, Reply::Relation(edge) if edge.changed), "{gone:?} takes it away");
                }
            }
        };
        let sweep = Sweeper { edges: 2, ..Sweeper::ALL };
        tokio::join!(live_on(0), live_on(1), servers.sweep(round + 1, sweep), servers.sweep(round + 2, sweep));
        let dump = universe.dump(&**servers.engine(round)).await;
        let mine = edges(&dump).filter(|(key, _)| key.subject.as_str() == "ann");
        let mine: BTreeSet<String> = mine.map(|(key, _)| key.object.to_string()).collect();
        let expected = (0..POSTS).filter(|number| number % 3 != 2 && number % 2 == 1).map(post).collect();
        assert_eq!(mine, expected, "round {round}");
    }
    let dump = servers.stop(&universe).await;
    assert_eq!(edges(&dump).filter(|(key, _)| key.subject.as_str() == "bob").count(), ROUNDS);
}
