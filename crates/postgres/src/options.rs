//! A store's URL: what PostgreSQL understands, and what is ours.

use std::time::Duration;

use tally_core::hash::fingerprint;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::spread::WINDOW;

/// How to reach the database, and where Tally lives in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    pub(crate) config: Config,
    /// The schema that holds Tally's tables.
    pub schema: String,
    /// Connections at most, apart from the one that listens.
    pub pool: usize,
    /// Batches that are decided and committed side by side.
    pub lanes: usize,
    /// How long one question to the database may take.
    pub timeout: Duration,
    /// How long a total is looked at before it counts as hot; tests are in a hurry.
    #[doc(hidden)]
    pub hot_window: Duration,
    /// A file with the certificate authority to trust, instead of the machine's.
    pub(crate) root_certificate: Option<String>,
}

impl Options {
    /// Reads `postgres://user:password@host:port/database?schema=tally&pool=16&timeout_ms=10000`, with
    /// every parameter that PostgreSQL's own URLs have.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut own = Self {
            config: Config::new(),
            schema: "tally".into(),
            pool: 16,
            lanes: 2,
            timeout: Duration::from_secs(10),
            hot_window: WINDOW,
            root_certificate: None,
        };
        let mut theirs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "schema" => own.schema = schema(value)?,
                "pool" => own.pool = number(name, value, 2, 1_000)?,
                "lanes" => own.lanes = number(name, value, 1, 16)?,
                "timeout_ms" => own.timeout = Duration::from_millis(number(name, value, 100, 600_000)? as u64),
                "sslrootcert" => own.root_certificate = Some(value.to_owned()),
                // A certificate is always verified, whichever of these is asked for.
                "sslmode" if value.starts_with("verify-") => theirs.push("sslmode=require".to_owned()),
                _ => theirs.push(pair.to_owned()),
            }
        }
        let rest = if theirs.is_empty() { base.to_owned() } else { format!("{base}?{}", theirs.join("&")) };
        own.config = rest.parse().map_err(|error| format!("{error}; it is written postgres://user@host/database"))?;
        if own.config.get_hosts().is_empty() {
            return Err("it names no host; it is written postgres://user@host/database".into());
        }
        own.set_defaults();
        Ok(own)
    }

    /// Time-outs, so that a network that swallows packets is noticed.
    fn set_defaults(&mut self) {
        let timeout = self.timeout;
        let config = &mut self.config;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(timeout.min(Duration::from_secs(5)));
        }
        config.tcp_user_timeout(timeout).keepalives_idle(Duration::from_secs(5));
        config.keepalives_interval(Duration::from_secs(2)).keepalives_retries(3);
        if config.get_application_name().is_none() {
            config.application_name("tally");
        }
    }

    /// Whether the connection is to be encrypted, or may be.
    pub(crate) fn wants_tls(&self) -> bool {
        self.config.get_ssl_mode() != SslMode::Disable
    }

    /// Where servers on this schema tell each other news.
    pub(crate) fn channel(&self) -> String {
        format!("tally_{:016x}", fingerprint(&[self.schema.as_bytes()]))
    }

    /// The advisory locks of this schema, apart from those of other schemas and programs.
    pub(crate) fn lock_space(&self) -> i32 {
        fingerprint(&[b"tally", self.schema.as_bytes()]) as i32
    }
}

/// A schema's name goes into SQL, so it is a plain word.
fn schema(value: &str) -> Result<String, String> {
    let plain = value.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain && value.len() <= 63 && value.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Ok(value.to_owned());
    }
    Err("schema is a lower-case letter followed by up to 62 of a-z, 0-9 and _".into())
}

fn number(name: &str, value: &str, min: usize, max: usize) -> Result<usize, String> {
    let number = value.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("{name} is a number from {min} to {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_parameters_are_taken_out_and_the_rest_is_postgresqls() {
        let url = "postgres://app:secret@db:6543/shop?schema=likes&pool=4&lanes=3&timeout_ms=2500&connect_timeout=3&sslmode=disable";
        let options = Options::parse(url).unwrap();
        assert_eq!((options.schema.as_str(), options.pool, options.lanes), ("likes", 4, 3));
        assert_eq!(options.timeout, Duration::from_millis(2_500));
        assert_eq!(options.config.get_ports(), [6543]);
        assert_eq!(options.config.get_connect_timeout(), Some(&Duration::from_secs(3)));
        assert!(!options.wants_tls());
        assert_eq!(Options::parse("postgres://db/shop").unwrap().schema, "tally");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for bad in [
            "postgres://",
            "postgres://db/shop?schema=Tally",
            "postgres://db/shop?schema=a;drop",
            "postgres://db/shop?schema=",
            "postgres://db/shop?pool=1",
            "postgres://db/shop?lanes=0",
            "postgres://db/shop?timeout_ms=soon",
            "postgres://db/shop?nonsense=1",
        ] {
            assert!(Options::parse(bad).is_err(), "{bad}");
        }
    }
}
