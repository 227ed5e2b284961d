//! Pages in order: the read side.

use tally_core::rows::{CountKey, Key, ListKey, Row, Side};
use tally_core::time::Stamp;
use tally_core::{KeyId, Name};
use tally_engine::{Page, Place, Range, StoreError};
use tokio_postgres::types::ToSql;

use crate::Postgres;
use crate::edges;
use crate::error::unreadable;
use crate::rows::{self, key_cells};
use crate::tables::{self, TABLES, table_of};
use crate::time::At;
use crate::totals::COUNTERS_BEHIND;

/// Behind every stamp.
const NEWEST: Stamp = Stamp(u64::MAX >> 1);

impl Postgres {
    pub(crate) async fn page(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        let asked = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
        let mut items = match range {
            Range::List { list, after } => self.list(list, after.as_ref(), asked).await?,
            Range::OpenJobs => {
                self.rows_where(tables::JOB, "t.finished_at IS NULL ORDER BY t.id LIMIT $1", &[&asked]).await?
            }
            Range::EndedJobs { before } => {
                let before = At(Stamp::at(*before));
                let due = "t.finished_at < $2 ORDER BY t.finished_at, t.id LIMIT $1";
                self.rows_where(tables::JOB, due, &[&asked, &before]).await?
            }
            Range::ApiKeys => self.rows_where(tables::API_KEY, "true ORDER BY t.id LIMIT $1", &[&asked]).await?,
            Range::Replays { before } => {
                let before = At(Stamp::at(*before));
                let due = "t.expires_at < $2 ORDER BY t.expires_at, t.caller, t.key LIMIT $1";
                self.rows_where(tables::REPLAY, due, &[&asked, &before]).await?
            }
            Range::Limits { before } => {
                let before = At(Stamp::at(*before));
                let due = "t.look_at < $2 ORDER BY t.look_at, t.name, t.key LIMIT $1";
                self.rows_where(tables::LIMIT, due, &[&asked, &before]).await?
            }
            Range::Board { board, from } => self.board_page(board, from, asked).await?,
            Range::Rows { after } => self.all(after.as_ref(), limit.saturating_add(1)).await?,
        };
        let more = items.len() > limit;
        items.truncate(limit);
        Ok(Page { items, more, mark: Default::default() })
    }

    /// One list, or those of all relations one after the other: what is left of the relation at
    /// hand, then those behind it.
    async fn list(&self, list: &ListKey, after: Option<&Place>, limit: i64) -> Result<Vec<(Key, Row)>, StoreError> {
        let (end, other) = match list.side {
            Side::Object => ("object", "subject"),
            Side::Subject => ("subject", "object"),
        };
        let hidden = if list.hidden { "hidden" } else { "NOT hidden" };
        let columns = "object, relation, subject, created_at, kind, meta::text AS meta, hidden";
        let sql = format!(
            "SELECT * FROM (
                (SELECT {columns} FROM edge
                 WHERE {end} = $1 AND {hidden} AND relation = $2 AND created_at <= $3
                   AND (created_at < $3 OR {other} > $4)
                 ORDER BY created_at DESC, {other} LIMIT $6)
                UNION ALL
                (SELECT {columns} FROM edge
                 WHERE {end} = $1 AND {hidden} AND relation > $2 AND $5
                 ORDER BY relation, created_at DESC, {other} LIMIT $6)) page
             LIMIT $6"
        );
        let from = after.map(|place| place.relation.as_str());
        let relation = from.or(list.relation.as_ref().map(|name| name.as_str())).unwrap_or("");
        let created = At(after.map_or(NEWEST, |place| place.cursor.stamp));
        let behind = after.map_or("", |place| place.cursor.other.as_str());
        let all = list.relation.is_none();
        let rows = self.ask(&sql, &[&list.id, &relation, &created, &behind, &all, &limit]).await?;
        rows.iter().map(read_edge).collect()
    }

    /// Rows of one of the small tables.
    pub(crate) async fn rows_where(
        &self,
        table: usize,
        condition: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        self.rows_with("", table, condition, values).await
    }

    pub(crate) async fn rows_with(
        &self,
        with: &str,
        table: usize,
        condition: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let sql = format!("{with} SELECT {} FROM {} t WHERE {condition}", TABLES[table].shown(), TABLES[table].name);
        let rows = self.ask(&sql, values).await?;
        rows.iter().map(|row| rows::read(table, row.get(0))).collect()
    }

    /// Every row: edges by their keys, then the other tables one after the other by theirs, then counters.
    async fn all(&self, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let mut items = Vec::new();
        let first_table = match after {
            None | Some(Key::Edge(_)) => {
                items = self.edges_behind(after, limit).await?;
                0
            }
            Some(key) => table_of(key).unwrap_or(TABLES.len()),
        };
        for (number, table) in TABLES.iter().enumerate().skip(first_table) {
            if items.len() >= limit {
                break;
            }
            let from = after.filter(|key| table_of(key) == Some(number)).map(key_cells).unwrap_or_default();
            let (names, behind) = (table.key_names().join(", "), table.key_values(2).join(", "));
            let behind = if from.is_empty() { "true".into() } else { format!("({names}) > ({behind})") };
            let condition = format!("{behind} ORDER BY {names} LIMIT $1");
            let left = i64::try_from(limit - items.len()).unwrap_or(i64::MAX);
            let mut values: Vec<&(dyn ToSql + Sync)> = vec![&left];
            values.extend(from.iter().map(|cell| cell as &(dyn ToSql + Sync)));
            items.extend(self.rows_where(number, &condition, &values).await?);
        }
        if items.len() < limit {
            items.extend(self.counters_behind(after, limit - items.len()).await?);
        }
        Ok(items)
    }

    async fn counters_behind(&self, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (name, key) = match after {
            Some(Key::Counter(key)) => (key.name.as_str(), key.key.as_str()),
            _ => ("", ""),
        };
        let rows = self.ask(&COUNTERS_BEHIND, &[&name, &key, &limit]).await?;
        let read = |row: &tokio_postgres::Row| {
            let (name, key) = (Name::new(row.get(0)), KeyId::new(row.get(1)));
            let key = name.and_then(|name| Ok(CountKey { name, key: key? }));
            Ok((Key::Counter(key.map_err(|_| unreadable("the name of a counter"))?), Row::Counter(row.get(2))))
        };
        rows.iter().map(read).collect()
    }

    async fn edges_behind(&self, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT object, relation, subject, created_at, kind, meta::text, hidden FROM edge
                   WHERE (object, relation, subject) > ($1, $2, $3)
                   ORDER BY object, relation, subject LIMIT $4";
        let (object, relation, subject) = match after {
            Some(Key::Edge(key)) => (key.object.as_str(), key.relation.as_str(), key.subject.as_str()),
            _ => ("", "", ""),
        };
        let rows = self.ask(sql, &[&object, &relation, &subject, &limit]).await?;
        rows.iter().map(read_edge).collect()
    }
}

fn read_edge(row: &tokio_postgres::Row) -> Result<(Key, Row), StoreError> {
    let key = edges::key(row.get(0), row.get(1), row.get(2))?;
    Ok((Key::Edge(key), Row::Edge(edges::read(row, 3)?)))
}
