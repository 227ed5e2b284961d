//! What rows imply beyond themselves: everything that is said in two places, by the rows that say it and the rows behind that.
//!
//! A row claims what it says of a fact and what it counts towards it. Over the whole store both sums are the same for every fact;
//! where they are not, something is wrong. Each capability has its own facts, in its `audit.rs`.

use std::collections::HashMap;

use crate::capability::{counted_of_room, present};
use crate::id::Name;
use crate::rows::{DriftItem, Key, OrderKey, RowKind, TotalKey, Typed};
use crate::view::{Stop, View};

pub use crate::capability::Fact;

/// What the facts of a capability have to say of themselves.
pub(crate) trait Said {
    /// What both sides say, of rows as of one moment.
    fn look(&self, who: Option<&Key>, view: &mut View) -> Result<Judged, Stop>;

    /// Puts right what says it. Says whether there was anything to put right.
    fn put_right(&self, who: Option<&Key>, view: &mut View) -> Result<bool, Stop>;

    /// For people.
    fn words(&self, judged: Judged, who: Option<&Key>) -> String;

    /// Whether it is put right before all that do not come first: others are put right by way of it.
    fn comes_first(&self) -> bool {
        false
    }

    /// Whether another fact cannot be looked at as long as this one is wrong.
    fn unsettles(&self, _other: &Self) -> bool {
        false
    }

    /// The order by way of which it is looked at: as long as that is wrong, so is what is seen.
    fn order(&self) -> Option<OrderKey> {
        None
    }

    /// The total that it is, where it is one.
    fn total(&self) -> Option<TotalKey> {
        None
    }

    /// Whose number it is about, where it does not name the row.
    fn owner(&self) -> Option<Owner> {
        None
    }

    /// That row, where the number alone tells it.
    fn who(&self) -> Option<Key> {
        None
    }
}

/// A number that one row of a kind has: facts may be about it without naming the row.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Owner {
    /// The kind of the row.
    pub(crate) kind: RowKind,
    /// Among those of this name.
    pub(crate) within: Name,
    /// The number.
    pub(crate) number: u64,
}

/// What rows of a kind say that other rows say too.
#[expect(clippy::type_complexity, reason = "each is told by its arguments")]
pub(crate) struct Audit<K: Typed> {
    /// What a row claims of facts.
    pub(crate) claims: Option<fn(&K::Key, &K::Row, &Known, &mut Claims<'_>)>,
    /// What it tells of rows that are read after it.
    pub(crate) tells: Option<fn(&K::Key, &K::Row, &mut Known)>,
    /// The number that it has.
    pub(crate) owns: Option<fn(&K::Key, &K::Row) -> Owner>,
}

impl<K: Typed> Audit<K> {
    /// None of them, for a kind to say what it has.
    pub(crate) const NOTHING: Self = Self { claims: None, tells: None, owns: None };
}

/// What is said of a fact, and what the rows behind it add up to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    /// What is said.
    pub said: i64,
    /// What it should be.
    pub counted: i64,
}

/// A fact of which both sides do not agree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// The fact.
    pub fact: Fact,
    /// Both sides.
    pub judged: Judged,
    /// The row that it is about, where the fact does not name it.
    pub who: Option<Key>,
}

/// Takes what a row claims: the fact, and both sides of it.
pub(crate) struct Claims<'a>(pub(crate) &'a mut dyn FnMut(Fact, Judged));

impl Claims<'_> {
    pub(crate) fn said(&mut self, fact: Fact, said: i64) {
        (self.0)(fact, Judged { said, counted: 0 });
    }

    pub(crate) fn counted(&mut self, fact: Fact, counted: i64) {
        (self.0)(fact, Judged { said: 0, counted });
    }
}

/// What rows that were read tell of those that are read after them.
#[derive(Default)]
pub struct Known {
    /// Boards, and whether their levels are counted.
    boards: HashMap<Name, bool>,
}

