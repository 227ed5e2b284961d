//! Plans that were made on empty tables stay good on full ones: no statement reads more than it needs.

use std::collections::BTreeMap;

use tally_core::command::{Add, Attend, ChangeScore, Command, Observe, PutObject, ScoreChange, Suspend};
use tally_core::meta::Meta;
use tally_core::rows::{
    BoardKey, CountKey, EdgeKey, Key, ListKey, OrderKey, Partitions, Row, RowKind, Score, ScoreKey, Seq, Side,
    Standing, Ticket, TicketKey, TicketState,
};
use tally_core::time::Stamp;
use tally_core::view::{View, Wants};
use tally_core::{Cursor, Day, KeyId, ObjectId, SubjectId, Timestamp};
use tally_engine::{Engine, OrderFrom, Place, Range, Seen};

use crate::support::{Outsider, Store, name, relate, shared, total, unique, unrelate, until};

const EDGES: i64 = 200_000;

/// Half of them on one post, the rest one each; a tenth of all are one reader's bookmarks.
const FILL: &str = "
INSERT INTO edge (object, relation, subject, created_at, hidden)
SELECT CASE WHEN n % 2 = 0 THEN 'post:hot' ELSE 'post:' || n END, 'like', 'fan-' || n,
       timestamptz '2024-01-01' + n * interval '1 second', false
FROM generate_series(1, $) AS n;
INSERT INTO edge (object, relation, subject, created_at, hidden)
SELECT 'page:' || n, CASE WHEN n % 2 = 0 THEN 'bookmark' ELSE 'favorite' END, 'reader',
       timestamptz '2024-01-01' + n * interval '1 second', false
FROM generate_series(1, $ / 10) AS n;
INSERT INTO object_total (object, relation, kind, n)
SELECT object, relation, '', count(*) FROM edge GROUP BY 1, 2 ON CONFLICT DO NOTHING;
INSERT INTO subject_total (subject, relation, n)
SELECT 'someone-' || n, 'shelf', 0 FROM generate_series(1, $ / 10) AS n;
INSERT INTO object (object, attributes, created_at, updated_at)
SELECT 'thing:' || n, '{}', now(), now() FROM generate_series(1, $ / 10) AS n;
INSERT INTO replay (caller, key, fields, answer, expires_at, due_partition)
SELECT 'caller', 'key-' || n, '[]', '{}', timestamptz '2100-01-01' + n * interval '1 second', n % 64
FROM generate_series(1, $ / 10) AS n;
INSERT INTO job (id, work, before_us, edges, created_at, finished_at)
SELECT 'job_' || lpad(to_hex(n), 16, '0'), '{}', 0, 0, now(), now() FROM generate_series(1, $ / 10) AS n";

/// A board, half of which share one score, with its tree; and of everything else that is counted, some.
const FILL_COUNTED: &str = "
INSERT INTO score SELECT 'points', 'epoch', false, 'm' || n, CASE WHEN n % 2 = 0 THEN 7 ELSE n END, n
FROM generate_series(1, $) AS n ON CONFLICT DO NOTHING;
DELETE FROM order_node;
INSERT INTO order_node
SELECT 'score:points:0:false', height, CASE WHEN n = 0 THEN -9223372036854775808 ELSE down END,
       CASE WHEN n = 0 THEN -1 ELSE reached_us END,
       least((64 ^ (height + 1))::int8, (SELECT count(*) FROM score) - n)
FROM (SELECT ~score AS down, reached_us, row_number() OVER (ORDER BY ~score, reached_us, member) - 1 AS n
      FROM score) AS placed, generate_series(0, 2) AS height WHERE n % (64 ^ (height + 1))::int8 = 0;
INSERT INTO ticket SELECT 'sale', n, 's' || n, '', CASE WHEN n % 4 = 0 THEN 'DONE' ELSE 'WAITING' END, 0,
                    'epoch', 'epoch', '2100-01-01', NULL, 0
FROM generate_series(1, $) AS n;
INSERT INTO order_node
SELECT 'ticket:sale', height, CASE WHEN n = 0 THEN -9223372036854775808 ELSE -1 END, CASE WHEN n = 0 THEN -1 ELSE seq END,
       least((64 ^ (height + 1))::int8, (SELECT count(*) FROM ticket WHERE state = 'WAITING') - n)
FROM (SELECT seq, row_number() OVER (ORDER BY seq) - 1 AS n FROM ticket WHERE state = 'WAITING') AS placed,
     generate_series(0, 2) AS height WHERE n % (64 ^ (height + 1))::int8 = 0;
INSERT INTO object_total (object, relation, kind, n) SELECT 'key-' || n, 'views', '#', n FROM generate_series(1, $ / 10) AS n;
INSERT INTO rate_limit SELECT 'posting', 'key-' || n, '{\"log\":[]}', timestamptz '2100-01-01' + n * interval '1 second', n % 64
FROM generate_series(1, $ / 10) AS n;
INSERT INTO unique_count SELECT 'dau', 'key-' || n, '' FROM generate_series(1, $ / 10) AS n;
INSERT INTO attendee SELECT 'daily', 'who-' || n, n, '', '' FROM generate_series(1, $ / 10) AS n;
INSERT INTO attendance_chunk SELECT 'daily', date '2020-01-01' + n, 0, '' FROM generate_series(1, $ / 10) AS n;
INSERT INTO attendance_day SELECT 'daily', date '2020-01-01' + n, '{0}' FROM generate_series(1, $ / 10) AS n";

