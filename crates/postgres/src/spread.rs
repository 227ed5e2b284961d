//! Hot totals: which of them several servers add to at once, and over how many rows they are spread.
//!
//! A row takes one commit at a time. A server adds to a total once a batch, however many likes that
//! is, so one row is enough for one server. When a total keeps moving between two commits of this
//! server, others are waiting for the same row, and it is spread: 10, 100 or 1,000 rows by how many
//! commits a second it takes. Its count is the sum; when the others stop, it is folded up again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tally_core::rows::{Changes, TotalKey};
use tally_engine::StoreError;
use tokio_postgres::types::ToSql;

use crate::Postgres;
use crate::error::unavailable;
use crate::totals::{ObjectTotals, SPREAD};

/// Below this many in a batch, a total is not worth watching.
const BY_MIN: u64 = 4;
/// Totals that are watched at once; past it, all are forgotten and learnt again.
const WATCHED_MAX: usize = 1_024;
/// How long is looked before anything is concluded.
pub(crate) const WINDOW: Duration = Duration::from_secs(1);
/// Commits in a window before anything is concluded.
const COMMITS_MIN: u32 = 10;
/// Quiet windows before a total is folded up.
const QUIET_WINDOWS: u32 = 10;

/// What this server knows of hot totals.
pub(crate) struct Spread {
    watched: Mutex<HashMap<TotalKey, Watched>>,
    window: Duration,
}

struct Watched {
    shards: i16,
    /// What it was after our last commit.
    last: i64,
    since: Instant,
    last_used: Instant,
    commits: u32,
    /// Commits before which somebody else had added.
    moved: u32,
    quiet_windows: u32,
    /// Turns with every commit, so that all shards are used.
    turn: u16,
}

