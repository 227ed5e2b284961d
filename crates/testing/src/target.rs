//! A place for what tests build or fetch once.

use anyhow::Result;
use std::path::{Path, PathBuf};

/// A folder of that name under Cargo's target folder.
pub(crate) fn folder(name: &str) -> Result<PathBuf> {
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
    };
    let folder = target.join("testing").join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder.canonicalize()?)
}
