//! PostgreSQL is held to the suite: a real one, with a schema for every case.

use std::sync::atomic::{AtomicU64, Ordering};

use tally_conformance::{EngineFactory, Networked, network_trials, run, trials};
use tally_postgres::{Options, Postgres};
use tally_testing::Proxy;

struct Schemas;

impl EngineFactory for Schemas {
    type Engine = Postgres;
    /// A URL with a schema of its own.
    type Place = String;

    fn place(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let url = tally_testing::Postgres::shared().expect("PostgreSQL starts");
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        format!("{url}?sslmode=disable&schema=case_{process}_{number}")
    }

    async fn open(&self, place: &String) -> Postgres {
        Postgres::new(Options::parse(place).expect("the URL is right")).expect("a pool can be made")
    }

    fn servers(&self) -> bool {
        true
    }
}

impl Networked for Schemas {
    fn behind(&self, place: &String, timeout_ms: u64) -> (Vec<Proxy>, String) {
        let (proxy, url) = Proxy::before(place).expect("a proxy starts");
        (vec![proxy], format!("{url}&timeout_ms={timeout_ms}"))
    }
}

fn main() {
    let mut all = trials("postgres", Schemas);
    all.extend(network_trials("postgres", Schemas));
    run(all)
}
