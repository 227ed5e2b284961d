//! Waiting for what comes at a time that nobody knows.

use std::time::{Duration, Instant};

/// How long anything at all may take before a test calls it broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until there is an answer; panics with `what` when there never is one.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    let mut again = tokio::time::interval(Duration::from_millis(5));
    loop {
        again.tick().await;
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(started.elapsed() < PATIENCE, "waited in vain: {what}");
    }
}
