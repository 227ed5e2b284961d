//! What is wrong with the settings, where, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

use tally_core::catalog::nearest;

/// Where a value, or a mistake, was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A place in the settings file; line and column count from 1, the column in characters.
    File {
        /// The file as it was named.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// An environment variable.
    Env(String),
    /// A command line flag, with its dashes.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line, column } => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Origin::Env(name) => write!(f, "env {name}"),
            Origin::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// One mistake in the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub origin: Origin,
    /// What is wrong. Never holds a secret's value.
    pub what: String,
    /// What a person can do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem at a place, without advice yet.
    pub fn new(origin: Origin, what: impl Into<String>) -> Self {
        Problem { origin, what: what.into(), hint: None }
    }

    /// Adds what a person can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Every problem found in the settings, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<Problem>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Turns byte offsets of one file into places.
pub(crate) struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl<'a> Source<'a> {
    pub(crate) fn new(path: &'a Path, text: &'a str) -> Self {
        Source { path, text }
    }

    /// The place of a byte offset. Called for keys and mistakes only, so a scan from the start will do.
    pub(crate) fn origin(&self, offset: usize) -> Origin {
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Origin::File {
            path: self.path.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// "Did you mean", when a known name is near enough.
pub(crate) fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(typed, known.into_iter()).map(|name| format!("did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_from_one() {
        let source = Source::new(Path::new("t.toml"), "a = 1\nü = \"é\" x\n");
        let place = |offset| source.origin(offset).to_string();
        assert_eq!(place(0), "t.toml:1:1");
        assert_eq!(place(6), "t.toml:2:1");
        assert_eq!(place("a = 1\nü = \"é\" ".len()), "t.toml:2:9");
        assert_eq!(place(7), "t.toml:2:1", "inside a character");
        assert_eq!(place(999), "t.toml:3:1", "past the end");
    }
}
