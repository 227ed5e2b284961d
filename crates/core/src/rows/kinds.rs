//! What a kind of row says of itself, in its capability's `rows.rs`: the one place that knows it.
//!
//! The list of kinds (`crate::capability`) makes [`Key`], `Row` and `RowKind` and asks each kind here. What belongs together is one
//! value, so that no half of it can be forgotten; what a kind leaves out it never does.

use super::value::Columns;
use super::{Declared, Key, OrderKey, Place, TotalKey};
use crate::due::WhenDue;
use crate::verify::Audit;

/// What the list says of a kind.
pub(crate) trait Typed: Sized {
    /// What names its rows.
    type Key: Columns;
    /// What they hold.
    type Row: Columns;

    /// Those of the keys that name rows of this kind.
    fn keys(keys: Vec<Key>) -> Vec<Self::Key>;
}

/// What a kind of row says of itself.
pub(crate) trait Kind: Typed {
    /// How stores lay it out: see [`super::declare`].
    const DECLARED: Declared;
    /// When its rows are due, and what is done then.
    const DUE: Option<WhenDue<Self>> = None;
    /// In which order its rows stand, and where.
    const ORDER: Option<InOrder<Self>> = None;
    /// What its rows say that other rows say too.
    const AUDIT: Option<Audit<Self>> = None;

    /// The totals that a row adds to, and by how much.
    fn counts(_key: &Self::Key, _row: &Self::Row, _add: impl FnMut(TotalKey, i64)) {}
}

/// In which order rows of a kind stand, and where.
pub(crate) struct InOrder<K: Typed> {
    /// The order in which it stands when it stands in any: all of its key but the last part.
    pub(crate) order: fn(&K::Key) -> OrderKey,
    /// Where it stands, while it does.
    pub(crate) place: fn(&K::Key, &K::Row) -> Option<Place>,
    /// The row at a place, where that says all of it.
    pub(crate) row: Option<fn(&Place) -> K::Row>,
}

