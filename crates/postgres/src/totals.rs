//! Totals as columns, and the SQL that reads and adds to them.

use std::borrow::Cow;
use std::sync::LazyLock;

use tally_core::rows::{Number, TotalKey, TotalOf};
use tally_core::{Name, SubjectId};
use tokio_postgres::types::ToSql;

use crate::fence;

/// Totals of objects, counters and whatever else is counted in `object_total`, as arrays.
#[derive(Default)]
pub(crate) struct ObjectTotals<'a> {
    objects: Vec<Cow<'a, str>>,
    relations: Vec<&'a str>,
    kinds: Vec<&'a str>,
    shards: Vec<i16>,
    by: Vec<i64>,
    expected: Vec<Option<i64>>,
}

impl<'a> ObjectTotals<'a> {
    /// One to lock, and to check where something is expected of it.
    pub(crate) fn push_held(&mut self, total: &'a TotalKey, expected: Option<i64>) {
        self.push(total, 0);
        self.expected.push(expected);
    }

    /// What is expected of each.
    pub(crate) fn expected(&self) -> &(dyn ToSql + Sync) {
        &self.expected
    }

    /// A lock of its own for each: who tells a total that is spread over several rows holds it from before it is summed
    /// up until the commit, so that two never tell the same.
    pub(crate) fn turns(&self) -> impl Iterator<Item = i32> {
        let names = self.objects.iter().zip(&self.relations).zip(&self.kinds);
        names.map(|((object, relation), kind)| fence::turn(&[object.as_bytes(), relation.as_bytes(), kind.as_bytes()]))
    }

    pub(crate) fn push(&mut self, total: &'a TotalKey, by: i64) {
        self.push_to_shard(total, 0, by);
    }

    pub(crate) fn push_to_shard(&mut self, total: &'a TotalKey, shard: i16, by: i64) {
        let (object, relation, kind) = match total.of() {
            TotalOf::Object(object, relation) => (object.as_str().into(), relation, ""),
            TotalOf::Kind(object, relation, kind) => (object.as_str().into(), relation, kind.as_str()),
            TotalOf::Number(number) => (number.key, number.name, number.mark),
            TotalOf::Subject(..) => return,
        };
        self.objects.push(object);
        self.relations.push(relation.as_str());
        self.kinds.push(kind);
        self.shards.push(shard);
        self.by.push(by);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The three arrays that name them.
    pub(crate) fn keys(&self) -> [&(dyn ToSql + Sync); 3] {
        [&self.objects, &self.relations, &self.kinds]
    }

    pub(crate) fn shards(&self) -> &(dyn ToSql + Sync) {
        &self.shards
    }

    pub(crate) fn by(&self) -> &(dyn ToSql + Sync) {
        &self.by
    }

    /// SQL for a list of them, named by three parameters from `$first` on. Most have one shard, and
    /// that one says so.
    pub(crate) fn sums(first: usize) -> String {
        format!(
            "ARRAY(SELECT coalesce((
                SELECT CASE t.shards WHEN 1 THEN t.n ELSE {SUM} END
                FROM object_total t
                WHERE t.object = w.object AND t.relation = w.relation AND t.kind = w.kind AND t.shard = 0), 0)
             FROM unnest(${}::text[], ${}::text[], ${}::text[]) AS w(object, relation, kind))",
            first,
            first + 1,
            first + 2
        )
    }
}

/// All shards of `w`.
const SUM: &str = "(SELECT sum(s.n)::int8 FROM object_total s
    WHERE s.object = w.object AND s.relation = w.relation AND s.kind = w.kind)";

/// Counters behind a key, in their order, but those at 0.
pub(crate) static COUNTERS_BEHIND: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT name, key, n FROM (
             SELECT w.relation AS name, w.object AS key, CASE w.shards WHEN 1 THEN w.n ELSE {SUM} END AS n
             FROM object_total w
             WHERE w.kind = '{}' AND w.shard = 0 AND (w.relation, w.object) > ($1, $2)
             ORDER BY w.relation, w.object) AS counter
         WHERE n <> 0 LIMIT $3",
        Number::COUNTER
    )
});

/// Locks totals until the commit, in the order in which others add to them, and checks those that were decided on (the
/// others have no expectation). One that is not there cannot be locked, so 0 is added to each first.
pub(crate) const HOLD_OBJECTS: &str = "
SELECT expect((
    SELECT coalesce(bool_and(coalesce(held.n, 0) = w.expected), true)
    FROM unnest($1::text[], $2::text[], $3::text[], $4::int8[]) AS w(object, relation, kind, expected)
    LEFT JOIN (
        SELECT l.object, l.relation, l.kind, sum(l.n)::int8 AS n
        FROM (
            SELECT t.object, t.relation, t.kind, t.n
            FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k(object, relation, kind, i)
            JOIN object_total t ON t.object = k.object AND t.relation = k.relation AND t.kind = k.kind
            ORDER BY k.i, t.shard
            FOR UPDATE OF t) l
        GROUP BY l.object, l.relation, l.kind) held
    ON held.object = w.object AND held.relation = w.relation AND held.kind = w.kind))";

