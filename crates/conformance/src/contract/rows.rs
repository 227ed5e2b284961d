//! Rows and totals: what goes in comes out.

use std::sync::Arc;

use serde_json::json;
use tally_core::rows::{
    ApiKey, Edge, Forgotten, Job, JobId, JobKind, Key, Names, Object, Replay, Role, Row, Seq, Signers, Subject,
    Suspension, Ticket, TicketKey, TicketState, TotalKey, Work,
};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::Wants;
use tally_engine::{Engine, Finding};

use crate::EngineFactory;
use crate::auditor::assert_sound;
use crate::driver::{Hand, write};
use crate::sample::{catalog, count_of, edge, edge_key, meta, name, object, relate, replay_key, subject, total_of};
use crate::stand::Stand;
use crate::universe::Universe;

/// Values at their edges: empty, null, unknown to others, as large as they get, and numbers that a
/// careless parser changes in the last place.
pub(super) fn samples() -> Vec<(Key, Row)> {
    let tricky = meta(&json!({
        "": null, "nested": {"a": [1, {"b": []}]}, "text": "안녕 👍 \u{0} \" \\ \n", "true": true,
        "u64": u64::MAX, "i64": i64::MIN, "float": 0.1, "whole": 1.0, "tiny": 5e-324, "huge": 1.797_693_134_862_315_7e308,
        "third": 1.0 / 3.0, "hard": 1.0715660391465826e-75, "sum": 0.1 + 0.2,
    }));
    let plain = |created| Edge { created: Stamp(created), kind: None, meta: None, hidden: false };
    let job = |work, finished_at: Option<u64>| {
        let finished_at = finished_at.map(Timestamp);
        Row::Job(Job { work, before: Stamp(u64::MAX >> 1), edges: 7, created_at: Timestamp(1), finished_at })
    };
    let (who, what) = (subject("alice"), object("post:1"));
    let suspended = Some(Suspension { at: Timestamp(9), job: JobId(u64::MAX) });
    let left = [(name("pin"), 3), (name("shelf"), 0)].into();
    let forgotten = Some(Forgotten { before: Stamp(u64::MAX >> 1), left });
    let mut rows = vec![
        (Key::Edge(edge_key("like", "post:1", "alice")), Row::Edge(plain(1))),
        (Key::Edge(edge_key("like", "post:1", "bob")), Row::Edge(Edge { hidden: true, ..plain(2) })),
        (Key::Edge(edge_key("reaction", "post:1", "bob")), Row::Edge(Edge { kind: Some(name("wow")), ..plain(3) })),
        (Key::Edge(edge_key("note", "post:1", "bob")), Row::Edge(Edge { meta: Some(tricky.clone()), ..plain(4) })),
        (
            Key::Edge(edge_key("note", "post:2", "bob")),
            Row::Edge(Edge {
                created: Stamp(u64::MAX >> 1),
                kind: Some(name("a")),
                meta: Some(tricky.clone()),
                hidden: true,
            }),
        ),
        (Key::Subject(who.clone()), Row::Subject(Subject { suspended: suspended.clone(), forgotten: None })),
        (Key::Subject(subject("bob")), Row::Subject(Subject { suspended: None, forgotten: forgotten.clone() })),
        (Key::Subject(subject("carol")), Row::Subject(Subject { suspended, forgotten })),
        (Key::Names, Row::Names(Names { boards: [name("points"), name("weekly")].into(), ..Names::default() })),
        (Key::Signers, Row::Signers(Signers::default())),
        (
            Key::Replay(replay_key("app", "key one")),
            Row::Replay(Replay {
                fields: Arc::new(vec![("a".into(), 0), ("b".into(), u64::MAX)]),
                answer: "{\"Ok\":\"\\u0000\"}".into(),
                expires_at: Timestamp(5),
            }),
        ),
        (
            Key::Replay(replay_key("", "")),
            Row::Replay(Replay { fields: Arc::default(), answer: String::new(), expires_at: Timestamp(0) }),
        ),
        (Key::Job(JobId(0)), job(Work::Forget { subject: who.clone() }, None)),
        (Key::Job(JobId(u64::MAX)), job(Work::Clear { object: what.clone() }, Some(2))),
        (Key::Job(JobId(1 << 63)), job(Work::Hide { subject: who.clone() }, None)),
        (Key::Job(JobId(256)), job(Work::Show { subject: who.clone() }, None)),
        (Key::Job(JobId(257)), job(Work::Ended { work: JobKind::Forget }, Some(3))),
    ];
    for (state, seq) in TicketState::ALL.into_iter().zip([0, 1, 9, 10, 1 << 53, (1 << 53) + 1, u64::MAX >> 1]) {
        let ticket = Ticket::new(who.clone(), "a \"b\"", state, Timestamp(0), Timestamp(1 << 43));
        rows.push((Key::Ticket(TicketKey { room: name("sale"), seq: Seq::Given(seq) }), Row::Ticket(ticket)));
    }
    // A copy remembers a key of any kind.
    for (id, (key, _)) in (1_000..).zip(rows.clone()) {
        let work =
            Work::Copy { from: "postgres://app:***@db/tally".into(), after: Some(key), rows: 1, digest: u64::MAX };
        rows.push((Key::Job(JobId(id)), job(work, None)));
    }
    for (id, status) in [("post:1", None), ("post:2", Some("열림"))] {
        let status = status.map(str::to_owned);
        let row =
            Object { status, attributes: tricky.clone(), created_at: Timestamp(0), updated_at: Timestamp(1 << 43) };
        rows.push((Key::Object(object(id)), Row::Object(row)));
    }
    for (id, role, revoked_at) in [("k1", Role::Admin, None), ("k2", Role::Read, Some(3)), ("k3", Role::Service, None)]
    {
        let (hash, revoked_at) = (format!("hash of {id}"), revoked_at.map(Timestamp));
        let key = ApiKey { hash, role, name: "이름".into(), created_at: Timestamp(2), revoked_at };
        rows.push((Key::ApiKey(id.into()), Row::ApiKey(key)));
    }
    rows
}

