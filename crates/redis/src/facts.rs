//! What a person wants to know of a Redis, and what keeps Tally from working on it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redis::{Cmd, ConnectionAddr, Value};
use tally_core::time::Stamp;
use tally_engine::StoreError;

use crate::answer::{number, some_text, text, texts};
use crate::{Options, Redis};

/// The layout of keys that this release knows.
const FORMAT: &str = "3";
/// What a node says that is none of a Cluster.
const NO_CLUSTER: &str = "cluster support disabled";

/// What was found out about one node that holds data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Where it is; empty for the one node of a store without a Cluster.
    pub node: String,
    /// How long one question took, there and back.
    pub round_trip: Duration,
    /// `redis` or `valkey`.
    pub product: String,
    /// Its version, as it is written.
    pub version: String,
    /// Whether it is a node of a Cluster.
    pub is_cluster: bool,
    /// Whether it is a replica.
    pub is_replica: bool,
    /// Replicas that follow it, and have all there was before them.
    pub replicas: u32,
    /// What happens when its memory is full.
    pub maxmemory_policy: String,
    /// How much memory it may use; 0 is all there is.
    pub maxmemory_bytes: u64,
    /// How much it uses.
    pub used_memory_bytes: u64,
    /// How much the machine has.
    pub machine_memory_bytes: u64,
    /// Keys that were thrown away since it started, to make room.
    pub evicted_keys: u64,
    /// Whether it has an append-only file.
    pub aof: bool,
    /// How often that is synced; empty when we may not ask.
    pub appendfsync: String,
    /// Whether it saves snapshots; nothing when we may not ask.
    pub saves: Option<bool>,
    /// What its last try to write to its disk failed at.
    pub disk_fails: Option<&'static str>,
    /// How far its clock is ahead of this machine's; behind is negative.
    pub clock_ahead_ms: i64,
}

impl Facts {
    /// Whether data may be thrown away when memory is full.
    pub fn evicts(&self) -> bool {
        !matches!(self.maxmemory_policy.as_str(), "" | "noeviction")
    }

    /// What keeps Tally from working there, and what to do.
    pub fn lacks(&self, options: &Options) -> Option<String> {
        lacks(self, options)
    }

    /// The version as two numbers.
    pub fn release(&self) -> (u32, u32) {
        let mut parts = self.version.split('.').map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }
}

impl Redis {
    /// The layout of keys that this release knows.
    pub const FORMAT: &'static str = FORMAT;

    /// Looks at every node that holds data, and changes nothing.
    pub async fn facts(&self) -> Result<Vec<Facts>, StoreError> {
        let masters = self.masters().await.map_err(|error| {
            if error.to_string().contains(NO_CLUSTER) { StoreError::Broken(NOT_A_CLUSTER.into()) } else { error }
        })?;
        let mut all = Vec::new();
        for node in masters {
            all.push(self.facts_of(node.as_ref()).await?);
        }
        Ok(all)
    }

    /// The layout of the keys under the prefix; nothing where there is no store. Changes nothing.
    pub async fn format(&self) -> Result<Option<String>, StoreError> {
        let mut command = Cmd::new();
        command.arg("GET").arg(self.keys.system("format"));
        text(self.link.send(&command).await?)
    }

    /// Whether every node of the URL is spoken to by TLS, or by a socket on this machine.
    pub fn is_encrypted(&self) -> bool {
        self.options().nodes.iter().all(|node| !matches!(node.addr(), ConnectionAddr::Tcp(..)))
    }

