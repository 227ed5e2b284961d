//! Rows, totals, ranges and ranks of counting, one promise at a time.

use std::collections::BTreeMap;

use tally_core::Day;
use tally_core::command::{Add, ChangeScore, Command, ScoreChange};
use tally_core::reply::Reply;
use tally_core::rows::{
    Among, Attendee, Bits, Board, BoardKey, ChunkKey, CountKey, Key, LimitKey, Row, RowKind, Score, ScoreKey, Sketch,
    Standing, TotalKey, Used, UsedState,
};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_engine::{CommitError, Engine, OrderFrom, Range, Seen};

use super::generate::key;
use super::lockstep::all_rows;
use crate::EngineFactory;
use crate::driver::{Hand, write};
use crate::sample::{catalog, name, subject};
use crate::stand::Stand;

fn count_key(counter: &str, of: &str) -> CountKey {
    CountKey { name: name(counter), key: key(of) }
}

fn bits(numbers: impl IntoIterator<Item = u32>) -> Bits {
    let mut bits = Bits::default();
    numbers.into_iter().for_each(|number| bits.set(number, true));
    bits
}

fn sketch(members: u32) -> Sketch {
    let mut sketch = Sketch::default();
    (0..members).for_each(|member| sketch.add(&format!("member {member}")));
    sketch
}

fn board(season: u64, levels: bool) -> BoardKey {
    BoardKey { board: name("points"), season: Timestamp(season), levels }
}

fn score_key(season: u64, levels: bool, member: &str) -> ScoreKey {
    ScoreKey { board: board(season, levels), member: subject(member) }
}

/// One of each, and each at its ends.
fn samples() -> BTreeMap<Key, Row> {
    let used = |state, at| Row::Limit(Used { state, look_at: Timestamp(at) });
    let limit = |of: &str, whose: &str| Key::Limit(LimitKey { name: of.into(), key: whose.into() });
    let chunk = |day, chunk| Key::Chunk(ChunkKey { sheet: name("daily"), day: Day(day), chunk });
    let score = |score, reached| Row::Score(Score { score, reached: Stamp(reached) });
    let attendee = |number, days: Bits| Row::Attendee(Attendee { number, days, forgotten: bits([3, 19_999]) });
    BTreeMap::from([
        (Key::Touched(count_key("views", "post:1")), Row::Touched(Timestamp(1_700_000_000_123))),
        (Key::Unique(count_key("dau", "few")), Row::Unique(sketch(3))),
        (Key::Unique(count_key("dau", "some")), Row::Unique(sketch(700))),
        (Key::Unique(count_key("dau", "many {of} them\u{1F44D}")), Row::Unique(sketch(30_000))),
        (limit("posting", "alice"), used(UsedState::Log(vec![(1, 1), (5, 2), (u64::MAX >> 12, 3)]), 7)),
        (limit("relations.like", ""), used(UsedState::Window { start: 9, current: 2, previous: 1 }, 8)),
        (limit("posting", "al\"ice}"), used(UsedState::Bucket { full_at: u64::MAX >> 2 }, 9)),
        (Key::Sheet(name("daily")), Row::Sheet((1 << 40) + 3)),
        (Key::Day((name("daily"), Day(0))), Row::Day(vec![0, 1, (1 << 24) + 1])),
        (Key::Day((name("daily"), Day::LAST)), Row::Day(vec![5])),
        (chunk(20_000, 0), Row::Chunk(bits([0, 65_535]))),
        (chunk(20_000, 1 << 24), Row::Chunk(bits(0..60_000))),
        (chunk(20_001, 0), Row::Chunk(bits((0..65_536).step_by(3)))),
        (Key::Attendee((name("daily"), subject("7"))), attendee(7, bits([20_000]))),
        (Key::Attendee((name("daily"), subject("ann"))), attendee(1 << 40, bits([0, 20_000, 20_001, 2_932_896]))),
        (
            Key::Board(name("points")),
            Row::Board(Board { seasons: vec![Timestamp(0), Timestamp(1_700_000_000_000)], dense: false }),
        ),
        (Key::Score(score_key(0, false, "ann")), score(-5, 1_700_000_000_000_001)),
        (Key::Score(score_key(0, false, "bob")), score(tally_core::limits::SCORE_MAX, 1)),
        (Key::Score(score_key(0, false, "c{i}d:")), score(-tally_core::limits::SCORE_MAX, 2)),
        (Key::Score(score_key(1_700_000_000_000, false, "ann")), score(0, 3)),
        (Key::Score(score_key(0, true, "-5")), score(-5, 1)),
    ])
}

