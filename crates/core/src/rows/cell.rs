//! A row as a list of plain values, which every store can keep in its own idiom.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{IntoDeserializer, value};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::day::Day;
use crate::time::Timestamp;

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Text of any length.
    Text,
    /// A JSON document.
    Json,
    /// A number that is not negative.
    Number,
    /// A number that may be negative.
    Signed,
    /// A list of numbers that are not negative.
    Numbers,
    /// A time, to the millisecond.
    Time,
    /// A list of times.
    Times,
    /// Yes or no.
    Flag,
    /// A calendar date.
    Day,
    /// Bytes of any length.
    Bytes,
}

/// One value of a row. Any column but those of a key may hold [`Cell::Null`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cell<'a> {
    /// No value in this column.
    Null,
    /// See [`Type::Text`].
    Text(Cow<'a, str>),
    /// See [`Type::Json`].
    Json(Cow<'a, str>),
    /// See [`Type::Number`].
    Number(u64),
    /// A number that is not given yet, of those that the commit takes: see [`super::Seq::Taken`]. No store holds one.
    Taken(u32),
    /// See [`Type::Signed`].
    Signed(i64),
    /// See [`Type::Numbers`].
    Numbers(Cow<'a, [u64]>),
    /// See [`Type::Time`].
    Time(Timestamp),
    /// See [`Type::Times`].
    Times(Cow<'a, [Timestamp]>),
    /// See [`Type::Flag`].
    Flag(bool),
    /// See [`Type::Day`].
    Day(Day),
    /// See [`Type::Bytes`].
    Bytes(Cow<'a, [u8]>),
}

impl<'a> Cell<'a> {
    /// A text that is there already.
    pub fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// A document.
    pub fn json(value: &impl Serialize) -> Self {
        // Rows are maps with texts as keys, which never fails.
        Self::Json(Cow::Owned(serde_json::to_string(value).unwrap_or_default()))
    }

    /// What it holds; nothing of a null.
    pub fn of_type(&self) -> Option<Type> {
        Some(match self {
            Self::Null => return None,
            Self::Text(_) => Type::Text,
            Self::Json(_) => Type::Json,
            Self::Number(_) | Self::Taken(_) => Type::Number,
            Self::Signed(_) => Type::Signed,
            Self::Numbers(_) => Type::Numbers,
            Self::Time(_) => Type::Time,
            Self::Times(_) => Type::Times,
            Self::Flag(_) => Type::Flag,
            Self::Day(_) => Type::Day,
            Self::Bytes(_) => Type::Bytes,
        })
    }

    /// Reads a value as [`Serialize`] writes it.
    pub fn from_json(of: Type, text: &'a str) -> Option<Self> {
        if text == "null" {
            return Some(Self::Null);
        }
        Some(match of {
            Type::Text => Self::Text(Cow::Owned(serde_json::from_str(text).ok()?)),
            Type::Json => Self::Json(Cow::Borrowed(text)),
            Type::Number => Self::Number(text.parse().ok()?),
            Type::Signed => Self::Signed(text.parse().ok()?),
            Type::Numbers => Self::Numbers(Cow::Owned(serde_json::from_str(text).ok()?)),
            Type::Time => Self::Time(serde_json::from_str(text).ok()?),
            Type::Times => Self::Times(Cow::Owned(serde_json::from_str(text).ok()?)),
            Type::Flag => Self::Flag(text.parse().ok()?),
            Type::Day => Self::Day(serde_json::from_str(text).ok()?),
            Type::Bytes => Self::Bytes(Cow::Owned(STANDARD.decode(serde_json::from_str::<&str>(text).ok()?).ok()?)),
        })
    }

    /// Reads a value of a key as [`std::fmt::Display`] writes it.
    pub fn from_text(of: Type, text: &'a str) -> Option<Self> {
        Some(match of {
            Type::Text => Self::text(text),
            Type::Number => Self::Number(text.parse().ok()?),
            Type::Signed => Self::Signed(text.parse().ok()?),
            Type::Time => {
                Self::Time(Timestamp::deserialize(IntoDeserializer::<value::Error>::into_deserializer(text)).ok()?)
            }
            Type::Flag => Self::Flag(text.parse().ok()?),
            Type::Day => Self::Day(text.parse().ok()?),
            Type::Json | Type::Numbers | Type::Times | Type::Bytes => return None,
        })
    }
}

/// As part of a key that people read. Lists, documents and bytes are never part of a key.
impl std::fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::Signed(number) => number.fmt(f),
            Self::Time(time) => time.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Day(day) => day.fmt(f),
            Self::Null | Self::Taken(_) | Self::Json(_) | Self::Numbers(_) | Self::Times(_) | Self::Bytes(_) => Ok(()),
        }
    }
}

/// As JSON that people read: times and days as texts, bytes in base64.
impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Text(text) => to.serialize_str(text),
            Self::Json(text) => {
                let raw: &RawValue = serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
                raw.serialize(to)
            }
            Self::Number(number) => to.serialize_u64(*number),
            Self::Taken(_) => Err(serde::ser::Error::custom("a number that is not given yet cannot be kept")),
            Self::Signed(number) => to.serialize_i64(*number),
            Self::Numbers(numbers) => numbers.serialize(to),
            Self::Time(time) => time.serialize(to),
            Self::Times(times) => times.serialize(to),
            Self::Flag(flag) => to.serialize_bool(*flag),
            Self::Day(day) => day.serialize(to),
            Self::Bytes(bytes) => to.serialize_str(&STANDARD.encode(bytes)),
        }
    }
}

/// Takes the values of a row one after the other. Nothing where one is not what it should be.
pub struct Cells<'a>(std::vec::IntoIter<Cell<'a>>);

impl<'a> Cells<'a> {
    /// The values, those of the key first.
    pub fn new(cells: Vec<Cell<'a>>) -> Self {
        Self(cells.into_iter())
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Option<Cell<'a>> {
        self.0.next()
    }
}
