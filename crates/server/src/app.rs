//! What every request handler shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tally::Tally;
use tally_settings::Settings;
use tokio::sync::watch;

use crate::admission::Admission;
use crate::auth::Authenticator;
use crate::door::memory::Memory;
use crate::http::allowance::Allowance;
use crate::metrics::Metrics;

/// The server's state; clones share it.
#[derive(Clone)]
pub struct App(Arc<Inner>);

/// What is shared.
pub struct Inner {
    /// The store, behind the library's face.
    pub tally: Tally,
    /// Who may come in.
    pub auth: Authenticator,
    /// How the server was started.
    pub settings: Settings,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Turns true when the server begins to stop, so that endless answers end.
    pub stopping: watch::Sender<bool>,
    /// What is remembered for each caller.
    pub allowance: Allowance,
    /// What admissions are signed and checked with.
    pub admission: Admission,
    /// What unfinished requests hold together.
    pub memory: Arc<Memory>,
    requests: AtomicU64,
    /// Different in each run, so that request ids are too.
    run: u32,
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl App {
    /// Puts the parts together.
    pub fn new(
        tally: Tally,
        auth: Authenticator,
        admission: Admission,
        settings: Settings,
        metrics: Arc<Metrics>,
    ) -> Self {
        let run = u32::try_from(tally.now().0 & u64::from(u32::MAX)).unwrap_or_default();
        let memory = Memory::new(settings.bounds.unfinished_bytes_max);
        Self(Arc::new(Inner {
            tally,
            memory,
            allowance: Allowance::default(),
            auth,
            admission,
            settings,
            metrics,
            stopping: watch::Sender::new(false),
            requests: AtomicU64::new(0),
            run,
        }))
    }

    /// Waits until the server begins to stop.
    pub async fn stopped(&self) {
        // The sender lives as long as this does.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// A fresh id for a request that brought none.
    pub fn next_request_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("{:08x}{number:010x}", self.run)
    }
}