pub(super) async fn every_row_of_counting_comes_back<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let samples = samples();
    write(&*engine, samples.clone().into_iter().map(|(key, row)| (key, Some(row))), []).await;
    let keys: Vec<Key> = samples.keys().cloned().collect();
    let loaded = engine.load(&Wants::rows(keys.clone())).await.expect("a load works");
    for (key, row) in keys.iter().zip(loaded.rows) {
        assert_eq!(row.as_ref(), samples.get(key), "{key:?}");
    }
    for limit in [1, 4, 100] {
        assert_eq!(all_rows(&*engine, limit).await, samples, "in pages of {limit}");
    }
    // What was read is what a commit checks: each of them is replaced and removed once.
    let halves = |row: &Row| match row {
        Row::Unique(_) => Row::Unique(sketch(4)),
        Row::Chunk(_) => Row::Chunk(bits([1])),
        Row::Attendee(attendee) => {
            Row::Attendee(Attendee { days: bits([1, 2]), forgotten: Bits::default(), ..attendee.clone() })
        }
        Row::Score(score) => Row::Score(Score { score: score.score / 2 + 1, ..*score }),
        other => other.clone(),
    };
    let replaced: BTreeMap<Key, Row> = samples.iter().map(|(key, row)| (key.clone(), halves(row))).collect();
    write(&*engine, replaced.clone().into_iter().map(|(key, row)| (key, Some(row))), []).await;
    assert_eq!(all_rows(&*engine, 5).await, replaced);
    write(&*engine, keys.into_iter().map(|key| (key, None)), []).await;
    assert_eq!(all_rows(&*engine, 5).await, BTreeMap::new());
}

pub(super) async fn rows_of_counting_survive_a_reopening<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let samples = samples();
    let counter = TotalKey::Counter(count_key("views", "post:1"));
    write(&*engine, samples.clone().into_iter().map(|(key, row)| (key, Some(row))), [(counter.clone(), -7)]).await;
    if !stand.reopens() {
        return;
    }
    let engine = stand.reopen(engine).await;
    let mut expected = samples;
    expected.insert(Key::Counter(count_key("views", "post:1")), Row::Counter(-7));
    assert_eq!(all_rows(&*engine, 3).await, expected);
    let ranks = vec![Standing { order: board(0, false).into(), score: -5, among: Among::Last }];
    let loaded = engine.load(&Wants { ranks, totals: vec![counter], ..Wants::default() }).await.expect("a load works");
    assert_eq!((loaded.ranks, loaded.totals), (vec![2], vec![-7]));
}

pub(super) async fn counters_are_listed_as_rows<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let keys: Vec<CountKey> = ["post:1", "post:2", "home", "zero"].map(|of| count_key("views", of)).to_vec();
    let more = CountKey { name: name("shares"), key: key("post:1") };
    let values = [3, -4, i64::MAX, 5];
    let adds = keys.iter().cloned().zip(values).chain([(more.clone(), i64::MIN)]);
    write(&*engine, [], adds.map(|(key, by)| (TotalKey::Counter(key), by))).await;
    write(&*engine, [], [(TotalKey::Counter(keys[3].clone()), -5)]).await;
    let mut expected: BTreeMap<Key, Row> =
        keys[..3].iter().zip(values).map(|(key, value)| (Key::Counter(key.clone()), Row::Counter(value))).collect();
    expected.insert(Key::Counter(more), Row::Counter(i64::MIN));
    for limit in [1, 2, 100] {
        assert_eq!(all_rows(&*engine, limit).await, expected, "in pages of {limit}");
    }
}

