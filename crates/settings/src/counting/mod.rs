//! `[counters.NAME]`, `[uniques.NAME]`, `[attendance.NAME]`, `[boards.NAME]`, `[limits.NAME]`: what is counted.

mod tables;

use std::sync::Arc;

use jiff::tz::TimeZone;
use tally_core::catalog::{Algorithm, BoardDef, Catalog, CounterDef, LimitDef, Per, SheetDef, Ties, UniqueDef};
use tally_core::id::Name;
use tally_core::schedule::Schedule;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::declared::{Limits, Reader, Whose, Written};
use super::file::value_text;
use super::problem::{Problem, Source, did_you_mean};
use super::schema::setting;

pub(crate) use tables::{TABLES, Table};

/// One thing of the file that is counted.
#[derive(Debug, Clone)]
pub struct Counted {
    /// The table that it stands in.
    pub table: &'static str,
    /// Its name.
    pub name: Name,
    /// What it means.
    pub definition: Definition,
    /// Its keys as written, with their places; for `config show`.
    pub written: Written,
}

/// What is counted.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Definition {
    Counter(CounterDef),
    Unique(UniqueDef),
    Sheet(SheetDef),
    Board(BoardDef),
    Limit(LimitDef),
}

impl Counted {
    /// Declares it.
    pub fn declare(&self, counting: &mut Catalog) {
        let name = self.name.clone();
        match self.definition.clone() {
            Definition::Counter(def) => counting.declare_counter(name, def),
            Definition::Unique(def) => counting.declare_unique(name, def),
            Definition::Sheet(def) => counting.declare_sheet(name, def),
            Definition::Board(def) => counting.declare_board(name, def),
            Definition::Limit(def) => counting.declare_limit(name, def),
        }
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
        counted.extend(reader.counted(table, key.span().start, key.get_ref(), value));
    }
    (counted, reader.problems)
}

/// Reads the limits among the server's own: those that are tables.
pub(crate) fn read_limits(source: &Source<'_>, document: &DeTable<'_>) -> (Limits, Vec<Counted>, Vec<Problem>) {
    let (mut limits, mut counted) = (Limits::new(), Vec::new());
    let none = Limits::new();
    let mut reader = Reader { source, limits: &none, problems: Vec::new() };
    let Some(table) = TABLES.iter().find(|table| table.name == "limits") else { return Default::default() };
    let entries = document.get("limits").and_then(|value| value.get_ref().as_table());
    for (key, value) in entries.into_iter().flatten().filter(|(_, value)| value.get_ref().is_table()) {
        let name: &str = key.get_ref();
        if setting(&format!("limits.{name}")).is_some() {
            let what = format!("`{name}` is a setting of the server, so no limit can be called that");
            reader.problem(key.span().start, what, format!("give [limits.{name}] another name"));
            continue;
        }
        let read = reader.counted(table, key.span().start, name, value);
        let limit = match read.as_ref().map(|read| &read.definition) {
            Some(Definition::Limit(limit)) => Some(Arc::new(limit.clone())),
            _ => None,
        };
        limits.insert(name.to_owned(), limit);
        counted.extend(read);
    }
    (limits, counted, reader.problems)
}

const PER_KEY: Whose = &[("key", Per::Object)];
const PER_SUBJECT: Whose = &[("subject", Per::Subject)];
const PER_MEMBER: Whose = &[("member", Per::Subject)];
const TIES: &[(&str, Ties)] =
    &[("first_to_reach", Ties::FirstToReach), ("shared", Ties::Shared), ("dense", Ties::Dense)];
const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("sliding_log", Algorithm::SlidingLog),
    ("sliding_window", Algorithm::SlidingWindow),
    ("token_bucket", Algorithm::TokenBucket),
];

