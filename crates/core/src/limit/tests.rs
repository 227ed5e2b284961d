//! `limit_per_subject` is decided on the same rows as the edge: semantics 6.

use std::sync::Arc;

use serde_json::json;

use crate::command::{Command, ExpireLimits, Once, Relate};
use crate::decide::decide;
use crate::error::Refusal;
use crate::id::{Name, ObjectId, SubjectId};
use crate::reply::{Done, Reply};
use crate::rows::{Key, ReplayKey, TotalKey};
use crate::tests::check;
use crate::tests::counting::{code, told, world, written};
use crate::tests::world::World;
use crate::time::Stamp;
use crate::view::{Stop, View};

#[test]
fn a_subject_has_at_most_its_limit() {
    check(
        r#"
        relate pin post:1 alice     -> active changed count=1
        relate pin post:2 alice     -> active changed count=1
        relate pin post:3 alice     -> limit_exceeded
        # What is there can be said again, and others have a limit of their own.
        relate pin post:2 alice     -> active count=1
        relate pin post:3 bob       -> active changed count=1
        unrelate pin post:1 alice   -> inactive changed count=0
        relate pin post:3 alice     -> active changed count=2
        relate pin post:1 alice     -> limit_exceeded
        total pin alice             -> 2
        "#,
    );
}

#[test]
fn lowering_a_limit_leaves_old_edges_readable_and_removable() {
    check(
        r#"
        relate pin post:1 alice     -> active changed count=1
        relate pin post:2 alice     -> active changed count=1
        limit pin 1
        objects pin alice           -> post:2 post:1
        relate pin post:1 alice     -> active count=1
        relate pin post:3 alice     -> limit_exceeded
        unrelate pin post:1 alice   -> inactive changed count=0
        # One is left, and one is what the limit now allows.
        relate pin post:3 alice     -> limit_exceeded
        unrelate pin post:2 alice   -> inactive changed count=0
        relate pin post:3 alice     -> active changed count=1
        "#,
    );
}

#[test]
fn a_limit_of_nothing_takes_nothing() {
    check(
        r#"
        limit pin 0
        relate pin post:1 alice     -> limit_exceeded
        unrelate pin post:1 alice   -> inactive count=0
        "#,
    );
}

#[test]
fn changing_the_kind_does_not_need_room() {
    check(
        r#"
        relate only post:1 alice kind=yes   -> active changed count=1 kind=yes
        relate only post:1 alice kind=no    -> active changed count=1 kind=no
        relate only post:2 alice kind=no    -> limit_exceeded
        "#,
    );
}

/// Two commits that both saw room must not both be taken, so the total that was decided on is
/// guarded. A like is decided on its edge alone, so its counts are not.
#[test]
fn only_a_limited_relation_stands_on_its_total() {
    for (relation, guarded) in [("pin", true), ("like", false)] {
        let world = World::new();
        let (name, subject) = (Name::new(relation).unwrap(), SubjectId::new("alice").unwrap());
        let object = ObjectId::new("post:1").unwrap();
        let total = TotalKey::Subject { subject: subject.clone(), relation: name.clone() };
        let command = Command::from(Relate { relation: name, object, subject, kind: None, meta: None });
        let call = crate::command::Call::system(command);
        let mut view = View::default();
        while decide(&call, Stamp(1), Stamp(1), 1, &world.catalog, &mut view) == Err(Stop::Miss) {
            let wants = view.take_missing();
            wants.rows.into_iter().for_each(|key| view.fill_row(key, None));
            wants.totals.into_iter().for_each(|key| view.fill_total(key, 0));
        }
        let seen: Vec<(TotalKey, i64)> = view.seen_totals().map(|(key, value)| (key.clone(), value)).collect();
        assert_eq!(seen, if guarded { vec![(total, 0)] } else { Vec::new() }, "{relation}");
    }
}

#[test]
fn a_limit_of_likes_is_charged_by_what_changes_and_by_nothing_else() {
    let mut world = world();
    let like = |op: &str, post: &str| json!({"op": op, "relation": "slow", "object": post, "subject": "ann"});
    told(&mut world, like("relate", "post:1"));
    for _ in 0..5 {
        assert_eq!(told(&mut world, like("relate", "post:1"))["changed"], false, "a repeat is free");
    }
    told(&mut world, like("relate", "post:2"));
    for _ in 0..5 {
        assert_eq!(code(&mut world, like("relate", "post:3")), "rate_limited");
        assert_eq!(code(&mut world, like("unrelate", "post:1")), "rate_limited");
    }
    world.now_ms += 60_001;
    told(&mut world, like("relate", "post:3"));
    told(&mut world, like("unrelate", "post:1"));
}

#[test]
fn a_refusal_by_a_limit_is_not_remembered() {
    let mut world = world();
    let take = || written(json!({"op": "take", "limit": "log", "key": "ann"}));
    let once =
        |key: &str| Some(Once { key: ReplayKey { caller: "app".into(), key: key.into() }, fields: Arc::default() });
    for key in ["a", "b"] {
        world.apply(take(), once(key)).reply.unwrap();
        assert!(world.apply(take(), once(key)).replayed, "a replay is free");
    }
    let refused = world.apply(take(), once("c"));
    assert!(
        matches!(&refused.reply, Err(Refusal::RateLimited(told)) if told.remaining == 0 && told.retry_after_ms <= 1_000)
    );
    world.now_ms += 1_001;
    let again = world.apply(take(), once("c"));
    assert!(again.reply.is_ok() && !again.replayed);
}

#[test]
fn what_is_known_of_a_limit_goes_when_it_says_nothing_any_more() {
    let mut world = world();
    for limit in ["log", "bucket"] {
        told(&mut world, json!({"op": "take", "limit": limit, "key": "ann"}));
    }
    let limits: Vec<_> =
        world.rows.keys().filter_map(|key| if let Key::Limit(key) = key { Some(key.clone()) } else { None }).collect();
    assert_eq!(limits.len(), 2);
    let expire = Command::from(ExpireLimits { limits });
    assert_eq!(world.apply(expire.clone(), None).reply, Ok(Reply::Done(Done { changed: false })));
    world.now_ms += 500;
    told(&mut world, json!({"op": "take", "limit": "log", "key": "ann"}));
    world.now_ms += 700;
    assert_eq!(world.apply(expire.clone(), None).reply, Ok(Reply::Done(Done { changed: true })));
    let left = |world: &World| world.rows.keys().filter(|key| matches!(key, Key::Limit(_))).count();
    assert_eq!(left(&world), 1, "one was used since");
    world.now_ms += 1_000;
    world.apply(expire, None).reply.unwrap();
    assert_eq!(left(&world), 0);
}
