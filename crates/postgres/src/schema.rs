//! Tables: made and brought up to date under a lock, forward only.

use tally_core::time::Stamp;
use tally_engine::StoreError;
use tokio_postgres::IsolationLevel;

use crate::Postgres;
use crate::connection::{Connection, within};
use crate::error::unavailable;

/// Every migration in its order; a released one is never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_tables.sql"),
    include_str!("../migrations/0002_counting.sql"),
    include_str!("../migrations/0003_boards_say_how_they_are_ranked.sql"),
    include_str!("../migrations/0004_orders.sql"),
    include_str!("../migrations/0005_what_is_due_is_in_partitions.sql"),
    include_str!("../migrations/0006_numbers_given_at_commit.sql"),
    include_str!("../migrations/0007_rooms.sql"),
    include_str!("../migrations/0008_signers.sql"),
];
/// The last of them.
pub(crate) const NEWEST: i32 = MIGRATIONS.len() as i32;

/// The oldest PostgreSQL that has what is used here.
const OLDEST: i32 = 130_000;

/// What a database says of itself.
struct Server<'a> {
    version: i32,
    name: &'a str,
    replica: bool,
    read_only: bool,
    encoding: &'a str,
}

impl Server<'_> {
    /// Why Tally cannot work on it, and what to do.
    fn lacks(&self) -> Option<String> {
        let Self { version, name, replica, read_only, encoding } = *self;
        if version < OLDEST {
            return Some(format!("PostgreSQL {name} is too old; Tally needs version 13 or newer"));
        }
        if replica {
            return Some("this PostgreSQL is a read-only replica; give the URL of the primary".into());
        }
        if read_only {
            return Some("this database takes no writes: its default_transaction_read_only is on".into());
        }
        (encoding != "UTF8").then(|| format!("the database is encoded in {encoding}; Tally needs one in UTF8"))
    }
}

impl Postgres {
    /// Makes the schema, or brings it up to date, and gives the newest stamp in it.
    pub(crate) async fn migrate(&self) -> Result<Stamp, StoreError> {
        let mut connection = self.connector().connect_raw(Box::new(|_| {})).await?;
        self.check_server(&connection).await?;
        // A migration may take as long as it needs.
        let applied = self.apply(&mut connection).await;
        applied.map_err(|error| unavailable(&error))?.map_or(Ok(()), Err)?;
        let sql = "DELETE FROM lane WHERE seen_at < now() - interval '1 day' AND stamp < (SELECT max(stamp) FROM lane)";
        self.ask(sql, &[]).await?;
        let newest = self.ask("SELECT coalesce(max(stamp), 0) FROM lane", &[]).await?;
        let newest: i64 = newest.first().map_or(0, |row| row.get(0));
        Ok(Stamp(newest.unsigned_abs()))
    }

    pub(crate) async fn check_server(&self, connection: &Connection) -> Result<(), StoreError> {
        let sql = "SELECT current_setting('server_version_num')::int4, current_setting('server_version'),
                          pg_is_in_recovery(), current_setting('transaction_read_only')::bool,
                          current_setting('server_encoding')";
        let row = within(self.timeout(), connection.client.query_one(sql, &[])).await?;
        let server = Server {
            version: row.get(0),
            name: row.get(1),
            replica: row.get(2),
            read_only: row.get(3),
            encoding: row.get(4),
        };
        server.lacks().map_or(Ok(()), |lack| Err(StoreError::Broken(lack)))
    }

    async fn apply(&self, connection: &mut Connection) -> Result<Option<StoreError>, tokio_postgres::Error> {
        let schema = &self.options().schema;
        let known = MIGRATIONS.len();
        if let Some(version) = version(connection, schema).await? {
            match usize::try_from(version).unwrap_or(0) {
                // Nothing to do: a role that may only read and write rows is enough.
                version if version == known => return Ok(None),
                version if version > known => return Ok(Some(newer(schema, version))),
                _ => {}
            }
        }
        // What was done while this one waited for the lock has to be seen.
        let build = connection.client.build_transaction().isolation_level(IsolationLevel::ReadCommitted);
        let transaction = build.start().await?;
        transaction.execute("SELECT pg_advisory_xact_lock($1, -1)", &[&self.lock_space()]).await?;
        transaction
            .batch_execute(&format!(
                "DO $$ BEGIN
                     IF to_regnamespace('{schema}') IS NULL THEN CREATE SCHEMA {schema}; END IF;
                 END $$;
                 SET LOCAL search_path = {schema};
                 CREATE TABLE IF NOT EXISTS migration (version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
            ))
            .await?;
        let done: i32 = transaction.query_one("SELECT coalesce(max(version), 0) FROM migration", &[]).await?.get(0);
        let done = usize::try_from(done).unwrap_or(0);
        if done > known {
            return Ok(Some(newer(schema, done)));
        }
        for (number, sql) in MIGRATIONS.iter().enumerate().skip(done) {
            tracing::info!(schema, migration = number + 1, "bringing the tables up to date");
            transaction.batch_execute(sql).await?;
            let number = i32::try_from(number + 1).unwrap_or(i32::MAX);
            transaction.execute("INSERT INTO migration (version) VALUES ($1)", &[&number]).await?;
        }
        transaction.commit().await?;
        Ok(None)
    }
}

/// The newest migration that was applied, or none where there are no tables.
pub(crate) async fn version(connection: &Connection, schema: &str) -> Result<Option<i32>, tokio_postgres::Error> {
    let there = "SELECT to_regclass($1) IS NOT NULL";
    let there: bool = connection.client.query_one(there, &[&format!("{schema}.migration")]).await?.get(0);
    if !there {
        return Ok(None);
    }
    let sql = format!("SELECT coalesce(max(version), 0) FROM {schema}.migration");
    Ok(Some(connection.client.query_one(&sql, &[]).await?.get(0)))
}

fn newer(schema: &str, found: usize) -> StoreError {
    let known = MIGRATIONS.len();
    StoreError::Broken(format!(
        "the schema {schema} is at version {found}, and this release knows up to {known}: use a newer release of Tally"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Server<'_> =
        Server { version: 130_000, name: "13.0", replica: false, read_only: false, encoding: "UTF8" };

    #[test]
    fn a_server_that_lacks_something_is_told_what() {
        assert_eq!(GOOD.lacks(), None);
        for (server, word) in [
            (Server { version: 120_022, name: "12.22", ..GOOD }, "12.22 is too old"),
            (Server { replica: true, read_only: true, ..GOOD }, "primary"),
            (Server { read_only: true, ..GOOD }, "default_transaction_read_only"),
            (Server { encoding: "LATIN1", ..GOOD }, "LATIN1"),
        ] {
            let lack = server.lacks().unwrap();
            assert!(lack.contains(word), "{lack}");
        }
    }
}
