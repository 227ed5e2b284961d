//! The follower alone, on a line that does as the test says.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tally::core::rows::TotalKey;
use tally::core::{Name, ObjectId};
use tally::engine::follow::{Beat, Follower, Heard, Line, Wire, Word};
use tally::engine::{Lease, News, StoreError};
use tokio::time::{Instant, sleep, timeout};

/// What the line does, and what was said on it.
#[derive(Default)]
struct Said {
    counts: AtomicUsize,
    words: AtomicUsize,
    fails: AtomicUsize,
    chatters: AtomicBool,
    panics: AtomicBool,
}

#[derive(Clone)]
struct Test(Arc<Said>);

impl Wire for Test {
    type Line = Self;

    async fn connect(&mut self) -> Result<Self, StoreError> {
        Ok(self.clone())
    }
}

impl Line for Test {
    async fn hear(&mut self) -> Option<Heard> {
        assert!(!self.0.panics.load(Ordering::SeqCst), "as the test says");
        if self.0.chatters.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
            return Some(Heard::Nothing);
        }
        std::future::pending().await
    }

    async fn beat(&mut self, _attended: &BTreeSet<ObjectId>, leases: &[Lease]) -> Result<Beat, StoreError> {
        Ok(Beat { watched: true, missed: false, leases: leases.to_vec() })
    }

    async fn watch(&mut self, _attended: &BTreeSet<ObjectId>, _new: &BTreeSet<ObjectId>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn tell(&mut self, changed: &BTreeSet<ObjectId>, words: &BTreeSet<Word>) -> Result<(), StoreError> {
        if self.0.fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return Err(StoreError::Unavailable("as the test says".into()));
        }
        self.0.counts.fetch_add(changed.len(), Ordering::SeqCst);
        self.0.words.fetch_add(words.len(), Ordering::SeqCst);
        Ok(())
    }

    async fn lease(&mut self, _work: Lease) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn release(&mut self, _work: Lease) -> Result<(), StoreError> {
        Ok(())
    }

    async fn leave(&mut self, _leases: &[Lease]) -> Result<(), StoreError> {
        Ok(())
    }
}

fn a_count() -> (TotalKey, i64) {
    let (object, relation) = (ObjectId::new("post:1").unwrap(), Name::new("like").unwrap());
    (TotalKey::Object { object, relation }, 1)
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_changes_keeps_nothing_waiting() {
    let said = Arc::new(Said::default());
    let follower = Follower::new(Test(said.clone()));
    follower.tell(News::Keys);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        follower.tell_changed(&[a_count()]);
        sleep(Duration::from_millis(3)).await;
    }
    assert_eq!(said.words.load(Ordering::SeqCst), 1, "the word is out while the changes go on");
    assert!(said.counts.load(Ordering::SeqCst) > 50, "so are the changes, again and again");
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_told_is_told_later() {
    let said = Arc::new(Said::default());
    said.fails.store(3, Ordering::SeqCst);
    let follower = Follower::new(Test(said.clone()));
    follower.tell(News::Keys);
    follower.tell_changed(&[a_count()]);
    sleep(Duration::from_secs(30)).await;
    assert_eq!((said.words.load(Ordering::SeqCst), said.counts.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_messages_keeps_nobody_waiting() {
    let said = Arc::new(Said::default());
    said.chatters.store(true, Ordering::SeqCst);
    let follower = Follower::new(Test(said.clone()));
    let leased = timeout(Duration::from_secs(60), follower.lease(Lease::Jobs)).await;
    assert_eq!(leased.expect("somebody answers"), Ok(true));
    timeout(Duration::from_secs(60), follower.leave()).await.expect("and lets go");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_follower_that_has_left() {
    let follower = Follower::new(Test(Arc::default()));
    assert_eq!(follower.lease(Lease::Jobs).await, Ok(true));
    follower.leave().await;
    let leased = timeout(Duration::from_secs(60), follower.lease(Lease::Jobs)).await;
    assert!(leased.expect("it is refused at once").is_err());
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_follower_that_panicked() {
    let said = Arc::new(Said::default());
    let follower = Follower::new(Test(said.clone()));
    assert_eq!(follower.lease(Lease::Jobs).await, Ok(true));
    assert!(!follower.has_ended());
    said.panics.store(true, Ordering::SeqCst);
    let refused = async { while follower.lease(Lease::Jobs).await.is_ok() {} };
    timeout(Duration::from_secs(60), refused).await.expect("it is refused");
    assert!(follower.has_ended(), "and that is known");
    timeout(Duration::from_secs(60), follower.leave()).await.expect("nor does leaving wait");
}
