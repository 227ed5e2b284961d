//! What servers on one store tell each other: a connection of its own that listens.
//!
//! A server says whose counts are watched on it. Another one that changes such a count notifies,
//! at most every few milliseconds, and whoever hears it reads the count anew: so what is shown never
//! runs backwards, however many servers write. News may be lost, with a connection or with the
//! server that had it; then everything watched is read again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tally_core::ObjectId;
use tally_core::rows::TotalKey;
use tally_engine::{Lease, News, StoreError};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_postgres::AsyncMessage;

use crate::connection::{Connection, Connector, within};

/// News that gathers within this goes out together.
const GATHER: Duration = Duration::from_millis(20);
/// How often a server says that it is there.
const BEAT: Duration = Duration::from_secs(2);
/// After how many seconds of silence a server counts as gone.
const GONE_AFTER_S: f64 = 10.0;
/// How soon a connection that was lost is tried again.
const RETRY: Duration = Duration::from_millis(500);

enum Ask {
    Attend(Vec<ObjectId>, bool),
    Changed(Vec<ObjectId>),
    Tell(News),
    Lease(Lease, oneshot::Sender<Result<bool, StoreError>>),
    Release(Lease),
    Leave(oneshot::Sender<()>),
}

/// The handle of the task, which starts when it is first needed.
pub(crate) struct Follower {
    asks: mpsc::UnboundedSender<Ask>,
    idle: std::sync::Mutex<Option<Task>>,
    news: Mutex<mpsc::UnboundedReceiver<News>>,
    watched_anywhere: Arc<AtomicBool>,
}

impl Follower {
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        let (asks, asked) = mpsc::unbounded_channel();
        let (tell, news) = mpsc::unbounded_channel();
        let watched_anywhere = Arc::new(AtomicBool::new(false));
        let task = Task {
            id: crate::random(),
            connector,
            asked,
            news: tell,
            watched_anywhere: watched_anywhere.clone(),
            attended: BTreeSet::new(),
            unregistered: true,
            changed: BTreeSet::new(),
            others: Vec::new(),
            leases: Vec::new(),
        };
        Self { asks, idle: std::sync::Mutex::new(Some(task)), news: Mutex::new(news), watched_anywhere }
    }

    fn ask(&self, ask: Ask) {
        if let Some(task) = self.idle.lock().ok().and_then(|mut idle| idle.take()) {
            tokio::spawn(task.run());
        }
        // The task ends only with this handle.
        let _ = self.asks.send(ask);
    }

    pub(crate) async fn lease(&self, work: Lease) -> Result<bool, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.ask(Ask::Lease(work, answer));
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(crate) async fn release(&self, work: Lease) {
        self.ask(Ask::Release(work));
    }

    pub(crate) fn attend(&self, objects: Vec<ObjectId>, watched: bool) {
        self.ask(Ask::Attend(objects, watched));
    }

    pub(crate) fn tell_changed(&self, totals: &[(TotalKey, i64)]) {
        // A like storm that nobody watches costs nothing here.
        if !self.watched_anywhere.load(Ordering::Relaxed) {
            return;
        }
        let objects = totals.iter().filter_map(|(key, _)| match key {
            TotalKey::Object { object, .. } | TotalKey::Kind { object, .. } => Some(object.clone()),
            TotalKey::Subject { .. } | TotalKey::Counter(_) | TotalKey::Present { .. } => None,
        });
        self.ask(Ask::Changed(objects.collect()));
    }

    pub(crate) fn tell(&self, news: News) {
        self.ask(Ask::Tell(news));
    }

    /// Ends the task, if it ever began.
    pub(crate) async fn leave(&self) {
        if self.idle.lock().is_ok_and(|idle| idle.is_some()) {
            return;
        }
        let (left, leaving) = oneshot::channel();
        self.ask(Ask::Leave(left));
        let _ = leaving.await;
    }

    pub(crate) async fn news(&self) -> News {
        match self.news.lock().await.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable("the connection that listens to PostgreSQL is down".into())
}

struct Task {
    id: i64,
    connector: Arc<Connector>,
    asked: mpsc::UnboundedReceiver<Ask>,
    news: mpsc::UnboundedSender<News>,
    watched_anywhere: Arc<AtomicBool>,
    /// Objects that are watched here.
    attended: BTreeSet<ObjectId>,
    /// Whether others have not been told of all of them.
    unregistered: bool,
    /// Objects that changed here, not yet told.
    changed: BTreeSet<ObjectId>,
    /// Other news, not yet told.
    others: Vec<&'static str>,
    /// Work that this server holds.
    leases: Vec<Lease>,
}

