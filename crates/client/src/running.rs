//! What an operator asks: is it well, does it add up, is there a copy?

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tally_core::reply::JobReply;
use tally_core::rows::VerifyReport;

use crate::{Answer, Call, Client, Error, verification};

/// A backup that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BackupMade {
    /// Where it is, on the server.
    pub path: String,
    /// Rows in it.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
}

impl Client {
    /// Whether it answers at all.
    pub fn healthz(&self) -> Call<Value> {
        self.get(&["healthz"])
    }

    /// Whether its store answers and takes writes.
    pub fn readyz(&self) -> Call<Value> {
        self.get(&["readyz"])
    }

    /// Its contract, as OpenAPI.
    pub fn openapi(&self) -> Call<Value> {
        self.get(&["openapi.json"])
    }

    /// Its figures, as OpenMetrics text: ask for the [`Call::answer`].
    pub fn metrics(&self) -> Call<Answer> {
        self.get(&["metrics"])
    }

    /// How a job stands.
    pub fn job(&self, id: &str) -> Call<JobReply> {
        self.get(&["v1", "jobs", id])
    }

    /// Begins to recount everything, and to mend it where that is wanted; [`Client::job`] tells how far it is.
    pub fn begin_verify(&self, repair: bool) -> Call<JobReply> {
        self.post(&["v1", "verify"]).json(&json!({"repair": repair}))
    }

    /// Recounts everything and waits for the report. `progress` gets the rows read so far. A server that starts again
    /// meanwhile goes on with it, so a few questions may stay unanswered.
    pub async fn verify(&self, repair: bool, progress: impl FnMut(u64)) -> Result<VerifyReport, Error> {
        let begun = self.begin_verify(repair).await?;
        verification(begun, async |id: &str| self.job(id).await, progress).await
    }

    /// Has the server write a copy below its backup folder; called by the time, when it has no name. It takes as long as it
    /// takes.
    pub fn backup(&self, name: Option<&str>) -> Call<BackupMade> {
        self.post(&["v1", "backup"]).json(&json!({"name": name})).patient()
    }
}
