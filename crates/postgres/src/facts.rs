//! What a person wants to know of the database: for `tally doctor`.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tally_engine::StoreError;
use tokio_postgres::Row;

use crate::Postgres;
use crate::connection::{Connection, within};
use crate::schema;

/// What was found out about a database, on one connection and without changing anything.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Facts {
    /// How long one question took, there and back.
    pub round_trip: Duration,
    /// PostgreSQL's version, as it is written.
    pub version: String,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
    /// Whether the connection leaves the machine.
    pub is_far: bool,
    /// Who we are there.
    pub role: String,
    /// Why Tally cannot work on it, such as on a read-only replica.
    pub lacks: Option<String>,
    /// How far its clock is ahead of this machine's; behind is negative.
    pub clock_ahead_ms: i64,
    /// Whether a commit is on disk when it is answered.
    pub fsync: bool,
    /// What a commit waits for.
    pub synchronous_commit: String,
    /// Connections it takes from ordinary roles.
    pub connections_max: i64,
    /// Connections there are now.
    pub connections_open: i64,
    /// Transactions that have been open for more than a minute.
    pub long_transactions: i64,
    /// How long the oldest of them has been open.
    pub oldest_transaction_s: i64,
    /// Questions that have waited for a lock for more than a second.
    pub waiting_for_locks: i64,
    /// What is in Tally's schema; nothing where there is no schema yet.
    pub schema: Option<SchemaFacts>,
    /// Whether the role may make a schema in this database.
    pub may_create_schema: bool,
}

/// What is in Tally's schema.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SchemaFacts {
    /// The newest migration that was applied; nothing where there are no tables yet.
    pub version: Option<i32>,
    /// Whether the role may make and change tables.
    pub may_create: bool,
    /// Whether it may read every table.
    pub may_read: bool,
    /// Whether it may write every table.
    pub may_write: bool,
    /// Servers that have said so lately: their names and releases.
    pub servers: Vec<(String, String)>,
    /// Totals that are spread over several rows; nothing when counting them would take too long.
    pub spread_totals: Option<i64>,
}

const SERVER: &str = "
    SELECT current_setting('server_version'), current_user::text,
           current_setting('fsync') = 'on', current_setting('synchronous_commit'),
           current_setting('max_connections')::int8 - current_setting('superuser_reserved_connections')::int8,
           (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
           coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
           coalesce(host(inet_client_addr()) NOT IN ('127.0.0.1', '::1'), false),
           has_database_privilege(current_database(), 'CREATE'),
           to_regnamespace($1) IS NOT NULL";

const WORK: &str = "
    SELECT count(*) FILTER (WHERE xact_start < now() - interval '1 minute'),
           coalesce(extract(epoch FROM now() - min(xact_start))::int8, 0),
           count(*) FILTER (WHERE wait_event_type = 'Lock' AND query_start < now() - interval '1 second')
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";

/// A role that may not even enter the schema may do nothing there.
const RIGHTS: &str = "
    SELECT has_schema_privilege(n.oid, 'CREATE'),
           has_schema_privilege(n.oid, 'USAGE') AND coalesce(bool_and(has_table_privilege(t.oid, 'SELECT')), true),
           has_schema_privilege(n.oid, 'USAGE') AND coalesce(bool_and(has_table_privilege(t.oid, 'INSERT')
               AND has_table_privilege(t.oid, 'UPDATE') AND has_table_privilege(t.oid, 'DELETE')), true)
    FROM pg_namespace n LEFT JOIN pg_class t ON t.relnamespace = n.oid AND t.relkind = 'r'
    WHERE n.nspname = $1 GROUP BY n.oid";

impl Postgres {
    /// The newest migration that this release knows.
    pub const SCHEMA_VERSION: i32 = schema::NEWEST;

    /// Finds out about the database. It need not be prepared, and nothing in it is changed.
    pub async fn facts(&self) -> Result<Facts, StoreError> {
        let connection = self.connector().connect_raw(Box::new(|_| {})).await?;
        let limit = self.timeout();
        let name = &self.options().schema;
        let (clock_ahead_ms, round_trip) = self.clock(&connection).await?;
        let row = within(limit, connection.client.query_one(SERVER, &[name])).await?;
        let work = within(limit, connection.client.query_one(WORK, &[])).await?;
        let lacks = match self.check_server(&connection).await {
            Err(StoreError::Broken(why)) => Some(why),
            checked => checked.map(|()| None)?,
        };
        let mut facts = Facts { clock_ahead_ms, round_trip, lacks, ..facts_of(&row, &work) };
        if row.get(9) {
            facts.schema = Some(self.schema_facts(&connection).await?);
        }
        Ok(facts)
    }

    /// How far the database's clock is ahead, and how long it took to ask: as if it had looked halfway.
    async fn clock(&self, connection: &Connection) -> Result<(i64, Duration), StoreError> {
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8";
        // Asked twice: the first answer is late by what the connection had to learn.
        within(self.timeout(), connection.client.query_one(sql, &[])).await?;
        let (before, began) = (SystemTime::now(), Instant::now());
        let theirs: i64 = within(self.timeout(), connection.client.query_one(sql, &[])).await?.get(0);
        let round_trip = began.elapsed();
        let halfway = before.duration_since(UNIX_EPOCH).unwrap_or_default() + round_trip / 2;
        Ok((theirs - i64::try_from(halfway.as_millis()).unwrap_or(i64::MAX), round_trip))
    }

    async fn schema_facts(&self, connection: &Connection) -> Result<SchemaFacts, StoreError> {
        let (limit, name) = (self.timeout(), &self.options().schema);
        let rights = within(limit, connection.client.query_one(RIGHTS, &[name])).await?;
        let mut facts = SchemaFacts {
            may_create: rights.get(0),
            may_read: rights.get(1),
            may_write: rights.get(2),
            ..SchemaFacts::default()
        };
        if !facts.may_read {
            return Ok(facts);
        }
        facts.version = within(limit, schema::version(connection, name)).await?;
        if facts.version.is_none() {
            return Ok(facts);
        }
        let servers = format!(
            "SELECT name, version FROM {name}.server WHERE seen_at > now() - interval '10 seconds' ORDER BY name"
        );
        let servers = within(limit, connection.client.query(&servers, &[])).await?;
        facts.servers = servers.iter().map(|row| (row.get(0), row.get(1))).collect();
        // Reads a whole table, so it may be given up.
        let spread = format!("SELECT count(*) FROM {name}.object_total WHERE shard = 0 AND shards > 1");
        let spread = within(limit, connection.client.query_one(&spread, &[])).await;
        facts.spread_totals = spread.ok().map(|row| row.get(0));
        Ok(facts)
    }
}

fn facts_of(server: &Row, work: &Row) -> Facts {
    Facts {
        version: server.get(0),
        role: server.get(1),
        fsync: server.get(2),
        synchronous_commit: server.get(3),
        connections_max: server.get(4),
        connections_open: server.get(5),
        is_encrypted: server.get(6),
        is_far: server.get(7),
        may_create_schema: server.get(8),
        long_transactions: work.get(0),
        oldest_transaction_s: work.get(1),
        waiting_for_locks: work.get(2),
        ..Facts::default()
    }
}
