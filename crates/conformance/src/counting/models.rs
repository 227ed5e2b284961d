//! Each capability next to a naive model: a sum, a set, a sorted list, a window with every use in it.

use std::collections::{BTreeMap, BTreeSet};

use tally_core::catalog::{Algorithm, BoardDef, LimitDef, Ties};
use tally_core::command::{Add, Attend, ChangeScore, Command, Observe, ScoreChange, Take};
use tally_core::reply::Reply;
use tally_core::time::Stamp;
use tally_core::{Catalog, Day, Refusal};

use super::generate::key;
use crate::EngineFactory;
use crate::driver::{Hand, Step, apply};
use crate::random::Random;
use crate::sample::{call, name, subject};
use crate::stand::Stand;

pub(super) async fn counters_equal_a_sum<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog, mut random) = (stand.open().await, Catalog::default(), Random(1));
    let mut hand = Hand::new(&*engine, &catalog);
    let mut model: BTreeMap<&str, i128> = BTreeMap::new();
    for _ in 0..120 {
        let of = *random.pick(&["a", "b"]);
        let by = match random.below(8) {
            0 => i64::MAX,
            1 => i64::MIN,
            _ => random.next() as i64 >> random.below(62),
        };
        let step = hand.step(Command::from(Add { counter: name("views"), key: key(of), by }));
        let reply = apply(&*engine, &catalog, &step).await.reply;
        let sum = model.entry(of).or_default();
        match i64::try_from(*sum + i128::from(by)) {
            Ok(fits) => {
                *sum = i128::from(fits);
                let found = reply.expect("what fits is not refused");
                assert!(
                    matches!(&found, Reply::Counter(count) if count.value == fits),
                    "{found:?}, and should be {fits}"
                );
            }
            Err(_) => assert!(matches!(reply, Err(Refusal::Conflict(_))), "{reply:?}"),
        }
    }
}

/// So many standard errors off is too much for a sketch that is right.
const SIGMAS: f64 = 5.0;

pub(super) async fn unique_counts_equal_a_set_within_their_error<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog, mut random) = (stand.open().await, Catalog::default(), Random(2));
    let mut hand = Hand::new(&*engine, &catalog);
    let mut model: BTreeSet<String> = BTreeSet::new();
    for round in 0..40_usize {
        let many = [1, 3, 40, 1_000][round % 4];
        let members: Vec<String> = (0..many).map(|_| format!("user {}", random.below(20_000))).collect();
        let is_new = members.iter().any(|member| !model.contains(member));
        model.extend(members.iter().cloned());
        let command = Command::from(Observe { unique: name("dau"), key: key("2026-11-16"), members: members.clone() });
        let Ok(Reply::Unique(found)) = hand.run(command.clone()).await.reply else { panic!("another reply") };
        let (estimate, exact) = (found.estimate as f64, model.len() as f64);
        let off = (estimate - exact).abs();
        // A list, as it begins, is exact.
        let allowed = if model.len() < 500 { 0.5 } else { SIGMAS * tally_core::rows::SKETCH_ERROR * exact };
        assert!(off <= allowed, "{estimate} after {exact} members");
        assert!(is_new || !found.changed, "nobody new moved it");
        let Ok(Reply::Unique(again)) = hand.run(command).await.reply else { panic!("another reply") };
        assert_eq!((again.changed, again.estimate), (false, found.estimate), "the same again moved it");
    }
}

pub(super) async fn attendance_equals_a_set_of_days<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog, mut random) = (stand.open().await, Catalog::default(), Random(3));
    let mut hand = Hand::new(&*engine, &catalog);
    let mut model: BTreeSet<(u32, &str)> = BTreeSet::new();
    for _ in 0..150 {
        let who = *random.pick(&["ann", "bob", "0", "65536", "4294967296", "00", "99999999999999"]);
        let (day, present) = (20_000 + random.below(6) as u32, random.percent(70));
        let changed = if present { model.insert((day, who)) } else { model.remove(&(day, who)) };
        let command =
            Command::from(Attend { sheet: name("daily"), day: Some(Day(day)), subject: subject(who), present });
        let Ok(Reply::Attendance(found)) = hand.run(command).await.reply else { panic!("another reply") };
        let count = model.iter().filter(|(on, _)| *on == day).count() as i64;
        let streak = (0..=day).take_while(|back| model.contains(&(day - back, who))).count() as u32;
        assert_eq!((found.changed, found.present, found.count, found.streak), (changed, present, count, streak));
    }
}

async fn boards_equal_a_sorted_list<F: EngineFactory>(stand: Stand<F>, ties: Ties) {
    let (engine, mut catalog, mut random) = (stand.open().await, Catalog::default(), Random(4));
    catalog.declare_board(name("points"), BoardDef { ties, ..BoardDef::new(name("points")) });
    let mut hand = Hand::new(&*engine, &catalog);
    // The best first; behind equal ones whoever comes later.
    let mut model: Vec<(i64, String)> = Vec::new();
    for _ in 0..250 {
        let who = format!("m{}", random.below(12));
        let was = model.iter().position(|(_, member)| *member == who);
        let old = was.map(|place| model[place].0);
        let amount = random.next() as i64 % 7 - 3;
        let change = match random.below(10) {
            0 => ScoreChange::Leave,
            1..=4 => ScoreChange::To(amount),
            _ => ScoreChange::By(amount),
        };
        let new = match change {
            ScoreChange::Leave => None,
            ScoreChange::To(score) => Some(score),
            ScoreChange::By(by) => Some(old.unwrap_or(0) + by),
        };
        if new != old {
            was.map(|place| model.remove(place));
            if let Some(score) = new {
                let place = model.iter().take_while(|(other, _)| *other >= score).count();
                model.insert(place, (score, who.clone()));
            }
        }
        let rank = model.iter().position(|(_, member)| *member == who).map(|place| match ties {
            Ties::FirstToReach => place + 1,
            Ties::Shared => model.iter().filter(|(score, _)| *score > model[place].0).count() + 1,
            Ties::Dense => {
                let better: BTreeSet<i64> =
                    model.iter().map(|(score, _)| *score).filter(|score| *score > model[place].0).collect();
                better.len() + 1
            }
        });
        let command = Command::from(ChangeScore { board: name("points"), member: subject(&who), change });
        let Ok(Reply::Board(found)) = hand.run(command).await.reply else { panic!("another reply") };
        let expected = (new, rank.map(|rank| rank as u64), new != old);
        assert_eq!((found.score, found.rank, found.changed), expected, "{who} {change:?} in {model:?}");
    }
}

