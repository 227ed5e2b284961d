//! Which tables a damaged store had: what its newest readable list says.

use std::{fs, io::Read, path::Path};

use crate::store::{
    check,
    versions::{self, Named},
};

/// A table that a list names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) id: u64,
    /// Rows of tables with larger numbers are newer.
    pub(super) seqno: u64,
}

/// The tables of the list that counts; if that is damaged, of the newest that is not; or else all that are there.
pub(super) fn tables(rows: &Path, lost: &mut Vec<String>) -> Vec<Listed> {
    let named = versions::current(rows).map_err(|error| lost.push(format!("the name of the list of tables: {error}")));
    if let Ok(named) = named {
        match counted(rows, named) {
            Ok(tables) => return tables,
            Err(why) => lost.push(format!("the list of tables: {why}")),
        }
    }
    let mut ids: Vec<u64> = numbers(rows, "v");
    ids.sort_unstable();
    for id in ids.into_iter().rev() {
        if let Some(tables) = read(&versions::list_path(rows, id)) {
            lost.push(format!("what moved into the tables after their list {id}"));
            return tables;
        }
    }
    lost.push("which tables are newer: rows may be older than they were".into());
    numbers(&rows.join("tables"), "").into_iter().map(|id| Listed { id, seqno: 0 }).collect()
}

fn counted(rows: &Path, named: Named) -> Result<Vec<Listed>, String> {
    let path = versions::list_path(rows, named.id);
    check::verify(&path, named.checksum).map_err(|error| error.to_string())?;
    read(&path).ok_or_else(|| format!("{} is not readable", path.display()))
}

/// The numbers that files of a folder have behind a prefix.
fn numbers(folder: &Path, prefix: &str) -> Vec<u64> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.strip_prefix(prefix)?.parse().ok()).collect()
}

/// Reads a list as the library writes it: levels of runs of tables, each with id, checksum and number.
fn read(path: &Path) -> Option<Vec<Listed>> {
    let reader = sfa::Reader::new(path).ok()?;
    let mut bytes = Vec::new();
    reader.toc().section(b"tables")?.buf_reader(path).ok()?.read_to_end(&mut bytes).ok()?;
    let mut rest = &bytes[..];
    let mut tables = Vec::new();
    for _ in 0..take::<1>(&mut rest)?[0] {
        for _ in 0..take::<1>(&mut rest)?[0] {
            for _ in 0..u32::from_le_bytes(take(&mut rest)?) {
                let id = u64::from_le_bytes(take(&mut rest)?);
                let _kind_and_checksum: [u8; 17] = take(&mut rest)?;
                tables.push(Listed { id, seqno: u64::from_le_bytes(take(&mut rest)?) });
            }
        }
    }
    Some(tables)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}
