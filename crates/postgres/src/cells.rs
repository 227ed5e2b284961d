//! The tables of everything but edges and totals: each described once, read and written alike.
//!
//! A row travels as texts, one for each column; SQL turns them into the column's own type and back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tally_core::rows::{ApiKey, Job, JobId, Key, Object, Replay, ReplayKey, Role, Row, Subject};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{ObjectId, SubjectId};
use tally_engine::StoreError;

use crate::error::unreadable;

/// A row's columns.
pub(crate) type Cells = Vec<Option<String>>;

/// What a column holds.
#[derive(Clone, Copy)]
enum Cell {
    Text,
    Json,
    /// A time, to the millisecond.
    Time,
    Int,
}

/// A table, its key first.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    columns: &'static [(&'static str, Cell)],
    keys: usize,
    /// Whether decisions look at its rows without changing them, so that its absences need a guard.
    pub(crate) fenced: bool,
}

use Cell::{Int, Json, Text, Time};

/// Every table that this module knows.
pub(crate) static TABLES: [Table; 5] = [
    Table {
        name: "object",
        columns: &[
            ("object", Text),
            ("status", Text),
            ("attributes", Json),
            ("created_at", Time),
            ("updated_at", Time),
        ],
        keys: 1,
        fenced: true,
    },
    Table {
        name: "subject",
        columns: &[("subject", Text), ("suspended_at", Time), ("job", Text)],
        keys: 1,
        fenced: true,
    },
    Table {
        name: "replay",
        columns: &[("caller", Text), ("key", Text), ("fields", Json), ("answer", Text), ("expires_at", Time)],
        keys: 2,
        // Looked up and written in one decision: the key itself is guard enough.
        fenced: false,
    },
    Table {
        name: "job",
        columns: &[
            ("id", Text),
            ("work", Json),
            ("before_us", Int),
            ("edges", Int),
            ("created_at", Time),
            ("finished_at", Time),
        ],
        keys: 1,
        fenced: true,
    },
    Table {
        name: "api_key",
        columns: &[
            ("id", Text),
            ("hash", Text),
            ("role", Text),
            ("name", Text),
            ("created_at", Time),
            ("revoked_at", Time),
        ],
        keys: 1,
        fenced: true,
    },
];

/// Which table a key is in, by its place in [`TABLES`]; edges have a table of their own kind.
pub(crate) fn table_of(key: &Key) -> Option<usize> {
    match key {
        Key::Edge(_) => None,
        Key::Object(_) => Some(0),
        Key::Subject(_) => Some(1),
        Key::Replay(_) => Some(2),
        Key::Job(_) => Some(3),
        Key::ApiKey(_) => Some(4),
        _ => None,
    }
}

impl Cell {
    /// SQL that turns a text into the column's type.
    fn typed(self, text: &str) -> String {
        match self {
            Text => text.to_owned(),
            Json => format!("{text}::json"),
            Time => format!("timestamptz 'epoch' + {text}::int8 * interval '1 millisecond'"),
            Int => format!("{text}::int8"),
        }
    }

    /// SQL that turns a column into the text.
    fn to_text(self, column: &str) -> String {
        match self {
            Text => column.to_owned(),
            Json | Int => format!("{column}::text"),
            Time => format!("(extract(epoch from {column}) * 1000)::int8::text"),
        }
    }
}

impl Table {
    /// How many columns make the key.
    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    /// The key's columns.
    pub(crate) fn key_names(&self) -> Vec<String> {
        self.columns[..self.keys].iter().map(|(name, _)| format!("t.{name}")).collect()
    }

    /// How many columns there are.
    pub(crate) fn width(&self) -> usize {
        self.columns.len()
    }

    /// The parameters from `$first` on, one text array for each of the first columns, as rows `w`.
    pub(crate) fn rows(&self, columns: usize, first: usize) -> String {
        let arrays: Vec<String> = (first..first + columns).map(|n| format!("${n}::text[]")).collect();
        let names: Vec<&str> = self.columns[..columns].iter().map(|(name, _)| *name).collect();
        format!("unnest({}) WITH ORDINALITY AS w({}, i)", arrays.join(", "), names.join(", "))
    }

