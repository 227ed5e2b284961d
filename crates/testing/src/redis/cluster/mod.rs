//! A Redis Cluster, started here.

mod announced;
mod moving;
mod node;
mod view;

pub use node::{Node, Role};

use super::Options;
use anyhow::{Context, Result, bail};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use view::View;

/// Names the cluster that all tests share: a URL. `with-services` sets it.
pub const REDIS_CLUSTER_VARIABLE: &str = "TALLY_TEST_REDIS_CLUSTER";

/// Names the cluster of Valkeys that all tests share. `with-services` sets it.
pub const VALKEY_CLUSTER_VARIABLE: &str = "TALLY_TEST_VALKEY_CLUSTER";

/// A cluster of this process, or the URL of another's.
type Shared = OnceLock<Result<(String, Option<Cluster>), String>>;

/// How many slots there are in any cluster.
pub const SLOTS: u16 = 16_384;

/// Nodes talk the more often the shorter it is, so this makes a cluster quickly, and none is dead yet.
const FORMING_TIMEOUT_MS: u64 = 1500;

/// Clocks of six nodes; none is that of the one that takes over from it.
pub const HOURS_APART: [i64; 6] = [0, 3_600, -3_600, 3_600, -3_600, 0];

/// How long the nodes may take to agree. A failover takes some seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a cluster is set up.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// How many masters there are. Each has one replica.
    pub masters: usize,
    /// After how long without a word a node is taken for dead (`cluster-node-timeout`).
    pub node_timeout_ms: u64,
    /// How each node is set up.
    pub node: Options,
    /// By how much the clock of each node is wrong, by number; of all others not at all.
    pub clocks_ahead_s: Vec<i64>,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self { masters: 3, node_timeout_ms: 1500, node: Options::default(), clocks_ahead_s: Vec::new() }
    }
}

impl ClusterOptions {
    /// For a cluster that many use. Nobody kills a node of it, and none is taken for dead on a busy machine.
    pub fn shared() -> Self {
        Self { node_timeout_ms: 30_000, ..Self::default() }
    }

    /// The same of Valkeys, whose clocks are an hour apart.
    pub fn shared_apart() -> Result<Self> {
        let node = Options { program: Some(super::valkey()?), ..Options::default() };
        Ok(Self { node, clocks_ahead_s: HOURS_APART.into(), ..Self::shared() })
    }

    /// The settings of a node.
    fn of_node(&self) -> Options {
        let ours = [
            ("cluster-node-timeout", self.node_timeout_ms.to_string()),
            ("cluster-announce-ip", "127.0.0.1".into()),
            // A replica stays with its master, so that a test knows where it is.
            ("cluster-allow-replica-migration", "no".into()),
        ];
        let mut options = self.node.clone();
        options.settings.splice(0..0, ours.map(|(name, value)| (name.into(), value)));
        options
    }
}

/// A Redis Cluster of one's own; dropping it ends its nodes and removes their files.
///
/// Nodes go by number. At the start the first half of them are the masters, each with an equal share of the
/// slots, and the second half their replicas, in the same order.
pub struct Cluster {
    nodes: Vec<Node>,
    /// The part of its URL that says who asks.
    user: String,
}

impl Cluster {
    /// Starts the nodes and makes them a cluster. Blocks until all of them agree that it is well.
    pub fn start(options: ClusterOptions) -> Result<Self> {
        let nodes = node::start(options.masters * 2, &options.of_node(), &options.clocks_ahead_s)?;
        let cluster = Self { nodes, user: options.node.user() };
        node::set_timeout(&cluster.nodes, FORMING_TIMEOUT_MS)?;
        node::assign_slots(&cluster.nodes[..options.masters])?;
        node::introduce(&cluster.nodes)?;
        for (master, replica) in cluster.nodes.iter().zip(&cluster.nodes[options.masters..]) {
            // Refused until the one heard of the other.
            until("a replica did not find its master", || replica.ask(&["CLUSTER", "REPLICATE", &master.id]))?;
        }
        cluster.wait_until_healthy()?;
        node::set_timeout(&cluster.nodes, options.node_timeout_ms)?;
        Ok(cluster)
    }