pub(super) async fn boards_equal_a_sorted_list_first_to_reach<F: EngineFactory>(stand: Stand<F>) {
    boards_equal_a_sorted_list(stand, Ties::FirstToReach).await;
}

pub(super) async fn boards_equal_a_sorted_list_shared<F: EngineFactory>(stand: Stand<F>) {
    boards_equal_a_sorted_list(stand, Ties::Shared).await;
}

pub(super) async fn boards_equal_a_sorted_list_dense<F: EngineFactory>(stand: Stand<F>) {
    boards_equal_a_sorted_list(stand, Ties::Dense).await;
}

/// So many microseconds, and so much in them.
const WINDOW: u64 = 1_000_000;
const AMOUNT: u64 = 10;

/// Every use that was allowed, with its time and what it cost, and every one that was not.
async fn uses<F: EngineFactory>(stand: Stand<F>, algorithm: Algorithm) -> Vec<(u64, u64, bool)> {
    let (engine, mut catalog, mut random) = (stand.open().await, Catalog::default(), Random(5));
    let def = LimitDef { name: "door".into(), amount: AMOUNT, window_us: WINDOW, algorithm };
    catalog.declare_limit(name("door"), def);
    let (mut now, mut uses) = (1_700_000_000_000_000, Vec::new());
    for number in 0..250 {
        now += 1 + random.next() % [1_000, 100_000, 300_000][random.below(3)];
        let cost = 1 + random.next() % 3;
        let command = Command::from(Take { limit: name("door"), key: key("alice"), cost });
        let step = Step { stamp: Stamp(now), id: number, call: call(command) };
        let reply = apply(&*engine, &catalog, &step).await.reply;
        let allowed = match &reply {
            Ok(Reply::Limit(take)) => take.allowed,
            Err(Refusal::RateLimited(_)) => false,
            other => panic!("{other:?}"),
        };
        uses.push((now, cost, allowed));
        if let Err(Refusal::RateLimited(exhausted)) = reply {
            // Right when it says so, it passes; and a millisecond before, it does not.
            let at = |ms: u64| Step { stamp: Stamp(now + ms * 1_000), id: number, call: step.call.clone() };
            let early = exhausted.retry_after_ms.saturating_sub(1);
            if early > 0 {
                let refused = crate::driver::Draft::new(&*engine, &catalog, &at(early - 1)).await.decided.reply;
                assert!(refused.is_err(), "it passes before {} ms", exhausted.retry_after_ms);
            }
            let passed = crate::driver::Draft::new(&*engine, &catalog, &at(exhausted.retry_after_ms)).await;
            assert!(passed.decided.reply.is_ok(), "it does not pass after {} ms", exhausted.retry_after_ms);
        }
    }
    assert!(uses.iter().any(|(.., allowed)| !allowed), "the limit was never reached");
    uses
}

/// What was allowed in the window that ends with a use.
fn in_window(uses: &[(u64, u64, bool)], end: u64) -> u64 {
    uses.iter().filter(|(at, _, allowed)| *allowed && *at <= end && *at + WINDOW > end).map(|(_, cost, _)| cost).sum()
}

pub(super) async fn a_sliding_log_equals_a_real_window<F: EngineFactory>(stand: Stand<F>) {
    let uses = uses(stand, Algorithm::SlidingLog).await;
    for (number, (at, cost, allowed)) in uses.iter().enumerate() {
        let before = in_window(&uses[..number], *at);
        assert_eq!(*allowed, before + cost <= AMOUNT, "{cost} with {before} in the window");
    }
}

/// Two numbers stand for all uses, so a window that lies across two is a guess: never worse than twice the amount.
pub(super) async fn a_sliding_window_is_never_more_than_twice<F: EngineFactory>(stand: Stand<F>) {
    let uses = uses(stand, Algorithm::SlidingWindow).await;
    let most = uses.iter().map(|(at, ..)| in_window(&uses, *at)).max().unwrap_or(0);
    assert!((AMOUNT / 2..=2 * AMOUNT).contains(&most), "{most} in one window");
}

pub(super) async fn a_token_bucket_never_passes_more_than_it_has<F: EngineFactory>(stand: Stand<F>) {
    let uses = uses(stand, Algorithm::TokenBucket).await;
    // The bucket as it is defined: full at first, a drop every tenth of a window, never more than full.
    let (mut level, mut last) = (AMOUNT as f64, uses[0].0);
    for (at, cost, allowed) in uses {
        level = (level + (at - last) as f64 * AMOUNT as f64 / WINDOW as f64).min(AMOUNT as f64);
        last = at;
        // Rounding may decide by a hair.
        if (level - cost as f64).abs() > 1e-6 {
            assert_eq!(allowed, level >= cost as f64, "{cost} of {level}");
        }
        if allowed {
            level -= cost as f64;
        }
    }
}
