//! What an operator does: verify, back up, manage keys.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tally::AnyEngine;
use tally::core::Code;
use tally::core::command::{PutApiKey, RevokeApiKey, Verify};
use tally::core::query::{ApiKeysAnswer, ApiKeysQuery};
use tally::core::reply::JobReply;
use tally::core::rows::Role;
use tally::embedded::store::StoreError;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::tagged;
use crate::app::App;
use crate::auth::keys::{NewKey, of_dev};
use crate::auth::policy::Permission;
use crate::http::body::Json;
use crate::http::problem::Problem;
use crate::http::reply;
use crate::http::request::{Caller, Outcome, Segments};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Running", "Operating the server")
        .routes(routes!(verify))
        .routes(routes!(backup))
        .routes(routes!(create_key, list_keys))
        .routes(routes!(revoke_key))
}

/// What to say where there is no folder to copy.
pub fn backed_up_otherwise(engine: &AnyEngine) -> &'static str {
    match engine {
        AnyEngine::Redis(_) => {
            "Redis is backed up with its own files, the snapshot (BGSAVE) and the append-only file; to move a store \
             into a folder: tally copy"
        }
        _ => "PostgreSQL is backed up with its own tools, such as pg_dump; to move a store into a folder: tally copy",
    }
}

/// How to verify.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyBody {
    /// Mend what does not add up.
    #[serde(default)]
    repair: bool,
}

/// Recount everything
///
/// Begins a job and answers with it; while one runs, that one is the answer, and if this call wants repair it will
/// repair as well. `GET /v1/jobs/{job}` tells how many rows it has read, and in the end its `report`.
#[utoipa::path(post, path = "/v1/verify", tag = "Running",
    request_body(content = Option<VerifyBody>), responses((status = 202, description = "The job that does it", body = JobReply)))]
pub async fn verify(caller: Caller, Json(body): Json<VerifyBody>) -> Outcome {
    caller.may(Permission::Verify, None, None)?;
    let command = Verify { repair: body.repair };
    caller.begin(command).await
}

/// What to call a backup.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupBody {
    /// A folder name of letters, digits, `.`, `_` and `-`; the time, when left out.
    #[serde(default)]
    name: Option<String>,
}

/// A backup that was made.
#[derive(Debug, Serialize, ToSchema)]
pub struct BackupAnswer {
    /// Where it is, on the server.
    path: String,
    /// Rows in it.
    rows: u64,
    /// Its size.
    bytes: u64,
}

/// Back the store up while it is in use
///
/// Writes a folder below the configured backup folder of the server. It is itself a store.
#[utoipa::path(post, path = "/v1/backup", tag = "Running",
    request_body(content = Option<BackupBody>), responses((status = 200, description = "Where it is", body = BackupAnswer)))]
pub async fn backup(caller: Caller, Json(body): Json<BackupBody>) -> Outcome {
    caller.may(Permission::Backup, None, None)?;
    let name = body.name.unwrap_or_else(|| caller.app.tally.now().to_string().replace(':', "-"));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > 128 || name.starts_with('.') || !name.bytes().all(is_plain) {
        return Err(Problem::bad_request("name has letters, digits, `.`, `_` and `-`, and does not begin with a dot"));
    }
    let target = caller.app.settings.backup_folder.join(name);
    let (engine, path) = (caller.app.tally.engine().clone(), target.clone());
    let copying =
        tokio::task::spawn_blocking(move || engine.embedded().map(|engine| engine.store().backup(&path, |_, _| {})));
    match copying.await {
        Ok(Some(Ok(report))) => {
            let path = target.display().to_string();
            Ok(reply::json(StatusCode::OK, &BackupAnswer { path, rows: report.rows, bytes: report.bytes }))
        }
        Ok(Some(Err(error))) => Err(not_backed_up(&error)),
        Ok(None) => Err(Problem::new(Code::Conflict, backed_up_otherwise(caller.app.tally.engine()))),
        Err(error) => {
            tracing::error!(%error, "a backup stopped");
            Err(Problem::internal())
        }
    }
}