    /// The URL of the cluster that all tests share, each with a prefix of its own. It keeps nothing.
    ///
    /// It is the one that [`REDIS_CLUSTER_VARIABLE`] names, or else one that is started for this process and
    /// ends with it. Others use it too, so there is no way to stop it.
    pub fn shared() -> Result<&'static str> {
        static SHARED: Shared = OnceLock::new();
        Self::share(&SHARED, REDIS_CLUSTER_VARIABLE, || Ok(ClusterOptions::shared()))
    }

    /// The same of Valkeys, whose clocks are an hour apart.
    pub fn shared_apart() -> Result<&'static str> {
        static SHARED: Shared = OnceLock::new();
        Self::share(&SHARED, VALKEY_CLUSTER_VARIABLE, ClusterOptions::shared_apart)
    }

    fn share(shared: &'static Shared, variable: &str, options: fn() -> Result<ClusterOptions>) -> Result<&'static str> {
        let start = || options().and_then(Self::start).map_err(|error| format!("{error:#}"));
        let shared = shared.get_or_init(|| match std::env::var(variable) {
            Ok(url) => Ok((url, None)),
            Err(_) => start().map(|cluster| (cluster.url(), Some(cluster))),
        });
        shared.as_ref().map(|(url, _)| url.as_str()).map_err(|error| anyhow::anyhow!("{error}"))
    }

    /// `redis+cluster://127.0.0.1:PORT,127.0.0.1:PORT,…` with all nodes, and the password if there is one.
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(|node| node.address().to_string()).collect();
        format!("redis+cluster://{}{}", self.user, addresses.join(","))
    }

    /// All nodes, also those that are down.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node by its number. Panics if there is none.
    pub fn node(&self, at: usize) -> &Node {
        &self.nodes[at]
    }

    /// Bytes of memory that all nodes hold.
    pub fn memory_bytes(&self) -> u64 {
        self.nodes.iter().map(|node| node.memory_bytes()).sum()
    }

    /// Ends a node as a power cut would.
    pub fn kill(&mut self, at: usize) -> Result<()> {
        self.nodes[at].redis.kill()
    }

    /// Ends a node in order.
    pub fn stop(&mut self, at: usize) -> Result<()> {
        self.nodes[at].redis.stop()
    }

    /// Starts a node after [`Cluster::kill`] or [`Cluster::stop`]. It may take some time to find its place:
    /// see [`Cluster::wait_until_healthy`].
    pub fn start_again(&mut self, at: usize) -> Result<()> {
        self.nodes[at].redis.start_again()
    }

    /// Freezes a node.
    pub fn pause(&self, at: usize) -> Result<()> {
        self.nodes[at].pause()
    }

    /// Lets a node go on after [`Cluster::pause`].
    pub fn go_on(&self, at: usize) -> Result<()> {
        self.nodes[at].go_on()
    }

    /// The slot of a key.
    pub fn slot_of(&self, key: &str) -> Result<u16> {
        let node = self.nodes.iter().find(|node| node.is_alive()).context("no node is alive")?;
        Ok(node.ask(&["CLUSTER", "KEYSLOT", key])?.parse()?)
    }

    /// The living node that says it is the slot's master; of two that say so the one that became it later.
    pub fn master_of_slot(&self, slot: u16) -> Result<usize> {
        let mut newest = None;
        for view in self.views()? {
            let itself = view.itself()?;
            if itself.role() == Role::Master && itself.has(slot) {
                newest = newest.max(Some((itself.epoch, view.at)));
            }
        }
        newest.map(|(_, at)| at).with_context(|| format!("no living node is the master of slot {slot}"))
    }

    /// A living node that says it follows this one, which may be down.
    pub fn replica_of(&self, at: usize) -> Result<usize> {
        for view in self.views()? {
            if view.itself()?.master.as_ref() == Some(&self.nodes[at].id) {
                return Ok(view.at);
            }
        }
        bail!("no living node is a replica of node {at}")
    }

    /// Blocks until all living nodes agree: they serve every slot, and the replicas of living masters have what
    /// their masters have.
    pub fn wait_until_healthy(&self) -> Result<()> {
        until("the cluster did not become healthy", || {
            let views = self.views()?;
            view::check_served(&views, None)?;
            view::check_in_sync(&views)
        })
    }

    /// Blocks until all living nodes agree that others than this one serve every slot.
    pub fn wait_for_failover(&self, of: usize) -> Result<()> {
        until("nobody took over", || view::check_served(&self.views()?, Some(of)))
    }

    fn views(&self) -> Result<Vec<View<'_>>> {
        let living = self.nodes.iter().enumerate().filter(|(_, node)| node.is_alive());
        living.map(|(at, node)| View::of(at, node)).collect()
    }
}

/// Tries again until it succeeds, and says why not if it takes too long.
fn until<T>(failure: &'static str, check: impl Fn() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        match check() {
            Err(error) if begun.elapsed() > PATIENCE => return Err(error.context(failure)),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
            Ok(answer) => return Ok(answer),
        }
    }
}
