//! The product on one screen: everything that can be asked to change, and what is answered.

use std::fmt;
use std::sync::Arc;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Refusal;
use crate::id::{Name, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::rows::{ApiKey, EdgeKey, Job, JobId, ReplayKey, TotalKey};
use crate::time::Timestamp;

/// A change that is asked for. The first three are what a client may put in a batch, each written
/// with its `op`; see [`Written`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Makes sure that an edge is there.
    Relate {
        /// The relation.
        relation: Name,
        /// What is acted on.
        object: ObjectId,
        /// Who acts.
        subject: SubjectId,
        /// Which kind, where the relation has `one_of`.
        kind: Option<Name>,
        /// What to attach.
        meta: Option<Meta>,
    },
    /// Makes sure that an edge is not there.
    Unrelate {
        /// The relation.
        relation: Name,
        /// What is acted on.
        object: ObjectId,
        /// Who acts.
        subject: SubjectId,
    },
    /// Turns an edge into the opposite of what it is.
    Toggle {
        /// The relation.
        relation: Name,
        /// What is acted on.
        object: ObjectId,
        /// Who acts.
        subject: SubjectId,
        /// Which kind, if it is made.
        kind: Option<Name>,
        /// What to attach, if it is made.
        meta: Option<Meta>,
    },
    /// Several commands as one: all or none, or each on its own.
    Batch {
        /// All or none.
        atomic: bool,
        /// The commands, in order.
        commands: Vec<Command>,
    },
    /// Registers an object, or changes what it was registered with.
    PutObject {
        /// The object.
        object: ObjectId,
        /// Its status.
        status: Option<String>,
        /// Its attributes.
        attributes: Meta,
    },
    /// Removes an object, and begins to remove its edges.
    DeleteObject {
        /// The object.
        object: ObjectId,
    },
    /// Begins to remove every edge of a subject.
    Forget {
        /// The subject.
        subject: SubjectId,
    },
    /// Begins to hide every edge of a subject, and refuses new ones.
    Suspend {
        /// The subject.
        subject: SubjectId,
    },
    /// Begins to show them again.
    Restore {
        /// The subject.
        subject: SubjectId,
    },
    /// One step of a job: these edges, or, when there are none left, its end.
    Sweep {
        /// The job.
        job: JobId,
        /// At most [`crate::limits::SWEEP_EDGES_MAX`] edges.
        edges: Vec<EdgeKey>,
    },
    /// Adds what a recount found missing from a total.
    Repair {
        /// The total.
        total: TotalKey,
        /// The drift, taken at one moment: right whatever has been added since.
        by: i64,
    },
    /// Stores an API key.
    PutApiKey {
        /// Its public part.
        id: String,
        /// The key, without its secret.
        key: ApiKey,
    },
    /// Ends an API key.
    RevokeApiKey {
        /// Its public part.
        id: String,
    },
    /// Drops remembered answers that have expired.
    Expire {
        /// Which; those that are still needed are kept.
        replays: Vec<ReplayKey>,
    },
}

/// A command as a client writes it in a batch: one flat form for all, which reads faster than a
/// tagged enum and names the field that is missing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Written {
    /// What to do.
    op: Op,
    /// The relation.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    relation: Name,
    /// What is acted on.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    object: ObjectId,
    /// Who acts.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    subject: SubjectId,
    /// Which kind, where the relation has `one_of`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    kind: Option<Name>,
    /// What to attach.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
enum Op {
    Relate,
    Unrelate,
    Toggle,
}

impl<'de> Deserialize<'de> for Command {
    /// Only from an object: a derived reader would take a list of the fields' values as well.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Written;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object with op, relation, object and subject")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Written, A::Error> {
                Written::deserialize(MapAccessDeserializer::new(fields))
            }
        }

        from.deserialize_map(Fields)?.try_into().map_err(D::Error::custom)
    }
}

impl TryFrom<Written> for Command {
    type Error = Refusal;

    fn try_from(written: Written) -> Result<Self, Refusal> {
        let Written { op, relation, object, subject, kind, meta } = written;
        match op {
            Op::Relate => Ok(Self::Relate { relation, object, subject, kind, meta }),
            Op::Toggle => Ok(Self::Toggle { relation, object, subject, kind, meta }),
            Op::Unrelate if kind.is_none() && meta.is_none() => Ok(Self::Unrelate { relation, object, subject }),
            Op::Unrelate => Err(Refusal::bad_request("unrelate takes neither kind nor meta")),
        }
    }
}

impl Command {
    /// How many commands this counts as in a batch.
    pub fn weight(&self) -> usize {
        match self {
            Self::Batch { commands, .. } => commands.len().max(1),
            Self::Sweep { edges, .. } => edges.len().max(1),
            Self::Expire { replays } => replays.len().max(1),
            _ => 1,
        }
    }

    /// Whose it is, where it is one subject's alone.
    pub fn subject(&self) -> Option<&SubjectId> {
        match self {
            Self::Relate { subject, .. }
            | Self::Unrelate { subject, .. }
            | Self::Toggle { subject, .. }
            | Self::Forget { subject }
            | Self::Suspend { subject }
            | Self::Restore { subject } => Some(subject),
            _ => None,
        }
    }

    /// What it is about, where it is one object alone.
    pub fn object(&self) -> Option<&ObjectId> {
        match self {
            Self::Relate { object, .. }
            | Self::Unrelate { object, .. }
            | Self::Toggle { object, .. }
            | Self::PutObject { object, .. }
            | Self::DeleteObject { object } => Some(object),
            _ => None,
        }
    }
}

/// Who asks, as conditions see it: `kind`, `subject`, `role`, `claims`.
pub type Auth = Arc<serde_json::Value>;

/// A request that has one effect however often it is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Once {
    /// The caller's key.
    pub key: ReplayKey,
    /// A fingerprint for each field of the request.
    pub fields: Arc<Vec<(String, u64)>>,
}

/// A command with who sent it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// Who.
    pub auth: Auth,
    /// What.
    pub command: Command,
    /// The idempotency key, if there was one.
    pub once: Option<Once>,
}

impl Call {
    /// A command of Tally's own.
    pub fn system(command: Command) -> Self {
        Self { auth: Arc::new(serde_json::json!({"kind": "system"})), command, once: None }
    }
}

/// Logical rows read and written, in the caller's sense: edges and the counts above them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Rows read.
    pub reads: u32,
    /// Rows written.
    pub writes: u32,
}

/// What is answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// To relate, unrelate and toggle.
    Edge(EdgeReply),
    /// To a batch: an answer for each command, in order.
    Batch(Vec<Result<Reply, Refusal>>),
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
    /// `forget`, `clear`, `hide` or `show`.
    pub kind: String,
    /// `running` or `done`.
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
    /// Shows a job.
    pub fn new(id: JobId, job: &Job) -> Self {
        Self {
            job: id.text(),
            kind: job.work.name().into(),
            state: if job.finished_at.is_some() { "done" } else { "running" }.into(),
            edges: job.edges,
            created_at: job.created_at,
            finished_at: job.finished_at,
        }
    }
}

/// A decision's outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decided {
    /// The answer.
    pub reply: Result<Reply, Refusal>,
    /// What it cost.
    pub cost: Cost,
    /// Whether it is a remembered answer.
    pub replayed: bool,
}
