//! What the load generator says to either.

use crate::http;
use crate::load::{Dialogue, Round};
use crate::peers::redis_dialogue::now_ms;
use crate::peers::{SharedWorkload, lock};
use crate::resp;
use crate::workload::SUBJECTS;
use anyhow::Result;
use std::io::Write;

/// One kind of counting.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Unique,
    Attendance,
    Board,
    Rank,
    Limit,
}

pub(super) const KINDS: [Kind; 6] =
    [Kind::Counter, Kind::Unique, Kind::Attendance, Kind::Board, Kind::Rank, Kind::Limit];

/// A window as people write it by hand, with one entry a use.
pub(super) const LIMIT_SCRIPT: &str = "\
local call, now = redis.call, tonumber(ARGV[1]) \
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 60000) \
local used = call('ZCARD', KEYS[1]) \
if used >= 100 then return {0, 0} end \
call('ZADD', KEYS[1], now, ARGV[2]) \
call('PEXPIRE', KEYS[1], 60000) \
return {1, 99 - used}";

/// Unique counts and days are so many.
const KEYS: u32 = 30;

impl Kind {
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Unique => "unique",
            Self::Attendance => "attendance",
            Self::Board => "board",
            Self::Rank => "rank",
            Self::Limit => "limit",
        }
    }

    pub(super) fn on_redis(self) -> &'static str {
        match self {
            Self::Counter => "INCR",
            Self::Unique => "PFADD",
            Self::Attendance => "SETBIT",
            Self::Board => "ZINCRBY",
            Self::Rank => "ZREVRANK",
            Self::Limit => "EVALSHA over a sorted set",
        }
    }

    pub(super) fn on_tally(self) -> &'static str {
        match self {
            Self::Counter => "POST /v1/counters",
            Self::Unique => "POST /v1/uniques",
            Self::Attendance => "PUT /v1/attendance",
            Self::Board => "POST /v1/boards, with the new rank",
            Self::Rank => "GET /v1/boards/points/uN",
            Self::Limit => "POST /v1/limits, sliding log",
        }
    }
}

/// What to ask, of whom.
#[derive(Clone)]
pub(super) struct Ask {
    pub(super) kind: Kind,
    pub(super) workload: SharedWorkload,
}

impl Ask {
    /// A key by Zipf, and a subject.
    fn pick(&self) -> (u32, u32) {
        let mut workload = lock(&self.workload);
        (workload.object(), workload.below(SUBJECTS))
    }
}

/// A conversation with Redis.
pub(super) struct OnRedis {
    ask: Ask,
    limit: Vec<u8>,
    uses: u64,
}

impl OnRedis {
    pub(super) fn new(ask: Ask, limit: &str) -> Self {
        Self { ask, limit: limit.as_bytes().to_vec(), uses: 0 }
    }
}

impl Dialogue for OnRedis {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        let (object, subject) = self.ask.pick();
        let (user, part) = (format!("u{subject}"), object % KEYS);
        match self.ask.kind {
            Kind::Counter => resp::command(out, &[b"INCR", format!("views:post:{object}").as_bytes()]),
            Kind::Unique => resp::command(out, &[b"PFADD", format!("dau:{part}").as_bytes(), user.as_bytes()]),
            Kind::Attendance => {
                let bit = subject.to_string();
                resp::command(out, &[b"SETBIT", format!("day:{part}").as_bytes(), bit.as_bytes(), b"1"]);
            }
            Kind::Board => resp::command(out, &[b"ZINCRBY", b"points", b"1", user.as_bytes()]),
            Kind::Rank => resp::command(out, &[b"ZREVRANK", b"points", user.as_bytes()]),
            Kind::Limit => {
                self.uses += 1;
                let (now, key) = (now_ms(), format!("posting:{user}"));
                let id = format!("{now}-{:p}-{}", &raw const *self, self.uses);
                let now = now.to_string();
                resp::command(out, &[b"EVALSHA", &self.limit, b"1", key.as_bytes(), now.as_bytes(), id.as_bytes()]);
            }
        }
        Round { replies: 1, operations: 1 }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        resp::reply_length(input)
    }
}

