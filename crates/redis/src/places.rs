//! Where rows are kept, as they are declared in `tally_core::rows`, and how they are listed.
//!
//! A row is kept with its home, a part of its key, which is the tag and so the slot. If there is nothing else in the key, the
//! row has a key of its own; otherwise it is a field of a hash, by the last part of its key.

use tally_core::rows::{Cell, Cells, DUE_PARTITIONS, Declared, Home, Key, Number, OrderKey, RowKind};
use tally_engine::StoreError;

use crate::keys::Keys;
use crate::rows::unreadable;
use crate::slots;

/// Where a row that is one text lives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Under a key of its own.
    Key(String),
    /// In a field of a hash.
    Field(String, String),
}

impl Place {
    /// The key in Redis.
    pub(crate) fn home(self) -> String {
        match self {
            Self::Key(key) | Self::Field(key, _) => key,
        }
    }

    /// The field, if it is in one.
    pub(crate) fn field(self) -> Option<String> {
        match self {
            Self::Key(_) => None,
            Self::Field(_, field) => Some(field),
        }
    }
}

/// A number in a hash.
pub(crate) struct NumberAt {
    pub(crate) hash: String,
    pub(crate) field: String,
    /// How the hash is listed in its slot; numbers that are no rows are not.
    pub(crate) entry: Option<String>,
}

/// What an entry of a slot stands for.
pub(crate) enum Listed {
    /// A row with a key of its own.
    Row(Key),
    /// A hash of rows.
    Hash(Hash),
}

/// A hash of rows of one kind.
pub(crate) struct Hash {
    pub(crate) key: String,
    kind: RowKind,
    /// The parts of the rows' keys, but for the one that is the field.
    parts: Vec<String>,
    field: usize,
}

impl Hash {
    /// The key of the row in a field.
    pub(crate) fn key_of(&self, field: &str) -> Option<Key> {
        let mut parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        parts[self.field] = field;
        read_key(self.kind, &parts)
    }

    /// The order in which its rows stand, where they ever do.
    pub(crate) fn order(&self) -> Option<OrderKey> {
        let (_, columns) = self.kind.declared().key.split_last()?;
        let cells = columns.iter().zip(&self.parts).map(|((_, of), text)| Cell::from_text(*of, text));
        OrderKey::from_cells(self.kind, &mut Cells::new(cells.collect::<Option<_>>()?))
    }
}

fn texts(key: &Key) -> Vec<String> {
    key.to_cells().iter().map(Cell::to_string).collect()
}

fn read_key(kind: RowKind, parts: &[&str]) -> Option<Key> {
    let cells = kind.declared().key.iter().zip(parts).map(|((_, of), text)| Cell::from_text(*of, text));
    Key::from_cells(kind, &mut Cells::new(cells.collect::<Option<_>>()?))
}

/// The parts of a key beside its home: those that name the hash, and the one that is the field, if there is any.
fn beside(declared: &Declared, home: usize) -> (Vec<usize>, Option<usize>) {
    let mut others: Vec<usize> = (0..declared.key.len()).filter(|part| *part != home).collect();
    let field = others.pop();
    (others, field)
}

impl Keys {
    /// Where a row is. An edge is several things; whoever asks for one has dealt with it.
    pub(crate) fn place(&self, key: &Key) -> Place {
        let declared = key.kind().declared();
        let mut parts = texts(key);
        match declared.home {
            Home::With(home) => {
                let (names, field) = beside(declared, home);
                let at = self.hash_at(declared, &parts, home, &names);
                match field {
                    Some(field) => Place::Field(at, parts.swap_remove(field)),
                    None => Place::Key(at),
                }
            }
            Home::Spread => {
                let at = self.spread(declared, key.partition());
                Place::Field(at, serde_json::json!(parts).to_string())
            }
            Home::Store => Place::Field(self.of_store(declared), parts.join("\0")),
        }
    }

    fn hash_at(&self, declared: &Declared, parts: &[String], home: usize, names: &[usize]) -> String {
        let mut at = self.tagged(declared.name, &parts[home]);
        for name in names {
            at.push(':');
            at.push_str(&parts[*name]);
        }
        at
    }

    /// The hash of the rows of an order. It is kept with a part of its name, and an id in it is a field.
    pub(crate) fn hash_of(&self, order: &OrderKey) -> String {
        let declared = order.kind().declared();
        let parts: Vec<String> = order.to_cells().iter().map(Cell::to_string).collect();
        match declared.home {
            Home::With(home) => self.hash_at(declared, &parts, home, &beside(declared, home).0),
            // A kind whose rows stand in an order is kept with it.
            Home::Spread | Home::Store => self.of_store(declared),
        }
    }

    /// Rows that are spread are in a hash for each partition.
    fn spread(&self, declared: &Declared, partition: u8) -> String {
        format!("{}:{}:{{r{partition}}}", self.prefix, declared.name)
    }

    fn of_store(&self, declared: &Declared) -> String {
        format!("{}:{}:{{sys}}", self.prefix, declared.name)
    }