/// A name that is taken is the caller's to change; whatever the disk says is for the log.
fn not_backed_up(error: &StoreError) -> Problem {
    match error {
        StoreError::TargetExists { .. } => Problem::new(Code::Conflict, "a backup of this name exists already"),
        StoreError::BeingMade { .. } => {
            Problem::new(Code::Conflict, "a backup of this name is being made at the moment")
        }
        StoreError::Locked { .. }
        | StoreError::NotAStore { .. }
        | StoreError::NewerFormat { .. }
        | StoreError::OlderFormat { .. }
        | StoreError::Damaged { .. }
        | StoreError::Unavailable { .. }
        | StoreError::Discarded { .. }
        | StoreError::Unsettled { .. }
        | StoreError::BatchTooLarge { .. }
        | StoreError::BadKey
        | StoreError::Closed
        | StoreError::Io { .. }
        | StoreError::Tables { .. } => {
            tracing::error!(%error, "a backup failed");
            Problem::new(
                Code::StoreUnavailable,
                "the backup could not be made now, and nothing of it is left; see the server's log",
            )
        }
    }
}

/// What a new key may do.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyBody {
    /// What people call it.
    #[serde(default)]
    name: String,
    /// `read`, `service` or `admin`.
    #[schema(value_type = String)]
    role: Role,
}

impl Default for KeyBody {
    fn default() -> Self {
        Self { name: String::new(), role: Role::Service }
    }
}

/// A new key, with its secret: shown this once.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewKeyAnswer {
    /// Its public part.
    id: String,
    /// The key itself. It is stored hashed and cannot be shown again.
    key: String,
    /// What it may do.
    #[schema(value_type = String)]
    role: Role,
    /// What people call it.
    name: String,
}

/// Make an API key
#[utoipa::path(post, path = "/v1/keys", tag = "Running",
    request_body(content = Option<KeyBody>), responses((status = 201, description = "The key, shown once", body = NewKeyAnswer)))]
pub async fn create_key(caller: Caller, Json(body): Json<KeyBody>) -> Outcome {
    caller.may(Permission::ManageKeys, None, None)?;
    let mut made = NewKey::generate(body.role, &body.name, caller.app.tally.now()).map_err(|error| {
        tracing::error!(%error, "a key could not be made");
        Problem::internal()
    })?;
    if caller.is_of_dev() {
        // Whoever made it has not said who they are, so it ends with --dev.
        made.stored = of_dev(made.stored);
    }
    let command = PutApiKey { id: made.id.clone(), key: made.stored.clone() };
    caller.apply(command, None).await?.reply?;
    caller.app.auth.keys.put(&made.id, &made.stored);
    let answer = NewKeyAnswer { id: made.id, key: made.token, role: body.role, name: body.name };
    Ok(reply::json(StatusCode::CREATED, &answer))
}

/// List API keys, without their secrets
#[utoipa::path(get, path = "/v1/keys", tag = "Running",
    responses((status = 200, description = "The keys", body = ApiKeysAnswer)))]
pub async fn list_keys(caller: Caller) -> Outcome {
    caller.may(Permission::ManageKeys, None, None)?;
    caller.answer(ApiKeysQuery).await
}

/// Revoke an API key
#[utoipa::path(delete, path = "/v1/keys/{id}", tag = "Running",
    params(("id" = String, Path, description = "Its public part")),
    responses((status = 200, description = "Whether it was in use", body = Object)))]
pub async fn revoke_key(caller: Caller, Segments(id): Segments<String>) -> Outcome {
    caller.may(Permission::ManageKeys, None, None)?;
    let command = RevokeApiKey { id: id.clone() };
    let decided = caller.apply(command, None).await?;
    caller.app.auth.keys.remove(&id);
    reply::decided(StatusCode::OK, decided)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_fails_is_no_conflict_and_tells_no_paths() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let full = StoreError::Io { doing: "write", file: "/secret/place".into(), source: full.into() };
        let tables = StoreError::Tables { doing: "write", why: "/secret/place is full".into() };
        let taken = StoreError::TargetExists { target: "/secret/place".into() };
        for (error, code, status) in [
            (full, "store_unavailable", StatusCode::SERVICE_UNAVAILABLE),
            (tables, "store_unavailable", StatusCode::SERVICE_UNAVAILABLE),
            (taken, "conflict", StatusCode::CONFLICT),
        ] {
            let problem = not_backed_up(&error);
            assert_eq!((problem.code.name(), problem.status()), (code, status), "{error}");
            assert!(!problem.detail.contains("secret"), "{}", problem.detail);
        }
    }
}
