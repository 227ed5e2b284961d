//! The old Redis: one server, or every master of a cluster. It is only ever read, a page at a time.

use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, FromRedisValue, RedisError, RedisResult};
use serde::{Deserialize, Serialize};

use super::connect::failure;
use crate::failure::Failure;

/// About how many keys one step of `SCAN` looks at. Others wait for that long.
const SCAN_KEYS: usize = 500;
/// About how many members are read at once.
const PAGE_MEMBERS: usize = 1_000;

/// An open Redis.
pub(crate) struct Source {
    pub(super) link: Link,
    pub(super) shown: String,
    pub(super) shards: Vec<Shard>,
}

#[derive(Clone)]
pub(super) enum Link {
    Node(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// A server with a part of the keys.
pub(super) struct Shard {
    /// Its place in a cluster.
    pub(super) address: Option<(String, u16)>,
    /// Which run of the server this is: a cursor means nothing to the next one.
    pub(super) run: Option<String>,
}

/// How members are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Set,
    SortedSet,
}

/// Where a page of members ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Place {
    /// A cursor of `SSCAN`.
    Cursor(u64),
    /// A score, and how many members with just this score have been read.
    Score(String, u64),
}

/// Some of a key's members.
pub(super) struct Page {
    pub(super) members: Vec<Vec<u8>>,
    pub(super) next: Option<Place>,
}

/// How many there are, and how many the old counter says.
pub(super) struct Counts {
    pub(super) members: u64,
    pub(super) counter: Counter,
}

/// The old counter.
#[derive(Debug, PartialEq)]
pub(super) enum Counter {
    Absent,
    Number(i64),
    /// There is something, but no number.
    Odd(String),
}

/// What is at a key.
pub(super) enum Look {
    /// Nothing any more.
    Gone,
    /// Something that is neither a set nor a sorted set.
    Other(String),
    Members {
        kind: Kind,
        first: Page,
        counts: Counts,
    },
}

impl Source {
    /// Its URL without a password.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// How many servers share the keys.
    pub(super) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Which runs of which servers: as long as it is the same, cursors are good. Nothing if that is not known.
    pub(super) fn runs(&self) -> Option<Vec<String>> {
        let name = |shard: &Shard| {
            let run = shard.run.clone()?;
            Some(shard.address.as_ref().map_or(run.clone(), |(host, port)| format!("{host}:{port} {run}")))
        };
        self.shards.iter().map(name).collect()
    }

    /// One step through the keys of a shard. A cursor of 0 is the beginning, and the end.
    pub(super) async fn scan(&self, shard: usize, cursor: u64, glob: &str) -> Result<(u64, Vec<Vec<u8>>), Failure> {
        let mut cmd = redis::cmd("SCAN");
        cmd.arg(cursor).arg("MATCH").arg(glob).arg("COUNT").arg(SCAN_KEYS);
        let answer = match (&self.link, self.shards.get(shard).and_then(|shard| shard.address.clone())) {
            (Link::Cluster(link), Some((host, port))) => {
                let route = RoutingInfo::SingleNode(SingleNodeRoutingInfo::ByAddress { host, port });
                let value = link.clone().route_command(cmd, route).await;
                value.and_then(|value| Ok(redis::from_redis_value(value)?))
            }
            _ => self.ask(&cmd).await,
        };
        answer.map_err(|error| self.failure(&error))
    }

    /// Looks at several keys at once: what is there, its first members, and its counts.
    pub(super) async fn look(&self, keys: &[(String, Option<String>)]) -> Result<Vec<Look>, Failure> {
        join_all(keys.iter().map(|(key, counter)| self.look_at(key, counter.as_deref()))).await.into_iter().collect()
    }

    async fn look_at(&self, key: &str, counter: Option<&str>) -> Result<Look, Failure> {
        let kind: String = self.ask(redis::cmd("TYPE").arg(key)).await.map_err(|error| self.failure(&error))?;
        let kind = match kind.as_str() {
            "set" => Kind::Set,
            "zset" => Kind::SortedSet,
            "none" => return Ok(Look::Gone),
            _ => return Ok(Look::Other(kind)),
        };
        let (first, counts) = tokio::join!(self.members(key, kind, None), self.counts(key, kind, counter));
        // Between the questions somebody may have put something else there.
        let Some((first, counts)) = first?.zip(counts?) else { return Ok(Look::Other("unknown".into())) };
        Ok(Look::Members { kind, first, counts })
    }

