//! Reading the settings file: every value with its place, every mistake with its place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::declared::Limits;
use super::judge::Judge;
use super::problem::{Origin, Problem, Source, did_you_mean};
use super::relations::{self, Relation};
use super::schema::{Reach, SECTIONS, SETTINGS, Setting, setting};
use super::tables::{self, Counted};
use super::value::{Raw, Value, quote};

/// What a file says, and everything that is wrong with it.
#[derive(Default)]
pub(crate) struct Parsed {
    pub(crate) values: BTreeMap<&'static str, (Value, Origin)>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) counting: Vec<Counted>,
    pub(crate) problems: Vec<Problem>,
}

/// Reads a file's text. Never stops at the first mistake.
pub(crate) fn parse(path: &Path, text: &str, judge: &dyn Judge) -> Parsed {
    let source = Source::new(path, text);
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut parsed = Parsed::default();
    for error in errors {
        let offset = error.span().map_or(0, |span| span.start);
        let what = error.message().trim().replace('\n', "; ");
        parsed.problems.push(Problem::new(source.origin(offset), format!("not TOML: {what}")));
    }
    // The parser goes on after broken syntax with a guess, so further mistakes on such a line are its
    // own, not the writer's.
    let broken: BTreeSet<usize> = parsed.problems.iter().filter_map(line).collect();
    let syntax = parsed.problems.len();
    // Others name them, wherever they stand.
    let (limits, counted, problems) = tables::read_limits(&source, document.get_ref());
    parsed.counting = counted;
    parsed.problems.extend(problems);
    let mut walk = Walk { source: &source, judge, limits: &limits, parsed };
    walk.table("", document.get_ref());
    let mut parsed = walk.parsed;
    let mut index = 0;
    parsed.problems.retain(|problem| {
        index += 1;
        index <= syntax || line(problem).is_none_or(|line| !broken.contains(&line))
    });
    parsed
}

fn line(problem: &Problem) -> Option<usize> {
    match problem.origin {
        Origin::File { line, .. } => Some(line),
        _ => None,
    }
}

struct Walk<'a> {
    source: &'a Source<'a>,
    judge: &'a dyn Judge,
    limits: &'a Limits,
    parsed: Parsed,
}

impl Walk<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let name: &str = key.get_ref();
            let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
            if path == "limits" {
                self.bounds_of_before(value);
            } else if let Some(setting) = setting(&path) {
                self.setting(setting, key.span().start, value);
            } else if path == "relations" {
                let (relations, problems) = relations::read(self.source, self.limits, value);
                self.parsed.relations = relations;
                self.parsed.problems.extend(problems);
            } else if let Some(table) = tables::table(&path) {
                let (counted, problems) = tables::read(self.source, self.limits, table, value);
                self.parsed.counting.extend(counted);
                self.parsed.problems.extend(problems);
            } else if is_section(&path) {
                match value.get_ref() {
                    DeValue::Table(inner) => self.table(&path, inner),
                    _ => self.problem(
                        value.span().start,
                        format!("`{path}` is a table"),
                        Some(format!("write [{path}] with its settings below")),
                    ),
                }
            } else {
                let hint = unknown_hint(prefix, name);
                self.problem(key.span().start, format!("unknown key `{name}`"), hint);
            }
        }
    }

    /// Limits were read before. Bounds of the server stood among them once, and are still taken there.
    fn bounds_of_before(&mut self, value: &Spanned<DeValue<'_>>) {
        for (key, value) in value.get_ref().as_table().into_iter().flatten() {
            let name: &str = key.get_ref();
            match setting(&format!("bounds.{name}")) {
                Some(bound) if !value.get_ref().is_table() => self.setting(bound, key.span().start, value),
                Some(_) | None => {}
            }
        }
    }

    fn setting(&mut self, setting: &'static Setting, at: usize, value: &Spanned<DeValue<'_>>) {
        if !setting.in_file() {
            let hint = match (setting.reach, setting.env()) {
                (Reach::FlagOnly(flag), _) => format!("use the flag {flag}"),
                (_, Some(env)) => format!("set {env} in the environment"),
                (_, None) => String::new(),
            };
            let what = format!("`{}` cannot be set in the file", setting.path);
            return self.problem(at, what, Some(hint));
        }
        match setting.kind.accept(raw(value.get_ref()), self.judge) {
            Ok(accepted) => {
                self.parsed.values.insert(setting.path, (accepted, self.source.origin(at)));
            }
            Err(refused) => {
                let what = format!("`{}`: {}", setting.path, refused.what);
                self.problem(value.span().start, what, Some(refused.hint));
            }
        }
    }

    fn problem(&mut self, offset: usize, what: String, hint: Option<String>) {
        let origin = self.source.origin(offset);
        self.parsed.problems.push(Problem { origin, what, hint });
    }
}

