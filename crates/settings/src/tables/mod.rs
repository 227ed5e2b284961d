//! The tables of what is declared by name: one file each, and how they are read.

mod attendance;
mod board;
mod counter;
mod limit;
mod room;
mod unique;

use std::fmt;
use std::sync::Arc;

use tally_core::catalog::{Catalog, LimitDef};
use tally_core::id::Name;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::declared::{Limits, Reader, Written};
use crate::file::value_text;
use crate::problem::{Problem, Source, did_you_mean};
use crate::schema::setting;

/// All of them, in the order of the default file.
pub(crate) const TABLES: &[Table] =
    &[counter::TABLE, unique::TABLE, attendance::TABLE, board::TABLE, limit::TABLE, room::TABLE];

/// Declares what was read.
pub(crate) type Declares = Box<dyn Fn(&mut Catalog) + Send + Sync>;

/// A table of declared things, for the reader and for `config defaults`.
pub(crate) struct Table {
    /// Its name.
    pub(crate) name: &'static str,
    /// What one of them is called.
    pub(super) noun: &'static str,
    /// What it is about.
    pub(crate) doc: &'static str,
    /// The name in the example.
    pub(crate) example: &'static str,
    /// Its keys, each with an example and what it is for.
    pub(crate) keys: &'static [(&'static str, &'static str, &'static str)],
    /// Those that are declared, also without being written.
    pub(crate) names: fn(&Catalog) -> Vec<String>,
    /// Reads one of them: its owner's words, its name, where it stands, its keys.
    pub(crate) read: fn(&mut Reader<'_>, &str, &Name, usize, &DeTable<'_>) -> Option<Declares>,
}

pub(crate) const RATE_LIMIT_KEY: &str = "A limit to pass first, decided with the write: a rate, or a declared limit's name, and \"per key\"\n(the default) or \"in all\".";

/// One thing of the file that is declared.
#[derive(Clone)]
pub struct Counted {
    /// The table that it stands in.
    pub table: &'static str,
    /// Its name.
    pub name: Name,
    declares: Arc<dyn Fn(&mut Catalog) + Send + Sync>,
    /// Its keys as written, with their places; for `config show`.
    pub written: Written,
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}.{}]", self.table, self.name)
    }
}

impl Counted {
    /// Declares it.
    pub fn declare(&self, catalog: &mut Catalog) {
        (self.declares)(catalog);
    }
}

/// The table of this name, if it holds declared things other than limits, which are read before all others.
pub(crate) fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name && name != "limits")
}

/// Reads a table of declared things.
pub(crate) fn read(
    source: &Source<'_>,
    limits: &Limits,
    table: &'static Table,
    value: &Spanned<DeValue<'_>>,
) -> (Vec<Counted>, Vec<Problem>) {
    let mut reader = Reader { source, limits, problems: Vec::new() };
    let mut counted = Vec::new();
    let hint = format!("write [{}.NAME] with its keys below", table.name);
    for (key, value) in reader.table(value, table.name, &hint).into_iter().flatten() {
        counted.extend(one(&mut reader, table, key.span().start, key.get_ref(), value));
    }
    (counted, reader.problems)
}

/// Reads the limits.
pub(crate) fn read_limits(source: &Source<'_>, document: &DeTable<'_>) -> (Limits, Vec<Counted>, Vec<Problem>) {
    let (mut limits, mut counted) = (Limits::new(), Vec::new());
    let none = Limits::new();
    let mut reader = Reader { source, limits: &none, problems: Vec::new() };
    let Some(table) = TABLES.iter().find(|table| table.name == "limits") else { return Default::default() };
    let entries = document.get("limits").and_then(|value| value.get_ref().as_table());
    for (key, value) in entries.into_iter().flatten() {
        let name: &str = key.get_ref();
        if !value.get_ref().is_table() && setting(&format!("bounds.{name}")).is_some() {
            // A bound of the server, as it was written before.
            continue;
        }
        let read = one(&mut reader, table, key.span().start, name, value);
        limits.insert(name.to_owned(), read.as_ref().and_then(declared_limit));
        counted.extend(read);
    }
    (limits, counted, reader.problems)
}

/// The limit that was read, for those that name it.
fn declared_limit(counted: &Counted) -> Option<Arc<LimitDef>> {
    let mut catalog = Catalog::empty();
    counted.declare(&mut catalog);
    catalog.limit(&counted.name).ok().cloned()
}

fn one(
    reader: &mut Reader<'_>,
    table: &'static Table,
    at: usize,
    name: &str,
    value: &Spanned<DeValue<'_>>,
) -> Option<Counted> {
    let fields = reader.table(value, name, &format!("write [{}.NAME] with its keys below", table.name));
    let name = reader.name(at, name, table.noun)?;
    let fields = fields?;
    let mut written = Vec::new();
    for (key, value) in fields {
        let key_name: &str = key.get_ref();
        written.push((key_name.to_owned(), value_text(value.get_ref()), reader.source.origin(key.span().start)));
        if !table.keys.iter().any(|(known, ..)| *known == key_name) {
            let names = || table.keys.iter().map(|(known, ..)| *known);
            let hint = did_you_mean(key_name, names())
                .unwrap_or_else(|| format!("{} has {}", table.noun, names().collect::<Vec<_>>().join(", ")));
            reader.problem(key.span().start, format!("unknown key `{key_name}`"), hint);
        }
    }
    let owner = format!("{}.{name}", table.name);
    let declares = Arc::from((table.read)(reader, &owner, &name, at, fields)?);
    Some(Counted { table: table.name, name, declares, written })
}
