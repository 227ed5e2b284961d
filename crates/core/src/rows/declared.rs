//! Every kind of row, declared once. Stores lay rows out from this, and read and write them through
//! [`Key::cells`] and [`Row::cells`]; a new kind of row touches no store's code.

use super::Key;
use super::cell::Type::{self, Bytes, Flag, Json, Number, Numbers, Signed, Text, Time, Times};

/// A column: its name, and what it holds.
pub type Column = (&'static str, Type);

/// How rows that are not there are guarded in a store that can only lock those that are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guard {
    /// Looked up and written in one decision: the key itself is guard enough.
    Key,
    /// Looked at often and changed seldom.
    Changed,
    /// Changed often, and seldom decided on while it is not there.
    Absent,
}

/// With what a row is kept together, in a store that is made of parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// With everything whose key has the same value in this column.
    With(usize),
    /// Spread evenly over a few parts.
    Spread,
    /// With the store as a whole: there are few.
    Store,
}

/// When rows of a kind are due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// At the time in this column.
    At(&'static str),
    /// At once, as long as there is no time in this column.
    AtOnceUnless(&'static str),
}

impl Due {
    /// The column.
    pub fn column(self) -> &'static str {
        match self {
            Self::At(column) | Self::AtOnceUnless(column) => column,
        }
    }
}

/// By which of their columns rows of a kind stand in an order: see [`super::Row::stands`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ordered {
    /// The score; without one it is 0.
    pub score: Option<&'static str>,
    /// What comes behind the score.
    pub reached: &'static str,
    /// Only rows that have this text in this column stand.
    pub only: Option<(&'static str, &'static str)>,
}

/// A kind of row.
#[derive(Debug)]
pub struct Declared {
    /// The kind itself.
    pub kind: RowKind,
    /// Its name, as that of a table.
    pub name: &'static str,
    /// Its name where a byte has to do. Never changed, never used again.
    pub letter: u8,
    /// The capability that it belongs to: rows of one are mostly asked for together.
    pub capability: &'static str,
    /// The parts of its key, in order.
    pub key: &'static [Column],
    /// What it holds beside its key.
    pub columns: &'static [Column],
    /// How its absence is guarded.
    pub guard: Guard,
    /// With what it is kept together.
    pub home: Home,
    /// From which column [`super::Row::due`] follows, where rows of this kind are ever due.
    pub due: Option<Due>,
    /// How its rows stand in an order, where they ever do.
    pub order: Option<Ordered>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $letter:literal $name:literal in $capability:literal
        ($($key:literal $key_type:ident),*) => ($($column:literal $type:ident),*)
        $guard:ident $home:expr, due $due:expr $(, order $order:expr)?;)*) => {
        /// The kinds of rows that there are. Those that relations need come first.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum RowKind {
            $($(#[$doc])* $kind,)*
        }

        static DECLARED: &[Declared] = &[$(Declared {
            kind: RowKind::$kind,
            name: $name,
            letter: $letter,
            capability: $capability,
            key: &[$(($key, $key_type)),*],
            columns: &[$(($column, $type)),*],
            guard: Guard::$guard,
            home: $home,
            due: $due,
            order: [$($order,)? NO_ORDER][0],
        }),*];

        impl RowKind {
            /// All of them.
            pub const ALL: [Self; [$($letter),*].len()] = [$(Self::$kind),*];
        }
    };
}

use Home::{Spread, Store, With};

const NO_ORDER: Option<Ordered> = None;