    /// The hashes of a kind whose rows are not kept with anything.
    pub(crate) fn hashes(&self, kind: RowKind) -> Vec<String> {
        let declared = kind.declared();
        match declared.home {
            Home::With(_) => Vec::new(),
            Home::Spread => (0..DUE_PARTITIONS).map(|part| self.spread(declared, part)).collect(),
            Home::Store => vec![self.of_store(declared)],
        }
    }

    /// Where a total is kept as a number that rows can be decided on.
    pub(crate) fn number(&self, number: &Number<'_>) -> NumberAt {
        let (home, field) = match number.with_key {
            true => (&*number.key, number.name.as_str()),
            false => (number.name.as_str(), &*number.key),
        };
        let entry = number.listed.map(|kind| format!("{}{home}", char::from(kind.declared().letter)));
        NumberAt { hash: self.tagged(number.table, home), field: field.to_owned(), entry }
    }

    /// Rows of a kind and a partition by when they are due, in one slot or in all.
    pub(crate) fn due(&self, kind: RowKind, part: u16, partition: u8) -> String {
        format!("{}:due:{{{}}}:{}:{partition}", self.prefix, slots::tag(part), kind.declared().name)
    }

    /// Where rows of a kind and a partition may be due, as far as that is known without a look at the slots that are used.
    pub(crate) fn due_parts(&self, kind: RowKind, partition: u8, used: &[u16]) -> Vec<u16> {
        let declared = kind.declared();
        match declared.home {
            _ if !self.slots => vec![0],
            // Slots go by the same number as partitions.
            Home::With(_) => {
                used.iter().copied().filter(|slot| slot % u16::from(DUE_PARTITIONS) == u16::from(partition)).collect()
            }
            Home::Spread => vec![self.part(&self.spread(declared, partition))],
            Home::Store => vec![self.part(&self.of_store(declared))],
        }
    }

    /// The kind of the rows of an entry.
    pub(crate) fn kind_of(&self, entry: &str) -> Option<RowKind> {
        let letter = entry.as_bytes().first()?;
        RowKind::ALL.into_iter().find(|kind| kind.declared().letter == *letter)
    }

    /// Reads an entry of a slot back.
    pub(crate) fn listed(&self, entry: &str) -> Result<Listed, StoreError> {
        self.read_entry(entry).ok_or_else(|| unreadable(entry))
    }

    fn read_entry(&self, entry: &str) -> Option<Listed> {
        let (letter, rest) = entry.split_at_checked(1)?;
        let kind = RowKind::ALL.into_iter().find(|kind| [kind.declared().letter] == letter.as_bytes())?;
        let declared = kind.declared();
        let Home::With(home) = declared.home else { return None };
        let (names, field) = beside(declared, home);
        let mut parts = vec![String::new(); declared.key.len()];
        let words: Vec<&str> = rest.splitn(names.len() + 1, '\0').collect();
        let (last, before) = words.split_last()?;
        parts[home] = (*last).to_owned();
        for (name, word) in names.iter().zip(before) {
            parts[*name] = (*word).to_owned();
        }
        Some(match field {
            Some(field) => Listed::Hash(Hash { key: self.hash_at(declared, &parts, home, &names), kind, parts, field }),
            None => Listed::Row(read_key(kind, &parts.iter().map(String::as_str).collect::<Vec<_>>())?),
        })
    }
}

/// The key of a row in a hash that [`Keys::hashes`] gives.
pub(crate) fn key_in(kind: RowKind, field: &str) -> Option<Key> {
    match kind.declared().home {
        Home::With(_) => None,
        Home::Spread => {
            let parts: Vec<String> = serde_json::from_str(field).ok()?;
            read_key(kind, &parts.iter().map(String::as_str).collect::<Vec<_>>())
        }
        Home::Store => due_key(kind, field),
    }
}

/// How a row is listed in its slot, where it is kept with something. Rows in one hash share an entry. Only what comes last may
/// hold anything.
pub(crate) fn entry_of(key: &Key) -> Option<String> {
    let declared = key.kind().declared();
    let Home::With(home) = declared.home else { return None };
    let parts = texts(key);
    let mut entry = String::from(char::from(declared.letter));
    for name in beside(declared, home).0 {
        entry.push_str(&parts[name]);
        entry.push('\0');
    }
    entry.push_str(&parts[home]);
    Some(entry)
}

/// How a row stands in the list of those that are due: ties are then in the order of keys. Only what comes last may hold
/// anything.
pub(crate) fn due_member(key: &Key) -> String {
    texts(key).join("\0")
}

