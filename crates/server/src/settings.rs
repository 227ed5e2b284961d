//! Settings, judged by who will run with them: the engines know stores, [`crate::auth`] knows keys, [`crate::tls`] knows
//! certificates.

use std::collections::BTreeMap;
use std::path::Path;

use tally::Opening;
use tally_settings::{ConfigErrors, Judge, Problem, ServeArgs, Settings, TlsRefusal, TlsSettings};

use crate::auth::jwks::KeySet;
use crate::auth::keys::AdminKey;
use crate::tls;

/// Reads flags, environment and file.
pub fn load(args: &ServeArgs) -> Result<Settings, ConfigErrors> {
    tally_settings::load(args, &Server)
}

/// Reads flags and file, with this environment instead of the process's own.
pub fn load_from(args: &ServeArgs, env: &BTreeMap<String, String>) -> Result<Settings, ConfigErrors> {
    tally_settings::load_from(args, env, &Server)
}

/// Every problem of one file, on its own: without flags and environment.
pub fn check(path: &Path) -> Vec<Problem> {
    tally_settings::check(path, &Server)
}

/// This server, as the judge of what it is to run with.
struct Server;

impl Judge for Server {
    fn store(&self, url: &str) -> Result<String, String> {
        match Opening::parse(url) {
            Ok(_) => Ok(tally::redacted(url)),
            Err(why) => Err(store_refusal(url, &why)),
        }
    }

    fn admin_key(&self, key: &str) -> Result<(), String> {
        AdminKey::new(key).map(|_| ()).map_err(|error| error.to_string())
    }

    fn key_set(&self, file: &Path) -> Result<(), String> {
        KeySet::read(file).map(|_| ()).map_err(|error| error.to_string())
    }

    fn tls(&self, tls: &TlsSettings) -> Result<(), TlsRefusal> {
        match tls::server_config(tls) {
            Ok(_) => Ok(()),
            Err(error) => {
                Err(TlsRefusal { is_about_key: error.is_about_key(), what: error.to_string(), hint: error.hint() })
            }
        }
    }
}

/// Why a URL is not a store's. It may carry a password, so no more of it is repeated than is known to be safe.
fn store_refusal(url: &str, why: &tally::Error) -> String {
    match url.split_once(':') {
        Some(("embedded", _)) => "the path after `embedded:` is missing".into(),
        Some(("postgres" | "postgresql" | "redis" | "rediss" | "redis+cluster" | "rediss+cluster", _)) => {
            why.to_string()
        }
        Some((scheme, _)) => format!("no store is called `{scheme}`"),
        None => "it is not the URL of a store".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(name: &str) -> String {
        format!("{}/tests/keys/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    fn refused(args: &ServeArgs, env: &[(&str, &str)]) -> String {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        load_from(args, &env).unwrap_err().to_string()
    }

    #[test]
    fn a_refused_store_does_not_repeat_its_password() {
        for (url, expected) in [
            ("mysql://u:hush@h/db", "`store`: no store is called `mysql`"),
            ("postgres://u:hush@h/db?schema=A", "schema is"),
            ("embedded:", "the path after `embedded:` is missing"),
            ("./tally-data", "it is not the URL of a store"),
        ] {
            let said = refused(&ServeArgs { store: Some(url.into()), ..ServeArgs::default() }, &[]);
            assert!(said.contains(expected) && !said.contains("hush"), "{said}");
        }
    }

    #[test]
    fn a_store_is_shown_without_its_password() {
        let args = ServeArgs { store: Some("postgres://u:hush@h/db".into()), ..ServeArgs::default() };
        let settings = load_from(&args, &BTreeMap::new()).unwrap();
        assert_eq!(settings.store, "postgres://u:hush@h/db");
        let shown = tally_settings::render_show(&settings);
        assert!(shown.contains("store = \"postgres://u:***@h/db\"") && !shown.contains("hush"), "{shown}");
    }

    #[test]
    fn an_admin_key_that_cannot_be_sent_is_refused_and_not_repeated() {
        let said = refused(&ServeArgs::default(), &[("TALLY_ADMIN_KEY", "hush hush")]);
        assert!(said.contains("visible ASCII") && !said.contains("hush hush"), "{said}");
    }

    #[test]
    fn a_key_set_is_read_before_it_is_needed() {
        let jwks = keys("rsa.pem");
        let env = [("TALLY_AUTH_JWT_JWKS", jwks.as_str())];
        let said = refused(&ServeArgs::default(), &env);
        assert!(said.contains("`auth.jwt.jwks`: not a JSON Web Key Set"), "{said}");
    }

    #[test]
    fn certificate_and_key_are_tried_before_they_are_needed() {
        let cert = keys("cert.pem");
        let cases = [
            (&cert, keys("ec.pem"), None),
            (&cert, keys("rsa.pem"), Some("does not belong to the certificate")),
            (&cert, keys("none.pem"), Some("`tls.key`: cannot read")),
            (&cert, cert.clone(), Some("holds no private key")),
            (&keys("none.pem"), keys("ec.pem"), Some("`tls.cert`: cannot read")),
            (&keys("ec.pem"), keys("ec.pem"), Some("holds no certificate")),
        ];
        for (cert, key, expected) in cases {
            let args = ServeArgs { tls_cert: Some(cert.clone()), tls_key: Some(key.clone()), ..ServeArgs::default() };
            match (load_from(&args, &BTreeMap::new()), expected) {
                (Ok(settings), None) => assert!(settings.tls.is_some()),
                (Err(error), Some(part)) => assert!(error.to_string().contains(part), "{error}"),
                (got, expected) => panic!("{cert} {key}: {expected:?}, got {:?}", got.map(|_| ())),
            }
        }
    }
}
