//! Where each row lives. A byte names the table; ids end in a zero byte, which none of them can
//! contain, so composite keys are length-safe and keep the order of their parts.
//!
//! Every kind of row has the table of its letter (`tally_core::rows::RowKind`), with the parts of its key as they are
//! declared: numbers in eight bytes, the highest first, so that they are in order too. Beside them:
//!
//! | table | key | value |
//! |---|---|---|
//! | `o` `p` an object's list, visible and hidden | object 0 relation 0 newest-first stamp, subject | kind, meta |
//! | `s` `t` a subject's list, visible and hidden | subject 0 relation 0 newest-first stamp, object | kind, meta |
//! | `c` an object's totals | object 0 relation 0 kind, empty for the count | number |
//! | `d` a subject's totals | subject 0 relation | number |
//! | a total that counts no edges, by its letter | name 0 key | number |
//! | `x` rows by when they are due | letter, partition, time, key | |
//! | `v` rows that stand in an order | letter, order, highest-first score, reached, id | |
//! | `z` the newest stamp | | stamp |

use std::borrow::Cow;
use std::sync::LazyLock;

use tally_core::Day;
use tally_core::rows::{
    self, Cell, Cells, Edge, EdgeKey, Key, ListKey, OrderKey, RowKind, Side, TotalKey, TotalOf, Type,
};
use tally_core::time::{Stamp, Timestamp};
use tally_engine::{Place, StoreError};

/// The table of edges.
pub(crate) const EDGES: u8 = b'e';
/// The tables of totals.
pub(crate) const OBJECT_TOTALS: u8 = b'c';
pub(crate) const SUBJECT_TOTALS: u8 = b'd';
pub(crate) const ORDERS: u8 = b'v';
const DUE: u8 = b'x';

/// The tables that hold rows rather than what follows from them, in order.
pub(crate) static ROWS: LazyLock<[u8; RowKind::COUNT]> = LazyLock::new(|| {
    let mut letters = RowKind::ALL.map(|kind| kind.declared().letter);
    letters.sort_unstable();
    letters
});

/// Builds a key: parts with a zero byte between them.
fn join(table: u8, parts: &[&str]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len() + 1).sum::<usize>());
    key.push(table);
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            key.push(0);
        }
        key.extend_from_slice(part.as_bytes());
    }
    key
}

/// A row's key.
pub(crate) fn row(key: &Key) -> Vec<u8> {
    // There are many edges.
    if let Key::Edge(edge) = key {
        return join(EDGES, &[edge.object.as_str(), edge.relation.as_str(), edge.subject.as_str()]);
    }
    let declared = key.kind().declared();
    let mut bytes = Vec::with_capacity(64);
    bytes.push(declared.letter);
    put_parts(&mut bytes, key);
    bytes
}

/// The parts of a key. A text that is not the last one ends in a zero byte.
fn put_parts(bytes: &mut Vec<u8>, key: &Key) {
    let mut left = key.kind().declared().key.len();
    key.cells(|cell| {
        left -= 1;
        put_part(bytes, &cell, left == 0);
    });
}

fn put_part(bytes: &mut Vec<u8>, cell: &Cell<'_>, is_last: bool) {
    match cell {
        Cell::Text(text) => {
            bytes.extend_from_slice(text.as_bytes());
            if !is_last {
                bytes.push(0);
            }
        }
        Cell::Number(number) | Cell::Time(Timestamp(number)) => bytes.extend_from_slice(&number.to_be_bytes()),
        Cell::Signed(number) => bytes.extend_from_slice(&(number.cast_unsigned() ^ (1 << 63)).to_be_bytes()),
        Cell::Day(day) => bytes.extend_from_slice(&day.0.to_be_bytes()),
        Cell::Flag(flag) => bytes.push(u8::from(*flag)),
        // No key is made of these, and no number reaches a store before it is given.
        Cell::Null | Cell::Taken(_) | Cell::Json(_) | Cell::Numbers(_) | Cell::Times(_) | Cell::Bytes(_) => {}
    }
}

/// Reads the parts of a key back.
fn read_parts(kind: RowKind, bytes: &[u8]) -> Option<Key> {
    let columns = kind.declared().key;
    let (mut rest, mut cells) = (bytes, Vec::with_capacity(columns.len()));
    for (place, (_, of)) in columns.iter().enumerate() {
        cells.push(take_part(&mut rest, *of, place + 1 == columns.len())?);
    }
    rest.is_empty().then(|| Key::from_cells(kind, &mut Cells::new(cells))).flatten()
}

