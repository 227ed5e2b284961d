//! `config show`: what is in force, and who said so.

use std::fmt::Write as _;

use super::problem::Origin;
use super::schema::{SECTIONS, Setting};
use super::tables::TABLES;
use super::value::Value;
use super::{Relation, Settings};

/// One setting as it is in force.
#[derive(Debug, Clone)]
pub(crate) struct Effective {
    pub(crate) setting: &'static Setting,
    pub(crate) value: Option<Value>,
    pub(crate) origin: Origin,
}

/// The settings in force as TOML, each with where it came from. Secrets are stars.
pub fn render_show(settings: &Settings) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut plain = |text: String| lines.push((text, String::new()));
    match &settings.file {
        Some(file) => plain(format!("# file: {}", file.display())),
        None => plain("# file: none".into()),
    }
    for (section, _) in SECTIONS {
        if !section.is_empty() {
            lines.push((String::new(), String::new()));
            lines.push((format!("[{section}]"), String::new()));
        }
        for effective in settings.effective.iter().filter(|e| e.setting.section() == *section) {
            let key = effective.setting.key();
            lines.push(match &effective.value {
                Some(value) if effective.setting.in_file() => {
                    (format!("{key} = {value}"), effective.origin.to_string())
                }
                // Not valid in a file, so not printed as if it were.
                Some(value) => (format!("# {key} = {value}"), effective.origin.to_string()),
                None => (format!("# {key}"), "not set".to_owned()),
            });
        }
    }
    relations(settings, &mut lines);
    counting(settings, &mut lines);
    let width = lines.iter().map(|(text, _)| text.chars().count()).filter(|w| *w <= 60).max();
    let width = width.unwrap_or(0);
    let mut out = String::new();
    for (text, origin) in lines {
        // Writing to a String cannot fail.
        let _ = match origin.as_str() {
            "" => writeln!(out, "{text}"),
            origin => writeln!(out, "{text:width$}  # {origin}"),
        };
    }
    out
}

fn relations(settings: &Settings, lines: &mut Vec<(String, String)>) {
    for definition in settings.catalog().relations() {
        let name = definition.name.as_str();
        let written: &[_] = settings
            .relations
            .iter()
            .find(|relation: &&Relation| relation.definition.name == definition.name)
            .map_or(&[], |relation| relation.written.as_slice());
        lines.push((String::new(), String::new()));
        lines.push((format!("[relations.{name}]"), String::new()));
        if !written.iter().any(|(key, ..)| key == "read") {
            let read = format!("{:?}", definition.read).to_lowercase();
            lines.push((format!("read = \"{read}\""), Origin::Default.to_string()));
        }
        lines.extend(written.iter().map(line));
    }
}

/// What is counted, also that which nobody has written anything about.
fn counting(settings: &Settings, lines: &mut Vec<(String, String)>) {
    let catalog = settings.catalog();
    let names = TABLES.iter().flat_map(|table| (table.names)(&catalog).into_iter().map(|name| (table.name, name)));
    for (table, name) in names {
        let is_it = |counted: &&super::Counted| counted.table == table && counted.name.as_str() == name;
        lines.push((String::new(), String::new()));
        lines.push((format!("[{table}.{name}]"), String::new()));
        lines.extend(settings.counting.iter().find(is_it).into_iter().flat_map(|counted| &counted.written).map(line));
    }
}

fn line((key, value, origin): &(String, String, Origin)) -> (String, String) {
    (format!("{key} = {value}"), origin.to_string())
}
