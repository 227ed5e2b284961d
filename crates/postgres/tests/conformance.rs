//! PostgreSQL is held to the suite: a real one, with a schema for every case.

use std::sync::atomic::{AtomicU64, Ordering};

use tally_conformance::{EngineFactory, run, trials};
use tally_postgres::{Options, Postgres};

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

fn main() {
    run(trials("postgres", Schemas))
}
