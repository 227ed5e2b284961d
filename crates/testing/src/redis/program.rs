//! Which program a Redis is.

use anyhow::{Result, anyhow};
use std::path::PathBuf;

/// Names the program to start instead of `redis-server`: a path, for instance that of a `valkey-server`.
pub const REDIS_PROGRAM_VARIABLE: &str = "TALLY_TEST_REDIS_PROGRAM";

/// Both speak the same protocol.
const NAMES: [&str; 2] = ["redis-server", "valkey-server"];

/// The Redis and Valkey servers that are on this machine, for [`crate::redis::Options::program`]. The first is
/// the one that is started without it.
pub fn programs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let find = |name: &&str| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
    let named = std::env::var_os(REDIS_PROGRAM_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    let found = NAMES.iter().filter_map(find).filter(|file| Some(file) != named.as_ref());
    named.clone().into_iter().chain(found).collect()
}

pub(super) fn first() -> Result<PathBuf> {
    programs().into_iter().next().ok_or_else(|| {
        anyhow!("Redis is not installed: `cargo xtask test` installs it, or: apt-get install redis-server")
    })
}
