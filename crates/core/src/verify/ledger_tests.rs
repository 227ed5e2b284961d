//! Every row agrees with every other; and whatever is damaged is named, put right, and nothing else is touched.

use serde_json::json;

use super::*;
use crate::command::{Command, Forget, PutRight, Sweep};
use crate::day::Day;
use crate::reply::{Done, Reply};
use crate::rows::{Bits, ChunkKey, Score, ScoreKey};
use crate::tests::counting::{name, told, world};
use crate::tests::world::World;
use crate::time::{Stamp, Timestamp};
use crate::{Name, SubjectId};

/// Attendance over several sheets and days, boards of each kind in several seasons, and somebody in the midst of being forgotten.
fn filled() -> World {
    let mut world = world();
    for (number, who) in ["ann", "7", "70000", "bob", "cid", "dan"].into_iter().enumerate() {
        for day in 1..=9 {
            for sheet in ["daily", "gym"] {
                if (number + day) % 4 != 0 {
                    let day = format!("2026-03-{day:02}");
                    told(&mut world, json!({"op": "attend", "sheet": sheet, "subject": who, "day": day}));
                }
            }
        }
        for minute in 1..3 {
            world.now_ms = minute * 60_000;
            told(&mut world, json!({"op": "score", "board": "round", "member": who, "score": number / 2}));
        }
        told(&mut world, json!({"op": "score", "board": "dense", "member": who, "score": number / 2}));
        told(&mut world, json!({"op": "score", "board": "points", "member": who, "score": number / 2}));
        told(&mut world, json!({"op": "count", "counter": "views", "key": "home", "by": 3}));
    }
    let forget = Command::from(Forget { subject: subject("cid") });
    assert!(matches!(world.apply(forget, None).reply, Ok(Reply::Job(_))));
    world.drifted = true;
    world
}

fn subject(text: &str) -> SubjectId {
    SubjectId::new(text).unwrap()
}

fn wrong(world: &World, facts_max: usize) -> Vec<Wrong> {
    let mut ledger = Ledger::new(facts_max);
    loop {
        for kind in ledger.kinds() {
            world.rows.iter().filter(|(key, _)| key.kind() == kind).for_each(|(key, row)| ledger.row(key, row));
        }
        world.totals.iter().for_each(|(total, stored)| _ = ledger.total(total, *stored));
        if !ledger.again() {
            return ledger.into_wrong();
        }
    }
}

fn put_right(world: &mut World) -> usize {
    let mut put = 0;
    for wrong in wrong(world, FACTS_MAX) {
        let command = Command::from(PutRight { found_in: None, fact: wrong.fact, who: wrong.who });
        let Ok(Reply::Done(Done { changed })) = world.apply(command, None).reply else { panic!("it was refused") };
        put += usize::from(changed);
    }
    put
}

fn day() -> Day {
    "2026-03-06".parse().unwrap()
}

fn sheet() -> Name {
    name("daily")
}

fn level(score: i64) -> Key {
    let board = crate::rows::BoardKey { board: name("dense"), season: Timestamp(0), levels: true };
    Key::Score(ScoreKey { board, member: subject(&score.to_string()) })
}

fn chunk(world: &World, who: &str) -> (Key, u32) {
    let Some(Row::Attendee(row)) = world.rows.get(&Key::Attendee((sheet(), subject(who)))) else { panic!() };
    let key = ChunkKey { sheet: sheet(), day: day(), chunk: row.number >> crate::rows::CHUNK_BITS };
    (Key::Chunk(key), (row.number & 8191) as u32)
}

fn set_bit(world: &mut World, who: &str, there: bool) {
    let (key, bit) = chunk(world, who);
    let Some(Row::Chunk(bits)) = world.rows.get_mut(&key) else { panic!() };
    bits.set(bit, there);
}

/// What it is, who is to be named, how it is damaged.
type Damage = (&'static str, &'static str, fn(&mut World));