fn take_part<'a>(rest: &mut &'a [u8], of: Type, is_last: bool) -> Option<Cell<'a>> {
    Some(match of {
        Type::Text => {
            let end = if is_last { rest.len() } else { rest.iter().position(|byte| *byte == 0)? };
            let text = std::str::from_utf8(&rest[..end]).ok()?;
            *rest = if is_last { &[] } else { &rest[end + 1..] };
            Cell::Text(Cow::Borrowed(text))
        }
        Type::Number => Cell::Number(u64::from_be_bytes(take(rest)?)),
        Type::Time => Cell::Time(Timestamp(u64::from_be_bytes(take(rest)?))),
        Type::Signed => Cell::Signed((u64::from_be_bytes(take(rest)?) ^ (1 << 63)).cast_signed()),
        Type::Day => Cell::Day(Day(u32::from_be_bytes(take(rest)?))),
        Type::Flag => Cell::Flag(take::<1>(rest)? == [1]),
        Type::Json | Type::Numbers | Type::Times | Type::Bytes => return None,
    })
}

fn take<const BYTES: usize>(rest: &mut &[u8]) -> Option<[u8; BYTES]> {
    let (bytes, left) = rest.split_first_chunk::<BYTES>()?;
    *rest = left;
    Some(*bytes)
}

/// The order that a letter and parts of a key behind it begin with, and how many bytes name it.
pub(crate) fn read_order(bytes: &[u8]) -> Option<(OrderKey, usize)> {
    let (letter, mut rest) = bytes.split_first()?;
    let kind = kind_of(*letter)?;
    let (_, columns) = kind.declared().key.split_last()?;
    let cells: Option<Vec<Cell<'_>>> = columns.iter().map(|(_, of)| take_part(&mut rest, *of, false)).collect();
    Some((OrderKey::from_cells(kind, &mut Cells::new(cells?))?, bytes.len() - rest.len()))
}

fn kind_of(letter: u8) -> Option<RowKind> {
    RowKind::ALL.into_iter().find(|kind| kind.declared().letter == letter)
}

/// Reads a row's key.
pub(crate) fn read_row(key: &[u8]) -> Option<Key> {
    let (letter, parts) = key.split_first()?;
    read_parts(kind_of(*letter)?, parts)
}

/// A row by when it is due.
pub(crate) fn due(key: &Key, at: Timestamp) -> Vec<u8> {
    let mut bytes = due_bound(key.kind(), key.partition(), at);
    put_parts(&mut bytes, key);
    bytes
}

/// Everything of a kind and a partition that is due before a time is below this.
pub(crate) fn due_bound(kind: RowKind, partition: u8, before: Timestamp) -> Vec<u8> {
    with_bytes(vec![DUE, kind.declared().letter, partition], &[&before.0.to_be_bytes()])
}

/// Reads the key of a row that is due, behind the time that orders it within its partition.
pub(crate) fn read_due(kind: RowKind, bytes: &[u8]) -> Option<(Timestamp, Key)> {
    let (at, parts) = bytes.get(3..)?.split_first_chunk::<8>()?;
    Some((Timestamp(u64::from_be_bytes(*at)), read_parts(kind, parts)?))
}

/// Where the rows of a kind begin.
pub(crate) fn table(kind: RowKind) -> [u8; 1] {
    [kind.declared().letter]
}

fn with_bytes(mut key: Vec<u8>, parts: &[&[u8]]) -> Vec<u8> {
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// Where the places of an order begin: all of its keys start with this.
pub(crate) fn order_prefix(order: &OrderKey) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(&[ORDERS, order.kind().declared().letter]);
    order.cells(|cell| put_part(&mut bytes, &cell, false));
    bytes
}

/// A place without its id, as a number of which those that stand first have the lower ones.
pub(crate) fn place_number(score: i64, reached: u64) -> u128 {
    let down = !(score.cast_unsigned() ^ (1 << 63));
    u128::from(down) << 64 | u128::from(reached)
}

/// Where those with this number begin.
pub(crate) fn order_number(order: &OrderKey, number: u128) -> Vec<u8> {
    with_bytes(order_prefix(order), &[&number.to_be_bytes()])
}

/// A place in an order.
pub(crate) fn order_entry(order: &OrderKey, place: &rows::Place) -> Vec<u8> {
    let number = place_number(place.score, place.reached);
    with_bytes(order_prefix(order), &[&number.to_be_bytes(), place.id.as_bytes()])
}

/// The number of an entry, behind a prefix of so many bytes.
pub(crate) fn read_number(key: &[u8], prefix: usize) -> Option<u128> {
    Some(u128::from_be_bytes(*key.get(prefix..)?.first_chunk()?))
}

/// Reads an entry of an order, behind a prefix of so many bytes.
pub(crate) fn read_place(key: &[u8], prefix: usize) -> Option<rows::Place> {
    let number = read_number(key, prefix)?;
    let score = ((!((number >> 64) as u64)) ^ (1 << 63)).cast_signed();
    let id = std::str::from_utf8(key.get(prefix + 16..)?).ok()?;
    Some(rows::Place { score, reached: number as u64, id: id.into() })
}

