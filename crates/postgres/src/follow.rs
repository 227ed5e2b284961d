//! How servers on one PostgreSQL talk: a connection of its own that listens, and `NOTIFY`.
//!
//! What is said when, and what becomes of it when the connection is lost, is the same on every store: see
//! [`tally_engine::follow`].

use std::collections::BTreeSet;
use std::sync::Arc;

use tally_core::ObjectId;
use tally_engine::follow::{Beat, Heard, Line, Wire, Word};
use tally_engine::{Lease, News, StoreError};
use tokio::sync::mpsc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Row};

use crate::connection::{Connection, Connector, within};

/// After how many seconds of silence a server counts as gone.
const GONE_AFTER_S: f64 = 10.0;

/// Where to listen.
pub(crate) struct Notify {
    id: i64,
    connector: Arc<Connector>,
}

impl Notify {
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        Self { id: crate::random(), connector }
    }
}

/// A connection that listens.
pub(crate) struct Listening {
    id: i64,
    connector: Arc<Connector>,
    connection: Connection,
    hearing: mpsc::UnboundedReceiver<String>,
    /// Locks that this connection holds: PostgreSQL would count them twice.
    held: Vec<Lease>,
}

impl Wire for Notify {
    type Line = Listening;

    async fn connect(&mut self) -> Result<Listening, StoreError> {
        let (heard, hearing) = mpsc::unbounded_channel();
        let hear = Box::new(move |message| {
            if let AsyncMessage::Notification(news) = message {
                // The line may have gone before its connection.
                let _ = heard.send(news.payload().to_owned());
            }
        });
        let connection = self.connector.connect(hear).await?;
        let listen = format!("LISTEN {}", self.connector.options.channel());
        within(self.connector.options.timeout, connection.client.batch_execute(&listen)).await?;
        Ok(Listening { id: self.id, connector: self.connector.clone(), connection, hearing, held: Vec::new() })
    }
}

impl Listening {
    async fn query(&mut self, sql: &'static str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        within(self.connector.options.timeout, self.connection.query(sql, values)).await
    }

    fn lock_of(&self, work: Lease) -> (i32, i32) {
        // Beside the fences and the migrations.
        let lock = match work {
            Lease::Jobs => -2,
            Lease::Setup => -4,
        };
        (self.connector.options.lock_space(), lock)
    }
}

impl Line for Listening {
    async fn hear(&mut self) -> Option<Heard> {
        let payload = self.hearing.recv().await?;
        Some(match payload.split_once(' ') {
            Some(("count", object)) => match ObjectId::new(object) {
                Ok(object) => Heard::News(News::Counts(vec![object])),
                Err(_) => Heard::Nothing,
            },
            _ => match Word::read(&payload) {
                Some(word) => Heard::News(word.news()),
                None => Heard::Watched,
            },
        })
    }

    async fn beat(&mut self, watching: &BTreeSet<ObjectId>, leases: &[Lease]) -> Result<Beat, StoreError> {
        let sql = "
            WITH me AS (
                INSERT INTO server (id, name, version, seen_at) VALUES ($1, $2, $3, now())
                ON CONFLICT (id) DO UPDATE SET seen_at = now() RETURNING xmax = 0 AS is_new),
            gone AS (DELETE FROM server WHERE seen_at < now() - $4 * interval '1 second' AND id <> $1 RETURNING id),
            unwatched AS (DELETE FROM watch WHERE server IN (SELECT id FROM gone) OR NOT EXISTS (
                SELECT FROM server WHERE server.id = watch.server) AND server <> $1)
            SELECT (SELECT count(*) FROM gone), EXISTS (SELECT FROM watch), (SELECT is_new FROM me)";
        let (id, name) = (self.id, hostname());
        let rows = self.query(sql, &[&id, &name, &env!("CARGO_PKG_VERSION"), &GONE_AFTER_S]).await?;
        let (gone, watched, is_new) =
            rows.first().map_or((0, true, false), |row| (row.get::<_, i64>(0), row.get(1), row.get(2)));
        // Whoever was silent for too long was taken for gone, with all that it watches.
        if is_new {
            self.watch(watching, watching).await?;
        }
        // A lock lasts as long as its connection.
        Ok(Beat { watched: watched || !watching.is_empty(), missed: gone > 0 || is_new, leases: leases.to_vec() })
    }

    async fn watch(&mut self, watching: &BTreeSet<ObjectId>, _new: &BTreeSet<ObjectId>) -> Result<(), StoreError> {
        // New ones are told to all as changed, this server too: that comes back when the others have heard of the watch.
        let sql = "
            WITH gone AS (DELETE FROM watch WHERE server = $1 AND NOT object = ANY($2)),
            new AS (INSERT INTO watch (object, server) SELECT object, $1 FROM unnest($2::text[]) AS w(object)
                    ON CONFLICT DO NOTHING RETURNING object)
            SELECT pg_notify($3, 'watch') IS NULL, pg_notify($3, 'count ' || object) IS NULL FROM new";
        let (id, channel) = (self.id, self.connector.options.channel());
        let objects: Vec<&str> = watching.iter().map(ObjectId::as_str).collect();
        self.query(sql, &[&id, &objects, &channel]).await.map(drop)
    }

    async fn tell(&mut self, changed: &BTreeSet<ObjectId>, words: &BTreeSet<Word>) -> Result<(), StoreError> {
        let sql = "
            SELECT count(pg_notify($1, 'count ' || w.object) IS NULL) FROM unnest($2::text[]) AS w(object)
            WHERE EXISTS (SELECT FROM watch WHERE watch.object = w.object)
            UNION ALL SELECT count(pg_notify($1, w.news) IS NULL) FROM unnest($3::text[]) AS w(news)";
        let channel = self.connector.options.channel();
        let objects: Vec<&str> = changed.iter().map(ObjectId::as_str).collect();
        let words: Vec<&str> = words.iter().map(|word| word.text()).collect();
        self.query(sql, &[&channel, &objects, &words]).await.map(drop)
    }

    async fn lease(&mut self, work: Lease) -> Result<bool, StoreError> {
        if self.held.contains(&work) {
            return Ok(true);
        }
        let (space, lock) = self.lock_of(work);
        let rows = self.query("SELECT pg_try_advisory_lock($1, $2)", &[&space, &lock]).await?;
        let taken = rows.first().is_some_and(|row| row.get(0));
        if taken {
            self.held.push(work);
        }
        Ok(taken)
    }

    async fn release(&mut self, work: Lease) -> Result<(), StoreError> {
        if self.held.contains(&work) {
            let (space, lock) = self.lock_of(work);
            self.query("SELECT pg_advisory_unlock($1, $2)", &[&space, &lock]).await?;
            self.held.retain(|held| *held != work);
        }
        Ok(())
    }

    async fn leave(&mut self, _leases: &[Lease]) -> Result<(), StoreError> {
        let (sql, id) =
            ("WITH gone AS (DELETE FROM watch WHERE server = $1) DELETE FROM server WHERE id = $1", self.id);
        self.query(sql, &[&id]).await.map(drop)
    }
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    format!("{}:{}", if name.is_empty() { "server" } else { name }, std::process::id())
}
