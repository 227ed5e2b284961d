//! PostgreSQL 15 as a peer: a cluster made here, loaded here, gone afterwards.

use super::{SEED, SharedWorkload, lock};
use crate::load::{self, Load, Measured};
use crate::workload::{Shape, Workload};
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tally_testing::postgres::Options;
use tokio_postgres::{Client, NoTls};

/// A running PostgreSQL.
pub(crate) struct Postgres {
    server: tally_testing::Postgres,
    pub(crate) workload: SharedWorkload,
}

/// How this peer is set up, for the report.
pub(crate) const SETUP: &str = "PostgreSQL 15, bigint ids (smaller than Tally's strings), edge table with its key and an index for each direction, \
count table with fillfactor 50, C locale, shared_buffers 1 GB, max_wal_size 8 GB, fsync and synchronous_commit on as by default; \
a like is one prepared statement (a CTE: insert, then count), a transaction of its own in one round trip, which beat BEGIN … COMMIT";

const TABLES: &str = "
CREATE TABLE edge (relation smallint NOT NULL, object bigint NOT NULL, subject bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE total (relation smallint NOT NULL, object bigint NOT NULL, n bigint NOT NULL, PRIMARY KEY (relation, object)) WITH (fillfactor = 50);";

/// Made after the load, which is how one loads PostgreSQL; the counts come from the edges.
const INDEXES: &str = "
ALTER TABLE edge ADD PRIMARY KEY (relation, object, subject);
CREATE INDEX edge_by_object ON edge (relation, object, created_at DESC, subject);
CREATE INDEX edge_by_subject ON edge (relation, subject, created_at DESC, object);
INSERT INTO total SELECT relation, object, count(*) FROM edge GROUP BY relation, object;
VACUUM ANALYZE edge;
VACUUM ANALYZE total;
CHECKPOINT;";

const LIKE: &str = "
WITH added AS (
  INSERT INTO edge (relation, object, subject) VALUES (1, $1, $2) ON CONFLICT DO NOTHING RETURNING 1
)
INSERT INTO total (relation, object, n) SELECT 1, $1, 1 FROM added
ON CONFLICT (relation, object) DO UPDATE SET n = total.n + 1
RETURNING n";

/// In key order, so that two calls never lock the same rows in two orders.
const LIKE_MANY: &str = "
WITH added AS (
  INSERT INTO edge (relation, object, subject)
  SELECT 1, object, subject FROM unnest($1::bigint[], $2::bigint[]) AS asked (object, subject) ORDER BY 2, 3
  ON CONFLICT DO NOTHING RETURNING object
)
INSERT INTO total (relation, object, n) SELECT 1, object, count(*) FROM added GROUP BY object ORDER BY object
ON CONFLICT (relation, object) DO UPDATE SET n = total.n + excluded.n
RETURNING object, n";

impl Postgres {
    pub(crate) async fn start() -> Result<Self> {
        let settings = [("shared_buffers", "1GB"), ("max_wal_size", "8GB"), ("checkpoint_timeout", "30min")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let server = tally_testing::Postgres::start(Options { fsync: true, settings, ..Options::default() })?;
        let client = connect(server.address()).await?;
        client.batch_execute(TABLES).await?;
        let workload = Arc::new(Mutex::new(Workload::new(SEED)));
        Ok(Self { server, workload })
    }

    pub(crate) async fn connect(&self) -> Result<Client> {
        connect(self.address()).await
    }

    /// Loads edges of one relation into the tables without indexes.
    pub(crate) async fn preload(
        &self,
        relation: i16,
        mut edges: impl Iterator<Item = (u32, u32)>,
        mut progress: impl FnMut(u64),
    ) -> Result<()> {
        let client = self.connect().await?;
        let insert = client
            .prepare(
                "INSERT INTO edge SELECT $1, object, subject, clock_timestamp() FROM unnest($2::bigint[], $3::bigint[]) AS asked (object, subject)",
            )
            .await?;
        loop {
            let (objects, subjects): (Vec<i64>, Vec<i64>) =
                edges.by_ref().take(20_000).map(|(object, subject)| (i64::from(object), i64::from(subject))).unzip();
            if objects.is_empty() {
                return Ok(());
            }
            client.execute(&insert, &[&relation, &objects, &subjects]).await?;
            progress(objects.len() as u64);
        }
    }

    /// Indexes and counts over what was loaded.
    pub(crate) async fn finish_preload(&self) -> Result<()> {
        let client = self.connect().await?;
        // One by one: VACUUM does not run inside the transaction of a multi-statement string.
        for statement in INDEXES.split(';').filter(|text| !text.trim().is_empty()) {
            client.batch_execute(statement).await.with_context(|| statement.to_owned())?;
        }
        Ok(())
    }

    /// A transaction per like.
    pub(crate) async fn likes(&self, load: Load, shape: Shape) -> Result<Measured> {
        let (address, workload) = (self.address(), self.workload.clone());
        load::run(load, async move |_, recorder| {
            let client = connect(address).await?;
            let like = client.prepare(LIKE).await?;
            loop {
                let edge = lock(&workload).next(shape);
                let asked = Instant::now();
                client.query(&like, &[&i64::from(edge.object), &i64::from(edge.subject)]).await?;
                if !recorder.answered(asked, 1) {
                    return Ok(());
                }
            }
        })
        .await
    }

    /// Many likes in one statement.
    pub(crate) async fn likes_batched(&self, load: Load, shape: Shape, batch: usize) -> Result<Measured> {
        let (address, workload) = (self.address(), self.workload.clone());
        load::run(load, async move |_, recorder| {
            let client = connect(address).await?;
            let like_many = client.prepare(LIKE_MANY).await?;
            let (mut objects, mut subjects) = (Vec::<i64>::new(), Vec::<i64>::new());
            loop {
                objects.clear();
                subjects.clear();
                for _ in 0..batch {
                    let edge = lock(&workload).next(shape);
                    objects.push(i64::from(edge.object));
                    subjects.push(i64::from(edge.subject));
                }
                let asked = Instant::now();
                client.query(&like_many, &[&objects, &subjects]).await?;
                if !recorder.answered(asked, batch as u64) {
                    return Ok(());
                }
            }
        })
        .await
    }

    /// Loads edges into Tally's own tables, and counts them.
    pub(crate) async fn preload_tally(
        &self,
        mut edges: impl Iterator<Item = (u32, u32)>,
        mut progress: impl FnMut(u64),
    ) -> Result<()> {
        let client = self.connect().await?;
        let insert = "INSERT INTO tally.edge
            SELECT 'post:' || object, 'like', 'u' || subject, clock_timestamp(), NULL, NULL, false
            FROM unnest($1::bigint[], $2::bigint[]) AS asked (object, subject)";
        let insert = client.prepare(insert).await?;
        loop {
            let (objects, subjects): (Vec<i64>, Vec<i64>) =
                edges.by_ref().take(20_000).map(|(object, subject)| (i64::from(object), i64::from(subject))).unzip();
            if objects.is_empty() {
                break;
            }
            client.execute(&insert, &[&objects, &subjects]).await?;
            progress(objects.len() as u64);
        }
        let count = "INSERT INTO tally.object_total (object, relation, kind, n)
            SELECT object, relation, '', count(*) FROM tally.edge GROUP BY object, relation";
        for statement in [count, "VACUUM ANALYZE tally.edge", "VACUUM ANALYZE tally.object_total", "CHECKPOINT"] {
            client.batch_execute(statement).await.with_context(|| statement.to_owned())?;
        }
        Ok(())
    }

    /// Tally's tables and indexes, without the log.
    pub(crate) async fn tally_disk_bytes(&self) -> Result<u64> {
        let sql = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
                   WHERE relkind = 'r' AND relnamespace = 'tally'::regnamespace";
        let bytes: i64 = self.connect().await?.query_one(sql, &[]).await?.get(0);
        Ok(bytes.unsigned_abs())
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.server.memory_bytes()
    }

    /// Tables and indexes, without the log.
    pub(crate) async fn disk_bytes(&self) -> Result<u64> {
        let sql = "SELECT pg_total_relation_size('edge') + pg_total_relation_size('total')";
        let bytes: i64 = self.connect().await?.query_one(sql, &[]).await?.get(0);
        Ok(bytes.unsigned_abs())
    }
}

/// A connection whose background task runs on the current thread.
pub(crate) async fn connect(address: SocketAddr) -> Result<Client> {
    let settings = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", address.port());
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await?;
    // Ends when the client is dropped; an error shows at the client's next call.
    tokio::spawn(connection);
    Ok(client)
}
