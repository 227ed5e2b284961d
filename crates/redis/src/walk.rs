//! Every row of the store, in an order of its own: slot by slot, name by name, and for a list of edges by who
//! is in it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use redis::Cmd;
use tally_core::rows::{EdgeKey, Key, Row, RowKind, Side};
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::StoreError;

use crate::Redis;
use crate::answer::texts;
use crate::places::{Listed, entry_of, key_in};
use crate::rows::unreadable;
use crate::slots::slot_of;

/// Slots that are looked at together.
const SLOTS_AT_ONCE: usize = 256;
/// Objects and lists that are read together, where each holds little.
const ENTRIES_AT_ONCE: usize = 256;
/// A list of this length is sorted once for many pages.
const REMEMBERED_FROM: usize = 10_000;
/// And not longer than so.
const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// The members of a long list, in order, from one page to the next.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<Option<Members>>);

/// A list, when it was read, and who is in it.
type Members = (String, Instant, Arc<Vec<String>>);

impl Redis {
    pub(crate) async fn all_rows(&self, after: Option<&Key>, count: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let mut found = Vec::new();
        let last = after.filter(|key| entry_of(key).is_none()).map(|key| (key.kind(), self.keys.place(key)));
        if last.is_none() {
            self.homes(after, count, &mut found).await?;
        }
        let hashes =
            RowKind::ALL.into_iter().flat_map(|kind| self.keys.hashes(kind).into_iter().map(move |hash| (kind, hash)));
        let is_last = |kind: RowKind, hash: &str| {
            last.as_ref().is_none_or(|(last, place)| *last == kind && place.clone().home() == hash)
        };
        for (kind, hash) in hashes.skip_while(|(kind, hash)| !is_last(*kind, hash)) {
            if found.len() >= count {
                break;
            }
            let behind = last.as_ref().filter(|(_, place)| place.clone().home() == hash);
            let behind = behind.and_then(|(_, place)| place.clone().field());
            let rows = self.fields(&hash, |field| key_in(kind, field)).await?;
            let field_of = |key: &Key| self.keys.place(key).field();
            found.extend(rows.into_iter().filter(|(key, _)| behind.is_none() || field_of(key) > behind));
        }
        Ok(found)
    }

    /// Edges, and rows that are kept with something.
    async fn homes(&self, after: Option<&Key>, count: usize, found: &mut Vec<(Key, Row)>) -> Result<(), StoreError> {
        let start = after.map(|key| (self.home_slot(key), entry_of(key).unwrap_or_default()));
        let slots: Vec<u16> = self.used_slots().await?;
        let slots: Vec<u16> =
            slots.into_iter().filter(|slot| start.as_ref().is_none_or(|(first, _)| slot >= first)).collect();
        let mut at_once = 1;
        for slots in slots.chunks(SLOTS_AT_ONCE) {
            let asking = slots.iter().map(|slot| self.entries_of(*slot, start.as_ref()));
            let entries: Vec<String> = try_join_all(asking).await?.into_iter().flatten().collect();
            let mut left = entries.as_slice();
            while !left.is_empty() {
                let (now, later) = left.split_at(at_once.min(left.len()));
                let asking = now.iter().map(|entry| self.rows_behind(entry, after, count));
                let read: Vec<(Key, Row)> = try_join_all(asking).await?.into_iter().flatten().collect();
                at_once = entries_for(count.saturating_sub(found.len() + read.len()), now.len(), read.len());
                found.extend(read);
                if found.len() >= count {
                    return Ok(());
                }
                left = later;
            }
        }
        Ok(())
    }

    fn home_slot(&self, key: &Key) -> u16 {
        if let Key::Edge(edge) = key {
            return slot_of(&self.keys.home(Side::Object, edge.object.as_str()));
        }
        slot_of(&self.keys.place(key).home())
    }

