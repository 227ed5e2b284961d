//! Stores with a row of every kind in them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tally::core::rows::{
    ApiKey, Attendee, Bits, Board, BoardKey, Change, Changes, ChunkKey, CountKey, Edge, EdgeKey, Forgotten, Job, JobId,
    Key, LimitKey, Names, Object, Replay, ReplayKey, Role, Row, Score, ScoreKey, Sketch, Subject, Suspension, Ticket,
    TicketKey, TicketState, TotalKey, Used, UsedState, Work,
};
use tally::core::time::Stamp;
use tally::core::view::{View, Wants};
use tally::core::{Day, KeyId, Name, ObjectId, SubjectId, Timestamp};
use tally::engine::memory::Memory;
use tally::engine::{Engine, Seen};
use tally::{AnyEngine, CopyReport, Error, Opening, copy_rows};

/// The job that is open in [`rows`].
pub(crate) const HIDING: JobId = JobId(77);
/// The job that is open in [`forgetting_ann`].
pub(crate) const FORGETTING: JobId = JobId(79);
/// Newer than every row.
pub(crate) const NEWEST: Stamp = Stamp(9_000);

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn object(text: &str) -> ObjectId {
    ObjectId::new(text).unwrap()
}

pub(crate) fn subject(text: &str) -> SubjectId {
    SubjectId::new(text).unwrap()
}

pub(crate) fn like(to: &str, who: &str, created: u64) -> (Key, Row) {
    let key = EdgeKey { object: object(to), relation: name("like"), subject: subject(who) };
    (Key::Edge(key), Row::Edge(Edge { created: Stamp(created), kind: None, meta: None, hidden: false }))
}

/// Likes, reactions, bookmarks with meta, a subject that is being suspended, and the rest.
pub(crate) fn rows() -> BTreeMap<Key, Row> {
    let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
    for (at, who) in (1..).zip(["alice", "bob", "carol", "dave"]) {
        rows.extend([like("post:1", who, at), like("post:2", who, 100 + at)]);
        let edge =
            |relation: &str| EdgeKey { object: object("post:1"), relation: name(relation), subject: subject(who) };
        let plain = Edge { created: Stamp(at), kind: None, meta: None, hidden: who == "dave" };
        let kind = Some(name(if at % 2 == 0 { "wow" } else { "love" }));
        rows.insert(Key::Edge(edge("reaction")), Row::Edge(Edge { kind, ..plain.clone() }));
        let meta = json!({"memo": "나중에", "n": 1.0, "deep": {"a": [1, null]}}).as_object().cloned().map(Arc::new);
        rows.insert(Key::Edge(edge("bookmark")), Row::Edge(Edge { meta, ..plain }));
    }
    let job =
        |work, finished_at| Row::Job(Job { work, before: NEWEST, edges: 1, created_at: Timestamp(5), finished_at });
    rows.insert(Key::Job(HIDING), job(Work::Hide { subject: subject("alice") }, None));
    rows.insert(Key::Job(JobId(78)), job(Work::Clear { object: object("post:9") }, Some(Timestamp(6))));
    let suspended = Subject { suspended: Some(Suspension { at: Timestamp(4), job: HIDING }), forgotten: None };
    rows.insert(Key::Subject(subject("alice")), Row::Subject(suspended));
    let attributes = Arc::new(json!({"owner": "alice"}).as_object().unwrap().clone());
    let (created_at, updated_at) = (Timestamp(1), Timestamp(2));
    let registered = Object { status: Some("published".into()), attributes, created_at, updated_at };
    rows.insert(Key::Object(object("post:1")), Row::Object(registered));
    let replay = ReplayKey { caller: "app".into(), key: "once".into() };
    let fields = Arc::new(vec![("method".to_owned(), u64::MAX)]);
    let answer = Replay { fields, answer: "{}".into(), expires_at: Timestamp(u64::MAX >> 24) };
    rows.insert(Key::Replay(replay), Row::Replay(answer));
    let key = ApiKey { hash: "00".into(), role: Role::Admin, name: "ops".into(), created_at, revoked_at: None };
    rows.insert(Key::ApiKey("abcd".into()), Row::ApiKey(key));
    rows.extend(counted());
    rows
}

/// How many rows [`counted`] has.
pub(crate) const COUNTED: u64 = 13;

