//! Many hands that turn likes on and off, and write down what they were told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use tally_core::reply::Reply;
use tally_core::rows::Key;
use tally_core::view::Wants;
use tally_engine::{Engine, Failure, Runner, StoreError};
use tally_testing::until;
use tokio::task::JoinSet;

use crate::sample::{call, edge_key, toggle};

/// What they like; each is decided by itself, where a store has lanes by object.
pub const POSTS: [&str; 3] = ["post:0", "post:0:reply", "page:about-us"];
const HANDS: usize = 8;

/// An edge: at what, and who.
pub type Edge = (String, String);

/// What is known of an edge: there or not, or nobody was told; and since when.
pub type Known = BTreeMap<Edge, (Option<bool>, Instant)>;

/// Load that goes on until it is told to end.
pub struct Hands {
    tasks: JoinSet<Known>,
    ended: Arc<AtomicBool>,
    told: Arc<Told>,
    called: String,
}

#[derive(Default)]
struct Told {
    answered: AtomicUsize,
    failed: AtomicUsize,
}

impl Hands {
    /// Each hand has a subject of its own, called after this, so that nobody else changes what it knows.
    pub fn on(runner: &Runner, called: &str) -> Self {
        let (ended, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Told::default()));
        let mut tasks = JoinSet::new();
        for hand in 0..HANDS {
            let (runner, ended, told) = (runner.clone(), ended.clone(), told.clone());
            let who = format!("{called}-{hand}");
            tasks.spawn(async move {
                let mut known = Known::new();
                for turn in hand.. {
                    if ended.load(Ordering::SeqCst) {
                        break;
                    }
                    let to = POSTS[turn % POSTS.len()];
                    let edge = (to.to_owned(), who.clone());
                    let state = known.entry(edge).or_insert((Some(false), Instant::now()));
                    match runner.apply(call(toggle("like", to, &who))).await {
                        Ok(decided) => {
                            let Ok(Reply::Relation(edge)) = decided.reply else {
                                panic!("{:?} is not an edge", decided.reply)
                            };
                            assert!(edge.changed, "a toggle always changes something");
                            if let Some(before) = state.0 {
                                assert_eq!(edge.active, !before, "{who} at {to}: done twice or not at all");
                            }
                            *state = (Some(edge.active), Instant::now());
                            told.answered.fetch_add(1, Ordering::SeqCst);
                        }
                        // Given up after too many conflicts: nothing was done.
                        Err(Failure::Overloaded) => {}
                        Err(Failure::Store(StoreError::Unavailable(_))) => {
                            *state = (None, Instant::now());
                            told.failed.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
                known
            });
        }
        Self { tasks, ended, told, called: called.to_owned() }
    }

    /// How many calls were answered.
    pub fn answered(&self) -> usize {
        self.told.answered.load(Ordering::SeqCst)
    }

    /// How many calls have failed.
    pub fn failed(&self) -> usize {
        self.told.failed.load(Ordering::SeqCst)
    }

    /// Waits until so many more calls have been answered.
    pub async fn until_answered(&self, more: usize) {
        let goal = self.answered() + more;
        let what = format!("calls of {} are answered", self.called);
        until(&what, async || (self.answered() >= goal).then_some(())).await;
    }

    /// Waits until so many more calls have been answered or have failed.
    pub async fn until_told(&self, more: usize) {
        let told = || self.answered() + self.failed();
        let goal = told() + more;
        until("calls are answered or fail", async || (told() >= goal).then_some(())).await;
    }

    /// Waits until a call has failed.
    pub async fn until_failed(&self) {
        let before = self.failed();
        until("calls fail", async || (self.failed() > before).then_some(())).await;
    }

    /// Ends, and gives what is known.
    pub async fn end(self) -> Known {
        self.ended.store(true, Ordering::SeqCst);
        self.tasks.join_all().await.into_iter().flatten().collect()
    }

    /// Ends, and compares what was told with what is there.
    pub async fn check<E: Engine>(self, engine: &E) {
        let wrong = wrong(engine, self.end().await).await;
        assert_eq!(wrong, [], "these are not as was answered");
    }
}

/// What is there other than it was answered, and since when it should have been.
pub async fn wrong<E: Engine>(engine: &E, known: Known) -> Vec<(Edge, Instant)> {
    let key = |(to, who): &Edge| Key::Edge(edge_key("like", to, who));
    let wants = Wants::rows(known.keys().map(key).collect());
    // What was told must be there; how soon it can be read again on a busy machine is another matter.
    let there = until("it can be read", async || engine.load(&wants).await.ok()).await.rows;
    let both = known.into_iter().zip(there);
    both.filter(|((_, (told, _)), there)| told.is_some_and(|told| there.is_some() != told))
        .map(|((edge, (_, since)), _)| (edge, since))
        .collect()
}
