//! Redis, a Cluster of six nodes and one of Valkeys are held to the suite: real ones, with a prefix for every case.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tally_conformance::{EngineFactory, Networked, network_trials, run, trials};
use tally_redis::{Options, Redis};
use tally_testing::{Cluster, ClusterOptions, Proxy};

/// A prefix for every case, on one server or one Cluster.
struct Prefixes {
    shared: fn() -> anyhow::Result<&'static str>,
}

impl EngineFactory for Prefixes {
    type Engine = Redis;
    /// A URL with a prefix of its own.
    type Place = String;

    fn place(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let url = (self.shared)().expect("Redis starts");
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // A machine that is busy with many cases answers late, and that is not what they are about.
        format!("{url}?prefix=case:{process}:{number}&timeout_ms=20000")
    }

    async fn open(&self, place: &String) -> Redis {
        Redis::new(Options::parse(place).expect("the URL is right"))
    }

    fn servers(&self) -> bool {
        true
    }

    async fn drain(&self, engine: &Redis) {
        engine.drain().await.expect("what was left open can be ended");
    }
}

impl Networked for Prefixes {
    fn behind(&self, place: &String, timeout_ms: u64) -> (Vec<Proxy>, String) {
        let (proxy, url) = Proxy::before(place).expect("a proxy starts");
        (vec![proxy], url.replace("timeout_ms=20000", &format!("timeout_ms={timeout_ms}")))
    }
}

/// A Cluster for every case. Its nodes say where to go, so once there is a network before it, everybody goes through that.
struct Clusters;

impl EngineFactory for Clusters {
    type Engine = Redis;
    type Place = (Arc<Mutex<Cluster>>, String);

    fn place(&self) -> Self::Place {
        let cluster = Cluster::start(ClusterOptions::shared()).expect("a Cluster starts");
        let url = cluster.url();
        (Arc::new(Mutex::new(cluster)), url)
    }

    async fn open(&self, (_, url): &Self::Place) -> Redis {
        Redis::new(Options::parse(url).expect("the URL is right"))
    }

    fn servers(&self) -> bool {
        true
    }

    async fn drain(&self, engine: &Redis) {
        engine.drain().await.expect("what was left open can be ended");
    }
}

impl Networked for Clusters {
    fn behind(&self, (cluster, _): &Self::Place, timeout_ms: u64) -> (Vec<Proxy>, Self::Place) {
        let (proxies, url) = cluster.lock().expect("nobody panicked").behind_proxies().expect("proxies start");
        (proxies, (cluster.clone(), format!("{url}?timeout_ms={timeout_ms}")))
    }
}

fn main() {
    let mut all = trials("redis", Prefixes { shared: tally_testing::Redis::shared });
    all.extend(network_trials("redis", Prefixes { shared: tally_testing::Redis::shared }));
    all.extend(network_trials("cluster", Clusters).into_iter().filter(|trial| trial.name().contains("::cut::")));
    all.extend(trials("cluster", Prefixes { shared: tally_testing::Cluster::shared }));
    // What several servers do, and jobs: on Valkeys whose clocks are an hour apart.
    let apart = trials("valkeys", Prefixes { shared: tally_testing::Cluster::shared_apart });
    all.extend(
        apart.into_iter().filter(|trial| trial.name().contains("::shared::") || trial.name().contains("::jobs::")),
    );
    run(all)
}
