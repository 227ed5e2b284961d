//! A place behind a network that fails, and one that is not there. What holds of any store is in the suite.

use tally_engine::Engine;
use tally_testing::Proxy;

use crate::support::{engine, shared};

/// A place on the shared instance that is reached through a proxy, and the same without it.
pub(crate) fn proxied(more: &str) -> (Proxy, String, String) {
    let direct = shared(more);
    let (proxy, through) = Proxy::before(&direct).unwrap();
    (proxy, through, direct)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_not_there_is_unavailable_and_no_secret_is_told() {
    let proxy = Proxy::start("127.0.0.1:1".parse().unwrap()).unwrap();
    proxy.cut();
    for scheme in ["redis", "redis+cluster"] {
        let url = format!("{scheme}://app:hush@{}?timeout_ms=400", proxy.address());
        let error = engine(&url).prepare().await.unwrap_err();
        assert!(error.is_transient() && error.to_string().contains("refused"), "{scheme}: {error}");
        assert!(!format!("{error:?}{:?}", engine(&url).options()).contains("hush"), "{error:?}");
    }
}
