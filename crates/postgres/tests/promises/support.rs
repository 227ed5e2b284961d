//! A store with a runner on it, somebody who looks at the database from outside, and waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tally_conformance::network::Hands;
use tally_core::catalog::ReadPolicy;
use tally_core::command::{Call, Command, Relate, Unrelate};
use tally_core::reply::{EdgeReply, Reply};
use tally_core::rows::TotalKey;
use tally_core::view::Wants;
use tally_core::{Catalog, Name, ObjectId, RelationDef, SubjectId};
use tally_engine::{Clock, Engine, Failure, Finding, Runner, RunnerOptions, StoreError, SystemClock};
use tally_postgres::{Options, Postgres};
pub(crate) use tally_testing::until;
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;

/// A word that no other test has.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("promise_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Adds to a URL what every one of these stores wants, and a schema of its own.
pub(crate) fn with_schema(url: &str, more: &str) -> String {
    format!("{url}?sslmode=disable&schema={}{more}", unique())
}

/// A place on the instance that everybody shares.
pub(crate) fn shared(more: &str) -> String {
    with_schema(tally_testing::Postgres::shared().unwrap(), more)
}

pub(crate) fn engine(url: &str) -> Arc<Postgres> {
    Arc::new(Postgres::new(Options::parse(url).unwrap()).unwrap())
}

/// Everybody's relations, and one with a limit.
pub(crate) fn catalog() -> Arc<Catalog> {
    let mut catalog = Catalog::default();
    let mut shelf = RelationDef::new(Name::new("shelf").unwrap(), ReadPolicy::Public);
    shelf.limit_per_subject = Some(3);
    catalog.declare(shelf);
    Arc::new(catalog)
}

/// A runner on an engine.
pub(crate) struct Store<E: Engine = Postgres> {
    pub(crate) engine: Arc<E>,
    pub(crate) runner: Runner,
    done: JoinHandle<()>,
}

impl Store {
    pub(crate) async fn open(url: &str) -> Self {
        Self::on(engine(url), SystemClock).await
    }
}

impl<E: Engine> Store<E> {
    pub(crate) async fn on(engine: Arc<E>, clock: impl Clock) -> Self {
        let options = RunnerOptions::default();
        let (runner, done) = Runner::start(engine.clone(), catalog(), clock, options, Arc::new(|_| {})).await.unwrap();
        Self { engine, runner, done }
    }

    /// Runs a command that must not be refused.
    pub(crate) async fn apply(&self, command: Command) -> Result<Reply, Failure> {
        let decided = self.runner.apply(Call::system(command)).await?;
        Ok(decided.reply.unwrap())
    }

    pub(crate) async fn like(&self, to: &str, who: &str) -> Result<EdgeReply, Failure> {
        self.apply(relate("like", to, who)).await.map(edge)
    }

    /// A count, as a load sees it.
    pub(crate) async fn count(&self, to: &str) -> Result<i64, StoreError> {
        let wants = Wants::totals(vec![total(to)]);
        Ok(self.engine.load(&wants).await?.totals[0])
    }

    /// Every count is what its edges add up to. Gives the number of edges.
    pub(crate) async fn assert_sound(&self) -> u64 {
        let mut found = Vec::new();
        let mut tell = |finding: Finding| {
            if !matches!(finding, Finding::Progress(_)) {
                found.push(finding);
            }
        };
        let audited = self.engine.audit(&mut tell).await.unwrap();
        assert_eq!(found, [], "the audit found something");
        audited.edges
    }

    /// Load on it, until that is checked.
    pub(crate) fn hands(&self) -> Hands {
        Hands::on(&self.runner, "hand")
    }

    /// What the hands were told is there, and everything adds up.
    pub(crate) async fn check(&self, hands: Hands) {
        hands.check(&*self.engine).await;
        self.assert_sound().await;
    }

    /// Waits until nothing is left to answer.
    pub(crate) async fn stop(self) -> Arc<E> {
        drop(self.runner);
        self.done.await.unwrap();
        self.engine
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn total(to: &str) -> TotalKey {
    TotalKey::Object { object: ObjectId::new(to).unwrap(), relation: name("like") }
}

pub(crate) fn relate(relation: &str, to: &str, who: &str) -> Command {
    let (object, subject) = (ObjectId::new(to).unwrap(), SubjectId::new(who).unwrap());
    Command::from(Relate { relation: name(relation), object, subject, kind: None, meta: None })
}

pub(crate) fn unrelate(relation: &str, to: &str, who: &str) -> Command {
    let (object, subject) = (ObjectId::new(to).unwrap(), SubjectId::new(who).unwrap());
    Command::from(Unrelate { relation: name(relation), object, subject })
}

pub(crate) fn edge(reply: Reply) -> EdgeReply {
    match reply {
        Reply::Relation(edge) => edge,
        other => panic!("{other:?} is not an edge"),
    }
}

/// What is said of a call that the store could not take, for now.
pub(crate) fn unavailable<T: std::fmt::Debug>(answer: Result<T, Failure>) -> String {
    match answer {
        Err(Failure::Store(StoreError::Unavailable(why))) => why,
        other => panic!("{other:?} is not a store that is unavailable"),
    }
}

/// Somebody who looks at the database from outside.
pub(crate) struct Outsider(pub(crate) tokio_postgres::Client);

impl Outsider {
    /// In the schema of the store, which need not be there yet.
    pub(crate) async fn of(url: &str) -> Self {
        let schema = &Options::parse(url).unwrap().schema;
        let base = url.split_once('?').unwrap().0;
        let (client, wire) = tokio_postgres::connect(base, NoTls).await.unwrap();
        tokio::spawn(wire);
        client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
        Self(client)
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.0.batch_execute(sql).await.unwrap();
    }

    /// One number.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.0.query_one(&format!("SELECT ({sql})::int8"), &[]).await.unwrap().get(0)
    }

    /// Commits that were made on all lanes.
    pub(crate) async fn commits(&self) -> i64 {
        self.number("SELECT coalesce(sum(seq), 0) FROM lane").await
    }

    /// Waits until so many backends of an application wait for a lock.
    pub(crate) async fn until_waiting(&self, application: &str, backends: i64) {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{application}' AND wait_event_type = 'Lock'"
        );
        until("it waits for a lock", async || (self.number(&sql).await == backends).then_some(())).await;
    }
}
