//! Where the servers of a test meet.

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::join_all;
use tally_testing::Postgres;

use crate::support::client::Asked;
use crate::support::*;

/// A new schema in the PostgreSQL that all tests share.
pub(crate) fn new_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    format!("{}?sslmode=disable&schema=servers_{process}_{number}", Postgres::shared().unwrap())
}

/// A PostgreSQL of one's own, to be restarted and paused.
pub(crate) fn own_postgres() -> (Postgres, String) {
    let postgres = Postgres::start(Default::default()).unwrap();
    let url = format!("{}?sslmode=disable&timeout_ms=1000", postgres.url());
    (postgres, url)
}

/// Stops a PostgreSQL and starts it again while the test goes on.
pub(crate) async fn restarted(mut postgres: Postgres) -> Postgres {
    let restarting = tokio::task::spawn_blocking(move || {
        postgres.restart().unwrap();
        postgres
    });
    restarting.await.unwrap()
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

/// Recounts everything as soon as this server can and no other does; what does not add up fails the test.
pub(crate) async fn verified(client: &Client) -> u64 {
    let report = until("a verification is taken", async || {
        let answer = client.post("/v1/verify").send().await;
        (!matches!(answer.status, 409 | 503)).then_some(answer)
    })
    .await;
    assert_eq!(report.status, 200, "{}", report.text());
    let report = report.json();
    assert_eq!((&report["drifted"], &report["strays"]), (&json!(0), &json!([])), "{report}");
    report["edges"].as_u64().unwrap()
}
