//! Where the servers of a test meet.

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::join_all;
use tally_testing::redis::Options;
use tally_testing::{Cluster, ClusterOptions, Postgres, Redis};

use crate::support::client::Asked;
use crate::support::*;

/// What a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Postgres,
    Redis,
    Cluster,
}

/// A test for each of these stores: `on!(the_test: postgres redis cluster)`.
macro_rules! on {
    ($test:ident: $($store:ident)+) => {
        mod $test {
            use super::$test as the_test;
            $(#[tokio::test]
            async fn $store() {
                the_test($crate::database::on!(@$store)).await;
            })+
        }
    };
    (@postgres) => { $crate::database::On::Postgres };
    (@redis) => { $crate::database::On::Redis };
    (@cluster) => { $crate::database::On::Cluster };
}
pub(crate) use on;

impl On {
    /// A new schema or prefix in the one that all tests share.
    pub(crate) fn new_store(self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("servers_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        match self {
            Self::Postgres => format!("{}?sslmode=disable&schema={name}", Postgres::shared().unwrap()),
            // A busy machine answers late, which these tests are not about.
            Self::Redis => format!("{}?prefix={name}&timeout_ms=20000", Redis::shared().unwrap()),
            Self::Cluster => format!("{}?prefix={name}&timeout_ms=20000", Cluster::shared().unwrap()),
        }
    }

    /// One of one's own, to be stopped, killed and paused.
    pub(crate) fn own(self) -> (Own, String) {
        match self {
            Self::Postgres => {
                let postgres = Postgres::start(Default::default()).unwrap();
                let url = format!("{}?sslmode=disable&timeout_ms=1000", postgres.url());
                (Own::Postgres(postgres), url)
            }
            Self::Redis => {
                let redis = Redis::start(Options::durable()).unwrap();
                let url = format!("{}?timeout_ms=1000", redis.url());
                (Own::Redis(redis), url)
            }
            Self::Cluster => {
                let cluster = Cluster::start(ClusterOptions::default()).unwrap();
                let url = format!("{}?wait_replicas=1&timeout_ms=1000", cluster.url());
                (Own::Cluster(cluster), url)
            }
        }
    }
}

/// A store that belongs to one test.
pub(crate) enum Own {
    Postgres(Postgres),
    Redis(Redis),
    Cluster(Cluster),
}

impl Own {
    pub(crate) fn stop(&mut self) {
        match self {
            Self::Postgres(postgres) => postgres.stop().unwrap(),
            Self::Redis(redis) => redis.stop().unwrap(),
            Self::Cluster(_) => unreachable!("a Cluster is not stopped as a whole"),
        }
    }

    pub(crate) fn kill(&mut self) {
        match self {
            Self::Postgres(postgres) => postgres.kill().unwrap(),
            Self::Redis(redis) => redis.kill().unwrap(),
            Self::Cluster(cluster) => cluster.kill(0).unwrap(),
        }
    }

    pub(crate) fn start_again(&mut self) {
        match self {
            Self::Postgres(postgres) => postgres.start_again().unwrap(),
            Self::Redis(redis) => redis.start_again().unwrap(),
            Self::Cluster(cluster) => {
                cluster.wait_for_failover(0).unwrap();
                cluster.start_again(0).unwrap();
                cluster.wait_until_healthy().unwrap();
            }
        }
    }

    pub(crate) fn pause(&self) {
        match self {
            Self::Postgres(postgres) => postgres.pause().unwrap(),
            Self::Redis(redis) => redis.pause().unwrap(),
            Self::Cluster(cluster) => cluster.pause(0).unwrap(),
        }
    }

    pub(crate) fn resume(&self) {
        match self {
            Self::Postgres(postgres) => postgres.resume().unwrap(),
            Self::Redis(redis) => redis.go_on().unwrap(),
            Self::Cluster(cluster) => cluster.go_on(0).unwrap(),
        }
    }

    /// Strikes while the test goes on, and heals: PostgreSQL is restarted, Redis killed and started again, of a
    /// Cluster a master is killed and comes back once its replica has taken over.
    pub(crate) async fn struck(mut self) -> Self {
        let striking = tokio::task::spawn_blocking(move || {
            match &self {
                Self::Postgres(_) => self.stop(),
                Self::Redis(_) | Self::Cluster(_) => self.kill(),
            }
            self.start_again();
            self
        });
        striking.await.unwrap()
    }
}

/// Servers on one store, started at once.
pub(crate) async fn servers<const N: usize>(url: &str, config: &str) -> [Server; N] {
    let started = join_all((0..N).map(|_| Server::start_on(url, config))).await;
    started.try_into().unwrap_or_else(|_| unreachable!())
}

/// Sends a request again and again until the store is there.
pub(crate) async fn insist(what: &str, ask: impl Fn() -> Asked) -> Value {
    until(what, async || {
        let answer = ask().try_send().await.ok()?;
        (answer.status != 503).then(|| {
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.json()
        })
    })
    .await
}

/// Recounts everything as soon as the store can; what does not add up fails the test.
pub(crate) async fn verified(client: &Client) -> u64 {
    let begun = until("a verification is taken", async || {
        let answer = client.post("/v1/verify").send().await;
        (answer.status != 503).then_some(answer)
    })
    .await;
    assert_eq!(begun.status, 202, "{}", begun.text());
    let path = format!("/v1/jobs/{}", begun.json()["job"].as_str().unwrap());
    let report = until("the verification ends", async || {
        let answer = client.get(&path).send().await;
        let job = answer.json();
        assert_ne!(job["state"], "failed", "{job}");
        (answer.status == 200 && job["state"] == "done").then(|| job["report"].clone())
    })
    .await;
    assert_eq!((&report["drifted"], &report["strays"]), (&json!(0), &json!([])), "{report}");
    report["edges"].as_u64().unwrap()
}