    /// For pairs of a set and its counter: the counter, where there is no such set.
    pub(super) async fn counters_alone(&self, pairs: &[(String, String)]) -> Result<Vec<Option<Counter>>, Failure> {
        let alone = |(set, counter): &(String, String)| {
            let (exists, counter) = (redis::cmd("EXISTS").arg(set).to_owned(), counter.clone());
            async move {
                let (exists, counter) = tokio::join!(self.ask::<bool>(&exists), self.counter(Some(&counter)));
                Ok((!exists?).then_some(counter?))
            }
        };
        let answers: RedisResult<Vec<_>> = join_all(pairs.iter().map(alone)).await.into_iter().collect();
        answers.map_err(|error| self.failure(&error))
    }

    /// How many members a key has, whatever it is called.
    pub(super) async fn size(&self, key: &[u8]) -> Result<u64, Failure> {
        for name in ["SCARD", "ZCARD"] {
            let size = self.ask(redis::cmd(name).arg(key)).await;
            if let Some(size) = self.unless_other(size)? {
                return Ok(size);
            }
        }
        Ok(0)
    }

    /// A page of members. Nothing if the key holds something else by now.
    pub(super) async fn members(&self, key: &str, kind: Kind, after: Option<&Place>) -> Result<Option<Page>, Failure> {
        let page = match kind {
            Kind::Set => self.unordered(key, after).await,
            Kind::SortedSet => self.ordered(key, after).await,
        };
        self.unless_other(page)
    }

    async fn unordered(&self, key: &str, after: Option<&Place>) -> RedisResult<Page> {
        let cursor = if let Some(Place::Cursor(cursor)) = after { *cursor } else { 0 };
        let (next, members): (u64, _) =
            self.ask(redis::cmd("SSCAN").arg(key).arg(cursor).arg("COUNT").arg(PAGE_MEMBERS)).await?;
        Ok(Page { members, next: (next != 0).then_some(Place::Cursor(next)) })
    }

    /// By score, not by `ZSCAN`: members are related in the order that they come in, and lists keep it.
    async fn ordered(&self, key: &str, after: Option<&Place>) -> RedisResult<Page> {
        let (from, skip) =
            if let Some(Place::Score(score, seen)) = after { (score.as_str(), *seen) } else { ("-inf", 0) };
        let mut cmd = redis::cmd("ZRANGEBYSCORE");
        cmd.arg(key).arg(from).arg("+inf").arg("WITHSCORES").arg("LIMIT").arg(skip).arg(PAGE_MEMBERS);
        let found: Vec<(Vec<u8>, f64)> = self.ask(&cmd).await?;
        let next = found.last().filter(|_| found.len() == PAGE_MEMBERS).map(|(_, last)| {
            let same = found.iter().rev().take_while(|(_, score)| score == last).count() as u64;
            let score = last.to_string();
            let before = if score == from { skip } else { 0 };
            Place::Score(score, before + same)
        });
        Ok(Page { members: found.into_iter().map(|(member, _)| member).collect(), next })
    }

    /// How many members there are, and what the old counter says. Nothing if the key holds something else by now.
    pub(super) async fn counts(&self, key: &str, kind: Kind, counter: Option<&str>) -> Result<Option<Counts>, Failure> {
        let card = redis::cmd(if kind == Kind::Set { "SCARD" } else { "ZCARD" }).arg(key).to_owned();
        let (members, counter) = tokio::join!(self.ask(&card), self.counter(counter));
        let counter = counter.map_err(|error| self.failure(&error))?;
        Ok(self.unless_other(members)?.map(|members| Counts { members, counter }))
    }

    async fn counter(&self, key: Option<&str>) -> RedisResult<Counter> {
        let Some(key) = key else { return Ok(Counter::Absent) };
        match self.ask::<Option<Vec<u8>>>(redis::cmd("GET").arg(key)).await {
            Ok(None) => Ok(Counter::Absent),
            Ok(Some(bytes)) => Ok(match std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok()) {
                Some(number) => Counter::Number(number),
                None => Counter::Odd(format!("the counter {key} is not a whole number")),
            }),
            Err(error) if is_other(&error) => Ok(Counter::Odd(format!("{key} is not a counter"))),
            Err(error) => Err(error),
        }
    }

    /// Asks anything that only reads.
    pub(crate) async fn asked<T: FromRedisValue>(&self, cmd: &Cmd) -> Result<T, Failure> {
        self.ask(cmd).await.map_err(|error| self.failure(&error))
    }

    async fn ask<T: FromRedisValue>(&self, cmd: &Cmd) -> RedisResult<T> {
        match self.link.clone() {
            Link::Node(mut link) => cmd.query_async(&mut link).await,
            Link::Cluster(mut link) => cmd.query_async(&mut link).await,
        }
    }

    fn unless_other<T>(&self, answer: RedisResult<T>) -> Result<Option<T>, Failure> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if is_other(&error) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn failure(&self, error: &RedisError) -> Failure {
        failure(&self.shown, error)
    }
}

fn is_other(error: &RedisError) -> bool {
    error.code() == Some("WRONGTYPE")
}