fn is_section(path: &str) -> bool {
    SECTIONS
        .iter()
        .any(|(section, _)| section.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// The nearest name in the same table, or the table that a right name in the wrong place belongs to.
fn unknown_hint(prefix: &str, name: &str) -> Option<String> {
    if let Some(elsewhere) = SETTINGS.iter().find(|s| s.key() == name && s.in_file()) {
        return Some(match elsewhere.section() {
            "" => format!("`{name}` belongs at the top of the file, before the first [table]"),
            section => format!("`{name}` belongs under [{section}]"),
        });
    }
    let settings = SETTINGS.iter().map(|setting| setting.path);
    let declared = tables::TABLES.iter().map(|table| table.name).chain(["relations"]);
    let sections = SECTIONS.iter().map(|(section, _)| *section).chain(declared);
    let below = move |path: &'static str| {
        let rest = path.strip_prefix(prefix)?;
        let rest = if prefix.is_empty() { rest } else { rest.strip_prefix('.')? };
        rest.split('.').next().filter(|first| !first.is_empty())
    };
    did_you_mean(name, settings.chain(sections).filter_map(below))
}

/// A value of the file as far as a scalar setting can use it.
pub(crate) fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.clone().into_owned()),
        DeValue::Integer(number) => Raw::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok()),
        DeValue::Boolean(on) => Raw::Switch(*on),
        DeValue::Array(items) => {
            let texts: Option<Vec<String>> =
                items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect();
            texts.map_or(Raw::Other("a mixed list"), Raw::Texts)
        }
        DeValue::Float(_) => Raw::Other("a fraction"),
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Table(_) => Raw::Other("a table"),
    }
}

/// A value as TOML on one line, for `config show` and messages.
pub(crate) fn value_text(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quote(text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| value_text(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(table) => {
            let fields: Vec<_> = table
                .iter()
                .map(|(key, value)| format!("{} = {}", key.get_ref(), value_text(value.get_ref())))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Unjudged;

    const TEXT: &str = r#"listen = "127.0.0.1:1" # é
[limits]
body_bytes_max = 0x400
[relations.bookmark]
one_of = ["a", "b"]
meta = { memo = "string(5)", 'ü' = "bool!" }
when.relate = """object.status == 'ok'"""
[limits.posting]
rate = "5/s"
[boards.weekly]
season = "0 0 * * MON"
rate_limit = "posting per member"
[[relations.x]]
[auth.jwt]
issuer = ["a", "b"]
"#;

    #[test]
    fn no_text_breaks_the_reader() {
        let path = Path::new("t.toml");
        for cut in (0..=TEXT.len()).filter(|cut| TEXT.is_char_boundary(*cut)) {
            let (before, after) = TEXT.split_at(cut);
            for text in [before.to_owned(), after.to_owned(), format!("{before}\u{0}=[{{\"é.{after}")] {
                for problem in parse(path, &text, &Unjudged).problems {
                    assert!(line(&problem).is_some_and(|line| line <= text.lines().count() + 1), "{problem}");
                }
            }
        }
    }
}
