//! Pages in order: the read side.

use tally_core::rows::{CountKey, Due, Key, ListKey, Partitions, Row, RowKind, Side};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{KeyId, Name};
use tally_engine::{Page, Place, Range, StoreError};
use tokio_postgres::types::ToSql;

use crate::cells::{table_of, tables};
use crate::error::unreadable;
use crate::rows::{self, key_cells};
use crate::time::At;
use crate::totals::COUNTERS_BEHIND;
use crate::{Postgres, edges};

/// Behind every stamp.
const NEWEST: Stamp = Stamp(u64::MAX >> 1);

impl Postgres {
    pub(crate) async fn page(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        let asked = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
        let mut items = match range {
            Range::List { list, after } => self.list(list, after.as_ref(), asked).await?,
            Range::Due { kind, partitions, from, before } => {
                self.due(*kind, *partitions, (*from, *before), asked).await?
            }
            Range::Few(kind) => {
                let Some(table) = table_of(*kind) else { return Ok(Page::default()) };
                let in_order = format!("true ORDER BY {} LIMIT $1", table.key_names().join(", "));
                self.rows_where(*kind, &in_order, &[&asked]).await?
            }
            Range::Order { order, from } => self.order_page(order, from, asked).await?,
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

    /// What is due: what has no time for it first. Each partition is read from where it begins in the index.
    async fn due(
        &self,
        kind: RowKind,
        partitions: Partitions,
        (from, before): (Timestamp, Timestamp),
        limit: i64,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let Some((table, due)) = table_of(kind).and_then(|table| Some((table, table.due()?))) else {
            return Ok(Vec::new());
        };
        let partitions = partitions.and(kind.partitions());
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        let keys = table.key_names().join(", ");
        let (mut found, column) = (Vec::new(), due.column());
        let (partitions, of_partition) = match table.has_partitions() {
            true => (partitions.iter().map(i16::from).collect(), "t.due_partition = p.n AND"),
            false => (vec![0_i16], ""),
        };
        let select = |condition: &str, order: &str| {
            format!(
                "SELECT {} FROM unnest($2::int2[]) AS p(n) CROSS JOIN LATERAL (
                    SELECT * FROM {} t WHERE {of_partition} {condition} ORDER BY {order} LIMIT $1) t
                 ORDER BY {order} LIMIT $1",
                table.shown(),
                table.name()
            )
        };
        if from == Timestamp(0) && before > from && due == Due::AtOnceUnless(column) {
            let sql = select(&format!("t.{column} IS NULL"), &keys);
            found.extend(self.ask(&sql, &[&limit, &partitions]).await?);
        }
        let left = limit - i64::try_from(found.len()).unwrap_or(limit);
        if left > 0 && before > Timestamp(1) {
            // Nothing that has a time is due before 1.
            let from = if from == Timestamp(1) { Timestamp(0) } else { from };
            let (from, before) = (At(Stamp::at(from)), At(Stamp::at(before)));
            let sql = select(&format!("t.{column} >= $3 AND t.{column} < $4"), &format!("t.{column}, {keys}"));
            found.extend(self.ask(&sql, &[&left, &partitions, &from, &before]).await?);
        }
        found.iter().map(|row| rows::read(kind, row.get(0))).collect()
    }

    /// Rows of one of the small tables.
    pub(crate) async fn rows_where(
        &self,
        kind: RowKind,
        condition: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        self.rows_with("", kind, condition, values).await
    }

    pub(crate) async fn rows_with(
        &self,
        with: &str,
        kind: RowKind,
        condition: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let Some(table) = table_of(kind) else { return Ok(Vec::new()) };
        let sql = format!("{with} SELECT {} FROM {} t WHERE {condition}", table.shown(), table.name());
        let rows = self.ask(&sql, values).await?;
        rows.iter().map(|row| rows::read(kind, row.get(0))).collect()
    }

    /// Every row: edges by their keys, then the other tables one after the other by theirs, then counters.
    async fn all(&self, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let mut items = Vec::new();
        let last = after.map(Key::kind);
        if matches!(last, None | Some(RowKind::Edge)) {
            items = self.edges_behind(after, limit).await?;
        }
        // Counters come last.
        let is_behind = |kind: RowKind| last.is_none_or(|last| last != RowKind::Counter && kind >= last);
        for (kind, table) in tables().filter(|(kind, _)| is_behind(*kind)) {
            if items.len() >= limit {
                break;
            }
            let from = after.filter(|key| key.kind() == kind).map(key_cells).unwrap_or_default();
            let (names, behind) = (table.key_names().join(", "), table.key_values(2).join(", "));
            let behind = if from.is_empty() { "true".into() } else { format!("({names}) > ({behind})") };
            let condition = format!("{behind} ORDER BY {names} LIMIT $1");
            let left = i64::try_from(limit - items.len()).unwrap_or(i64::MAX);
            let mut values: Vec<&(dyn ToSql + Sync)> = vec![&left];
            values.extend(from.iter().map(|cell| cell as &(dyn ToSql + Sync)));
            items.extend(self.rows_where(kind, &condition, &values).await?);
        }
        if items.len() < limit {
            items.extend(self.counters_behind(after, limit - items.len()).await?);
        }
        Ok(items)
    }

    async fn counters_behind(&self, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (name, key) =
            if let Some(Key::Counter(key)) = after { (key.name.as_str(), key.key.as_str()) } else { ("", "") };
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
        let (object, relation, subject) = if let Some(Key::Edge(key)) = after {
            (key.object.as_str(), key.relation.as_str(), key.subject.as_str())
        } else {
            ("", "", "")
        };
        let rows = self.ask(sql, &[&object, &relation, &subject, &limit]).await?;
        rows.iter().map(read_edge).collect()
    }
}

fn read_edge(row: &tokio_postgres::Row) -> Result<(Key, Row), StoreError> {
    let key = edges::key(row.get(0), row.get(1), row.get(2))?;
    Ok((Key::Edge(key), Row::Edge(edges::read(row, 3)?)))
}
