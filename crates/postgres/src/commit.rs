//! All or nothing, in one round trip: every statement of the transaction is sent at once, and one
//! that finds that something has moved ends it.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::Poll;

use tally_core::rows::{Changes, TotalKey};
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_engine::{CommitError, Committed, Mark, Seen, StoreError};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use crate::cells::{Table, columns, tables};
use crate::connection::{Connection, Lane, too_slow};
use crate::cut::Node;
use crate::error::{is_lost, refused};
use crate::ordered::InOrder;
use crate::plan::Plan;
use crate::totals::{
    ADD_TO_OBJECTS, ADD_TO_SHARDS, ADD_TO_SUBJECTS, DROP_EMPTY_TOTALS, DROP_ENDED, HOLD_ENDED, HOLD_OBJECTS,
    ObjectTotals,
};
use crate::{Postgres, fence, materialize, numbers, tree};

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
enum Sent {
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

impl Postgres {
    pub(crate) async fn write(&self, seen: &Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        let plan = Plan::new(seen, changes, &self.spread)?;
        if !plan.unexplained.is_empty() {
            materialize::count(self, &plan.unexplained).await?;
        }
        let mut connection = self.connection().await?;
        let lane = match connection.lane {
            Some(lane) => lane,
            None => match self.open_lane(&mut connection).await {
                Ok(lane) => lane,
                Err(error) => {
                    self.discard(connection);
                    return Err(error.into());
                }
            },
        };
        let seq = lane.seq + 1;
        let sending = send(&mut connection, &plan, Lane { id: lane.id, seq }, changes.stamp, self.lock_space());
        let sent = match tokio::time::timeout(self.timeout(), sending).await {
            Ok(sent) => sent,
            Err(_) => Sent::TooSlow,
        };
        match sent {
            Sent::Done(answers) => {
                connection.lane = Some(Lane { id: lane.id, seq });
                Ok(self.read_told(&plan, seen, changes, &answers))
            }
            Sent::Refused(error) => Err(error),
            Sent::Spread => {
                drop(connection);
                self.learn_spread(changes).await;
                Err(CommitError::Conflict)
            }
            Sent::NoLane => {
                self.discard(connection);
                Err(CommitError::Conflict)
            }
            Sent::Lost(why) => {
                tracing::warn!(why, "the answer to a commit was lost; it is looked up");
                self.discard(connection);
                Box::pin(self.look_up(Lane { id: lane.id, seq }, seen, changes, &plan)).await
            }
            Sent::TooSlow => {
                self.discard(connection);
                let looking = Box::pin(self.look_up(Lane { id: lane.id, seq }, seen, changes, &plan));
                looking.await.map_err(|error| match error {
                    CommitError::Conflict => CommitError::Store(too_slow(self.timeout())),
                    error => error,
                })
            }
        }
    }

    /// A commit whose answer was lost: waits until it is over, and sees whether it is there.
    async fn look_up(
        &self,
        lane: Lane,
        seen: &Seen<'_>,
        changes: &Changes,
        plan: &Plan<'_>,
    ) -> Result<Committed, CommitError> {
        let numbers = self.was_committed(lane).await?.ok_or(CommitError::Conflict)?;
        let totals = changes.adds.iter().map(|(key, _)| key.clone()).collect();
        let numbers = plan.numbers.read(&numbers);
        let ranks = changes.standings(seen.view.told_ranks(), &numbers);
        let loaded = self.read(&Wants { totals, ranks, ..Wants::default() }).await?;
        Ok(Committed { mark: Mark::default(), totals: Some(loaded.totals), ranks: Some(loaded.ranks), numbers })
    }

    /// Watches how hot a total is, and spreads it behind the answer.
    fn note(&self, key: &TotalKey, by: i64, sum: i64) {
        if let Some(shards) = self.spread.used(key, by, sum) {
            tokio::spawn(self.clone().spread_while_hot(key.clone(), shards));
        }
    }