    /// `t` and `w` are the same row.
    pub(crate) fn same_key(&self) -> String {
        let pairs: Vec<String> =
            self.columns[..self.keys].iter().map(|(name, _)| format!("t.{name} = w.{name}")).collect();
        pairs.join(" AND ")
    }

    fn same_cells(&self) -> String {
        let pairs = self.columns[self.keys..].iter();
        let pairs: Vec<String> = pairs
            .map(|(name, cell)| format!("{} IS NOT DISTINCT FROM w.{name}", cell.to_text(&format!("t.{name}"))))
            .collect();
        pairs.join(" AND ")
    }

    /// A row of `t` as one text: a JSON list of its cells.
    pub(crate) fn shown(&self) -> String {
        let cells: Vec<String> = self.columns.iter().map(|(name, cell)| cell.to_text(&format!("t.{name}"))).collect();
        format!("json_build_array({})::text", cells.join(", "))
    }

    /// SQL that puts new rows.
    pub(crate) fn insert(&self) -> String {
        let values: Vec<String> = self.columns.iter().map(|(name, cell)| cell.typed(&format!("w.{name}"))).collect();
        format!("INSERT INTO {} SELECT {} FROM {}", self.name, values.join(", "), self.rows(self.width(), 1))
    }

    /// SQL that deletes rows which must be as they were.
    pub(crate) fn delete(&self) -> String {
        format!(
            "WITH gone AS (DELETE FROM {} t USING {} WHERE {} AND {} RETURNING 1)
             SELECT expect((SELECT count(*) FROM gone) = cardinality($1))",
            self.name,
            self.rows(self.width(), 1),
            self.same_key(),
            self.same_cells()
        )
    }

    /// SQL that checks that rows are as they were, and keeps them so until the commit.
    pub(crate) fn hold(&self) -> String {
        format!(
            "SELECT expect((SELECT count(*) FROM (SELECT 1 FROM {} JOIN {} t ON {} WHERE {} FOR SHARE OF t) held)
                = cardinality($1))",
            self.rows(self.width(), 1),
            self.name,
            self.same_key(),
            self.same_cells()
        )
    }

    /// SQL that checks that rows are still absent.
    pub(crate) fn absent(&self) -> String {
        let rows = self.rows(self.keys, 1);
        format!("SELECT expect(NOT EXISTS (SELECT FROM {rows} JOIN {} t ON {}))", self.name, self.same_key())
    }
}

fn text(value: &impl Serialize) -> Result<Option<String>, StoreError> {
    serde_json::to_string(value).map(Some).map_err(|error| StoreError::Broken(error.to_string()))
}

fn time(at: Timestamp) -> Option<String> {
    Some(at.0.to_string())
}

fn int(value: u64) -> Result<Option<String>, StoreError> {
    let value = i64::try_from(value).map_err(|_| StoreError::Broken(format!("{value} is too large to be stored")))?;
    Ok(Some(value.to_string()))
}

/// The key's columns.
pub(crate) fn key_cells(key: &Key) -> Cells {
    match key {
        Key::Object(object) => vec![Some(object.to_string())],
        Key::Subject(subject) => vec![Some(subject.to_string())],
        Key::Replay(replay) => vec![Some(replay.caller.clone()), Some(replay.key.clone())],
        Key::Job(id) => vec![Some(id.text())],
        Key::ApiKey(id) => vec![Some(id.clone())],
        _ => Vec::new(),
    }
}