impl Spread {
    /// `window` is how long is looked before anything is concluded.
    pub(crate) fn new(window: Duration) -> Self {
        Self { watched: Mutex::default(), window }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<TotalKey, Watched>> {
        // Counters only; whatever a panic left is as good as any.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shard to add to, of a total that is spread.
    pub(crate) fn shard(&self, key: &TotalKey) -> Option<i16> {
        let mut watched = self.watched();
        let found = watched.get_mut(key).filter(|found| found.shards > 1)?;
        found.turn = found.turn.wrapping_mul(25_173).wrapping_add(13_849);
        Some((found.turn >> 1) as i16 % found.shards)
    }

    /// Takes note of a commit that added `by` and left `sum`. Says over how many shards the total
    /// should be spread, when that is not over as many as it is.
    pub(crate) fn used(&self, key: &TotalKey, by: i64, sum: i64) -> Option<i16> {
        let mut watched = self.watched();
        let Some(found) = watched.get_mut(key) else {
            if by.unsigned_abs() >= BY_MIN {
                if watched.len() >= WATCHED_MAX {
                    watched.clear();
                }
                watched.insert(key.clone(), Watched::new(1, sum));
            }
            return None;
        };
        found.commits += 1;
        found.moved += u32::from(sum - by != found.last);
        found.last = sum;
        found.last_used = Instant::now();
        found.conclude(found.last_used, self.window)
    }

    /// What this server believed of these totals was wrong: they are spread over so many rows.
    fn learn(&self, totals: impl Iterator<Item = (TotalKey, i16)>) {
        let mut watched = self.watched();
        for (key, shards) in totals {
            match watched.get_mut(&key) {
                Some(found) if shards == 1 && found.shards > 1 => _ = watched.remove(&key),
                Some(found) => found.shards = shards,
                None if shards > 1 => _ = watched.insert(key, Watched::new(shards, 0)),
                None => {}
            }
        }
    }

    /// Whether nobody here has added to it for a while. `None` if it is not spread, as far as is known.
    fn is_idle(&self, key: &TotalKey) -> Option<bool> {
        let watched = self.watched();
        let found = watched.get(key).filter(|found| found.shards > 1)?;
        Some(found.last_used.elapsed() >= self.window * QUIET_WINDOWS)
    }

    /// How many totals this server knows to be spread.
    pub(crate) fn spread_totals(&self) -> usize {
        self.watched().values().filter(|found| found.shards > 1).count()
    }
}

impl Watched {
    fn new(shards: i16, last: i64) -> Self {
        let now = Instant::now();
        Self { shards, last, since: now, last_used: now, commits: 0, moved: 0, quiet_windows: 0, turn: 1 }
    }

    fn conclude(&mut self, now: Instant, window_min: Duration) -> Option<i16> {
        let window = now.duration_since(self.since);
        if window < window_min || self.commits < COMMITS_MIN {
            return None;
        }
        let contended = self.moved * 2 >= self.commits;
        let per_second = f64::from(self.commits) / window.as_secs_f64();
        (self.since, self.commits, self.moved) = (now, 0, 0);
        if !contended {
            self.quiet_windows += 1;
            return (self.shards > 1 && self.quiet_windows >= QUIET_WINDOWS).then_some(1);
        }
        self.quiet_windows = 0;
        // Others commit to it about as often as this server does.
        Some(shards_for(2.0 * per_second)).filter(|wanted| *wanted > self.shards)
    }
}

/// How many rows so many commits a second need, where a row takes about a hundred.
fn shards_for(per_second: f64) -> i16 {
    match per_second {
        ..100.0 => 1,
        ..1_000.0 => 10,
        ..10_000.0 => 100,
        _ => 1_000,
    }
}

impl Postgres {
    /// Spreads a total over more rows, or folds it up, without losing a unit on the way. Happens by
    /// itself; tests ask for it.
    #[doc(hidden)]
    pub async fn resize(&self, key: &TotalKey, shards: i16) -> Result<(), StoreError> {
        let mut total = ObjectTotals::default();
        total.push(key, 0);
        let (connector, keys) = (self.connector(), total.keys());
        let mut connection = connector.connect(Box::new(|_| {})).await?;
        let resizing = async {
            let transaction = connection.client.transaction().await?;
            let now =
                transaction.query_opt(&format!("SELECT t.shards {ONE} AND t.shard = 0 FOR UPDATE OF t"), &keys).await?;
            let Some(now) = now.map(|row| row.get::<_, i16>(0)).filter(|now| *now != shards) else { return Ok(()) };
            let sql = if shards > now { GROW } else { FOLD };
            let values: Vec<&(dyn ToSql + Sync)> = keys.into_iter().chain([&shards as &(dyn ToSql + Sync)]).collect();
            transaction.execute(sql, &values).await?;
            transaction.execute(SET_SHARDS, &values).await?;
            transaction.commit().await
        };
        match tokio::time::timeout(self.timeout(), resizing).await {
            Ok(done) => done.map_err(|error| unavailable(&error))?,
            Err(_) => return Err(StoreError::Unavailable("a total could not be spread in time".into())),
        }
        tracing::info!(total = ?key, shards, "a total is spread over so many rows now");
        self.spread.watched().insert(key.clone(), Watched::new(shards, 0));
        Ok(())
    }

    /// A commit met totals that are not spread as this server believes: looks how they are.
    pub(crate) async fn learn_spread(&self, changes: &Changes) {
        let mut totals = ObjectTotals::default();
        let keys: Vec<&TotalKey> =
            changes.adds.iter().map(|(key, _)| key).filter(|key| !matches!(key, TotalKey::Subject { .. })).collect();
        keys.iter().for_each(|key| totals.push(key, 0));
        // What is not known now is met as a conflict once more.
        let Ok(rows) = self.ask(SPREAD, &totals.keys()).await else { return };
        let mut shards = vec![1; keys.len()];
        for row in rows {
            let place = usize::try_from(row.get::<_, i64>(0) - 1).ok();
            if let Some(found) = place.and_then(|place| shards.get_mut(place)) {
                *found = row.get(1);
            }
        }
        self.spread.learn(keys.into_iter().cloned().zip(shards));
    }

    /// Spreads a total, and folds it up when nobody adds to it any more: then there is no commit
    /// that could notice.
    pub(crate) async fn spread_while_hot(self, key: TotalKey, shards: i16) {
        if let Err(error) = self.resize(&key, shards).await {
            return tracing::warn!(%error, "a hot total could not be spread; it is tried again");
        }
        loop {
            tokio::time::sleep(self.spread.window * QUIET_WINDOWS).await;
            match self.spread.is_idle(&key) {
                None => return,
                Some(false) => {}
                Some(true) => match self.resize(&key, 1).await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(%error, "a total could not be folded up; it is tried again"),
                },
            }
        }
    }
}

const ONE: &str = "FROM object_total t, unnest($1::text[], $2::text[], $3::text[]) AS w(object, relation, kind)
    WHERE t.object = w.object AND t.relation = w.relation AND t.kind = w.kind";

const GROW: &str = "
INSERT INTO object_total (object, relation, kind, shard, n)
SELECT w.object, w.relation, w.kind, s.shard, 0
FROM unnest($1::text[], $2::text[], $3::text[]) AS w(object, relation, kind), generate_series(1, $4::int2 - 1) AS s(shard)
ON CONFLICT DO NOTHING";

const FOLD: &str = "
WITH gone AS (
    DELETE FROM object_total t USING unnest($1::text[], $2::text[], $3::text[]) AS w(object, relation, kind)
    WHERE t.object = w.object AND t.relation = w.relation AND t.kind = w.kind AND t.shard >= $4 AND t.shard > 0
    RETURNING t.n)
UPDATE object_total t SET n = t.n + (SELECT coalesce(sum(n), 0)::int8 FROM gone)
FROM unnest($1::text[], $2::text[], $3::text[]) AS w(object, relation, kind)
WHERE t.object = w.object AND t.relation = w.relation AND t.kind = w.kind AND t.shard = 0";

const SET_SHARDS: &str = "
UPDATE object_total t SET shards = $4
FROM unnest($1::text[], $2::text[], $3::text[]) AS w(object, relation, kind)
WHERE t.object = w.object AND t.relation = w.relation AND t.kind = w.kind AND t.shard = 0";

#[cfg(test)]
mod tests {
    use super::*;
    use tally_core::{Name, ObjectId};

