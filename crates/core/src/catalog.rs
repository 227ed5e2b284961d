//! What is declared: every relation, counter, unique count, sheet, board and limit, and how each behaves.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::condition::Condition;
use crate::error::Refusal;
use crate::id::Name;

pub use crate::attendance::SheetDef;
pub use crate::board::{BoardDef, Ties};
pub use crate::counter::CounterDef;
pub use crate::limit::{Algorithm, LimitDef, Per, RateLimit};
pub use crate::relation::{Conditions, ReadPolicy, RelationDef};
pub use crate::room::{RoomDef, RoomSettings};
pub use crate::unique::UniqueDef;

/// Everything that is declared.
#[derive(Clone, Debug)]
pub struct Catalog {
    relations: BTreeMap<Name, Arc<RelationDef>>,
    counters: BTreeMap<Name, Arc<CounterDef>>,
    uniques: BTreeMap<Name, Arc<UniqueDef>>,
    sheets: BTreeMap<Name, Arc<SheetDef>>,
    boards: BTreeMap<Name, Arc<BoardDef>>,
    limits: BTreeMap<Name, Arc<LimitDef>>,
    rooms: BTreeMap<Name, Arc<RoomDef>>,
    /// How long an idempotency key is remembered.
    pub idempotency_ttl_ms: u64,
    /// How long a job that has ended can be asked for.
    pub jobs_ttl_ms: u64,
}

/// How long a job that has ended can be asked for by default: a week.
pub const JOBS_TTL_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// How long an idempotency key is remembered by default: a day.
pub const IDEMPOTENCY_TTL_MS: u64 = 24 * 60 * 60 * 1000;

impl Default for Catalog {
    /// What works without any configuration.
    fn default() -> Self {
        let name = |text| Name::new(text).expect("built-in names are valid");
        let mut catalog = Self::empty();
        for (relation, read) in
            [("like", ReadPolicy::Public), ("bookmark", ReadPolicy::Own), ("favorite", ReadPolicy::Own)]
        {
            catalog.declare(RelationDef::new(name(relation), read));
        }
        catalog.declare_counter(name("views"), CounterDef::new(name("views")));
        catalog.declare_unique(name("dau"), UniqueDef::new(name("dau")));
        catalog.declare_sheet(name("daily"), SheetDef::new(name("daily")));
        catalog.declare_board(name("points"), BoardDef::new(name("points")));
        catalog
    }
}

impl Catalog {
    /// One in which nothing is declared.
    pub fn empty() -> Self {
        Self {
            relations: BTreeMap::new(),
            counters: BTreeMap::new(),
            uniques: BTreeMap::new(),
            sheets: BTreeMap::new(),
            boards: BTreeMap::new(),
            limits: BTreeMap::new(),
            rooms: BTreeMap::new(),
            idempotency_ttl_ms: IDEMPOTENCY_TTL_MS,
            jobs_ttl_ms: JOBS_TTL_MS,
        }
    }

    /// Adds a relation, or replaces the one of the same name.
    pub fn declare(&mut self, relation: RelationDef) {
        self.relations.insert(relation.name.clone(), Arc::new(relation));
    }

    /// The relation of this name, or a refusal with the nearest name there is.
    pub fn relation(&self, name: &Name) -> Result<&Arc<RelationDef>, Refusal> {
        self.relations.get(name).ok_or_else(|| Refusal::RelationNotFound {
            name: name.clone(),
            near: nearest(name.as_str(), self.relations.keys().map(Name::as_str)).and_then(|near| Name::new(near).ok()),
        })
    }

    /// The limit of this name, whether it is declared by itself or with what has to pass it.
    pub fn limit_named(&self, name: &str) -> Option<&LimitDef> {
        let alone = self.limits().map(|limit| &**limit);
        let with = self.relations.values().filter_map(|def| def.passes()).chain(self.passed());
        alone.chain(with.map(|limit| &*limit.limit)).find(|limit| limit.name == name)
    }