/// Why a turn of the task ended.
enum End {
    /// Nobody holds the store any more.
    Closed,
    /// The connection is lost.
    Lost,
}

impl Task {
    async fn run(mut self) {
        loop {
            let (heard, hearing) = mpsc::unbounded_channel();
            let hear = Box::new(move |message| {
                if let AsyncMessage::Notification(news) = message {
                    let _ = heard.send(news.payload().to_owned());
                }
            });
            let end = match self.connector.connect(hear).await {
                Ok(mut connection) => match self.listen(&mut connection, hearing).await {
                    Ok(end) => end,
                    Err(error) => {
                        tracing::warn!(%error, "listening to other servers failed; it is tried again");
                        End::Lost
                    }
                },
                Err(error) => {
                    tracing::warn!(%error, "no connection to listen on; it is tried again");
                    End::Lost
                }
            };
            self.leases.clear();
            if matches!(end, End::Closed) || self.wait().await {
                return;
            }
        }
    }

    /// Waits before the next attempt. True when nobody holds the store any more.
    async fn wait(&mut self) -> bool {
        let until = Instant::now() + RETRY;
        loop {
            tokio::select! {
                () = sleep_until(until) => return false,
                ask = self.asked.recv() => match ask {
                    None | Some(Ask::Leave(_)) => return true,
                    Some(Ask::Lease(_, answer)) => drop(answer.send(Err(gone()))),
                    Some(ask) => self.note(ask),
                },
            }
        }
    }

    /// Takes note of what has to be told or attended.
    fn note(&mut self, ask: Ask) {
        match ask {
            Ask::Attend(objects, watched) => {
                self.unregistered = true;
                for object in objects {
                    if watched {
                        self.attended.insert(object)
                    } else {
                        self.attended.remove(&object)
                    };
                }
            }
            Ask::Changed(objects) | Ask::Tell(News::Counts(objects)) => self.changed.extend(objects),
            Ask::Tell(News::Keys) => self.others.push("keys"),
            Ask::Tell(News::Jobs) => self.others.push("jobs"),
            Ask::Tell(News::Anything) => self.others.push("anything"),
            Ask::Lease(..) | Ask::Leave(_) => {}
            Ask::Release(work) => self.leases.retain(|held| *held != work),
        }
    }

