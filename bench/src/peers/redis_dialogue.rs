//! What the load generator says to Redis.

use super::{Pick, SharedWorkload, lock};
use crate::load::{Dialogue, Round};
use crate::resp;
use crate::workload::Shape;
use anyhow::Result;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// A like as one script: two sorted sets, the first of which de-duplicates, counts and lists.
///
/// The fastest honest design found: ZADD NX answers whether it is new, ZCARD is the count in O(1), so
/// neither a membership set nor a counter is needed. The time comes from the client, which saves a call.
pub(crate) const LIKE_SCRIPT: &str = "\
local call = redis.call \
if call('ZADD', KEYS[1], 'NX', ARGV[1], ARGV[2]) == 1 then \
call('ZADD', KEYS[2], ARGV[1], ARGV[3]) \
return {1, call('ZCARD', KEYS[1])} \
end \
return {0, call('ZCARD', KEYS[1])}";

/// Scratch space for the words of a command.
#[derive(Default)]
struct Words {
    object_key: Vec<u8>,
    subject_key: Vec<u8>,
    time: Vec<u8>,
}

impl Words {
    fn set(&mut self, relation: &str, object: u32, subject: u32) {
        self.object_key.clear();
        self.subject_key.clear();
        // Writing into memory cannot fail.
        let _ = write!(self.object_key, "{relation}:post:{object}");
        let _ = write!(self.subject_key, "{relation}:u{subject}");
    }

    fn set_time(&mut self, ms: u64) {
        self.time.clear();
        let _ = write!(self.time, "{ms}");
    }

    /// `post:1` of `like:post:1`.
    fn object(&self, relation: &str) -> &[u8] {
        &self.object_key[relation.len() + 1..]
    }

    fn subject(&self, relation: &str) -> &[u8] {
        &self.subject_key[relation.len() + 1..]
    }
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Likes through the script, `in_flight` at a time.
pub(crate) struct Likes {
    pub(crate) workload: SharedWorkload,
    pub(crate) shape: Shape,
    pub(crate) in_flight: usize,
    pub(crate) sha: Vec<u8>,
    words: Words,
}

impl Likes {
    pub(crate) fn new(workload: SharedWorkload, shape: Shape, in_flight: usize, sha: &str) -> Self {
        Self { workload, shape, in_flight, sha: sha.into(), words: Words::default() }
    }
}

impl Dialogue for Likes {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        self.words.set_time(now_ms());
        let mut workload = lock(&self.workload);
        for _ in 0..self.in_flight {
            let edge = workload.next(self.shape);
            let words = &mut self.words;
            words.set("like", edge.object, edge.subject);
            let (object, subject) = (words.object("like"), words.subject("like"));
            resp::command(
                out,
                &[b"EVALSHA", &self.sha, b"2", &words.object_key, &words.subject_key, &words.time, subject, object],
            );
        }
        Round { replies: self.in_flight, operations: self.in_flight as u64 }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        resp::reply_length(input)
    }
}

/// Loads edges with plain ZADD, in bursts, until there are enough.
pub(crate) struct Preload {
    pub(crate) edges: Box<dyn Iterator<Item = (u32, u32)>>,
    pub(crate) relation: &'static str,
    time_ms: u64,
    words: Words,
}

impl Preload {
    pub(crate) fn new(relation: &'static str, edges: Box<dyn Iterator<Item = (u32, u32)>>) -> Self {
        Self { edges, relation, time_ms: now_ms() - 100_000_000, words: Words::default() }
    }
}

impl Dialogue for Preload {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        let mut edges = 0;
        while edges < 1000 {
            let Some((object, subject)) = self.edges.next() else { break };
            edges += 1;
            self.time_ms += 1;
            self.words.set_time(self.time_ms);
            self.words.set(self.relation, object, subject);
            let words = &self.words;
            resp::command(out, &[b"ZADD", &words.object_key, &words.time, words.subject(self.relation)]);
            resp::command(out, &[b"ZADD", &words.subject_key, &words.time, words.object(self.relation)]);
        }
        Round { replies: edges * 2, operations: edges as u64 }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        resp::reply_length(input)
    }
}

/// A feed: count and viewer's flag of 50 objects in two relations, in one pipeline.
pub(crate) struct Feed {
    pub(crate) workload: SharedWorkload,
    pub(crate) objects: usize,
    words: Words,
}

impl Feed {
    pub(crate) fn new(workload: SharedWorkload, objects: usize) -> Self {
        Self { workload, objects, words: Words::default() }
    }
}

impl Dialogue for Feed {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        let mut workload = lock(&self.workload);
        let viewer = workload.below(crate::workload::SUBJECTS);
        for _ in 0..self.objects {
            let object = workload.object();
            for relation in crate::feed::RELATIONS {
                self.words.set(relation, object, viewer);
                resp::command(out, &[b"ZCARD", &self.words.object_key]);
                resp::command(out, &[b"ZSCORE", &self.words.object_key, self.words.subject(relation)]);
            }
        }
        Round { replies: self.objects * crate::feed::RELATIONS.len() * 2, operations: 1 }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        resp::reply_length(input)
    }
}

/// The newest of one sorted set, with their times.
pub(crate) struct Newest {
    pub(crate) pick: Pick,
    pub(crate) limit: usize,
    key: Vec<u8>,
}

impl Newest {
    pub(crate) fn new(limit: usize, pick: Pick) -> Self {
        Self { pick, limit, key: Vec::new() }
    }
}

impl Dialogue for Newest {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        self.key.clear();
        (self.pick)(&mut self.key);
        let last = (self.limit - 1).to_string();
        resp::command(out, &[b"ZREVRANGE", &self.key, b"0", last.as_bytes(), b"WITHSCORES"]);
        Round { replies: 1, operations: 1 }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        resp::reply_length(input)
    }
}

/// One command, asked once; keeps the reply's text.
pub(crate) struct Once {
    words: Vec<Vec<u8>>,
    pub(crate) answer: Vec<u8>,
}

impl Once {
    pub(crate) fn new(words: &[&str]) -> Self {
        Self { words: words.iter().map(|word| word.as_bytes().to_vec()).collect(), answer: Vec::new() }
    }
}

impl Dialogue for Once {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        let words: Vec<&[u8]> = self.words.iter().map(Vec::as_slice).collect();
        resp::command(out, &words);
        Round { replies: 1, operations: 1 }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        let length = resp::reply_length(input)?;
        if let Some(length) = length {
            self.answer = input[..length].to_vec();
        }
        Ok(length)
    }
}
