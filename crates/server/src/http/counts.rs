//! The counts that a live stream tells: how they stand, and whether they may be told now.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tally::core::query::{CountAnswer, FeedAnswer, FeedQuery};
use tally::core::rows::TotalKey;
use tally::core::{Auth, Name, ObjectId};
use tally::engine::{Clock, SystemClock};

use crate::app::App;

/// A count that is followed.
pub type Pair = (ObjectId, Name);

/// The counts of a stream.
pub struct Counts {
    app: App,
    auth: Auth,
    /// Relations with a condition for reading, which changes with the object, and with time.
    guarded: BTreeSet<Name>,
    /// The counts of the others, as they are.
    open: BTreeMap<Pair, CountAnswer>,
    /// The counts of the guarded, as they were told last.
    told: BTreeMap<Pair, CountAnswer>,
}

impl Counts {
    /// With those that the first read has shown.
    pub fn new(app: &App, auth: Auth, first: FeedAnswer) -> Self {
        let relations = app.tally.catalog().relations();
        let guarded = relations.filter(|relation| relation.when.read.is_some()).map(|relation| relation.name.clone());
        let guarded: BTreeSet<Name> = guarded.collect();
        let open = pairs_of(first).filter(|((_, relation), _)| !guarded.contains(relation)).collect();
        Self { app: app.clone(), auth, guarded, open, told: BTreeMap::new() }
    }

    /// Takes up what has changed, and says of which pairs.
    pub fn take(&mut self, changed: BTreeMap<TotalKey, i64>) -> BTreeSet<Pair> {
        let mut touched = BTreeSet::new();
        for (total, value) in changed {
            let (pair, kind) = match total {
                TotalKey::Object { object, relation } => ((object, relation), None),
                TotalKey::Kind { object, relation, kind } => ((object, relation), Some(kind)),
                _ => continue,
            };
            if let Some(count) = self.open.get_mut(&pair) {
                match (kind, &mut count.kinds) {
                    (Some(kind), Some(kinds)) => drop(kinds.insert(kind, value)),
                    (Some(_), None) => {}
                    (None, _) => count.count = value,
                }
            }
            touched.insert(pair);
        }
        touched
    }

    /// Events for these. The guarded are read anew, so that the condition is asked of what is told: one read for all.
    /// `None` where the store does not answer.
    pub async fn events(&mut self, pairs: &[Pair]) -> Option<String> {
        let mut text = String::new();
        let mut asked = BTreeSet::new();
        for (object, relation) in pairs {
            if self.guarded.contains(relation) {
                asked.insert((object, relation));
            } else if let Some(count) = self.open.get(&(object.clone(), relation.clone())) {
                text.push_str(&event(object, relation, count));
            }
        }
        if asked.is_empty() {
            return Some(text);
        }
        let objects: BTreeSet<ObjectId> = asked.iter().map(|(object, _)| (*object).clone()).collect();
        let relations: BTreeSet<Name> = asked.iter().map(|(_, relation)| (*relation).clone()).collect();
        let (objects, relations) = (objects.into_iter().collect(), relations.into_iter().collect());
        let query = FeedQuery { viewer: None, objects, relations, counters: Vec::new() };
        let mut shown: BTreeMap<Pair, CountAnswer> =
            pairs_of(self.app.tally.query(&query, &self.auth).await.ok()?).collect();
        for (object, relation) in asked {
            let pair = (object.clone(), relation.clone());
            let Some(count) = shown.remove(&pair) else {
                self.told.remove(&pair);
                continue;
            };
            // Two changes may have come together.
            if self.told.get(&pair) != Some(&count) {
                text.push_str(&event(object, relation, &count));
                self.told.insert(pair, count);
            }
        }
        Some(text)
    }
}

/// What a read shows, pair by pair.
fn pairs_of(answer: FeedAnswer) -> impl Iterator<Item = (Pair, CountAnswer)> {
    let items = answer.items;
    items.into_iter().flat_map(|item| {
        let object = item.object;
        item.relations.into_iter().map(move |(relation, count)| ((object.clone(), relation), count))
    })
}

fn event(object: &ObjectId, relation: &Name, count: &CountAnswer) -> String {
    // When this server knows it to be so: of a count that is told late, that it is still so.
    let as_of = SystemClock.now();
    let mut data = json!({"object": object, "relation": relation, "count": count.count, "as_of": as_of});
    if let Some(kinds) = &count.kinds {
        data["kinds"] = json!(kinds);
    }
    format!("event: count\ndata: {data}\n\n")
}
