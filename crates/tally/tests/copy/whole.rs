//! What arrives is what was sent.

use std::time::Duration;

use tally::core::command::Auth;
use tally::core::query::{CountQuery, JobQuery};
use tally::core::reply::JobReply;
use tally::core::room::rows::queue;
use tally::core::rows::{ChunkKey, EntryKey, JobId, Key, Row, Seq, Ticket, TicketKey, TicketState};
use tally::core::view::{View, Wants};
use tally::core::{Day, Stamp, Timestamp, TotalKey};
use tally::engine::memory::Memory;
use tally::engine::{Engine, Finding, Mark, Seen};
use tally::{CopyPhase, CopyReport, Options, Tally, copy, copy_rows};
use tempfile::TempDir;

use crate::world::{
    COUNTED, FORGETTING, HIDING, NEWEST, copied, forgetting_ann, name, object, open, rows, source, subject, url, write,
};

fn expected() -> CopyReport {
    let (edges, totals, resumed_rows) = (16, 20, 0);
    let (rows, counting) = (22 + COUNTED, COUNTED);
    CopyReport {
        rows,
        edges,
        objects: 1,
        subjects: 1,
        replays: 1,
        jobs: 2,
        api_keys: 1,
        counting,
        totals,
        resumed_rows,
    }
}

#[tokio::test]
async fn every_row_and_every_count_arrives_with_pages_of_any_size() {
    let from = source().await;
    for page_rows in [1, 2, 7, 22, 1_000] {
        let to = Memory::default();
        assert_eq!(copied(&from, &to, page_rows).await.unwrap(), expected(), "pages of {page_rows}");
        assert_eq!(to.dump(), from.dump(), "pages of {page_rows}");
        assert_eq!(to.prepare().await.unwrap(), NEWEST, "time does not run backwards in the copy");
    }
}

#[tokio::test]
async fn an_empty_store_is_copied_too() {
    let (from, to) = (Memory::default(), Memory::default());
    assert_eq!(copied(&from, &to, 10).await.unwrap(), CopyReport::default());
    assert_eq!(to.dump(), from.dump());
}

#[tokio::test]
async fn a_folder_becomes_another_folder_and_a_copy_of_the_copy_is_the_same() {
    let home = TempDir::new().unwrap();
    let path = |name: &str| home.path().join(name);
    let first = open(&path("a")).await;
    write(&first, rows(), NEWEST).await;
    first.close().await;
    drop(first);
    let (told, heard) = std::sync::mpsc::channel();
    let tell = move |progress: tally::CopyProgress| told.send(progress).unwrap();
    let report = copy(&url(&path("a")), &url(&path("b")), &Options::default(), tell).await.unwrap();
    assert_eq!(report, expected());
    let heard: Vec<_> = heard.iter().collect();
    for phase in [CopyPhase::Copying, CopyPhase::Recounting, CopyPhase::Comparing] {
        assert!(heard.iter().any(|progress| progress.phase == phase && progress.rows > 0), "{phase:?} in {heard:?}");
    }
    let last = Memory::default();
    let copy = open(&path("b")).await;
    copy_rows("embedded:b", &copy, &last, 3, &mut |_| {}).await.unwrap();
    assert_eq!(last.dump(), source().await.dump());
    let mut found = Vec::new();
    copy.audit(&mut |finding| found.push(finding)).await.unwrap();
    assert!(found.iter().all(|finding| matches!(finding, Finding::Progress(_))), "{found:?}");
}

#[tokio::test]
async fn rows_that_are_very_large_take_more_than_one_commit() {
    use tally::core::rows::{Key, Replay, ReplayKey, Row};
    let (from, to) = (Memory::default(), Memory::default());
    let large = (0..9).map(|n| {
        let (caller, key) = ("app".to_owned(), n.to_string());
        let (answer, expires_at) = ("x".repeat(1 << 20), tally::core::Timestamp(u64::MAX >> 24));
        (Key::Replay(ReplayKey { caller, key }), Row::Replay(Replay { fields: Default::default(), answer, expires_at }))
    });
    write(&from, large, NEWEST).await;
    let report = copied(&from, &to, 1_000).await.unwrap();
    assert_eq!(report.replays, 9);
    assert_eq!(to.dump(), from.dump());
}

