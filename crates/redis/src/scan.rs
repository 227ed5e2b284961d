//! Pages in order.

use redis::Cmd;
use tally_core::rows::{Edge, EdgeKey, Key, ListKey, Row, RowKind, Side};
use tally_core::view::Wants;
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::{Mark, Page, Place, Range, StoreError};

use crate::Redis;
use crate::answer::{items, some_text};
use crate::places::key_in;
use crate::rows::{self, unreadable};
use crate::words::Ask;

/// Times that a list is read anew because it has changed meanwhile.
const READS_MAX: usize = 1_000;

/// Where a page of one list begins.
struct Cursor {
    score: String,
    other: String,
}

impl Redis {
    pub(crate) async fn page(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        // One more than asked for tells whether there is more.
        let mut items = match range {
            Range::List { list, after } => self.edges(list, after.as_ref(), limit + 1).await?,
            Range::Due { kind, partitions, from, before } => {
                self.due(*kind, *partitions, (*from, *before), limit + 1).await?
            }
            Range::Few(kind) => self.few(*kind).await?,
            Range::Order { order, from } => self.order_page(order, from, limit + 1).await?,
            Range::Rows { after } => self.all_rows(after.as_ref(), limit + 1).await?,
        };
        let more = items.len() > limit;
        items.truncate(limit);
        Ok(Page { items, more, mark: Mark::default() })
    }

    async fn edges(&self, list: &ListKey, after: Option<&Place>, count: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let relations: Vec<Name> = match &list.relation {
            Some(relation) => vec![relation.clone()],
            None => self.relations().await?.into_iter().collect(),
        };
        let mut found = Vec::new();
        for relation in relations {
            let from = match after {
                Some(place) if place.relation > relation => continue,
                Some(place) if place.relation == relation => {
                    let cursor = &place.cursor;
                    Some(Cursor { score: rows::score(cursor.stamp), other: cursor.other.clone() })
                }
                _ => None,
            };
            self.edges_of(list, &relation, from, count, &mut found).await?;
            if found.len() >= count {
                break;
            }
        }
        Ok(found)
    }