async fn load_all<E: Engine>(engine: &E, keys: impl Iterator<Item = Key>) -> Vec<Option<Row>> {
    let wants = Wants::rows(keys.collect());
    engine.load(&wants).await.expect("a load works").rows
}

pub(super) async fn every_row_comes_back_as_it_went_in<F: EngineFactory>(stand: Stand<F>) {
    let mut engine = stand.open().await;
    write(&*engine, samples().into_iter().map(|(key, row)| (key, Some(row))), []).await;
    for _ in 0..2 {
        let found = load_all(&*engine, samples().into_iter().map(|(key, _)| key)).await;
        for ((key, row), found) in samples().into_iter().zip(found) {
            assert_eq!(found, Some(row), "{key:?}");
        }
        engine = stand.reopen(engine).await;
    }
}

pub(super) async fn rows_are_replaced_and_deleted<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let keys = || samples().into_iter().map(|(key, _)| key);
    write(&*engine, samples().into_iter().map(|(key, row)| (key, Some(row))), []).await;
    // Every row takes the place of a neighbour of its own kind, where it has one.
    let mut rotated = samples();
    for pair in 0..rotated.len() - 1 {
        let (left, right) = rotated.split_at_mut(pair + 1);
        if std::mem::discriminant(&left[pair].0) == std::mem::discriminant(&right[0].0) {
            std::mem::swap(&mut left[pair].1, &mut right[0].1);
        }
    }
    write(&*engine, rotated.clone().into_iter().map(|(key, row)| (key, Some(row))), []).await;
    for ((key, row), found) in rotated.into_iter().zip(load_all(&*engine, keys()).await) {
        assert_eq!(found, Some(row), "{key:?}");
    }
    write(&*engine, keys().map(|key| (key, None)), []).await;
    assert!(load_all(&*engine, keys()).await.iter().all(Option::is_none), "deleted is absent");
}

pub(super) async fn a_load_answers_in_the_order_of_the_wants<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let mut hand = Hand::new(&*engine, &catalog);
    for who in ["a", "c", "e"] {
        hand.run(relate("like", "post:1", who)).await;
    }
    hand.run(relate("like", "post:2", "a")).await;
    let likes = |who: &str| Key::Edge(edge_key("like", "post:1", who));
    let rows: Vec<Key> = ["e", "d", "a", "b", "c"].into_iter().map(likes).collect();
    let totals =
        vec![count_of("like", "post:2"), total_of("like", "z"), count_of("like", "post:1"), total_of("like", "a")];
    let loaded = engine.load(&Wants { rows, totals, ..Wants::default() }).await.expect("a load works");
    let present: Vec<bool> = loaded.rows.iter().map(Option::is_some).collect();
    assert_eq!(present, [true, false, true, false, true]);
    assert_eq!(loaded.totals, [1, 0, 3, 2]);
}

/// A total is a number that is added to: below zero, back to nothing, and as large as it gets.
pub(super) async fn totals_are_exact<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let kind = TotalKey::Kind { object: object("post:1"), relation: name("like"), kind: name("wow") };
    let keys = [count_of("like", "post:1"), kind, total_of("like", "post:1")];
    let mut expected = 0_i64;
    for by in [1, -1, -3, 2, 1, 127, 1, 127, 1, 65_279, 1, i64::from(u32::MAX), i64::MAX - (1 << 33)] {
        write(&*engine, [], keys.iter().map(|key| (key.clone(), by))).await;
        expected += by;
        let loaded = engine.load(&Wants::totals(keys.to_vec())).await.expect("a load works");
        assert_eq!(loaded.totals, [expected; 3], "after {by:+}");
    }
}

pub(super) async fn an_audit_names_the_total_that_drifted<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let universe = Universe::new(&["alice", "bob"], &["post:1", "post:2"], &["like", "reaction"]);
    let mut hand = Hand::new(&*engine, &catalog);
    hand.run(relate("like", "post:1", "alice")).await;
    hand.run(relate("like", "post:1", "bob")).await;
    let kind = TotalKey::Kind { object: object("post:1"), relation: name("reaction"), kind: name("wow") };
    for (total, counted) in [
        (count_of("like", "post:1"), 2),
        (count_of("like", "post:2"), 0),
        (total_of("like", "bob"), 1),
        (total_of("reaction", "alice"), 0),
        (kind, 0),
    ] {
        write(&*engine, [], [(total.clone(), 5)]).await;
        let mut found = Vec::new();
        engine.audit(&mut |finding| found.push(finding)).await.expect("an audit works");
        found.retain(|finding| !matches!(finding, Finding::Progress(_)));
        assert_eq!(found, [Finding::Drift { total: total.clone(), stored: counted + 5, counted }]);
        write(&*engine, [], [(total, -5)]).await;
    }
    // An edge that no total knows of drifts as well.
    let hidden = Edge { hidden: true, ..edge(1) };
    write(&*engine, [(Key::Edge(edge_key("like", "post:2", "bob")), Some(Row::Edge(hidden)))], []).await;
    let mut found = 0;
    engine.audit(&mut |finding| found += usize::from(matches!(finding, Finding::Drift { .. }))).await.expect("works");
    assert_eq!(found, 1, "a hidden edge counts for its subject alone");
    write(&*engine, [], [(total_of("like", "bob"), 1)]).await;
    assert_sound(&*engine, &universe).await;
}
