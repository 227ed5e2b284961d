//! What is counted, for Prometheus.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tally::Tally;
use tally::core::Code;
use tally::engine::Settled;

/// Labels of a request: what was called and how it ended.
#[derive(Clone, Hash, PartialEq, Eq, Debug, EncodeLabelSet)]
struct Request {
    method: &'static str,
    resource: &'static str,
    status: u16,
}

/// Labels of a problem.
#[derive(Clone, Hash, PartialEq, Eq, Debug, EncodeLabelSet)]
struct Refused {
    code: &'static str,
}

/// Labels of a connection that the server ended.
#[derive(Clone, Hash, PartialEq, Eq, Debug, EncodeLabelSet)]
struct CutOff {
    why: &'static str,
}

/// All metrics.
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    problems: Family<Refused, Counter>,
    cuts: Family<CutOff, Counter>,
    browser_keys: Counter,
    unfinished_bytes: Gauge,
    request_seconds: Histogram,
    commands: Counter,
    batches: Counter,
    batch_commands: Histogram,
    conflicts: Counter,
    broken: Counter,
    store: StoreGauges,
}

#[derive(Default)]
struct StoreGauges {
    waiting: Gauge,
    subscriptions: Gauge,
    overlay_rows: Gauge,
    frozen_overlays: Gauge,
    log_bytes: Gauge,
    disk_bytes: Gauge,
    sync_seconds: Gauge<f64, AtomicU64>,
    carries_jobs: Gauge,
    connections: Gauge,
    connections_in_use: Gauge,
    spread_totals: Gauge,
    unfinished_slots: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("tally");
        let metrics = Self {
            requests: Family::default(),
            problems: Family::default(),
            cuts: Family::default(),
            browser_keys: Counter::default(),
            unfinished_bytes: Gauge::default(),
            request_seconds: Histogram::new([
                0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0,
            ]),
            commands: Counter::default(),
            batches: Counter::default(),
            batch_commands: Histogram::new([1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0]),
            conflicts: Counter::default(),
            broken: Counter::default(),
            store: StoreGauges::default(),
            registry: Registry::default(),
        };
        registry.register("http_requests", "Requests answered", metrics.requests.clone());
        registry.register("http_problems", "Requests answered with a problem, by its code", metrics.problems.clone());
        registry.register(
            "connections_cut",
            "Connections that the server ended: slow with their headers, idle, not reading, or in the way of others",
            metrics.cuts.clone(),
        );
        registry.register(
            "browser_keys",
            "Requests of pages that carried an API key, which everybody who sees the page can take",
            metrics.browser_keys.clone(),
        );
        registry.register_with_unit(
            "http_unfinished",
            "What unfinished requests hold together",
            Unit::Bytes,
            metrics.unfinished_bytes.clone(),
        );
        registry.register_with_unit(
            "http_request",
            "Time from the head of a request to the head of its answer",
            Unit::Seconds,
            metrics.request_seconds.clone(),
        );
        registry.register("commands", "Commands made durable", metrics.commands.clone());
        registry.register("batches", "Batches made durable", metrics.batches.clone());
        registry.register("batch_commands", "Commands in a batch", metrics.batch_commands.clone());
        registry.register("conflicts", "Batches decided again", metrics.conflicts.clone());
        registry.register(
            "broken_decisions",
            "Decisions that failed an internal check, such as a count that would become negative: should be 0",
            metrics.broken.clone(),
        );
        let store = &metrics.store;
        registry.register("queue_commands", "Commands waiting to be decided", store.waiting.clone());
        registry.register("live_subscriptions", "Open live streams", store.subscriptions.clone());
        registry.register("store_overlay_rows", "Rows in memory, not yet in tables", store.overlay_rows.clone());
        registry.register("store_frozen_overlays", "Overlays waiting for the tables", store.frozen_overlays.clone());
        registry.register_with_unit("store_log", "Size of the log", Unit::Bytes, store.log_bytes.clone());
        registry.register_with_unit("store_disk", "Size on disk", Unit::Bytes, store.disk_bytes.clone());
        registry.register_with_unit(
            "store_last_sync",
            "Duration of the last sync",
            Unit::Seconds,
            store.sync_seconds.clone(),
        );
        registry.register("carries_jobs", "Whether this server carries the store's jobs", store.carries_jobs.clone());
        registry.register("store_connections", "Open connections to the database", store.connections.clone());
        registry.register(
            "store_connections_in_use",
            "Connections to the database that are at work",
            store.connections_in_use.clone(),
        );
        registry.register(
            "store_spread_totals",
            "Hot totals that this server knows to be spread over several rows",
            store.spread_totals.clone(),
        );
        registry.register(
            "store_unfinished_slots",
            "Slots of a Redis Cluster that a commit of this server has still to be finished in",
            store.unfinished_slots.clone(),
        );
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// Counts an answered request.
    pub fn request(&self, method: &'static str, resource: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&Request { method, resource, status }).inc();
        self.request_seconds.observe(took.as_secs_f64());
    }

    /// Counts an answer that was a problem.
    pub fn problem(&self, code: Code) {
        self.problems.get_or_create(&Refused { code: code.name() }).inc();
    }

    /// Counts a connection that the server ended.
    pub fn cut(&self, why: &'static str) {
        self.cuts.get_or_create(&CutOff { why }).inc();
    }

    /// Counts an API key that a page sent, and says whether it is worth another word in the log: the first, and
    /// then each time that there are twice as many.
    pub fn browser_key(&self) -> bool {
        (self.browser_keys.inc() + 1).is_power_of_two()
    }

    /// Counts a durable batch.
    pub fn settled(&self, settled: &Settled) {
        self.batches.inc();
        self.commands.inc_by(settled.commands as u64);
        self.batch_commands.observe(settled.commands as f64);
        self.conflicts.inc_by(u64::from(settled.conflicts));
        self.broken.inc_by(settled.broken as u64);
    }

    /// Everything as text, the store's figures as they are now.
    pub fn render(&self, tally: &Tally, unfinished_bytes: usize) -> String {
        self.unfinished_bytes.set(unfinished_bytes as i64);
        let store = &self.store;
        store.waiting.set(tally.waiting() as i64);
        store.subscriptions.set(tally.hub().subscriptions() as i64);
        store.carries_jobs.set(i64::from(tally.carries_jobs()));
        if let Some(postgres) = tally.engine().postgres() {
            let (in_use, open) = postgres.connections();
            store.connections.set(open as i64);
            store.connections_in_use.set(in_use as i64);
            store.spread_totals.set(postgres.spread_totals() as i64);
        }
        if let Some(redis) = tally.engine().redis() {
            store.unfinished_slots.set(redis.unfinished() as i64);
        }
        if let Some(embedded) = tally.engine().embedded() {
            let stats = embedded.store().stats();
            store.overlay_rows.set(stats.overlay_rows as i64);
            store.frozen_overlays.set(stats.overlays_frozen as i64);
            store.log_bytes.set(stats.log_bytes as i64);
            store.disk_bytes.set(stats.disk_bytes() as i64);
            store.sync_seconds.set(stats.sync_micros as f64 / 1e6);
        }
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