    /// Each total that was added to and each rank that was asked for, as it is now, and the numbers that were taken.
    fn read_told(&self, plan: &Plan<'_>, seen: &Seen<'_>, changes: &Changes, answers: &[Vec<Row>]) -> Committed {
        // A subject's total that is not stored is not known either, and nobody has asked for it.
        let mut totals: Vec<i64> =
            changes.adds.iter().map(|(key, _)| seen.view.final_total(key).unwrap_or_default()).collect();
        let mut answers = answers.iter().rev();
        let mut ranks = vec![0; seen.view.told_ranks().len()];
        for (_, points) in plan.ranks.kinds().rev() {
            let found: Vec<i64> = answers.next().map(|rows| rows[0].get(0)).unwrap_or_default();
            for (place, rank) in points.places.iter().zip(found) {
                // Behind those that are told are those that are checked.
                if let Some(told) = ranks.get_mut(*place) {
                    *told = rank.unsigned_abs();
                }
            }
        }
        // Rows that carry numbers, which tell nothing.
        answers.by_ref().take(plan.numbered().count()).for_each(drop);
        let mut answers = answers.map(|rows| &rows[0]);
        let mut numbers = Vec::new();
        if !plan.numbers.is_empty()
            && let Some(row) = answers.next()
        {
            numbers = plan.numbers.read(&row.get::<_, Vec<i64>>(0));
        }
        if !plan.nodes.is_empty() {
            if let Some(row) = answers.next() {
                self.tend(Node::read(row, plan.nodes.orders()));
            }
            // The roots, which tell nothing.
            answers.next();
        }
        if !plan.shards.is_empty() {
            let sums: Vec<i64> = answers.next().map(|row| row.get(0)).unwrap_or_default();
            for (place, sum) in plan.shard_places.iter().zip(sums) {
                let (key, by) = &changes.adds[*place];
                self.note(key, *by, sum);
                totals[*place] = sum;
            }
        }
        // The turns, and the addition to what is spread.
        let untold = usize::from(!plan.turns().0.is_empty()) + usize::from(!plan.shards.is_empty());
        answers.by_ref().take(untold).for_each(drop);
        if !plan.objects.is_empty()
            && let Some(row) = answers.next()
        {
            for (place, sum) in plan.object_places.iter().zip(row.get::<_, Vec<i64>>(0)) {
                let (key, by) = &changes.adds[*place];
                self.note(key, *by, sum);
                totals[*place] = sum;
            }
        }
        // What was held, which tells nothing.
        let holds = usize::from(!plan.held_totals.is_empty()) + usize::from(!plan.locked_totals.is_empty());
        answers.by_ref().take(holds).for_each(drop);
        if !plan.subjects.is_empty()
            && let Some(row) = answers.next()
        {
            let (places, sums): (Option<Vec<i64>>, Option<Vec<i64>>) = (row.get(0), row.get(1));
            for (place, sum) in places.unwrap_or_default().into_iter().zip(sums.unwrap_or_default()) {
                let place = usize::try_from(place - 1).ok().and_then(|place| plan.subject_places.get(place).copied());
                if let Some(Some(place)) = place {
                    totals[place] = sum;
                }
                if sum < 0 {
                    tracing::error!(sum, "a subject's total fell below zero; run tally verify --repair");
                }
            }
        }
        Committed { mark: Mark::default(), totals: Some(totals), ranks: Some(ranks), numbers }
    }
}

async fn send(connection: &mut Connection, plan: &Plan<'_>, lane: Lane, stamp: Stamp, space: i32) -> Sent {
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
        plan.numbered().map(|(table, rows, sql)| ((table, sql), columns(rows, table.width()))).collect();
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

impl Postgres {
    async fn open_lane(&self, connection: &mut Connection) -> Result<Lane, StoreError> {
        let lane = Lane { id: crate::random(), seq: 0 };
        let sql = "INSERT INTO lane (id, seq, stamp) VALUES ($1, 0, 0)";
        crate::connection::within(self.timeout(), connection.query(sql, &[&lane.id])).await?;
        connection.lane = Some(lane);
        Ok(lane)
    }

    /// The numbers of the lane's last commit, if it came as far as this one. Nothing more is committed on it afterwards, so
    /// that one which is still on its way to the database does not come after the answer.
    async fn was_committed(&self, lane: Lane) -> Result<Option<Vec<i64>>, StoreError> {
        let sql = "UPDATE lane SET fenced = true WHERE id = $1 RETURNING seq, coalesce(numbers, '{}')";
        let mut error = StoreError::Unavailable("PostgreSQL cannot be reached".into());
        let looking = async {
            loop {
                match self.ask(sql, &[&lane.id]).await {
                    Ok(rows) => {
                        let row = rows.first().filter(|row| row.get::<_, i64>(0) >= lane.seq);
                        return row.map(|row| row.get(1));
                    }
                    Err(failed) => error = failed,
                }
                tokio::time::sleep(LOOK_UP_EVERY).await;
            }
        };
        if let Ok(committed) = tokio::time::timeout(self.timeout(), looking).await {
            return Ok(committed);
        }
        let why = format!("whether this was done is not known, since its answer was lost: {error}");
        Err(StoreError::Unavailable(why))
    }
}

/// A database that is being restarted is asked again this soon.
const LOOK_UP_EVERY: std::time::Duration = std::time::Duration::from_millis(200);
