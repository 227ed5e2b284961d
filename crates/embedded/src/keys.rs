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
//! | `K` ended jobs | time, id | |
//! | `N` every name that was ever declared | | JSON |
//! | `r` remembered answers | caller 0 key | JSON |
//! | `x` the same by expiry | time, caller 0 key | |
//! | `n` counter | name 0 key | number |
//! | `l` when a counter was last added to | name 0 key | time |
//! | `q` unique count | name 0 key | sketch |
//! | `m` limit, `y` the same by when to look at it | name 0 key | JSON |
//! | `h` sheet, `g` day, `i` chunk of a day | sheet (0 day (chunk)) | number, JSON, bitmap |
//! | `f` a subject on a sheet | sheet 0 subject | number, bitmap of days |
//! | `B` the seasons of a board | board | JSON |
//! | `w` score | board 0 season, member | score, stamp |
//! | `v` the same in the order of the board | board 0 season, highest-first score, stamp, member | |
//! | `P` how many were there | sheet 0 day | number |
//! | `z` the newest stamp | | stamp |

use tally_core::rows::{
    BoardKey, ChunkKey, CountKey, Edge, EdgeKey, JobId, Key, LimitKey, ListKey, ReplayKey, Score, ScoreKey, Side,
    TotalKey,
};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{Day, KeyId, Name, ObjectId, SubjectId};
use tally_engine::{Place, StoreError};

/// The table of edges.
pub(crate) const EDGES: u8 = b'e';
/// The tables of totals.
pub(crate) const OBJECT_TOTALS: u8 = b'c';
pub(crate) const SUBJECT_TOTALS: u8 = b'd';
pub(crate) const API_KEYS: u8 = b'a';
const BOARD_ORDER: u8 = b'v';
pub(crate) const LIMITS_BY_TIME: u8 = b'y';
const ATTENDEES: u8 = b'f';
const BOARDS: u8 = b'B';
const CHUNKS: u8 = b'i';
const COUNTERS: u8 = b'n';
const DAYS: u8 = b'g';
const LIMITS: u8 = b'm';
const PRESENT_TOTALS: u8 = b'P';
const SCORES: u8 = b'w';
const SHEETS: u8 = b'h';
const TOUCHED: u8 = b'l';
const UNIQUES: u8 = b'q';
const OBJECTS: u8 = b'b';
const JOBS: u8 = b'j';
const REPLAYS: u8 = b'r';
const SUBJECTS: u8 = b'u';
pub(crate) const OPEN_JOBS: u8 = b'k';
pub(crate) const ENDED_JOBS: u8 = b'K';
const NAMES: u8 = b'N';
pub(crate) const REPLAYS_BY_EXPIRY: u8 = b'x';

/// The tables that hold rows rather than what follows from them, in order.
pub(crate) const ROWS: [u8; 17] = [
    BOARDS, NAMES, API_KEYS, OBJECTS, EDGES, ATTENDEES, DAYS, SHEETS, CHUNKS, JOBS, TOUCHED, LIMITS, COUNTERS, UNIQUES,
    REPLAYS, SUBJECTS, SCORES,
];

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
        Key::Counter(key) => count(COUNTERS, key),
        Key::Touched(key) => count(TOUCHED, key),
        Key::Unique(key) => count(UNIQUES, key),
        Key::Limit(key) => join(LIMITS, &[&key.name, &key.key]),
        Key::Sheet(sheet) => join(SHEETS, &[sheet.as_str()]),
        Key::Day(sheet, day) => with_bytes(join(DAYS, &[sheet.as_str(), ""]), &[&day.0.to_be_bytes()]),
        Key::Chunk(key) => {
            let start = join(CHUNKS, &[key.sheet.as_str(), ""]);
            with_bytes(start, &[&key.day.0.to_be_bytes(), &key.chunk.to_be_bytes()])
        }
        Key::Attendee(sheet, subject) => join(ATTENDEES, &[sheet.as_str(), subject.as_str()]),
        Key::Board(board) => join(BOARDS, &[board.as_str()]),
        Key::Score(key) => with_bytes(board(SCORES, &key.board), &[key.member.as_str().as_bytes()]),
        Key::Names => vec![NAMES],
    }
}

fn count(table: u8, key: &CountKey) -> Vec<u8> {
    join(table, &[key.name.as_str(), key.key.as_str()])
}

