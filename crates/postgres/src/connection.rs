//! Connections, and the pool that keeps them.

use std::collections::HashMap;
use std::time::Duration;

use deadpool::managed::{Manager, Metrics, Object, PoolError, RecycleError, RecycleResult, TimeoutType};
use tally_engine::StoreError;
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Connection as Wire, NoTls, Row, Statement};

use crate::error::unavailable;
use crate::options::Options;
use crate::tls;

pub(crate) type Pool = deadpool::managed::Pool<Connector>;
pub(crate) type Pooled = Object<Connector>;

/// A connection of Tally's own settings, with the statements that were prepared on it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    statements: HashMap<String, Statement>,
    pub(crate) lane: Option<Lane>,
    wire: JoinHandle<()>,
}

/// The row by which a commit on this connection is found again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub(crate) id: i64,
    pub(crate) seq: i64,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // One that hangs would wait for its answers for ever.
        self.wire.abort();
    }
}

impl Connection {
    /// Prepares a statement, once.
    pub(crate) async fn statement(&mut self, sql: &str) -> Result<Statement, tokio_postgres::Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Asks one question with a prepared statement.
    pub(crate) async fn query(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.statement(sql).await?;
        self.client.query(&statement, values).await
    }
}

/// Makes connections for the pool.
pub(crate) struct Connector {
    pub(crate) options: Options,
}

/// What a connection hears without having asked.
pub(crate) type Heard = Box<dyn FnMut(AsyncMessage) + Send>;

impl Connector {
    /// A connection in Tally's schema. Index lookups are what every statement here wants; without
    /// these settings, a plan made while a table was empty would read the whole of it for ever. Each
    /// statement has to see what was committed while the one before it waited for a lock.
    pub(crate) async fn connect(&self, heard: Heard) -> Result<Connection, StoreError> {
        let connection = self.connect_raw(heard).await?;
        let timeout_ms = self.options.timeout.as_millis();
        let setup = format!(
            "SET search_path = {schema};
             SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
             SET enable_mergejoin = off; SET enable_sort = off; SET enable_material = off; SET jit = off;
             SET plan_cache_mode = force_generic_plan; SET TIME ZONE 'UTC';
             SET default_transaction_isolation = 'read committed';
             SET statement_timeout = {timeout_ms}; SET lock_timeout = {lock_ms};
             SET idle_in_transaction_session_timeout = {timeout_ms}",
            schema = self.options.schema,
            lock_ms = timeout_ms / 2,
        );
        within(self.options.timeout, connection.client.batch_execute(&setup)).await?;
        Ok(connection)
    }

    /// A connection as the database gives it.
    pub(crate) async fn connect_raw(&self, heard: Heard) -> Result<Connection, StoreError> {
        let config = &self.options.config;
        let (client, wire) = if self.options.wants_tls() {
            let tls = tls::connector(self.options.root_certificate.as_deref()).map_err(StoreError::Broken)?;
            let (client, wire) = within(self.options.timeout, config.connect(tls)).await?;
            (client, tokio::spawn(drive(wire, heard)))
        } else {
            let (client, wire) = within(self.options.timeout, Config::connect(config, NoTls)).await?;
            (client, tokio::spawn(drive(wire, heard)))
        };
        Ok(Connection { client, statements: HashMap::new(), lane: None, wire })
    }
}

/// Carries a connection's bytes until it ends.
async fn drive<S, T>(mut wire: Wire<S, T>, mut heard: Heard)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        match std::future::poll_fn(|cx| wire.poll_message(cx)).await {
            Some(Ok(message)) => heard(message),
            // Whoever waits for an answer on it is told.
            Some(Err(error)) => return tracing::debug!(%error, "a connection to PostgreSQL ended"),
            None => return,
        }
    }
}

/// Bounds a question to the database by time.
pub(crate) async fn within<T>(
    limit: Duration,
    question: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(limit, question).await {
        Ok(answer) => answer.map_err(|error| unavailable(&error)),
        Err(_) => Err(too_slow(limit)),
    }
}

pub(crate) fn too_slow(limit: Duration) -> StoreError {
    StoreError::Unavailable(format!("PostgreSQL did not answer within {} ms", limit.as_millis()))
}

impl Manager for Connector {
    type Type = Connection;
    type Error = StoreError;

    async fn create(&self) -> Result<Connection, StoreError> {
        // Large, and rare: every question would carry it otherwise.
        Box::pin(self.connect(Box::new(|_| {}))).await
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<StoreError> {
        if connection.client.is_closed() { Err(RecycleError::message("closed")) } else { Ok(()) }
    }
}

/// Why the pool gave no connection.
pub(crate) fn no_connection(error: PoolError<StoreError>) -> StoreError {
    match error {
        PoolError::Backend(error) => error,
        PoolError::Timeout(TimeoutType::Wait) => {
            StoreError::Unavailable("every connection to PostgreSQL is busy; raise `pool` in the store's URL".into())
        }
        other => StoreError::Unavailable(format!("no connection to PostgreSQL: {other}")),
    }
}
