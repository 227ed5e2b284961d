//! A store, opened by this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use tally::core::command::{Auth, Call, PutApiKey, Verify};
use tally::core::query::JobQuery;
use tally::core::reply::JobReply;
use tally::core::room::{Join, TicketReply};
use tally::core::rows::{JobId, Role};
use tally::core::{Operation, Question};
use tally::postgres::Postgres;
use tally::redis::Redis;
use tally::{Opening, Tally, VerifyReport, redacted};
use tally_client::{BackupMade, KeyMade, verification};
use tally_server::auth::keys::NewKey;
use tally_server::http::handlers::admin::backed_up_otherwise;
use tally_server::{serve, settings};
use tally_settings::ServeArgs;

use crate::failure::Failure;
use crate::folder;
use crate::output::Json;

/// An open store. Whoever may open it may do everything, so there is no key.
pub(crate) struct Local {
    tally: Tally,
}

impl Local {
    /// Opens the store with the settings that the server would have, so that the same rules hold. A folder
    /// is for one process; a database may have servers on it.
    pub(crate) async fn open(url: &str, config: Option<PathBuf>) -> Result<Self, Failure> {
        let folder = match Opening::parse(url).map_err(|error| Failure::usage(error.to_string()))? {
            Opening::Postgres(_) | Opening::Redis(_) => {
                require_there(url).await?;
                None
            }
            _ => Some(folder::of_store(url)?),
        };
        folder.as_deref().map_or(Ok(()), folder::require_store)?;
        let args = ServeArgs { config, store: Some(url.to_owned()), ..ServeArgs::default() };
        let settings = settings::load(&args)?;
        match (Tally::open(&settings.store, serve::options(&settings)).await, folder) {
            (Ok(tally), _) => Ok(Self { tally }),
            (Err(_), Some(path)) if folder::is_in_use(&path) => Err(folder::in_use(&path)),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// The library underneath.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Asks for a change.
    pub(crate) async fn write<O: Operation>(&self, operation: O) -> Result<Json, Failure> {
        Json::of(&self.tally.apply(Call::system(operation)).await?.reply?)
    }

    /// Asks a question.
    pub(crate) async fn read<Q: Question<Answer: Serialize>>(&self, question: &Q) -> Result<Json, Failure> {
        let auth: Auth = Arc::new(json!({"kind": "system"}));
        Json::of(&self.tally.query(question, &auth).await?)
    }

    /// Takes a ticket of a room, and says whether it is a new one.
    pub(crate) async fn join(&self, join: &Join) -> Result<(TicketReply, bool), Failure> {
        let auth: Auth = Arc::new(json!({"kind": "system"}));
        let ticket = self.tally.join(join.clone(), &auth).await?;
        let is_new = ticket.facts.is_new;
        Ok((ticket, is_new))
    }

    /// Makes an API key.
    pub(crate) async fn create_key(&self, role: Role, name: &str) -> Result<Json, Failure> {
        let made = NewKey::generate(role, name, self.tally.now());
        let made = made.map_err(|error| Failure::new(error.to_string()))?;
        self.write(PutApiKey { id: made.id.clone(), key: made.stored }).await?;
        Json::of(&KeyMade { id: made.id, key: made.token, role, name: name.to_owned() })
    }

    /// Recounts everything. What mends is a job, which a server on the same store may carry; what only reads is done
    /// here, and writes nothing.
    pub(crate) async fn verify(
        &self,
        repair: bool,
        progress: impl FnMut(u64) + Send + 'static,
    ) -> Result<VerifyReport, Failure> {
        if !repair {
            return Ok(self.tally.recount(progress).await?);
        }
        let begun = self.write(Verify { repair }).await?.read()?;
        verification(begun, async |id| self.job(id).await, progress).await
    }

    async fn job(&self, id: &str) -> Result<JobReply, Failure> {
        let id = JobId::parse(id).ok_or_else(|| Failure::new(format!("`{id}` is not a job")))?;
        self.read(&JobQuery { job: id, viewer: None }).await?.read()
    }

    /// Copies the store to a folder.
    pub(crate) async fn backup(
        &self,
        to: Option<&str>,
        mut progress: impl FnMut(u64) + Send + 'static,
    ) -> Result<BackupMade, Failure> {
        let to = to.ok_or_else(|| Failure::usage("with --store, say where to: tally backup DEST --store …"))?;
        let (engine, target) = (self.tally.engine().clone(), Path::new(to).to_path_buf());
        let copying = tokio::task::spawn_blocking(move || {
            engine.embedded().map(|engine| engine.store().backup(&target, |rows, _| progress(rows)))
        });
        let copied = copying.await.map_err(|error| Failure::new(format!("the backup stopped: {error}")))?;
        let report = copied.ok_or_else(|| Failure::new(backed_up_otherwise(self.tally.engine())))??;
        Ok(BackupMade { path: to.to_owned(), rows: report.rows, bytes: report.bytes })
    }

    /// Answers what was accepted, and lets go of the folder.
    pub(crate) async fn close(&self) {
        self.tally.close().await;
    }
}

/// Refuses a database without Tally's tables, and a Redis without its keys: a command with a mistyped URL must not
/// make them.
pub(crate) async fn require_there(url: &str) -> Result<(), Failure> {
    let place = match Opening::parse(url).map_err(|error| Failure::usage(error.to_string()))? {
        Opening::Postgres(options) => {
            let place = format!("in the schema {}", options.schema);
            let engine = Postgres::new(*options)?;
            let facts = engine.facts().await;
            engine.close().await;
            facts?.schema.is_none_or(|found| found.version.is_none()).then_some(place)
        }
        Opening::Redis(options) => {
            let place = format!("under the prefix {}", options.prefix);
            let engine = Redis::new(*options);
            require_right(&engine).await?;
            engine.format().await?.is_none().then_some(place)
        }
        Opening::Embedded(_) | Opening::Memory => None,
    };
    let Some(place) = place else { return Ok(()) };
    Err(Failure::new(format!(
        "there is no store {place} of {}: check the URL, or make one with: tally serve --store URL",
        redacted(url)
    )))
}

/// A Redis that cannot be a store is refused before anybody asks whether there is one.
async fn require_right(engine: &Redis) -> Result<(), Failure> {
    let facts = engine.facts().await?;
    let lacks = facts.iter().find_map(|facts| facts.lacks(engine.options()));
    lacks.map_or(Ok(()), |why| Err(Failure::new(why)))
}
