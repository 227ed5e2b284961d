//! Counting on PostgreSQL: sharded counters, overflow, trees under boards, stores from before.

use std::sync::Arc;

use tally_core::command::{Add, Attend, Call, ChangeScore, Command, ScoreChange};
use tally_core::reply::{CounterReply, Reply, ScoreReply};
use tally_core::rows::{
    Among, BoardKey, Changes, CountKey, Key, Partitions, Row, RowKind, Score, ScoreKey, Standing, TotalKey,
};
use tally_core::view::{Reading, View, Wants};
use tally_core::{KeyId, Stamp, SubjectId, Timestamp};
use tally_engine::{CommitError, Engine, Mark, OrderFrom, Range, Seen};
use tally_postgres::Postgres;
use tokio::task::JoinSet;

use crate::support::{Outsider, Store, engine, name, shared, until};

fn counter(key: &str) -> CountKey {
    CountKey { name: name("views"), key: KeyId::new(key).unwrap() }
}

fn count(key: &str, by: i64) -> Command {
    let CountKey { name, key } = counter(key);
    Command::from(Add { counter: name, key, by })
}

fn counted(reply: Reply) -> CounterReply {
    match reply {
        Reply::Counter(reply) => reply,
        other => panic!("{other:?} is not a count"),
    }
}

fn scored(reply: Reply) -> ScoreReply {
    match reply {
        Reply::Board(reply) => reply,
        other => panic!("{other:?} is not a score"),
    }
}

fn score(member: &str, change: ScoreChange) -> Command {
    Command::from(ChangeScore { board: name("points"), member: SubjectId::new(member).unwrap(), change })
}

/// A commit that stands on nothing.
async fn write(engine: &Postgres, changes: Changes) -> Result<Vec<i64>, CommitError> {
    let view = View::new(Reading::Lean, 1, 0);
    let committed = engine.commit(Seen { mark: Mark::default(), view: &view }, &changes).await?;
    Ok(committed.totals.unwrap())
}

