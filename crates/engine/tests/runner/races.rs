//! The seed's table of situations, with real threads: the same user many times, like and unlike at
//! once, two users at once, a bot, and the race for the last place under a limit.

use std::sync::Arc;

use tally_core::command::Call;
use tally_engine::memory::Memory;
use tally_engine::{Engine, RunnerOptions};
use tally_engine::{Failure, Finding, SystemClock};

use crate::support::{Bench, count, edge, edge_key, has, like, relate, unlike};

async fn bench(memory: &Arc<Memory>) -> Bench {
    Bench::with(memory, SystemClock, RunnerOptions::default()).await
}

async fn assert_sound(memory: &Memory) {
    let mut found = Vec::new();
    memory.audit(&mut |finding| found.push(finding)).await.expect("an audit works");
    found.retain(|finding| !matches!(finding, Finding::Progress(_)));
    assert_eq!(found, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_user_a_hundred_times_at_once() {
    let memory = Arc::new(Memory::default());
    let bench = bench(&memory).await;
    let calls: Vec<_> = (0..100).map(|_| bench.send(like("alice"))).collect();
    let mut changed = 0;
    for call in calls {
        let reply = edge(call.await.unwrap());
        changed += usize::from(reply.changed);
        assert!(reply.active && reply.count == 1);
    }
    assert_eq!(changed, 1);
    assert_eq!(count(&memory, "like", "post:1"), 1);
    assert_sound(&memory).await;
}

/// The end state is that of the last one committed; every answer was true when it was decided.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn like_and_unlike_at_once() {
    let memory = Arc::new(Memory::default());
    let bench = bench(&memory).await;
    let calls: Vec<_> =
        (0..200).map(|n| bench.send(if n % 2 == 0 { like("alice") } else { unlike("alice") })).collect();
    let (mut made, mut removed) = (0, 0);
    for call in calls {
        let reply = edge(call.await.unwrap());
        assert_eq!(reply.count, i64::from(reply.active));
        match (reply.changed, reply.active) {
            (true, true) => made += 1,
            (true, false) => removed += 1,
            (false, _) => {}
        }
    }
    let there = has(&memory, edge_key("like", "post:1", "alice"));
    assert_eq!(made - removed, i64::from(there), "made {made} times, removed {removed} times");
    assert_eq!(count(&memory, "like", "post:1"), i64::from(there));
    assert_sound(&memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_users_at_once() {
    for _ in 0..20 {
        let memory = Arc::new(Memory::default());
        // Each through a server of its own.
        let (one, other) = (bench(&memory).await, bench(&memory).await);
        let (a, b) = (one.send(like("alice")), other.send(like("bob")));
        let mut counts = [edge(a.await.unwrap()).count, edge(b.await.unwrap()).count];
        counts.sort_unstable();
        assert_eq!(counts, [1, 2], "each was told the count right after its own commit");
        assert_eq!(count(&memory, "like", "post:1"), 2);
        assert_sound(&memory).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bot_gets_one_like_through_however_many_servers_it_asks() {
    let memory = Arc::new(Memory::default());
    let servers = [bench(&memory).await, bench(&memory).await, bench(&memory).await];
    let calls: Vec<_> = (0..300).map(|n| servers[n % 3].send(like("bot"))).collect();
    let mut changed = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(decided) => changed += usize::from(edge(Ok(decided)).changed),
            // Given up after too many conflicts: nothing was done.
            Err(failure) => assert_eq!(failure, Failure::Overloaded),
        }
    }
    assert_eq!(changed, 1);
    assert_eq!(count(&memory, "like", "post:1"), 1);
    assert_sound(&memory).await;
}

/// 1,000 concurrent adds against a limit of 1 leave exactly 1.
async fn limit_race(servers: usize) {
    const ADDS: usize = 1_000;
    let memory = Arc::new(Memory::default());
    let mut benches = Vec::new();
    for _ in 0..servers {
        benches.push(bench(&memory).await);
    }
    let calls: Vec<_> = (0..ADDS)
        .map(|n| {
            let runner = benches[n % servers].runner.clone();
            let call = Call::system(relate("pin", &format!("post:{n}"), "alice"));
            tokio::spawn(async move { runner.apply(call).await })
        })
        .collect();
    let (mut made, mut refused) = (0, 0);
    for call in calls {
        match call.await.expect("no task panics") {
            Ok(decided) => match decided.reply {
                Ok(_) => made += 1,
                Err(refusal) => {
                    assert_eq!(refusal.code(), "limit_exceeded");
                    refused += 1;
                }
            },
            Err(failure) => assert_eq!(failure, Failure::Overloaded),
        }
    }
    assert_eq!(made, 1);
    assert!(refused > ADDS / 2, "only {refused} were refused for the limit");
    let edges = memory.dump().0.len();
    assert_eq!(edges, 1, "{edges} edges against a limit of one");
    assert_sound(&memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_race_for_one_place() {
    limit_race(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_race_for_one_place_over_three_servers() {
    limit_race(3).await;
}
