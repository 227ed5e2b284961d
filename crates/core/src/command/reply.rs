//! What is answered.

use serde::{Deserialize, Deserializer, Serialize};

use crate::day::Day;
use crate::error::Refusal;
use crate::id::{KeyId, Name, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::rows::{CountKey, Job, JobId, JobKind, SequenceKey, TotalKey, VerifyReport, Work};
use crate::time::Timestamp;

/// What is answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// To relate, unrelate and toggle.
    Edge(EdgeReply),
    /// To a batch: an answer for each command, in order.
    Batch(Vec<Result<Reply, Refusal>>),
    /// To counting.
    Count(CountReply),
    /// To observing.
    Unique(UniqueReply),
    /// To attending.
    Attend(AttendReply),
    /// To changing a score.
    Score(ScoreReply),
    /// To using a limit.
    Take(TakeReply),
    /// To putting an object.
    Object(ObjectReply),
    /// To everything that begins or continues a job.
    Job(JobReply),
    /// To what only changes or does not.
    Done {
        /// Whether anything changed.
        changed: bool,
    },
}

impl Reply {
    /// Moves the counts in an answer, each by what it is off by, and the ranks, one after another; and gives it its numbers, where
    /// the first one that was taken of a sequence is `first` ([`Seq::given`](crate::rows::Seq::given)).
    #[expect(clippy::only_used_in_recursion, reason = "no answer carries a number yet")]
    pub fn correct(
        &mut self,
        off: &dyn Fn(&TotalKey) -> i64,
        first: &dyn Fn(&SequenceKey) -> u64,
        ranks: &mut dyn Iterator<Item = u64>,
    ) {
        match self {
            Self::Edge(edge) => {
                let (object, relation) = (edge.object.clone(), edge.relation.clone());
                edge.count += off(&TotalKey::Object { object, relation });
            }
            Self::Batch(replies) => replies.iter_mut().flatten().for_each(|reply| reply.correct(off, first, ranks)),
            Self::Count(count) => {
                let key = CountKey { name: count.counter.clone(), key: count.key.clone() };
                count.value = count.value.saturating_add(off(&TotalKey::Counter(key)));
            }
            Self::Attend(attend) => {
                attend.count += off(&TotalKey::Present { sheet: attend.sheet.clone(), day: attend.day });
            }
            Self::Score(score) => {
                if let Some(rank) = &mut score.rank {
                    *rank = rank.wrapping_add(ranks.next().unwrap_or(0));
                }
            }
            Self::Unique(_) | Self::Take(_) | Self::Object(_) | Self::Job(_) | Self::Done { .. } => {}
        }
    }
}

/// The state of an edge after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EdgeReply {
    /// The relation.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub relation: Name,
    /// What is acted on.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub object: ObjectId,
    /// Who acts.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub subject: SubjectId,
    /// Whether the edge is there now.
    pub active: bool,
    /// Whether this write altered anything.
    pub changed: bool,
    /// How many edges the object now has in the relation.
    pub count: i64,
    /// When the edge was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub created_at: Option<Timestamp>,
    /// Its kind, where the relation has `one_of`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub kind: Option<Name>,
    /// What is attached to it; null when nothing is. Absent when the edge is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub meta: Option<Option<Meta>>,
}

/// Tells null from absent: a remembered answer is given again exactly as it was.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A counter after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CountReply {
    /// The counter.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub counter: Name,
    /// What is counted.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: KeyId,
    /// Its value now.
    pub value: i64,
    /// Whether this write altered anything.
    pub changed: bool,
    /// When it was last added to, to the second, where it keeps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_at: Option<Timestamp>,
}

/// A unique count after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UniqueReply {
    /// The unique count.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub unique: Name,
    /// What is counted.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: KeyId,
    /// Whether any of the members moved the count; most of those that were there before do not.
    pub changed: bool,
    /// About how many different ones there are.
    pub estimate: u64,
}

/// A subject on a day, after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttendReply {
    /// The sheet.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub sheet: Name,
    /// The day.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub day: Day,
    /// Who was there, or was not.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub subject: SubjectId,
    /// Whether it was there.
    pub present: bool,
    /// Whether this write altered anything.
    pub changed: bool,
    /// How many were there on that day.
    pub count: i64,
    /// How many days in a row it was there, up to that day.
    pub streak: u32,
}

/// A member of a board after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScoreReply {
    /// The board.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub board: Name,
    /// The member.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub member: SubjectId,
    /// Its score; absent when it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
    /// Its rank, from 1; absent when it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// Whether this write altered anything.
    pub changed: bool,
    /// When the season began, on a board that has seasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub season: Option<Timestamp>,
}

/// A limit after a use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TakeReply {
    /// The limit.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub limit: Name,
    /// Whose limit was used.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: KeyId,
    /// Whether it was allowed; a use that is not is refused.
    pub allowed: bool,
    /// How much is left.
    pub remaining: u64,
    /// In how many milliseconds all of it is there again.
    pub reset_ms: u64,
    /// How much there is in all.
    pub amount: u64,
    /// In how many milliseconds it is given.
    pub window_ms: u64,
}

/// An object after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ObjectReply {
    /// The object.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub object: ObjectId,
    /// Its status.
    pub status: Option<String>,
    /// Its attributes.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub attributes: Meta,
    /// When it was registered.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    /// Whether this write altered anything; absent on reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
}

/// A job as it stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobReply {
    /// Its id, `job_…`.
    pub job: String,
    /// `forget`, `clear`, `hide`, `show` or `verify`.
    pub kind: String,
    /// `running`, `done` or `failed`.
    pub state: String,
    /// How many edges it has changed so far.
    pub edges: u64,
    /// When it began.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// Of a verification: whether it mends what does not add up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<bool>,
    /// Of a verification: how many rows it has read so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Of a verification that is done: what it found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<VerifyReport>>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl JobId {
    /// The id as clients see it.
    pub fn text(self) -> String {
        format!("job_{:016x}", self.0)
    }

    /// Reads an id as clients write it.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("job_").filter(|digits| digits.len() == 16)?;
        // The parser alone would take a sign.
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        u64::from_str_radix(digits, 16).ok().map(Self)
    }
}

impl JobReply {
    /// A job that has ended so long ago that its row is gone.
    pub fn forgotten(id: JobId, kind: JobKind, created_at: Timestamp) -> Self {
        let (kind, state) = (kind.name().into(), "done".into());
        let (repair, rows, report, error) = (None, None, None, None);
        Self { job: id.text(), kind, state, edges: 0, created_at, finished_at: None, repair, rows, report, error }
    }

    /// Shows a job.
    pub fn new(id: JobId, job: &Job) -> Self {
        let shown = Self {
            job: id.text(),
            kind: job.work.name().into(),
            state: if job.finished_at.is_some() { "done" } else { "running" }.into(),
            edges: job.edges,
            created_at: job.created_at,
            finished_at: job.finished_at,
            repair: None,
            rows: None,
            report: None,
            error: None,
        };
        match &job.work {
            Work::Verify { repair, rows, report, failure, round: _ } => Self {
                state: if failure.is_some() { "failed".into() } else { shown.state },
                repair: Some(*repair),
                rows: Some(*rows),
                report: report.clone(),
                error: failure.clone(),
                ..shown
            },
            Work::Forget { .. }
            | Work::Clear { .. }
            | Work::Hide { .. }
            | Work::Show { .. }
            | Work::Copy { .. }
            | Work::Verifying { .. }
            | Work::Ended { .. } => shown,
        }
    }
}