/// Blind additions of several commits may meet at the end of the numbers: the last of them is a conflict, and nothing
/// of it is there.
pub(super) async fn a_counter_does_not_overflow<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let counter = TotalKey::Counter(count_key("views", "post:1"));
    let other = TotalKey::Counter(count_key("views", "post:2"));
    for (to, over) in [(i64::MAX, 1), (i64::MIN, -1)] {
        let now = engine.load(&Wants::totals(vec![counter.clone()])).await.expect("a load works").totals[0];
        // In two steps, since the way from one end to the other is longer than any number.
        write(&*engine, [], [(counter.clone(), -now)]).await;
        write(&*engine, [], [(counter.clone(), to)]).await;
        let view = View::default();
        let mut changes = view.changes(Stamp(1));
        changes.adds = vec![(other.clone(), 1), (counter.clone(), over)];
        let mark = engine.load(&Wants::totals(vec![counter.clone()])).await.expect("a load works").mark;
        let outcome = engine.commit(Seen { mark, view: &view }, &changes).await;
        assert_eq!(outcome, Err(CommitError::Conflict));
        let wants = Wants::totals(vec![counter.clone(), other.clone()]);
        assert_eq!(engine.load(&wants).await.expect("a load works").totals, [to, 0]);
        // The rule, which looks, says no; and it says yes to what fits.
        let mut hand = Hand::new(&*engine, &catalog);
        let count = |by| Command::from(Add { counter: name("views"), key: key("post:1"), by });
        let step = hand.step(count(over));
        let refused = crate::driver::apply(&*engine, &catalog, &step).await.reply;
        assert_eq!(refused.map_err(|refusal| refusal.code().name()), Err("conflict"));
        assert!(matches!(hand.run(count(-over)).await.reply, Ok(Reply::Counter(count)) if count.value == to - over));
    }
}

/// A counter that a decision stands on: whoever added to it meanwhile is in its way.
pub(super) async fn conflict_on_a_counter_that_was_decided_on<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let counter = TotalKey::Counter(count_key("views", "post:1"));
    for start in [0, 5] {
        write(&*engine, [], [(counter.clone(), start)]).await;
        let draft = async || {
            let loaded = engine.load(&Wants::totals(vec![counter.clone()])).await.expect("a load works");
            let mut view = View::default();
            view.fill_total(counter.clone(), loaded.totals[0]);
            let value = view.total_decided(&counter).expect("it is loaded");
            view.add(&counter, 1 - value).expect("it fits");
            (view, loaded.mark)
        };
        let (first, second) = (draft().await, draft().await);
        let commit = async |(view, mark): (View, _)| {
            let changes = view.changes(Stamp(1));
            engine.commit(Seen { mark, view: &view }, &changes).await.map(|_| ())
        };
        assert_eq!(commit(first).await, Ok(()));
        assert_eq!(commit(second).await, Err(CommitError::Conflict));
        let now = engine.load(&Wants::totals(vec![counter.clone()])).await.expect("a load works").totals[0];
        assert_eq!(now, 1);
        write(&*engine, [], [(counter.clone(), -1)]).await;
    }
}

pub(super) async fn limits_are_listed_by_when_to_look<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let limit = |whose: &str| Key::Limit(LimitKey { name: "posting".into(), key: whose.into() });
    let row = |at| Row::Limit(Used { state: UsedState::Bucket { full_at: 1 }, look_at: Timestamp(at) });
    let rows = [("c", 5), ("a", 9), ("b", 5), ("d", 300)];
    write(&*engine, rows.map(|(whose, at)| (limit(whose), Some(row(at)))), []).await;
    let due = async |before| {
        let page = engine.scan(&Range::due(RowKind::Limit, Timestamp(before)), 10).await.expect("a scan works");
        page.items.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(due(5).await, []);
    assert_eq!(due(6).await, ["b", "c"].map(limit));
    assert_eq!(due(301).await, ["b", "c", "a", "d"].map(limit));
    write(&*engine, [(limit("b"), Some(row(400))), (limit("c"), None)], []).await;
    assert_eq!(due(301).await, ["a", "d"].map(limit));
    assert_eq!(due(u64::MAX).await, ["a", "d", "b"].map(limit));
}

