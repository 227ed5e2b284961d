//! A cluster whose nodes are reached through a network that fails.

use super::{Cluster, node, until};
use crate::Proxy;
use anyhow::{Result, ensure};

/// Nodes tell each other where they are the more often the shorter it is.
const TELLING_TIMEOUT_MS: u64 = 1500;

impl Cluster {
    /// Puts a proxy before each master, and has the nodes tell everybody to go there. Ends the replicas, which would go there
    /// too. The URL through it has the same form as [`Cluster::url`], and from now on there is no other way.
    pub fn behind_proxies(&mut self) -> Result<(Vec<Proxy>, String)> {
        let masters = self.nodes.len() / 2;
        (masters..self.nodes.len()).try_for_each(|replica| self.stop(replica))?;
        let mut proxies = Vec::new();
        for node in &self.nodes[..masters] {
            let proxy = Proxy::start(node.address())?;
            node.ask(&["CONFIG", "SET", "cluster-announce-port", &proxy.address().port().to_string()])?;
            proxies.push(proxy);
        }
        let before_ms = self.nodes[0].ask(&["CONFIG", "GET", "cluster-node-timeout"])?;
        let before_ms = before_ms.lines().last().unwrap_or_default().parse()?;
        node::set_timeout(&self.nodes[..masters], TELLING_TIMEOUT_MS)?;
        until("the nodes did not hear where the others are", || {
            for node in &self.nodes[..masters] {
                let known = node.ask(&["CLUSTER", "NODES"])?;
                let is_known = |proxy: &Proxy| known.contains(&format!("{}@", proxy.address()));
                ensure!(proxies.iter().all(is_known), "{known}");
            }
            Ok(())
        })?;
        node::set_timeout(&self.nodes[..masters], before_ms)?;
        let addresses: Vec<String> = proxies.iter().map(|proxy| proxy.address().to_string()).collect();
        Ok((proxies, format!("redis+cluster://{}{}", self.user, addresses.join(","))))
    }
}
