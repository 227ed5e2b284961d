//! A copy that was stopped anywhere goes on exactly there.

use std::sync::Arc;

use futures_util::FutureExt as _;
use tally::core::TotalKey;
use tally::engine::Engine;
use tally::engine::faulty::{Fault, Faulty};
use tally::engine::memory::Memory;
use tally::{CopyPhase, Error, Options, Tally, copy_rows};
use tempfile::TempDir;

use crate::world::{COUNTED, copied, open, rows, source, url};

#[tokio::test]
async fn a_copy_goes_on_after_a_stop_at_every_step() {
    let from = source().await;
    for fault in [Fault::Before, Fault::After] {
        for step in 0.. {
            let to = Arc::new(Memory::default());
            let faulty = Faulty::new(to.clone(), step, fault);
            let first = copied(&from, &faulty, 2).await;
            if !faulty.has_failed() {
                assert!(first.is_ok() && step > 20, "{step} steps: {first:?}");
                break;
            }
            assert!(matches!(first, Err(Error::Store(_))), "{fault:?} at {step}: {first:?}");
            let counters = to.dump().1.keys().filter(|total| matches!(total, TotalKey::Counter(_))).count();
            let before = (to.dump().0.keys().filter(|key| rows().contains_key(key)).count() + counters) as u64;
            let report = copied(&from, &*to, 3).await.unwrap();
            assert_eq!(report.resumed_rows, before, "{fault:?} at {step}");
            assert_eq!(report.rows, 22 + COUNTED);
            assert_eq!(to.dump(), from.dump(), "{fault:?} at {step}");
        }
    }
}

/// What a copy that was killed had sent may arrive while the next one is at work.
#[tokio::test]
async fn a_copy_goes_on_from_where_the_one_before_it_still_came_to() {
    let from = source().await;
    for late in [3, 5, 12] {
        let to = Arc::new(Memory::default());
        let (sender, mut sent) = (to.clone(), 0);
        let mut tell = |progress: tally::CopyProgress| {
            if progress.phase == CopyPhase::Copying && progress.rows >= 4 && sent == 0 {
                sent = progress.rows;
                // A load, then a load and a commit for each page.
                let dying = Faulty::new(sender.clone(), late, Fault::Before);
                copied(&from, &dying, 3).now_or_never().unwrap().unwrap_err();
            }
        };
        let report = copy_rows("memory:source", &from, &*to, 2, &mut tell).await.unwrap();
        assert_eq!(report.rows, 22 + COUNTED);
        assert_eq!(to.dump(), from.dump(), "{late}");
        assert!(sent > 0);
    }
}

#[tokio::test]
async fn a_copy_that_has_ended_is_confirmed_and_not_made_again() {
    let (from, to) = (source().await, Memory::default());
    copied(&from, &to, 7).await.unwrap();
    let again = copied(&from, &to, 7).await.unwrap();
    assert_eq!((again.rows, again.resumed_rows, again.totals), (22 + COUNTED, 22 + COUNTED, 20));
    assert_eq!(to.dump(), from.dump());
}

#[tokio::test]
async fn nobody_works_on_a_half_made_copy() {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("b");
    let from = source().await;
    // Three steps are a load, a load and a commit, and the fourth is never made.
    let faulty = Faulty::new(Arc::new(open(&folder).await), 4, Fault::Before);
    copied(&from, &faulty, 2).await.unwrap_err();
    drop(faulty);
    let Err(refused) = Tally::open(&url(&folder), Options::default()).await else { panic!("it is half-made") };
    let text = refused.to_string();
    assert!(text.contains("half-made copy; finish it with: tally copy --from memory:source"), "{text}");
    // What was refused has let go of the folder.
    let to = open(&folder).await;
    assert_eq!(copied(&from, &to, 2).await.unwrap().resumed_rows, 2);
    to.close().await;
    drop(to);
    Tally::open(&url(&folder), Options::default()).await.unwrap().close().await;
    assert!(open(&folder).await.ping().await.is_ok());
}