    /// Edges of one relation, until there are enough.
    async fn edges_of(
        &self,
        list: &ListKey,
        relation: &Name,
        from: Option<Cursor>,
        count: usize,
        found: &mut Vec<(Key, Row)>,
    ) -> Result<(), StoreError> {
        let mut from = from;
        let mut wanted = count - found.len() + 1;
        while found.len() < count {
            let page = self.entries_at_once(list, relation, from.as_ref(), wanted).await?;
            let is_last = page.len() < wanted;
            let last =
                page.last().map(|(key, score, _)| Cursor { score: score.clone(), other: key.other(list.side).into() });
            let behind: Vec<(EdgeKey, Edge)> = page
                .into_iter()
                .filter(|(key, score, _)| {
                    from.as_ref().is_none_or(|from| !is_at_or_before(score, key.other(list.side), from))
                })
                .map(|(key, _, edge)| (key, edge))
                .collect();
            if behind.is_empty() {
                // So many edges have one stamp that none behind the cursor was among them.
                wanted *= 2;
            } else {
                // Where the next page begins does not depend on how many are before it: others come and go.
                from = last;
            }
            found.extend(behind.into_iter().map(|(key, edge)| (Key::Edge(key), Row::Edge(edge))));
            if is_last {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Entries of a list with what is attached to them on this side.
    async fn entries(
        &self,
        list: &ListKey,
        relation: &Name,
        from: Option<&Cursor>,
        count: usize,
    ) -> Result<Vec<(EdgeKey, String, Edge)>, StoreError> {
        let keys = self.keys.list(list.side, &list.id, relation.as_str());
        let here = if list.hidden { keys.hidden } else { keys.shown };
        let slot = self.keys.part(&here);
        let slots = if self.keys.slots { "1" } else { "0" };
        let score = from.map_or("-inf", |cursor| &cursor.score);
        let words = [slots, score, &count.to_string()];
        let ask = Ask::new([self.keys.open(slot), here, keys.data], &words);
        loop {
            let mut values = items(self.link.run(&self.scripts.list, &ask).await?)?.into_iter();
            if self.is_stale(slot, values.next()).await? {
                continue;
            }
            let mut page = Vec::with_capacity(count);
            while let Some(member) = values.next() {
                let (member, score) = (some_text(Some(member))?, some_text(values.next())?);
                let data = some_text(values.next())?;
                let edge = rows::edge(list.hidden, &score, &data)?;
                page.push((edge_key(list, relation, &member)?, score, edge));
            }
            return Ok(page);
        }
    }

    /// The same with all that is attached, as of one moment. What is attached to an edge is kept with its object, so a
    /// subject's list is read before and after: what has not moved meanwhile was so in between.
    async fn entries_at_once(
        &self,
        list: &ListKey,
        relation: &Name,
        from: Option<&Cursor>,
        count: usize,
    ) -> Result<Vec<(EdgeKey, String, Edge)>, StoreError> {
        let mut page = self.entries(list, relation, from, count).await?;
        if list.side == Side::Object {
            return Ok(page);
        }
        for _ in 0..READS_MAX {
            let wants = Wants::rows(page.iter().map(|(key, ..)| Key::Edge(key.clone())).collect());
            let loaded = self.read(&wants).await?;
            let is_one = loaded.of_one_moment || self.read(&wants).await?.rows == loaded.rows;
            let again = self.entries(list, relation, from, count).await?;
            if is_one && again == page {
                let whole = page.into_iter().zip(loaded.rows).map(|((key, score, entry), row)| {
                    let edge = row.and_then(Row::into_edge).filter(|edge| stands(edge, &entry))?;
                    Some((key, score, edge))
                });
                if let Some(whole) = whole.collect() {
                    return Ok(whole);
                }
            }
            page = again;
        }
        Err(StoreError::Unavailable("a list changes faster than it can be read; try again".into()))
    }

    async fn few(&self, kind: RowKind) -> Result<Vec<(Key, Row)>, StoreError> {
        let mut found = Vec::new();
        for hash in self.keys.hashes(kind) {
            found.extend(self.fields(&hash, |field| key_in(kind, field)).await?);
        }
        Ok(found)
    }

    /// Every field of a hash as a row, by the bytes of its name.
    pub(crate) async fn fields(
        &self,
        hash: &str,
        key_of: impl Fn(&str) -> Option<Key>,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        self.settle_slot(hash).await?;
        let mut command = Cmd::new();
        command.arg("HGETALL").arg(hash);
        let mut fields = Vec::new();
        let mut values = match self.link.send(&command).await? {
            redis::Value::Map(pairs) => pairs.into_iter().flat_map(|(field, value)| [field, value]).collect(),
            other => items(other)?,
        }
        .into_iter();
        while let Some(field) = values.next() {
            fields.push((some_text(Some(field))?, some_text(values.next())?));
        }
        fields.sort();
        let row = |(field, text): (String, String)| {
            let key = key_of(&field).ok_or_else(|| unreadable(&field))?;
            let row = rows::row(&key, &text)?;
            Ok((key, row))
        };
        fields.into_iter().map(row).collect()
    }

    /// These rows, as far as they are there.
    pub(crate) async fn rows_of(&self, keys: Vec<Key>) -> Result<Vec<(Key, Row)>, StoreError> {
        let wants = Wants::rows(keys);
        let loaded = self.read(&wants).await?;
        Ok(wants.rows.into_iter().zip(loaded.rows).filter_map(|(key, row)| Some((key, row?))).collect())
    }
}

/// Whether an edge is the one of an entry.
fn stands(edge: &Edge, entry: &Edge) -> bool {
    edge.hidden == entry.hidden && rows::score(edge.created) == rows::score(entry.created)
}

fn edge_key(list: &ListKey, relation: &Name, member: &str) -> Result<EdgeKey, StoreError> {
    let (object, subject) = match list.side {
        Side::Object => (list.id.as_str(), member),
        Side::Subject => (member, list.id.as_str()),
    };
    let object = ObjectId::new(object).map_err(|_| unreadable(object))?;
    let subject = SubjectId::new(subject).map_err(|_| unreadable(subject))?;
    Ok(EdgeKey { object, relation: relation.clone(), subject })
}

/// Whether an entry is the cursor's own or comes before it among those with the same score.
fn is_at_or_before(score: &str, other: &str, cursor: &Cursor) -> bool {
    let same = score == cursor.score || score.parse::<f64>().ok() == cursor.score.parse::<f64>().ok();
    same && other <= cursor.other.as_str()
}
