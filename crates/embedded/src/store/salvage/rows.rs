//! The rows of a damaged store's tables, table by table and block by block: what is whole is read.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Arc, Mutex},
};

use byteview::ByteView;
use lsm_tree::{Cache, Checksum, InternalValue, Table};

use super::lists::{self, Listed};
use crate::store::{
    error::Result,
    merge::{Merge, Row, Source},
    overlay::{Change, Overlay},
    tables::{INGESTED, OWN_KEYS_END},
};

const CACHE_BYTES: u64 = 16 << 20;

/// The tables that can be opened.
pub(super) struct Tables {
    tables: Vec<Table>,
    lost: Mutex<Vec<String>>,
}

/// Opens what can be opened.
pub(super) fn open(rows: &Path, lost: &mut Vec<String>) -> Tables {
    let cache = Arc::new(Cache::with_capacity_bytes(CACHE_BYTES));
    let mut tables = Vec::new();
    for listed in lists::tables(rows, lost) {
        match open_table(rows, listed, &cache) {
            Ok(table) => tables.push(table),
            Err(why) => lost.push(format!("all rows of table {}: {why}", listed.id)),
        }
    }
    Tables { tables, lost: Mutex::default() }
}

fn open_table(rows: &Path, listed: Listed, cache: &Arc<Cache>) -> Result<Table, String> {
    let path = rows.join("tables").join(listed.id.to_string());
    if !path.exists() {
        return Err("its file is missing".into());
    }
    // The library trusts its files and panics where they are not what it wrote. Its index is read at once, so
    // that only blocks of rows are left to fail.
    let opening = || Table::recover(path, Checksum::from_raw(0), listed.seqno, 0, cache.clone(), None, false, true);
    match catch_unwind(AssertUnwindSafe(opening)) {
        Ok(opened) => opened.map_err(|error| error.to_string()),
        Err(_) => Err("its file is not as it was written".into()),
    }
}

impl Tables {
    /// How far the log had been moved into them.
    pub(super) fn ingested(&self) -> u64 {
        let place = |table: &Table| {
            let key = lsm_tree::Slice::from(INGESTED);
            let found = catch_unwind(AssertUnwindSafe(|| table.range(key.clone()..=key).next()));
            let value = found.ok()??.ok()?.value;
            Some(u64::from_le_bytes((*value).try_into().ok()?))
        };
        self.tables.iter().filter_map(place).max().unwrap_or(0)
    }

    /// What could not be read of tables that opened.
    pub(super) fn lost(self) -> Vec<String> {
        self.lost.into_inner().unwrap_or_default()
    }

    fn note(&self, table: &Table, why: String) {
        if let Ok(mut lost) = self.lost.lock() {
            lost.push(format!("some rows of table {}: {why}", table.id()));
        }
    }
}

/// All rows: those of the log over those of the tables.
pub(super) fn merge<'a>(
    log: &'a Overlay,
    tables: &'a Tables,
    lost: &mut Vec<String>,
) -> Result<impl Iterator<Item = Result<Row>> + 'a> {
    let mut newest = Newest { tables, readers: Vec::new(), heads: BinaryHeap::new() };
    for table in &tables.tables {
        newest.readers.push(Reader { table, rows: Box::new(table.iter()), errors: 0 });
        newest.advance(newest.readers.len() - 1);
    }
    if tables.tables.is_empty() && log.is_empty() {
        lost.push("everything: neither the tables nor the log could be read".into());
    }
    let sources: Vec<Source<'a>> = vec![Box::new(log.all().map(Ok)), Box::new(newest.map(Ok))];
    Merge::new(sources, false)
}

struct Reader<'a> {
    table: &'a Table,
    rows: Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>> + 'a>,
    errors: u64,
}

/// Of rows with the same key the newest, in key order.
struct Newest<'a> {
    tables: &'a Tables,
    readers: Vec<Reader<'a>>,
    heads: BinaryHeap<Reverse<Head>>,
}

struct Head {
    row: InternalValue,
    reader: usize,
}

impl Head {
    fn rank(&self) -> (&[u8], Reverse<u64>, Reverse<usize>) {
        (&self.row.key.user_key, Reverse(self.row.key.seqno), Reverse(self.reader))
    }
}

impl Newest<'_> {
    /// Reads on in a table, over blocks that cannot be read.
    fn advance(&mut self, at: usize) {
        let reader = &mut self.readers[at];
        loop {
            match catch_unwind(AssertUnwindSafe(|| reader.rows.next())) {
                Ok(Some(Ok(row))) if *row.key.user_key < *OWN_KEYS_END => {}
                Ok(Some(Ok(row))) => return self.heads.push(Reverse(Head { row, reader: at })),
                Ok(None) => return,
                Ok(Some(Err(error))) => {
                    reader.errors += 1;
                    self.tables.note(reader.table, error.to_string());
                    if reader.errors > reader.table.metadata.data_block_count {
                        return;
                    }
                }
                Err(_) => return self.tables.note(reader.table, "its rows are not as they were written".into()),
            }
        }
    }
}

impl Iterator for Newest<'_> {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        let Reverse(Head { row, reader }) = self.heads.pop()?;
        self.advance(reader);
        while self.heads.peek().is_some_and(|Reverse(older)| older.row.key.user_key == row.key.user_key) {
            if let Some(Reverse(older)) = self.heads.pop() {
                self.advance(older.reader);
            }
        }
        let value = (!row.is_tombstone()).then(|| ByteView::from(row.value.clone()));
        Some((ByteView::from(row.key.user_key), value))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}
