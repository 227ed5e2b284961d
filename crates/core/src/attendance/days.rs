//! How many were there on any, or on all, of several days.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::read::{CountedDay, DaysAnswer, Matching};
use crate::day::Day;
use crate::id::Name;
use crate::read::{Halt, Sight, TRIES_MAX};
use crate::rows::{ChunkKey, Key, Row, TotalKey};
use crate::view::Wants;

/// Chunks that are loaded at once: a few megabytes at most.
const CHUNKS_AT_ONCE: usize = 2_048;

/// Chunk by chunk: those of one number hold the same subjects on every day.
pub(super) fn read(
    sheet: &Name,
    days: Vec<Day>,
    matching: Matching,
    sight: &mut Sight<'_>,
) -> Result<DaysAnswer, Halt> {
    let lists: Vec<Key> = days.iter().map(|day| Key::Day((sheet.clone(), *day))).collect();
    let totals: Vec<TotalKey> = days.iter().map(|day| TotalKey::Present { sheet: sheet.clone(), day: *day }).collect();
    let mut chunks: Vec<Vec<Key>> = Vec::new();
    for _ in 0..TRIES_MAX {
        let found = sight.load(|| {
            let rows = lists.iter().chain(chunks.iter().flatten()).cloned().collect();
            Wants { rows, totals: totals.clone(), ..Wants::default() }
        })?;
        let (listed, rest) = found.rows.split_at(lists.len());
        let now = chunks_of(sheet, &days, listed, matching);
        // What was loaded holds the lists, the totals and the chunks that are in these lists, all of one moment.
        if now == chunks {
            let mut rows = rest.iter();
            let count = chunks.iter().map(|keys| counted(rows.by_ref().take(keys.len()), matching)).sum();
            return Ok(answer(count, matching, days, &found.totals));
        }
        if now.iter().map(Vec::len).sum::<usize>() > CHUNKS_AT_ONCE {
            let count = counted_in_parts(&now, matching, sight)?;
            return Ok(answer(count, matching, days, &found.totals));
        }
        chunks = now;
    }
    Err(Halt::Moving)
}

/// So many chunks are not loaded at once, so each of these loads is of its own moment.
fn counted_in_parts(chunks: &[Vec<Key>], matching: Matching, sight: &mut Sight<'_>) -> Result<u64, Halt> {
    let widest = chunks.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let mut count = 0;
    for some in chunks.chunks((CHUNKS_AT_ONCE / widest).max(1)) {
        let found = sight.load(|| Wants::rows(some.iter().flatten().cloned().collect()))?;
        let mut rows = found.rows.iter();
        count += some.iter().map(|keys| counted(rows.by_ref().take(keys.len()), matching)).sum::<u64>();
    }
    Ok(count)
}

/// The chunks that are listed for these days, those of one number together.
fn chunks_of(sheet: &Name, days: &[Day], lists: &[Option<Row>], matching: Matching) -> Vec<Vec<Key>> {
    let mut chunks: BTreeMap<u64, Vec<Key>> = BTreeMap::new();
    for (day, list) in days.iter().zip(lists) {
        for chunk in list.as_ref().and_then(Row::day).into_iter().flatten() {
            let key = Key::Chunk(ChunkKey { sheet: sheet.clone(), day: *day, chunk: *chunk });
            chunks.entry(*chunk).or_default().push(key);
        }
    }
    let mut chunks: Vec<Vec<Key>> = chunks.into_values().collect();
    if matching == Matching::All {
        chunks.retain(|keys| keys.len() == days.len());
    }
    chunks
}

/// How many subjects are in any or in all of these chunks.
fn counted<'a>(rows: impl Iterator<Item = &'a Option<Row>>, matching: Matching) -> u64 {
    let bits = rows.map(|row| match row.as_ref().and_then(Row::chunk) {
        Some(bits) => bits.bitmap().clone(),
        None => RoaringBitmap::new(),
    });
    let together = match matching {
        Matching::Any => bits.reduce(|a, b| a | b),
        Matching::All => bits.reduce(|a, b| a & b),
    };
    together.map_or(0, |together| together.len())
}

fn answer(count: u64, matching: Matching, days: Vec<Day>, totals: &[i64]) -> DaysAnswer {
    let counted = days.into_iter().zip(totals).map(|(day, count)| CountedDay { day, count: *count });
    DaysAnswer { count, matching, days: counted.collect() }
}
