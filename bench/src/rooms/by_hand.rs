//! The queue that one would write by hand on Redis: a stream of joins, a sorted set of who waits, a key for each who is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

use crate::load::{self, Dialogue, Load, Measured, Round};
use crate::peers::redis::Redis;
use crate::resp;

/// Joins, or answers with the place of who has joined already. The score is the time of the stream's id, in milliseconds, as that
/// design has it: who joins within one millisecond stands in the order of the names.
const SCRIPT: &str = "\
local call = redis.call \
if call('SET', KEYS[3], '1', 'NX', 'PX', 86400000) then \
local id = call('XADD', KEYS[1], '*', 's', ARGV[1]) \
call('ZADD', KEYS[2], string.match(id, '^%d+'), ARGV[1]) \
return {1, call('ZRANK', KEYS[2], ARGV[1])} \
end \
return {0, call('ZRANK', KEYS[2], ARGV[1])}";

/// How it is set up, for the report.
pub(super) const SETUP: &str = "Redis 7 by hand: one EVALSHA script a join (SET NX with a lifetime, XADD, ZADD by milliseconds, ZRANK), \
TCP_NODELAY, save \"\", appendonly yes, appendfsync always, no rewrite of the log; 16 connections, with as many joins in flight in \
all as Tally has callers. It has no states, no rate, no capacity and no expiry";

/// Connections of the load generator.
pub(super) const CONNECTIONS: usize = 16;

/// Joins through the script, so many at a time, and what each was told.
struct Joins {
    sha: Vec<u8>,
    room: &'static str,
    next: Arc<AtomicU64>,
    last: u64,
    in_flight: u64,
    ranks: Vec<u64>,
}

impl Joins {
    fn join(&self, out: &mut Vec<u8>, number: u64) {
        // Names in no order, as names are.
        let who = format!("u{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let keys = ["log", "queue", &format!("known:{who}")].map(|part| format!("{{{}}}:{part}", self.room));
        let [log, queue, known] = keys.each_ref().map(|key| key.as_bytes());
        resp::command(out, &[b"EVALSHA", &self.sha, b"3", log, queue, known, who.as_bytes()]);
    }
}

impl Dialogue for &mut Joins {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        let first = self.next.fetch_add(self.in_flight, Ordering::Relaxed);
        let many = self.in_flight.min(self.last.saturating_sub(first));
        (first..first + many).for_each(|number| self.join(out, number));
        Round { replies: many as usize, operations: many }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        let length = resp::reply_length(input)?;
        if let Some(length) = length.filter(|_| self.last < u64::MAX) {
            let text = String::from_utf8_lossy(&input[..length]);
            self.ranks.extend(text.rsplit(':').next().and_then(|rank| rank.trim().parse::<u64>().ok()));
        }
        Ok(length)
    }
}

/// Joins a second, with so many in flight in all.
pub(super) async fn joins(redis: &Redis, load: Load, callers: usize) -> Result<Measured> {
    let sha = redis.load_script(SCRIPT).await?.into_bytes();
    let (address, next) = (redis.address, Arc::new(AtomicU64::new(0)));
    let in_flight = (callers / load.connections).max(1) as u64;
    load::run(load, async move |_, recorder| {
        let (sha, next) = (sha.clone(), next.clone());
        let mut joins = Joins { sha, room: "sale", next, last: u64::MAX, in_flight, ranks: Vec::new() };
        load::converse(address, &mut joins, recorder).await
    })
    .await
}

/// One connection joins so many in order. How many of a hundred were told another place than the one at which they came.
pub(super) async fn misplaced(redis: &Redis, count: u64) -> Result<f64> {
    let sha = redis.load_script(SCRIPT).await?.into_bytes();
    let next = Arc::new(AtomicU64::new(0));
    let mut joins = Joins { sha, room: "fair", next, last: count, in_flight: 64, ranks: Vec::new() };
    redis.converse(&mut joins, |_| {}).await?;
    let wrong = (0..).zip(&joins.ranks).filter(|(before, rank)| before != *rank).count();
    Ok(wrong as f64 / joins.ranks.len().max(1) as f64 * 100.0)
}
