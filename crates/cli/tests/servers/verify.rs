//! A verification is one job for all servers: begun once, carried on when its server dies, and what it mends under
//! load is mended for good.

use std::cell::Cell;

use futures_util::future::join_all;
use tally::core::rows::{Changes, TotalKey};
use tally::core::view::View;
use tally::core::{Name, ObjectId};
use tally::engine::{Engine, Mark, Seen};

use crate::database::{On, on, servers};
use crate::support::*;

const CONFIG: &str = "[relations.reaction]\nread = \"public\"\none_of = [\"love\", \"wow\"]\n";
const POSTS: usize = 8;
const WRITERS: usize = 6;
/// Answered writes between one verification and the next.
const CALM: usize = 60;

/// Puts counts wrong behind everybody's back.
async fn put_wrong(url: &str, by: i64) {
    let engine = tally::Opening::parse(url).unwrap().open(&tally::embedded::Options::default()).await.unwrap();
    let stamp = engine.prepare().await.unwrap();
    let name = |text: &str| Name::new(text).unwrap();
    let object = |n| ObjectId::new(&format!("post:{n}")).unwrap();
    // On Redis an object's count is the length of its list, and cannot be wrong.
    let kinds = (0..POSTS).map(|n| TotalKey::Kind { object: object(n), relation: name("reaction"), kind: name("wow") });
    let adds = kinds.map(|total| (total, by)).collect();
    let changes = Changes { adds, stamp, ..Changes::default() };
    engine.commit(Seen { mark: Mark::default(), view: &View::default() }, &changes).await.unwrap();
    engine.close().await;
}

on!(what_is_mended_under_load_is_mended_for_good: postgres redis cluster);
async fn what_is_mended_under_load_is_mended_for_good(on: On) {
    let url = on.new_store();
    let servers: [Server; 2] = servers(&url, CONFIG).await;
    let (over, answered) = (Cell::new(false), Cell::new(0));
    let writing = join_all((0..WRITERS).map(|writer| {
        let client = servers[writer % 2].client();
        let (over, answered) = (&over, &answered);
        async move {
            for n in 0.. {
                if over.get() {
                    return;
                }
                let path = edge("reaction", &format!("post:{}", n % POSTS), &format!("u{writer}"));
                let kind = if n % 3 == 0 { "love" } else { "wow" };
                match n % 5 {
                    0 => client.delete(&path).ok().await,
                    _ => client.put(&path).json(&json!({"kind": kind})).ok().await,
                };
                answered.set(answered.get() + 1);
            }
        }
    }));
    let mending = async {
        for (round, by) in [5, 0, 3, 0, 0].into_iter().enumerate() {
            let enough = answered.get() + CALM;
            until("the writers write", async || (answered.get() >= enough).then_some(())).await;
            if by != 0 {
                put_wrong(&url, by).await;
            }
            let report = servers[round % 2].client().verify(true).await;
            let wrong = if by == 0 { 0 } else { POSTS };
            assert_eq!((&report["drifted"], &report["repaired"]), (&json!(wrong), &json!(wrong)), "{report}");
        }
        over.set(true);
    };
    tokio::join!(writing, mending);
    servers[0].client().verified().await;
}

on!(two_who_verify_at_once_are_told_of_one_job: postgres redis cluster);
async fn two_who_verify_at_once_are_told_of_one_job(on: On) {
    let servers: [Server; 2] = servers(&on.new_store(), CONFIG).await;
    servers[0].client().like("post:1", "alice").await;
    let begun =
        join_all(servers.iter().map(|server| async { server.client().post("/v1/verify").status(202).await })).await;
    for (job, server) in begun.iter().zip(servers.iter().rev()) {
        let done = server.client().job_done(job).await;
        assert_eq!((&done["report"]["edges"], &done["kind"]), (&json!(1), &json!("verify")), "{done}");
        assert!(done["finished_at"].is_string() && done["rows"].is_u64(), "{done}");
    }
}
