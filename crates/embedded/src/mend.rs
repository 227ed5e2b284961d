//! Putting right what a recount found: lists that do not agree with an edge, as in a store that was saved from damage.

use std::ops::Bound;

use tally_core::rows::{Edge, EdgeKey, Key, ListKey, Side};
use tally_engine::StoreError;

use crate::store::Batch;
use crate::{Embedded, codec, keys, unavailable};

/// Entries of a list that are read in one go.
const ENTRIES_AT_ONCE: usize = 4_096;

impl Embedded {
    /// Makes the lists of an edge say what its row does. False where they do already.
    pub(crate) async fn mend_edge(&self, key: &EdgeKey) -> Result<bool, StoreError> {
        self.store.ready().await.map_err(unavailable)?;
        let position = {
            let mut batch = self.committing();
            batch.clear();
            let on = self.store.moment();
            let row = self.store.get(&keys::row(&Key::Edge(key.clone()))).map_err(unavailable)?;
            let edge = row.map(|bytes| codec::read_edge(&bytes)).transpose()?;
            let mut mended = false;
            for side in [Side::Object, Side::Subject] {
                mended |= self.mend_list(key, edge.as_ref(), side, &mut batch)?;
            }
            if !mended {
                return Ok(false);
            }
            self.store.apply_if(&batch, on).map_err(unavailable)?
        };
        // What it was made from was taken back meanwhile.
        let position = position.ok_or_else(|| StoreError::Unavailable("rows were taken back; try again".into()))?;
        self.store.wait(position).await.map_err(unavailable)?;
        Ok(true)
    }

    fn mend_list(&self, key: &EdgeKey, edge: Option<&Edge>, side: Side, batch: &mut Batch) -> Result<bool, StoreError> {
        let right = edge.map(|edge| (keys::list_entry(key, edge, side), codec::write_attached(edge)));
        let (mut stands, mut mended) = (false, false);
        for hidden in [false, true] {
            let (id, relation) = (key.end(side).to_owned(), Some(key.relation.clone()));
            let prefix = keys::list_prefix(&ListKey { side, id, relation, hidden });
            let (mut from, end) = (Bound::Included(prefix.clone()), keys::after_prefix(&prefix));
            loop {
                let range = (from.as_ref().map(Vec::as_slice), Bound::Excluded(&end[..]));
                let found = self.store.scan(range, ENTRIES_AT_ONCE, false).map_err(unavailable)?;
                for (entry, value) in &found {
                    let is_right =
                        right.as_ref().is_some_and(|(at, attached)| **entry == **at && **value == **attached);
                    stands |= is_right;
                    let other = keys::split_entry(entry).map(|(.., other)| other);
                    if other == Some(key.other(side)) && !is_right {
                        batch.delete(entry);
                        mended = true;
                    }
                }
                match found.last() {
                    Some((last, _)) if found.len() == ENTRIES_AT_ONCE => from = Bound::Excluded(last.to_vec()),
                    _ => break,
                }
            }
        }
        if let Some((at, attached)) = right.filter(|_| !stands) {
            batch.put(&at, &attached);
            mended = true;
        }
        Ok(mended)
    }
}

#[cfg(test)]
mod tests {
    use tally_core::rows::{Change, Changes, Row, TotalKey};
    use tally_core::time::Stamp;
    use tally_core::view::{View, Wants};
    use tally_core::{Name, ObjectId, SubjectId};
    use tally_engine::{Engine, Finding, Mend, Range, Seen};

    use super::*;
    use crate::Options;

    fn key(subject: &str) -> EdgeKey {
        let (object, relation) = (ObjectId::new("post:1").unwrap(), Name::new("like").unwrap());
        EdgeKey { object, relation, subject: SubjectId::new(subject).unwrap() }
    }

    fn edge(created: u64) -> Edge {
        Edge { created: Stamp(created), kind: None, meta: None, hidden: false }
    }

    async fn findings(engine: &Embedded) -> (Vec<EdgeKey>, Vec<(TotalKey, i64)>) {
        let (mut strays, mut drifts) = (Vec::new(), Vec::new());
        let mut tell = |finding: Finding| match finding {
            Finding::Stray { edge, .. } => strays.extend(edge),
            Finding::Drift { total, stored, counted } => drifts.push((total, counted - stored)),
            Finding::Progress(_) => {}
            Finding::Leftover { .. } | Finding::Order { .. } | Finding::Wrong(_) => panic!("{finding:?}"),
        };
        engine.audit(&mut tell).await.unwrap();
        (strays, drifts)
    }

    /// Lost entries, entries of edges that are gone, and entries in a wrong place.
    #[tokio::test]
    async fn lists_are_put_right_and_totals_were_right_all_along() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Embedded::open(folder.path(), Options::default()).unwrap();
        let who = ["alice", "bob", "carol", "dave"];
        let mut changes = Changes { stamp: Stamp(9), ..Changes::default() };
        for (number, subject) in (1..).zip(who) {
            let row = Row::Edge(edge(number));
            row.counts(&Key::Edge(key(subject)), |total, by| changes.adds.push((total, by)));
            changes.rows.push((Key::Edge(key(subject)), Change { before: None, after: Some(row) }));
        }
        changes.adds.retain(|(total, _)| matches!(total, TotalKey::Subject { .. }));
        let (relation, object) = (Name::new("like").unwrap(), ObjectId::new("post:1").unwrap());
        changes.adds.push((TotalKey::Object { object, relation }, 4));
        let mark = engine.load(&Wants::default()).await.unwrap().mark;
        engine.commit(Seen { mark, view: &View::default() }, &changes).await.unwrap();
        assert_eq!(findings(&engine).await, (vec![], vec![]));

        let mut damage = Batch::new();
        // Alice is lost from both lists, Bob stands at another time in his, Carol's edge is gone and her entries are not.
        damage.delete(&keys::list_entry(&key("alice"), &edge(1), Side::Subject));
        damage.delete(&keys::list_entry(&key("alice"), &edge(1), Side::Object));
        damage.delete(&keys::list_entry(&key("bob"), &edge(2), Side::Subject));
        damage.put(&keys::list_entry(&key("bob"), &edge(77), Side::Subject), b"");
        damage.delete(&keys::row(&Key::Edge(key("carol"))));
        engine.store.apply(&damage).unwrap();

        let (strays, drifts) = findings(&engine).await;
        let off: Vec<i64> = drifts.iter().map(|(_, by)| *by).collect();
        assert_eq!(off, [-1, -1], "the count of the post, and Carol's own: {drifts:?}");
        for stray in strays {
            engine.mend(&Mend::Lists(stray)).await.unwrap();
        }
        let (strays, drifts) = findings(&engine).await;
        assert_eq!((strays, drifts.len()), (vec![], 2), "totals are mended by adding to them");
        assert!(!engine.mend(&Mend::Lists(key("dave"))).await.unwrap(), "what is right is left alone");
        let list = ListKey { side: Side::Object, id: "post:1".into(), relation: None, hidden: false };
        let page = engine.scan(&Range::List { list, after: None }, 9).await.unwrap();
        let found: Vec<Key> = page.items.into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, ["dave", "bob", "alice"].map(|who| Key::Edge(key(who))));
    }
}
