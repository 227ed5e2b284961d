//! The product on one screen: everything that can be asked to change, and what is answered.

mod reply;
mod written;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::error::Refusal;
use crate::id::{KeyId, Name, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::rows::{ApiKey, EdgeKey, JobId, JobKind, Key, LimitKey, ReplayKey, Round, TotalKey};
use crate::time::Stamp;
use crate::verify::Fact;
pub use crate::verify::Recount;

pub use reply::{AttendReply, CountReply, EdgeReply, JobReply, ObjectReply, Reply, ScoreReply, TakeReply, UniqueReply};
pub use written::Written;

/// A change that is asked for. A client may put those of relations and of counting in a batch, each
/// written with its `op`; see [`Written`].
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
    /// Adds to a counter.
    Count {
        /// The counter.
        counter: Name,
        /// What is counted.
        key: KeyId,
        /// How much; may be negative.
        by: i64,
    },
    /// Notes who was seen.
    Observe {
        /// The unique count.
        unique: Name,
        /// What is counted.
        key: KeyId,
        /// Who was seen.
        members: Vec<String>,
    },
    /// Says that a subject was there on a day, or was not.
    Attend {
        /// The sheet.
        sheet: Name,
        /// The day; none is today, where the sheet's days end.
        day: Option<Day>,
        /// Who was there, or was not.
        subject: SubjectId,
        /// Whether it was there.
        present: bool,
    },
    /// Changes a member's score.
    Score {
        /// The board.
        board: Name,
        /// The member.
        member: SubjectId,
        /// How the score changes.
        change: ScoreChange,
    },
    /// Uses some of a limit, if there is enough left.
    Take {
        /// The limit.
        limit: Name,
        /// Whose limit is used.
        key: KeyId,
        /// How much.
        cost: u64,
    },
    /// Several commands as one: all or none, or each on its own.
    Batch {
        /// All or none.
        atomic: bool,
        /// The commands, in order.
        commands: Vec<Command>,
    },
    /// Says what would become of some commands, each on its own, and does nothing.
    Rehearse {
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
    /// Writes down which names are declared.
    Declare,
    /// Says how a board without members is ranked from now on.
    RankAnew {
        /// The board.
        board: Name,
        /// Whether by the different scores.
        dense: bool,
    },
    /// One step of a job: these edges, or, when there are none left, its end.
    Sweep {
        /// The job.
        job: JobId,
        /// What the job went by when the walk over its edges began.
        before: Stamp,
        /// At most [`crate::limits::SWEEP_EDGES_MAX`] edges.
        edges: Vec<EdgeKey>,
    },
    /// Begins to recount everything, or joins whoever does.
    Verify {
        /// Whether to mend what does not add up.
        repair: bool,
    },
    /// One step of a verification.
    Recount {
        /// Of which round; before the first it is 0.
        of: Round,
        /// What has been done.
        step: Recount,
    },
    /// Adds what a recount found missing from a total.
    Repair {
        /// The round that found it; once that is over, nothing is added.
        found_in: Option<Round>,
        /// The total.
        total: TotalKey,
        /// The drift, taken at one moment: right whatever has been added since.
        by: i64,
    },
    /// Puts right what rows say of each other, where a recount found that they do not agree.
    PutRight {
        /// The round that found it; once that is over, nothing is changed.
        found_in: Option<Round>,
        /// What is said.
        fact: Fact,
        /// The row that it is about, where the fact does not name it.
        who: Option<Key>,
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
    /// Drops jobs that ended long enough ago.
    ExpireJobs {
        /// Which; those that are not due are kept.
        jobs: Vec<JobId>,
    },
    /// Drops what is known of limits that nobody has used for as long as it matters.
    ExpireLimits {
        /// Which; those that are still needed are kept.
        limits: Vec<LimitKey>,
    },
}

/// How a score changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScoreChange {
    /// By so much.
    By(i64),
    /// To this; on a board that keeps the best, only upwards.
    To(i64),
    /// The member leaves the board.
    Leave,
}

impl Command {
    /// How many commands this counts as in a batch.
    pub fn weight(&self) -> usize {
        let many = match self {
            Self::Batch { commands, .. } | Self::Rehearse { commands } => commands.len(),
            Self::Sweep { edges, .. } => edges.len(),
            Self::Expire { replays } => replays.len(),
            Self::ExpireLimits { limits } => limits.len(),
            Self::ExpireJobs { jobs } => jobs.len(),
            _ => 1,
        };
        many.max(1)
    }

    /// Whether there is a job to be carried when it is done.
    pub fn begins_job(&self) -> bool {
        match self {
            Self::Batch { commands, .. } => commands.iter().any(Self::begins_job),
            Self::Verify { .. } => true,
            other => other.job().is_some(),
        }
    }

    /// Whether other servers have to look at API keys again when it is done.
    pub fn changes_keys(&self) -> bool {
        match self {
            Self::Batch { commands, .. } => commands.iter().any(Self::changes_keys),
            other => matches!(other, Self::PutApiKey { .. } | Self::RevokeApiKey { .. }),
        }
    }

    /// The job that it begins, or goes on with.
    pub fn job(&self) -> Option<JobId> {
        let (kind, whom) = match self {
            Self::Forget { subject } => (JobKind::Forget, subject.as_str()),
            Self::Suspend { subject } => (JobKind::Hide, subject.as_str()),
            Self::Restore { subject } => (JobKind::Show, subject.as_str()),
            Self::DeleteObject { object } => (JobKind::Clear, object.as_str()),
            _ => return None,
        };
        Some(JobId::of(kind, whom))
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

    /// Who acts, where the caller says who.
    pub fn acting_mut(&mut self) -> Option<&mut SubjectId> {
        match self {
            Self::Relate { subject, .. }
            | Self::Unrelate { subject, .. }
            | Self::Toggle { subject, .. }
            | Self::Attend { subject, .. }
            | Self::Score { member: subject, .. } => Some(subject),
            _ => None,
        }
    }

    /// What it counts, where that is one thing alone: commands about the same are best decided together.
    pub fn counted(&self) -> Option<[&str; 2]> {
        match self {
            Self::Count { counter, key, .. } => Some([counter.as_str(), key.as_str()]),
            Self::Observe { unique, key, .. } => Some([unique.as_str(), key.as_str()]),
            Self::Take { limit, key, .. } => Some([limit.as_str(), key.as_str()]),
            // Subjects of a sheet share its bitmaps, and members of a board its order.
            Self::Attend { sheet, .. } => Some([sheet.as_str(), ""]),
            Self::Score { board, .. } => Some([board.as_str(), ""]),
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
    /// Who sends it.
    pub auth: Auth,
    /// What is to be done.
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
