//! The only place that knows every engine.

use std::path::PathBuf;

use tally_core::rows::Changes;
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_embedded::Embedded;
use tally_engine::memory::Memory;
use tally_engine::{
    Audited, CommitError, Committed, Engine, Finding, Follower, Loaded, Mark, Mend, Nature, Page, Range, Seen,
    StoreError,
};
use tally_postgres::Postgres;
use tally_redis::Redis;

use crate::Error;

/// A store's URL, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opening {
    /// `embedded:PATH`.
    Embedded(PathBuf),
    /// `postgres://…`, which several servers may share.
    Postgres(Box<tally_postgres::Options>),
    /// `redis://…` and `redis+cluster://…`, which several servers may share.
    Redis(Box<tally_redis::Options>),
    /// `memory:`, which keeps nothing.
    Memory,
}

impl Opening {
    /// Reads a store's URL.
    pub fn parse(url: &str) -> Result<Self, Error> {
        match url.split_once(':') {
            Some(("embedded", path)) if !path.is_empty() => Ok(Self::Embedded(path.into())),
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("postgres" | "postgresql", _)) => {
                let options = tally_postgres::Options::parse(url).map_err(|why| misread(url, &why))?;
                Ok(Self::Postgres(Box::new(options)))
            }
            Some(("redis" | "rediss" | "redis+cluster" | "rediss+cluster", _)) => {
                let options = tally_redis::Options::parse(url).map_err(|why| misread(url, &why))?;
                Ok(Self::Redis(Box::new(options)))
            }
            _ => {
                let shown = redacted(url);
                Err(Error::Open(format!(
                    "`{shown}` is not a store; use embedded:PATH, such as embedded:./tally-data, postgres://user@host/database, redis://host or redis+cluster://host1,host2"
                )))
            }
        }
    }

    /// Opens the store.
    pub async fn open(self, embedded: &tally_embedded::Options) -> Result<AnyEngine, Error> {
        match self {
            Self::Memory => Ok(AnyEngine::Memory(Memory::default())),
            Self::Postgres(options) => Ok(AnyEngine::Postgres(Postgres::new(*options)?)),
            Self::Redis(options) => Ok(AnyEngine::Redis(Redis::new(*options))),
            Self::Embedded(path) => {
                let options = embedded.clone();
                let opening = tokio::task::spawn_blocking(move || Embedded::open(&path, options));
                let opened = opening.await.map_err(|error| Error::Open(error.to_string()))?;
                opened.map(AnyEngine::Embedded).map_err(|error| Error::Open(error.to_string()))
            }
        }
    }
}

/// Says what is wrong with a URL, and nothing that may be part of a password.
fn misread(url: &str, why: &str) -> Error {
    // With a password that was not encoded, part of it may stand anywhere.
    let is_torn = url.rsplit_once('@').is_some_and(|(before, _)| before.contains(['?', '#']));
    let advice = "a password with `@`, `/`, `?` or `#` in it is written percent-encoded, such as %40";
    let why = if is_torn { advice } else { why };
    Error::Open(format!("`{}`: {why}", redacted(url)))
}

/// A store's URL without its password, for people and logs. Where it is not clear what the password is,
/// more is taken for it rather than less.
pub fn redacted(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let mut parts = rest.split("password=");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest += "password=***";
        rest += part.find('&').map_or("", |end| &part[end..]);
    }
    if let Some((user, host)) = rest.rsplit_once('@')
        && let Some((user, _)) = user.split_once(':')
    {
        rest = format!("{user}:***@{host}");
    }
    format!("{scheme}://{rest}")
}

/// Any store that Tally runs on.
pub enum AnyEngine {
    /// One folder.
    Embedded(Embedded),
    /// A database that several servers may share.
    Postgres(Postgres),
    /// A Redis, or a Cluster of them, that several servers may share.
    Redis(Redis),
    /// Nothing but memory.
    Memory(Memory),
}

impl AnyEngine {
    /// The embedded store, where it is one.
    pub fn embedded(&self) -> Option<&Embedded> {
        match self {
            Self::Embedded(engine) => Some(engine),
            Self::Postgres(_) | Self::Redis(_) | Self::Memory(_) => None,
        }
    }

