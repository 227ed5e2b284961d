//! Redis, a Cluster of six nodes and one of Valkeys are held to the suite: real ones, with a prefix for every case.

use std::sync::atomic::{AtomicU64, Ordering};

use tally_conformance::{EngineFactory, run, trials};
use tally_redis::{Options, Redis};

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

fn main() {
    let mut all = trials("redis", Prefixes { shared: tally_testing::Redis::shared });
    all.extend(trials("cluster", Prefixes { shared: tally_testing::Cluster::shared }));
    // What several servers do, and jobs: on Valkeys whose clocks are an hour apart.
    let apart = trials("valkeys", Prefixes { shared: tally_testing::Cluster::shared_apart });
    all.extend(
        apart.into_iter().filter(|trial| trial.name().contains("::shared::") || trial.name().contains("::jobs::")),
    );
    run(all)
}
