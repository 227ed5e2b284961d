//! The other ranges: open jobs, API keys, remembered answers, every row.

use std::collections::BTreeMap;
use std::sync::Arc;

use tally_core::Command;
use tally_core::command::{PutApiKey, RevokeApiKey, Sweep};
use tally_core::rows::{ApiKey, Job, JobId, JobKind, Key, Replay, Role, Row, RowKind, Work};
use tally_core::time::{Stamp, Timestamp};
use tally_engine::{Engine, Range};

use super::rows::samples;
use crate::EngineFactory;
use crate::driver::{Hand, write};
use crate::sample::{catalog, count_of, edge, edge_key, relate, replay_key, subject, unrelate};
use crate::stand::Stand;

/// The keys of a range, which must be the same at every page size, as far as the page goes.
async fn keys<E: Engine>(engine: &E, range: &Range) -> Vec<Key> {
    let whole = engine.scan(range, 1_000).await.expect("a scan works");
    assert!(!whole.more);
    let whole: Vec<Key> = whole.items.into_iter().map(|(key, _)| key).collect();
    for limit in 1..=whole.len() + 1 {
        let page = engine.scan(range, limit).await.expect("a scan works");
        let found: Vec<Key> = page.items.into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, whole[..limit.min(whole.len())], "a page of {limit}");
        assert_eq!(page.more, limit < whole.len(), "more behind a page of {limit} of {}", whole.len());
    }
    whole
}

pub(super) async fn open_jobs_are_listed_until_they_end<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let mut hand = Hand::new(&*engine, &catalog);
    assert_eq!(keys(&*engine, &Range::OPEN_JOBS).await, []);
    // Ids are any numbers: their order is that of the numbers, whatever their size.
    let jobs = |ids: &[u64]| ids.iter().map(|id| Key::Job(JobId(*id))).collect::<Vec<_>>();
    for (id, who) in [7, 1, u64::MAX, 256, 1 << 63].into_iter().zip(["a", "b", "c", "d", "e"]) {
        let work = Work::Forget { subject: subject(who) };
        write(&*engine, [(Key::Job(JobId(id)), Some(job(work, None)))], []).await;
    }
    assert_eq!(keys(&*engine, &Range::OPEN_JOBS).await, jobs(&[1, 7, 256, 1 << 63, u64::MAX]));
    let before = Stamp(u64::MAX);
    hand.run(Command::from(Sweep { job: JobId(256), before, edges: Vec::new() })).await;
    let edges = vec![crate::sample::edge_key("like", "post:1", "alice")];
    hand.run(Command::from(Sweep { job: JobId(7), before, edges })).await;
    assert_eq!(keys(&*engine, &Range::OPEN_JOBS).await, jobs(&[1, 7, 1 << 63, u64::MAX]));
    let engine = stand.reopen(engine).await;
    assert_eq!(keys(&*engine, &Range::OPEN_JOBS).await, jobs(&[1, 7, 1 << 63, u64::MAX]));
}

fn job(work: Work, ended: Option<u64>) -> Row {
    let finished_at = ended.map(Timestamp);
    Row::Job(Job { work, before: Stamp(9), edges: 1, created_at: Timestamp(1), finished_at })
}

pub(super) async fn ended_jobs_are_listed_by_when_they_ended<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let work = || Work::Ended { work: JobKind::Forget };
    let put = async |id, ended: Option<Option<u64>>| {
        let row = ended.map(|ended| job(work(), ended));
        write(&*engine, [(Key::Job(JobId(id)), row)], []).await;
    };
    for (id, ended) in [(3, Some(5)), (1, Some(900)), (u64::MAX, Some(7)), (8, None), (2, Some(7))] {
        put(id, Some(ended)).await;
    }
    let ended = async |before| keys(&*engine, &Range::ended_jobs(Timestamp(before))).await;
    let jobs = |ids: &[u64]| ids.iter().map(|id| Key::Job(JobId(*id))).collect::<Vec<_>>();
    assert_eq!(ended(5).await, []);
    assert_eq!(ended(8).await, jobs(&[3, 2, u64::MAX]));
    assert_eq!(ended(u64::MAX >> 20).await, jobs(&[3, 2, u64::MAX, 1]));
    // One begins again, one ends, one is dropped.
    put(3, Some(None)).await;
    put(8, Some(Some(6))).await;
    put(2, None).await;
    assert_eq!(ended(901).await, jobs(&[8, u64::MAX, 1]));
    assert_eq!(keys(&*engine, &Range::OPEN_JOBS).await, jobs(&[3]));
}

pub(super) async fn api_keys_are_listed_by_id<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let mut hand = Hand::new(&*engine, &catalog);
    assert_eq!(keys(&*engine, &Range::API_KEYS).await, []);
    for id in ["b", "ab", "a", "B", "a_b"] {
        let (hash, name) = (format!("hash of {id}"), id.to_owned());
        let key = ApiKey { hash, role: Role::Read, name, created_at: Timestamp(1), revoked_at: None };
        hand.run(Command::from(PutApiKey { id: id.into(), key })).await;
    }
    hand.run(Command::from(RevokeApiKey { id: "ab".into() })).await;
    let expected: Vec<Key> = ["B", "a", "a_b", "ab", "b"].map(|id| Key::ApiKey(id.into())).to_vec();
    assert_eq!(keys(&*engine, &Range::API_KEYS).await, expected, "a key that was revoked is still known");
    let page = engine.scan(&Range::API_KEYS, 10).await.expect("a scan works");
    let revoked = |row: &Row| matches!(row, Row::ApiKey(key) if key.revoked_at.is_some());
    let found: Vec<Key> = page.items.into_iter().filter(|(_, row)| revoked(row)).map(|(key, _)| key).collect();
    assert_eq!(found, [Key::ApiKey("ab".into())]);
}

