//! Subjects: who relates.

use tally_core::SubjectId;
use tally_core::command::{Forget, Restore, Suspend};
use tally_core::reply::JobReply;

use crate::{Call, Client, Request};

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

impl Request for Forget {
    type Answer = JobReply;

    fn call(&self, client: &Client) -> Call<JobReply> {
        client.forget(&self.subject)
    }
}

impl Request for Suspend {
    type Answer = JobReply;

    fn call(&self, client: &Client) -> Call<JobReply> {
        client.suspend(&self.subject)
    }
}

impl Request for Restore {
    type Answer = JobReply;

    fn call(&self, client: &Client) -> Call<JobReply> {
        client.restore(&self.subject)
    }
}