/// Whoever joined before has a number, and whoever joins in the copy gets the next.
#[tokio::test]
async fn a_sequence_goes_on_in_the_copy() {
    async fn joins<E: Engine>(engine: &E, who: &str) -> u64 {
        let (mut view, entry) =
            (View::default(), EntryKey { room: name("sale"), subject: subject(who), token: "t".into() });
        view.fill_row(Key::Entry(entry.clone()), None);
        let seq = view.take_number(&queue(&name("sale")));
        let ticket = Ticket::new(subject(who), "t", TicketState::Waiting, Timestamp(1), Timestamp(2));
        view.set(Key::Ticket(TicketKey { room: name("sale"), seq }), Some(Row::Ticket(ticket))).unwrap();
        view.set(Key::Entry(entry), Some(Row::Entry(seq))).unwrap();
        let seen = Seen { mark: Mark::default(), view: &view };
        let committed = engine.commit(seen, &view.changes(Stamp(1))).await.unwrap();
        seq.given(committed.numbers[0])
    }
    let home = TempDir::new().unwrap();
    let (from, to, back) = (Memory::default(), open(&home.path().join("b")).await, Memory::default());
    let mut last = 0;
    for who in ["ann", "bob", "eve"] {
        last = joins(&from, who).await;
    }
    // The last ones have left, so that nothing but the sequence knows of them.
    let ticket = |seq| Key::Ticket(TicketKey { room: name("sale"), seq: Seq::Given(seq) });
    let entry = |who| Key::Entry(EntryKey { room: name("sale"), subject: subject(who), token: "t".into() });
    let gone = [ticket(2), ticket(3), entry("bob"), entry("eve")];
    let loaded = from.load(&Wants::rows(gone.to_vec())).await.unwrap();
    let mut view = View::default();
    for (key, row) in gone.into_iter().zip(loaded.rows) {
        view.fill_row(key.clone(), row);
        view.set(key, None).unwrap();
    }
    from.commit(Seen { mark: Mark::default(), view: &view }, &view.changes(Stamp(2))).await.unwrap();
    let report = copied(&from, &to, 1).await.unwrap();
    assert_eq!(report.rows, 3, "a ticket, an entry, and the sequence");
    assert_eq!(joins(&to, "dan").await, last + 1);
    copied(&to, &back, 2).await.unwrap();
    assert_eq!(joins(&back, "fay").await, last + 2);
}

async fn ended(tally: &Tally, job: JobId, asking: &Auth) -> JobReply {
    let done = async {
        loop {
            let found = tally.query(&JobQuery { job, viewer: None }, asking).await.unwrap();
            if found.state == "done" {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), done).await.unwrap()
}

#[tokio::test]
async fn a_job_that_was_open_goes_on_in_the_copy() {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("b");
    let to = open(&folder).await;
    copied(&source().await, &to, 5).await.unwrap();
    to.close().await;
    drop(to);
    let tally = Tally::open(&url(&folder), Options::default()).await.unwrap();
    let system = Auth::new(serde_json::json!({"kind": "system"}));
    let job = ended(&tally, HIDING, &system).await;
    assert_eq!(job.edges, 1 + 4, "one before the copy, four after it");
    let count = CountQuery { relation: name("like"), object: object("post:1"), viewer: Some(subject("bob")) };
    let count = tally.query(&count, &system).await.unwrap();
    assert_eq!(count.count, 3, "alice is hidden");
    assert!(tally.recount(|_| {}).await.unwrap().drift.is_empty());
    tally.close().await;
}

/// Days that wait to be taken back still count, in the copy too: nothing else could take them back there.
#[tokio::test]
async fn a_forgetting_that_was_open_ends_in_the_copy() {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("b");
    let (from, to) = (Memory::default(), open(&folder).await);
    write(&from, forgetting_ann(), NEWEST).await;
    copied(&from, &to, 2).await.unwrap();
    to.close().await;
    drop(to);
    let tally = Tally::open(&url(&folder), Options::default()).await.unwrap();
    ended(&tally, FORGETTING, &Auth::new(serde_json::json!({"kind": "system"}))).await;
    tally.close().await;
    drop(tally);
    let days = [20_000, 20_001, 20_002].map(|day| (name("daily"), Day(day)));
    let totals = days.clone().map(|(sheet, day)| TotalKey::Present { sheet, day });
    let rows = days.map(|(sheet, day)| Key::Chunk(ChunkKey { sheet, day, chunk: 0 }));
    let left = Wants { rows: rows.to_vec(), totals: totals.to_vec(), ..Wants::default() };
    let left = open(&folder).await.load(&left).await.unwrap();
    let bits = left.rows.iter().map(|row| if let Some(Row::Chunk(bits)) = row { bits.bitmap().len() } else { 0 });
    assert_eq!(left.totals, [2, 1, 1], "what ann did since, and bob");
    assert_eq!(bits.collect::<Vec<_>>(), [2, 1, 1]);
}