    fn key() -> TotalKey {
        TotalKey::Object { object: ObjectId::new("post:1").unwrap(), relation: Name::new("like").unwrap() }
    }

    #[test]
    fn as_many_rows_as_the_commits_need() {
        assert_eq!([50.0, 100.0, 999.0, 5_000.0, 50_000.0].map(shards_for), [1, 10, 10, 100, 1_000]);
    }

    #[test]
    fn a_total_that_others_move_is_spread_and_a_quiet_one_folded_up() {
        let mut watched = Watched::new(1, 0);
        let start = watched.since;
        (watched.commits, watched.moved) = (200, 150);
        assert_eq!(watched.conclude(start + WINDOW, WINDOW), Some(10));
        (watched.commits, watched.moved) = (200, 10);
        assert_eq!(watched.conclude(start + 2 * WINDOW, WINDOW), None, "one row, and nobody else on it");
        watched.shards = 10;
        for window in 3..1 + QUIET_WINDOWS {
            watched.commits = 200;
            assert_eq!(watched.conclude(start + window * WINDOW, WINDOW), None, "it has not been quiet for long");
        }
        watched.commits = 200;
        assert_eq!(watched.conclude(start + 20 * WINDOW, WINDOW), Some(1));
    }

    #[test]
    fn only_what_is_hot_is_watched() {
        let spread = Spread::new(WINDOW);
        assert_eq!(spread.used(&key(), 1, 1), None);
        assert_eq!(spread.watched().len(), 0);
        assert_eq!(spread.used(&key(), 4, 5), None);
        assert_eq!(spread.watched().len(), 1);
        assert_eq!(spread.shard(&key()), None);
    }

    #[test]
    fn a_total_that_nobody_uses_is_idle_whatever_came_last() {
        let spread = Spread::new(Duration::ZERO);
        assert_eq!(spread.is_idle(&key()), None);
        spread.watched().insert(key(), Watched::new(10, 0));
        assert_eq!(spread.used(&key(), 1, 1), None);
        assert_eq!(spread.is_idle(&key()), Some(true));
        let spread = Spread::new(WINDOW);
        spread.watched().insert(key(), Watched::new(10, 0));
        assert_eq!(spread.is_idle(&key()), Some(false));
    }

    #[test]
    fn every_shard_is_used() {
        let spread = Spread::new(WINDOW);
        spread.watched().insert(key(), Watched::new(10, 0));
        let used: std::collections::BTreeSet<Option<i16>> = (0..1_000).map(|_| spread.shard(&key())).collect();
        assert_eq!(used, (0..10).map(Some).collect());
        spread.learn([(key(), 1)].into_iter());
        assert_eq!(spread.shard(&key()), None);
    }
}
