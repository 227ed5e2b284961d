//! The store that several servers share: PostgreSQL, with real tables that a user can read and join.
//!
//! | file | what it does |
//! |---|---|
//! | `options.rs`, `connection.rs`, `tls.rs` | the URL, and connections in a pool |
//! | `schema.rs`, `migrations/` | the tables |
//! | `load.rs` | every row asked for, one statement |
//! | `plan.rs`, `commit.rs` | what a commit writes and checks; one round trip |
//! | `fence.rs` | guards for rows that are not there |
//! | `totals.rs`, `materialize.rs`, `spread.rs` | totals: of objects, of subjects, hot ones |
//! | `ordered.rs`, `points.rs`, `tree.rs`, `cut.rs`, `orders.rs` | orders: ranks, and pages |
//! | `scan.rs` | pages |
//! | `audit.rs`, `agree.rs`, `trees.rs` | the recount: edges, rows of every kind, orders |
//! | `follow.rs` | what servers tell each other |
//! | `facts.rs` | what an operator wants to know |
//! | `tables.rs`, `cells.rs`, `rows.rs`, `edges.rs`, `time.rs` | rows as columns |

mod agree;
mod audit;
mod cells;
mod commit;
mod connection;
mod cut;
mod edges;
mod error;
mod facts;
mod fence;
mod follow;
mod load;
mod materialize;
mod numbers;
mod options;
mod ordered;
mod orders;
mod plan;
mod points;
mod rows;
mod scan;
mod schema;
mod send;
mod spread;
mod time;
mod tls;
mod totals;
mod tree;
mod trees;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use connection::{Connector, Pool, Pooled, no_connection, within};
use cut::Tended;
use deadpool::Runtime;
use tally_core::rows::{Changes, Side};
use tally_core::time::Stamp;
use tally_core::view::{Reading, Wants};
use tally_engine::{
    Audited, CommitError, Committed, Engine, Finding, Follower, Lanes, Loaded, Mark, Mend, Nature, Page, Range, Seen,
    StoreError,
};
use tokio_postgres::types::ToSql;

pub use facts::{Facts, SchemaFacts};
pub use options::Options;
use spread::Spread;

/// How long a health check waits.
const PING_WITHIN: Duration = Duration::from_secs(2);

/// A store in PostgreSQL. Clones share it.
#[derive(Clone)]
pub struct Postgres {
    pool: Pool,
    connector: Arc<Connector>,
    spread: Arc<Spread>,
    tended: Arc<Tended>,
    follower: Arc<Follower>,
}

impl Postgres {
    /// A store that connects when it is first used.
    pub fn new(options: Options) -> Result<Self, StoreError> {
        let connector = Connector { options: options.clone() };
        let pool = Pool::builder(connector)
            .max_size(options.pool)
            .wait_timeout(Some(options.timeout))
            .create_timeout(Some(options.timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Broken(format!("no pool of connections: {error}")))?;
        let connector = Arc::new(Connector { options });
        let follower = Arc::new(Follower::new(follow::Notify::new(connector.clone())));
        let spread = Arc::new(Spread::new(connector.options.hot_window));
        Ok(Self { pool, connector, spread, tended: Arc::default(), follower })
    }

    /// How it was opened.
    pub fn options(&self) -> &Options {
        &self.connector.options
    }

    /// Connections in use and open.
    pub fn connections(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.size.saturating_sub(status.available), status.size)
    }

    /// Totals that this server knows to be spread over several rows.
    pub fn spread_totals(&self) -> usize {
        self.spread.spread_totals()
    }

    /// Says good-bye to the other servers, and lets go of every connection.
    pub async fn close(&self) {
        // A database that does not answer need not be waited for.
        let _ = tokio::time::timeout(PING_WITHIN, self.follower.leave()).await;
        self.pool.close();
    }

    fn timeout(&self) -> Duration {
        self.connector.options.timeout
    }

    fn lock_space(&self) -> i32 {
        self.connector.options.lock_space()
    }

    fn connector(&self) -> &Connector {
        &self.connector
    }

    async fn connection(&self) -> Result<Pooled, StoreError> {
        // Connecting is a large future, and nearly always a connection is there already.
        Box::pin(self.pool.get()).await.map_err(no_connection)
    }

    /// Lets go of a connection whose state is not known.
    fn discard(&self, connection: Pooled) {
        drop(Pooled::take(connection));
    }

    /// One question on any connection.
    async fn ask(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<tokio_postgres::Row>, StoreError> {
        let mut connection = self.connection().await?;
        let answer = within(self.timeout(), connection.query(sql, values)).await;
        if answer.is_err() {
            self.discard(connection);
        }
        answer
    }
}

/// A number that no other server has.
fn random() -> i64 {
    RandomState::new().hash_one("tally") as i64
}

impl Engine for Postgres {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        self.migrate().await
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        self.read(wants).await
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        self.write(&seen, changes).await
    }

    /// COMMIT is answered when it is durable, as the database's `synchronous_commit` has it.
    async fn settle(&self, _mark: Mark) -> Result<(), StoreError> {
        Ok(())
    }

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        self.page(range, limit).await
    }

    async fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send)) -> Result<Audited, StoreError> {
        self.recount(tell).await
    }

    async fn mend(&self, what: &Mend) -> Result<bool, StoreError> {
        match what {
            // Lists are indexes of the edges.
            Mend::Lists(_) => Ok(false),
            Mend::Leftover(total) => self.drop_leftovers(total).await,
            Mend::Order(order) => self.mend_order(order).await,
        }
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let asking = self.ask("SELECT current_setting('transaction_read_only')::bool", &[]);
        match tokio::time::timeout(PING_WITHIN, asking).await {
            Ok(Ok(rows)) if rows.first().is_some_and(|row| row.get(0)) => {
                Err(StoreError::Unavailable("this PostgreSQL is a read-only replica now, or takes no writes".into()))
            }
            Ok(answer) => answer.map(|_| ()),
            Err(_) => Err(StoreError::Unavailable("PostgreSQL does not answer".into())),
        }
    }

    /// While one batch is being made durable, another one is decided: on another connection, which is another processor to
    /// PostgreSQL.
    fn nature(&self) -> Nature {
        let lanes = Lanes { count: self.connector.options.lanes, by: Side::Subject };
        Nature { reading: Reading::Lean, lanes, is_shared: true, ..Nature::default() }
    }

    fn follower(&self) -> Option<&Follower> {
        Some(&self.follower)
    }
}