    /// Whether some node of the URL is on another machine, as far as its name tells.
    pub fn is_far(&self) -> bool {
        self.options().nodes.iter().any(|node| match node.addr() {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => {
                host != "localhost" && !host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
            _ => false,
        })
    }

    async fn facts_of(&self, node: Option<&(String, u16)>) -> Result<Facts, StoreError> {
        let info = |section: Option<&str>| {
            let mut command = Cmd::new();
            command.arg("INFO");
            section.into_iter().for_each(|section| _ = command.arg(section));
            self.send_to(node, command)
        };
        let info = some_text(Some(info(None).await?))?;
        // Connecting is over by now.
        let started = Instant::now();
        let clock_ahead_ms = self.clock_ahead_ms(node).await?;
        let round_trip = started.elapsed();
        let field = |name: &str| {
            let mut lines = info.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let valkey = field("valkey_version");
        let (product, version) = if valkey.is_empty() { ("redis", field("redis_version")) } else { ("valkey", valkey) };
        Ok(Facts {
            node: node.map(|(host, port)| format!("{host}:{port}")).unwrap_or_default(),
            round_trip,
            product: product.into(),
            version,
            is_cluster: field("cluster_enabled") == "1",
            is_replica: field("role") == "slave",
            replicas: replicas(&info),
            maxmemory_policy: field("maxmemory_policy"),
            maxmemory_bytes: field("maxmemory").parse().unwrap_or(0),
            used_memory_bytes: field("used_memory").parse().unwrap_or(0),
            machine_memory_bytes: field("total_system_memory").parse().unwrap_or(0),
            evicted_keys: field("evicted_keys").parse().unwrap_or(0),
            aof: field("aof_enabled") == "1",
            appendfsync: self.setting(node, "appendfsync").await.unwrap_or_default(),
            saves: self.setting(node, "save").await.map(|save| !save.is_empty()),
            disk_fails: disk_fails(&field("aof_last_write_status"), &field("rdb_last_bgsave_status")),
            clock_ahead_ms,
        })
    }

    /// A setting, if we may ask for it: a service that is rented out may forbid that.
    async fn setting(&self, node: Option<&(String, u16)>, name: &str) -> Option<String> {
        let mut command = Cmd::new();
        command.arg("CONFIG").arg("GET").arg(name);
        let pairs = crate::audit::pairs(self.send_to(node, command).await.ok()?).ok()?;
        pairs.into_iter().next().map(|(_, value)| value)
    }

    async fn clock_ahead_ms(&self, node: Option<&(String, u16)>) -> Result<i64, StoreError> {
        let mut command = Cmd::new();
        command.arg("TIME");
        let time = texts(self.send_to(node, command).await?)?;
        let number = |place: usize| time.get(place).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
        Ok(number(0) * 1_000 + number(1) / 1_000 - here)
    }

    /// Refuses what Tally cannot keep its promises on, warns of what weakens them, and gives the newest stamp.
    pub(crate) async fn check(&self) -> Result<Stamp, StoreError> {
        let options = self.link.options();
        let nodes = self.facts().await?;
        if let Some(why) = nodes.iter().find_map(|facts| facts.lacks(options)) {
            return Err(StoreError::Broken(why));
        }
        if !self.warned.swap(true, std::sync::atomic::Ordering::Relaxed) {
            // What holds for several nodes is said once.
            let said: BTreeSet<String> = nodes.iter().flat_map(|facts| weakens(facts, options)).collect();
            said.iter().for_each(|what| tracing::warn!("{what}"));
        }
        self.check_format().await?;
        self.learn().await?;
        let mut command = Cmd::new();
        command.arg("GET").arg(self.keys.system("stamp"));
        let stamp = text(self.link.send(&command).await?)?.unwrap_or_else(|| "0".into());
        let stamp = stamp.parse().map(Stamp).map_err(|_| crate::rows::unreadable(&stamp))?;
        self.bounded(stamp).await
    }

    async fn check_format(&self) -> Result<(), StoreError> {
        let mut command = Cmd::new();
        command.arg("SET").arg(self.keys.system("format")).arg(FORMAT).arg("NX").arg("GET");
        match text(self.link.send(&command).await?)? {
            Some(format) if format != FORMAT => {
                let advice = match format.as_str() {
                    "1" | "2" => {
                        "it is from before the first release, and is not read; take another prefix, or empty it"
                    }
                    _ => "use a newer release of Tally",
                };
                let prefix = &self.keys.prefix;
                Err(StoreError::Broken(format!(
                    "the keys under `{prefix}` have format {format}; this release knows {FORMAT}: {advice}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether the store answers and takes writes.
    pub(crate) async fn answers(&self) -> Result<(), StoreError> {
        let mut command = Cmd::new();
        command.arg("SET").arg(self.keys.system("ping")).arg(1).arg("EX").arg(60);
        match self.link.send(&command).await? {
            Value::Okay => self.fence().await,
            other => number(Some(other)).map(|_| ()),
        }
    }
}

const NOT_A_CLUSTER: &str = "this is not a Cluster: write redis:// in the store's URL";

/// One that is still being filled cannot have what is written now.
fn replicas(info: &str) -> u32 {
    let is_online = |line: &&str| line.starts_with("slave") && line.contains(",state=online,");
    info.lines().filter(is_online).count() as u32
}

fn disk_fails(aof: &str, snapshot: &str) -> Option<&'static str> {
    match (aof, snapshot) {
        ("err", _) => Some("its last write to the append-only file failed"),
        (_, "err") => Some("its last snapshot failed"),
        _ => None,
    }
}

fn lacks(facts: &Facts, options: &Options) -> Option<String> {
    let product = if facts.product == "valkey" { "Valkey" } else { "Redis" };
    let at = if facts.node.is_empty() { String::new() } else { format!(" at {}", facts.node) };
    if facts.product == "redis" && facts.release() < (7, 0) {
        return Some(format!("this is Redis {}{at}; Tally needs Redis 7.0 or Valkey", facts.version));
    }
    if facts.is_cluster && !options.cluster {
        return Some("this is a node of a Cluster: write redis+cluster:// in the store's URL".into());
    }
    if !facts.is_cluster && options.cluster {
        return Some(NOT_A_CLUSTER.into());
    }
    if facts.is_replica {
        return Some(format!("this {product}{at} is a replica, and takes no writes: give the URL of its master"));
    }
    if facts.evicts() && !options.may_vanish {
        return Some(format!(
            "{product}{at} throws data away when its memory is full (maxmemory-policy {}): set maxmemory-policy \
             noeviction, or add may_vanish=1 to the store's URL if likes may vanish",
            facts.maxmemory_policy
        ));
    }
    if options.wait_aof && facts.product == "redis" && facts.release() < (7, 2) {
        return Some(format!("wait_aof needs Redis 7.2 or Valkey; this is Redis {}{at}", facts.version));
    }
    if options.wait_aof && !facts.aof {
        return Some(format!("wait_aof needs an append-only file{at}: set appendonly yes"));
    }
    None
}

/// What weakens the promises, for the log.
fn weakens(facts: &Facts, options: &Options) -> Vec<String> {
    let mut said = Vec::new();
    if !facts.aof && facts.saves == Some(false) {
        said.push("this Redis keeps nothing on disk: a restart loses everything; set appendonly yes".into());
    } else if !facts.aof {
        let what = "a crash loses what came after its last snapshot; set appendonly yes";
        said.push(format!("this Redis has no append-only file: {what}"));
    } else if facts.appendfsync != "always" && !options.waits() {
        let how = if facts.appendfsync.is_empty() { "not known" } else { &facts.appendfsync };
        let what = "a crash may lose the last second of answered writes; always loses none";
        said.push(format!("appendfsync of this Redis is {how}: {what}"));
    }
    if facts.evicts() {
        let policy = &facts.maxmemory_policy;
        said.push(format!("this Redis may throw answered writes away when its memory is full ({policy})"));
    }
    if options.wait_replicas > facts.replicas {
        let (asked, there) = (options.wait_replicas, facts.replicas);
        said.push(format!("{there} replicas are in step and wait_replicas is {asked}: writes are refused until then"));
    }
    said
}
