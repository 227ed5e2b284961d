//! A store with a runner on it, and waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tally_conformance::network::Hands;
use tally_core::catalog::ReadPolicy;
use tally_core::command::{Add, Call, Command, Relate, Repair, Toggle, Unrelate};
use tally_core::reply::{EdgeReply, Reply};
use tally_core::rows::TotalKey;
use tally_core::view::Wants;
use tally_core::{Catalog, KeyId, Name, ObjectId, RelationDef, SubjectId};
use tally_engine::{Engine, Failure, Finding, Runner, RunnerOptions, StoreError, SystemClock};
use tally_redis::{Options, Redis};
pub(crate) use tally_testing::until;
use tokio::task::JoinHandle;

/// A word that no other test has.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("promise:{}:{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A place on the instance that everybody shares.
pub(crate) fn shared(more: &str) -> String {
    format!("{}?prefix={}{more}", tally_testing::Redis::shared().unwrap(), unique())
}

/// A place on the Cluster that everybody shares.
pub(crate) fn shared_cluster(more: &str) -> String {
    format!("{}?prefix={}{more}", tally_testing::Cluster::shared().unwrap(), unique())
}

pub(crate) fn engine(url: &str) -> Arc<Redis> {
    Arc::new(Redis::new(Options::parse(url).unwrap()))
}

/// Of a reaction.
pub(crate) const KINDS: [&str; 3] = ["like", "love", "wow"];

/// Everybody's relations, one with a limit and one with kinds.
pub(crate) fn catalog() -> Arc<Catalog> {
    let mut catalog = Catalog::default();
    let mut shelf = RelationDef::new(Name::new("shelf").unwrap(), ReadPolicy::Public);
    shelf.limit_per_subject = Some(3);
    catalog.declare(shelf);
    let mut reaction = RelationDef::new(Name::new("reaction").unwrap(), ReadPolicy::Public);
    reaction.one_of = KINDS.map(|kind| Name::new(kind).unwrap()).to_vec();
    catalog.declare(reaction);
    Arc::new(catalog)
}

/// A runner on an engine.
pub(crate) struct Store<E: Engine = Redis> {
    pub(crate) engine: Arc<E>,
    pub(crate) runner: Runner,
    done: JoinHandle<()>,
}

impl Store {
    pub(crate) async fn open(url: &str) -> Self {
        Self::on(engine(url)).await
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

    /// What the audit finds, and the number of edges, once everything that was left open has been ended.
    pub(crate) async fn findings(&self) -> (Vec<Finding>, u64) {
        self.settle().await;
        let mut found = Vec::new();
        let mut tell = |finding: Finding| {
            if !matches!(finding, Finding::Progress(_)) {
                found.push(finding);
            }
        };
        let audited = self.engine.audit(&mut tell).await.unwrap();
        (found, audited.edges)
    }

    /// Waits until no slot has anything open. Something younger than half a second is left alone, so once may
    /// not do.
    pub(crate) async fn settle(&self) {
        until("nothing is open", async || (self.engine.drain().await.ok()? == 0).then_some(())).await;
    }

    /// Every count is what its edges add up to, and both sides agree. Gives the number of edges.
    pub(crate) async fn assert_sound(&self) -> u64 {
        let (found, edges) = self.findings().await;
        assert_eq!(found, [], "the audit found something");
        edges
    }
}

impl<E: Engine> Store<E> {
    pub(crate) async fn on(engine: Arc<E>) -> Self {
        let options = RunnerOptions::default();
        let (runner, done) =
            Runner::start(engine.clone(), catalog(), SystemClock, options, Arc::new(|_| {})).await.unwrap();
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

    /// Adds one to a total that has no edges, whatever it is: done twice, it would show.
    pub(crate) async fn add(&self, to: &str) -> Result<Reply, Failure> {
        self.apply(Command::from(Repair { found_in: None, total: total(to), by: 1 })).await
    }

    /// A count, as a load sees it.
    pub(crate) async fn count(&self, to: &str) -> Result<i64, StoreError> {
        let wants = Wants::totals(vec![total(to)]);
        Ok(self.engine.load(&wants).await?.totals[0])
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

pub(crate) fn react(to: &str, who: &str, kind: &str) -> Command {
    let (object, subject) = (ObjectId::new(to).unwrap(), SubjectId::new(who).unwrap());
    Command::from(Relate { relation: name("reaction"), object, subject, kind: Some(name(kind)), meta: None })
}

pub(crate) fn count(key: &str, by: i64) -> Command {
    Command::from(Add { counter: name("views"), key: KeyId::new(key).unwrap(), by })
}

/// What a counter was told to be.
pub(crate) fn counted(reply: &Reply) -> i64 {
    match reply {
        Reply::Counter(count) => count.value,
        other => panic!("{other:?} is not a counter"),
    }
}

pub(crate) fn unrelate(relation: &str, to: &str, who: &str) -> Command {
    let (object, subject) = (ObjectId::new(to).unwrap(), SubjectId::new(who).unwrap());
    Command::from(Unrelate { relation: name(relation), object, subject })
}

pub(crate) fn toggle(to: &str, who: &str) -> Command {
    let (object, subject) = (ObjectId::new(to).unwrap(), SubjectId::new(who).unwrap());
    Command::from(Toggle { relation: name("like"), object, subject, kind: None, meta: None })
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

/// Runs what blocks, without holding up anybody else.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}