impl Known {
    /// Takes note of a board. Boards come before their scores, as in [`RowKind::ALL`].
    pub(crate) fn board(&mut self, board: &Name, dense: bool) {
        self.boards.insert(board.clone(), dense);
    }

    /// Whether the levels of a board are counted; nothing where it does not say.
    pub(crate) fn dense(&self, board: &Name) -> Option<bool> {
        self.boards.get(board).copied()
    }
}

impl TotalKey {
    /// The fact that a total is, where rows that are no edges stand behind it.
    pub(super) fn fact(&self) -> Option<Fact> {
        match self {
            Self::Present { sheet, day } => Some(present(sheet, *day)),
            Self::Room { room, count } => counted_of_room(room, *count),
            // Recounted with the edges; and nothing stands behind a counter.
            Self::Object { .. } | Self::Kind { .. } | Self::Subject { .. } | Self::Counter(_) => None,
        }
    }

    /// What is said of one that is off, for people.
    pub(crate) fn words(&self, judged: Judged) -> String {
        let item = DriftItem::new(self, judged.said, judged.counted);
        let of = item.object.unwrap_or_default();
        format!("the total of {} {of} says {}, and it is {}", item.relation, item.stored, item.counted)
    }
}

impl Wrong {
    /// For people.
    pub fn words(&self) -> String {
        self.fact.words(self.judged, self.who.as_ref())
    }
}

/// Makes the facts of all from a list of the capabilities that have some. What comes first there is put right first.
macro_rules! facts {
    ($($(#[$doc:meta])* $name:ident in $capability:ident,)+) => {
        /// Something that is said twice. A store needs to know nothing else of it.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Fact {
            $($(#[$doc])* $name($crate::$capability::Fact),)+
        }

        $(impl From<$crate::$capability::Fact> for Fact {
            fn from(fact: $crate::$capability::Fact) -> Self {
                Self::$name(fact)
            }
        })+

        impl Fact {
            /// What both sides say, of rows as of one moment. For stores that cannot read everything at one moment.
            pub fn look(&self, who: Option<&Key>, view: &mut View) -> Result<Judged, Stop> {
                match self {
                    $(Self::$name(fact) => fact.look(who, view),)+
                }
            }

            /// Whether another fact cannot be looked at as long as this one is wrong.
            pub fn unsettles(&self, other: &Self) -> bool {
                match (self, other) {
                    $((Self::$name(fact), Self::$name(other)) => fact.unsettles(other),)+
                    ($(Self::$name(_))|+, _) => false,
                }
            }

            /// The order by way of which it is looked at: as long as that is wrong, so is what is seen.
            pub fn order(&self) -> Option<OrderKey> {
                match self {
                    $(Self::$name(fact) => fact.order(),)+
                }
            }

            /// Whether it is put right before all that do not come first: others are put right by way of it.
            pub fn comes_first(&self) -> bool {
                match self {
                    $(Self::$name(fact) => fact.comes_first(),)+
                }
            }

            /// The total that it is, where it is one.
            pub fn total(&self) -> Option<TotalKey> {
                match self {
                    $(Self::$name(fact) => fact.total(),)+
                }
            }

            /// Puts right what says it. Says whether there was anything to put right.
            pub(crate) fn put_right(&self, who: Option<&Key>, view: &mut View) -> Result<bool, Stop> {
                match self {
                    $(Self::$name(fact) => fact.put_right(who, view),)+
                }
            }

            /// Whose number it is about, where it does not name the row.
            pub(crate) fn owner(&self) -> Option<Owner> {
                match self {
                    $(Self::$name(fact) => fact.owner(),)+
                }
            }

            /// That row, where the number alone tells it.
            pub(crate) fn who(&self) -> Option<Key> {
                match self {
                    $(Self::$name(fact) => fact.who(),)+
                }
            }

            /// For people.
            pub(crate) fn words(&self, judged: Judged, who: Option<&Key>) -> String {
                match self {
                    $(Self::$name(fact) => fact.words(judged, who),)+
                }
            }
        }
    };
}
pub(crate) use facts;