impl Reader<'_> {
    fn counted(
        &mut self,
        table: &'static Table,
        at: usize,
        name: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Counted> {
        let fields = self.table(value, name, &format!("write [{}.NAME] with its keys below", table.name));
        let name = self.name(at, name, table.noun)?;
        let fields = fields?;
        let mut written = Vec::new();
        for (key, value) in fields {
            let key_name: &str = key.get_ref();
            written.push((key_name.to_owned(), value_text(value.get_ref()), self.source.origin(key.span().start)));
            if !table.keys.iter().any(|(known, ..)| *known == key_name) {
                let names = || table.keys.iter().map(|(known, ..)| *known);
                let hint = did_you_mean(key_name, names())
                    .unwrap_or_else(|| format!("{} has {}", table.noun, names().collect::<Vec<_>>().join(", ")));
                self.problem(key.span().start, format!("unknown key `{key_name}`"), hint);
            }
        }
        let owner = format!("{}.{name}", table.name);
        let definition = match table.name {
            "counters" => Definition::Counter(self.counter(&owner, name.clone(), fields)),
            "uniques" => {
                let rate_limit = fields.get("rate_limit").and_then(|value| self.rate_limit(&owner, PER_KEY, value));
                Definition::Unique(UniqueDef { rate_limit, ..UniqueDef::new(name.clone()) })
            }
            "attendance" => Definition::Sheet(self.sheet(&owner, name.clone(), fields)),
            "boards" => Definition::Board(self.board(&owner, name.clone(), fields)),
            _ => Definition::Limit(self.limit(at, name.as_str(), fields)?),
        };
        Some(Counted { table: table.name, name, definition, written })
    }

    fn counter(&mut self, owner: &str, name: Name, fields: &DeTable<'_>) -> CounterDef {
        CounterDef {
            requires: fields.get("requires").and_then(|value| self.condition("requires", value)),
            last_at: fields.get("last_at").and_then(|value| self.switch("last_at", value)).unwrap_or_default(),
            rate_limit: fields.get("rate_limit").and_then(|value| self.rate_limit(owner, PER_KEY, value)),
            ..CounterDef::new(name)
        }
    }

    fn sheet(&mut self, owner: &str, name: Name, fields: &DeTable<'_>) -> SheetDef {
        let zone = fields.get("time_zone").and_then(|value| self.time_zone(value));
        SheetDef {
            time_zone: zone.unwrap_or(TimeZone::UTC),
            rate_limit: fields.get("rate_limit").and_then(|value| self.rate_limit(owner, PER_SUBJECT, value)),
            ..SheetDef::new(name)
        }
    }

    fn board(&mut self, owner: &str, name: Name, fields: &DeTable<'_>) -> BoardDef {
        let ties = fields.get("ties").and_then(|value| self.choice("ties", value, "policy", TIES));
        BoardDef {
            ties: ties.unwrap_or_default(),
            season: fields.get("season").and_then(|value| self.season(value)),
            best_of: fields.get("best_of").and_then(|value| self.switch("best_of", value)).unwrap_or_default(),
            rate_limit: fields.get("rate_limit").and_then(|value| self.rate_limit(owner, PER_MEMBER, value)),
            ..BoardDef::new(name)
        }
    }

    fn limit(&mut self, at: usize, name: &str, fields: &DeTable<'_>) -> Option<LimitDef> {
        const HINT: &str = "write an amount and a time, such as rate = \"100/min\"";
        let algorithm = fields.get("algorithm").map(|value| self.choice("algorithm", value, "algorithm", ALGORITHMS));
        let Some(value) = fields.get("rate") else {
            self.problem(at, format!("`limits.{name}`: `rate` is missing"), HINT);
            return None;
        };
        let rate = self.text("rate", value, HINT)?;
        match LimitDef::parse(name, rate, algorithm.flatten()) {
            Ok(limit) => algorithm.is_none_or(|known| known.is_some()).then_some(limit),
            Err(error) => {
                self.wrong_rate("rate", value.span().start, &error, HINT);
                None
            }
        }
    }

    fn time_zone(&mut self, value: &Spanned<DeValue<'_>>) -> Option<TimeZone> {
        const HINT: &str = "write an IANA name such as \"Asia/Seoul\", or \"UTC\"";
        let text = self.text("time_zone", value, HINT)?;
        let zone = TimeZone::get(text).ok();
        if zone.is_none() {
            let known: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
            let hint = did_you_mean(text, known.iter().map(String::as_str)).unwrap_or_else(|| HINT.into());
            self.problem(value.span().start, format!("`time_zone`: there is no time zone `{text}`"), hint);
        }
        zone
    }

    fn season(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Schedule> {
        const HINT: &str = "write minute, hour, day, month and weekday, such as \"0 0 * * MON\" for every Monday; \
             a time zone may follow: \"0 0 1 * * Asia/Seoul\"";
        let text = self.text("season", value, HINT)?;
        // What the parser says is a drawing of several lines.
        let schedule = Schedule::new(text).ok();
        if schedule.is_none() {
            self.problem(value.span().start, format!("`season`: `{text}` is not when a season can begin"), HINT);
        }
        schedule
    }
}
