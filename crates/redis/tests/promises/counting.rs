//! Counters and boards where Redis is special: ends of numbers, ties.

use tally_core::reply::Reply;
use tally_core::rows::{BoardKey, Change, Changes, CountKey, Key, Row, Score, ScoreKey, Standing, TotalKey};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_core::{KeyId, SubjectId};
use tally_engine::{CommitError, Engine, Mark, Seen};
use tally_redis::Redis;

use crate::support::{Store, count, engine, name, shared, shared_cluster};

fn counter(key: &str) -> CountKey {
    CountKey { name: name("views"), key: KeyId::new(key).unwrap() }
}

async fn value(engine: &Redis, key: &str) -> i64 {
    let wants = Wants::totals(vec![TotalKey::Counter(counter(key))]);
    engine.load(&wants).await.unwrap().totals[0]
}

async fn add(engine: &Redis, adds: &[(&str, i64)], rows: Vec<(Key, Change)>) -> Result<Vec<i64>, CommitError> {
    let adds = adds.iter().map(|(key, by)| (TotalKey::Counter(counter(key)), *by)).collect();
    let changes = Changes { rows, adds, stamp: Stamp(1), ..Changes::default() };
    let seen = Seen { mark: Mark::default(), view: &View::default() };
    Ok(engine.commit(seen, &changes).await?.totals.unwrap())
}

/// Some near the ends of numbers, some near those of exact floating-point ones, some near where the pieces meet.
const EDGES: [i64; 16] = [
    i64::MAX,
    i64::MAX - 1,
    i64::MAX - 512,
    i64::MAX / 2,
    9_223_372_036_000_000_000,
    9_223_372_035_999_999_999,
    (1 << 53) + 1,
    1_000_000_000,
    999_999_999,
    1,
    -1,
    -1_000_000_000,
    -(1 << 53) - 1,
    i64::MIN / 2,
    i64::MIN + 1,
    i64::MIN,
];

#[tokio::test(flavor = "multi_thread")]
async fn a_counter_reaches_both_ends_and_goes_past_neither() {
    for url in [shared(""), shared_cluster("")] {
        let engine = engine(&url);
        engine.prepare().await.unwrap();
        for (number, start) in EDGES.into_iter().enumerate() {
            for by in EDGES {
                let (key, other) = (format!("k{number}:{by}"), format!("other{number}:{by}"));
                assert_eq!(add(&engine, &[(&key, start)], Vec::new()).await.unwrap(), [start]);
                // Another counter and a row in the same commit, which are not to be changed alone.
                let board = BoardKey { board: name("points"), season: Timestamp(0), levels: false };
                let row = Key::Score(ScoreKey { board, member: SubjectId::new(&key).unwrap() });
                let after = Some(Row::Score(Score { score: 1, reached: Stamp(1) }));
                let rows = vec![(row.clone(), Change { before: None, after })];
                let taken = add(&engine, &[(&other, 5), (&key, by)], rows).await;
                let there = engine.load(&Wants::rows(vec![row])).await.unwrap().rows[0].is_some();
                let (now, beside) = (value(&engine, &key).await, value(&engine, &other).await);
                match start.checked_add(by) {
                    Some(sum) => {
                        assert_eq!(taken.unwrap(), [5, sum]);
                        assert_eq!((now, beside, there), (sum, 5, true), "{start} {by:+}");
                    }
                    None => {
                        assert!(matches!(taken, Err(CommitError::Conflict)), "{start} {by:+}");
                        assert_eq!((now, beside, there), (start, 0, false), "{start} {by:+}");
                    }
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_overflows_is_refused_and_what_fits_is_done() {
    for url in [shared(""), shared_cluster("")] {
        let store = Store::open(&url).await;
        let value_of = |reply: Reply| if let Reply::Counter(reply) = reply { reply.value } else { panic!("{reply:?}") };
        assert_eq!(value_of(store.apply(count("post:1", i64::MAX - 1)).await.unwrap()), i64::MAX - 1);
        assert_eq!(value_of(store.apply(count("post:1", 1)).await.unwrap()), i64::MAX);
        let refused = store.runner.apply(tally_core::Call::system(count("post:1", 1))).await.unwrap();
        assert!(refused.reply.is_err(), "{refused:?}");
        assert_eq!(value_of(store.apply(count("post:1", -1)).await.unwrap()), i64::MAX - 1);
        assert_eq!(value(&store.engine, "post:1").await, i64::MAX - 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_are_equal_stand_in_the_order_of_a_plain_sort() {
    for (url, members) in [(shared(""), 3_000), (shared_cluster(""), 500)] {
        let engine = engine(&url);
        engine.prepare().await.unwrap();
        let board = BoardKey { board: name("points"), season: Timestamp(0), levels: false };
        let mut all: Vec<(Score, SubjectId)> = (0..members)
            .map(|number: u64| {
                let letters = ["a", "A", "é", "z", "}", "~", "ÿ", "👍"];
                let member = format!("{}{}", letters[number as usize % 8], number * 7_919 % 10_007);
                let score = Score { score: (number % 3) as i64 - 1, reached: Stamp(number * 31 % 5) };
                (score, SubjectId::new(&member).unwrap())
            })
            .collect();
        let key_of = |member: &SubjectId| ScoreKey { board: board.clone(), member: member.clone() };
        let change = |score: Score| Change { before: None, after: Some(Row::Score(score)) };
        let rows = all.iter().map(|(score, member)| (Key::Score(key_of(member)), change(*score))).collect();
        add(&engine, &[], rows).await.unwrap();
        all.sort_by_key(|(score, member)| (-score.score, score.reached, member.clone()));
        let mut ranks: Vec<Standing> = all.iter().map(|(score, member)| key_of(member).standing(*score)).collect();
        let expected: Vec<u64> = (0..members).collect();
        // And where somebody would stand who is not there.
        let absent = all.iter().map(|(score, member)| {
            let member = SubjectId::new(&format!("{member}!")).unwrap();
            key_of(&member).standing(*score)
        });
        ranks.extend(absent);
        let before = |standing: &Standing| {
            all.iter().filter(|(score, who)| standing.is_behind(&key_of(who).place(*score))).count()
        };
        let absent: Vec<u64> = ranks[members as usize..].iter().map(|standing| before(standing) as u64).collect();
        let found = engine.load(&Wants { ranks, ..Wants::default() }).await.unwrap().ranks;
        assert_eq!(found, [expected, absent].concat());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_over_slots_that_meet_at_the_end_of_a_counter_are_done_whole_or_not() {
    const ROOM: i64 = 5;
    let url = shared_cluster("");
    let engine = engine(&url);
    engine.prepare().await.unwrap();
    add(&engine, &[("hot", i64::MAX - ROOM)], Vec::new()).await.unwrap();
    let adding = (0..8).map(|number| {
        let engine = engine.clone();
        tokio::spawn(async move {
            // Another slot each time, so that either of the two decides.
            for turn in 0.. {
                let others = [format!("a{number}:{turn}"), format!("b{number}:{turn}")];
                let adds = [("hot", 1), ("sum", 1), (&others[0], 1), (&others[1], 1)];
                match add(&engine, &adds, Vec::new()).await {
                    Ok(_) => {}
                    Err(CommitError::Conflict) if value(&engine, "hot").await == i64::MAX => return,
                    Err(CommitError::Conflict) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
        })
    });
    for task in adding.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!((value(&engine, "hot").await, value(&engine, "sum").await), (i64::MAX, ROOM));
}