/// Adds to totals that have one row, and gives each as it is now: its row is locked until the commit, so nobody else is
/// told the same. One that has been spread meanwhile is a conflict, and is met as such the next time.
pub(crate) const ADD_TO_OBJECTS: &str = "
WITH put AS (
    INSERT INTO object_total AS t (object, relation, kind, n)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::int8[])
    ON CONFLICT (object, relation, kind, shard) DO UPDATE SET n = t.n + excluded.n
    RETURNING t.shards, t.n)
SELECT array_agg(n), expect(bool_and(shards = 1)) FROM put";

/// Which of these totals are spread, over how many rows.
pub(crate) const SPREAD: &str = "
SELECT w.i, t.shards
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w(object, relation, kind, i)
JOIN object_total t ON t.object = w.object AND t.relation = w.relation AND t.kind = w.kind
WHERE t.shard = 0 AND t.shards > 1";

/// Adds to shards of totals that are spread, which must be there.
pub(crate) const ADD_TO_SHARDS: &str = "
WITH put AS (
    UPDATE object_total t SET n = t.n + w.by
    FROM unnest($1::text[], $2::text[], $3::text[], $4::int2[], $5::int8[]) AS w(object, relation, kind, shard, by)
    WHERE t.object = w.object AND t.relation = w.relation AND t.kind = w.kind AND t.shard = w.shard
    RETURNING 1)
SELECT expect(count(*) = cardinality($1)) FROM put";

/// Totals of subjects, as arrays.
#[derive(Default)]
pub(crate) struct SubjectTotals<'a> {
    subjects: Vec<&'a str>,
    relations: Vec<&'a str>,
    by: Vec<i64>,
    expected: Vec<Option<i64>>,
}

impl<'a> SubjectTotals<'a> {
    /// `expected` is what the total must still be, where a decision stands on it.
    pub(crate) fn push(&mut self, subject: &'a SubjectId, relation: &'a Name, by: i64, expected: Option<i64>) {
        self.subjects.push(subject.as_str());
        self.relations.push(relation.as_str());
        self.by.push(by);
        self.expected.push(expected);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    /// The two arrays that name them.
    pub(crate) fn keys(&self) -> [&(dyn ToSql + Sync); 2] {
        [&self.subjects, &self.relations]
    }

    pub(crate) fn subjects(&self) -> &[&'a str] {
        &self.subjects
    }

    pub(crate) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![&self.subjects, &self.relations, &self.by, &self.expected]
    }

    /// SQL for a list of them, named by two parameters from `$first` on; null where none is stored.
    pub(crate) fn stored(first: usize) -> String {
        format!(
            "ARRAY(SELECT (SELECT t.n FROM subject_total t WHERE t.subject = w.subject AND t.relation = w.relation)
             FROM unnest(${}::text[], ${}::text[]) AS w(subject, relation))",
            first,
            first + 1
        )
    }
}

/// Adds to those that are stored, and checks those that were decided on.
pub(crate) const ADD_TO_SUBJECTS: &str = "
WITH put AS (
    UPDATE subject_total t SET n = t.n + w.by
    FROM unnest($1::text[], $2::text[], $3::int8[], $4::int8[]) WITH ORDINALITY AS w(subject, relation, by, expected, i)
    WHERE t.subject = w.subject AND t.relation = w.relation
    RETURNING w.i, t.n, t.n - w.by = w.expected AS as_expected)
SELECT array_agg(i), array_agg(n),
       expect(count(*) FILTER (WHERE as_expected) = cardinality(array_remove($4::int8[], NULL))) FROM put";

/// Drops totals of subjects about whom nothing is known any more: nothing may be left that names one who was forgotten.
pub(crate) const DROP_EMPTY_TOTALS: &str = "
DELETE FROM subject_total t WHERE t.subject = ANY($1::text[]) AND t.n = 0
    AND NOT EXISTS (SELECT FROM edge e WHERE e.subject = t.subject AND e.relation = t.relation)";

/// Takes the totals of objects for ourselves: their first rows, so that nobody spreads them or folds them up, then all.
pub(crate) const HOLD_ENDED: [&str; 2] = [
    "SELECT FROM object_total t WHERE t.object = ANY($1::text[]) AND t.shard = 0
     ORDER BY t.object, t.relation, t.kind FOR UPDATE",
    "SELECT FROM object_total t WHERE t.object = ANY($1::text[])
     ORDER BY t.object, t.relation, t.kind, t.shard FOR UPDATE",
];

/// Drops all rows of those that are 0, which is what one that is not there is: nothing may be left that names an object
/// that was deleted.
pub(crate) const DROP_ENDED: &str = "
DELETE FROM object_total t
USING (SELECT object, relation, kind FROM object_total WHERE object = ANY($1::text[])
       GROUP BY object, relation, kind HAVING sum(n) = 0) AS w
WHERE t.object = w.object AND t.relation = w.relation AND t.kind = w.kind";

/// Counts the edges of subjects, and stores it. Nobody else adds meanwhile: see `fence`.
pub(crate) const COUNT_SUBJECTS: &str = "
INSERT INTO subject_total (subject, relation, n)
SELECT w.subject, w.relation,
       (SELECT count(*) FROM edge t WHERE t.subject = w.subject AND t.relation = w.relation AND NOT t.hidden)
     + (SELECT count(*) FROM edge t WHERE t.subject = w.subject AND t.relation = w.relation AND t.hidden)
FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::text[]) AS asked(subject, relation)) AS w
ON CONFLICT DO NOTHING";