    /// The store in PostgreSQL, where it is one.
    pub fn postgres(&self) -> Option<&Postgres> {
        if let Self::Postgres(engine) = self { Some(engine) } else { None }
    }

    /// The store in Redis, where it is one.
    pub fn redis(&self) -> Option<&Redis> {
        if let Self::Redis(engine) = self { Some(engine) } else { None }
    }
}

/// Passes a call on to whichever engine it is.
macro_rules! each {
    ($self:ident, $engine:ident => $call:expr) => {
        match $self {
            Self::Embedded($engine) => $call,
            Self::Postgres($engine) => $call,
            Self::Redis($engine) => $call,
            Self::Memory($engine) => $call,
        }
    };
    ($self:ident, $engine:ident => $call:expr, .await) => {
        match $self {
            Self::Embedded($engine) => $call.await,
            // On the heap: a conversation with a database is large, and whoever awaits it would be too.
            Self::Postgres($engine) => Box::pin($call).await,
            Self::Redis($engine) => Box::pin($call).await,
            Self::Memory($engine) => $call.await,
        }
    };
}

impl Engine for AnyEngine {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        each!(self, engine => engine.prepare(), .await)
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        each!(self, engine => engine.load(wants), .await)
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        each!(self, engine => engine.commit(seen, changes), .await)
    }

    async fn settle(&self, mark: Mark) -> Result<(), StoreError> {
        each!(self, engine => engine.settle(mark), .await)
    }

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        each!(self, engine => engine.scan(range, limit), .await)
    }

    async fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send)) -> Result<Audited, StoreError> {
        each!(self, engine => engine.audit(tell), .await)
    }

    async fn mend(&self, what: &Mend) -> Result<bool, StoreError> {
        each!(self, engine => engine.mend(what), .await)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        each!(self, engine => engine.ping(), .await)
    }

    fn nature(&self) -> Nature {
        each!(self, engine => engine.nature())
    }

    fn follower(&self) -> Option<&Follower> {
        each!(self, engine => engine.follower())
    }

    async fn close(&self) {
        match self {
            Self::Embedded(engine) => engine.store().close(),
            Self::Postgres(engine) => engine.close().await,
            Self::Redis(engine) => engine.close().await,
            Self::Memory(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("embedded:./data", "embedded:./data"),
            ("embedded:/a@b:c/data", "embedded:/a@b:c/data"),
            ("memory:", "memory:"),
            ("postgres://db/tally", "postgres://db/tally"),
            ("postgres://db:5432/tally?sslmode=require", "postgres://db:5432/tally?sslmode=require"),
            ("postgres://app@db:5432/tally", "postgres://app@db:5432/tally"),
            ("postgres://app:hush@db:5432/tally", "postgres://app:***@db:5432/tally"),
            ("postgres://app:@db/tally", "postgres://app:***@db/tally"),
            ("rediss://:hush@db:6379/0", "rediss://:***@db:6379/0"),
            ("postgres://app:hu:s@h/hu?sh@db/tally", "postgres://app:***@db/tally"),
            ("postgres://app@db:1/t?password=hu@sh&a=b", "postgres://app@db:1/t?password=***&a=b"),
            ("postgres://db/t?a=b&password=hush", "postgres://db/t?a=b&password=***"),
            ("postgres://db/t?sslpassword=hush&password=hush", "postgres://db/t?sslpassword=***&password=***"),
            ("mysql://u:hush@h", "mysql://u:***@h"),
        ] {
            assert_eq!(redacted(url), shown, "{url}");
        }
        let Err(error) = Opening::parse("mysql://u:hush@h/db") else { panic!("there is no such store") };
        assert!(!error.to_string().contains("hush"), "{error}");
        for torn in ["postgres://app:?hush@db/tally", "postgres://app:#hush@db/tally", "postgres://app:x/?hush@db/t"] {
            // Some of them can be understood all the same.
            let said = Opening::parse(torn).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!said.contains("hush"), "{said}");
        }
    }
}
