//! Long work: what it does, and how far it is.

use serde::{Deserialize, Serialize};

use super::ExpireJobs;
use crate::due::{Settling, WhenDue};
use crate::hash::digest;
use crate::id::{ObjectId, SubjectId};
use crate::rows::{Due, Key, Kind, Typed, VerifyReport, columns, declare, documents, kind, texts};
use crate::time::{Stamp, Timestamp};

/// Names a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct JobId(pub u64);

impl JobId {
    /// The copy that fills a store, see [`Work::Copy`].
    pub const COPY: Self = Self(0);
    /// Says which verification runs, see [`Work::Verifying`].
    pub const VERIFY: Self = Self(1);

    /// The job that does this to whom. It is the same one however often it is asked for, so that nobody fills a store
    /// with jobs; and a row that is named like this names nobody.
    pub fn of(kind: JobKind, whom: &str) -> Self {
        Self(digest(&[kind.name(), whom])[0])
    }
}

/// A round of a verification: one recount, by one server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Round {
    /// The verification.
    pub job: JobId,
    /// Which, from 1.
    pub number: u32,
}

/// Long work, done in steps that each commit, and taken up again after a stop.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// What it does.
    pub work: Work,
    /// Only edges made before this are touched: what comes later is a new life. It moves up when the same is asked for
    /// again before the job has ended.
    pub before: Stamp,
    /// How many edges it has changed.
    pub edges: u64,
    /// When it began.
    pub created_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// The kinds of jobs that are about somebody or something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// See [`Work::Forget`].
    Forget,
    /// See [`Work::Clear`].
    Clear,
    /// See [`Work::Hide`].
    Hide,
    /// See [`Work::Show`].
    Show,
}

impl JobKind {
    /// Its name, as clients see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forget => "forget",
            Self::Clear => "clear",
            Self::Hide => "hide",
            Self::Show => "show",
        }
    }
}

/// What a job does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    /// Removes every edge of a subject.
    Forget {
        /// The subject whose edges they are.
        subject: SubjectId,
    },
    /// Removes every edge of an object.
    Clear {
        /// Of what.
        object: ObjectId,
    },
    /// Hides every edge of a suspended subject.
    Hide {
        /// The subject whose edges they are.
        subject: SubjectId,
    },
    /// Shows them again.
    Show {
        /// The subject whose edges they are.
        subject: SubjectId,
    },
    /// It has ended, and does not name anybody any more.
    Ended {
        /// What it did.
        work: JobKind,
    },
    /// Fills this store with the rows of another. Nobody serves from it until that is done.
    Copy {
        /// Where from, without a password.
        from: String,
        /// The last row that is here, in the order of the other store.
        after: Option<Key>,
        /// How many rows are here.
        rows: u64,
        /// The sum of their fingerprints, which both stores must still agree with at the end.
        digest: u64,
    },
    /// Recounts everything.
    Verify {
        /// Whether it mends what does not add up.
        repair: bool,
        /// How often it was begun; the newest round counts.
        round: u32,
        /// Rows that this round has read.
        rows: u64,
        /// What it found, once it has ended.
        report: Option<Box<VerifyReport>>,
        /// Why it could not be done.
        failure: Option<String>,
    },
    /// Names the verification that runs, so that there is one at a time.
    Verifying {
        /// The verification that runs.
        job: JobId,
        /// The one that begins when that one has ended, for whoever has asked since it began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<JobId>,
    },
}

texts!(JobId: Self::text, Self::parse);
documents!(Work);
columns!(Job { work, before, edges, created_at, finished_at });

impl Kind for kind::Job {
    declare!(Job = b'j' "job" in "job"
        ("id" Text) =>
        ("work" Json, "before_us" Number, "edges" Number, "created_at" Time, "finished_at" Time)
        Changed Store, due Due::AtOnceUnless("finished_at"));

    const DUE: Option<WhenDue<Self>> = Some(WhenDue {
        at: |job| job.finished_at,
        settling: Settling {
            after_ms: |catalog| catalog.jobs_ttl_ms,
            ..Settling::cleaned(|keys| ExpireJobs { jobs: Self::keys(keys) }.into())
        },
    });
}
