//! `[counters.NAME]`.

use tally_core::catalog::{CounterDef, Per};
use tally_core::id::Name;
use toml::de::DeTable;

use super::{Declares, RATE_LIMIT_KEY, Table};
use crate::declared::{Reader, Whose};

const PER_KEY: Whose = &[("key", Per::Object)];

/// The table and its keys.
pub(crate) const TABLE: Table = Table {
    name: "counters",
    noun: "a counter",
    doc: "Counters: how many times? Without any here, `views` exists.",
    example: "views",
    keys: &[
        (
            "requires",
            "\"object.status == 'published'\"",
            "A condition (CEL) over auth, object and now. The key is the object then.",
        ),
        ("last_at", "true", "Whether it keeps when it was last added to, to the second."),
        ("rate_limit", "\"600/min per key\"", RATE_LIMIT_KEY),
    ],
    names: |catalog| catalog.counters().map(|def| def.name.to_string()).collect(),
    read,
};

fn read(reader: &mut Reader<'_>, owner: &str, name: &Name, _at: usize, fields: &DeTable<'_>) -> Option<Declares> {
    let def = CounterDef {
        requires: fields.get("requires").and_then(|value| reader.condition("requires", value)),
        last_at: fields.get("last_at").and_then(|value| reader.switch("last_at", value)).unwrap_or_default(),
        rate_limit: fields.get("rate_limit").and_then(|value| reader.rate_limit(owner, PER_KEY, value)),
        ..CounterDef::new(name.clone())
    };
    Some(Box::new(move |catalog| catalog.declare_counter(def.name.clone(), def.clone())))
}
