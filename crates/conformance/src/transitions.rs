//! How often each edge was made and removed, as the answers say.

use std::collections::BTreeMap;

use tally_core::reply::Reply;
use tally_core::rows::{EdgeKey, Key};

use crate::sample::name;
use crate::universe::Dump;

/// Made and removed.
#[derive(Default)]
pub(crate) struct Transitions(BTreeMap<EdgeKey, (i64, i64)>);

impl Transitions {
    pub(crate) fn take(&mut self, reply: &Reply) {
        match reply {
            Reply::Relation(edge) if edge.changed => {
                let key = EdgeKey {
                    object: edge.object.clone(),
                    relation: edge.relation.clone(),
                    subject: edge.subject.clone(),
                };
                let (made, removed) = self.0.entry(key).or_default();
                *(if edge.active { made } else { removed }) += 1;
            }
            Reply::Batch(replies) => replies.iter().flatten().for_each(|reply| self.take(reply)),
            _ => {}
        }
    }

    /// How many edges were touched.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// What was made and not removed is there, and nothing else. Where a relation has kinds, a change
    /// of kind is a change too, and made more often than removed.
    pub(crate) fn assert_in(&self, dump: &Dump) {
        for (key, (made, removed)) in &self.0 {
            let there = i64::from(dump.rows.contains_key(&Key::Edge(key.clone())));
            let fits = if key.relation == name("reaction") { made - removed >= there } else { made - removed == there };
            assert!(fits, "{key:?} was made {made} and removed {removed} times, and is there {there} times");
        }
        let edges = dump.rows.keys().filter_map(|key| if let Key::Edge(key) = key { Some(key) } else { None });
        edges.for_each(|key| assert!(self.0.contains_key(key), "{key:?} is there, and nobody made it"));
    }
}
