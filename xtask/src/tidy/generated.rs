//! Generated files say what the code says now. A file is checked from the moment it exists.

use super::Finding;
use super::source::Tree;
use crate::codegen::GENERATED;
use anyhow::Result;

/// Asks the binary for each generated file that is in the tree, and compares.
pub(crate) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for generated in GENERATED {
        if let Some(file) = tree.files.iter().find(|file| file.path == generated.path) {
            findings.extend(compare(&file.path, &file.text, &generated.fresh()?));
        }
    }
    Ok(findings)
}

fn compare(path: &str, kept: &str, fresh: &str) -> Option<Finding> {
    let differs = kept.lines().zip(fresh.lines()).position(|(a, b)| a != b);
    let line = match differs {
        Some(index) => index + 1,
        None if kept.lines().count() != fresh.lines().count() => kept.lines().count().min(fresh.lines().count()) + 1,
        None => return None,
    };
    Some(Finding::new(format!("{path}:{line}"), "stale: run `cargo xtask codegen` and commit what it writes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_file_is_found_at_its_first_differing_line() {
        assert_eq!(compare("docs/a", "x\ny\n", "x\nz\n").unwrap().place, "docs/a:2");
        assert_eq!(compare("docs/a", "x\n", "x\ny\n").unwrap().place, "docs/a:2");
        assert!(compare("docs/a", "x\n", "x\n").is_none());
    }
}
