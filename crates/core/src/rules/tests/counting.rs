//! Counters, unique counts, attendance, boards and limits.

use std::sync::Arc;

use serde_json::json;

use super::world::World;
use crate::catalog::{Algorithm, BoardDef, CounterDef, LimitDef, Per, RateLimit, ReadPolicy, SheetDef, Ties};
use crate::command::{Command, Once, Reply};
use crate::condition::Condition;
use crate::error::Refusal;
use crate::id::Name;
use crate::rows::{Key, ReplayKey, Row, Sketch};
use crate::schedule::Schedule;
use crate::time::Stamp;
use crate::{Day, RelationDef};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn limit(of: &str, rate: &str, per: Per) -> Option<RateLimit> {
    Some(RateLimit { limit: Arc::new(LimitDef::parse(of, rate, None).unwrap()), per })
}

/// A world with one of each that is configured.
fn world() -> World {
    let mut world = World::new();
    let counting = &mut world.catalog.counting;
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
fn written(value: serde_json::Value) -> Command {
    serde_json::from_value(value).unwrap()
}

fn run(world: &mut World, value: serde_json::Value) -> Result<Reply, Refusal> {
    world.apply(written(value), None).reply
}

/// The answer as a client sees it.
fn told(world: &mut World, value: serde_json::Value) -> serde_json::Value {
    serde_json::to_value(run(world, value).unwrap()).unwrap()
}

fn code(world: &mut World, value: serde_json::Value) -> &'static str {
    run(world, value).unwrap_err().code().name()
}

