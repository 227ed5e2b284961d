//! How servers on one PostgreSQL talk: a connection of its own that listens, and `NOTIFY`.
//!
//! What is said when, and what becomes of it when the connection is lost, is the same on every store: see
//! [`tally_engine::follow`].

use std::collections::BTreeSet;
use std::sync::Arc;

use tally_engine::follow::{Beat, Heard, Here, Line, Share, Wire};
use tally_engine::{Lease, News, StoreError, Topic};
use tokio::sync::mpsc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Row};

use crate::connection::{Connection, Connector, within};

/// After how many seconds of silence a server counts as gone, and its leases as free.
const GONE_AFTER_S: f64 = 10.0;
/// What is said when something is watched that was not.
const WATCH: &str = "watch";

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
        Ok(Listening { id: self.id, connector: self.connector.clone(), connection, hearing })
    }
}

impl Listening {
    async fn query(&mut self, sql: &'static str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        within(self.connector.options.timeout, self.connection.query(sql, values)).await
    }
}

fn texts<T: ToString>(some: impl IntoIterator<Item = T>) -> Vec<String> {
    some.into_iter().map(|one| one.to_string()).collect()
}

impl Line for Listening {
    async fn hear(&mut self) -> Option<Heard> {
        let payload = self.hearing.recv().await?;
        Some(if payload == WATCH { Heard::Watched } else { Heard::News(News::read(&payload)) })
    }

    async fn beat(&mut self, here: &Here<'_>) -> Result<Beat, StoreError> {
        // What is read was so before this: those that are gone are left out, and this server is counted beside the others.
        let sql = "
            WITH me AS (
                INSERT INTO server (id, name, version, seen_at, shares) VALUES ($1, $2, $3, now(), $5)
                ON CONFLICT (id) DO UPDATE SET seen_at = now(), shares = $5 RETURNING xmax = 0 AS is_new),
            gone AS (DELETE FROM server WHERE seen_at < now() - $4 * interval '1 second' AND id <> $1 RETURNING id),
            unwatched AS (DELETE FROM watch WHERE server IN (SELECT id FROM gone) OR NOT EXISTS (
                SELECT FROM server WHERE server.id = watch.server) AND server <> $1),
            unleased AS (DELETE FROM lease WHERE server IN (SELECT id FROM gone)),
            others AS (SELECT id FROM server
                WHERE shares AND seen_at >= now() - $4 * interval '1 second' AND id <> $1)
            SELECT (SELECT count(*) FROM gone), EXISTS (SELECT FROM watch), (SELECT is_new FROM me),
                   (SELECT count(*) FROM others), (SELECT count(*) FROM others WHERE id < $1),
                   ARRAY(SELECT work FROM lease WHERE server = $1)";
        let (id, name) = (self.id, hostname());
        let rows = self.query(sql, &[&id, &name, &env!("CARGO_PKG_VERSION"), &GONE_AFTER_S, &here.shares]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Broken("a beat is answered with one row".into()))?;
        let (gone, watched, is_new): (i64, bool, bool) = (row.get(0), row.get(1), row.get(2));
        let (others, rank): (i64, i64) = (row.get(3), row.get(4));
        let held: Vec<&str> = row.get(5);
        let held: Vec<Lease> = held.into_iter().filter_map(Lease::read).collect();
        let count = |number: i64| usize::try_from(number).unwrap_or_default();
        // Whoever was silent for too long was taken for gone, with all that it watches.
        if is_new {
            self.watch(here.watching, here.watching).await?;
        }
        Ok(Beat {
            watched: watched || !here.watching.is_empty(),
            missed: gone > 0 || is_new,
            leases: here.leases.iter().copied().filter(|work| held.contains(work)).collect(),
            share: Share { rank: count(rank), servers: count(others) + 1 },
        })
    }

    async fn watch(&mut self, watching: &BTreeSet<Topic>, _new: &BTreeSet<Topic>) -> Result<(), StoreError> {
        // New ones are told to all as changed, this server too: that comes back when the others have heard of the watch.
        let sql = "
            WITH gone AS (DELETE FROM watch WHERE server = $1 AND NOT topic = ANY($2)),
            new AS (INSERT INTO watch (topic, server) SELECT topic, $1 FROM unnest($2::text[]) AS w(topic)
                    ON CONFLICT DO NOTHING RETURNING topic)
            SELECT pg_notify($3, $4) IS NULL, pg_notify($3, topic) IS NULL FROM new";
        let (id, channel) = (self.id, self.connector.options.channel());
        self.query(sql, &[&id, &texts(watching), &channel, &WATCH]).await.map(drop)
    }

    async fn tell(&mut self, news: &News) -> Result<(), StoreError> {
        let sql = "
            SELECT count(pg_notify($1, w.topic) IS NULL) FROM unnest($2::text[]) AS w(topic)
            WHERE EXISTS (SELECT FROM watch WHERE watch.topic = w.topic)
            UNION ALL SELECT count(pg_notify($1, w.topic) IS NULL) FROM unnest($3::text[]) AS w(topic)";
        let channel = self.connector.options.channel();
        let (watched, for_all) = match news {
            News::Of(topics) => {
                let (for_all, watched): (Vec<&Topic>, Vec<&Topic>) =
                    topics.iter().partition(|topic| topic.is_for_all());
                (texts(watched), texts(for_all))
            }
            News::Anything => (Vec::new(), vec![News::ANYTHING.to_owned()]),
        };
        self.query(sql, &[&channel, &watched, &for_all]).await.map(drop)
    }

    async fn lease(&mut self, work: &[Lease], at_most: usize) -> Result<Vec<Lease>, StoreError> {
        // In one order, so that servers do not wait for each other in a ring.
        let sql = "
            WITH free AS (
                SELECT w.work FROM unnest($2::text[]) WITH ORDINALITY AS w(work, place)
                WHERE NOT EXISTS (SELECT FROM lease JOIN server ON server.id = lease.server
                    WHERE lease.work = w.work AND server.id <> $1 AND seen_at >= now() - $3 * interval '1 second')
                ORDER BY w.place LIMIT $4)
            INSERT INTO lease (work, server) SELECT work, $1 FROM free ORDER BY work
            ON CONFLICT (work) DO UPDATE SET server = $1
            WHERE lease.server = $1 OR NOT EXISTS (SELECT FROM server
                WHERE server.id = lease.server AND seen_at >= now() - $3 * interval '1 second')
            RETURNING work";
        let (id, at_most) = (self.id, i64::try_from(at_most).unwrap_or(i64::MAX));
        let rows = self.query(sql, &[&id, &texts(work), &GONE_AFTER_S, &at_most]).await?;
        Ok(rows.iter().filter_map(|row| Lease::read(row.get(0))).collect())
    }

    async fn release(&mut self, work: &[Lease]) -> Result<(), StoreError> {
        let (sql, id) = ("DELETE FROM lease WHERE server = $1 AND work = ANY($2)", self.id);
        self.query(sql, &[&id, &texts(work)]).await.map(drop)
    }

    async fn leave(&mut self, _leases: &[Lease]) -> Result<(), StoreError> {
        let sql = "
            WITH unwatched AS (DELETE FROM watch WHERE server = $1), unleased AS (DELETE FROM lease WHERE server = $1)
            DELETE FROM server WHERE id = $1";
        let id = self.id;
        self.query(sql, &[&id]).await.map(drop)
    }
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    format!("{}:{}", if name.is_empty() { "server" } else { name }, std::process::id())
}