fn with_bytes(mut key: Vec<u8>, parts: &[&[u8]]) -> Vec<u8> {
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// The start of a board's keys in a table.
fn board(table: u8, key: &BoardKey) -> Vec<u8> {
    with_bytes(join(table, &[key.board.as_str(), ""]), &[&[u8::from(key.levels)], &key.season.0.to_be_bytes()])
}

/// A score as a number of which the higher scores have the lower ones.
pub(crate) fn descending(score: i64) -> u64 {
    !(score.cast_unsigned() ^ (1 << 63))
}

/// Where a board's order begins: all of its keys start with this.
pub(crate) fn board_prefix(key: &BoardKey) -> Vec<u8> {
    board(BOARD_ORDER, key)
}

/// A place in a board's order: a score as [`descending`] gives it, and a stamp.
pub(crate) fn board_place(key: &BoardKey, place: u128) -> Vec<u8> {
    with_bytes(board_prefix(key), &[&place.to_be_bytes()])
}

/// Where a member stands in a board's order.
pub(crate) fn board_entry(key: &ScoreKey, score: Score) -> Vec<u8> {
    let (place, reached) = (descending(score.score).to_be_bytes(), score.reached.0.to_be_bytes());
    with_bytes(board_prefix(&key.board), &[&place, &reached, key.member.as_str().as_bytes()])
}

/// Takes an entry of a board's order apart: the board's part, and the place.
pub(crate) fn split_place(key: &[u8]) -> Option<(&[u8], u128)> {
    let board = key.iter().position(|byte| *byte == 0)? + 1 + 9;
    let place = key.get(board..board + 16)?;
    Some((&key[..board], u128::from_be_bytes(place.try_into().ok()?)))
}

/// The board of a key's first part.
pub(crate) fn read_board(key: &[u8]) -> Option<BoardKey> {
    let ([board], rest) = split::<1>(key)?;
    let (levels, season) = rest.split_first()?;
    let season = Timestamp(u64::from_be_bytes(season.get(..8)?.try_into().ok()?));
    Some(BoardKey { board: Name::new(board).ok()?, season, levels: *levels == 1 })
}

/// Reads an entry of a board's order.
pub(crate) fn read_board_entry(key: &[u8]) -> Option<(ScoreKey, Score)> {
    let (prefix, place) = split_place(key)?;
    let member = SubjectId::new(std::str::from_utf8(key.get(prefix.len() + 16..)?).ok()?).ok()?;
    let score = ((!((place >> 64) as u64)) ^ (1 << 63)).cast_signed();
    Some((ScoreKey { board: read_board(prefix)?, member }, Score { score, reached: Stamp(place as u64) }))
}

/// A job in the order of when it ended.
pub(crate) fn ended_job(ended: Timestamp, id: JobId) -> Vec<u8> {
    with_bytes(number(ENDED_JOBS, ended.0), &[&id.0.to_be_bytes()])
}

/// Every key of jobs that ended before a time starts below this.
pub(crate) fn ended_bound(before: Timestamp) -> Vec<u8> {
    number(ENDED_JOBS, before.0)
}

/// A limit in the order of when to look at it.
pub(crate) fn limit_by_time(look_at: Timestamp, key: &LimitKey) -> Vec<u8> {
    with_bytes(number(LIMITS_BY_TIME, look_at.0), &[key.name.as_bytes(), &[0], key.key.as_bytes()])
}

/// Every key of limits to look at before a time starts below this.
pub(crate) fn limit_bound(before: Timestamp) -> Vec<u8> {
    number(LIMITS_BY_TIME, before.0)
}

/// A total's key.
pub(crate) fn total(key: &TotalKey) -> Vec<u8> {
    match key {
        TotalKey::Object { object, relation } => join(OBJECT_TOTALS, &[object.as_str(), relation.as_str(), ""]),
        TotalKey::Kind { object, relation, kind } => {
            join(OBJECT_TOTALS, &[object.as_str(), relation.as_str(), kind.as_str()])
        }
        TotalKey::Subject { subject, relation } => join(SUBJECT_TOTALS, &[subject.as_str(), relation.as_str()]),
        TotalKey::Counter(key) => count(COUNTERS, key),
        TotalKey::Present { sheet, day } => {
            with_bytes(join(PRESENT_TOTALS, &[sheet.as_str(), ""]), &[&day.0.to_be_bytes()])
        }
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
        COUNTERS => Key::Counter(read_count(id()?)?),
        TOUCHED => Key::Touched(read_count(id()?)?),
        UNIQUES => Key::Unique(read_count(id()?)?),
        LIMITS => {
            let (name, key) = id()?.split_once('\0')?;
            Key::Limit(LimitKey { name: name.into(), key: key.into() })
        }
        SHEETS => Key::Sheet(Name::new(id()?).ok()?),
        DAYS => {
            let ([sheet], day) = split::<1>(key)?;
            Key::Day(Name::new(sheet).ok()?, Day(u32::from_be_bytes(day.try_into().ok()?)))
        }
        CHUNKS => {
            let ([sheet], rest) = split::<1>(key)?;
            let (day, chunk) = rest.split_at_checked(4)?;
            let day = Day(u32::from_be_bytes(day.try_into().ok()?));
            let chunk = u64::from_be_bytes(chunk.try_into().ok()?);
            Key::Chunk(ChunkKey { sheet: Name::new(sheet).ok()?, day, chunk })
        }
        ATTENDEES => {
            let (sheet, subject) = id()?.split_once('\0')?;
            Key::Attendee(Name::new(sheet).ok()?, SubjectId::new(subject).ok()?)
        }
        BOARDS => Key::Board(Name::new(id()?).ok()?),
        SCORES => {
            let at = key.iter().position(|byte| *byte == 0)? + 1 + 9;
            let member = SubjectId::new(std::str::from_utf8(key.get(at..)?).ok()?).ok()?;
            Key::Score(ScoreKey { board: read_board(key.get(..at)?)?, member })
        }
        NAMES => Key::Names,
        _ => return None,
    })
}

fn read_count(id: &str) -> Option<CountKey> {
    let (name, key) = id.split_once('\0')?;
    Some(CountKey { name: Name::new(name).ok()?, key: KeyId::new(key).ok()? })
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
