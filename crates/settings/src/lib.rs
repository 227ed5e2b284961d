//! Settings: flags win over the environment, which wins over the file, which wins over the defaults.
//!
//! `schema.rs` is the one definition of what can be set; the rest reads it. A wrong file is explained
//! completely: every mistake with its place and what to do, not just the first.

mod args;
mod build;
mod declared;
mod defaults;
mod duration;
mod file;
mod judge;
mod load;
mod network;
mod problem;
mod relations;
pub mod schema;
mod show;
mod tables;
mod value;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tally_core::catalog::Catalog;

pub use args::ServeArgs;
pub use build::is_url;
pub use declared::Written;
pub use defaults::render_defaults;
pub use duration::{duration, duration_text};
pub use judge::{Judge, TlsRefusal, Unjudged};
pub use load::{check, load, load_from};
pub use network::Network;
pub use problem::{ConfigErrors, Origin, Problem};
pub use relations::Relation;
pub use show::render_show;
pub use tables::Counted;
pub use value::{Kind, Secret, Sync, Value};

/// What the server says, loudly, when it runs with `--dev`.
pub const DEV_WARNING: &str = "AUTHENTICATION IS OFF (--dev): everyone who can reach this port can do \
     everything. For trying things out on this machine only.";

/// Memory of a store in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddedSettings {
    /// For parts of tables that were read before.
    pub cache_bytes: u64,
    /// Rows that gather before they move into tables.
    pub overlay_bytes_max: usize,
}

/// Everything that can be set, checked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The store's URL, `embedded:PATH`.
    pub store: String,
    /// When an answered write is on disk.
    pub sync: Sync,
    /// A key with the role admin, from the environment.
    pub admin_key: Option<Secret>,
    /// Whether authentication is off. Only ever true on loopback.
    pub dev: bool,
    /// Users' tokens, when they are accepted.
    pub jwt: Option<JwtSettings>,
    /// Which pages may call, when any may.
    pub cors: Option<Cors>,
    /// Proxies whose word on who asks, and for what, is taken.
    pub trusted_proxies: Vec<Network>,
    /// How admissions are signed.
    pub admission: AdmissionSettings,
    /// HTTPS, when it is on.
    pub tls: Option<TlsSettings>,
    /// A limit on everything.
    pub bounds: Bounds,
    /// What is logged.
    pub log: LogSettings,
    /// How long an answer to an Idempotency-Key is kept.
    pub idempotency_ttl: Duration,
    /// How much is remembered.
    pub remembered: Remembered,
    /// How long a job that has ended is kept.
    pub jobs_keep: Duration,
    /// Where backups are written.
    pub backup_folder: PathBuf,
    /// Memory of a store in a folder.
    pub embedded: EmbeddedSettings,
    /// The relations of the file; `catalog` adds the built-in ones.
    pub relations: Vec<Relation>,
    /// What the file declares to be counted; `catalog` adds what is built in.
    pub counting: Vec<Counted>,
    /// The file that was read, if there was one.
    pub file: Option<PathBuf>,
    /// What is allowed but probably not meant; to be logged at start.
    pub warnings: Vec<String>,
    effective: Vec<show::Effective>,
}

/// `[auth.jwt]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtSettings {
    /// A file, or an http(s) URL.
    pub jwks: String,
    /// A token's `iss` is one of these.
    pub issuers: Vec<String>,
    /// A token's `aud` has one of these.
    pub audiences: Vec<String>,
    /// The claim that holds the user's id.
    pub subject_claim: String,
}

/// `[http.cors]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// `*`, or origins as browsers write them.
    pub origins: Vec<String>,
    /// Whether cookies may come along.
    pub credentials: bool,
}

/// `[admission]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// The key that signs, PKCS#8 PEM; left out, one in the store.
    pub signing_key_file: Option<PathBuf>,
    /// What the key in the store is encrypted with.
    pub seal_key_file: Option<PathBuf>,
}

/// `[tls]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// Certificate chain, PEM.
    pub cert: PathBuf,
    /// Private key, PEM.
    pub key: PathBuf,
}

/// `[bounds]`; see `schema.rs` for what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Bounds {
    pub body_bytes_max: usize,
    pub batch_bytes_max: usize,
    pub batch_commands_max: usize,
    pub header_bytes_max: usize,
    pub unfinished_bytes_max: usize,
    pub connections_max: usize,
    pub request_timeout: Duration,
    pub header_read_timeout: Duration,
    pub idle_timeout: Duration,
    pub shutdown_grace: Duration,
    pub queue_depth_max: usize,
    pub subscriptions_max: usize,
}

/// How much of `[idempotency]` is remembered in an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// For one user.
    pub user_bytes_max: u64,
    /// For one API key.
    pub key_bytes_max: u64,
}

/// `[log]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// JSON lines rather than text.
    pub json: bool,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
}

impl Settings {
    /// What is declared: what is built in, such as `like` and `views`, and what the file adds to it or changes.
    pub fn catalog(&self) -> Catalog {
        let mut catalog = Catalog::default();
        for relation in &self.relations {
            catalog.declare(relation.definition.clone());
        }
        for counted in &self.counting {
            counted.declare(&mut catalog);
        }
        catalog.idempotency_ttl_ms = u64::try_from(self.idempotency_ttl.as_millis()).unwrap_or(u64::MAX);
        catalog.jobs_ttl_ms = u64::try_from(self.jobs_keep.as_millis()).unwrap_or(u64::MAX);
        catalog
    }
}
