//! Every row of the store, in an order of its own: slot by slot, name by name, and for a list of edges by who
//! is in it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use redis::Cmd;
use tally_core::rows::{EdgeKey, JobId, Key, Row, Side};
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::StoreError;

use crate::Redis;
use crate::answer::texts;
use crate::counting::{Listed, listed};
use crate::keys::{REPLAY_PARTS, replay_field, replay_key, replay_part, row_entry};
use crate::plan::{Place, place};
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
        if after.is_none_or(|key| row_entry(key).is_some()) {
            self.homes(after, count, &mut found).await?;
        }
        if after.is_none_or(|key| row_entry(key).is_some()) && found.len() < count {
            let key_of = |_: &str| Some(Key::Names);
            self.append(&self.keys.system("names"), after, key_of, &mut found).await?;
        }
        if found.len() < count && !matches!(after, Some(Key::ApiKey(_) | Key::Replay(_))) {
            self.append(&self.keys.system("jobs"), after, job_key, &mut found).await?;
        }
        if found.len() < count && !matches!(after, Some(Key::Replay(_))) {
            let key_of = |id: &str| Some(Key::ApiKey(id.to_owned()));
            self.append(&self.keys.system("keys"), after, key_of, &mut found).await?;
        }
        let first = if let Some(Key::Replay(key)) = after { replay_part(key) } else { 0 };
        for part in first..REPLAY_PARTS {
            if found.len() >= count {
                break;
            }
            let key_of = |field: &str| replay_key(field).map(Key::Replay);
            self.append(&self.keys.replays(part).0, after, key_of, &mut found).await?;
        }
        Ok(found)
    }

    /// The fields of a hash, behind the last one if that was one of them.
    async fn append(
        &self,
        hash: &str,
        after: Option<&Key>,
        key_of: impl Fn(&str) -> Option<Key>,
        found: &mut Vec<(Key, Row)>,
    ) -> Result<(), StoreError> {
        let last = after.and_then(|key| match place(&self.keys, key) {
            Place::Field(here, field) if here == hash => Some(field),
            _ => None,
        });
        let field_of = |key: &Key| match key {
            Key::Replay(key) => replay_field(key),
            Key::Job(job) => format!("{:016x}", job.0),
            Key::ApiKey(id) => id.clone(),
            _ => String::new(),
        };
        let rows = self.fields(hash, key_of).await?;
        found.extend(rows.into_iter().filter(|(key, _)| last.as_ref().is_none_or(|last| field_of(key) > *last)));
        Ok(())
    }

    /// Objects, subjects and edges.
    async fn homes(&self, after: Option<&Key>, count: usize, found: &mut Vec<(Key, Row)>) -> Result<(), StoreError> {
        let start = after.map(|key| (self.home_slot(key), row_entry(key).unwrap_or_default()));
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
        match place(&self.keys, key) {
            Place::Key(home) | Place::Field(home, _) => slot_of(&home),
        }
    }

    /// What there is in a slot, from where the last page ended.
    async fn entries_of(&self, slot: u16, start: Option<&(u16, String)>) -> Result<Vec<String>, StoreError> {
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
        let is_last = after.and_then(row_entry).is_some_and(|last| last == entry);
        let rest = &entry[1..];
        match entry.as_bytes()[0] {
            b'o' | b's' if is_last => Ok(Vec::new()),
            b'o' => {
                let object = ObjectId::new(rest).map_err(|_| unreadable(entry))?;
                self.rows_of(vec![Key::Object(object)]).await
            }
            b's' => {
                let subject = SubjectId::new(rest).map_err(|_| unreadable(entry))?;
                self.rows_of(vec![Key::Subject(subject)]).await
            }
            b'e' => {
                let last = match after {
                    Some(Key::Edge(key)) if is_last => Some(key.subject.as_str()),
                    _ => None,
                };
                let (object, relation) = rest.split_once('\0').ok_or_else(|| unreadable(entry))?;
                self.edges_behind(object, relation, last, count).await
            }
            _ => match listed(&self.keys, entry)? {
                Listed::Row(_) if is_last => Ok(Vec::new()),
                Listed::Row(key) => self.rows_of(vec![key]).await,
                Listed::Hash(hash, key_of) => {
                    let last = after.filter(|_| is_last).and_then(|key| match place(&self.keys, key) {
                        Place::Field(_, field) => Some(field),
                        Place::Key(_) => None,
                    });
                    let fields = self.members(&[&hash], "HKEYS", last.is_some()).await?;
                    self.behind(&fields, last.as_deref(), key_of, count).await
                }
            },
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

fn job_key(id: &str) -> Option<Key> {
    u64::from_str_radix(id, 16).ok().map(|id| Key::Job(JobId(id)))
}