pub(crate) fn due_key(kind: RowKind, member: &str) -> Option<Key> {
    read_key(kind, &member.splitn(kind.declared().key.len(), '\0').collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use tally_core::rows::{
        BoardKey, ChunkKey, CountKey, JobId, LimitKey, ReplayKey, ScoreKey, TicketKey, TotalKey, TotalOf,
    };
    use tally_core::time::Timestamp;
    use tally_core::{Day, KeyId, Name, ObjectId, SubjectId};

    use super::*;
    use crate::slots::slot_of;

    fn keys() -> Keys {
        Keys::new("tally", true)
    }

    fn every_kind() -> Vec<(Key, &'static str, Option<&'static str>)> {
        let name = |text: &str| Name::new(text).unwrap();
        let (daily, alice) = (name("daily"), SubjectId::new("alice").unwrap());
        let views = CountKey { name: name("views"), key: KeyId::new("post:}").unwrap() };
        let board = BoardKey { board: name("weekly"), season: Timestamp(1_700_000_000_000), levels: true };
        let replay = ReplayKey { caller: "key:a".into(), key: "k\"1".into() };
        vec![
            (Key::Object(ObjectId::new("post:42").unwrap()), "tally:object:{post:42}", None),
            (Key::Subject(alice.clone()), "tally:subject:{alice}", None),
            (Key::Replay(replay), "tally:replay:{r26}", Some("[\"key:a\",\"k\\\"1\"]")),
            (Key::Job(JobId(7)), "tally:job:{sys}", Some("job_0000000000000007")),
            (Key::ApiKey("k1".into()), "tally:api_key:{sys}", Some("k1")),
            (Key::Names, "tally:declared:{sys}", Some("")),
            (Key::Counter(views.clone()), "tally:counter:{post:}}", Some("views")),
            (Key::Touched(views.clone()), "tally:counter_last:{post:}}", Some("views")),
            (Key::Unique(views), "tally:unique_count:{post:}}", Some("views")),
            (
                Key::Limit(LimitKey { name: "posting".into(), key: String::new() }),
                "tally:rate_limit:{%}",
                Some("posting"),
            ),
            (Key::Sheet(daily.clone()), "tally:attendance_sheet:{daily}", None),
            (Key::Day(daily.clone(), Day(0)), "tally:attendance_day:{daily}", Some("1970-01-01")),
            (
                Key::Chunk(ChunkKey { sheet: daily.clone(), day: Day(0), chunk: 9 }),
                "tally:attendance_chunk:{daily}:1970-01-01",
                Some("9"),
            ),
            (Key::Attendee(daily, alice.clone()), "tally:attendee:{daily}", Some("alice")),
            (Key::Board(name("weekly")), "tally:board:{weekly}", None),
            (
                Key::Score(ScoreKey { board, member: alice }),
                "tally:score:{weekly}:2023-11-14T22:13:20.000Z:true",
                Some("alice"),
            ),
            (
                Key::Ticket(TicketKey { room: name("sale"), seq: tally_core::rows::Seq::Given(42) }),
                "tally:ticket:{sale}",
                Some("42"),
            ),
        ]
    }

    #[test]
    fn rows_are_where_the_plan_says_and_are_found_again() {
        let keys = keys();
        for (key, at, field) in every_kind() {
            let place = keys.place(&key);
            assert_eq!((place.clone().home().as_str(), place.field().as_deref()), (at, field));
            assert_eq!(due_key(key.kind(), &due_member(&key)).as_ref(), Some(&key));
            if let Some(order) = key.order() {
                assert_eq!(keys.hash_of(&order), at);
                assert_eq!(order.key(field.unwrap()).as_ref(), Some(&key));
                assert_eq!(slot_of(&keys.order(&order)), slot_of(at));
            }
            match entry_of(&key).map(|entry| keys.listed(&entry).unwrap()) {
                Some(Listed::Row(listed)) => assert_eq!(listed, key),
                Some(Listed::Hash(hash)) => {
                    assert_eq!((hash.key.as_str(), hash.key_of(field.unwrap())), (at, Some(key)));
                }
                None => {
                    assert!(keys.hashes(key.kind()).iter().any(|hash| hash == at), "{at}");
                    assert_eq!(key_in(key.kind(), field.unwrap()), Some(key));
                }
            }
        }
    }

    #[test]
    fn numbers_stand_with_the_rows_that_go_with_them() {
        let keys = keys();
        let counter = CountKey { name: Name::new("views").unwrap(), key: KeyId::new("post:42").unwrap() };
        let total = TotalKey::Counter(counter.clone());
        let TotalOf::Number(number) = total.of() else { panic!("a counter is a number") };
        let at = keys.number(&number);
        assert_eq!(keys.place(&Key::Counter(counter.clone())), Place::Field(at.hash, at.field));
        assert_eq!(at.entry, entry_of(&Key::Counter(counter)));
        let sheet = Name::new("daily").unwrap();
        let present = TotalKey::Present { sheet: sheet.clone(), day: Day(0) };
        let TotalOf::Number(number) = present.of() else { panic!("a number") };
        let at = keys.number(&number);
        assert_eq!((at.hash.as_str(), at.field.as_str()), ("tally:attendance_present:{daily}", "1970-01-01"));
        assert_eq!(slot_of(&at.hash), slot_of(&keys.place(&Key::Sheet(sheet)).home()));
    }
}