async fn value(engine: &Postgres, key: &str) -> i64 {
    engine.load(&Wants::totals(vec![TotalKey::Counter(counter(key))])).await.unwrap().totals[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_unit_is_lost_while_a_counter_is_spread_and_folded_up() {
    let url = shared("");
    let stores = [Store::open(&url).await, Store::open(&url).await];
    let outside = Outsider::of(&url).await;
    let mut tasks = JoinSet::new();
    for task in 0..8_i64 {
        let runner = stores[usize::from(task % 2 == 0)].runner.clone();
        tasks.spawn(async move {
            let mut sum = 0;
            for turn in 0..100_i64 {
                let by = (task - 3) * 10 + turn % 7;
                let reply = runner.apply(Call::system(count("hot", by))).await.unwrap().reply.unwrap();
                assert_eq!(counted(reply).changed, by != 0);
                sum += by;
            }
            sum
        });
    }
    let total = TotalKey::Counter(counter("hot"));
    until("it is there", async || (outside.number("SELECT count(*) FROM object_total").await > 0).then_some(())).await;
    for shards in [10, 100, 10, 1, 10] {
        until("it is resized", async || stores[0].engine.resize(&total, shards).await.ok()).await;
        assert_eq!(outside.number("SELECT count(*) FROM object_total").await, i64::from(shards));
    }
    let expected: i64 = tasks.join_all().await.into_iter().sum();
    assert_eq!(value(&stores[1].engine, "hot").await, expected);
    assert_eq!(outside.number("SELECT value FROM counter WHERE counter = 'views' AND key = 'hot'").await, expected);
    let page = stores[0].engine.scan(&Range::Rows { after: None }, 10).await.unwrap();
    assert_eq!(page.items, [(Key::Counter(counter("hot")), Row::Counter(expected))]);
    let behind = Range::Rows { after: Some(Key::Counter(counter("hot"))) };
    assert_eq!(stores[0].engine.scan(&behind, 10).await.unwrap().items, []);
    stores[0].assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_counter_that_would_overflow_conflicts_whether_spread_or_not() {
    let store = Store::open(&shared("")).await;
    let total = TotalKey::Counter(counter("full"));
    let add = |by| Changes { adds: vec![(total.clone(), by)], ..Changes::default() };
    for (full, beyond) in [(i64::MAX - 10, 11), (i64::MIN + 10, -11)] {
        let now = value(&store.engine, "full").await;
        write(&store.engine, add(0_i64.checked_sub(now).unwrap())).await.unwrap();
        assert_eq!(write(&store.engine, add(full)).await, Ok(vec![full]));
        for shards in [1, 10, 1] {
            store.engine.resize(&total, shards).await.unwrap();
            for _ in 0..20 {
                assert_eq!(write(&store.engine, add(beyond)).await, Err(CommitError::Conflict), "{shards} shards");
                assert_eq!(value(&store.engine, "full").await, full);
            }
            // The runner looks at it then, and says why.
            let refused = store.runner.apply(Call::system(count("full", beyond))).await.unwrap().reply;
            assert!(refused.unwrap_err().to_string().contains("overflow"));
            assert_eq!(write(&store.engine, add(beyond.signum())).await, Ok(vec![full + beyond.signum()]));
            assert_eq!(write(&store.engine, add(-beyond.signum())).await, Ok(vec![full]));
        }
    }
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn points() -> BoardKey {
    BoardKey { board: name("points"), season: Timestamp(0), levels: false }
}

fn key_of(member: &SubjectId) -> ScoreKey {
    ScoreKey { board: points(), member: member.clone() }
}

async fn all_on(engine: &Postgres, board: &BoardKey) -> Vec<(SubjectId, Score)> {
    let range = Range::Order { order: board.clone().into(), from: OrderFrom::Rank(0) };
    let page = engine.scan(&range, usize::MAX >> 1).await.unwrap();
    let member = |(key, row): (Key, Row)| match (key, row) {
        (Key::Score(key), Row::Score(score)) => (key.member, score),
        other => panic!("{other:?} is not a score"),
    };
    page.items.into_iter().map(member).collect()
}

/// Every rank and every page are what a plain count gives, and each node has as many members as it says.
async fn assert_tree(engine: &Postgres, outside: &Outsider, dice: &mut Dice) {
    let wrong = "SELECT count(*) FROM (
        SELECT height, piece, max(n) AS n, count(s) AS counted FROM (
            SELECT height, n, s,
                   count(n) OVER (PARTITION BY height ORDER BY down, reached, member, s NULLS FIRST) AS piece
            FROM (SELECT height::int, down, reached, '' AS member, n, NULL::text AS s FROM order_node
                  UNION ALL
                  SELECT height, ~score, reached_us, member, NULL, member
                  FROM score, generate_series(0, 2) AS height) AS both_of_them) AS placed
        GROUP BY 1, 2) AS pieces WHERE n IS DISTINCT FROM counted";
    assert_eq!(outside.number(wrong).await, 0, "nodes that are wrong");
    let members = all_on(engine, &points()).await;
    assert_eq!(i64::try_from(members.len()).unwrap(), outside.number("SELECT count(*) FROM score").await);
    let mut sorted = members.clone();
    sorted.sort_by(|(a, x), (b, y)| y.score.cmp(&x.score).then(x.reached.cmp(&y.reached)).then(a.cmp(b)));
    assert_eq!(members, sorted);
    let mut standings = vec![Standing { order: points().into(), score: i64::MAX, among: Among::First }];
    for _ in 0..30 {
        let (member, score) = &members[dice.roll(members.len() as u64) as usize];
        standings.push(key_of(member).standing(*score));
        standings.push(Standing { order: points().into(), score: score.score, among: Among::First });
        standings.push(Standing {
            order: points().into(),
            score: score.score + dice.roll(2) as i64,
            among: Among::Last,
        });
    }
    let ranks = engine.load(&Wants { ranks: standings.clone(), ..Wants::default() }).await.unwrap().ranks;
    for (standing, rank) in standings.iter().zip(ranks) {
        let before = members.iter().filter(|(member, score)| standing.is_behind(&key_of(member).place(*score))).count();
        assert_eq!(rank, before as u64, "{standing:?}");
    }
    for rank in (0..20).map(|_| dice.roll(members.len() as u64 + 3)).chain([0, members.len() as u64 - 1]) {
        let range = Range::Order { order: points().into(), from: OrderFrom::Rank(rank) };
        let page = engine.scan(&range, 3).await.unwrap();
        let expected: Vec<Key> =
            members.iter().skip(rank as usize).take(3).map(|(member, _)| Key::Score(key_of(member))).collect();
        assert_eq!(page.items.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), expected, "from {rank}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boards_tree_counts_what_is_there_while_scores_come_move_tie_and_go() {
    let url = shared("");
    let (store, other) = (Arc::new(Store::open(&url).await), Arc::new(Store::open(&url).await));
    let outside = Outsider::of(&url).await;
    let mut dice = Dice(7);
    for round in 0..4 {
        let mut tasks = JoinSet::new();
        for n in 0..1_000 {
            // Each server has members of its own, so that they meet in the nodes alone.
            let member = format!("member-{}-{}", (n * 7 + round * 300) % 2_000, n % 2);
            let change = match (round, dice.roll(10)) {
                (3, 0..8) | (_, 0) => ScoreChange::Leave,
                (_, 1..4) => ScoreChange::By(dice.roll(1_000) as i64 - 300),
                // Many with few scores, and some that lie far apart.
                (_, 4..8) => ScoreChange::To(dice.roll(3) as i64),
                _ => ScoreChange::To((dice.roll(1 << 20) as i64 - (1 << 19)) << 33),
            };
            let store = if n % 2 == 0 { store.clone() } else { other.clone() };
            tasks.spawn(async move { store.runner.apply(Call::system(score(&member, change))).await.unwrap() });
        }
        assert!(tasks.join_all().await.into_iter().all(|decided| decided.reply.is_ok()));
        assert_tree(&store.engine, &outside, &mut dice).await;
    }
    assert!(outside.number("SELECT count(*) FROM order_node WHERE height = 0").await > 3, "it was cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_grows_as_high_as_it_needs_and_empty_nodes_go() {
    let url = shared("");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    assert_eq!(scored(store.apply(score("first", ScoreChange::To(5))).await.unwrap()).rank, Some(1));
    // As a restored backup would look whose tree is one node.
    outside
        .run(
            "INSERT INTO score SELECT 'points', 'epoch', false, 'm' || n, n / 7, n FROM generate_series(1, 200000) n;
             UPDATE order_node SET n = (SELECT count(*) FROM score)",
        )
        .await;
    store.apply(score("second", ScoreChange::To(5))).await.unwrap();
    let nodes =
        async |height| outside.number(&format!("SELECT count(*) FROM order_node WHERE height = {height}")).await;
    until("it is cut", async || (nodes(0).await > 3_000 && nodes(1).await > 40 && nodes(2).await == 1).then_some(()))
        .await;
    assert_tree(&store.engine, &outside, &mut Dice(1)).await;
    let before = nodes(0).await;
    let leave = async |from: i64| {
        for n in from..from + 150 {
            store.apply(score(&format!("m{n}"), ScoreChange::Leave)).await.unwrap();
        }
    };
    leave(100_000).await;
    until("an empty node is joined", async || (nodes(0).await < before).then_some(())).await;
    assert_tree(&store.engine, &outside, &mut Dice(2)).await;
}

#[tokio::test]
async fn a_store_from_before_counting_is_brought_up_to_date_and_keeps_all() {
    let url = shared("");
    let outside = Outsider::of(&url).await;
    let schema = tally_postgres::Options::parse(&url).unwrap().schema;
    outside
        .run(&format!(
            "CREATE SCHEMA {schema};
             {}
             CREATE TABLE migration (version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
             INSERT INTO migration (version) VALUES (1);
             INSERT INTO edge VALUES ('post:1', 'like', 'alice', now(), NULL, NULL, false);
             INSERT INTO object_total (object, relation, kind, n) VALUES ('post:1', 'like', '', 1)",
            include_str!("../../migrations/0001_tables.sql")
        ))
        .await;
    let store = Store::on(engine(&url), tally_engine::SystemClock).await;
    assert_eq!(outside.number("SELECT max(version) FROM migration").await, 8);
    assert_eq!(store.like("post:1", "bob").await.unwrap().count, 2);
    assert_eq!(counted(store.apply(count("post:1", -2)).await.unwrap()).value, -2);
    assert_eq!(scored(store.apply(score("alice", ScoreChange::By(1))).await.unwrap()).rank, Some(1));
    assert_eq!(store.assert_sound().await, 2);
}

/// Boards that were filled before they could say how.
#[tokio::test]
async fn boards_of_an_older_store_say_how_they_were_filled() {
    let url = shared("");
    let outside = Outsider::of(&url).await;
    let schema = tally_postgres::Options::parse(&url).unwrap().schema;
    outside
        .run(&format!(
            "CREATE SCHEMA {schema}; {} {}
             CREATE TABLE migration (version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
             INSERT INTO migration (version) VALUES (1), (2);
             INSERT INTO board VALUES ('weekly', '{{2026-01-05}}');
             INSERT INTO score VALUES ('weekly', '2026-01-05', false, 'alice', 5, 1), ('weekly', '2026-01-05', true, '5', 5, 1),
                                      ('points', 'epoch', false, 'alice', 5, 1)",
            include_str!("../../migrations/0001_tables.sql"),
            include_str!("../../migrations/0002_counting.sql")
        ))
        .await;
    let _store = Store::on(engine(&url), tally_engine::SystemClock).await;
    let rows =
        outside.0.query("SELECT board, dense, cardinality(seasons) FROM board ORDER BY board", &[]).await.unwrap();
    let rows: Vec<(String, bool, i32)> = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    assert_eq!(rows, [("points".into(), false, 0), ("weekly".into(), true, 1)]);
}

/// The partitions of rows that were there are counted in SQL: as the server counts those of new ones.
#[tokio::test]
async fn what_is_due_in_an_older_store_is_found_by_its_partitions() {
    let url = shared("");
    let outside = Outsider::of(&url).await;
    let schema = tally_postgres::Options::parse(&url).unwrap().schema;
    outside
        .run(&format!(
            "CREATE SCHEMA {schema}; {} {} {}
             CREATE TABLE migration (version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
             INSERT INTO migration (version) VALUES (1), (2), (3);
             INSERT INTO replay SELECT 'app', 'k' || n || 'é', '[]', '{{}}', now() FROM generate_series(1, 100) AS n;
             INSERT INTO rate_limit SELECT 'posting', k, '{{\"log\":[]}}', now()
             FROM unnest(ARRAY['', '}}', '}}a', '%', '%}}', 'a}}b', '{{', 'é', 'user:1', 'user:2']) AS k",
            include_str!("../../migrations/0001_tables.sql"),
            include_str!("../../migrations/0002_counting.sql"),
            include_str!("../../migrations/0003_boards_say_how_they_are_ranked.sql")
        ))
        .await;
    let store = Store::on(engine(&url), tally_engine::SystemClock).await;
    for (kind, rows) in [(RowKind::Replay, 100), (RowKind::Limit, 10)] {
        let mut found = 0;
        for partition in Partitions::ALL.iter() {
            let (from, before) = (Timestamp(0), Timestamp(u64::MAX >> 20));
            let range = Range::Due { kind, partitions: Partitions::one(partition), from, before };
            for (key, _) in store.engine.scan(&range, 1_000).await.unwrap().items {
                assert_eq!(key.partition(), partition, "{key:?}");
                found += 1;
            }
        }
        assert_eq!(found, rows, "{kind:?}");
    }
}

#[tokio::test]
async fn a_user_can_join_what_was_counted() {
    let url = shared("");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    store.apply(count("post:1", 5)).await.unwrap();
    let day = "2026-02-28".parse().unwrap();
    for who in ["alice", "7"] {
        let subject = SubjectId::new(who).unwrap();
        let attend = Command::from(Attend { sheet: name("daily"), day: Some(day), subject, present: true });
        store.apply(attend).await.unwrap();
    }
    for (who, points) in [("alice", 3), ("bob", 9)] {
        store.apply(score(who, ScoreChange::To(points))).await.unwrap();
    }
    let view = "SELECT count(*) FROM counter WHERE counter = 'views' AND key = 'post:1' AND value = 5";
    assert_eq!(outside.number(view).await, 1);
    assert_eq!(outside.number("SELECT present FROM attendance WHERE day = date '2026-02-28'").await, 2);
    let joined = "SELECT count(*) FROM attendee JOIN score ON subject = member WHERE score = 3";
    assert_eq!(outside.number(joined).await, 1);
    let reached = "SELECT reached_us FROM score WHERE member = 'bob'";
    let key = Key::Score(ScoreKey { board: points(), member: SubjectId::new("bob").unwrap() });
    let loaded = store.engine.load(&Wants::rows(vec![key])).await.unwrap();
    let reached = Stamp(outside.number(reached).await.unsigned_abs());
    assert_eq!(loaded.rows, [Some(Row::Score(Score { score: 9, reached }))]);
}