/// Every kind of call about what is counted, once.
async fn each_kind_of_counting(store: &Store, round: usize) {
    let (who, key) = (SubjectId::new(&format!("guest-{round}")).unwrap(), KeyId::new("post:hot").unwrap());
    let day = Some(Day(1));
    let members = vec![who.to_string()];
    for command in [
        Command::from(Add { counter: name("views"), key: key.clone(), by: 3 }),
        Command::from(Observe { unique: name("dau"), key: key.clone(), members: members.clone() }),
        Command::from(Observe { unique: name("dau"), key, members }),
        Command::from(Attend { sheet: name("daily"), day, subject: who.clone(), present: true }),
        Command::from(Attend { sheet: name("daily"), day, subject: who.clone(), present: false }),
        Command::from(ChangeScore { board: name("points"), member: who.clone(), change: ScoreChange::To(7) }),
        Command::from(ChangeScore { board: name("points"), member: who.clone(), change: ScoreChange::By(100_000) }),
        Command::from(ChangeScore { board: name("points"), member: who.clone(), change: ScoreChange::Leave }),
    ] {
        store.apply(command).await.unwrap();
    }
    let board = BoardKey { board: name("points"), season: Timestamp(0), levels: false };
    let at = Score { score: 7, reached: Stamp(100_000) };
    let at = ScoreKey { board: board.clone(), member: who }.place(at);
    each_page(store, round, &board.clone().into(), at).await;
    each_of_a_queue(store, round).await;
    for (partitions, full) in [(Partitions::one(7), 5), (Partitions::ALL, 5)] {
        let (kind, from, before) = (RowKind::Limit, Timestamp(0), Timestamp(u64::MAX >> 20));
        let page = store.engine.scan(&Range::Due { kind, partitions, from, before }, 5).await.unwrap();
        assert!(round == 0 || page.items.len() == full);
    }
    let score = Key::Score(ScoreKey { board, member: SubjectId::new("m5").unwrap() });
    let counter = Key::Counter(CountKey { name: name("views"), key: KeyId::new("key-5").unwrap() });
    for after in [score, counter] {
        let page = store.engine.scan(&Range::Rows { after: Some(after) }, 50).await.unwrap();
        assert!(round == 0 || page.items.len() == 50);
    }
}

async fn each_page(store: &Store, round: usize, order: &OrderKey, at: tally_core::rows::Place) {
    for from in [OrderFrom::Rank(120_000), OrderFrom::Behind(at.clone()), OrderFrom::Ahead(at)] {
        let page = store.engine.scan(&Range::Order { order: order.clone(), from }, 50).await.unwrap();
        assert!(round == 0 || page.items.len() == 50);
    }
}

/// One joins a queue, its place is told, others are asked for, and it is let in.
async fn each_of_a_queue(store: &Store, round: usize) {
    let key = TicketKey { room: name("sale"), seq: Seq::Given(1_000_000 + round as u64) };
    let order = OrderKey::Queue(key.room.clone());
    let ticket = |state| {
        let subject = SubjectId::new("who").unwrap();
        Row::Ticket(Ticket::new(subject, "", state, Timestamp(1), Timestamp(2)))
    };
    let standing = Standing::at(order.clone(), key.place());
    let (joined, let_in) = (ticket(TicketState::Waiting), ticket(TicketState::Ready));
    for (before, after) in [(None, Some(joined.clone())), (Some(joined), Some(let_in))] {
        let mut view = View::default();
        view.fill_row(Key::Ticket(key.clone()), before);
        view.fill_rank(standing.clone(), 0);
        view.set(Key::Ticket(key.clone()), after).unwrap();
        view.tell_rank(&standing);
        let seen = Seen { mark: Default::default(), view: &view };
        store.engine.commit(seen, &view.changes(Stamp(1))).await.unwrap();
    }
    let half = TicketKey { seq: Seq::Given(100_000), ..key };
    let ranks = vec![Standing::at(order.clone(), half.place()), standing, Standing::end(order.clone())];
    let found = store.engine.load(&Wants { ranks, ..Wants::default() }).await.unwrap().ranks;
    assert!(round == 0 || found == [75_000, 150_000, 150_000], "{found:?}");
    each_page(store, round, &order, half.place()).await;
}

