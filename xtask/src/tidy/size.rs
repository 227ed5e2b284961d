//! A file is one idea. Unit tests at the end of a file do not count, nor do files of tests.

use super::Finding;
use super::source::{File, Tree};
use anyhow::Result;

const WARN_LINES: usize = 250;
const FAIL_LINES: usize = 450;

/// Files that may be longer, and why.
const LONGER: &[(&str, &str)] = &[];

/// Looks at every Rust file.
pub(crate) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let subject_to_it = tree.rust().filter(|file| !LONGER.iter().any(|(path, _)| *path == file.path));
    Ok(subject_to_it.filter_map(check_file).collect())
}

fn check_file(file: &File) -> Option<Finding> {
    if file.is_test_file() {
        return None;
    }
    let lines = file.tests_begin().map_or_else(|| file.text.lines().count(), |line| line - 1);
    if lines > FAIL_LINES {
        Some(Finding::new(
            &file.path,
            format!(
                "{lines} lines, the limit is {FAIL_LINES}: split it by idea, or add it with a reason to LONGER in xtask/src/tidy/size.rs"
            ),
        ))
    } else if lines > WARN_LINES {
        Some(Finding::warning(&file.path, format!("{lines} lines, more than {WARN_LINES}: is it still one idea?")))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_warn_then_fail_and_tests_do_not_count() {
        let file = |path: &str, lines: usize| File::new(path, "//\n".repeat(lines));
        assert!(check_file(&file("crates/a/src/a.rs", WARN_LINES)).is_none());
        assert!(!check_file(&file("crates/a/src/a.rs", WARN_LINES + 1)).unwrap().fatal);
        assert!(check_file(&file("crates/a/src/a.rs", FAIL_LINES + 1)).unwrap().fatal);
        assert!(check_file(&file("crates/a/tests/a.rs", FAIL_LINES + 1)).is_none());

        let mostly_tests = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "//\n".repeat(FAIL_LINES));
        assert!(check_file(&File::new("crates/a/src/a.rs", mostly_tests)).is_none());
    }
}