/// All of a row's columns.
pub(crate) fn write(key: &Key, row: &Row) -> Result<Cells, StoreError> {
    let mut cells = key_cells(key);
    match row {
        Row::Object(object) => {
            cells.extend([object.status.clone(), text(&*object.attributes)?]);
            cells.extend([time(object.created_at), time(object.updated_at)]);
        }
        Row::Subject(subject) => cells.extend([time(subject.suspended_at), Some(subject.job.text())]),
        Row::Replay(replay) => {
            cells.extend([text(&replay.fields)?, Some(replay.answer.clone()), time(replay.expires_at)]);
        }
        Row::Job(job) => {
            cells.extend([text(&job.work)?, int(job.before.0)?, int(job.edges)?, time(job.created_at)]);
            cells.push(job.finished_at.and_then(time));
        }
        Row::ApiKey(key) => {
            let role = serde_json::to_value(key.role).ok().and_then(|role| role.as_str().map(str::to_owned));
            cells.extend([Some(key.hash.clone()), role, Some(key.name.clone()), time(key.created_at)]);
            cells.push(key.revoked_at.and_then(time));
        }
        _ => return Err(StoreError::Broken("this is not a row of these tables".into())),
    }
    Ok(cells)
}

/// A row as [`Table::shown`] gives it.
pub(crate) fn read(table: usize, shown: &str) -> Result<(Key, Row), StoreError> {
    let bad = || unreadable(&format!("a row of the table {}", TABLES[table].name));
    let cells: Cells = serde_json::from_str(shown).map_err(|_| bad())?;
    let mut cells = Reader { cells: cells.into_iter() };
    let (key, row) = match table {
        0 => {
            let key = Key::Object(ObjectId::new(&cells.text()?).map_err(|_| bad())?);
            let (status, attributes) = (cells.cell()?, cells.json()?);
            let (created_at, updated_at) = (cells.time()?, cells.time()?);
            (key, Row::Object(Object { status, attributes, created_at, updated_at }))
        }
        1 => {
            let key = Key::Subject(SubjectId::new(&cells.text()?).map_err(|_| bad())?);
            let suspended_at = cells.time()?;
            (key, Row::Subject(Subject { suspended_at, job: cells.job()? }))
        }
        2 => {
            let key = Key::Replay(ReplayKey { caller: cells.text()?, key: cells.text()? });
            let (fields, answer) = (cells.json()?, cells.text()?);
            (key, Row::Replay(Replay { fields, answer, expires_at: cells.time()? }))
        }
        3 => {
            let key = Key::Job(cells.job()?);
            let (work, before, edges) = (cells.json()?, Stamp(cells.number()?), cells.number()?);
            let created_at = cells.time()?;
            (key, Row::Job(Job { work, before, edges, created_at, finished_at: cells.time_or_none()? }))
        }
        _ => {
            let key = Key::ApiKey(cells.text()?);
            let (hash, role, name) = (cells.text()?, cells.text()?, cells.text()?);
            let role: Role = serde_json::from_value(role.into()).map_err(|_| bad())?;
            let created_at = cells.time()?;
            (key, Row::ApiKey(ApiKey { hash, role, name, created_at, revoked_at: cells.time_or_none()? }))
        }
    };
    Ok((key, row))
}

/// Takes one cell after another.
struct Reader {
    cells: std::vec::IntoIter<Option<String>>,
}

impl Reader {
    fn cell(&mut self) -> Result<Option<String>, StoreError> {
        self.cells.next().ok_or_else(|| unreadable("a row with too few columns"))
    }

    fn text(&mut self) -> Result<String, StoreError> {
        self.cell()?.ok_or_else(|| unreadable("a null"))
    }

    fn json<T: DeserializeOwned>(&mut self) -> Result<T, StoreError> {
        let text = self.text()?;
        serde_json::from_str(&text).map_err(|_| unreadable(&text))
    }

    fn number(&mut self) -> Result<u64, StoreError> {
        let text = self.text()?;
        text.parse().map_err(|_| unreadable(&text))
    }

    fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.number().map(Timestamp)
    }

    fn time_or_none(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let cell = self.cell()?;
        cell.map(|text| text.parse().map(Timestamp).map_err(|_| unreadable(&text))).transpose()
    }

    fn job(&mut self) -> Result<JobId, StoreError> {
        let text = self.text()?;
        JobId::parse(&text).ok_or_else(|| unreadable(&text))
    }
}

/// Rows as columns, which is how they travel: one text array for each.
pub(crate) fn columns(rows: &[Cells], width: usize) -> Vec<Vec<Option<&str>>> {
    (0..width).map(|column| rows.iter().map(|row| row[column].as_deref()).collect()).collect()
}