/// Every kind of call, once.
async fn each_kind_of_call(store: &Store, round: usize) {
    let who = format!("guest-{round}");
    store.like("post:hot", &who).await.unwrap();
    store.like("post:hot", &who).await.unwrap();
    store.apply(relate("bookmark", "post:hot", &who)).await.unwrap();
    store.apply(unrelate("like", "post:hot", &who)).await.unwrap();
    store.apply(relate("shelf", &format!("post:{round}"), &who)).await.unwrap();
    let object = ObjectId::new(&format!("new:{round}")).unwrap();
    store.apply(Command::from(PutObject { object, status: None, attributes: Meta::default() })).await.unwrap();
    store.apply(Command::from(Suspend { subject: SubjectId::new(&format!("{who}-bad")).unwrap() })).await.unwrap();

    // A feed: twenty posts, with counts and whether the reader likes them.
    let posts: Vec<ObjectId> = (0..20).map(|n| ObjectId::new(&format!("post:{}", n * 2 + 1)).unwrap()).collect();
    let rows = posts.iter().cloned().map(|object| {
        Key::Edge(EdgeKey { object, relation: name("like"), subject: SubjectId::new("reader").unwrap() })
    });
    let totals = posts.iter().map(|post| total(post.as_str())).collect();
    store.engine.load(&Wants { rows: rows.collect(), totals, ..Wants::default() }).await.unwrap();

    let list = |side, id: &str, relation: Option<&str>, hidden| ListKey {
        side,
        id: id.into(),
        relation: relation.map(name),
        hidden,
    };
    for list in [
        list(Side::Object, "post:hot", Some("like"), false),
        list(Side::Object, "post:hot", None, false),
        list(Side::Object, "post:hot", Some("like"), true),
        list(Side::Subject, "reader", Some("bookmark"), false),
        list(Side::Subject, "reader", None, false),
        list(Side::Subject, "reader", None, true),
    ] {
        let relation = list.relation.clone().unwrap_or_else(|| name("bookmark"));
        let relation = if list.side == Side::Object { name("like") } else { relation };
        // From the top, and from far inside.
        let deep = Stamp::at(Timestamp(1_704_067_200_000 + 8_000_000));
        let after = Place { relation, cursor: Cursor { stamp: deep, other: "zzz".into() } };
        for after in [None, Some(after)] {
            let page = store.engine.scan(&Range::List { list: list.clone(), after }, 50).await.unwrap();
            assert!(page.items.len() <= 50);
            assert!(round == 0 || list.hidden || page.items.len() == 50, "a full page of {list:?}");
        }
    }
    for range in [Range::OPEN_JOBS, Range::API_KEYS, Range::due(RowKind::Replay, Timestamp(1))] {
        store.engine.scan(&range, 50).await.unwrap();
    }
    let key = EdgeKey {
        object: ObjectId::new("post:hot").unwrap(),
        relation: name("like"),
        subject: SubjectId::new("fan-100000").unwrap(),
    };
    let page = store.engine.scan(&Range::Rows { after: Some(Key::Edge(key)) }, 50).await.unwrap();
    assert!(round == 0 || page.items.len() == 50);
}

/// By table: how often it was read as a whole. By index: how many entries were read.
async fn read_so_far(outside: &Outsider, schema: &str) -> (BTreeMap<String, i64>, BTreeMap<String, i64>) {
    let ask = async |sql: &str| -> BTreeMap<String, i64> {
        let rows = outside.0.query(sql, &[&schema]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    (
        ask("SELECT relname::text, seq_scan FROM pg_stat_user_tables WHERE schemaname = $1").await,
        ask("SELECT indexrelname::text, idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = $1").await,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_made_on_empty_tables_read_only_what_they_need_of_full_ones() {
    let application = unique();
    let url = shared(&format!("&pool=2&application_name={application}"));
    let store = Store::open(&url).await;
    let schema = store.engine.options().schema.clone();
    each_kind_of_call(&store, 0).await;
    each_kind_of_counting(&store, 0).await;
    let filling = Outsider::of(&url).await;
    filling.run(&FILL.replace('$', &EDGES.to_string())).await;
    filling.run(&FILL_COUNTED.replace('$', &EDGES.to_string())).await;
    filling.run("SELECT pg_stat_force_next_flush()").await;
    let outside = Outsider::of(&url).await;
    let (scans_before, reads_before) = read_so_far(&outside, &schema).await;

    const ROUNDS: usize = 10;
    for round in 1..=ROUNDS {
        each_kind_of_call(&store, round).await;
        each_kind_of_counting(&store, round).await;
    }
    // A backend tells what it read when it goes, at the latest.
    store.stop().await.close().await;
    let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{application}'");
    until("its connections are closed", async || (outside.number(&sql).await == 0).then_some(())).await;
    let (scans, reads) = read_so_far(&outside, &schema).await;
    // Those two are small, and read when a server starts.
    for (table, scans) in scans.into_iter().filter(|(table, _)| table != "lane" && table != "migration") {
        assert_eq!(scans, scans_before[&table], "{table} was read as a whole");
    }
    for (index, reads) in reads {
        let each = (reads - reads_before[&index]) / i64::try_from(ROUNDS).unwrap();
        // Twelve pages of fifty from the busiest index.
        assert!(each < 1_000, "{each} entries of {index} were read in a round");
    }
}
