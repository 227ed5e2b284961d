//! An instance that all tests of a process share.

use anyhow::{Result, anyhow};
use std::sync::OnceLock;

/// The URL of an instance, with the instance where it was started here, or why there is none.
pub(crate) struct Shared<T>(OnceLock<Result<(String, Option<T>), String>>);

impl<T> Shared<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The URL that a variable names, or else that of an instance that is started now and ends with the process.
    pub(crate) fn url(&self, variable: &str, start: impl FnOnce() -> Result<(String, T)>) -> Result<&str> {
        let shared = self.0.get_or_init(|| match std::env::var(variable) {
            Ok(url) => Ok((url, None)),
            Err(_) => start().map(|(url, started)| (url, Some(started))).map_err(|error| format!("{error:#}")),
        });
        shared.as_ref().map(|(url, _)| url.as_str()).map_err(|error| anyhow!("{error}"))
    }
}