#[test]
fn a_counter_asks_its_condition_and_keeps_when() {
    let mut world = world();
    let add = |by: i64| json!({"op": "count", "counter": "reads", "key": "post:1", "by": by});
    assert_eq!(code(&mut world, add(1)), "condition_failed");
    assert_eq!(code(&mut world, json!({"op": "count", "counter": "reads", "key": "home"})), "bad_request");
    let put = |status: &str| Command::PutObject {
        object: crate::ObjectId::new("post:1").unwrap(),
        status: Some(status.into()),
        attributes: Default::default(),
    };
    world.apply(put("published"), None).reply.unwrap();
    world.now_ms = 5_000;
    let first = told(&mut world, add(3));
    assert_eq!((&first["value"], &first["last_at"]), (&json!(3), &json!("1970-01-01T00:00:05.000Z")));
    world.now_ms = 5_400;
    assert_eq!(told(&mut world, add(-5))["last_at"], "1970-01-01T00:00:05.000Z", "kept to the second");
    world.now_ms = 6_500;
    let later = told(&mut world, add(1));
    assert_eq!((&later["value"], &later["last_at"]), (&json!(-1), &json!("1970-01-01T00:00:06.500Z")));
    // An object that goes takes its counters with it.
    world.apply(Command::DeleteObject { object: crate::ObjectId::new("post:1").unwrap() }, None).reply.unwrap();
    world.apply(put("published"), None).reply.unwrap();
    let anew = told(&mut world, add(1));
    assert_eq!((&anew["value"], &anew["last_at"]), (&json!(1), &json!("1970-01-01T00:00:06.500Z")));
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

#[test]
fn sketches_are_small_and_right() {
    let error = |members: u32, trials: u32| {
        let squares: f64 = (0..trials)
            .map(|trial| {
                let mut sketch = Sketch::default();
                (0..members).for_each(|member| sketch.add(&format!("{trial}/{member}")));
                assert!(sketch.to_bytes().len() <= 12 * 1024, "{} bytes", sketch.to_bytes().len());
                (sketch.estimate() as f64 / f64::from(members) - 1.0).powi(2)
            })
            .sum();
        (squares / f64::from(trials)).sqrt()
    };
    assert!(error(20_000, 12) <= 0.0081);
    assert!(error(1_000, 60) <= 0.0081);
    let mut sketch = Sketch::default();
    sketch.add("ann");
    assert!(sketch.to_bytes().len() < 64, "one member needs {} bytes", sketch.to_bytes().len());
    for members in [0, 1, 7, 9, 200, 1_000, 3_000, 30_000] {
        let mut sketch = Sketch::default();
        (0..members).for_each(|member| sketch.add(&member.to_string()));
        let read = Sketch::from_bytes(&sketch.to_bytes()).unwrap();
        assert_eq!((&read, read.estimate(), read.to_bytes()), (&sketch, sketch.estimate(), sketch.to_bytes()));
        // What is read goes on like what it was written from.
        let (mut here, mut there) = (sketch, read);
        here.add("one more");
        there.add("one more");
        assert_eq!(here.estimate(), there.estimate());
    }
    assert!(Sketch::from_bytes(b"nonsense").is_none());
}

#[test]
fn a_day_ends_where_the_sheet_is() {
    let mut world = world();
    // 15:00 in London is midnight in Seoul.
    let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond().unsigned_abs();
    world.now_ms = at("2026-03-01T14:59:59Z");
    let here = |sheet: &str| json!({"op": "attend", "sheet": sheet, "subject": "ann"});
    assert_eq!(told(&mut world, here("gym"))["day"], "2026-03-01");
    world.now_ms = at("2026-03-01T15:00:00Z");
    let next = told(&mut world, here("gym"));
    assert_eq!((&next["day"], &next["streak"]), (&json!("2026-03-02"), &json!(2)));
    assert_eq!(told(&mut world, here("daily"))["day"], "2026-03-01");
    let today = json!({"op": "attend", "sheet": "gym", "subject": "ann", "day": "today"});
    let again = told(&mut world, today);
    assert_eq!((&again["day"], &again["changed"]), (&json!("2026-03-02"), &json!(false)));
}

#[test]
fn whoever_is_forgotten_was_never_there() {
    let mut world = world();
    let days = 150;
    for day in 0..days {
        let command = Command::Attend {
            sheet: name("daily"),
            day: Some(Day(day)),
            subject: crate::SubjectId::new("ann").unwrap(),
            present: true,
        };
        world.apply(command, None).reply.unwrap();
    }
    world.now_ms = 1_000 * 86_400_000;
    for board in ["points", "dense", "round"] {
        let score = |who: &str| json!({"op": "score", "board": board, "member": who, "score": 5});
        told(&mut world, score("ann"));
        told(&mut world, score("bob"));
    }
    let forget = Command::Forget { subject: crate::SubjectId::new("ann").unwrap() };
    let Ok(Reply::Job(job)) = world.apply(forget, None).reply else { panic!() };
    let job = crate::rows::JobId::parse(&job.job).unwrap();
    let mut steps = 0;
    loop {
        steps += 1;
        let sweep = Command::Sweep { job, before: Stamp(u64::MAX), edges: Vec::new() };
        let Ok(Reply::Job(left)) = world.apply(sweep, None).reply else { panic!() };
        if left.finished_at.is_some() {
            break;
        }
    }
    assert!(steps > 1, "many days go in several steps");
    let named = |key: &Key| match key {
        Key::Attendee(_, who) => who.as_str() == "ann",
        Key::Score(key) => key.member.as_str() == "ann",
        Key::Day(..) | Key::Chunk(_) => true,
        _ => false,
    };
    assert_eq!(world.rows.keys().find(|key| named(key)), None);
    assert_eq!(told(&mut world, json!({"op": "score", "board": "dense", "member": "bob", "by": 1}))["rank"], 1);
}

/// However many there have been.
#[test]
fn forgetting_finds_the_scores_of_every_season() {
    let mut world = world();
    for season in 1..=1_200 {
        world.now_ms = season * 60_000;
        told(&mut world, json!({"op": "score", "board": "round", "member": "bob", "score": 5}));
        if season % 100 == 1 {
            told(&mut world, json!({"op": "score", "board": "round", "member": "ann", "score": 5}));
        }
    }
    let forget = Command::Forget { subject: crate::SubjectId::new("ann").unwrap() };
    let Ok(Reply::Job(job)) = world.apply(forget, None).reply else { panic!() };
    let job = crate::rows::JobId::parse(&job.job).unwrap();
    let sweep = Command::Sweep { job, before: Stamp(u64::MAX), edges: Vec::new() };
    let Ok(Reply::Job(swept)) = world.apply(sweep, None).reply else { panic!() };
    assert!(swept.finished_at.is_some());
    let of_ann = |key: &&Key| matches!(key, Key::Score(key) if key.member.as_str() == "ann");
    assert_eq!(world.rows.keys().filter(of_ann).count(), 0);
}

#[test]
fn a_board_begins_anew_with_its_season_and_keeps_the_best() {
    let mut world = world();
    let score = |to: i64| json!({"op": "score", "board": "round", "member": "ann", "score": to});
    world.now_ms = 60_000;
    assert_eq!(told(&mut world, score(5))["score"], 5);
    let worse = told(&mut world, score(3));
    assert_eq!((&worse["score"], &worse["changed"]), (&json!(5), &json!(false)));
    assert_eq!(code(&mut world, json!({"op": "score", "board": "round", "member": "ann", "by": 1})), "bad_request");
    world.now_ms = 120_000;
    let anew = told(&mut world, score(3));
    assert_eq!((&anew["score"], &anew["season"]), (&json!(3), &json!("1970-01-01T00:02:00.000Z")));
    let seasons = world.rows.get(&Key::Board(name("round"))).cloned();
    assert!(matches!(&seasons, Some(Row::Board(board)) if board.seasons.len() == 2), "{seasons:?}");
}

#[test]
fn scores_stay_within_what_every_store_can_hold() {
    let mut world = world();
    let most = crate::limits::SCORE_MAX;
    let set = |to: i64| json!({"op": "score", "board": "points", "member": "ann", "score": to});
    assert_eq!(code(&mut world, set(most + 1)), "bad_request");
    assert_eq!(told(&mut world, set(most))["score"], most);
    assert_eq!(code(&mut world, json!({"op": "score", "board": "points", "member": "ann", "by": 1})), "conflict");
    assert_eq!(told(&mut world, set(-most))["score"], -most);
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
    let expire = Command::ExpireLimits { limits };
    assert_eq!(world.apply(expire.clone(), None).reply, Ok(Reply::Done { changed: false }));
    world.now_ms += 500;
    told(&mut world, json!({"op": "take", "limit": "log", "key": "ann"}));
    world.now_ms += 700;
    assert_eq!(world.apply(expire.clone(), None).reply, Ok(Reply::Done { changed: true }));
    let left = |world: &World| world.rows.keys().filter(|key| matches!(key, Key::Limit(_))).count();
    assert_eq!(left(&world), 1, "one was used since");
    world.now_ms += 1_000;
    world.apply(expire, None).reply.unwrap();
    assert_eq!(left(&world), 0);
}

#[test]
fn a_board_is_ranked_in_the_way_in_which_it_was_filled_whatever_a_server_was_told() {
    let mut world = world();
    let score = |board: &str, member: &str| json!({"op": "score", "board": board, "member": member, "score": 5});
    for board in ["points", "dense"] {
        told(&mut world, score(board, "ann"));
        // As if another server had been told otherwise.
        let row = world.rows.get_mut(&Key::Board(name(board))).unwrap();
        let Row::Board(known) = row else { panic!("{row:?}") };
        assert_eq!(known.dense, board == "dense");
        known.dense = !known.dense;
        assert_eq!(code(&mut world, score(board, "bob")), "conflict");
        let anew = Command::RankAnew { board: name(board), dense: board == "dense" };
        assert_eq!(world.apply(anew.clone(), None).reply, Ok(Reply::Done { changed: true }));
        assert_eq!(world.apply(anew, None).reply, Ok(Reply::Done { changed: false }));
        told(&mut world, score(board, "bob"));
    }
}