const DAMAGES: &[Damage] = &[
    ("a total", "the total of daily 2026-03-06", |world| {
        *world.totals.get_mut(&TotalKey::Present { sheet: sheet(), day: day() }).unwrap() += 2
    }),
    ("a total that is lost", "says 0", |world| {
        _ = world.totals.remove(&TotalKey::Present { sheet: sheet(), day: day() })
    }),
    ("a bit that is lost", "ann, number", |world| set_bit(world, "ann", false)),
    ("a bit too many", "7, number", |world| {
        let Some(Row::Attendee(row)) = world.rows.get_mut(&Key::Attendee((sheet(), subject("7")))) else { panic!() };
        row.days.set(day().0, false);
    }),
    ("a day that is lost", "bob, number", |world| {
        let Some(Row::Attendee(row)) = world.rows.get_mut(&Key::Attendee((sheet(), subject("bob")))) else { panic!() };
        row.days.set(day().0, false);
    }),
    ("a forgotten day that is lost", "number", |world| {
        let Some(Row::Attendee(row)) = world.rows.get_mut(&Key::Attendee((sheet(), subject("cid")))) else { panic!() };
        assert!(row.forgotten.contains(day().0));
        row.forgotten.set(day().0, false);
    }),
    ("a list without a chunk", "the list names it 0 times", |world| {
        let Some(Row::Day(chunks)) = world.rows.get_mut(&Key::Day((sheet(), day()))) else { panic!() };
        chunks.remove(0);
    }),
    ("a list with a chunk too many", "its list names chunk 99", |world| {
        let Some(Row::Day(chunks)) = world.rows.get_mut(&Key::Day((sheet(), day()))) else { panic!() };
        chunks.insert(1, 99);
    }),
    ("a list with a chunk twice", "the list names it 2 times", |world| {
        let Some(Row::Day(chunks)) = world.rows.get_mut(&Key::Day((sheet(), day()))) else { panic!() };
        chunks.insert(0, chunks[0]);
    }),
    ("a list that is lost", "the list names it 0 times", |world| _ = world.rows.remove(&Key::Day((sheet(), day())))),
    ("a chunk that is lost", "which is not there", |world| {
        let (key, _) = chunk(world, "ann");
        world.rows.remove(&key);
    }),
    ("an attendee that is lost", "by the days of 0 subjects", |world| {
        world.rows.remove(&Key::Attendee((sheet(), subject("ann"))));
    }),
    ("a level", "its level says 9", |world| {
        let row = Row::Score(Score { score: 2, reached: Stamp(9) });
        assert!(world.rows.insert(level(2), row).is_some());
    }),
    ("a level that is lost", "its level says 0", |world| assert!(world.rows.remove(&level(0)).is_some())),
    ("a level too many", "0 members have the score 77", |world| {
        world.rows.insert(level(77), Row::Score(Score { score: 77, reached: Stamp(1) }));
    }),
    ("a level of another score", "the score 2", |world| {
        let row = Row::Score(Score { score: 1, reached: Stamp(1) });
        assert!(world.rows.insert(level(2), row).is_some());
    }),
];

#[test]
fn what_rules_have_written_agrees() {
    let mut world = filled();
    assert_eq!(wrong(&world, FACTS_MAX), []);
    let job =
        *world.rows.keys().filter_map(|key| if let Key::Job(job) = key { Some(job) } else { None }).next().unwrap();
    let sweep = Command::from(Sweep { job, before: Stamp(u64::MAX), edges: Vec::new() });
    assert!(world.apply(sweep, None).reply.is_ok());
    assert_eq!(wrong(&world, FACTS_MAX), [], "and after the job");
}

#[test]
fn what_is_damaged_is_named_and_put_right() {
    for (what, words, damage) in DAMAGES {
        let mut world = filled();
        let before = (world.rows.clone(), world.totals.clone());
        damage(&mut world);
        let found = wrong(&world, FACTS_MAX);
        let said: Vec<String> = found.iter().map(Wrong::words).collect();
        assert!(said.iter().any(|said| said.contains(words)), "{what}: {said:?}");
        assert_eq!(wrong(&world, 1), found, "{what}: however few are held at once");
        assert!(put_right(&mut world) > 0, "{what}");
        assert_eq!(wrong(&world, FACTS_MAX), [], "{what}: it is right afterwards");
        let repaired = (world.rows.clone(), world.totals.clone());
        let own = matches!(*what, "a bit too many" | "a day that is lost" | "a forgotten day that is lost");
        // Whoever has lost a day is the one who is believed.
        if !own && *what != "an attendee that is lost" {
            assert!(repaired == before, "{what}: and as it was");
        }
        assert_eq!(put_right(&mut world), 0, "{what}");
    }
}

/// Several at once, as after a store was saved from damage.
#[test]
fn everything_that_is_damaged_at_once_comes_right() {
    let mut world = filled();
    for (_, _, damage) in DAMAGES.iter().filter(|(what, ..)| !what.contains("twice") && *what != "a total that is lost")
    {
        let (rows, totals) = (world.rows.clone(), world.totals.clone());
        let damaged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| damage(&mut world)));
        if damaged.is_err() {
            (world.rows, world.totals) = (rows, totals);
        }
    }
    for _ in 0..3 {
        put_right(&mut world);
    }
    assert_eq!(wrong(&world, FACTS_MAX), []);
}

/// It cannot be known whether levels belong there, so nothing is taken away.
#[test]
fn a_board_that_does_not_say_how_it_is_ranked_is_told_of_and_left() {
    let mut world = filled();
    world.rows.remove(&Key::Board(name("dense")));
    let before = world.rows.clone();
    let found = wrong(&world, FACTS_MAX);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].words().contains("nothing says how it is ranked"));
    assert_eq!(put_right(&mut world), 0);
    assert!(world.rows == before);
}

#[test]
fn little_is_held_however_much_is_wrong() {
    let mut world = filled();
    for chunk in 0..5_000 {
        let mut bits = Bits::default();
        bits.set(3, true);
        world.rows.insert(Key::Chunk(ChunkKey { sheet: name("lost"), day: Day(7), chunk }), Row::Chunk(bits));
    }
    let all = wrong(&world, FACTS_MAX);
    assert_eq!(all.len(), 10_001, "a list entry and a bit of each, and the total");
    assert_eq!(wrong(&world, 64), all);
}
