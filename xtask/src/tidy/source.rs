//! The tree that the rules look at: every file of the repository, and for Rust files the code alone,
//! without comments and the insides of strings, so that a rule never trips over a word in a sentence.

use crate::shell;
use anyhow::{Context, Result};
use std::process::Command;

/// All text files that git knows or would add.
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

/// One file.
pub(crate) struct File {
    /// From the workspace root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The same lines with comments and string contents blanked; empty unless Rust.
    pub(crate) code: String,
}

impl Tree {
    /// Reads the work tree. New files count too, so that a finding comes before the commit.
    pub(crate) fn read() -> Result<Self> {
        let list = shell::output(
            Command::new("git")
                // A clone made by another user is still ours to read.
                .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]),
        )
        .context("tidy lists files with git, and needs to run inside the repository")?;
        let mut files = Vec::new();
        for path in list.split('\0').filter(|path| !path.is_empty()) {
            // Deleted but not yet committed, or not text: nothing to read.
            if let Ok(text) = std::fs::read_to_string(path) {
                files.push(File::new(path, text));
            }
        }
        Ok(Self { files })
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }
}

impl File {
    pub(crate) fn new(path: &str, text: String) -> Self {
        let code = if path.ends_with(".rs") { code_only(&text) } else { String::new() };
        Self { path: path.to_owned(), text, code }
    }

    /// Lines of code with their number from 1.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The number of the line where the unit tests begin, if the file has them at its end.
    pub(crate) fn tests_begin(&self) -> Option<usize> {
        let lines: Vec<&str> = self.code.lines().map(str::trim).collect();
        let at = lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod "))?;
        // `mod tests;` names another file and begins nothing here.
        (!lines[at + 1].ends_with(';')).then_some(at + 1)
    }

    /// A file that is nothing but tests.
    pub(crate) fn is_test_file(&self) -> bool {
        self.path.contains("/tests/") || self.path.starts_with("tests/") || self.path.ends_with("/tests.rs")
    }

    /// `path:line`.
    pub(crate) fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }
}

/// Whether `line` holds `word` with no letter, digit or underscore on either side where the word
/// itself ends in one.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let starts_inside = word.starts_with(joins) && before.is_some_and(joins);
        let ends_inside = word.ends_with(joins) && after.is_some_and(joins);
        !starts_inside && !ends_inside
    })
}

/// Blanks comments and the contents of string and character literals, and keeps the lines.
fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => line_end(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => block_comment_end(&chars, at),
            '"' => string_end(&chars, at + 1),
            'r' if !follows_name(&chars, at) => raw_string_end(&chars, at).unwrap_or(at),
            '\'' => char_end(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

fn line_end(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|&c| c == '\n').map_or(chars.len(), |length| at + length)
}

/// Rust's block comments nest.
fn block_comment_end(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut here = at;
    while here < chars.len() {
        match (chars[here], chars.get(here + 1)) {
            ('/', Some('*')) => (depth, here) = (depth + 1, here + 2),
            ('*', Some('/')) => (depth, here) = (depth - 1, here + 2),
            _ => here += 1,
        }
        if depth == 0 {
            return here;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn follows_name(chars: &[char], at: usize) -> bool {
    // `br"…"` is a raw string too, so a lone `b` before the `r` does not count as a name.
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_') && chars[at - 1] != 'b'
}

fn raw_string_end(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let mut here = open + 1;
    while here < chars.len() {
        if chars[here] == '"' && chars[here + 1..].iter().take_while(|&&c| c == '#').count() >= hashes {
            return Some(here + 1 + hashes);
        }
        here += 1;
    }
    Some(chars.len())
}

/// The end of a character literal; `None` for a lifetime.
fn char_end(chars: &[char], at: usize) -> Option<usize> {
    if chars.get(at + 1) == Some(&'\\') {
        let close = chars[at + 3..].iter().position(|&c| c == '\'')?;
        return Some(at + 3 + close + 1);
    }
    (chars.get(at + 2) == Some(&'\'')).then_some(at + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_blanked_and_lines_stay() {
        let text = "let a = \"unsafe \\\" x\"; // todo!\n/* dbg! /* nested */ */ let c = '\"'; fn f<'a>() {}\nlet r = r#\"unsafe\"#;";
        let code = code_only(text);
        assert_eq!(code.lines().count(), 3);
        for gone in ["unsafe", "todo", "dbg", "nested"] {
            assert!(!code.contains(gone), "{gone} in {code}");
        }
        assert!(code.contains("fn f<'a>() {}"));
        assert!(code.contains("let r ="));
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("unsafe { }", "unsafe"));
        assert!(!has_word("#![deny(unsafe_code)]", "unsafe"));
        assert!(has_word("std::thread::spawn", "thread::"));
        assert!(!has_word("my_rand", "rand"));
    }

    #[test]
    fn unit_tests_at_the_end_are_found() {
        let file = File::new("a.rs", "fn a() {}\n#[cfg(test)]\nmod tests {\n}\n".into());
        assert_eq!(file.tests_begin(), Some(2));
        assert_eq!(File::new("a.rs", "#[cfg(test)]\nmod tests;\n".into()).tests_begin(), None);
    }
}