kinds! {
    /// An edge. There are many: stores lay them out by hand, with their lists.
    Edge = b'e' "edge" in "relation"
        ("object" Text, "relation" Text, "subject" Text) =>
        ("created_us" Number, "kind" Text, "meta" Json, "hidden" Flag)
        Key With(0), due None;
    /// A registered object.
    Object = b'b' "object" in "object"
        ("object" Text) => ("status" Text, "attributes" Json, "created_at" Time, "updated_at" Time)
        Changed With(0), due None;
    /// What is known about a subject beyond its edges.
    Subject = b'u' "subject" in "subject"
        ("subject" Text) =>
        ("suspended_at" Time, "job" Text, "forgotten_before_us" Number, "forgotten_left" Json)
        Changed With(0), due None;
    /// A remembered answer.
    Replay = b'r' "replay" in "replay"
        ("caller" Text, "key" Text) => ("fields" Json, "answer" Text, "expires_at" Time)
        Key Spread, due Some(Due::At("expires_at"));
    /// A piece of long work.
    Job = b'j' "job" in "job"
        ("id" Text) =>
        ("work" Json, "before_us" Number, "edges" Number, "created_at" Time, "finished_at" Time)
        Changed Store, due Some(Due::AtOnceUnless("finished_at"));
    /// An API key.
    ApiKey = b'a' "api_key" in "key"
        ("id" Text) => ("hash" Text, "role" Text, "name" Text, "created_at" Time, "revoked_at" Time)
        Changed Store, due None;
    /// Every name that was ever declared.
    Names = b'N' "declared" in "key"
        ("id" Text) => ("names" Json)
        Changed Store, due None;
    /// A counter: a total that is listed as a row.
    Counter = b'n' "counter" in "counter"
        ("counter" Text, "key" Text) => ("value" Signed)
        Key With(1), due None;
    /// When a counter was last added to.
    Touched = b'l' "counter_last" in "counter"
        ("counter" Text, "key" Text) => ("last_at" Time)
        Absent With(1), due None;
    /// A unique count.
    Unique = b'q' "unique_count" in "unique"
        ("unique_name" Text, "key" Text) => ("sketch" Bytes)
        Absent With(1), due None;
    /// What has been used of a limit.
    Limit = b'm' "rate_limit" in "limit"
        ("name" Text, "key" Text) => ("state" Json, "look_at" Time)
        Absent With(1), due Some(Due::At("look_at"));
    /// How many subjects of a sheet have been numbered.
    Sheet = b'h' "attendance_sheet" in "attendance"
        ("sheet" Text) => ("next_number" Number)
        Absent With(0), due None;
    /// Which chunks a day has.
    Day = b'g' "attendance_day" in "attendance"
        ("sheet" Text, "day" Day) => ("chunks" Numbers)
        Absent With(0), due None;
    /// A part of a day's bitmap.
    Chunk = b'i' "attendance_chunk" in "attendance"
        ("sheet" Text, "day" Day, "chunk" Number) => ("bits" Bytes)
        Absent With(0), due None;
    /// A subject on a sheet.
    Attendee = b'f' "attendee" in "attendance"
        ("sheet" Text, "subject" Text) => ("number" Number, "days" Bytes, "forgotten" Bytes)
        Absent With(0), due None;
    /// What is known of a board beyond its scores.
    Board = b'B' "board" in "board"
        ("board" Text) => ("seasons" Times, "dense" Flag)
        Absent With(0), due None;
    /// A member's score, which has a place in the order of its board.
    Score = b'w' "score" in "board"
        ("board" Text, "season" Time, "levels" Flag, "member" Text) => ("score" Signed, "reached_us" Number)
        Absent With(0), due None, order Some(Ordered { score: Some("score"), reached: "reached_us", only: None });
    /// The last number given of a sequence. Stores write it themselves when numbers are taken; it is a row like any other to
    /// who lists and copies all of them.
    Sequence = b'Q' "sequence" in "sequence"
        ("home" Text, "name" Text) => ("last" Number)
        Absent With(0), due None;
    /// A ticket of a room, which has a place in the room's queue while it waits.
    Ticket = b'k' "ticket" in "room"
        ("room" Text, "seq" Number) =>
        ("subject" Text, "token" Text, "state" Text, "joined_at" Time, "alive_until" Time)
        Absent With(0), due None, order Some(Ordered { score: None, reached: "seq", only: Some(("state", "WAITING")) });
    /// Which ticket a subject's token stands for.
    Entry = b'y' "entry" in "room"
        ("room" Text, "subject" Text, "token" Text) => ("seq" Number)
        Absent With(0), due None;
}

use Type::Day;

impl RowKind {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Whether it is no row but a total that is listed as one.
    pub fn is_total(self) -> bool {
        self == Self::Counter
    }

    /// Whether its rows ever stand in an order.
    pub fn stands(self) -> bool {
        self.declared().order.is_some()
    }

    /// Whether a place in an order says all that a row of this kind holds.
    pub fn is_its_place(self) -> bool {
        let declared = self.declared();
        declared
            .order
            .is_some_and(|by| declared.columns.iter().all(|(name, _)| by.score == Some(name) || by.reached == *name))
    }

    /// What it is made of.
    pub fn declared(self) -> &'static Declared {
        &DECLARED[self as usize]
    }
}

impl Key {
    /// What kind of row it names.
    pub fn kind(&self) -> RowKind {
        match self {
            Self::Edge(_) => RowKind::Edge,
            Self::Object(_) => RowKind::Object,
            Self::Subject(_) => RowKind::Subject,
            Self::Replay(_) => RowKind::Replay,
            Self::Job(_) => RowKind::Job,
            Self::ApiKey(_) => RowKind::ApiKey,
            Self::Names => RowKind::Names,
            Self::Counter(_) => RowKind::Counter,
            Self::Touched(_) => RowKind::Touched,
            Self::Unique(_) => RowKind::Unique,
            Self::Limit(_) => RowKind::Limit,
            Self::Sheet(_) => RowKind::Sheet,
            Self::Day(..) => RowKind::Day,
            Self::Chunk(_) => RowKind::Chunk,
            Self::Attendee(..) => RowKind::Attendee,
            Self::Board(_) => RowKind::Board,
            Self::Score(_) => RowKind::Score,
            Self::Sequence(_) => RowKind::Sequence,
            Self::Ticket(_) => RowKind::Ticket,
            Self::Entry(_) => RowKind::Entry,
        }
    }
}
