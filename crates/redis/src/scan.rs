//! Pages in order.

use redis::Cmd;
use tally_core::rows::{Edge, EdgeKey, JobId, Key, ListKey, Row, Side};
use tally_core::time::Timestamp;
use tally_core::view::Wants;
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::{Mark, Page, Place, Range, StoreError};

use crate::Redis;
use crate::answer::{items, some_text, texts};
use crate::keys::{REPLAY_PARTS, replay_key};
use crate::rows::{self, unreadable};
use crate::words::Ask;

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
            Range::OpenJobs => self.open_jobs(limit + 1).await?,
            Range::EndedJobs { before } => self.ended_jobs(*before, limit + 1).await?,
            Range::ApiKeys => self.api_keys().await?,
            Range::Replays { before } => self.replays(*before, limit + 1).await?,
            Range::Limits { before } => self.limits(*before, limit + 1).await?,
            Range::Board { board, from } => self.board(board, from, limit + 1).await?,
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
            let page = self.entries(list, relation, from.as_ref(), wanted).await?;
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
            match list.side {
                Side::Object => found.extend(behind.into_iter().map(|(key, edge)| (Key::Edge(key), Row::Edge(edge)))),
                Side::Subject => found.extend(self.whole(behind).await?),
            }
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

    /// What is attached to an edge is kept with its object. An entry whose edge has moved since is left out.
    async fn whole(&self, entries: Vec<(EdgeKey, Edge)>) -> Result<Vec<(Key, Row)>, StoreError> {
        let wanted = entries.iter().map(|(key, _)| Key::Edge(key.clone())).collect();
        let loaded = self.read(&Wants::rows(wanted)).await?;
        let same = |entry: &Edge, row: &Row| matches!(row, Row::Edge(edge) if edge.hidden == entry.hidden && rows::score(edge.created) == rows::score(entry.created));
        let rows = entries.into_iter().zip(loaded.rows);
        Ok(rows
            .filter_map(|((key, entry), row)| row.filter(|row| same(&entry, row)).map(|row| (Key::Edge(key), row)))
            .collect())
    }

    async fn open_jobs(&self, count: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        // One may have been begun by a server that died before it was written here.
        self.settle_slot(&self.keys.system("jobs")).await?;
        let mut command = Cmd::new();
        command.arg("ZRANGE").arg(self.keys.system("jobs:open")).arg(0).arg(count - 1);
        self.jobs_of(texts(self.link.send(&command).await?)?).await
    }

    async fn ended_jobs(&self, before: Timestamp, count: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let most = if before.0 > 1 << 53 { "+inf".into() } else { format!("({}", before.0) };
        let mut command = Cmd::new();
        command.arg("ZRANGE").arg(self.keys.system("jobs:ended")).arg("-inf").arg(most).arg("BYSCORE");
        command.arg("LIMIT").arg(0).arg(count);
        self.jobs_of(texts(self.link.send(&command).await?)?).await
    }

    async fn jobs_of(&self, ids: Vec<String>) -> Result<Vec<(Key, Row)>, StoreError> {
        let keys: Result<Vec<Key>, StoreError> = ids
            .iter()
            .map(|id| u64::from_str_radix(id, 16).map(|id| Key::Job(JobId(id))).map_err(|_| unreadable(id)))
            .collect();
        self.rows_of(keys?).await
    }

    async fn api_keys(&self) -> Result<Vec<(Key, Row)>, StoreError> {
        self.fields(&self.keys.system("keys"), |id| Some(Key::ApiKey(id.to_owned()))).await
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

    async fn replays(&self, before: Timestamp, count: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let most = if before.0 > 1 << 53 { "+inf".into() } else { format!("({}", before.0) };
        let asking = (0..REPLAY_PARTS).map(|part| {
            let mut command = Cmd::new();
            let (_, due) = self.keys.replays(part);
            command.arg("ZRANGE").arg(due).arg("-inf").arg(&most).arg("BYSCORE");
            command.arg("LIMIT").arg(0).arg(count);
            async move { texts(self.link.send(&command).await?) }
        });
        let mut keys = Vec::new();
        for fields in futures_util::future::try_join_all(asking).await? {
            for field in fields {
                keys.push(Key::Replay(replay_key(&field).ok_or_else(|| unreadable(&field))?));
            }
        }
        let mut found = self.rows_of(keys).await?;
        let due = |row: &Row| if let Row::Replay(replay) = row { replay.expires_at.0 } else { 0 };
        found.sort_by(|(a, left), (b, right)| due(left).cmp(&due(right)).then_with(|| a.cmp(b)));
        Ok(found)
    }

    /// These rows, as far as they are there.
    pub(crate) async fn rows_of(&self, keys: Vec<Key>) -> Result<Vec<(Key, Row)>, StoreError> {
        let wants = Wants::rows(keys);
        let loaded = self.read(&wants).await?;
        Ok(wants.rows.into_iter().zip(loaded.rows).filter_map(|(key, row)| Some((key, row?))).collect())
    }
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