/// A total's key.
pub(crate) fn total(key: &TotalKey) -> Vec<u8> {
    match key.of() {
        TotalOf::Object(object, relation) => join(OBJECT_TOTALS, &[object.as_str(), relation.as_str(), ""]),
        TotalOf::Kind(object, relation, kind) => {
            join(OBJECT_TOTALS, &[object.as_str(), relation.as_str(), kind.as_str()])
        }
        TotalOf::Subject(subject, relation) => join(SUBJECT_TOTALS, &[subject.as_str(), relation.as_str()]),
        TotalOf::Number(number) => join(number.letter, &[number.name.as_str(), &number.key]),
    }
}

/// The table of a list.
pub(crate) fn list_table(side: Side, hidden: bool) -> u8 {
    match (side, hidden) {
        (Side::Object, false) => b'o',
        (Side::Object, true) => b'p',
        (Side::Subject, false) => b's',
        (Side::Subject, true) => b't',
    }
}

/// Where a list begins: all of its keys start with this.
pub(crate) fn list_prefix(list: &ListKey) -> Vec<u8> {
    let table = list_table(list.side, list.hidden);
    match &list.relation {
        Some(relation) => join(table, &[&list.id, relation.as_str(), ""]),
        None => join(table, &[&list.id, ""]),
    }
}

/// Where an edge stands in the list of one of its sides.
pub(crate) fn list_entry(key: &EdgeKey, edge: &Edge, side: Side) -> Vec<u8> {
    let relation = key.relation.as_str();
    entry(list_table(side, edge.hidden), key.end(side), relation, edge.created, key.other(side))
}

/// A place in a list, as a key.
pub(crate) fn place(list: &ListKey, place: &Place) -> Vec<u8> {
    let table = list_table(list.side, list.hidden);
    entry(table, &list.id, place.relation.as_str(), place.cursor.stamp, &place.cursor.other)
}

/// Stamps are turned over, so that the newest come first.
fn entry(table: u8, id: &str, relation: &str, stamp: Stamp, other: &str) -> Vec<u8> {
    let mut key = join(table, &[id, relation, ""]);
    key.reserve_exact(8 + other.len());
    key.extend_from_slice(&(!stamp.0).to_be_bytes());
    key.extend_from_slice(other.as_bytes());
    key
}

/// The newest stamp.
pub(crate) fn stamp() -> Vec<u8> {
    vec![b'z']
}

/// The smallest key that does not start with the prefix.
pub(crate) fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    end
}

/// Takes a key apart at its zero bytes: the first `parts` of them, and what is left.
pub(crate) fn split<const PARTS: usize>(key: &[u8]) -> Option<([&str; PARTS], &[u8])> {
    let mut rest = key.get(1..)?;
    let mut parts = [""; PARTS];
    for part in &mut parts {
        let end = rest.iter().position(|byte| *byte == 0)?;
        *part = std::str::from_utf8(&rest[..end]).ok()?;
        rest = &rest[end + 1..];
    }
    Some((parts, rest))
}

/// What to say of a key that is none of ours.
pub(crate) fn unreadable(key: &[u8]) -> StoreError {
    StoreError::Broken(format!("the key {:?} cannot be read", String::from_utf8_lossy(key)))
}

/// Reads an entry of a list: the near end, the relation, the stamp, the far end.
pub(crate) fn split_entry(key: &[u8]) -> Option<(&str, &str, Stamp, &str)> {
    let ([id, relation], rest) = split::<2>(key)?;
    let (stamp, other) = rest.split_at_checked(8)?;
    let stamp = Stamp(!u64::from_be_bytes(stamp.try_into().ok()?));
    Some((id, relation, stamp, std::str::from_utf8(other).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows and what follows from them are in one space of keys.
    #[test]
    fn no_kind_of_row_has_the_letter_of_another_table() {
        let sides = [Side::Object, Side::Subject];
        let lists = sides.into_iter().flat_map(|side| [false, true].map(|hidden| list_table(side, hidden)));
        let own: Vec<u8> = lists.chain([OBJECT_TOTALS, SUBJECT_TOTALS, ORDERS, DUE, stamp()[0]]).collect();
        let unlisted = rows::Number::UNLISTED.map(|(_, letter, _)| letter);
        for kind in RowKind::ALL {
            let letter = kind.declared().letter;
            assert!(!own.contains(&letter) && !unlisted.contains(&letter), "{kind:?}");
        }
        assert!(unlisted.iter().all(|letter| !own.contains(letter)));
    }
}
