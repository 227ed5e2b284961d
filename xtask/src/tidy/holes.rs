//! A `match` over keys, rows, commands, questions or replies names every case: a new one is then a compile error in every
//! place that has to know it, and not a silent hole.

use anyhow::Result;

use super::Finding;
use super::source::{File, Tree};

/// The enums that grow with every capability.
const GROWING: &[&str] = &["Key::", "Row::", "RowKind::", "Command::", "Query::", "Reply::"];

/// What looks like one and is another.
const OTHERS: &[(&str, &str)] = &[("crates/cli/src/main.rs", "its `Command` is that of the command line")];

/// Code that only tests run.
const TESTING: &[&str] = &["crates/conformance/", "crates/simulator/", "crates/testing/", "bench/", "xtask/", "fuzz/"];

pub(crate) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let is_product = |file: &&File| {
        !file.is_test_file()
            && !file.path.ends_with("tests.rs")
            && !file.path.contains("/src/tests/")
            && !OTHERS.iter().any(|(path, _)| *path == file.path)
            && !TESTING.iter().any(|folder| file.path.starts_with(folder))
    };
    Ok(tree.rust().filter(is_product).flat_map(holes).collect())
}

/// An open `match`: how far it is indented, whether an arm names a case of a growing enum, and where an arm takes the rest.
struct Match {
    indent: usize,
    grows: bool,
    rest: Option<usize>,
}

/// Goes by the layout that rustfmt gives: arms stand one step inside of their `match`.
fn holes(file: &File) -> Vec<Finding> {
    let tests_begin = file.tests_begin().unwrap_or(usize::MAX);
    let (mut open, mut findings): (Vec<Match>, Vec<Finding>) = (Vec::new(), Vec::new());
    for (number, line) in file.code_lines().filter(|(number, _)| *number < tests_begin) {
        let (indent, text) = (line.len() - line.trim_start().len(), line.trim());
        if text.is_empty() {
            continue;
        }
        while open.last().is_some_and(|inner| indent <= inner.indent) {
            if let Some(Match { grows: true, rest: Some(at), .. }) = open.pop() {
                let advice = "name every case, or ask with `if let`: what is added later must not fall into a hole";
                findings.push(Finding::new(
                    file.place(at),
                    format!("a `match` takes the rest of a growing enum: {advice}"),
                ));
            }
        }
        if let Some(inner) = open.last_mut().filter(|inner| indent == inner.indent + 4) {
            let pattern = text.split("=>").next().unwrap_or(text);
            inner.grows |=
                GROWING.iter().any(|name| names(pattern, name)) || (pattern.starts_with("| ") && inner.grows);
            if text.contains("=>") && takes_rest(pattern.trim()) {
                inner.rest = Some(number);
            }
        }
        if text.ends_with('{') && (text.starts_with("match ") || text.contains(" match ")) {
            open.push(Match { indent, grows: false, rest: None });
        }
    }
    findings
}

/// Whether a pattern names a case of this enum; `TotalKey::` is another one than `Key::`.
fn names(pattern: &str, name: &str) -> bool {
    pattern.match_indices(name).any(|(at, _)| {
        let before = pattern[..at].chars().next_back();
        let is_path = pattern[..at].ends_with("::");
        !is_path
            && !before.is_some_and(|before| before.is_alphanumeric() || before == '_')
            && pattern[at + name.len()..].starts_with(|next: char| next.is_ascii_uppercase())
    })
}

/// `_`, `other`, `Some(_)`, `Ok(other)`, `(_, _)`, each with or without a condition.
fn takes_rest(pattern: &str) -> bool {
    let pattern = pattern.split(" if ").next().unwrap_or(pattern).trim();
    let wrapped = ["Some(", "Ok("].iter().find_map(|wrapper| pattern.strip_prefix(wrapper)?.strip_suffix(')'));
    let inner = wrapped.unwrap_or(pattern);
    let parts = inner.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(inner);
    parts.split(',').all(|part| {
        let part = part.trim();
        part == "_" || part == ".." || (!part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(&Tree { files: vec![File::new("crates/core/src/a.rs", text.into())] }).unwrap().len()
    }

    #[test]
    fn a_rest_is_found_and_named_cases_are_not() {
        assert_eq!(found("fn a() {\n    match key {\n        Key::Edge(_) => 1,\n        _ => 2,\n    }\n}\n"), 1);
        assert_eq!(
            found(
                "fn a() {\n    match row {\n        Some(Row::Job(_)) => 1,\n        Some(_) | None => 2,\n    }\n}\n"
            ),
            0
        );
        assert_eq!(
            found("fn a() {\n    match row {\n        Some(Row::Job(_)) => 1,\n        other => 2,\n    }\n}\n"),
            1
        );
        assert_eq!(
            found(
                "fn a() {\n    match reply {\n        Ok(Reply::Done(_)) => 1,\n        Ok(other) => 2,\n        Err(_) => 3,\n    }\n}\n"
            ),
            1
        );
        assert_eq!(
            found("fn a() {\n    match total {\n        TotalKey::Object(_) => 1,\n        _ => 2,\n    }\n}\n"),
            0
        );
        assert_eq!(
            found("fn a() {\n    match key {\n        Key::Edge(_) => 1,\n        Key::Names => 2,\n    }\n}\n"),
            0
        );
    }
}