    /// Every declared relation, by name.
    pub fn relations(&self) -> impl Iterator<Item = &Arc<RelationDef>> {
        self.relations.values()
    }

    /// Whether what may be read depends on the time.
    pub fn reads_by_time(&self) -> bool {
        self.relations.values().any(|relation| relation.when.read.as_ref().is_some_and(Condition::reads_now))
    }
}

/// Declaring and finding, the same for each: what people call it, its table in the configuration, and the code of a name that is not
/// declared.
macro_rules! declared {
    ($($(#[$doc:meta])* $what:ident $word:literal $table:literal $code:ident,
        $declare:ident, $find:ident, $all:ident, $def:ident;)*) => {
        /// What can be declared besides relations.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Declared {
            $($(#[$doc])* $what,)*
        }

        impl Declared {
            pub(crate) fn word(self) -> &'static str {
                match self {
                    $(Self::$what => $word,)*
                }
            }

            pub(crate) fn table(self) -> &'static str {
                match self {
                    $(Self::$what => $table,)*
                }
            }

            pub(crate) fn code(self) -> Code {
                match self {
                    $(Self::$what => Code::$code,)*
                }
            }
        }

        impl Catalog {
            /// The limits that are declared with what has to pass them, but for those of relations.
            fn passed(&self) -> impl Iterator<Item = &RateLimit> {
                std::iter::empty()$(.chain(self.$all.values().filter_map(|def| def.passes())))*
            }

            $(
                #[doc = concat!("Adds one of the ", stringify!($all), ", or replaces the one of the same name.")]
                pub fn $declare(&mut self, name: Name, def: $def) {
                    self.$all.insert(name, Arc::new(def));
                }

                #[doc = concat!("One of the ", stringify!($all), ", or a refusal with the nearest name there is.")]
                pub fn $find(&self, name: &Name) -> Result<&Arc<$def>, Refusal> {
                    find(&self.$all, name, Declared::$what)
                }

                #[doc = concat!("All ", stringify!($all), ", by name.")]
                pub fn $all(&self) -> impl Iterator<Item = &Arc<$def>> {
                    self.$all.values()
                }
            )*
        }
    };
}
declared! {
    /// A counter.
    Counter "counter" "counters" CounterNotFound, declare_counter, counter, counters, CounterDef;
    /// A unique count.
    Unique "unique count" "uniques" UniqueNotFound, declare_unique, unique, uniques, UniqueDef;
    /// An attendance sheet.
    Attendance "attendance sheet" "attendance" AttendanceNotFound, declare_sheet, sheet, sheets, SheetDef;
    /// A board.
    Board "board" "boards" BoardNotFound, declare_board, board, boards, BoardDef;
    /// A limit.
    Limit "limit" "limits" LimitNotFound, declare_limit, limit, limits, LimitDef;
    /// A room.
    Room "room" "rooms" RoomNotFound, declare_room, room, rooms, RoomDef;
}

fn find<'a, T>(all: &'a BTreeMap<Name, Arc<T>>, name: &Name, what: Declared) -> Result<&'a Arc<T>, Refusal> {
    all.get(name).ok_or_else(|| Refusal::NotDeclared {
        what,
        name: name.clone(),
        near: nearest(name.as_str(), all.keys().map(Name::as_str)).and_then(|near| Name::new(near).ok()),
    })
}

/// The candidate that differs from `word` by at most a third of its letters, and least.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(apart, _)| *apart <= word.chars().count().div_ceil(3))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replace = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_gets_a_hint() {
        let catalog = Catalog::default();
        let near = |name: &str| match catalog.relation(&Name::new(name).unwrap()) {
            Err(Refusal::RelationNotFound { near, .. }) => near.map(|near| near.to_string()),
            other => panic!("{other:?}"),
        };
        assert_eq!(near("lik").as_deref(), Some("like"));
        assert_eq!(near("favourite").as_deref(), Some("favorite"));
        assert_eq!(near("zebra"), None);
    }
}
