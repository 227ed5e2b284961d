//! How a Redis is set up.

use std::net::SocketAddr;
use std::path::PathBuf;

/// How a Redis is set up. The default keeps nothing: what a stop or a kill ends is gone.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether it writes a log of what changed, and reads it when it is started again.
    pub appendonly: bool,
    /// When it syncs that log: `always`, `everysec` or `no`.
    pub appendfsync: String,
    /// What clients have to know: letters and digits, as it stands in a URL.
    pub password: Option<String>,
    /// Settings by name, as in `redis.conf`; they win over ours.
    pub settings: Vec<(String, String)>,
    /// One of [`super::programs`], by default the first of them.
    pub program: Option<PathBuf>,
    /// By how much its clock is wrong.
    pub clock_ahead_s: i64,
}

impl Default for Options {
    fn default() -> Self {
        let appendfsync = "everysec".into();
        Self { appendonly: false, appendfsync, password: None, settings: Vec::new(), program: None, clock_ahead_s: 0 }
    }
}

impl Options {
    /// Whatever was answered is on the disk.
    pub fn durable() -> Self {
        Self { appendonly: true, appendfsync: "always".into(), ..Self::default() }
    }

    /// The same with one more setting.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// The part of a URL that says who asks.
    pub(super) fn user(&self) -> String {
        self.password.as_ref().map_or(String::new(), |password| format!(":{password}@"))
    }

    /// The text of its `redis.conf`; `bus` is where the nodes of a cluster talk to each other.
    /// The last of two lines for the same name wins.
    pub(super) fn file(&self, address: SocketAddr, bus: Option<SocketAddr>) -> String {
        let mut lines = vec![
            ("bind", address.ip().to_string()),
            ("port", address.port().to_string()),
            ("save", String::new()),
            ("appendonly", if self.appendonly { "yes" } else { "no" }.into()),
            ("appendfsync", self.appendfsync.clone()),
            // A replica is not kept waiting for others that might come.
            ("repl-diskless-sync-delay", "0".into()),
        ];
        if let Some(bus) = bus {
            lines.push(("cluster-enabled", "yes".into()));
            // Its own choice would be 10 000 more than the port, where the kernel has outgoing connections.
            lines.push(("cluster-port", bus.port().to_string()));
        }
        if let Some(password) = &self.password {
            lines.push(("requirepass", password.clone()));
            lines.push(("masterauth", password.clone()));
        }
        lines.extend(self.settings.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let text = |value: String| if value.is_empty() { "\"\"".into() } else { value };
        lines.into_iter().map(|(name, value)| format!("{name} {}\n", text(value))).collect()
    }
}
