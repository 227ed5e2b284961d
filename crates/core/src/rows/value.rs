//! Values as cells, and back: so that a key or a row only has to say in which order its fields stand.

use std::borrow::Cow;

use super::cell::{Cell, Cells};
use crate::day::Day;
use crate::id::{KeyId, Name, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::time::{Stamp, Timestamp};

/// A value that is one cell.
pub(crate) trait Value: Sized {
    /// As it is kept.
    fn cell(&self) -> Cell<'_>;

    /// Reads it back; nothing where the cell holds something else.
    fn from_cell(cell: Cell<'_>) -> Option<Self>;
}

/// A value that is some cells, one after the other: see [`columns`].
pub(crate) trait Columns: Sized {
    /// Its cells, in order.
    fn put<'a>(&'a self, put: &mut impl FnMut(Cell<'a>));

    /// Reads it back.
    fn take(from: &mut Cells<'_>) -> Option<Self>;
}

impl<T: Value> Columns for T {
    fn put<'a>(&'a self, put: &mut impl FnMut(Cell<'a>)) {
        put(self.cell());
    }

    fn take(from: &mut Cells<'_>) -> Option<Self> {
        T::from_cell(from.next()?)
    }
}

impl<A: Columns, B: Columns> Columns for (A, B) {
    fn put<'a>(&'a self, put: &mut impl FnMut(Cell<'a>)) {
        self.0.put(put);
        self.1.put(put);
    }

    fn take(from: &mut Cells<'_>) -> Option<Self> {
        Some((A::take(from)?, B::take(from)?))
    }
}

/// The only one of its kind: its key says nothing, and is a column all the same.
impl Value for () {
    fn cell(&self) -> Cell<'_> {
        Cell::text("")
    }

    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        matches!(cell, Cell::Text(_)).then_some(())
    }
}

impl<T: Value> Value for Option<T> {
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, T::cell)
    }

    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if cell == Cell::Null { Some(None) } else { T::from_cell(cell).map(Some) }
    }
}

/// What a value is as a cell, and how it is read from the same one.
macro_rules! values {
    ($($type:ty: $case:ident, $value:ident => $as_cell:expr, $held:ident => $read:expr;)+) => {
        $(impl Value for $type {
            fn cell(&self) -> Cell<'_> {
                let $value = self;
                Cell::$case($as_cell)
            }

            fn from_cell(cell: Cell<'_>) -> Option<Self> {
                if let Cell::$case($held) = cell { $read } else { None }
            }
        })+
    };
}

values! {
    String: Text, text => Cow::Borrowed(text), held => Some(held.into_owned());
    Name: Text, name => Cow::Borrowed(name.as_str()), held => Self::new(&held).ok();
    ObjectId: Text, id => Cow::Borrowed(id.as_str()), held => Self::new(&held).ok();
    SubjectId: Text, id => Cow::Borrowed(id.as_str()), held => Self::new(&held).ok();
    KeyId: Text, id => Cow::Borrowed(id.as_str()), held => Self::new(&held).ok();
    u64: Number, number => *number, held => Some(held);
    Stamp: Number, stamp => stamp.0, held => Some(Self(held));
    i64: Signed, number => *number, held => Some(held);
    bool: Flag, flag => *flag, held => Some(held);
    Day: Day, day => *day, held => Some(held);
    Timestamp: Time, time => *time, held => Some(held);
    Vec<u64>: Numbers, numbers => Cow::Borrowed(numbers), held => Some(held.into_owned());
    Vec<Timestamp>: Times, times => Cow::Borrowed(times), held => Some(held.into_owned());
}

/// Values that are kept as JSON.
macro_rules! documents {
    ($($type:ty),+ $(,)?) => {
        $(impl $crate::rows::Value for $type {
            fn cell(&self) -> $crate::rows::Cell<'_> {
                $crate::rows::Cell::json(self)
            }

            fn from_cell(cell: $crate::rows::Cell<'_>) -> Option<Self> {
                if let $crate::rows::Cell::Json(text) = cell { serde_json::from_str(&text).ok() } else { None }
            }
        })+
    };
}
pub(crate) use documents;

documents!(Meta);

/// Values that are kept as their name, or as another text: how it is made, and how it is read.
macro_rules! texts {
    ($($type:ty: $text:expr, $read:expr);+ $(;)?) => {
        $(impl $crate::rows::Value for $type {
            fn cell(&self) -> $crate::rows::Cell<'_> {
                $crate::rows::Cell::Text($text(*self).into())
            }

            fn from_cell(cell: $crate::rows::Cell<'_>) -> Option<Self> {
                if let $crate::rows::Cell::Text(text) = cell { $read(&text) } else { None }
            }
        })+
    };
}
pub(crate) use texts;

/// Values that are kept as bytes of their own making.
macro_rules! in_bytes {
    ($type:ty) => {
        impl $crate::rows::Value for $type {
            fn cell(&self) -> $crate::rows::Cell<'_> {
                $crate::rows::Cell::Bytes(self.to_bytes().into())
            }

            fn from_cell(cell: $crate::rows::Cell<'_>) -> Option<Self> {
                if let $crate::rows::Cell::Bytes(bytes) = cell { Self::from_bytes(&bytes) } else { None }
            }
        }
    };
}
pub(crate) use in_bytes;

/// A key or a row whose fields are its columns, in this order. One that is left out does not compile.
macro_rules! columns {
    ($type:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::rows::Columns for $type {
            fn put<'a>(&'a self, put: &mut impl FnMut($crate::rows::Cell<'a>)) {
                $($crate::rows::Columns::put(&self.$field, put);)+
            }

            fn take(from: &mut $crate::rows::Cells<'_>) -> Option<Self> {
                Some(Self { $($field: $crate::rows::Columns::take(from)?),+ })
            }
        }
    };
}
pub(crate) use columns;
