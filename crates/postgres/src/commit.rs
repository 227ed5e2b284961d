//! All or nothing, in one round trip: every statement of the transaction is sent at once, and one
//! that finds that something has moved ends it.

use tally_core::rows::{Changes, TotalKey};
use tally_core::view::Wants;
use tally_engine::{CommitError, Committed, Mark, Seen, StoreError};
use tokio_postgres::Row;

use crate::connection::{Connection, Lane, too_slow};
use crate::cut::Node;
use crate::plan::Plan;
use crate::send::{Sent, send};
use crate::{Postgres, materialize};

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
