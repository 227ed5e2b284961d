//! Commands as clients write them in a batch.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::attendance::Attend;
use crate::board::{ChangeScore, ScoreChange};
use crate::bounded::{AtMost, BoundedMeta};
use crate::command::Command;
use crate::counter::Add;
use crate::day::Day;
use crate::error::Refusal;
use crate::id::{KeyId, Name, ObjectId, SubjectId};
use crate::limit::Take;
use crate::limits::UNIQUE_MEMBERS_MAX;
use crate::relation::{Relate, Toggle, Unrelate};
use crate::unique::Observe;

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
    relation: Option<Name>,
    /// What is acted on: relate, unrelate, toggle.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    object: Option<ObjectId>,
    /// Who acts: relate, unrelate, toggle, attend.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    subject: Option<SubjectId>,
    /// Which kind, where the relation has `one_of`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    kind: Option<Name>,
    /// What to attach.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    meta: Option<BoundedMeta>,
    /// The counter: count.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    counter: Option<Name>,
    /// The unique count: observe.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    unique: Option<Name>,
    /// The sheet: attend.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    sheet: Option<Name>,
    /// The board: score.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    board: Option<Name>,
    /// The limit: take.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    limit: Option<Name>,
    /// What is counted or limited: count, observe, take.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    key: Option<KeyId>,
    /// How much: count, 1 by default; score.
    #[serde(default)]
    by: Option<i64>,
    /// The score itself: score.
    #[serde(default)]
    score: Option<i64>,
    /// Whose score: score.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    member: Option<SubjectId>,
    /// Who was seen: observe.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    members: Option<AtMost<String, UNIQUE_MEMBERS_MAX>>,
    /// The day, or `today`, which is also the default: attend.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    day: Option<WhichDay>,
    /// Whether the subject was there; true by default: attend.
    #[serde(default)]
    present: Option<bool>,
    /// How much to use, 1 by default: take.
    #[serde(default)]
    cost: Option<u64>,
}

/// A day, or none for today: written as in a path.
struct WhichDay(Option<Day>);

impl<'de> Deserialize<'de> for WhichDay {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        if text == "today" { Ok(Self(None)) } else { text.parse().map(|day| Self(Some(day))).map_err(D::Error::custom) }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
enum Op {
    Relate,
    Unrelate,
    Toggle,
    Count,
    Observe,
    Attend,
    Score,
    Take,
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
        use Op::{Attend, Count, Observe, Relate, Score, Take, Toggle, Unrelate};
        let edge = matches!(self.op, Relate | Unrelate | Toggle);
        let fields = [
            ("relation", self.relation.is_some(), edge),
            ("object", self.object.is_some(), edge),
            ("subject", self.subject.is_some(), edge || matches!(self.op, Attend)),
            ("kind", self.kind.is_some(), matches!(self.op, Relate | Toggle)),
            ("meta", self.meta.is_some(), matches!(self.op, Relate | Toggle)),
            ("counter", self.counter.is_some(), matches!(self.op, Count)),
            ("unique", self.unique.is_some(), matches!(self.op, Observe)),
            ("sheet", self.sheet.is_some(), matches!(self.op, Attend)),
            ("board", self.board.is_some(), matches!(self.op, Score)),
            ("limit", self.limit.is_some(), matches!(self.op, Take)),
            ("key", self.key.is_some(), matches!(self.op, Count | Observe | Take)),
            ("by", self.by.is_some(), matches!(self.op, Count | Score)),
            ("score", self.score.is_some(), matches!(self.op, Score)),
            ("member", self.member.is_some(), matches!(self.op, Score)),
            ("members", self.members.is_some(), matches!(self.op, Observe)),
            ("day", self.day.is_some(), matches!(self.op, Attend)),
            ("present", self.present.is_some(), matches!(self.op, Attend)),
            ("cost", self.cost.is_some(), matches!(self.op, Take)),
        ];
        fields.into_iter().find(|(_, there, taken)| *there && !taken).map(|(name, ..)| name)
    }
}

impl Op {
    fn word(self) -> &'static str {
        match self {
            Self::Relate => "relate",
            Self::Unrelate => "unrelate",
            Self::Toggle => "toggle",
            Self::Count => "count",
            Self::Observe => "observe",
            Self::Attend => "attend",
            Self::Score => "score",
            Self::Take => "take",
        }
    }
}

impl TryFrom<Written> for Command {
    type Error = Refusal;

    fn try_from(written: Written) -> Result<Self, Refusal> {
        let op = written.op;
        if let Some(field) = written.stray() {
            return Err(Refusal::bad_request(format!("{} takes no `{field}`", op.word())));
        }
        macro_rules! need {
            ($field:ident) => {
                written
                    .$field
                    .ok_or_else(|| Refusal::bad_request(concat!("missing field `", stringify!($field), "`")))?
            };
        }
        Ok(match op {
            Op::Relate => {
                let (relation, object, subject) = (need!(relation), need!(object), need!(subject));
                Relate { relation, object, subject, kind: written.kind, meta: written.meta.map(|meta| meta.0) }.into()
            }
            Op::Unrelate => {
                Unrelate { relation: need!(relation), object: need!(object), subject: need!(subject) }.into()
            }
            Op::Toggle => {
                let (relation, object, subject) = (need!(relation), need!(object), need!(subject));
                Toggle { relation, object, subject, kind: written.kind, meta: written.meta.map(|meta| meta.0) }.into()
            }
            Op::Count => Add { counter: need!(counter), key: need!(key), by: written.by.unwrap_or(1) }.into(),
            Op::Observe => Observe { unique: need!(unique), key: need!(key), members: need!(members).0 }.into(),
            Op::Attend => {
                let (day, present) = (written.day.and_then(|day| day.0), written.present.unwrap_or(true));
                Attend { sheet: need!(sheet), day, subject: need!(subject), present }.into()
            }
            Op::Score => {
                let change = match (written.by, written.score) {
                    (Some(by), None) => ScoreChange::By(by),
                    (None, Some(score)) => ScoreChange::To(score),
                    (Some(_), Some(_)) | (None, None) => {
                        return Err(Refusal::bad_request("score takes either `by` or `score`"));
                    }
                };
                ChangeScore { board: need!(board), member: need!(member), change }.into()
            }
            Op::Take => Take { limit: need!(limit), key: need!(key), cost: written.cost.unwrap_or(1) }.into(),
        })
    }
}