/// One row of each kind that counting has, and a ticket.
fn counted() -> BTreeMap<Key, Row> {
    let count = |of: &str, key: &str| CountKey { name: name(of), key: KeyId::new(key).unwrap() };
    let mut sketch = Sketch::default();
    (0..5_000).for_each(|member| sketch.add(&format!("user {member}")));
    let day = |day| {
        let mut days = Bits::default();
        days.set(day, true);
        days
    };
    let mut bits = Bits::default();
    bits.set(0, true);
    let board = BoardKey { board: name("points"), season: Timestamp(0), levels: false };
    let used = Used { state: UsedState::Log(vec![(7, 1)]), look_at: Timestamp(9) };
    let ticket = Ticket::new(subject("ann"), "tab", TicketState::Waiting, Timestamp(8), Timestamp(9));
    // Of two days one is being forgotten: both still count.
    let (number, chunk) = (1 << 37, 1 << 24);
    let chunk_key = |day| Key::Chunk(ChunkKey { sheet: name("daily"), day: Day(day), chunk });
    let attendee = Attendee { number, days: day(20_000), forgotten: day(20_001) };
    BTreeMap::from([
        (Key::Counter(count("views", "post:1")), Row::Counter(-12)),
        (Key::Touched(count("views", "post:1")), Row::Touched(Timestamp(3))),
        (Key::Unique(count("dau", "today")), Row::Unique(sketch)),
        (Key::Limit(LimitKey { name: "door".into(), key: "ann".into() }), Row::Limit(used)),
        (Key::Sheet(name("daily")), Row::Sheet(number + 1)),
        (Key::Day((name("daily"), Day(20_000))), Row::Day(vec![chunk])),
        (Key::Day((name("daily"), Day(20_001))), Row::Day(vec![chunk])),
        (chunk_key(20_000), Row::Chunk(bits.clone())),
        (chunk_key(20_001), Row::Chunk(bits)),
        (Key::Attendee((name("daily"), subject("ann"))), Row::Attendee(attendee)),
        (Key::Board(name("points")), Row::Board(Board { seasons: Vec::new(), dense: false })),
        (Key::Score(ScoreKey { board, member: subject("ann") }), Row::Score(Score { score: -3, reached: Stamp(8) })),
        (Key::Ticket(TicketKey { room: name("sale"), seq: tally::core::rows::Seq::Given(7) }), Row::Ticket(ticket)),
    ])
}

/// Ann is being forgotten: of three days two wait to be taken back, and one she has had since. Bob stays.
pub(crate) fn forgetting_ann() -> BTreeMap<Key, Row> {
    let bits = |numbers: &[u32]| {
        let mut bits = Bits::default();
        numbers.iter().for_each(|number| bits.set(*number, true));
        bits
    };
    let attendee = |number, days: &[u32], forgotten: &[u32]| {
        Row::Attendee(Attendee { number, days: bits(days), forgotten: bits(forgotten) })
    };
    let sheet = name("daily");
    let mut rows = BTreeMap::from([
        (Key::Attendee((sheet.clone(), subject("1"))), attendee(1, &[20_000], &[20_001, 20_002])),
        (Key::Attendee((sheet.clone(), subject("2"))), attendee(2, &[20_000, 20_001, 20_002], &[])),
    ]);
    for day in [20_000, 20_001, 20_002].map(Day) {
        rows.insert(Key::Day((sheet.clone(), day)), Row::Day(vec![0]));
        rows.insert(Key::Chunk(ChunkKey { sheet: sheet.clone(), day, chunk: 0 }), Row::Chunk(bits(&[1, 2])));
    }
    let forgotten = Some(Forgotten { before: Stamp(8_000), left: BTreeMap::new() });
    rows.insert(Key::Subject(subject("1")), Row::Subject(Subject { suspended: None, forgotten }));
    let work = Work::Forget { subject: subject("1") };
    let job = Job { work, before: Stamp(8_000), edges: 0, created_at: Timestamp(5), finished_at: None };
    rows.insert(Key::Job(FORGETTING), Row::Job(job));
    rows.insert(Key::Names, Row::Names(Names { sheets: [sheet].into(), ..Names::default() }));
    rows
}

/// Writes rows as they are, with what their edges add up to.
pub(crate) async fn write<E: Engine>(engine: &E, rows: impl IntoIterator<Item = (Key, Row)>, stamp: Stamp) {
    let rows: Vec<(Key, Row)> = rows.into_iter().collect();
    let mut adds: BTreeMap<TotalKey, i64> = BTreeMap::new();
    for (key, row) in &rows {
        if let (Key::Edge(key), Row::Edge(edge)) = (key, row) {
            key.totals(edge).for_each(|total| *adds.entry(total).or_default() += 1);
        }
        if let (Key::Attendee((sheet, _)), Row::Attendee(attendee)) = (key, row) {
            for day in attendee.counted().bitmap() {
                *adds.entry(TotalKey::Present { sheet: sheet.clone(), day: Day(day) }).or_default() += 1;
            }
        }
        if let (Key::Counter(key), Row::Counter(value)) = (key, row) {
            adds.insert(TotalKey::Counter(key.clone()), *value);
        }
    }
    let mark = engine.load(&Wants::default()).await.unwrap().mark;
    // A counter is a total alone.
    let rows = rows.into_iter().filter(|(key, _)| !matches!(key, Key::Counter(_)));
    let put = |(key, row)| (key, Change { before: None, after: Some(row) });
    let changes =
        Changes { rows: rows.map(put).collect(), adds: adds.into_iter().collect(), numbers: Vec::new(), stamp };
    engine.commit(Seen { mark, view: &View::default() }, &changes).await.unwrap();
}

/// A store in memory with [`rows`] in it.
pub(crate) async fn source() -> Memory {
    let source = Memory::default();
    write(&source, rows(), NEWEST).await;
    source
}

/// A folder as a store.
pub(crate) async fn open(folder: &Path) -> AnyEngine {
    Opening::parse(&url(folder)).unwrap().open(&tally::embedded::Options::default()).await.unwrap()
}

pub(crate) fn url(folder: &Path) -> String {
    format!("embedded:{}", folder.display())
}

/// Copies in pages of a few rows, and tells nobody.
pub(crate) async fn copied<A: Engine, B: Engine>(from: &A, to: &B, page_rows: usize) -> Result<CopyReport, Error> {
    copy_rows("memory:source", from, to, page_rows, &mut |_| {}).await
}
