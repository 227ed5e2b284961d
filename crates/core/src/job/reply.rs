//! A job as it is shown.

use serde::{Deserialize, Serialize};

use crate::reply::{Answered, NamesMut, Told};
use crate::rows::{Job, JobId, JobKind, VerifyReport, Work};
use crate::time::Timestamp;

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

impl Answered for JobReply {
    fn correct(&mut self, _told: &mut Told<'_>) {}

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut::default()
    }
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
