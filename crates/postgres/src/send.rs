//! The statements of a commit, in the order in which it takes its locks, sent at once.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::Poll;

use tally_core::time::Stamp;
use tally_engine::CommitError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use crate::cells::{Table, columns, tables};
use crate::connection::{Connection, Lane};
use crate::error::{is_lost, refused};
use crate::ordered::InOrder;
use crate::plan::Plan;
use crate::totals::{
    ADD_TO_OBJECTS, ADD_TO_SHARDS, ADD_TO_SUBJECTS, DROP_EMPTY_TOTALS, DROP_ENDED, HOLD_ENDED, HOLD_OBJECTS,
    ObjectTotals,
};
use crate::{fence, numbers, tree};

/// Comes first, so that whoever wants to know what became of this commit waits for it here.
const TAKE_LANE: &str = "
WITH moved AS (
    UPDATE lane SET seq = $2::int8, stamp = greatest(stamp, $3::int8), seen_at = now()
    WHERE id = $1 AND seq = $2::int8 - 1 AND NOT fenced RETURNING 1)
SELECT expect((SELECT count(*) FROM moved) = 1)";

const PUT_EDGES: &str = "
INSERT INTO edge (object, relation, subject, created_at, kind, meta, hidden)
SELECT w.object, w.relation, w.subject, w.created_at, w.kind, w.meta::json, w.hidden
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::bool[])
    AS w(object, relation, subject, created_at, kind, meta, hidden)";

const HOLD_EDGES: &str = "
SELECT expect((SELECT count(*) FROM (
    SELECT 1
    FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::bool[])
        AS w(object, relation, subject, created_at, kind, meta, hidden)
    JOIN edge t ON t.object = w.object AND t.relation = w.relation AND t.subject = w.subject
    WHERE t.created_at = w.created_at AND t.kind IS NOT DISTINCT FROM w.kind
      AND t.meta::text IS NOT DISTINCT FROM w.meta AND t.hidden = w.hidden
    FOR UPDATE OF t) held) = cardinality($1))";

const CHANGE_EDGES: &str = "
UPDATE edge t SET created_at = w.created_at, kind = w.kind, meta = w.meta::json, hidden = w.hidden
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::bool[])
    AS w(object, relation, subject, created_at, kind, meta, hidden)
WHERE t.object = w.object AND t.relation = w.relation AND t.subject = w.subject";

const REMOVE_EDGES: &str = "
DELETE FROM edge t USING unnest($1::text[], $2::text[], $3::text[]) AS w(object, relation, subject)
WHERE t.object = w.object AND t.relation = w.relation AND t.subject = w.subject";

/// A statement of the transaction.
struct Step<'a> {
    sql: Cow<'static, str>,
    values: Vec<&'a (dyn ToSql + Sync)>,
    /// Whether it adds to totals, which may be spread otherwise than was believed.
    adds: bool,
}

/// A table, and the statement for its rows that carry numbers.
type Numbered = (Table, fn(Table) -> String);

/// How sending it ended.
pub(crate) enum Sent {
    /// Committed; the answer of each step.
    Done(Vec<Vec<Row>>),
    /// Certainly not committed.
    Refused(CommitError),
    /// Nor this, since a total is spread otherwise than was believed.
    Spread,
    /// Neither this nor anything else can be committed on this lane: its row is gone.
    NoLane,
    /// Nobody knows.
    Lost(String),
    /// Nobody knows, and doing it again would take as long.
    TooSlow,
}

