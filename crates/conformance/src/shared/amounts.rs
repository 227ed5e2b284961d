//! What three servers do at once adds up, and no limit is passed in between.

use tally_core::Command;
use tally_core::command::{Relate, Toggle, Unrelate};
use tally_core::rows::Side;
use tally_core::view::Wants;
use tally_engine::{Engine, Failure};
use tokio::task::JoinSet;

use super::servers::{Clocks, SERVERS, Servers, answered};
use crate::auditor::edges;
use crate::random::Random;
use crate::sample::{call, list, name, relate, total_of, unrelate};
use crate::stand::Stand;
use crate::transitions::Transitions;
use crate::universe::Universe;
use crate::{EngineFactory, walk};

const TASKS: usize = 4 * SERVERS;

/// Few edges and many hands.
fn random_command(random: &mut Random, universe: &Universe) -> Command {
    let relation = random.pick(&universe.relations).clone();
    let (object, subject) = (random.pick(&universe.objects).clone(), random.pick(&universe.subjects).clone());
    let kind = (relation == name("reaction")).then(|| random.pick(&universe.kinds).clone());
    match random.below(10) {
        0..=4 => Command::from(Relate { relation, object, subject, kind, meta: None }),
        5..=7 => Command::from(Unrelate { relation, object, subject }),
        _ => Command::from(Toggle { relation, object, subject, kind, meta: None }),
    }
}

pub(super) async fn likes_and_unlikes_of_three_servers_add_up<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::Apart).await;
    let universe = Universe::new(&["s0", "s1", "s2"], &["post:0", "post:1"], &["like", "reaction"]);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (runner, universe) = (servers.runner(task), universe.clone());
        tasks.spawn(async move {
            let mut random = Random(task as u64);
            let mut replies = Vec::new();
            for _ in 0..40 {
                match runner.apply(call(random_command(&mut random, &universe))).await {
                    Ok(decided) => replies.push(decided.reply.expect("nothing here is to be refused")),
                    // Given up after too many conflicts: nothing was done.
                    Err(Failure::Overloaded) => {}
                    Err(failure) => panic!("{failure}"),
                }
            }
            replies
        });
    }
    let mut transitions = Transitions::default();
    tasks.join_all().await.iter().flatten().for_each(|reply| transitions.take(reply));
    assert_eq!(transitions.len(), 12, "every edge was made or removed");
    transitions.assert_in(&servers.stop(&universe).await);
}

/// Three on a shelf, whoever puts them there.
pub(super) async fn a_limit_holds_across_servers<F: EngineFactory>(stand: Stand<F>) {
    const LIMIT: usize = 3;
    let servers = Servers::start(stand, Clocks::Apart).await;
    let posts: Vec<String> = (0..9).map(|n| format!("post:{n}")).collect();
    let names: Vec<&str> = posts.iter().map(String::as_str).collect();
    let universe = Universe::new(&["alice"], &names, &["shelf"]);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (runner, posts) = (servers.runner(task), posts.clone());
        tasks.spawn(async move {
            let mut random = Random(task as u64);
            let mut turned_away = 0;
            // Some go in between, so that the last place is taken many times; in the end all want one.
            for number in 0..25 {
                let to = random.pick(&posts);
                let leaves = number < 20 && random.percent(40);
                let command = if leaves { unrelate("shelf", to, "alice") } else { relate("shelf", to, "alice") };
                turned_away += usize::from(answered(&runner, call(command)).await.reply.is_err());
            }
            turned_away
        });
    }
    let mine = list(Side::Subject, "alice", Some("shelf"), false);
    let wants = Wants::totals(vec![total_of("shelf", "alice")]);
    let mut turned_away = 0;
    for look in 0.. {
        let engine = servers.engine(look);
        let (page, _) = walk::page(&**engine, &mine, None, 10).await;
        assert!(page.len() <= LIMIT, "{} on a shelf for three", page.len());
        let total = engine.load(&wants).await.expect("a load works").totals[0];
        assert!((0..=LIMIT as i64).contains(&total), "{total} counted on a shelf for three");
        match tasks.try_join_next() {
            Some(task) => turned_away += task.expect("no task panics"),
            None if tasks.is_empty() => break,
            None => tokio::task::yield_now().await,
        }
    }
    assert!(turned_away > 0, "the limit was never reached, so nothing was proven");
    assert_eq!(edges(&servers.stop(&universe).await).count(), LIMIT, "everybody wanted a place in the end");
}
