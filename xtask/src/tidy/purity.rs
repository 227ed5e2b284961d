//! `crates/core` decides, and does nothing else: no clock, no randomness, no I/O, no async.

use super::Finding;
use super::source::{File, Tree, has_word};
use anyhow::Result;

/// A word and what it would bring in.
const IMPURE: &[(&str, &str)] = &[
    ("SystemTime", "a clock"),
    ("Instant", "a clock"),
    ("Timestamp::now", "a clock"),
    ("Zoned::now", "a clock"),
    ("rand", "randomness"),
    ("getrandom", "randomness"),
    ("RandomState", "randomness (hash order)"),
    ("std::fs", "I/O"),
    ("std::net", "I/O"),
    ("std::env", "I/O"),
    // Not all of `std::io`: its traits are how a serializer writes into memory.
    ("io::stdin", "I/O"),
    ("io::stdout", "I/O"),
    ("io::stderr", "I/O"),
    ("println!", "I/O"),
    ("eprintln!", "I/O"),
    ("tokio", "async"),
    ("async fn", "async"),
    ("async move", "async"),
    (".await", "async"),
    ("thread::", "threads"),
];

/// Looks at the sources of core.
pub(crate) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    Ok(tree.rust().filter(|file| file.path.starts_with("crates/core/src/")).flat_map(check_file).collect())
}

fn check_file(file: &File) -> Vec<Finding> {
    let tests_begin = file.tests_begin().unwrap_or(usize::MAX);
    let mut findings = Vec::new();
    for (number, line) in file.code_lines().take_while(|(number, _)| *number < tests_begin) {
        for (word, brings) in IMPURE.iter().filter(|(word, _)| has_word(line, word)) {
            findings.push(Finding::new(
                file.place(number),
                format!("`{word}` brings {brings} into core: let the runner stamp it, and pass it in with the command"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_in_core_is_found_and_a_sentence_about_one_is_not() {
        let bad = File::new("crates/core/src/a.rs", "// SystemTime\nlet now = std::time::SystemTime::now();\n".into());
        let found = check_file(&bad);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "crates/core/src/a.rs:2");
        assert_eq!(check_file(&File::new("crates/core/src/a.rs", "async fn a() {}".into())).len(), 1);
        assert!(check_file(&File::new("crates/core/src/a.rs", "let operand = grand;".into())).is_empty());
    }
}
