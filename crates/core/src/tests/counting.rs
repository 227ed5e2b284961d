//! Counters, unique counts, attendance, boards and limits.

use std::sync::Arc;

use serde_json::json;

use super::world::World;
use crate::RelationDef;
use crate::catalog::{Algorithm, BoardDef, CounterDef, LimitDef, Per, RateLimit, ReadPolicy, SheetDef, Ties};
use crate::command::Command;
use crate::condition::Condition;
use crate::error::Refusal;
use crate::id::Name;
use crate::reply::Reply;
use crate::schedule::Schedule;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn limit(of: &str, rate: &str, per: Per) -> Option<RateLimit> {
    Some(RateLimit { limit: Arc::new(LimitDef::parse(of, rate, None).unwrap()), per })
}

/// A world with one of each that is configured.
pub(crate) fn world() -> World {
    let mut world = World::new();
    let counting = &mut world.catalog;
    let open = Condition::compile("object.status == 'published'").unwrap();
    counting.declare_counter(
        name("reads"),
        CounterDef { requires: Some(open), last_at: true, ..CounterDef::new(name("reads")) },
    );
    let seoul = jiff::tz::TimeZone::get("Asia/Seoul").unwrap();
    counting.declare_sheet(name("gym"), SheetDef { time_zone: seoul, ..SheetDef::new(name("gym")) });
    let season = Some(Schedule::new("* * * * *").unwrap());
    counting.declare_board(name("round"), BoardDef { season, best_of: true, ..BoardDef::new(name("round")) });
    counting.declare_board(name("dense"), BoardDef { ties: Ties::Dense, ..BoardDef::new(name("dense")) });
    for (text, algorithm) in [("log", Algorithm::SlidingLog), ("bucket", Algorithm::TokenBucket)] {
        counting.declare_limit(name(text), LimitDef::parse(text, "2/s", Some(algorithm)).unwrap());
    }
    let mut slow = RelationDef::new(name("slow"), ReadPolicy::Public);
    slow.rate_limit = limit("relations.slow", "2/min", Per::Subject);
    world.catalog.declare(slow);
    world
}

/// A command as a client writes it.
pub(crate) fn written(value: serde_json::Value) -> Command {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn run(world: &mut World, value: serde_json::Value) -> Result<Reply, Refusal> {
    world.apply(written(value), None).reply
}

/// The answer as a client sees it.
pub(crate) fn told(world: &mut World, value: serde_json::Value) -> serde_json::Value {
    serde_json::to_value(run(world, value).unwrap()).unwrap()
}

pub(crate) fn code(world: &mut World, value: serde_json::Value) -> &'static str {
    run(world, value).unwrap_err().code().name()
}
#[test]
fn nothing_that_is_not_declared_is_counted() {
    let mut world = world();
    for (value, expected, hint) in [
        (json!({"op": "count", "counter": "view", "key": "a"}), "counter_not_found", "`views`"),
        (json!({"op": "observe", "unique": "dua", "key": "a", "members": ["x"]}), "unique_not_found", "[uniques.NAME]"),
        (json!({"op": "attend", "sheet": "dayly", "subject": "ann"}), "attendance_not_found", "`daily`"),
        (json!({"op": "score", "board": "point", "member": "ann", "by": 1}), "board_not_found", "`points`"),
        (json!({"op": "take", "limit": "nothing", "key": "a"}), "limit_not_found", "[limits.NAME]"),
    ] {
        let refusal = run(&mut world, value).unwrap_err();
        assert_eq!(refusal.code(), expected);
        assert!(refusal.to_string().contains(hint), "{refusal}");
    }
}

#[test]
fn a_batch_takes_what_its_op_takes_and_no_more() {
    for (value, why) in [
        (json!({"op": "count", "key": "a"}), "missing field `counter`"),
        (json!({"op": "count", "counter": "views", "key": "a", "subject": "b"}), "count takes no `subject`"),
        (json!({"op": "score", "board": "points", "member": "a"}), "either `by` or `score`"),
        (json!({"op": "score", "board": "points", "member": "a", "by": 1, "score": 2}), "either `by` or `score`"),
        (json!({"op": "attend", "sheet": "daily", "subject": "a", "day": "2026-02-30"}), "a day is written"),
        (
            json!({"op": "unrelate", "relation": "like", "object": "post:1", "subject": "a", "kind": "x"}),
            "takes no `kind`",
        ),
        (json!({"op": "take", "limit": "log", "key": "a", "cost": -1}), "-1"),
    ] {
        let error = serde_json::from_value::<Command>(value).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
