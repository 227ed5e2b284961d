//! Tables of everything but edges and totals, as they are declared in `tally_core::rows`: all read and written alike.
//!
//! A row travels as texts, one for each column; SQL turns them into the column's own type and back.

use tally_core::rows::Type::{Bytes, Day, Flag, Json, Number, Numbers, Signed, Text, Time, Times};
use tally_core::rows::{Column, Declared, Due, Home, RowKind, Type};

/// SQL for the partition of a new row.
pub(crate) const PARTITION_VALUE: &str = "w.due_partition::int2";

/// A row's columns.
pub(crate) type Cells = Vec<Option<String>>;

/// A table, its key first.
#[derive(Clone, Copy)]
pub(crate) struct Table(&'static Declared);

/// The table of a kind of rows. Edges have one of their own form, and counters are totals.
pub(crate) fn table_of(kind: RowKind) -> Option<Table> {
    (!matches!(kind, RowKind::Edge | RowKind::Counter)).then(|| Table(kind.declared()))
}

/// Every table, in the order in which their rows are locked.
pub(crate) fn tables() -> impl Iterator<Item = (RowKind, Table)> {
    RowKind::ALL.into_iter().filter_map(|kind| Some((kind, table_of(kind)?)))
}

/// SQL that turns a text into the column's type.
pub(crate) fn typed(of: Type, text: &str) -> String {
    match of {
        Text => text.to_owned(),
        Json => format!("{text}::json"),
        Time => format!("(timestamptz 'epoch' + {text}::int8 * interval '1 millisecond')"),
        Times => format!(
            "ARRAY(SELECT timestamptz 'epoch' + ms * interval '1 millisecond' FROM unnest({text}::int8[]) AS ms)"
        ),
        Number | Signed => format!("{text}::int8"),
        Numbers => format!("{text}::int8[]"),
        Flag => format!("{text}::bool"),
        Day => format!("(date '1970-01-01' + {text}::int4)"),
        Bytes => format!("decode({text}, 'hex')"),
    }
}

/// SQL that turns a column into the text.
pub(crate) fn to_text(of: Type, column: &str) -> String {
    match of {
        Text => column.to_owned(),
        Json | Number | Signed | Numbers | Flag => format!("{column}::text"),
        Time => format!("(extract(epoch from {column}) * 1000)::int8::text"),
        Times => format!("ARRAY(SELECT (extract(epoch from at) * 1000)::int8 FROM unnest({column}) AS at)::text"),
        Day => format!("({column} - date '1970-01-01')::text"),
        Bytes => format!("encode({column}, 'hex')"),
    }
}

impl Table {
    pub(crate) fn name(self) -> &'static str {
        self.0.name
    }

    pub(crate) fn declared(self) -> &'static Declared {
        self.0
    }

    pub(crate) fn due(self) -> Option<Due> {
        self.0.due
    }

    /// Whether it has a column for the partition that a row is due in. It follows from the key, so that nobody reads it but to
    /// find rows.
    pub(crate) fn has_partitions(self) -> bool {
        self.0.due.is_some() && self.0.home != Home::Store
    }

    /// How many columns are written of a new row.
    pub(crate) fn width_of_new(self) -> usize {
        self.width() + usize::from(self.has_partitions())
    }

    pub(crate) fn columns(self) -> impl Iterator<Item = &'static Column> {
        self.0.key.iter().chain(self.0.columns)
    }

    /// How many columns make the key.
    pub(crate) fn keys(self) -> usize {
        self.0.key.len()
    }

    /// The key's columns.
    pub(crate) fn key_names(self) -> Vec<String> {
        self.0.key.iter().map(|(name, _)| format!("t.{name}")).collect()
    }

    /// SQL for the key that the parameters from `$first` on hold, each a text.
    pub(crate) fn key_values(self, first: usize) -> Vec<String> {
        self.0.key.iter().zip(first..).map(|((_, of), n)| typed(*of, &format!("${n}::text"))).collect()
    }

    /// How many columns there are.
    pub(crate) fn width(self) -> usize {
        self.0.key.len() + self.0.columns.len()
    }

    /// The parameters from `$first` on, one text array for each of the first columns, as rows `w`.
    pub(crate) fn rows(self, columns: usize, first: usize) -> String {
        arrays(self.columns().take(columns).map(|(name, _)| (*name).to_owned()).collect(), first)
    }

    /// `t` and `w` are the same row.
    pub(crate) fn same_key(self) -> String {
        let pairs: Vec<String> = self.0.key.iter().map(same).collect();
        pairs.join(" AND ")
    }

    fn same_cells(self) -> String {
        let same =
            |(name, of): &Column| format!("{} IS NOT DISTINCT FROM w.{name}", to_text(*of, &format!("t.{name}")));
        let pairs: Vec<String> = self.0.columns.iter().map(same).collect();
        pairs.join(" AND ")
    }

    /// A row of `t` as one text: a JSON list of its cells.
    pub(crate) fn shown(self) -> String {
        let cells: Vec<String> = self.columns().map(|(name, of)| to_text(*of, &format!("t.{name}"))).collect();
        format!("json_build_array({})::text", cells.join(", "))
    }

    /// SQL for a column of `w`, where numbers are read in this way.
    pub(crate) fn typed_with(self, (name, of): &Column, number: fn(&str) -> String) -> String {
        let text = format!("w.{name}");
        if *of == Number { number(&text) } else { typed(*of, &text) }
    }

    /// SQL that puts new rows, the partition last.
    pub(crate) fn insert(self) -> String {
        let mut values: Vec<String> = self.columns().map(|(name, of)| typed(*of, &format!("w.{name}"))).collect();
        if self.has_partitions() {
            values.push(PARTITION_VALUE.to_owned());
        }
        let (into, values) = (self.names_of_new().join(", "), values.join(", "));
        format!("INSERT INTO {} ({into}) SELECT {values} FROM {}", self.name(), self.new_rows())
    }

    /// The columns of a new row, the partition last.
    pub(crate) fn names_of_new(self) -> Vec<String> {
        let names = self.columns().map(|(name, _)| (*name).to_owned());
        names.chain(self.has_partitions().then(|| "due_partition".to_owned())).collect()
    }

    /// New rows as they travel.
    pub(crate) fn new_rows(self) -> String {
        arrays(self.names_of_new(), 1)
    }

    /// SQL that changes rows which must be as they were: the key, the other columns before, the same after.
    pub(crate) fn change(self) -> String {
        let names = self.columns().map(|(name, _)| (*name).to_owned());
        let names = names.chain(self.0.columns.iter().map(|(name, _)| format!("new_{name}"))).collect();
        let set = |(name, of): &Column| format!("{name} = {}", typed(*of, &format!("w.new_{name}")));
        let set: Vec<String> = self.0.columns.iter().map(set).collect();
        format!(
            "WITH put AS (UPDATE {} t SET {} FROM {} WHERE {} AND {} RETURNING 1)
             SELECT expect((SELECT count(*) FROM put) = cardinality($1))",
            self.name(),
            set.join(", "),
            arrays(names, 1),
            self.same_key(),
            self.same_cells()
        )
    }

    /// SQL that locks rows, whatever they hold, in the order of the parameters.
    pub(crate) fn lock(self) -> String {
        let rows = self.rows(self.keys(), 1);
        format!(
            "SELECT count(*) FROM (SELECT 1 FROM {rows} JOIN {} t ON {} FOR UPDATE OF t) locked",
            self.name(),
            self.same_key()
        )
    }

    /// SQL that deletes rows which must be as they were.
    pub(crate) fn delete(self) -> String {
        format!(
            "WITH gone AS (DELETE FROM {} t USING {} WHERE {} AND {} RETURNING 1)
             SELECT expect((SELECT count(*) FROM gone) = cardinality($1))",
            self.name(),
            self.rows(self.width(), 1),
            self.same_key(),
            self.same_cells()
        )
    }

    /// SQL that checks that rows are as they were, and keeps them so until the commit.
    pub(crate) fn hold(self) -> String {
        format!(
            "SELECT expect((SELECT count(*) FROM (SELECT 1 FROM {} JOIN {} t ON {} WHERE {} FOR SHARE OF t) held)
                = cardinality($1))",
            self.rows(self.width(), 1),
            self.name(),
            self.same_key(),
            self.same_cells()
        )
    }

    /// SQL that checks that rows are still absent.
    pub(crate) fn absent(self) -> String {
        let rows = self.rows(self.keys(), 1);
        format!("SELECT expect(NOT EXISTS (SELECT FROM {rows} JOIN {} t ON {}))", self.name(), self.same_key())
    }
}

/// The parameters from `$first` on, one text array for each name, as rows `w`.
fn arrays(names: Vec<String>, first: usize) -> String {
    let arrays: Vec<String> = (first..first + names.len()).map(|n| format!("${n}::text[]")).collect();
    format!("unnest({}) WITH ORDINALITY AS w({}, i)", arrays.join(", "), names.join(", "))
}

fn same((name, of): &Column) -> String {
    format!("t.{name} = {}", typed(*of, &format!("w.{name}")))
}

/// Rows as columns, which is how they travel: one text array for each.
pub(crate) fn columns(rows: &[Cells], width: usize) -> Vec<Vec<Option<&str>>> {
    (0..width).map(|column| rows.iter().map(|row| row[column].as_deref()).collect()).collect()
}
