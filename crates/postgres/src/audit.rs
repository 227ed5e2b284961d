//! Recounts everything as of one moment: one transaction that sees one snapshot, a range of objects
//! at a time, so that nothing is held in memory and there is progress to tell.
//!
//! Lists are indexes of the edges here, so there is nothing in them that could stray. What can are rows of a spread
//! total that no longer is: its first row says that there are no others, so nobody adds them up.

use tally_core::rows::TotalKey;
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::{Audited, Finding, StoreError};
use tokio_postgres::{Error, Transaction};

use crate::Postgres;
use crate::agree;
use crate::error::unavailable;
use crate::totals::ObjectTotals;
use crate::trees;

/// Edges in one range.
const RANGE_EDGES: i64 = 50_000;

/// The last object of a range, or null where it is the last range.
const RANGE_END: &str =
    "SELECT (SELECT object FROM edge WHERE object > $1 ORDER BY object, relation, subject OFFSET $2 LIMIT 1)";

const OBJECTS: &str = "
WITH counted AS (
    SELECT object, relation, '' AS kind, count(*) AS n FROM edge
    WHERE object > $1 AND ($2::text IS NULL OR object <= $2) AND NOT hidden GROUP BY 1, 2
    UNION ALL
    SELECT object, relation, kind, count(*) AS n FROM edge
    WHERE object > $1 AND ($2::text IS NULL OR object <= $2) AND NOT hidden AND kind IS NOT NULL GROUP BY 1, 2, 3
), stored AS (
    SELECT object, relation, kind,
           -- As everybody reads it: the first row alone, unless that one says that there are more.
           coalesce(CASE WHEN bool_or(shard = 0 AND shards > 1) THEN sum(n) ELSE sum(n) FILTER (WHERE shard = 0) END,
                    0)::int8 AS n
    FROM object_total
    WHERE object > $1 AND ($2::text IS NULL OR object <= $2)
      -- Names begin with a letter; totals of other kinds count no edges.
      AND (kind = '' OR kind >= 'a') GROUP BY 1, 2, 3
), compared AS (
    SELECT object, relation, kind, coalesce(s.n, 0) AS stored, coalesce(c.n, 0) AS counted
    FROM counted c FULL JOIN stored s USING (object, relation, kind))
SELECT object, relation, kind, stored, counted, NULL::int8 AS edges, NULL::int8 AS totals FROM compared
WHERE stored <> counted
UNION ALL
SELECT '', '', '', 0, 0,
       (SELECT count(*) FROM edge WHERE object > $1 AND ($2::text IS NULL OR object <= $2)),
       (SELECT count(*) FROM stored)";

const SUBJECTS: &str = "
SELECT t.subject, t.relation, t.n,
       (SELECT count(*) FROM edge e WHERE e.subject = t.subject AND e.relation = t.relation AND NOT e.hidden)
     + (SELECT count(*) FROM edge e WHERE e.subject = t.subject AND e.relation = t.relation AND e.hidden)
FROM subject_total t WHERE (t.subject, t.relation) > ($1, $2) ORDER BY t.subject, t.relation LIMIT 10000";

/// Rows of totals that are not spread.
const LEFTOVERS: &str = "
SELECT t.object, t.relation, t.kind, t.shard, t.n FROM object_total t
WHERE t.shard <> 0 AND NOT EXISTS (
    SELECT FROM object_total f
    WHERE f.object = t.object AND f.relation = t.relation AND f.kind = t.kind AND f.shard = 0 AND f.shards > 1)";

const DROP_LEFTOVERS: &str = "
WITH w AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS w(object, relation, kind)),
held AS (
    SELECT t.shards FROM object_total t, w
    WHERE t.object = w.object AND t.relation = w.relation AND t.kind = w.kind AND t.shard = 0 FOR UPDATE OF t)
DELETE FROM object_total t USING w
WHERE t.object = w.object AND t.relation = w.relation AND t.kind = w.kind AND t.shard <> 0
  AND NOT EXISTS (SELECT FROM held WHERE shards > 1)";

pub(crate) type Tell<'a> = &'a mut (dyn FnMut(Finding) + Send);

