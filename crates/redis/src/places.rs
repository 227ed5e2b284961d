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
#[path = "places_tests.rs"]
mod tests;
