//! `[boards.NAME]`.

use tally_core::catalog::{BoardDef, Per, Ties};
use tally_core::id::Name;
use tally_core::schedule::Schedule;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Declares, Table};
use crate::declared::{Reader, Whose};

const PER_MEMBER: Whose = &[("member", Per::Subject)];
const TIES: &[(&str, Ties)] =
    &[("first_to_reach", Ties::FirstToReach), ("shared", Ties::Shared), ("dense", Ties::Dense)];

/// The table and its keys.
pub(crate) const TABLE: Table = Table {
    name: "boards",
    noun: "a board",
    doc: "Boards: who leads? Without any here, `points` exists.",
    example: "weekly",
    keys: &[
        (
            "ties",
            "\"shared\"",
            "Ranks of equal scores: \"first_to_reach\" is 1, 2, 3, 4 (the default), \"shared\" 1, 2, 2, 4, \"dense\"\n1, 2, 2, 3.",
        ),
        (
            "season",
            "\"0 0 * * MON\"",
            "When it begins anew, as a crontab; in UTC, unless a time zone stands behind it. Closed seasons are kept.",
        ),
        ("best_of", "true", "Whether a score that is set counts only where it is higher than the one before."),
        ("rate_limit", "\"10/min per member\"", "A limit to pass first, \"per member\" (the default) or \"in all\"."),
    ],
    names: |catalog| catalog.boards().map(|def| def.name.to_string()).collect(),
    read,
};

fn read(reader: &mut Reader<'_>, owner: &str, name: &Name, _at: usize, fields: &DeTable<'_>) -> Option<Declares> {
    let ties = fields.get("ties").and_then(|value| reader.choice("ties", value, "policy", TIES));
    let def = BoardDef {
        ties: ties.unwrap_or_default(),
        season: fields.get("season").and_then(|value| season(reader, value)),
        best_of: fields.get("best_of").and_then(|value| reader.switch("best_of", value)).unwrap_or_default(),
        rate_limit: fields.get("rate_limit").and_then(|value| reader.rate_limit(owner, PER_MEMBER, value)),
        ..BoardDef::new(name.clone())
    };
    Some(Box::new(move |catalog| catalog.declare_board(def.name.clone(), def.clone())))
}

fn season(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Schedule> {
    const HINT: &str = "write minute, hour, day, month and weekday, such as \"0 0 * * MON\" for every Monday; \
         a time zone may follow: \"0 0 1 * * Asia/Seoul\"";
    let text = reader.text("season", value, HINT)?;
    // What the parser says is a drawing of several lines.
    let schedule = Schedule::new(text).ok();
    if schedule.is_none() {
        reader.problem(value.span().start, format!("`season`: `{text}` is not when a season can begin"), HINT);
    }
    schedule
}
