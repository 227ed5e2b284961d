//! Files in `docs/` that the `tally` binary writes, so that they cannot tell another story than the code.

use crate::shell::{self, cargo};
use anyhow::Result;

/// One generated file and the arguments of `tally` that print it.
pub(crate) struct Generated {
    pub(crate) path: &'static str,
    args: &'static [&'static str],
}

/// Every generated file.
pub(crate) const GENERATED: &[Generated] = &[
    Generated { path: "docs/openapi.json", args: &["openapi"] },
    Generated { path: "docs/tally.toml", args: &["config", "defaults"] },
];

impl Generated {
    /// What the file should hold now.
    pub(crate) fn fresh(&self) -> Result<String> {
        let printed = shell::output(cargo().args(["run", "--quiet", "-p", "tally-cli", "--"]).args(self.args))?;
        // One newline at the end, whatever the printer did: editors and git expect it.
        Ok(format!("{}\n", printed.trim_end()))
    }
}

/// `cargo xtask codegen`.
pub(crate) fn write_all() -> Result<()> {
    for file in GENERATED {
        std::fs::write(file.path, file.fresh()?)?;
        println!("wrote {}", file.path);
    }
    Ok(())
}
