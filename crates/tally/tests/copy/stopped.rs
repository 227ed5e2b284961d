//! A copy that was stopped anywhere goes on exactly there.

use std::sync::Arc;

use tally::core::TotalKey;
use tally::engine::Engine;
use tally::engine::faulty::{Fault, Faulty};
use tally::engine::memory::Memory;
use tally::{Error, Options, Tally};
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

#[tokio::test]
async fn a_copy_that_has_ended_is_confirmed_and_not_made_again() {
    let (from, to) = (source().await, Memory::default());
    copied(&from, &to, 7).await.unwrap();
    let again = copied(&from, &to, 7).await.unwrap();
    assert_eq!((again.rows, again.resumed_rows, again.totals), (22 + COUNTED, 22 + COUNTED, 18));
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