/// Members with few scores and few times, so that many are equal in the one or in both.
async fn crowded<E: Engine>(engine: &E) -> Vec<(ScoreKey, Score)> {
    let mut members: Vec<(ScoreKey, Score)> = Vec::new();
    for number in 0..60_u64 {
        let score = Score { score: (number as i64 * 7) % 5 - 2, reached: Stamp(1_000_000 + number % 4) };
        members.push((score_key(0, false, &format!("m{}", number * 37 % 60)), score));
    }
    write(engine, members.iter().map(|(key, score)| (Key::Score(key.clone()), Some(Row::Score(*score)))), []).await;
    let elsewhere = [(score_key(1, false, "m0"), 9), (score_key(0, true, "9"), 9)];
    let other = |score| Some(Row::Score(Score { score, reached: Stamp(1) }));
    write(engine, elsewhere.map(|(key, score)| (Key::Score(key), other(score))), []).await;
    members
        .sort_by(|(a, x), (b, y)| y.score.cmp(&x.score).then(x.reached.cmp(&y.reached)).then(a.member.cmp(&b.member)));
    members
}

pub(super) async fn ranks_are_counted_from_every_place<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let members = crowded(&*engine).await;
    let mut ranks: Vec<Standing> = members.iter().map(|(key, score)| key.standing(*score)).collect();
    for score in -4..=4 {
        for among in [Among::First, Among::Last] {
            ranks.push(Standing { order: board(0, false).into(), score, among });
        }
        // Where somebody would stand who is not there.
        for (reached, member) in [(0, "a"), (1_000_001, "m3x"), (1_000_002, "z"), (u64::MAX >> 12, "m")] {
            let among = Among::At { reached, id: member.into() };
            ranks.push(Standing { order: board(0, false).into(), score, among });
        }
    }
    ranks.push(Standing { order: board(77, false).into(), score: 0, among: Among::Last });
    let found = engine.load(&Wants { ranks: ranks.clone(), ..Wants::default() }).await.expect("a load works").ranks;
    for (standing, found) in ranks.iter().zip(found) {
        let here = members.iter().filter(|(key, _)| standing.order == key.board.clone().into());
        let expected = here.filter(|(key, score)| standing.is_behind(&key.place(*score))).count() as u64;
        assert_eq!(found, expected, "{standing:?}");
    }
}

pub(super) async fn boards_are_paged_both_ways<F: EngineFactory>(stand: Stand<F>) {
    let (engine, catalog) = (stand.open().await, catalog());
    let members = crowded(&*engine).await;
    let names = |found: Vec<(Key, Row)>| -> Vec<Key> { found.into_iter().map(|(key, _)| key).collect() };
    let expected: Vec<Key> = members.iter().map(|(key, _)| Key::Score(key.clone())).collect();
    let page = async |from, limit| {
        let page =
            engine.scan(&Range::Order { order: board(0, false).into(), from }, limit).await.expect("a scan works");
        (names(page.items), page.more)
    };
    assert_eq!(page(OrderFrom::Rank(0), 100).await, (expected.clone(), false));
    assert_eq!(page(OrderFrom::Rank(60), 100).await, (Vec::new(), false));
    for (number, (key, score)) in members.iter().enumerate() {
        let rest = expected.len() - number;
        let limit = 1 + number % 7;
        assert_eq!(
            page(OrderFrom::Rank(number as u64), limit).await,
            (expected[number..].iter().take(limit).cloned().collect(), rest > limit)
        );
        let behind = page(OrderFrom::Behind(key.place(*score)), limit).await;
        assert_eq!(behind, (expected[number + 1..].iter().take(limit).cloned().collect(), rest - 1 > limit));
        let ahead = page(OrderFrom::Ahead(key.place(*score)), limit).await;
        assert_eq!(ahead, (expected[..number].iter().rev().take(limit).cloned().collect(), number > limit));
    }
    // A page goes on where it was, though its last member has gone.
    let (gone, score) = members[20].clone();
    let mut hand = Hand::new(&*engine, &catalog);
    hand.run(Command::from(ChangeScore {
        board: name("points"),
        member: gone.member.clone(),
        change: ScoreChange::Leave,
    }))
    .await;
    let (found, _) = page(OrderFrom::Behind(gone.place(score)), 3).await;
    assert_eq!(found, expected[21..24]);
    let (found, _) = page(OrderFrom::Ahead(gone.place(score)), 3).await;
    assert_eq!(found, [19, 18, 17].map(|place: usize| expected[place].clone()));
}
