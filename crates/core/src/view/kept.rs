//! Rows as what they are: a key says which kind of row it has, so another one there is a defect. And rows that are only glanced at.

use super::{State, Stop, View};
use crate::error::Refusal;
use crate::rows::{Key, Row};

impl View {
    /// Reads a row without standing on it: what is decided holds whatever becomes of the row meanwhile. For what is only shown, and
    /// for hints.
    pub fn peek(&mut self, key: &Key) -> Result<Option<Row>, Stop> {
        if let Some(slot) = self.rows.get(key).filter(|slot| slot.state == State::Loaded) {
            return Ok(slot.now.clone());
        }
        if self.miss_row(key) { Ok(None) } else { Err(Stop::Miss) }
    }

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
