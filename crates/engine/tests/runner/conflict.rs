//! Another server on the same store: decided again, in halves if it must be, and told what the
//! counts really became.

use std::sync::atomic::Ordering;

use tally_core::Command;
use tally_core::command::{Batch, Forget};
use tally_core::reply::Reply;
use tally_core::rows::Key;
use tally_engine::{Engine, Failure, Range};

use crate::support::{Bench, count, count_of, edge, edge_key, elsewhere, has, like, relate, subject};

#[tokio::test]
async fn a_conflict_is_decided_again_on_what_is_there_then() {
    let (engine, bench) = Bench::gated().await;
    *engine.meddler.lock().unwrap() = Some(Box::new(|memory| elsewhere(memory, like("alice"))));
    let reply = bench.edge(like("alice")).await;
    assert!(reply.active && !reply.changed && reply.count == 1, "the other server was first: {reply:?}");
    assert_eq!(bench.told()[0].conflicts, 1);
    assert_eq!(count(&engine.memory, "like", "post:1"), 1);
}

#[tokio::test]
async fn a_limit_is_decided_again_when_its_total_has_moved() {
    let (engine, bench) = Bench::gated().await;
    *engine.meddler.lock().unwrap() = Some(Box::new(|memory| elsewhere(memory, relate("pin", "post:2", "alice"))));
    let decided = bench.apply(relate("pin", "post:1", "alice")).await.unwrap();
    assert_eq!(decided.reply.unwrap_err().code(), "limit_exceeded");
    assert!(!has(&engine.memory, edge_key("pin", "post:1", "alice")));
}

#[tokio::test]
async fn counts_in_answers_are_those_after_the_commit() {
    let (engine, bench) = Bench::gated().await;
    *engine.meddler.lock().unwrap() = Some(Box::new(|memory| elsewhere(memory, like("bob"))));
    let commands = vec![like("alice"), like("alice"), like("carol"), relate("like", "post:2", "alice")];
    let decided = bench.apply(Command::from(Batch { atomic: true, commands })).await.unwrap();
    let Ok(Reply::Batch(replies)) = decided.reply else { panic!("a batch") };
    let counts = replies.into_iter().map(|reply| match reply {
        Ok(Reply::Relation(edge)) => edge.count,
        other => panic!("{other:?}"),
    });
    let counts: Vec<i64> = counts.collect();
    assert_eq!(counts, [2, 2, 3, 1], "bob came in between, and did not conflict");
    assert_eq!(bench.told()[0].conflicts, 0);
    assert!(bench.told()[0].totals.contains(&(count_of("like", "post:1"), 3)));
}

/// Every commit of two or more is refused: each command gets through alone.
#[tokio::test]
async fn a_batch_that_keeps_conflicting_is_split() {
    let (engine, bench) = Bench::gated().await;
    let first = bench.held_at(&engine.commits, like("first")).await;
    let calls = bench.queue((0..6).map(|n| like(&format!("s{n}")))).await;
    *engine.contested.lock().unwrap() = Some(Key::Edge(edge_key("like", "post:1", "s3")));
    engine.commits.open();
    first.await.unwrap().unwrap();
    let mut given_up = 0;
    for (n, call) in calls.into_iter().enumerate() {
        match call.await.unwrap() {
            Ok(decided) => assert!(edge(Ok(decided)).changed && n != 3),
            Err(failure) => {
                assert_eq!((failure, n), (Failure::Overloaded, 3), "only the one that is contested is given up");
                given_up += 1;
            }
        }
    }
    assert_eq!(given_up, 1);
    assert_eq!(count(&engine.memory, "like", "post:1"), 6);
    // Nothing is left over: the same command goes through when nobody contests it.
    *engine.contested.lock().unwrap() = None;
    assert_eq!(bench.edge(like("s3")).await.count, 7);
}

#[tokio::test]
async fn splitting_keeps_the_order() {
    let (engine, bench) = Bench::gated().await;
    let first = bench.held_at(&engine.commits, like("first")).await;
    let calls = bench.queue((0..8).map(|n| like(&format!("s{n}")))).await;
    engine.commits.let_one_through();
    first.await.unwrap().unwrap();
    engine.commits.has_seen(2).await;
    // Enough to be split more than once.
    engine.conflicts.store(13, Ordering::SeqCst);
    engine.commits.open();
    let mut last = 0;
    for call in calls {
        let reply = edge(call.await.unwrap());
        assert!(reply.count > last, "{reply:?} after {last}");
        last = reply.count;
    }
    assert_eq!(last, count(&engine.memory, "like", "post:1"));
    assert!(bench.told().len() > 2, "it was split: {:?}", bench.told());
}

/// A command that names a new row by a fresh id finds it loaded when it is decided again.
#[tokio::test]
async fn a_job_begins_also_after_a_conflict() {
    let (engine, bench) = Bench::gated().await;
    engine.conflicts.store(2, Ordering::SeqCst);
    let decided = bench.apply(Command::from(Forget { subject: subject("alice") })).await.unwrap();
    let Ok(Reply::Job(job)) = decided.reply else { panic!("a job") };
    let open = engine.scan(&Range::OPEN_JOBS, 10).await.unwrap();
    let ids = open.items.iter().map(|(key, _)| match key {
        Key::Job(id) => id.text(),
        other => panic!("{other:?}"),
    });
    let ids: Vec<String> = ids.collect();
    assert_eq!(ids, [job.job], "one job, and it is the one that was answered");
}

#[tokio::test]
async fn batches_are_smaller_after_a_conflict_and_grow_again() {
    let (engine, bench) = Bench::gated().await;
    let first = bench.held_at(&engine.commits, like("first")).await;
    let calls = bench.queue((0..400).map(|n| like(&format!("s{n}")))).await;
    *engine.meddler.lock().unwrap() = Some(Box::new(|memory| elsewhere(memory, like("first"))));
    engine.commits.open();
    first.await.unwrap().unwrap();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let sizes: Vec<usize> = bench.told()[1..].iter().map(|settled| settled.commands).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 400);
    assert!(sizes[0] < 100, "small after the conflict: {sizes:?}");
    assert!(sizes[1] > sizes[0] && sizes[2] > sizes[1], "and growing again: {sizes:?}");
}