    async fn listen(
        &mut self,
        connection: &mut Connection,
        mut hearing: mpsc::UnboundedReceiver<String>,
    ) -> Result<End, StoreError> {
        let timeout = self.connector.options.timeout;
        let listen = format!("LISTEN {}", self.connector.options.channel());
        within(timeout, connection.client.batch_execute(&listen)).await?;
        self.beat(connection).await?;
        self.unregistered = true;
        let _ = self.news.send(News::Anything);
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = self.unregistered || !(self.changed.is_empty() && self.others.is_empty());
            tokio::select! {
                payload = hearing.recv() => match payload {
                    Some(payload) => self.hear(&payload),
                    None => return Ok(End::Lost),
                },
                ask = self.asked.recv() => match ask {
                    None => {
                        self.leave(connection).await;
                        return Ok(End::Closed);
                    }
                    Some(Ask::Leave(left)) => {
                        self.leave(connection).await;
                        let _ = left.send(());
                        return Ok(End::Closed);
                    }
                    Some(Ask::Lease(work, answer)) => {
                        let leased = self.take_lease(connection, work).await;
                        let lost = leased.is_err();
                        let _ = answer.send(leased);
                        if lost {
                            return Ok(End::Lost);
                        }
                    }
                    Some(Ask::Release(work)) => {
                        let sql = "SELECT pg_advisory_unlock($1, $2)";
                        let (space, lock) = (self.connector.options.lock_space(), lock_of(work));
                        if self.leases.contains(&work) {
                            within(timeout, connection.query(sql, &[&space, &lock])).await?;
                        }
                        self.note(Ask::Release(work));
                    }
                    Some(ask) => self.note(ask),
                },
                _ = beats.tick() => self.beat(connection).await?,
                () = tokio::time::sleep(GATHER), if due => self.flush(connection).await?,
            }
        }
    }

    fn hear(&self, payload: &str) {
        let news = match payload.split_once(' ') {
            Some(("count", object)) => match ObjectId::new(object) {
                Ok(object) => News::Counts(vec![object]),
                Err(_) => return,
            },
            _ => match payload {
                "keys" => News::Keys,
                "jobs" => News::Jobs,
                "anything" => News::Anything,
                _ => return self.watched_anywhere.store(true, Ordering::Relaxed),
            },
        };
        // Whoever wanted to know may have gone.
        let _ = self.news.send(news);
    }

    /// Says that this server is there, and notices those that are no more.
    async fn beat(&mut self, connection: &mut Connection) -> Result<(), StoreError> {
        let sql = "
            WITH me AS (
                INSERT INTO server (id, name, version, seen_at) VALUES ($1, $2, $3, now())
                ON CONFLICT (id) DO UPDATE SET seen_at = now()),
            gone AS (DELETE FROM server WHERE seen_at < now() - $4 * interval '1 second' AND id <> $1 RETURNING id),
            unwatched AS (DELETE FROM watch WHERE server IN (SELECT id FROM gone) OR NOT EXISTS (
                SELECT FROM server WHERE server.id = watch.server) AND server <> $1)
            SELECT (SELECT count(*) FROM gone), EXISTS (SELECT FROM watch)";
        let name = hostname();
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&self.id, &name, &env!("CARGO_PKG_VERSION"), &GONE_AFTER_S];
        let rows = within(self.connector.options.timeout, connection.query(sql, &values)).await?;
        if let Some(row) = rows.first() {
            self.watched_anywhere.store(row.get(1), Ordering::Relaxed);
            if row.get::<_, i64>(0) > 0 {
                // It may have died between a commit and its news.
                let _ = self.news.send(News::Anything);
            }
        }
        Ok(())
    }

    /// Says whose counts are watched here, and has them read again: something may have changed
    /// before the others knew.
    async fn register(&mut self, connection: &mut Connection) -> Result<(), StoreError> {
        let sql = "
            WITH gone AS (DELETE FROM watch WHERE server = $1 AND NOT object = ANY($2)),
            new AS (INSERT INTO watch (object, server) SELECT object, $1 FROM unnest($2::text[]) AS w(object)
                    ON CONFLICT DO NOTHING RETURNING object)
            SELECT object, pg_notify($3, 'watch') IS NULL FROM new";
        let objects: Vec<&str> = self.attended.iter().map(ObjectId::as_str).collect();
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&self.id, &objects, &self.connector.options.channel()];
        let rows = within(self.connector.options.timeout, connection.query(sql, &values)).await?;
        let new: Vec<ObjectId> = rows.iter().filter_map(|row| ObjectId::new(row.get(0)).ok()).collect();
        if !new.is_empty() {
            self.watched_anywhere.store(true, Ordering::Relaxed);
            // Told to all, this server too: it comes back when the others have heard of the watch.
            self.changed.extend(new);
        }
        Ok(())
    }

    async fn flush(&mut self, connection: &mut Connection) -> Result<(), StoreError> {
        if std::mem::take(&mut self.unregistered) {
            self.register(connection).await?;
        }
        let (changed, others) = (std::mem::take(&mut self.changed), std::mem::take(&mut self.others));
        let sql = "
            SELECT count(pg_notify($1, 'count ' || w.object) IS NULL) FROM unnest($2::text[]) AS w(object)
            WHERE EXISTS (SELECT FROM watch WHERE watch.object = w.object)
            UNION ALL SELECT count(pg_notify($1, w.news) IS NULL) FROM unnest($3::text[]) AS w(news)";
        let objects: Vec<&str> = changed.iter().map(ObjectId::as_str).collect();
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&self.connector.options.channel(), &objects, &others];
        let told = within(self.connector.options.timeout, connection.query(sql, &values)).await;
        if told.is_err() {
            // Told again on the next connection; twice does no harm.
            self.changed.extend(changed);
            self.others.extend(others);
        }
        told.map(|_| ())
    }

    async fn take_lease(&mut self, connection: &mut Connection, work: Lease) -> Result<bool, StoreError> {
        if self.leases.contains(&work) {
            return Ok(true);
        }
        let (space, lock) = (self.connector.options.lock_space(), lock_of(work));
        let sql = "SELECT pg_try_advisory_lock($1, $2)";
        let rows = within(self.connector.options.timeout, connection.query(sql, &[&space, &lock])).await?;
        let taken = rows.first().is_some_and(|row| row.get(0));
        if taken {
            self.leases.push(work);
        }
        Ok(taken)
    }

    /// Leaves in good order, so that nobody waits for this server.
    async fn leave(&self, connection: &mut Connection) {
        let sql = "WITH gone AS (DELETE FROM watch WHERE server = $1) DELETE FROM server WHERE id = $1";
        let left = within(self.connector.options.timeout, connection.query(sql, &[&self.id])).await;
        if let Err(error) = left {
            tracing::debug!(%error, "could not say good-bye to the other servers");
        }
    }
}

/// Advisory locks beside the fences and the migrations.
fn lock_of(work: Lease) -> i32 {
    match work {
        Lease::Jobs => -2,
        Lease::Setup => -4,
    }
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    format!("{}:{}", if name.is_empty() { "server" } else { name }, std::process::id())
}
