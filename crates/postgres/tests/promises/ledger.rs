//! Many hands that turn likes on and off, and write down what they were told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tally_core::command::Call;
use tally_core::rows::{EdgeKey, Key};
use tally_core::view::Wants;
use tally_core::{ObjectId, SubjectId};
use tally_engine::{Engine, Failure, StoreError};
use tokio::task::JoinSet;

use crate::support::{Store, edge, name, toggle, until};

const POSTS: usize = 3;
const HANDS: usize = 8;

/// What is known of an edge: there or not, or nobody was told.
type Known = BTreeMap<(String, String), Option<bool>>;

/// Load that goes on until it is told to end.
pub(crate) struct Hands {
    tasks: JoinSet<Known>,
    ended: Arc<AtomicBool>,
    told: Arc<Told>,
}

#[derive(Default)]
struct Told {
    answered: AtomicUsize,
    failed: AtomicUsize,
}

impl Hands {
    /// Each hand has a subject of its own, so that nobody else changes what it knows.
    pub(crate) fn on(store: &Store) -> Self {
        let (ended, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Told::default()));
        let mut tasks = JoinSet::new();
        for hand in 0..HANDS {
            let (runner, ended, told) = (store.runner.clone(), ended.clone(), told.clone());
            tasks.spawn(async move {
                let who = format!("hand-{hand}");
                let mut known = Known::new();
                for turn in 0.. {
                    if ended.load(Ordering::SeqCst) {
                        break;
                    }
                    let to = format!("post:{}", turn % POSTS);
                    let state = known.entry((to.clone(), who.clone())).or_insert(Some(false));
                    match runner.apply(Call::system(toggle(&to, &who))).await {
                        Ok(decided) => {
                            let edge = edge(decided.reply.unwrap());
                            assert!(edge.changed, "a toggle always changes something");
                            if let Some(before) = *state {
                                assert_eq!(edge.active, !before, "{who} at {to}: done twice or not at all");
                            }
                            *state = Some(edge.active);
                            told.answered.fetch_add(1, Ordering::SeqCst);
                        }
                        // Given up after too many conflicts: nothing was done.
                        Err(Failure::Overloaded) => {}
                        Err(Failure::Store(StoreError::Unavailable(_))) => {
                            *state = None;
                            told.failed.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
                known
            });
        }
        Self { tasks, ended, told }
    }

    /// Waits until so many more calls have been answered.
    pub(crate) async fn until_answered(&self, more: usize) {
        let goal = self.told.answered.load(Ordering::SeqCst) + more;
        until("calls are answered", async || (self.told.answered.load(Ordering::SeqCst) >= goal).then_some(())).await;
    }

    /// Waits until a call has failed.
    pub(crate) async fn until_failed(&self) {
        let before = self.told.failed.load(Ordering::SeqCst);
        until("calls fail", async || (self.told.failed.load(Ordering::SeqCst) > before).then_some(())).await;
    }

    /// Ends, and compares what was told with what is there.
    pub(crate) async fn check(self, store: &Store) {
        self.ended.store(true, Ordering::SeqCst);
        let known: Vec<Known> = self.tasks.join_all().await;
        let known: Known = known.into_iter().flatten().collect();
        let key = |(to, who): &(String, String)| {
            let (object, subject) = (ObjectId::new(to).unwrap(), SubjectId::new(who).unwrap());
            Key::Edge(EdgeKey { object, relation: name("like"), subject })
        };
        let wants = Wants::rows(known.keys().map(key).collect());
        // What was told must be there; how soon it can be read again on a busy machine is another matter.
        let there = until("the edges are read", async || store.engine.load(&wants).await.ok()).await.rows;
        for ((edge, told), there) in known.into_iter().zip(there) {
            if let Some(told) = told {
                assert_eq!(there.is_some(), told, "{edge:?} is there on the left, as was answered on the right");
            }
        }
        store.assert_sound().await;
    }
}
