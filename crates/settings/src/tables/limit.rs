//! `[limits.NAME]`. Others name them, wherever they stand, so they are read before all others.

use tally_core::catalog::{Algorithm, LimitDef};
use tally_core::id::Name;
use toml::de::DeTable;

use super::{Declares, Table};
use crate::declared::Reader;

const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("sliding_log", Algorithm::SlidingLog),
    ("sliding_window", Algorithm::SlidingWindow),
    ("token_bucket", Algorithm::TokenBucket),
];

/// The table and its keys.
pub(crate) const TABLE: Table = Table {
    name: "limits",
    noun: "a limit",
    doc: "Limits of your own: may this happen now? Any write may have to pass one first.",
    example: "posting",
    keys: &[
        ("rate", "\"100/min\"", "How much in how long: 100/min, 5/10s, 1000/day."),
        (
            "algorithm",
            "\"token_bucket\"",
            "\"sliding_log\" is exact and remembers every use (up to 1000), \"sliding_window\" remembers two numbers,\n\"token_bucket\" lets a burst through and then an even flow. Default: \"sliding_log\", unless the amount\nis too large for it.",
        ),
    ],
    names: |catalog| catalog.limits().map(|def| def.name.clone()).collect(),
    read,
};

fn read(reader: &mut Reader<'_>, _owner: &str, name: &Name, at: usize, fields: &DeTable<'_>) -> Option<Declares> {
    let (def, name) = (limit(reader, at, name.as_str(), fields)?, name.clone());
    Some(Box::new(move |catalog| catalog.declare_limit(name.clone(), def.clone())))
}

/// What a limit allows.
pub(crate) fn limit(reader: &mut Reader<'_>, at: usize, name: &str, fields: &DeTable<'_>) -> Option<LimitDef> {
    const HINT: &str = "write an amount and a time, such as rate = \"100/min\"";
    let algorithm = fields.get("algorithm").map(|value| reader.choice("algorithm", value, "algorithm", ALGORITHMS));
    let Some(value) = fields.get("rate") else {
        reader.problem(at, format!("`limits.{name}`: `rate` is missing"), HINT);
        return None;
    };
    let rate = reader.text("rate", value, HINT)?;
    match LimitDef::parse(name, rate, algorithm.flatten()) {
        Ok(limit) => algorithm.is_none_or(|known| known.is_some()).then_some(limit),
        Err(error) => {
            reader.wrong_rate("rate", value.span().start, &error, HINT);
            None
        }
    }
}
