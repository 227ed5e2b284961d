//! Tables of everything but edges and totals: each described once, read and written alike.
//!
//! A row travels as texts, one for each column; SQL turns them into the column's own type and back.

/// A row's columns.
pub(crate) type Cells = Vec<Option<String>>;

/// What a column holds.
#[derive(Clone, Copy)]
pub(crate) enum Cell {
    Text,
    Json,
    /// A time, to the millisecond.
    Time,
    Times,
    Int,
    Ints,
    Bool,
    /// A calendar date, as days since 1970.
    Day,
    /// Bytes, in hex.
    Bytes,
}

/// How a table guards rows that are not there, which nobody can lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fence {
    /// Not at all.
    None,
    /// Looked at often and changed seldom: who looks shares a fence, who changes holds it alone.
    Changed,
    /// Changed often: who makes a row shares a fence, who decided on an absence and left it holds it alone.
    Absent,
}

/// A table, its key first.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Cell)],
    pub(crate) keys: usize,
    pub(crate) fence: Fence,
}

use Cell::{Bool, Bytes, Day, Int, Ints, Json, Text, Time, Times};

impl Cell {
    /// SQL that turns a text into the column's type.
    fn typed(self, text: &str) -> String {
        match self {
            Text => text.to_owned(),
            Json => format!("{text}::json"),
            Time => format!("(timestamptz 'epoch' + {text}::int8 * interval '1 millisecond')"),
            Times => format!(
                "ARRAY(SELECT timestamptz 'epoch' + ms * interval '1 millisecond' FROM unnest({text}::int8[]) AS ms)"
            ),
            Int => format!("{text}::int8"),
            Ints => format!("{text}::int8[]"),
            Bool => format!("{text}::bool"),
            Day => format!("(date '1970-01-01' + {text}::int4)"),
            Bytes => format!("decode({text}, 'hex')"),
        }
    }

    /// SQL that turns a column into the text.
    fn to_text(self, column: &str) -> String {
        match self {
            Text => column.to_owned(),
            Json | Int | Ints | Bool => format!("{column}::text"),
            Time => format!("(extract(epoch from {column}) * 1000)::int8::text"),
            Times => format!("ARRAY(SELECT (extract(epoch from at) * 1000)::int8 FROM unnest({column}) AS at)::text"),
            Day => format!("({column} - date '1970-01-01')::text"),
            Bytes => format!("encode({column}, 'hex')"),
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

    /// SQL for the key that the parameters from `$first` on hold, each a text.
    pub(crate) fn key_values(&self, first: usize) -> Vec<String> {
        let cells = self.columns[..self.keys].iter().zip(first..);
        cells.map(|((_, cell), n)| cell.typed(&format!("${n}::text"))).collect()
    }

    /// How many columns there are.
    pub(crate) fn width(&self) -> usize {
        self.columns.len()
    }

    /// The parameters from `$first` on, one text array for each of the first columns, as rows `w`.
    pub(crate) fn rows(&self, columns: usize, first: usize) -> String {
        arrays(self.columns[..columns].iter().map(|(name, _)| (*name).to_owned()).collect(), first)
    }

    /// `t` and `w` are the same row.
    pub(crate) fn same_key(&self) -> String {
        let pairs: Vec<String> = self.columns[..self.keys].iter().map(same).collect();
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

    /// SQL that changes rows which must be as they were: the key, the other columns before, the same after.
    pub(crate) fn change(&self) -> String {
        let cells = &self.columns[self.keys..];
        let names = self.columns.iter().map(|(name, _)| (*name).to_owned());
        let names = names.chain(cells.iter().map(|(name, _)| format!("new_{name}"))).collect();
        let set: Vec<String> =
            cells.iter().map(|(name, cell)| format!("{name} = {}", cell.typed(&format!("w.new_{name}")))).collect();
        format!(
            "WITH put AS (UPDATE {} t SET {} FROM {} WHERE {} AND {} RETURNING 1)
             SELECT expect((SELECT count(*) FROM put) = cardinality($1))",
            self.name,
            set.join(", "),
            arrays(names, 1),
            self.same_key(),
            self.same_cells()
        )
    }

    /// SQL that locks rows, whatever they hold, in the order of the parameters.
    pub(crate) fn lock(&self) -> String {
        let rows = self.rows(self.keys, 1);
        format!(
            "SELECT count(*) FROM (SELECT 1 FROM {rows} JOIN {} t ON {} FOR UPDATE OF t) locked",
            self.name,
            self.same_key()
        )
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

/// The parameters from `$first` on, one text array for each name, as rows `w`.
fn arrays(names: Vec<String>, first: usize) -> String {
    let arrays: Vec<String> = (first..first + names.len()).map(|n| format!("${n}::text[]")).collect();
    format!("unnest({}) WITH ORDINALITY AS w({}, i)", arrays.join(", "), names.join(", "))
}

fn same((name, cell): &(&str, Cell)) -> String {
    format!("t.{name} = {}", cell.typed(&format!("w.{name}")))
}

/// Rows as columns, which is how they travel: one text array for each.
pub(crate) fn columns(rows: &[Cells], width: usize) -> Vec<Vec<Option<&str>>> {
    (0..width).map(|column| rows.iter().map(|row| row[column].as_deref()).collect()).collect()
}