/// Makes keys, rows and kinds from the one list of them: what names a row unless it is the only one, what it holds, and how a row is
/// taken as what it is.
macro_rules! kinds {
    (@type) => { () };
    (@type $key:ty) => { $key };
    (@bind $name:ident $key:ty) => { $name };
    (@ref) => { &() };
    (@ref $name:ident $key:ty) => { $name };
    (@owned) => { () };
    (@owned $name:ident $key:ty) => { $name };
    (@read $case:ident $from:ident) => {
        <() as $crate::rows::Columns>::take($from).map(|()| Self::$case)
    };
    (@read $case:ident $from:ident $key:ty) => {
        <$key as $crate::rows::Columns>::take($from).map(Self::$case)
    };
    ($($(#[$doc:meta])* $case:ident $(($key:ty))? => $row:ty, $by_ref:ident, $owned:ident;)+) => {
        /// Names a row.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
        pub enum Key {
            $($(#[$doc])* $case $(($key))?,)+
        }

        /// The value of a row.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Row {
            $($(#[$doc])* $case($row),)+
        }

        /// The kinds of rows that there are. Those that relations need come first.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum RowKind {
            $($(#[$doc])* $case,)+
        }

        impl RowKind {
            /// All of them.
            pub const ALL: [Self; [$(stringify!($case)),+].len()] = [$(Self::$case),+];
        }

        pub(crate) static DECLARED: [Declared; RowKind::COUNT] = [$(<kind::$case as Kind>::DECLARED),+];

        /// Each kind as a type, for what it says of itself.
        pub(crate) mod kind {
            $(pub(crate) enum $case {})+
        }

        $(impl Typed for kind::$case {
            type Key = kinds!(@type $($key)?);
            type Row = $row;

            fn keys(keys: Vec<Key>) -> Vec<Self::Key> {
                let own = |key| {
                    if let Key::$case $((kinds!(@bind key $key)))? = key { Some(kinds!(@owned $(key $key)?)) } else { None }
                };
                keys.into_iter().filter_map(own).collect()
            }
        })+

        impl Key {
            /// What kind of row it names.
            pub fn kind(&self) -> RowKind {
                match self {
                    $(Self::$case { .. } => RowKind::$case,)+
                }
            }

            /// The values of the key's columns, in order.
            pub fn cells<'a>(&'a self, mut put: impl FnMut(Cell<'a>)) {
                match self {
                    $(Self::$case $((kinds!(@bind key $key)))? => Columns::put(kinds!(@ref $(key $key)?), &mut put),)+
                }
            }

            /// Reads a key back.
            pub fn from_cells(kind: RowKind, from: &mut Cells<'_>) -> Option<Self> {
                match kind {
                    $(RowKind::$case => kinds!(@read $case from $($key)?),)+
                }
            }

            /// The order in which its row stands, when it stands in any.
            pub fn order(&self) -> Option<OrderKey> {
                match self {
                    $(Self::$case $((kinds!(@bind key $key)))? => {
                        <kind::$case as Kind>::ORDER.map(|by| (by.order)(kinds!(@ref $(key $key)?)))
                    })+
                }
            }
        }

        impl Row {
            $(
                #[doc = concat!("As a row of [`Row::", stringify!($case), "`].")]
                pub fn $by_ref(&self) -> Option<&$row> {
                    if let Self::$case(row) = self { Some(row) } else { None }
                }

                /// The same, taken.
                pub fn $owned(self) -> Option<$row> {
                    if let Self::$case(row) = self { Some(row) } else { None }
                }
            )+

            /// What kind of row it is.
            pub fn kind(&self) -> RowKind {
                match self {
                    $(Self::$case(_) => RowKind::$case,)+
                }
            }

            /// The values of the columns beside the key, in order.
            pub fn cells<'a>(&'a self, mut put: impl FnMut(Cell<'a>)) {
                match self {
                    $(Self::$case(row) => Columns::put(row, &mut put),)+
                }
            }

            /// Reads a row back.
            pub fn from_cells(kind: RowKind, from: &mut Cells<'_>) -> Option<Self> {
                match kind {
                    $(RowKind::$case => Columns::take(from).map(Self::$case),)+
                }
            }

            /// When something is to be done about it because time has passed. 0 is at once, and nothing else is before 1: an open
            /// job is due at once, one that has ended from then on.
            pub fn due(&self) -> Option<Timestamp> {
                match self {
                    $(Self::$case(row) => <kind::$case as Kind>::DUE.map(|due| due.of(row)),)+
                }
            }

            /// The totals that it adds to, and by how much.
            pub fn counts(&self, key: &Key, add: impl FnMut(TotalKey, i64)) {
                match (self, key) {
                    $((Self::$case(row), Key::$case $((kinds!(@bind key $key)))?) => {
                        <kind::$case as Kind>::counts(kinds!(@ref $(key $key)?), row, add);
                    })+
                    // A row under the key of another.
                    ($(Self::$case(_))|+, _) => {}
                }
            }

            /// In which order it stands, and where: while it does.
            pub fn stands(&self, key: &Key) -> Option<(OrderKey, Place)> {
                match (self, key) {
                    $((Self::$case(row), Key::$case $((kinds!(@bind key $key)))?) => {
                        let (by, key) = (<kind::$case as Kind>::ORDER?, kinds!(@ref $(key $key)?));
                        (by.place)(key, row).map(|place| ((by.order)(key), place))
                    })+
                    ($(Self::$case(_))|+, _) => None,
                }
            }

            /// The row of a kind that stands at a place, where the place says all of it.
            pub(crate) fn at(kind: RowKind, place: &Place) -> Option<Self> {
                match kind {
                    $(RowKind::$case => {
                        <kind::$case as Kind>::ORDER.and_then(|by| by.row).map(|row| Self::$case(row(place)))
                    })+
                }
            }

            /// What it tells of rows that are read after it, as long as all of them are read.
            pub(crate) fn tells(&self, key: &Key, known: &mut Known) {
                match (self, key) {
                    $((Self::$case(row), Key::$case $((kinds!(@bind key $key)))?) => {
                        if let Some(tells) = <kind::$case as Kind>::AUDIT.and_then(|audit| audit.tells) {
                            tells(kinds!(@ref $(key $key)?), row, known);
                        }
                    })+
                    ($(Self::$case(_))|+, _) => {}
                }
            }

            /// What it claims of facts.
            pub(crate) fn claims(&self, key: &Key, known: &Known, claims: &mut Claims<'_>) {
                match (self, key) {
                    $((Self::$case(row), Key::$case $((kinds!(@bind key $key)))?) => {
                        if let Some(makes) = <kind::$case as Kind>::AUDIT.and_then(|audit| audit.claims) {
                            makes(kinds!(@ref $(key $key)?), row, known, claims);
                        }
                    })+
                    ($(Self::$case(_))|+, _) => {}
                }
            }

            /// What it is the owner of, for facts that do not name it.
            pub(crate) fn owns(&self, key: &Key) -> Option<Owner> {
                match (self, key) {
                    $((Self::$case(row), Key::$case $((kinds!(@bind key $key)))?) => {
                        let owns = <kind::$case as Kind>::AUDIT.and_then(|audit| audit.owns)?;
                        Some(owns(kinds!(@ref $(key $key)?), row))
                    })+
                    ($(Self::$case(_))|+, _) => None,
                }
            }
        }

        impl RowKind {
            /// How rows of the kind are settled; nothing where they are never due.
            pub(crate) fn settling(self) -> Option<Settling> {
                match self {
                    $(Self::$case => <kind::$case as Kind>::DUE.map(|due| due.settling),)+
                }
            }

            /// Whether rows of this kind imply anything beyond themselves, or tell what others do.
            pub fn implies(self) -> bool {
                match self {
                    $(Self::$case => <kind::$case as Kind>::AUDIT.is_some(),)+
                }
            }

            /// Whether its rows own what a fact may be about without naming them.
            pub(crate) fn is_owner(self) -> bool {
                match self {
                    $(Self::$case => <kind::$case as Kind>::AUDIT.is_some_and(|audit| audit.owns.is_some()),)+
                }
            }
        }
    };
}
pub(crate) use kinds;
