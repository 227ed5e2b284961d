//! Subjects: who relates.

use tally_core::SubjectId;
use tally_core::command::{Forget, Restore, Suspend};
use tally_core::reply::JobReply;

use crate::request::requests;
use crate::{Call, Client};

impl Client {
    /// Forgets a subject; a job removes all that it did.
    pub fn forget(&self, subject: &SubjectId) -> Call<JobReply> {
        self.delete(&["v1", "subjects", subject.as_str()])
    }

    /// Hides all that a subject did, until it is restored.
    pub fn suspend(&self, subject: &SubjectId) -> Call<JobReply> {
        self.post(&["v1", "subjects", subject.as_str(), "suspend"])
    }

    /// Shows again what was hidden.
    pub fn restore(&self, subject: &SubjectId) -> Call<JobReply> {
        self.post(&["v1", "subjects", subject.as_str(), "restore"])
    }
}

requests! {
    Forget => JobReply: |ask, client| client.forget(&ask.subject);
    Suspend => JobReply: |ask, client| client.suspend(&ask.subject);
    Restore => JobReply: |ask, client| client.restore(&ask.subject);
}