    /// What there is in a slot, from where the last page ended.
    pub(crate) async fn entries_of(&self, slot: u16, start: Option<&(u16, String)>) -> Result<Vec<String>, StoreError> {
        let from = match start {
            Some((first, entry)) if *first == slot => format!("[{entry}"),
            _ => "-".into(),
        };
        self.settle_slot(&self.keys.index(slot)).await?;
        let mut command = Cmd::new();
        command.arg("ZRANGE").arg(self.keys.index(slot)).arg(from).arg("+").arg("BYLEX");
        texts(self.link.send(&command).await?)
    }

    async fn rows_behind(&self, entry: &str, after: Option<&Key>, count: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let is_last = after.and_then(entry_of).is_some_and(|last| last == entry);
        if entry.as_bytes().first() == Some(&RowKind::Edge.declared().letter) {
            let last =
                if let (Some(Key::Edge(key)), true) = (after, is_last) { Some(key.subject.as_str()) } else { None };
            let (relation, object) = entry[1..].split_once('\0').ok_or_else(|| unreadable(entry))?;
            return self.edges_behind(object, relation, last, count).await;
        }
        match self.keys.listed(entry)? {
            Listed::Row(_) if is_last => Ok(Vec::new()),
            Listed::Row(key) => self.rows_of(vec![key]).await,
            Listed::Hash(hash) => {
                let last = after.filter(|_| is_last).and_then(|key| self.keys.place(key).field());
                let fields = self.members(&[&hash.key], "HKEYS", last.is_some()).await?;
                self.behind(&fields, last.as_deref(), |field| hash.key_of(field), count).await
            }
        }
    }

    async fn edges_behind(
        &self,
        object: &str,
        relation: &str,
        last: Option<&str>,
        count: usize,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let list = self.keys.list(Side::Object, object, relation);
        let members = self.members(&[&list.shown, &list.hidden], "ZRANGE", last.is_some()).await?;
        let object = ObjectId::new(object).map_err(|_| unreadable(object))?;
        let relation = Name::new(relation).map_err(|_| unreadable(relation))?;
        let key_of = |member: &str| {
            let subject = SubjectId::new(member).ok()?;
            Some(Key::Edge(EdgeKey { object: object.clone(), relation: relation.clone(), subject }))
        };
        self.behind(&members, last, key_of, count).await
    }

    /// The rows of members behind the last one, until there are enough.
    async fn behind(
        &self,
        members: &[String],
        last: Option<&str>,
        key_of: impl Fn(&str) -> Option<Key>,
        count: usize,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let mut found = Vec::new();
        let first = members.partition_point(|member| last.is_some_and(|last| member.as_str() <= last));
        for members in members[first..].chunks(count) {
            let keys: Result<Vec<Key>, StoreError> =
                members.iter().map(|member| key_of(member).ok_or_else(|| unreadable(member))).collect();
            found.extend(self.rows_of(keys?).await?);
            if found.len() >= count {
                break;
            }
        }
        Ok(found)
    }

    /// Everybody in a list of edges or in a hash, in the order of their names.
    async fn members(&self, keys: &[&str], how: &str, goes_on: bool) -> Result<Arc<Vec<String>>, StoreError> {
        if goes_on
            && let Ok(remembered) = self.remembered.0.lock()
            && let Some((key, since, members)) = &*remembered
            && *key == keys[0]
            && since.elapsed() < REMEMBERED_FOR
        {
            return Ok(members.clone());
        }
        let mut members = Vec::new();
        for key in keys {
            let mut command = Cmd::new();
            command.arg(how).arg(key);
            if how == "ZRANGE" {
                command.arg(0).arg(-1);
            }
            members.extend(texts(self.link.send(&command).await?)?);
        }
        members.sort();
        members.dedup();
        let members = Arc::new(members);
        if members.len() >= REMEMBERED_FROM
            && let Ok(mut remembered) = self.remembered.0.lock()
        {
            *remembered = Some((keys[0].to_owned(), Instant::now(), members.clone()));
        }
        Ok(members)
    }
}

/// How many entries to read next, by what the last ones held: most hold a row or a few, and cost the way to Redis and
/// back; but of one with many rows a whole page is read, and what is beyond the page is read for nothing.
fn entries_for(rows: usize, entries: usize, held: usize) -> usize {
    (rows * entries / held.max(1)).clamp(1, ENTRIES_AT_ONCE)
}
