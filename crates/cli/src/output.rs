//! What commands print: tables for people, JSON for programs.

use std::io::{ErrorKind, Write};
use std::marker::PhantomData;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::Failure;

/// An answer as the API writes it, kept as text so that a program gets it unaltered.
pub(super) struct Json(String);

impl Json {
    /// An answer that came as text.
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    /// An answer of the library's.
    pub(super) fn of(value: &impl Serialize) -> Result<Self, Failure> {
        let text = serde_json::to_string(value);
        text.map(Self).map_err(|error| Failure::new(format!("the answer cannot be written: {error}")))
    }

    /// The answer, understood.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_str(&self.0).map_err(|error| {
            Failure::new(format!("the answer is not what this release expects ({error}): are both of one version?"))
        })
    }

    /// Prints it for a program, or as a table for a person.
    pub(super) fn show<T: DeserializeOwned>(&self, json: bool, table: impl FnOnce(T) -> String) -> Result<(), Failure> {
        if json { say(&self.0) } else { say(&table(self.read()?)) }
    }
}

/// The answer to what was asked, to be printed.
pub(super) struct Answer<A> {
    text: Json,
    json: bool,
    answers: PhantomData<A>,
}

impl<A> Answer<A> {
    /// An answer, for a program or for a person.
    pub(super) fn new(text: Json, json: bool) -> Self {
        Self { text, json, answers: PhantomData }
    }

    /// Prints it; for a person as a table.
    pub(super) fn show(&self, table: impl FnOnce(A) -> String) -> Result<(), Failure>
    where
        A: DeserializeOwned,
    {
        self.text.show(self.json, table)
    }
}

/// Prints a text and a line end. A reader that has gone, such as `head`, has seen enough.
pub(super) fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// A table. Columns that are empty in every row are left out.
pub(super) fn table<const N: usize>(header: [&str; N], rows: Vec<[String; N]>) -> String {
    let header = header.map(str::to_owned).to_vec();
    wide_table(header, rows.into_iter().map(|row| row.to_vec()).collect())
}

/// A table whose columns are known at run time only.
pub(super) fn wide_table(header: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let used: Vec<bool> =
        (0..header.len()).map(|at| rows.is_empty() || rows.iter().any(|row| !row[at].is_empty())).collect();
    let keep = |row: Vec<String>| -> Vec<String> {
        row.into_iter().zip(&used).filter(|(_, used)| **used).map(|(cell, _)| printable(&cell)).collect()
    };
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(keep(header));
    table.add_rows(rows.into_iter().map(keep));
    table.to_string()
}

/// Text from elsewhere without control characters, which could rewrite a person's terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// A cell for something that may be absent.
pub(super) fn cell(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Yes or no.
pub(super) fn yes(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_leave_out_what_nobody_fills_and_what_would_move_the_cursor() {
        let rows = vec![["a".to_owned(), String::new()], ["\u{1b}[2J".to_owned(), String::new()]];
        let text = table(["who", "kind"], rows);
        assert!(text.contains("who") && !text.contains("kind"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
