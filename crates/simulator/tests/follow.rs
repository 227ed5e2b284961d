//! The follower alone, on a line that does as the test says.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tally::core::rows::TotalKey;
use tally::core::{Name, ObjectId};
use tally::engine::follow::{Beat, Follower, Heard, Here, Line, Share, Wire};
use tally::engine::{Lease, News, StoreError, Topic};
use tokio::time::{Instant, sleep, timeout};

/// What the line does, and what was said on it.
#[derive(Default)]
struct Said {
    counts: AtomicUsize,
    words: AtomicUsize,
    anything: AtomicUsize,
    servers: AtomicUsize,
    asked: AtomicUsize,
    released: AtomicUsize,
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

    async fn beat(&mut self, here: &Here<'_>) -> Result<Beat, StoreError> {
        let share = Share { rank: 0, servers: self.0.servers.load(Ordering::SeqCst).max(1) };
        Ok(Beat { watched: true, missed: false, leases: here.leases.to_vec(), share })
    }

    async fn watch(&mut self, _attended: &BTreeSet<Topic>, _new: &BTreeSet<Topic>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn tell(&mut self, news: &News) -> Result<(), StoreError> {
        if self.0.fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return Err(StoreError::Unavailable("as the test says".into()));
        }
        let News::Of(topics) = news else {
            self.0.anything.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        };
        let counts = topics.iter().filter(|topic| !topic.is_for_all()).count();
        self.0.counts.fetch_add(counts, Ordering::SeqCst);
        self.0.words.fetch_add(topics.len() - counts, Ordering::SeqCst);
        Ok(())
    }

    async fn lease(&mut self, work: &[Lease], at_most: usize) -> Result<Vec<Lease>, StoreError> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        Ok(work.iter().take(at_most).copied().collect())
    }

    async fn release(&mut self, work: &[Lease]) -> Result<(), StoreError> {
        self.0.released.fetch_add(work.len(), Ordering::SeqCst);
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
    follower.tell(Topic::Keys);
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
    follower.tell(Topic::Keys);
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

#[tokio::test(start_paused = true)]
async fn more_topics_than_are_told_one_by_one_are_anything() {
    let said = Arc::new(Said::default());
    let follower = Follower::new(Test(said.clone()));
    for n in 0..10_001 {
        follower.tell(Topic::Counts(ObjectId::new(&format!("post:{n}")).unwrap()));
    }
    follower.tell(Topic::Keys);
    sleep(Duration::from_secs(5)).await;
    let said = [&said.anything, &said.counts, &said.words].map(|said| said.load(Ordering::SeqCst));
    assert_eq!(said, [1, 0, 0], "one word for all of it");
}

#[tokio::test(start_paused = true)]
async fn a_server_has_its_share_in_few_calls_and_gives_back_what_others_need() {
    let said = Arc::new(Said::default());
    let follower = Follower::new(Test(said.clone()));
    let mut held = follower.partitions();
    assert!(held.borrow_and_update().is_empty(), "nobody has asked for any");
    follower.share();
    held.changed().await.unwrap();
    assert_eq!((held.borrow_and_update().len(), said.asked.load(Ordering::SeqCst)), (64, 1), "alone, in one call");
    said.servers.store(3, Ordering::SeqCst);
    held.changed().await.unwrap();
    assert_eq!((held.borrow_and_update().len(), said.released.load(Ordering::SeqCst)), (22, 42), "one of three");
    said.servers.store(1, Ordering::SeqCst);
    held.changed().await.unwrap();
    assert_eq!(held.borrow_and_update().len(), 64, "the others are gone");
    follower.leave().await;
    assert!(held.borrow_and_update().is_empty());
}
