//! Every setting on one page: its name, what it accepts, its default and what it is for.
//!
//! The parser, `config show`, `config defaults`, `docs/tally.toml` and the names of the environment
//! variables are all made from this table, so none of them can disagree. Relations are the exception:
//! their names are the user's, see `relations.rs`.

use std::time::Duration;

use self::Reach::{EnvOnly, File, Flag, FlagOnly};
use super::judge::Unjudged;
use super::value::{Kind, Raw, Value};

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Dotted path in the file.
    pub path: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// Its value when nobody sets it.
    pub default: Preset,
    /// What it is for; lines of at most 96 characters.
    pub doc: &'static str,
    /// Where it may be set.
    pub reach: Reach,
}

/// The value of a setting that nobody sets.
#[derive(Debug)]
pub enum Preset {
    /// This one.
    Is(&'static str),
    /// None; this one stands in the default file as an example.
    Absent(&'static str),
}

/// Where a setting may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// In the file and the environment.
    File,
    /// In the file, the environment, and by this flag.
    Flag(&'static str),
    /// In the environment only: a file gets committed, and a flag shows in the list of processes.
    EnvOnly,
    /// By this flag only: nobody should find it on by surprise.
    FlagOnly(&'static str),
}

impl Setting {
    /// The table of the file that it stands in; empty at the top.
    pub fn section(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// Its name inside its table.
    pub fn key(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, key)| key)
    }

    /// Its environment variable, or none for a flag that nobody should find on by surprise.
    pub fn env(&self) -> Option<String> {
        match self.reach {
            Reach::FlagOnly(_) => None,
            _ => Some(format!("TALLY_{}", self.path.replace('.', "_").to_uppercase())),
        }
    }

    /// Whether the file may set it.
    pub fn in_file(&self) -> bool {
        matches!(self.reach, Reach::File | Reach::Flag(_))
    }

    /// Its value when nobody sets it.
    pub fn default_value(&self) -> Option<Value> {
        match self.default {
            Preset::Is(text) => self.kind.accept(Raw::Word(text.to_owned()), &Unjudged).ok(),
            Preset::Absent(_) => None,
        }
    }

    /// What the default file shows: the default, or an example where there is none.
    pub fn sample(&self) -> Option<Value> {
        let (Preset::Is(text) | Preset::Absent(text)) = self.default;
        self.kind.accept(Raw::Word(text.to_owned()), &Unjudged).ok()
    }
}

/// Finds a setting by its dotted path.
pub fn setting(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.path == path)
}

/// A table of the file, with what it is about.
pub const SECTIONS: &[(&str, &str)] = &[
    ("", ""),
    ("auth.jwt", "Users' tokens. Set all of jwks, issuer and audience, or none: then only API keys are accepted."),
    ("tls", "HTTPS. Set both, or none for plain HTTP (behind a proxy, or on loopback)."),
    ("http", "What is in front of the server."),
    (
        "http.cors",
        "Which pages may call from a browser. Users' tokens only: a page cannot keep an API key to itself.\nSee docs/guide/http.md.",
    ),
    ("admission", "Admissions to rooms, which anybody can check offline. See docs/guide/rooms-in-front.md."),
    ("bounds", "A bound on everything. Past one the caller gets a clear error and nothing is half done."),
    ("log", "What the server writes to standard error."),
    ("idempotency", "Replayed answers."),
    ("jobs", "Long work: forgetting, suspending, deleting."),
    ("backup", "Copies of the store."),
    ("embedded", "Memory of a store in a folder; how much data there is makes no difference. See docs/operate."),
];

const SECOND: Duration = Duration::from_secs(1);
const MONTH: Duration = Duration::from_secs(30 * 86_400);
const MIB: u64 = 1 << 20;

/// All of them, in the order of the default file: path, what it accepts, default or example, where it may be
/// set, what it is for.
pub const SETTINGS: &[Setting] = &[
    row(
        "listen",
        Kind::Address,
        "127.0.0.1:7700",
        Flag("--listen"),
        "Address and port. The default is reachable from this machine only; \"0.0.0.0:7700\" is every\ninterface. Port 0 takes a free one.",
    ),
    row(
        "store",
        Kind::Store,
        "embedded:./tally-data",
        Flag("--store"),
        "Where the data lives: \"embedded:PATH\" is a folder on this machine, for one server;\n\"postgres://user:password@host/database\" is a PostgreSQL, which several servers may share;\n\"redis://user:password@host:6379\" is a Redis and \"redis+cluster://host1:6379,host2:6379\" a Redis\nCluster, which several servers may share too.",
    ),
    row(
        "sync",
        Kind::Sync,
        "always",
        Flag("--sync"),
        "When an answered write is on disk: \"always\" is before the answer. A duration up to ten seconds\n(\"100ms\") answers sooner, and a crash of the machine may lose that much.",
    ),
    optional(
        "admin_key",
        Kind::Secret,
        "any-visible-characters",
        EnvOnly,
        "A key with the role admin: any visible ASCII characters, better 16 or more. Only from the\nenvironment (TALLY_ADMIN_KEY), so that this file holds no secret.",
    ),
    row(
        "dev",
        Kind::Switch,
        "false",
        FlagOnly("--dev"),
        "Authentication off, for trying things out. Only by the flag --dev, only on loopback.",
    ),
    optional(
        "auth.jwt.jwks",
        Kind::Text,
        "https://www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com",
        File,
        "The issuer's public keys (JWKS): a file, or an https URL. RS256, ES256 and EdDSA. A changed file is\nread again; a URL is read again as its Cache-Control says.",
    ),
    optional(
        "auth.jwt.issuer",
        Kind::Texts,
        "https://securetoken.google.com/my-project",
        File,
        "The `iss` that a token must have; a list means any of them.",
    ),
    optional(
        "auth.jwt.audience",
        Kind::Texts,
        "my-project",
        File,
        "The `aud` that a token must have; a list means any of them.",
    ),
    row("auth.jwt.subject_claim", Kind::Text, "sub", File, "The claim that holds the user's id."),
    optional(
        "tls.cert",
        Kind::Text,
        "/etc/tally/cert.pem",
        Flag("--tls-cert"),
        "PEM file of the certificate, followed by the chain.",
    ),
    optional("tls.key", Kind::Text, "/etc/tally/key.pem", Flag("--tls-key"), "PEM file of its private key."),
    optional(
        "http.trusted_proxies",
        Kind::Texts,
        "10.0.0.0/8",
        File,
        "Proxies in front of this server, one or a list of addresses and networks. Only what these say\nof a request in X-Forwarded-* and X-Original-* headers is believed.",
    ),
    optional(
        "http.cors.origins",
        Kind::Texts,
        "https://app.example.com",
        File,
        "Origins that may call, one or a list: \"https://app.example.com\". \"*\" is every page, and\nthen without credentials.",
    ),
    row(
        "http.cors.credentials",
        Kind::Switch,
        "false",
        File,
        "Whether these pages may send cookies along (to a proxy in front; Tally itself has none).",
    ),
    optional(
        "admission.signing_key_file",
        Kind::Text,
        "/etc/tally/admission.pem",
        File,
        "PEM file (PKCS#8) of the Ed25519 key that signs; the same on every server. Default: a key that\nis made by itself and kept in the store.",
    ),
    optional(
        "admission.seal_key_file",
        Kind::Text,
        "/etc/tally/seal.key",
        File,
        "File with 64 hexadecimal digits (openssl rand -hex 32), the same on every server, with which the\nkey in the store is encrypted. Without it whoever can read the store can sign admissions.",
    ),
    row("bounds.body_bytes_max", Kind::Integer(1_024, 64 * MIB), "1048576", File, "Largest body of a request."),
    row("bounds.batch_bytes_max", Kind::Integer(1_024, 64 * MIB), "8388608", File, "Largest body of a batch."),
    row(
        "bounds.batch_commands_max",
        Kind::Integer(1, 10_000),
        "10000",
        File,
        "Most commands in a batch. An atomic batch takes at most 500 whatever this says.",
    ),
    row(
        "bounds.header_bytes_max",
        Kind::Integer(1_024, MIB),
        "32768",
        File,
        "Largest headers of a request, with its first line. A token alone may have 8 KiB.",
    ),
    row(
        "bounds.unfinished_bytes_max",
        Kind::Integer(65_536, 1 << 40),
        "134217728",
        File,
        "Most bytes that all unfinished requests hold together: headers that are not whole yet, and bodies,\nwith what is read out of a batch, until they are answered. Past it: 503 with Retry-After.",
    ),
    row(
        "bounds.connections_max",
        Kind::Integer(1, 1_000_000),
        "10000",
        File,
        "Most open connections. Past it one that is idle, or has asked for nothing yet, is ended for the\nnext; where all are at work, newcomers wait.",
    ),
    row(
        "bounds.request_timeout_ms",
        Kind::Integer(10, 600_000),
        "30000",
        File,
        "Longest time to read a request and answer it, and for a client to take a part of its answer. Live\nstreams last longer.",
    ),
    row(
        "bounds.header_read_timeout_ms",
        Kind::Integer(10, 600_000),
        "10000",
        File,
        "Longest time for a client to send its headers, from when it connects or from their first byte; a\nslower one is cut.",
    ),
    row(
        "bounds.idle_timeout_ms",
        Kind::Integer(10, 3_600_000),
        "60000",
        File,
        "Longest time that a connection may stay open without a request.",
    ),
    row(
        "bounds.shutdown_grace_ms",
        Kind::Integer(0, 600_000),
        "10000",
        File,
        "Longest time that requests in flight get to finish when the server stops.",
    ),
    row(
        "bounds.queue_depth_max",
        Kind::Integer(1, 10_000_000),
        "65536",
        File,
        "Most writes waiting for the store. Past it: 503 with Retry-After.",
    ),
    row("bounds.subscriptions_max", Kind::Integer(1, 1_000_000), "10000", File, "Most open live streams."),
    row(
        "log.format",
        Kind::Word(&["text", "json"]),
        "text",
        Flag("--log-format"),
        "\"text\" for people, \"json\" for machines.",
    ),
    row(
        "log.level",
        Kind::Word(&["error", "warn", "info", "debug", "trace"]),
        "info",
        Flag("--log-level"),
        "\"error\", \"warn\", \"info\", \"debug\" or \"trace\".",
    ),
    row(
        "idempotency.ttl",
        Kind::Duration(SECOND, MONTH),
        "24h",
        File,
        "How long the answer to an Idempotency-Key is kept and replayed.",
    ),
    row(
        "idempotency.user_bytes_max",
        Kind::Integer(1_024, 1 << 40),
        "4194304",
        File,
        "About how many bytes of answers are remembered for one user in an hour, by each server. Past it\n429, with Retry-After.",
    ),
    row("idempotency.key_bytes_max", Kind::Integer(1_024, 1 << 50), "4294967296", File, "The same for one API key."),
    row(
        "jobs.keep",
        Kind::Duration(SECOND, MONTH),
        "7d",
        File,
        "How long a job that has ended can be asked for. It names nobody any more.",
    ),
    row(
        "backup.folder",
        Kind::Text,
        "./tally-backups",
        File,
        "Where backups are written; each gets a folder of its own.",
    ),
    row(
        "embedded.cache_bytes",
        Kind::Integer(MIB, 1_024 * 1_024 * MIB),
        "268435456",
        File,
        "Memory for parts of tables that were read before.",
    ),
    row(
        "embedded.overlay_bytes_max",
        Kind::Integer(MIB, 1_024 * MIB),
        "33554432",
        File,
        "Newest rows are gathered in memory up to this before they move into tables. About ten times as much\nis held when writes come in faster than they move.",
    ),
];

const fn row(path: &'static str, kind: Kind, default: &'static str, reach: Reach, doc: &'static str) -> Setting {
    Setting { path, kind, default: Preset::Is(default), doc, reach }
}

const fn optional(path: &'static str, kind: Kind, example: &'static str, reach: Reach, doc: &'static str) -> Setting {
    Setting { path, kind, default: Preset::Absent(example), doc, reach }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
