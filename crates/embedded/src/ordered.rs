//! Orders against the scores in them: the table of places, and what of it is in memory.
//!
//! Both tables have their boards in one order, so each board is added up from both in one pass.

use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::Bound;

use tally_core::rows::{BoardKey, Key, RowKind, ScoreKey};
use tally_engine::{Finding, StoreError};

use crate::audit::{Audit, Table};
use crate::store::Batch;
use crate::{Embedded, codec, keys, unavailable};

/// Rows that are looked at together while nobody commits.
const ROWS_AT_ONCE: usize = 1_024;

/// What places add up to, in whatever order they come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PlaceSum {
    places: u64,
    sum: u64,
}

impl PlaceSum {
    pub(crate) fn put(&mut self, place: u128) {
        (self.places, self.sum) = (self.places.wrapping_add(1), self.sum.wrapping_add(mixed(place)));
    }

    pub(crate) fn take(&mut self, place: u128) {
        (self.places, self.sum) = (self.places.wrapping_sub(1), self.sum.wrapping_sub(mixed(place)));
    }
}

fn mixed(place: u128) -> u64 {
    let high = ((place >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (high ^ (high >> 29)).wrapping_add(place as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (word ^ (word >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// The entries of one board, of either table: what they add up to, names and all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct EntrySum {
    places: PlaceSum,
    entries: u64,
}

impl EntrySum {
    fn put(&mut self, entry: &[u8]) -> Option<()> {
        self.places.put(keys::split_place(entry)?.1);
        self.entries = self.entries.wrapping_add(tally_core::hash::fingerprint(&[entry]));
        Some(())
    }
}

impl Audit<'_> {
    /// Every score stands in the order of its board, and nothing else does.
    pub(crate) fn orders(&mut self, mut in_memory: HashMap<BoardKey, PlaceSum>) -> Result<(), StoreError> {
        let mut scores = self.table(RowKind::Score.declared().letter).peekable();
        let mut entries = self.table(keys::BOARD_ORDER).peekable();
        loop {
            let (one, other) = (peek_board(&mut scores)?, peek_board(&mut entries)?);
            let Some(board) = one.iter().chain(&other).min().cloned() else { break };
            let (mut said, mut counted) = (EntrySum::default(), EntrySum::default());
            while peek_board(&mut scores)?.as_ref() == Some(&board) {
                let Some((bytes, value)) = scores.next().transpose()? else { break };
                self.read(1);
                let Some(Key::Score(key)) = keys::read_row(&bytes) else { return Err(keys::unreadable(&bytes)) };
                let entry = keys::board_entry(&key, codec::read_score(&value)?);
                counted.put(&entry).ok_or_else(|| keys::unreadable(&entry))?;
            }
            while peek_board(&mut entries)?.as_ref() == Some(&board) {
                let Some((bytes, _)) = entries.next().transpose()? else { break };
                self.read(1);
                said.put(&bytes).ok_or_else(|| keys::unreadable(&bytes))?;
            }
            let key = [&[keys::BOARD_ORDER], &board[..]].concat();
            let key = keys::read_board(&key).ok_or_else(|| keys::unreadable(&key))?;
            let held = in_memory.remove(&key);
            if said != counted {
                let of = "the order of a board in the tables";
                self.out_of_order(of, key, said.places, counted.places);
            } else if let Some(held) = held.filter(|held| *held != counted.places) {
                self.out_of_order("the order of a board in memory", key, held, counted.places);
            }
        }
        for (key, held) in in_memory.into_iter().filter(|(_, held)| *held != PlaceSum::default()) {
            self.out_of_order("the order of a board in memory", key, held, PlaceSum::default());
        }
        Ok(())
    }

    fn out_of_order(&mut self, what: &str, board: BoardKey, said: PlaceSum, counted: PlaceSum) {
        let (said, counted) = (said.places, counted.places);
        let found = format!("{what} does not agree with its scores: {board:?} has {said} places and {counted} scores");
        (self.tell)(Finding::Order { found, board });
    }
}

/// A board as the bytes behind the letter of its table.
fn peek_board(rows: &mut Peekable<Table<'_>>) -> Result<Option<Vec<u8>>, StoreError> {
    match rows.peek() {
        Some(Ok((key, _))) => {
            let end = key.iter().position(|byte| *byte == 0).map(|zero| zero + 10);
            let board = end.and_then(|end| key.get(1..end)).ok_or_else(|| keys::unreadable(key))?;
            Ok(Some(board.to_vec()))
        }
        Some(Err(error)) => Err(error.clone()),
        None => Ok(None),
    }
}

impl Embedded {
    /// Makes the order of a board that of its scores, some rows at a time. False where it is already.
    pub(crate) async fn mend_order(&self, board: &BoardKey) -> Result<bool, StoreError> {
        let nobody = ScoreKey { board: board.clone(), member: tally_core::SubjectId::new("-").map_err(|_| unnamed())? };
        let first_score = keys::row(&Key::Score(nobody));
        let scores = first_score[..first_score.len() - 1].to_vec();
        let entries = self.mend_rows(&keys::board_prefix(board), wrong_entry).await?;
        let scores = self.mend_rows(&scores, missing_entry).await?;
        let _nobody_commits = self.committing();
        // Whatever was in memory is read anew.
        let in_memory = self.boards.sums(self.store.taken_back()).contains_key(board);
        self.boards.read_anew(board);
        Ok(entries || scores || in_memory)
    }

    /// Goes over the rows behind a prefix, and writes what follows from each of them.
    async fn mend_rows(&self, prefix: &[u8], mend: Mending) -> Result<bool, StoreError> {
        let (mut from, end) = (Bound::Included(prefix.to_vec()), keys::after_prefix(prefix));
        let mut mended = false;
        loop {
            self.store.ready().await.map_err(unavailable)?;
            let (position, last) = {
                let mut batch = self.committing();
                batch.clear();
                let on = self.store.moment();
                let range = (from.as_ref().map(Vec::as_slice), Bound::Excluded(&end[..]));
                let rows = self.store.scan(range, ROWS_AT_ONCE, false).map_err(unavailable)?;
                let mut wrong = false;
                for (key, value) in &rows {
                    wrong |= mend(self, key, value, &mut batch)?;
                }
                let last = rows.last().filter(|_| rows.len() == ROWS_AT_ONCE).map(|(key, _)| key.to_vec());
                mended |= wrong;
                (if wrong { Some(self.store.apply_if(&batch, on).map_err(unavailable)?) } else { None }, last)
            };
            if let Some(position) = position {
                // What it was made from was taken back meanwhile.
                let position =
                    position.ok_or_else(|| StoreError::Unavailable("rows were taken back; try again".into()))?;
                self.store.wait(position).await.map_err(unavailable)?;
            }
            match last {
                Some(last) => from = Bound::Excluded(last),
                None => return Ok(mended),
            }
        }
    }
}

type Mending = fn(&Embedded, &[u8], &[u8], &mut Batch) -> Result<bool, StoreError>;

/// An entry goes if its score is another one.
fn wrong_entry(embedded: &Embedded, bytes: &[u8], _: &[u8], batch: &mut Batch) -> Result<bool, StoreError> {
    let stands = match keys::read_board_entry(bytes) {
        Some((key, score)) => {
            let row = embedded.store.get(&keys::row(&Key::Score(key))).map_err(unavailable)?;
            row.map(|bytes| codec::read_score(&bytes)).transpose()? == Some(score)
        }
        None => false,
    };
    if !stands {
        batch.delete(bytes);
    }
    Ok(!stands)
}

/// A score that has no entry gets one.
fn missing_entry(embedded: &Embedded, bytes: &[u8], value: &[u8], batch: &mut Batch) -> Result<bool, StoreError> {
    let Some(Key::Score(key)) = keys::read_row(bytes) else { return Err(keys::unreadable(bytes)) };
    let entry = keys::board_entry(&key, codec::read_score(value)?);
    let is_missing = embedded.store.get(&entry).map_err(unavailable)?.is_none();
    if is_missing {
        batch.put(&entry, b"");
    }
    Ok(is_missing)
}

fn unnamed() -> StoreError {
    StoreError::Broken("a member may be called so".into())
}

#[cfg(test)]
#[path = "ordered_tests.rs"]
mod tests;