pub(super) async fn remembered_answers_are_listed_by_expiry<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let due = |before| Range::due(RowKind::Replay, Timestamp(before));
    let row =
        |at| Some(Row::Replay(Replay { fields: Arc::default(), answer: "null".into(), expires_at: Timestamp(at) }));
    let key = |caller: &str, key: &str| Key::Replay(replay_key(caller, key));
    assert_eq!(keys(&*engine, &due(u64::MAX)).await, []);
    let (c, ab, a, b) = (key("app", "c"), key("ap", "pab"), key("app", "a"), key("other", "a"));
    write(&*engine, [(c.clone(), row(10)), (a.clone(), row(300)), (ab.clone(), row(20)), (b.clone(), row(20))], [])
        .await;
    assert_eq!(keys(&*engine, &due(10)).await, [], "before is before");
    assert_eq!(keys(&*engine, &due(11)).await, std::slice::from_ref(&c));
    assert_eq!(keys(&*engine, &due(300)).await, [c.clone(), ab.clone(), b.clone()]);
    assert_eq!(keys(&*engine, &due(301)).await, [c.clone(), ab.clone(), b.clone(), a.clone()]);
    // Remembered again, and dropped.
    write(&*engine, [(c.clone(), row(500)), (b, None)], []).await;
    assert_eq!(keys(&*engine, &due(u64::MAX)).await, [ab, a, c]);
}

/// Every row behind a key, so many at a time.
async fn rows<E: Engine>(engine: &E, mut after: Option<Key>, limit: usize) -> Vec<(Key, Row)> {
    let mut found = Vec::new();
    loop {
        let page = engine.scan(&Range::Rows { after: after.clone() }, limit).await.expect("a scan works");
        assert!(page.items.len() <= limit, "{} rows on a page of {limit}", page.items.len());
        assert!(page.items.len() == limit || !page.more, "a page with more behind it is full");
        after = page.items.last().map(|(key, _)| key.clone()).or(after);
        found.extend(page.items);
        if !page.more {
            return found;
        }
    }
}

/// Rows of every kind, and edges whose ids are the beginnings of others.
async fn write_samples<E: Engine>(engine: &E) -> BTreeMap<Key, Row> {
    let mut all: BTreeMap<Key, Row> = samples().into_iter().collect();
    for (to, who) in [("post:1", "a"), ("post:1", "aa"), ("post:11", "a"), ("post:1", "é"), ("p:1", "👍"), ("p:1", "B")]
    {
        for relation in ["like", "like-2", "likes"] {
            all.insert(Key::Edge(edge_key(relation, to, who)), Row::Edge(edge(7)));
        }
    }
    write(engine, all.clone().into_iter().map(|(key, row)| (key, Some(row))), [(count_of("like", "post:1"), 3)]).await;
    all
}

pub(super) async fn every_row_is_scanned_once<F: EngineFactory>(stand: Stand<F>) {
    let mut engine = stand.open().await;
    assert_eq!(rows(&*engine, None, 1).await, [], "an empty store has no rows");
    let expected = write_samples(&*engine).await;
    let order = rows(&*engine, None, 1_000).await;
    assert_eq!(order.len(), expected.len(), "each row once, and nothing else");
    assert_eq!(order.iter().cloned().collect::<BTreeMap<_, _>>(), expected);
    for _ in 0..2 {
        for limit in [1, 2, 7, order.len() - 1, order.len()] {
            assert_eq!(rows(&*engine, None, limit).await, order, "pages of {limit}");
        }
        engine = stand.reopen(engine).await;
    }
    for (at, (key, _)) in order.iter().enumerate() {
        assert_eq!(rows(&*engine, Some(key.clone()), 7).await, order[at + 1..], "behind {key:?}");
    }
}

/// A list that was empty for a while is found again, whoever comes back to it.
pub(super) async fn an_edge_that_comes_back_is_scanned<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let mut hand = Hand::new(&*engine, &catalog);
    for who in ["a", "b", "a"] {
        hand.run(relate("like", "post:1", who)).await;
        let found: Vec<Key> = rows(&*engine, None, 7).await.into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, [Key::Edge(edge_key("like", "post:1", who))]);
        hand.run(unrelate("like", "post:1", who)).await;
        assert_eq!(rows(&*engine, None, 7).await, []);
    }
}

pub(super) async fn rows_are_scanned_behind_one_that_has_gone<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    write_samples(&*engine).await;
    let order = rows(&*engine, None, 1_000).await;
    let gone = |at: usize| at.is_multiple_of(3);
    let keys = order.iter().enumerate().filter(|(at, _)| gone(*at)).map(|(_, (key, _))| (key.clone(), None));
    write(&*engine, keys, []).await;
    for (at, (key, _)) in order.iter().enumerate() {
        let behind = order.iter().enumerate().skip(at + 1).filter(|(at, _)| !gone(*at));
        let behind: Vec<(Key, Row)> = behind.map(|(_, row)| row.clone()).collect();
        assert_eq!(rows(&*engine, Some(key.clone()), 7).await, behind, "behind {key:?}");
    }
}
