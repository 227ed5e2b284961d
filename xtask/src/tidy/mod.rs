//! The rules of the house that the compiler does not know.
//!
//! A rule has a name, looks at the tree, and says of each finding what to do about it. Exceptions
//! stand inside the rule, each with its reason, so that they are reviewed like code.

mod forbidden;
mod generated;
mod holes;
mod layers;
mod paths;
mod purity;
mod retries;
mod size;
mod source;

use anyhow::{Result, bail};
use source::Tree;

/// Something a rule found.
#[derive(Debug, PartialEq)]
pub(crate) struct Finding {
    /// `path:line`, or the path alone.
    place: String,
    /// What is wrong and what to do.
    advice: String,
    /// A warning is printed and does not fail the run.
    fatal: bool,
}

impl Finding {
    fn new(place: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { place: place.into(), advice: advice.into(), fatal: true }
    }

    fn warning(place: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { fatal: false, ..Self::new(place, advice) }
    }
}

type Rule = fn(&Tree) -> Result<Vec<Finding>>;

/// Every rule by name. Cheap ones first; the last one builds the server.
const RULES: &[(&str, Rule)] = &[
    ("layers", layers::check),
    ("file-size", size::check),
    ("pure-core", purity::check),
    ("no-ignore", forbidden::no_ignore),
    ("no-unfinished", forbidden::no_unfinished),
    ("no-unsafe", forbidden::no_unsafe),
    ("no-sleep-in-tests", forbidden::no_sleep_in_tests),
    ("thin-engines", forbidden::thin_engines),
    ("no-holes", holes::check),
    ("no-retries", retries::check),
    ("no-machine-paths", paths::check),
    ("generated-fresh", generated::check),
];

/// `cargo xtask tidy`.
pub(crate) fn run() -> Result<()> {
    let tree = Tree::read()?;
    let mut broken = 0;
    let mut warnings = 0;
    for (name, rule) in RULES {
        for finding in rule(&tree)? {
            let level = if finding.fatal { "error" } else { "warning" };
            println!("    {level}[{name}] {}: {}", finding.place, finding.advice);
            broken += usize::from(finding.fatal);
            warnings += usize::from(!finding.fatal);
        }
    }
    if broken > 0 {
        bail!("tidy found {broken} thing(s) to put right; each line above says how");
    }
    println!("    {} rules over {} files, {warnings} warning(s)", RULES.len(), tree.files.len());
    Ok(())
}
