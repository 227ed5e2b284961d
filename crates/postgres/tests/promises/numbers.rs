//! Numbers that are given at a commit, while others wait for theirs.

use tally_conformance::join;
use tally_engine::Engine;

use crate::support::{Outsider, engine, shared};

/// Whoever takes numbers waits for who has taken some, and is then given those behind; or the very same, if that one is taken back.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_sequence_is_given_what_comes_next() {
    let application = crate::support::unique();
    let url = shared(&format!("&application_name={application}"));
    let engine = engine(&url);
    engine.prepare().await.unwrap();
    let (outside, watching) = (Outsider::of(&url).await, Outsider::of(&url).await);
    assert_eq!(join(&*engine, &[("sale", "ann")]).await, Ok(vec![1]));
    for (end, who, next) in [("ROLLBACK", "bob", 2), ("COMMIT", "eve", 8)] {
        outside.run("BEGIN; UPDATE sequence SET last = last + 5 WHERE home = 'sale'").await;
        let calling = tokio::spawn({
            let engine = engine.clone();
            async move { join(&*engine, &[("sale", who)]).await }
        });
        watching.until_waiting(&application, 1).await;
        outside.run(end).await;
        assert_eq!(calling.await.unwrap(), Ok(vec![next]), "{end}");
    }
}
