//! Many hands that turn likes on and off, and write down what they were told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use tally_core::command::Call;
use tally_core::rows::{EdgeKey, Key};
use tally_core::view::Wants;
use tally_core::{ObjectId, SubjectId};
use tally_engine::{Engine, Failure, StoreError};
use tokio::task::JoinSet;

use crate::support::{Store, edge, name, toggle, until};

/// What they like; each is decided by itself, where a store has lanes by object.
pub(crate) const POSTS: [&str; 3] = ["post:0", "post:0:reply", "page:about-us"];
const HANDS: usize = 8;

/// An edge: who, and at what.
pub(crate) type Edge = (String, String);

/// What is known of an edge: there or not, or nobody was told; and since when.
pub(crate) type Known = BTreeMap<Edge, (Option<bool>, Instant)>;

/// Load that goes on until it is told to end.
pub(crate) struct Hands {
    tasks: JoinSet<Known>,
    ended: Arc<AtomicBool>,
    told: Arc<Told>,
    first: String,
}

#[derive(Default)]
struct Told {
    answered: AtomicUsize,
    failed: AtomicUsize,
}

impl Hands {
    /// Each hand has a subject of its own, so that nobody else changes what it knows.
    pub(crate) fn on(store: &Store) -> Self {
        Self::named(store, "hand")
    }

    pub(crate) fn named(store: &Store, called: &str) -> Self {
        let (ended, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Told::default()));
        let mut tasks = JoinSet::new();
        for hand in 0..HANDS {
            let (runner, ended, told) = (store.runner.clone(), ended.clone(), told.clone());
            let who = format!("{called}-{hand}");
            tasks.spawn(async move {
                let mut known = Known::new();
                for turn in hand.. {
                    if ended.load(Ordering::SeqCst) {
                        break;
                    }
                    let to = POSTS[turn % POSTS.len()].to_owned();
                    let state = known.entry((to.clone(), who.clone())).or_insert((Some(false), Instant::now()));
                    match runner.apply(Call::system(toggle(&to, &who))).await {
                        Ok(decided) => {
                            let edge = edge(decided.reply.unwrap());
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
        Self { tasks, ended, told, first: format!("{called}-0") }
    }

    /// Waits until so many more calls have been answered.
    pub(crate) async fn until_answered(&self, more: usize) {
        let goal = self.told.answered.load(Ordering::SeqCst) + more;
        let what = format!("calls of {} are answered", self.first);
        until(&what, async || (self.told.answered.load(Ordering::SeqCst) >= goal).then_some(())).await;
    }

    /// Waits until so many more calls have been answered or have failed.
    pub(crate) async fn until_told(&self, more: usize) {
        let told = || self.told.answered.load(Ordering::SeqCst) + self.told.failed.load(Ordering::SeqCst);
        let goal = told() + more;
        until("calls are answered or fail", async || (told() >= goal).then_some(())).await;
    }

    /// Waits until a call has failed.
    pub(crate) async fn until_failed(&self) {
        let before = self.told.failed.load(Ordering::SeqCst);
        until("calls fail", async || (self.told.failed.load(Ordering::SeqCst) > before).then_some(())).await;
    }

    /// How many calls have failed.
    pub(crate) fn failed(&self) -> usize {
        self.told.failed.load(Ordering::SeqCst)
    }

    /// Ends, and gives what is known.
    pub(crate) async fn end(self) -> Known {
        self.ended.store(true, Ordering::SeqCst);
        self.tasks.join_all().await.into_iter().flatten().collect()
    }

    /// Ends, and compares what was told with what is there.
    pub(crate) async fn check(self, store: &Store) {
        let wrong = wrong(store, self.end().await).await;
        assert_eq!(wrong, [], "these are not as was answered");
        store.assert_sound().await;
    }
}

/// What is there other than it was answered, and since when it should have been.
pub(crate) async fn wrong(store: &Store, known: Known) -> Vec<(Edge, Instant)> {
    let key = |(to, who): &Edge| {
        let (object, subject) = (ObjectId::new(to).unwrap(), SubjectId::new(who).unwrap());
        Key::Edge(EdgeKey { object, relation: name("like"), subject })
    };
    let wants = Wants::rows(known.keys().map(key).collect());
    let there = until("it can be read", async || store.engine.load(&wants).await.ok()).await.rows;
    let both = known.into_iter().zip(there);
    both.filter(|((_, (told, _)), there)| told.is_some_and(|told| there.is_some() != told))
        .map(|((edge, (_, since)), _)| (edge, since))
        .collect()
}
