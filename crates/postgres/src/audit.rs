//! Recounts everything as of one moment: one transaction that sees one snapshot, a range of objects
//! at a time, so that nothing is held in memory and there is progress to tell.
//!
//! Lists are indexes of the edges here, so there is nothing in them that could stray.

use tally_core::rows::TotalKey;
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::{Audited, Finding, StoreError};
use tokio_postgres::{Error, Transaction};

use crate::Postgres;
use crate::error::{unavailable, unreadable};

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
    SELECT object, relation, kind, sum(n)::int8 AS n FROM object_total
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

type Tell<'a> = &'a mut (dyn FnMut(Finding) + Send);

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
            if let Err(error) = objects(&transaction, tell, &mut audited).await? {
                return Ok(Err(error));
            }
            if let Err(error) = subjects(&transaction, tell, &mut audited).await? {
                return Ok(Err(error));
            }
            tell(Finding::Progress(audited.edges));
            Ok(Ok(audited))
        };
        auditing.await.map_err(|error: Error| unavailable(&error))?
    }
}

type Checked = Result<Result<(), StoreError>, Error>;

async fn objects(transaction: &Transaction<'_>, tell: Tell<'_>, audited: &mut Audited) -> Checked {
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
                None => return Ok(Err(unreadable("the name of a total"))),
            }
        }
        tell(Finding::Progress(audited.edges));
        match end {
            Some(end) => from = end,
            None => return Ok(Ok(())),
        }
    }
}

async fn subjects(transaction: &Transaction<'_>, tell: Tell<'_>, audited: &mut Audited) -> Checked {
    let mut from = (String::new(), String::new());
    loop {
        let rows = transaction.query(SUBJECTS, &[&from.0, &from.1]).await?;
        let Some(last) = rows.last() else { return Ok(Ok(())) };
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
                _ => return Ok(Err(unreadable("the name of a subject's total"))),
            }
        }
    }
}

fn total(object: &str, relation: &str, kind: &str) -> Option<TotalKey> {
    let (object, relation) = (ObjectId::new(object).ok()?, Name::new(relation).ok()?);
    Some(match kind {
        "" => TotalKey::Object { object, relation },
        kind => TotalKey::Kind { object, relation, kind: Name::new(kind).ok()? },
    })
}