/// A conversation with Tally.
pub(super) struct OnTally {
    ask: Ask,
    head_tail: Vec<u8>,
}

impl OnTally {
    pub(super) fn new(ask: Ask, head_tail: Vec<u8>) -> Self {
        Self { ask, head_tail }
    }
}

impl Dialogue for OnTally {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        let (object, subject) = self.ask.pick();
        let (part, tail) = (object % KEYS, &self.head_tail);
        match self.ask.kind {
            Kind::Counter => http::post(out, &format!("/v1/counters/views/post:{object}"), tail, b"{\"by\":1}"),
            Kind::Unique => {
                let body = format!("{{\"members\":[\"u{subject}\"]}}");
                http::post(out, &format!("/v1/uniques/dau/d{part}"), tail, body.as_bytes());
            }
            Kind::Attendance => {
                let line = format_args!("PUT /v1/attendance/daily/2026-01-{:02}/{subject}", part + 1);
                http::request(out, line, tail);
            }
            Kind::Board => http::post(out, &format!("/v1/boards/points/u{subject}"), tail, b"{\"by\":1}"),
            Kind::Rank => http::request(out, format_args!("GET /v1/boards/points/u{subject}"), tail),
            Kind::Limit => http::post(out, &format!("/v1/limits/posting/u{subject}"), tail, b"{\"cost\":1}"),
        }
        Round { replies: 1, operations: 1 }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        let Some(reply) = http::parse(input)? else { return Ok(None) };
        http::expect_success(&reply, input)?;
        Ok(Some(reply.end))
    }
}

/// The score that a member of the board begins with: few enough that many are equal.
pub(super) fn first_score(member: u32) -> u32 {
    member.wrapping_mul(2_654_435_761) % 100_000
}

/// Fills a board of Redis.
pub(super) struct RedisBoard {
    next: u32,
    members: u32,
}

impl RedisBoard {
    pub(super) fn new(members: u32) -> Self {
        Self { next: 0, members }
    }
}

impl Dialogue for RedisBoard {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        let end = self.members.min(self.next + 1_000);
        for member in self.next..end {
            let (score, name) = (first_score(member).to_string(), format!("u{member}"));
            resp::command(out, &[b"ZADD", b"points", score.as_bytes(), name.as_bytes()]);
        }
        let added = end - self.next;
        self.next = end;
        Round { replies: added as usize, operations: added.into() }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        resp::reply_length(input)
    }
}

/// Fills a board of Tally.
pub(super) struct TallyBoard {
    next: u32,
    members: u32,
    head_tail: Vec<u8>,
}

impl TallyBoard {
    pub(super) fn new(members: u32, head_tail: Vec<u8>) -> Self {
        Self { next: 0, members, head_tail }
    }
}

impl Dialogue for TallyBoard {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        let end = self.members.min(self.next + 10_000);
        if end == self.next {
            return Round { replies: 0, operations: 0 };
        }
        let mut body = b"{\"atomic\":false,\"commands\":[".to_vec();
        for member in self.next..end {
            let comma = if member > self.next { "," } else { "" };
            // Writing into memory cannot fail.
            let _ = write!(
                body,
                "{comma}{{\"op\":\"score\",\"board\":\"points\",\"member\":\"u{member}\",\"score\":{}}}",
                first_score(member)
            );
        }
        body.extend_from_slice(b"]}");
        http::post(out, "/v1/batch", &self.head_tail, &body);
        let added = end - self.next;
        self.next = end;
        Round { replies: 1, operations: added.into() }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        let Some(reply) = http::parse(input)? else { return Ok(None) };
        http::expect_success(&reply, input)?;
        Ok(Some(reply.end))
    }
}
