//! Nothing in the repository may depend on where it was checked out.

use super::Finding;
use super::source::{File, Tree};
use anyhow::Result;

/// Spelled in two parts, so that this file does not find itself.
const MACHINE_PATHS: &[&str] = &[concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];

/// Looks at every text file.
pub(crate) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    Ok(tree.files.iter().flat_map(check_file).collect())
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for path in MACHINE_PATHS.iter().filter(|path| holds(line, path)) {
            findings.push(Finding::new(
                file.place(index + 1),
                format!("`{path}…` is one machine's path: make it relative"),
            ));
        }
    }
    findings
}

/// At the start of a path only: `docs/work/` and a URL's path are nobody's machine.
fn holds(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~}".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_path_is_found_and_a_relative_one_is_not() {
        for path in MACHINE_PATHS {
            let file = File::new("README.md", format!("first\nsee {path}x for more"));
            assert_eq!(check_file(&file)[0].place, "README.md:2");
            assert!(check_file(&File::new("README.md", format!("docs{path}x"))).is_empty());
        }
    }
}
