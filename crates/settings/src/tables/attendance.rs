//! `[attendance.NAME]`.

use jiff::tz::TimeZone;
use tally_core::catalog::{Per, SheetDef};
use tally_core::id::Name;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Declares, Table};
use crate::declared::{Reader, Whose};
use crate::problem::did_you_mean;

const PER_SUBJECT: Whose = &[("subject", Per::Subject)];

/// The table and its keys.
pub(crate) const TABLE: Table = Table {
    name: "attendance",
    noun: "an attendance sheet",
    doc: "Attendance: who was there on which day? Without any here, `daily` exists.",
    example: "daily",
    keys: &[
        ("time_zone", "\"Asia/Seoul\"", "Where its days end. Default: UTC."),
        ("rate_limit", "\"10/min per subject\"", "A limit to pass first, \"per subject\" (the default) or \"in all\"."),
    ],
    names: |catalog| catalog.sheets().map(|def| def.name.to_string()).collect(),
    read,
};

fn read(reader: &mut Reader<'_>, owner: &str, name: &Name, _at: usize, fields: &DeTable<'_>) -> Option<Declares> {
    let zone = fields.get("time_zone").and_then(|value| time_zone(reader, value));
    let def = SheetDef {
        time_zone: zone.unwrap_or(TimeZone::UTC),
        rate_limit: fields.get("rate_limit").and_then(|value| reader.rate_limit(owner, PER_SUBJECT, value)),
        ..SheetDef::new(name.clone())
    };
    Some(Box::new(move |catalog| catalog.declare_sheet(def.name.clone(), def.clone())))
}

fn time_zone(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<TimeZone> {
    const HINT: &str = "write an IANA name such as \"Asia/Seoul\", or \"UTC\"";
    let text = reader.text("time_zone", value, HINT)?;
    let zone = TimeZone::get(text).ok();
    if zone.is_none() {
        let known: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
        let hint = did_you_mean(text, known.iter().map(String::as_str)).unwrap_or_else(|| HINT.into());
        reader.problem(value.span().start, format!("`time_zone`: there is no time zone `{text}`"), hint);
    }
    zone
}
