//! `[uniques.NAME]`.

use tally_core::catalog::{Per, UniqueDef};
use tally_core::id::Name;
use toml::de::DeTable;

use super::{Declares, RATE_LIMIT_KEY, Table};
use crate::declared::{Reader, Whose};

const PER_KEY: Whose = &[("key", Per::Object)];

/// The table and its keys.
pub(crate) const TABLE: Table = Table {
    name: "uniques",
    noun: "a unique count",
    doc: "Unique counts: how many different ones? Without any here, `dau` exists.",
    example: "dau",
    keys: &[("rate_limit", "\"600/min per key\"", RATE_LIMIT_KEY)],
    names: |catalog| catalog.uniques().map(|def| def.name.to_string()).collect(),
    read,
};

fn read(reader: &mut Reader<'_>, owner: &str, name: &Name, _at: usize, fields: &DeTable<'_>) -> Option<Declares> {
    let rate_limit = fields.get("rate_limit").and_then(|value| reader.rate_limit(owner, PER_KEY, value));
    let def = UniqueDef { rate_limit, ..UniqueDef::new(name.clone()) };
    Some(Box::new(move |catalog| catalog.declare_unique(def.name.clone(), def.clone())))
}
