//! What a copy does not begin with, and what it does not call whole.

use std::sync::Arc;

use futures_util::FutureExt as _;
use tally::core::Day;
use tally::core::rows::TotalKey;
use tally::core::time::Stamp;
use tally::engine::Engine as _;
use tally::engine::faulty::{Fault, Faulty};
use tally::engine::memory::Memory;
use tally::{CopyError, CopyPhase, CopyReport, Error, Options, copy, copy_rows};
use tempfile::TempDir;

use crate::world::{NEWEST, copied, like, name, object, open, rows, source, url, write};

fn why(copied: Result<CopyReport, Error>) -> CopyError {
    match copied {
        Err(Error::Copy(why)) => why,
        other => panic!("no reason to refuse in {other:?}"),
    }
}

/// Stops after the first page.
async fn half_made(from: &Memory) -> Arc<Memory> {
    let to = Arc::new(Memory::default());
    let faulty = Faulty::new(to.clone(), 4, Fault::Before);
    copied(from, &faulty, 2).await.unwrap_err();
    assert_eq!(to.dump().0.len(), 3, "two rows and the place reached");
    to
}

#[tokio::test]
async fn a_target_with_rows_is_left_alone() {
    let from = source().await;
    for stamp in [Stamp(1), NEWEST] {
        let to = Memory::default();
        write(&to, [like("post:1", "zoe", 1)], stamp).await;
        let before = to.dump();
        assert_eq!(why(copied(&from, &to, 2).await), CopyError::NotEmpty);
        assert_eq!(to.dump(), before);
    }
}

#[tokio::test]
async fn a_half_made_copy_goes_on_only_from_where_it_came() {
    let from = source().await;
    let to = half_made(&from).await;
    let before = to.dump();
    let other = copy_rows("memory:other", &from, &*to, 2, &mut |_| {}).await;
    assert_eq!(why(other), CopyError::OtherSource { from: "memory:source".into() });
    assert_eq!(to.dump(), before);
    let onwards = copied(&*to, &Memory::default(), 2).await;
    assert_eq!(why(onwards), CopyError::SourceUnfinished { from: "memory:source".into() });
}

#[tokio::test]
async fn a_source_that_changed_is_noticed_when_the_copy_goes_on() {
    let from = source().await;
    let to = half_made(&from).await;
    write(&from, [like("post:1", "zoe", 1)], Stamp(NEWEST.0 + 1)).await;
    assert_eq!(why(copied(&from, &*to, 2).await), CopyError::SourceChanged);
}

/// Behind the place reached even under the same stamp; ahead of it because time has gone on.
#[tokio::test]
async fn a_source_that_changes_meanwhile_is_noticed_at_the_end() {
    let later = Stamp(NEWEST.0 + 1);
    for (stamp, to_change) in [(NEWEST, "post:0"), (later, "post:0"), (later, "post:3")] {
        let (from, to) = (Arc::new(source().await), Memory::default());
        let (changed, mut changes) = (from.clone(), 0);
        let mut tell = |progress: tally::CopyProgress| {
            if progress.phase == CopyPhase::Copying && progress.rows == 10 {
                changes += 1;
                write(&*changed, [like(to_change, "zoe", 1)], stamp).now_or_never().unwrap();
            }
        };
        let outcome = copy_rows("memory:source", &*from, &to, 2, &mut tell).await;
        assert_eq!(why(outcome), CopyError::SourceChanged, "{stamp:?} {to_change}");
        assert_eq!(changes, 1);
    }
}

#[tokio::test]
async fn a_target_that_somebody_writes_to_is_noticed() {
    let from = source().await;
    // A row that the copy never brings, and one that it does.
    for row in [like("post:3", "zoe", 1), rows().into_iter().next_back().unwrap()] {
        let to = half_made(&from).await;
        write(&*to, [row], NEWEST).await;
        assert_eq!(why(copied(&from, &*to, 2).await), CopyError::TargetChanged);
    }
    let to = half_made(&from).await;
    to.tamper(TotalKey::Object { object: object("post:1"), relation: name("like") }, 9);
    assert_eq!(why(copied(&from, &*to, 2).await), CopyError::Unsound { drifted: 1, strays: 0 });
}

