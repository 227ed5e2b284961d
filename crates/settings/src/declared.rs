//! What the readers of declared things share: tables, switches, words, conditions, rate limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use tally_core::catalog::{LimitDef, Per, RateLimit};
use tally_core::condition::Condition;
use tally_core::id::Name;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::raw;
use super::problem::{Origin, Problem, Source, did_you_mean};

/// Keys as written, with their places; for `config show`.
pub type Written = Vec<(String, String, Origin)>;

/// The limits of the file by name; none where what is written of one is wrong, which was said already.
pub(crate) type Limits = BTreeMap<String, Option<Arc<LimitDef>>>;

/// Whose uses of a rate limit can be counted together; the first is meant unless another is said.
pub(crate) type Whose = &'static [(&'static str, Per)];

/// Reads declared things, and collects what is wrong with them.
pub(crate) struct Reader<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) limits: &'a Limits,
    pub(super) problems: Vec<Problem>,
}

impl Reader<'_> {
    pub(super) fn name(&mut self, at: usize, name: &str, what: &str) -> Option<Name> {
        let checked = Name::new(name).ok();
        if checked.is_none() {
            let hint = "use 1 to 64 of a-z, 0-9, - and _, beginning with a letter";
            self.problem(at, format!("`{name}` cannot be the name of {what}"), hint);
        }
        checked
    }

    pub(super) fn switch(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<bool> {
        let on = value.get_ref().as_bool();
        if on.is_none() {
            let what = format!("`{key}`: {} where true or false belongs", raw(value.get_ref()).type_name());
            self.problem(value.span().start, what, "write true or false, without quotes");
        }
        on
    }

    /// A string.
    pub(super) fn text<'v>(&mut self, key: &str, value: &'v Spanned<DeValue<'_>>, hint: &str) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            let what = format!("`{key}`: {} where a string belongs", raw(value.get_ref()).type_name());
            self.problem(value.span().start, what, hint);
        }
        text
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        noun: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let (last, before) = words.split_last()?;
        let all = format!("write {} or {last}", before.join(", "));
        let text = self.text(key, value, &all)?;
        let found = choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
        if found.is_none() {
            let hint = did_you_mean(text, choices.iter().map(|(word, _)| *word)).unwrap_or(all);
            self.problem(value.span().start, format!("`{key}`: there is no {noun} `{text}`"), hint);
        }
        found
    }

    pub(super) fn condition(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Condition> {
        match value.get_ref().as_str().map(Condition::compile) {
            Some(Ok(condition)) => return Some(condition),
            Some(Err(error)) => self.problem(
                value.span().start,
                format!("`{key}` is not a condition: {}", first_line(&error)),
                "a CEL expression over auth, object, subject, meta and now, such as \"object.status == 'published'\"",
            ),
            None => self.problem(
                value.span().start,
                format!("`{key}`: {} where a condition belongs", raw(value.get_ref()).type_name()),
                "write a CEL expression in quotes",
            ),
        }
        None
    }

    /// `30/min per subject`, or a declared limit in place of the rate. One that stands for itself is called as its
    /// `owner`, such as `relations.like`.
    pub(super) fn rate_limit(&mut self, owner: &str, whose: Whose, value: &Spanned<DeValue<'_>>) -> Option<RateLimit> {
        let at = value.span().start;
        let ways: Vec<String> = whose.iter().map(|(word, _)| format!("per {word}")).collect();
        let ways = format!("{} or in all", ways.join(", "));
        let hint = format!("write \"30/min per {}\", or the name of a limit in place of 30/min", whose.first()?.0);
        let text = self.text("rate_limit", value, &hint)?.trim();
        let (what, per) = match (text.strip_suffix(" in all"), text.rsplit_once(" per ")) {
            (Some(what), _) => (what, Per::All),
            (None, None) => (text, whose.first()?.1),
            (None, Some((what, word))) => match whose.iter().find(|(known, _)| *known == word.trim()) {
                Some((_, per)) => (what, *per),
                None => {
                    let what = format!("`rate_limit`: there is no `{}` to count per here", word.trim());
                    self.problem(at, what, format!("write {ways}"));
                    return None;
                }
            },
        };
        let what = what.trim();
        if what.contains('/') {
            return match LimitDef::parse(owner, what, None) {
                Ok(limit) => Some(RateLimit { limit: Arc::new(limit), per }),
                Err(error) => {
                    self.wrong_rate("rate_limit", at, &error, &hint);
                    None
                }
            };
        }
        match self.limits.get(what) {
            Some(limit) => limit.clone().map(|limit| RateLimit { limit, per }),
            None => {
                let near = did_you_mean(what, self.limits.keys().map(String::as_str));
                let hint = near.unwrap_or_else(|| "write a rate such as 30/min, or declare it as [limits.NAME]".into());
                self.problem(at, format!("`rate_limit`: there is no limit `{what}`"), hint);
                None
            }
        }
    }

    /// What is wrong with a rate; most of it ends with what to write instead.
    pub(super) fn wrong_rate(&mut self, key: &str, at: usize, error: &str, hint: &str) {
        let (what, hint) = error.split_once("; ").unwrap_or((error, hint));
        self.problem(at, format!("`{key}`: {what}"), hint);
    }

    pub(super) fn table<'v, 'i>(
        &mut self,
        value: &'v Spanned<DeValue<'i>>,
        name: &str,
        hint: &str,
    ) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let what = format!("`{name}`: {} where a table belongs", raw(value.get_ref()).type_name());
            self.problem(value.span().start, what, hint);
        }
        table
    }

    pub(super) fn problem(&mut self, at: usize, what: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(Problem::new(self.source.origin(at), what).hint(hint));
    }
}

/// What the CEL parser says first; it goes on with a drawing that needs a line of its own.
fn first_line(error: &str) -> &str {
    error.trim_start_matches("ERROR: <input>:").lines().next().unwrap_or_default().trim()
}
