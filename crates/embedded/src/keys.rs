//! Where each row lives. A byte names the table; ids end in a zero byte, which none of them can
//! contain, so composite keys are length-safe and keep the order of their parts.
//!
//! | table | key | value |
//! |---|---|---|
//! | `e` edge | object 0 relation 0 subject | stamp, kind, meta |
//! | `o` `p` an object's list, visible and hidden | object 0 relation 0 newest-first stamp, subject | kind, meta |
//! | `s` `t` a subject's list, visible and hidden | subject 0 relation 0 newest-first stamp, object | kind, meta |
//! | `c` an object's totals | object 0 relation 0 kind, empty for the count | number |
//! | `d` a subject's totals | subject 0 relation | number |
//! | `b` object, `u` subject, `j` job, `a` API key | id | JSON |
//! | `k` open jobs | id | |
//! | `r` remembered answers | caller 0 key | JSON |
//! | `x` the same by expiry | time, caller 0 key | |
//! | `z` the newest stamp | | stamp |

use tally_core::rows::{Edge, EdgeKey, JobId, Key, ListKey, ReplayKey, Side, TotalKey};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::{Place, StoreError};

/// The table of edges.
pub(crate) const EDGES: u8 = b'e';
/// The tables of totals.
pub(crate) const OBJECT_TOTALS: u8 = b'c';
pub(crate) const SUBJECT_TOTALS: u8 = b'd';
pub(crate) const API_KEYS: u8 = b'a';
const OBJECTS: u8 = b'b';
const JOBS: u8 = b'j';
const REPLAYS: u8 = b'r';
const SUBJECTS: u8 = b'u';
pub(crate) const OPEN_JOBS: u8 = b'k';
pub(crate) const REPLAYS_BY_EXPIRY: u8 = b'x';

/// The tables that hold rows rather than what follows from them, in order.
pub(crate) const ROWS: [u8; 6] = [API_KEYS, OBJECTS, EDGES, JOBS, REPLAYS, SUBJECTS];

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
    match key {
        Key::Edge(edge) => join(EDGES, &[edge.object.as_str(), edge.relation.as_str(), edge.subject.as_str()]),
        Key::Object(object) => join(OBJECTS, &[object.as_str()]),
        Key::Subject(subject) => join(SUBJECTS, &[subject.as_str()]),
        Key::Replay(replay) => join(REPLAYS, &[&replay.caller, &replay.key]),
        Key::Job(job) => number(JOBS, job.0),
        Key::ApiKey(id) => join(API_KEYS, &[id]),
    }
}

/// A total's key.
pub(crate) fn total(key: &TotalKey) -> Vec<u8> {
    match key {
        TotalKey::Object { object, relation } => join(OBJECT_TOTALS, &[object.as_str(), relation.as_str(), ""]),
        TotalKey::Kind { object, relation, kind } => {
            join(OBJECT_TOTALS, &[object.as_str(), relation.as_str(), kind.as_str()])
        }
        TotalKey::Subject { subject, relation } => join(SUBJECT_TOTALS, &[subject.as_str(), relation.as_str()]),
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

/// A job in the list of those that have not ended.
pub(crate) fn open_job(job: JobId) -> Vec<u8> {
    number(OPEN_JOBS, job.0)
}

/// A remembered answer in the order of expiry.
pub(crate) fn replay_by_expiry(expires_at: Timestamp, key: &ReplayKey) -> Vec<u8> {
    let mut bytes = number(REPLAYS_BY_EXPIRY, expires_at.0);
    bytes.extend_from_slice(&join(0, &[&key.caller, &key.key])[1..]);
    bytes
}

/// Every key of the expiry table before a time starts below this.
pub(crate) fn expiry_bound(before: Timestamp) -> Vec<u8> {
    number(REPLAYS_BY_EXPIRY, before.0)
}

/// The newest stamp.
pub(crate) fn stamp() -> Vec<u8> {
    vec![b'z']
}

fn number(table: u8, value: u64) -> Vec<u8> {
    let mut key = vec![table];
    key.extend_from_slice(&value.to_be_bytes());
    key
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

/// Reads a row's key.
pub(crate) fn read_row(key: &[u8]) -> Option<Key> {
    let id = || std::str::from_utf8(key.get(1..)?).ok();
    Some(match *key.first()? {
        EDGES => {
            let ([object, relation], subject) = split::<2>(key)?;
            Key::Edge(EdgeKey {
                object: ObjectId::new(object).ok()?,
                relation: Name::new(relation).ok()?,
                subject: SubjectId::new(std::str::from_utf8(subject).ok()?).ok()?,
            })
        }
        OBJECTS => Key::Object(ObjectId::new(id()?).ok()?),
        SUBJECTS => Key::Subject(SubjectId::new(id()?).ok()?),
        REPLAYS => {
            let (caller, key) = id()?.split_once('\0')?;
            Key::Replay(ReplayKey { caller: caller.into(), key: key.into() })
        }
        JOBS => Key::Job(JobId(u64::from_be_bytes(key.get(1..)?.try_into().ok()?))),
        API_KEYS => Key::ApiKey(id()?.into()),
        _ => return None,
    })
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
