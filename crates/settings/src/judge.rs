//! What settings cannot judge by themselves: the store, the keys and the files that they name.
//!
//! Settings know no store and no cryptography, so that they stay small. Whoever runs with them knows both, and is asked
//! before anything is opened: a mistake in them is explained beside all others.

use std::path::Path;

use crate::TlsSettings;

/// Knows what settings only name. Every refusal is for a person, and repeats no secret.
pub trait Judge {
    /// Whether this is the URL of a store; if so, how it is shown to people, without its password.
    fn store(&self, url: &str) -> Result<String, String>;
    /// Whether this can be an admin key.
    fn admin_key(&self, key: &str) -> Result<(), String>;
    /// Whether this file holds a usable key set.
    fn key_set(&self, file: &Path) -> Result<(), String>;
    /// Whether these files can serve HTTPS.
    fn tls(&self, tls: &TlsSettings) -> Result<(), TlsRefusal>;
}

/// Why a certificate and its key cannot serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsRefusal {
    /// Whether the key file, rather than the certificate file, is to blame.
    pub is_about_key: bool,
    /// What is wrong.
    pub what: String,
    /// What a person can do about it.
    pub hint: &'static str,
}

/// Takes everything for right: for what is written by ourselves, and for a look at the settings alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unjudged;

impl Judge for Unjudged {
    fn store(&self, url: &str) -> Result<String, String> {
        Ok(url.to_owned())
    }

    fn admin_key(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn key_set(&self, _: &Path) -> Result<(), String> {
        Ok(())
    }

    fn tls(&self, _: &TlsSettings) -> Result<(), TlsRefusal> {
        Ok(())
    }
}