impl Postgres {
    pub(crate) async fn recount(&self, tell: Tell<'_>) -> Result<Audited, StoreError> {
        let connector = self.connector();
        let mut connection = connector.connect_raw(Box::new(|_| {})).await?;
        let setup = format!("SET search_path = {}; SET jit = off", self.options().schema);
        let auditing = async {
            connection.client.batch_execute(&setup).await?;
            let build = connection.client.build_transaction();
            let build = build.isolation_level(tokio_postgres::IsolationLevel::RepeatableRead).read_only(true);
            let transaction = build.start().await?;
            let mut audited = Audited::default();
            objects(&transaction, tell, &mut audited).await?;
            subjects(&transaction, tell, &mut audited).await?;
            leftovers(&transaction, tell).await?;
            agree::rows_of_every_kind(&transaction, tell, &mut audited).await?;
            trees::orders(&transaction, tell).await?;
            tell(Finding::Progress(audited.rows));
            Ok(audited)
        };
        auditing.await.map_err(|error: Error| unavailable(&error))
    }

    /// Takes away rows of a total that is not spread.
    pub(crate) async fn drop_leftovers(&self, total: &TotalKey) -> Result<bool, StoreError> {
        let mut named = ObjectTotals::default();
        named.push(total, 0);
        let mut connection = self.connector().connect(Box::new(|_| {})).await?;
        let dropping = async {
            let transaction = connection.client.transaction().await?;
            let dropped = transaction.execute(DROP_LEFTOVERS, &named.keys()).await?;
            transaction.commit().await.map(|()| dropped > 0)
        };
        dropping.await.map_err(|error: Error| unavailable(&error))
    }
}

/// What somebody else put there is told of, and does not keep anything else from being mended.
pub(crate) fn unreadable(tell: Tell<'_>, table: &str, name: &[&str]) {
    tell(Finding::Stray {
        found: format!("a row of {table} with a name that Tally does not give: {name:?}"),
        edge: None,
    });
}

async fn objects(transaction: &Transaction<'_>, tell: Tell<'_>, audited: &mut Audited) -> Result<(), Error> {
    let mut from = String::new();
    loop {
        let end = transaction.query_one(RANGE_END, &[&from, &RANGE_EDGES]).await?;
        let end: Option<String> = end.get(0);
        for row in transaction.query(OBJECTS, &[&from, &end]).await? {
            if let (Some(edges), Some(totals)) = (row.get::<_, Option<i64>>(5), row.get::<_, Option<i64>>(6)) {
                audited.edges += edges.unsigned_abs();
                audited.totals += totals.unsigned_abs();
                continue;
            }
            match total(row.get(0), row.get(1), row.get(2)) {
                Some(total) => tell(Finding::Drift { total, stored: row.get(3), counted: row.get(4) }),
                None => unreadable(tell, "object_total or edge", &[row.get(0), row.get(1), row.get(2)]),
            }
        }
        tell(Finding::Progress(audited.edges));
        match end {
            Some(end) => from = end,
            None => return Ok(()),
        }
    }
}

async fn subjects(transaction: &Transaction<'_>, tell: Tell<'_>, audited: &mut Audited) -> Result<(), Error> {
    let mut from = (String::new(), String::new());
    loop {
        let rows = transaction.query(SUBJECTS, &[&from.0, &from.1]).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        from = (last.get(0), last.get(1));
        audited.totals += rows.len() as u64;
        for row in rows {
            let (stored, counted): (i64, i64) = (row.get(2), row.get(3));
            let (subject, relation) = (SubjectId::new(row.get(0)), Name::new(row.get(1)));
            match (subject, relation) {
                _ if stored == counted => {}
                (Ok(subject), Ok(relation)) => {
                    tell(Finding::Drift { total: TotalKey::Subject { subject, relation }, stored, counted });
                }
                _ => unreadable(tell, "subject_total", &[row.get(0), row.get(1)]),
            }
        }
    }
}

async fn leftovers(transaction: &Transaction<'_>, tell: Tell<'_>) -> Result<(), Error> {
    for row in transaction.query(LEFTOVERS, &[]).await? {
        let (object, relation, kind): (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
        let (shard, n): (i16, i64) = (row.get(3), row.get(4));
        let found = format!("row {shard} of the total {object} {relation} {kind} holds {n}, and counts nowhere");
        match total(object, relation, kind) {
            Some(total) => tell(Finding::Leftover { found, total }),
            None => unreadable(tell, "object_total", &[object, relation, kind]),
        }
    }
    Ok(())
}

fn total(object: &str, relation: &str, kind: &str) -> Option<TotalKey> {
    let name = Name::new(relation).ok()?;
    if let Some(number) = TotalKey::from_number(kind, name.clone(), object) {
        return Some(number);
    }
    let (object, relation) = (ObjectId::new(object).ok()?, name);
    Some(match kind {
        "" => TotalKey::Object { object, relation },
        kind => TotalKey::Kind { object, relation, kind: Name::new(kind).ok()? },
    })
}