/// The count of a day is compared with its bits and with whoever has that day.
#[tokio::test]
async fn a_day_that_does_not_add_up_is_noticed() {
    let from = source().await;
    let to = half_made(&from).await;
    to.tamper(TotalKey::Present { sheet: name("daily"), day: Day(20_001) }, 1);
    assert_eq!(why(copied(&from, &*to, 2).await), CopyError::Unsound { drifted: 1, strays: 0 });
    // Nor is a copy confirmed that is off by one.
    let to = Memory::default();
    copied(&from, &to, 2).await.unwrap();
    to.tamper(TotalKey::Present { sheet: name("daily"), day: Day(20_000) }, 2);
    assert_eq!(why(copied(&from, &to, 2).await), CopyError::Unsound { drifted: 1, strays: 0 });
}

#[tokio::test]
async fn urls_that_cannot_be_meant_are_refused() {
    let home = TempDir::new().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    let refused =
        async |from: &str, to: &str| copy(from, to, &Options::default(), |_| {}).await.unwrap_err().to_string();
    assert!(refused(&url(&a), &url(&b)).await.contains("there is no store in"));
    assert!(!a.exists() && !b.exists(), "nothing is made");
    drop(open(&a).await);
    assert!(refused(&url(&a), &url(&a)).await.contains("the same store"));
    assert!(refused(&url(&a), &url(&a.join("../a"))).await.contains("the same store"));
    assert!(refused(&url(&a), "memory:").await.contains("keeps nothing"));
    let unknown = refused("mysql://u:hush@h/db", &url(&b)).await;
    assert!(unknown.contains("is not a store") && !unknown.contains("hush"), "{unknown}");
    let _held = open(&a).await;
    assert!(refused(&url(&a), &url(&b)).await.contains("open"), "a store in use is not copied");
    assert!(!b.exists());
}

/// Neither where the target was no store before, nor where it is one: nothing is held, and no `LOCK` is left in a folder
/// that is none.
#[tokio::test]
async fn a_copy_that_is_refused_leaves_nothing_behind() {
    let home = TempDir::new().unwrap();
    let path = |name: &str| home.path().join(name);
    let refused = async |from: &str, to: &str| {
        let (from, to) = (url(&path(from)), url(&path(to)));
        copy(&from, &to, &Options::default(), |_| {}).await.unwrap_err()
    };
    let names = |name: &str| {
        let names = std::fs::read_dir(path(name)).unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<Vec<_>>()
    };
    let from = open(&path("from")).await;
    write(&from, rows(), NEWEST).await;
    from.close().await;
    drop(from);
    // A folder with something else in it.
    std::fs::create_dir(path("letters")).unwrap();
    std::fs::write(path("letters").join("dear"), "ann").unwrap();
    refused("from", "letters").await;
    assert_eq!(names("letters"), ["dear"]);
    // A source that is not there, and an empty folder to copy to.
    std::fs::create_dir(path("empty")).unwrap();
    refused("nowhere", "empty").await;
    assert!(names("empty").is_empty() && !path("nowhere").exists());
    // A source that is a half-made copy itself.
    let half = Faulty::new(Arc::new(open(&path("half")).await), 4, Fault::Before);
    copied(&source().await, &half, 2).await.unwrap_err();
    drop(half);
    assert!(matches!(refused("half", "empty").await, Error::Copy(CopyError::SourceUnfinished { .. })));
    refused("half", "new").await;
    assert!(names("empty").is_empty() && !path("new").exists());
    // A source that is in use.
    let held = open(&path("from")).await;
    refused("from", "empty").await;
    assert!(names("empty").is_empty());
    held.close().await;
    drop(held);
    // Stores that were refused can be opened at once.
    let taken = open(&path("taken")).await;
    write(&taken, [like("post:1", "zoe", 1)], Stamp(1)).await;
    taken.close().await;
    drop(taken);
    assert!(matches!(refused("from", "taken").await, Error::Copy(CopyError::NotEmpty)));
    for name in ["from", "taken", "half"] {
        open(&path(name)).await.close().await;
    }
}