pub(crate) async fn send(connection: &mut Connection, plan: &Plan<'_>, lane: Lane, stamp: Stamp, space: i32) -> Sent {
    let stamp = i64::try_from(stamp.0).unwrap_or(i64::MAX);
    let (fences, turns) = (plan.fences.split(), plan.turns());
    let cells: Vec<[Vec<Vec<Option<&str>>>; 6]> = tables()
        .map(|(kind, table)| {
            let work = &plan.tables[kind as usize];
            let (keys, width) = (table.keys(), table.width());
            [
                columns(&work.absent, keys),
                columns(work.locked(), keys),
                columns(&work.held, width),
                columns(&work.changed, 2 * width - keys),
                columns(&work.gone, width),
                columns(&work.new, table.width_of_new()),
            ]
        })
        .collect();
    let numbered: Vec<(Numbered, Vec<Vec<Option<&str>>>)> =
        plan.numbered().map(|(table, rows, sql)| ((table, sql), columns(rows, table.width_of_new()))).collect();
    let mut steps = vec![Step { sql: TAKE_LANE.into(), values: vec![&lane.id, &lane.seq, &stamp], adds: false }];
    let mut step = |sql: Cow<'static, str>, values: Vec<_>| steps.push(Step { adds: is_addition(&sql), sql, values });
    if !plan.fences.is_empty() {
        step(fence::TAKE.into(), fence::values(&space, &fences));
    }
    for ((kind, table), cells) in tables().zip(&cells) {
        let work = &plan.tables[kind as usize];
        let work = [
            (work.absent.as_slice(), Table::absent as fn(Table) -> String),
            (work.locked(), Table::lock),
            (&work.held, Table::hold),
            (&work.changed, Table::change),
            (&work.gone, Table::delete),
            (&work.new, Table::insert),
        ];
        for ((rows, sql), columns) in work.into_iter().zip(cells) {
            if !rows.is_empty() {
                step(sql(table).into(), columns.iter().map(|column| column as _).collect());
            }
        }
    }
    for (edges, sql) in [(&plan.new, PUT_EDGES), (&plan.held, HOLD_EDGES), (&plan.changed, CHANGE_EDGES)] {
        if !edges.is_empty() {
            step(sql.into(), edges.values());
        }
    }
    if !plan.gone.is_empty() {
        step(REMOVE_EDGES.into(), plan.gone.values());
    }
    if !plan.ended_subjects.is_empty() {
        step(DROP_EMPTY_TOTALS.into(), vec![&plan.ended_subjects]);
    }
    if !plan.ended_objects.is_empty() {
        for sql in HOLD_ENDED.into_iter().chain([DROP_ENDED]) {
            step(sql.into(), vec![&plan.ended_objects]);
        }
    }
    if !plan.subjects.is_empty() {
        step(ADD_TO_SUBJECTS.into(), plan.subjects.values());
    }
    if !plan.locked_totals.is_empty() {
        step(ADD_TO_OBJECTS.into(), plan.locked_totals.keys().into_iter().chain([plan.locked_totals.by()]).collect());
    }
    if !plan.held_totals.is_empty() {
        let values = plan.held_totals.keys().into_iter().chain([plan.held_totals.expected()]);
        step(HOLD_OBJECTS.into(), values.collect());
    }
    if !plan.objects.is_empty() {
        step(ADD_TO_OBJECTS.into(), plan.objects.keys().into_iter().chain([plan.objects.by()]).collect());
    }
    if !plan.shards.is_empty() {
        let values = plan.shards.keys().into_iter().chain([plan.shards.shards(), plan.shards.by()]);
        step(ADD_TO_SHARDS.into(), values.collect());
    }
    if !turns.0.is_empty() {
        step(fence::TAKE.into(), fence::values(&space, &turns));
    }
    if !plan.shards.is_empty() {
        step(format!("SELECT {}", ObjectTotals::sums(1)).into(), plan.shards.keys().to_vec());
    }
    if !plan.nodes.is_empty() {
        step(tree::put_roots().into(), plan.nodes.names());
        step(tree::add_to_nodes().into(), plan.nodes.values());
    }
    if !plan.numbers.is_empty() {
        step(numbers::TAKE.into(), plan.numbers.values(&lane.id));
    }
    for ((table, sql), columns) in &numbered {
        step(sql(*table).into(), columns.iter().map(|column| column as _).collect());
    }
    // Last, since rows that carry numbers stand in orders too.
    for (kind, points) in plan.ranks.kinds() {
        if let Some(standing) = InOrder::of(kind) {
            step(tree::tell_ranks(standing).into(), points.at_commit(kind));
        }
    }
    run(connection, &steps).await
}

fn is_addition(sql: &str) -> bool {
    [ADD_TO_OBJECTS, ADD_TO_SHARDS].contains(&sql)
}

/// Sends a transaction, all of it at once.
async fn run(connection: &mut Connection, steps: &[Step<'_>]) -> Sent {
    let mut prepared = Vec::with_capacity(steps.len());
    for step in steps {
        match connection.statement(&step.sql).await {
            Ok(statement) => prepared.push(statement),
            Err(error) => return Sent::Refused(refused(&error)),
        }
    }
    let client = &connection.client;
    let simple = |sql: &'static str| async move { client.batch_execute(sql).await.map(|()| Vec::new()) };
    let mut questions: Vec<Asked<'_>> = vec![Box::pin(simple("BEGIN"))];
    for (step, statement) in steps.iter().zip(&prepared) {
        questions.push(Box::pin(client.query(statement, &step.values)));
    }
    questions.push(Box::pin(simple("COMMIT")));
    let mut answers = in_order(questions).await;
    let committed = answers.pop();
    let failed_at = answers.iter().position(Result::is_err);
    let failed = failed_at.and_then(|place| answers[place].as_ref().err());
    // The first answer is that of BEGIN.
    let is_addition = failed_at.and_then(|place| steps.get(place.checked_sub(1)?)).is_some_and(|step| step.adds);
    match (failed, committed) {
        (None, Some(Ok(_))) => {
            let answers = answers.into_iter().skip(1).map(Result::unwrap_or_default);
            Sent::Done(answers.collect())
        }
        (Some(error), Some(Ok(_))) if answers[1].is_err() && refused(error) == CommitError::Conflict => Sent::NoLane,
        (Some(error), Some(Ok(_))) if is_addition && refused(error) == CommitError::Conflict => Sent::Spread,
        // The database has answered COMMIT, and a transaction that failed is taken back by it.
        (Some(error), Some(Ok(_))) => Sent::Refused(refused(error)),
        (None, Some(Err(error))) if !is_lost(&error) => Sent::Refused(refused(&error)),
        (error, _) => Sent::Lost(error.map_or_else(|| "the connection ended".into(), ToString::to_string)),
    }
}

type Asked<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'a>>;

/// Waits for all, each of them first asked in its turn: a question is sent when it is first polled.
async fn in_order(mut questions: Vec<Asked<'_>>) -> Vec<Result<Vec<Row>, Error>> {
    let mut answers: Vec<Option<Result<Vec<Row>, Error>>> = questions.iter().map(|_| None).collect();
    std::future::poll_fn(move |cx| {
        for (question, answer) in questions.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let Poll::Ready(ready) = question.as_mut().poll(cx)
            {
                *answer = Some(ready);
            }
        }
        if answers.iter().all(Option::is_some) {
            return Poll::Ready(answers.iter_mut().filter_map(Option::take).collect());
        }
        Poll::Pending
    })
    .await
}
