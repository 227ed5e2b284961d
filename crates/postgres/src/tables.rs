//! Which tables there are, and which of them a key is in.

use tally_core::rows::Key;

use crate::cells::Cell::{Bool, Bytes, Day, Int, Ints, Json, Text, Time, Times};
use crate::cells::{Fence, Table};

/// The places of the tables in [`TABLES`].
pub(crate) const OBJECT: usize = 0;
pub(crate) const SUBJECT: usize = 1;
pub(crate) const REPLAY: usize = 2;
pub(crate) const JOB: usize = 3;
pub(crate) const API_KEY: usize = 4;
pub(crate) const TOUCHED: usize = 5;
pub(crate) const UNIQUE: usize = 6;
pub(crate) const LIMIT: usize = 7;
pub(crate) const SHEET: usize = 8;
pub(crate) const DAY: usize = 9;
pub(crate) const CHUNK: usize = 10;
pub(crate) const ATTENDEE: usize = 11;
pub(crate) const BOARD: usize = 12;
pub(crate) const SCORE: usize = 13;
pub(crate) const NAMES: usize = 14;

/// Every table but those of edges and totals.
pub(crate) static TABLES: [Table; 15] = [
    Table {
        name: "object",
        columns: &[
            ("object", Text),
            ("status", Text),
            ("attributes", Json),
            ("created_at", Time),
            ("updated_at", Time),
        ],
        keys: 1,
        fence: Fence::Changed,
    },
    Table {
        name: "subject",
        columns: &[
            ("subject", Text),
            ("suspended_at", Time),
            ("job", Text),
            ("forgotten_before_us", Int),
            ("forgotten_left", Json),
        ],
        keys: 1,
        fence: Fence::Changed,
    },
    Table {
        name: "replay",
        columns: &[("caller", Text), ("key", Text), ("fields", Json), ("answer", Text), ("expires_at", Time)],
        keys: 2,
        // Looked up and written in one decision: the key itself is guard enough.
        fence: Fence::None,
    },
    Table {
        name: "job",
        columns: &[
            ("id", Text),
            ("work", Json),
            ("before_us", Int),
            ("edges", Int),
            ("created_at", Time),
            ("finished_at", Time),
        ],
        keys: 1,
        fence: Fence::Changed,
    },
    Table {
        name: "api_key",
        columns: &[
            ("id", Text),
            ("hash", Text),
            ("role", Text),
            ("name", Text),
            ("created_at", Time),
            ("revoked_at", Time),
        ],
        keys: 1,
        fence: Fence::Changed,
    },
    Table {
        name: "counter_last",
        columns: &[("counter", Text), ("key", Text), ("last_at", Time)],
        keys: 2,
        fence: Fence::Absent,
    },
    Table {
        name: "unique_count",
        columns: &[("unique_name", Text), ("key", Text), ("sketch", Bytes)],
        keys: 2,
        fence: Fence::Absent,
    },
    Table {
        name: "rate_limit",
        columns: &[("name", Text), ("key", Text), ("state", Json), ("look_at", Time)],
        keys: 2,
        fence: Fence::Absent,
    },
    Table {
        name: "attendance_sheet",
        columns: &[("sheet", Text), ("next_number", Int)],
        keys: 1,
        fence: Fence::Absent,
    },
    Table {
        name: "attendance_day",
        columns: &[("sheet", Text), ("day", Day), ("chunks", Ints)],
        keys: 2,
        fence: Fence::Absent,
    },
    Table {
        name: "attendance_chunk",
        columns: &[("sheet", Text), ("day", Day), ("chunk", Int), ("bits", Bytes)],
        keys: 3,
        fence: Fence::Absent,
    },
    Table {
        name: "attendee",
        columns: &[("sheet", Text), ("subject", Text), ("number", Int), ("days", Bytes), ("forgotten", Bytes)],
        keys: 2,
        fence: Fence::Absent,
    },
    Table { name: "board", columns: &[("board", Text), ("seasons", Times)], keys: 1, fence: Fence::Absent },
    Table {
        name: "score",
        columns: &[
            ("board", Text),
            ("season", Time),
            ("levels", Bool),
            ("member", Text),
            ("score", Int),
            ("reached_us", Int),
        ],
        keys: 4,
        fence: Fence::Absent,
    },
    Table { name: "declared", columns: &[("id", Text), ("names", Json)], keys: 1, fence: Fence::Changed },
];

/// Which table a key is in; edges have a table of their own kind, and counters are totals.
pub(crate) fn table_of(key: &Key) -> Option<usize> {
    Some(match key {
        Key::Edge(_) | Key::Counter(_) => return None,
        Key::Object(_) => OBJECT,
        Key::Subject(_) => SUBJECT,
        Key::Replay(_) => REPLAY,
        Key::Job(_) => JOB,
        Key::ApiKey(_) => API_KEY,
        Key::Touched(_) => TOUCHED,
        Key::Unique(_) => UNIQUE,
        Key::Limit(_) => LIMIT,
        Key::Sheet(_) => SHEET,
        Key::Day(..) => DAY,
        Key::Chunk(_) => CHUNK,
        Key::Attendee(..) => ATTENDEE,
        Key::Board(_) => BOARD,
        Key::Score(_) => SCORE,
        Key::Names => NAMES,
    })
}
