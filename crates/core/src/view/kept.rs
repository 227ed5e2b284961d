//! Rows as what they are: a key says which kind of row it has, so another one there is a defect.

use super::{Stop, View};
use crate::error::Refusal;
use crate::rows::{Key, Row};

impl View {
    /// Reads a row of a kind that its key says, at no cost; see [`View::row_uncounted`].
    pub fn kept<T>(&mut self, key: &Key, as_it: impl FnOnce(Row) -> Option<T>) -> Result<Option<T>, Stop> {
        let row = self.row_uncounted(key)?;
        kept(row, as_it)
    }

    /// The same, counted; see [`View::row`].
    pub fn kept_counted<T>(&mut self, key: &Key, as_it: impl FnOnce(Row) -> Option<T>) -> Result<Option<T>, Stop> {
        let row = self.row(key)?;
        kept(row, as_it)
    }
}

pub(super) fn kept<T>(row: Option<Row>, as_it: impl FnOnce(Row) -> Option<T>) -> Result<Option<T>, Stop> {
    let Some(row) = row else { return Ok(None) };
    let kind = row.kind();
    match as_it(row) {
        Some(it) => Ok(Some(it)),
        None => Err(Refusal::Broken(format!("a key holds a row of another kind: {kind:?}")).into()),
    }
}
