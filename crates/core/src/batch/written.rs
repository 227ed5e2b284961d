//! Commands as clients write them in a batch.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::bounded::{AtMost, BoundedMeta};
use crate::capability::Op;
use crate::command::Command;
use crate::day::Day;
use crate::error::Refusal;
use crate::id::{KeyId, Name, ObjectId, SubjectId};
use crate::limits::UNIQUE_MEMBERS_MAX;
use crate::operation::Operation;

/// An operation that a client may put in a batch, read from the fields that it takes.
pub(crate) trait InBatch: Operation {
    /// The fields that it takes. With any other it is refused.
    const TAKES: &'static [&'static str];

    /// Reads it: see [`need`].
    fn read(written: Written) -> Result<Self, Refusal>;
}

/// A command as a client writes it in a batch: one flat form for all, which reads faster than a
/// tagged enum and names the field that is missing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Written {
    /// What to do.
    op: Op,
    /// The relation: relate, unrelate, toggle.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) relation: Option<Name>,
    /// What is acted on: relate, unrelate, toggle.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) object: Option<ObjectId>,
    /// Who acts: relate, unrelate, toggle, attend.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) subject: Option<SubjectId>,
    /// Which kind, where the relation has `one_of`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) kind: Option<Name>,
    /// What to attach.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub(crate) meta: Option<BoundedMeta>,
    /// The counter: count.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) counter: Option<Name>,
    /// The unique count: observe.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) unique: Option<Name>,
    /// The sheet: attend.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) sheet: Option<Name>,
    /// The board: score.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) board: Option<Name>,
    /// The limit: take.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) limit: Option<Name>,
    /// What is counted or limited: count, observe, take.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) key: Option<KeyId>,
    /// How much: count, 1 by default; score.
    #[serde(default)]
    pub(crate) by: Option<i64>,
    /// The score itself: score.
    #[serde(default)]
    pub(crate) score: Option<i64>,
    /// Whose score: score.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) member: Option<SubjectId>,
    /// Who was seen: observe.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    pub(crate) members: Option<AtMost<String, UNIQUE_MEMBERS_MAX>>,
    /// The day, or `today`, which is also the default: attend.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub(crate) day: Option<WhichDay>,
    /// Whether the subject was there; true by default: attend.
    #[serde(default)]
    pub(crate) present: Option<bool>,
    /// How much to use, 1 by default: take.
    #[serde(default)]
    pub(crate) cost: Option<u64>,
}

/// A day, or none for today: written as in a path.
pub(crate) struct WhichDay(pub(crate) Option<Day>);

impl<'de> Deserialize<'de> for WhichDay {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        if text == "today" { Ok(Self(None)) } else { text.parse().map(|day| Self(Some(day))).map_err(D::Error::custom) }
    }
}

impl<'de> Deserialize<'de> for Command {
    /// Only from an object: a derived reader would take a list of the fields' values as well.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Written;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object with op and what it needs")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Written, A::Error> {
                Written::deserialize(MapAccessDeserializer::new(fields))
            }
        }

        from.deserialize_map(Fields)?.try_into().map_err(D::Error::custom)
    }
}

impl Written {
    /// The first field that is there and that the operation does not take.
    fn stray(&self) -> Option<&'static str> {
        let fields = [
            ("relation", self.relation.is_some()),
            ("object", self.object.is_some()),
            ("subject", self.subject.is_some()),
            ("kind", self.kind.is_some()),
            ("meta", self.meta.is_some()),
            ("counter", self.counter.is_some()),
            ("unique", self.unique.is_some()),
            ("sheet", self.sheet.is_some()),
            ("board", self.board.is_some()),
            ("limit", self.limit.is_some()),
            ("key", self.key.is_some()),
            ("by", self.by.is_some()),
            ("score", self.score.is_some()),
            ("member", self.member.is_some()),
            ("members", self.members.is_some()),
            ("day", self.day.is_some()),
            ("present", self.present.is_some()),
            ("cost", self.cost.is_some()),
        ];
        let takes = self.op.takes();
        fields.into_iter().find(|(name, there)| *there && !takes.contains(name)).map(|(name, _)| name)
    }
}

impl TryFrom<Written> for Command {
    type Error = Refusal;

    fn try_from(written: Written) -> Result<Self, Refusal> {
        let op = written.op;
        if let Some(field) = written.stray() {
            return Err(Refusal::bad_request(format!("{} takes no `{field}`", op.word())));
        }
        op.read(written)
    }
}

/// A field of [`Written`] that has to be there.
macro_rules! need {
    ($written:ident.$field:ident) => {
        $written
            .$field
            .ok_or_else(|| $crate::error::Refusal::bad_request(concat!("missing field `", stringify!($field), "`")))?
    };
}
pub(crate) use need;

/// Makes what can be in a batch from a list: how it is written, and the operation that it is.
macro_rules! ops {
    ($($name:ident = $word:tt => $operation:ident in $capability:ident,)+) => {
        // Without a doc comment: it would be told with the field that holds it.
        #[derive(Clone, Copy, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub(crate) enum Op {
            $(#[serde(rename = $word)] $name,)+
        }

        impl Op {
            /// How it is written.
            pub(crate) fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// The fields that it takes.
            pub(crate) fn takes(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => <$crate::$capability::$operation as InBatch>::TAKES,)+
                }
            }

            /// Reads it.
            pub(crate) fn read(self, written: Written) -> Result<Command, Refusal> {
                match self {
                    $(Self::$name => <$crate::$capability::$operation as InBatch>::read(written).map(Into::into),)+
                }
            }
        }
    };
}
pub(crate) use ops;
