//! The nodes of a cluster, and how they become one.

use super::view::View;
use super::{Options, SLOTS};
use crate::redis::Redis;
use anyhow::{Context, Result, anyhow};
use std::ops::{Deref, RangeInclusive};

/// What a node is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes writes for its slots.
    Master,
    /// It follows a master, and takes its place if that fails.
    Replica,
}

/// A node: a [`Redis`] that can be asked anything. What ends and starts it is at the [`super::Cluster`].
pub struct Node {
    pub(super) redis: Redis,
    pub(super) id: String,
}

impl Node {
    /// What it goes by among the nodes. Stays the same when it is started again.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it says that it is. An error while it is down.
    pub fn role(&self) -> Result<Role> {
        Ok(View::of(0, self)?.itself()?.role())
    }

    /// The slots that it says it serves.
    pub fn slots(&self) -> Result<Vec<RangeInclusive<u16>>> {
        Ok(View::of(0, self)?.itself()?.slots.clone())
    }
}

impl Deref for Node {
    type Target = Redis;

    fn deref(&self) -> &Redis {
        &self.redis
    }
}

/// Starts that many nodes at once. None knows of another yet.
pub(super) fn start(nodes: usize, options: &Options, clocks_ahead_s: &[i64]) -> Result<Vec<Node>> {
    let start = |number: usize| -> Result<Node> {
        let clock_ahead_s = clocks_ahead_s.get(number).copied().unwrap_or(options.clock_ahead_s);
        let redis = Redis::start_as(Options { clock_ahead_s, ..options.clone() }, true)?;
        let id = redis.ask(&["CLUSTER", "MYID"])?;
        Ok(Node { redis, id })
    };
    std::thread::scope(|scope| {
        let starting: Vec<_> = (0..nodes).map(|number| scope.spawn(move || start(number))).collect();
        starting.into_iter().map(|node| node.join().map_err(|_| anyhow!("a thread panicked"))?).collect()
    })
}

/// Says until when a node that is silent is not taken for dead, until it is started again.
pub(super) fn set_timeout(nodes: &[Node], timeout_ms: u64) -> Result<()> {
    let timeout_ms = timeout_ms.to_string();
    nodes.iter().try_for_each(|node| node.ask(&["CONFIG", "SET", "cluster-node-timeout", &timeout_ms]).map(drop))
}

/// Gives each of these nodes an equal share of the slots.
pub(super) fn assign_slots(masters: &[Node]) -> Result<()> {
    let first = |at: usize| at * usize::from(SLOTS) / masters.len();
    for (at, master) in masters.iter().enumerate() {
        let (first, last) = (first(at).to_string(), (first(at + 1) - 1).to_string());
        master.ask(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
        // Each its own, as otherwise they begin by settling who has which.
        master.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()])?;
    }
    Ok(())
}

/// Tells the first node of all others. The rest is gossip.
pub(super) fn introduce(nodes: &[Node]) -> Result<()> {
    let Some((first, others)) = nodes.split_first() else { return Ok(()) };
    for other in others {
        let (address, bus) = (other.address(), other.bus.context("a node has a bus")?);
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        first.ask(&["CLUSTER", "MEET", &ip, &port, &bus.port().to_string()])?;
    }
    Ok(())
}
