//! A store's URL: where Redis is, and what is ours.

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::{ConnectionInfo, IntoConnectionInfo};

/// How to reach Redis, and where Tally lives in it.
#[derive(Clone)]
pub struct Options {
    /// As it was given.
    url: String,
    /// One node, or several of a Cluster to begin with.
    pub(crate) nodes: Vec<ConnectionInfo>,
    /// Whether it is a Cluster.
    pub cluster: bool,
    /// What every key begins with.
    pub prefix: String,
    /// Batches that are decided and committed side by side.
    pub lanes: usize,
    /// How long one question may take.
    pub timeout: Duration,
    /// Replicas that must have a commit before it is answered.
    pub wait_replicas: u32,
    /// Whether a commit must be in the append-only file before it is answered.
    pub wait_aof: bool,
    /// Whether Redis may throw data away when its memory is full.
    pub may_vanish: bool,
    /// A file with the certificate authority to trust, instead of the machine's.
    pub(crate) root_certificate: Option<String>,
}

const SHAPE: &str = "it is written redis://user:password@host:6379/0, or redis+cluster://host1:6379,host2:6379";

impl Options {
    /// Reads `redis://…`, `rediss://…` (TLS), `redis+cluster://…` or `rediss+cluster://…`, with
    /// `?prefix=tally&lanes=6&timeout_ms=2000&wait_replicas=0&wait_aof=0&may_vanish=0&sslrootcert=FILE`.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, rest) = base.split_once("://").ok_or(SHAPE)?;
        let (scheme, cluster) = match scheme.strip_suffix("+cluster") {
            Some(scheme) => (scheme, true),
            None => (scheme, false),
        };
        if !matches!(scheme, "redis" | "rediss") {
            return Err(SHAPE.into());
        }
        let mut own = Self {
            url: url.to_owned(),
            nodes: Vec::new(),
            cluster,
            prefix: "tally".into(),
            lanes: if cluster { 128 } else { 6 },
            timeout: Duration::from_secs(2),
            wait_replicas: 0,
            wait_aof: false,
            may_vanish: false,
            root_certificate: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            own.set(name, value)?;
        }
        own.nodes = nodes(scheme, rest, cluster)?;
        Ok(own)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "prefix" => self.prefix = prefix(value)?,
            "lanes" => self.lanes = number(name, value, 1, 1_024)? as usize,
            "timeout_ms" => self.timeout = Duration::from_millis(number(name, value, 50, 600_000)?),
            "wait_replicas" => self.wait_replicas = number(name, value, 0, 16)? as u32,
            "wait_aof" => self.wait_aof = number(name, value, 0, 1)? == 1,
            "may_vanish" => self.may_vanish = number(name, value, 0, 1)? == 1,
            "sslrootcert" => self.root_certificate = Some(value.to_owned()),
            _ => {
                return Err(format!(
                    "there is no parameter `{name}`; there are prefix, lanes, timeout_ms, wait_replicas, wait_aof, may_vanish and sslrootcert"
                ));
            }
        }
        Ok(())
    }

    /// Whether an answer waits for more than the node itself.
    pub(crate) fn waits(&self) -> bool {
        self.wait_replicas > 0 || self.wait_aof
    }
}

impl std::fmt::Debug for Options {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nodes: Vec<String> = self.nodes.iter().map(|node| node.addr().to_string()).collect();
        f.debug_struct("Options").field("nodes", &nodes).field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl PartialEq for Options {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl Eq for Options {}

fn nodes(scheme: &str, rest: &str, cluster: bool) -> Result<Vec<ConnectionInfo>, String> {
    let (user, hosts) = rest.rsplit_once('@').map_or(("", rest), |(user, hosts)| (user, hosts));
    let (hosts, database) = hosts.split_once('/').unwrap_or((hosts, ""));
    if cluster && !database.is_empty() && database != "0" {
        return Err("a Cluster has only database 0".into());
    }
    if !cluster && hosts.contains(',') {
        return Err("several hosts are a Cluster: write redis+cluster://".into());
    }
    let at = if user.is_empty() { "" } else { "@" };
    let mut nodes = Vec::new();
    for host in hosts.split(',').filter(|host| !host.is_empty()) {
        let url = format!("{scheme}://{user}{at}{host}/{database}");
        let info = url.as_str().into_connection_info().map_err(|error| format!("{error}; {SHAPE}"))?;
        nodes.push(info.set_tcp_settings(TcpSettings::default().set_nodelay(true)));
    }
    if nodes.is_empty() {
        return Err(format!("it names no host; {SHAPE}"));
    }
    Ok(nodes)
}

/// A prefix goes in front of every tag, so it must not look like one.
fn prefix(value: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    if !value.is_empty() && value.len() <= 64 && value.bytes().all(plain) {
        return Ok(value.to_owned());
    }
    Err(format!("prefix is 1 to 64 of a-z, A-Z, 0-9, `_`, `-`, `.` and `:`, not `{value}`"))
}

fn number(name: &str, value: &str, least: u64, most: u64) -> Result<u64, String> {
    let value = match value {
        "true" => "1",
        "false" => "0",
        other => other,
    };
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("{name} is a number from {least} to {most}, not `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let one = Options::parse("redis://localhost").unwrap();
        assert!(!one.cluster && one.prefix == "tally" && one.lanes == 6 && !one.waits());
        assert!(one.nodes[0].tcp_settings().nodelay());
        assert_eq!(one.nodes[0].addr().to_string(), "localhost:6379");
        let many =
            Options::parse("rediss+cluster://app:hush@a:1,b:2?wait_replicas=1&prefix=x:y&timeout_ms=500").unwrap();
        assert!(many.cluster && many.waits() && many.nodes.len() == 2 && many.prefix == "x:y");
        assert_eq!(many.nodes[1].addr().to_string(), "b:2");
        assert_eq!(many.nodes[1].redis_settings().password(), Some("hush"));
        assert_eq!(Options::parse("redis://h/3?may_vanish=true").unwrap().nodes[0].redis_settings().db(), 3);
    }

    #[test]
    fn mistakes_are_named() {
        for (url, said) in [
            ("redis:localhost", "it is written"),
            ("redis://", "no host"),
            ("redis://a,b", "redis+cluster://"),
            ("redis+cluster://a/1", "database 0"),
            ("redis://a?prefix={x}", "prefix is"),
            ("redis://a?wait=1", "no parameter `wait`"),
            ("redis://a?lanes=0", "lanes is a number"),
            ("redis://a?timeout_ms=x", "timeout_ms is a number"),
        ] {
            let error = Options::parse(url).unwrap_err();
            assert!(error.contains(said), "{url}: {error}");
        }
    }
}
