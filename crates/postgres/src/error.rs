//! What PostgreSQL says, in the words of an engine.

use std::error::Error as _;

use tally_engine::{CommitError, StoreError};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Raised by `expect()` in the migrations.
const MOVED: &str = "TL409";

/// Whether the answer itself was lost, so that nobody knows what became of the question.
pub(crate) fn is_lost(error: &Error) -> bool {
    match error.as_db_error() {
        Some(db) => !matches!(db.parsed_severity(), Some(Severity::Error) | None),
        None => true,
    }
}

/// A commit that the database refused.
pub(crate) fn refused(error: &Error) -> CommitError {
    match error.code() {
        Some(code) if code.code() == MOVED || is_conflict(code) => CommitError::Conflict,
        _ => CommitError::Store(unavailable(error)),
    }
}

fn is_conflict(code: &SqlState) -> bool {
    [
        // Somebody else made the row first.
        SqlState::UNIQUE_VIOLATION,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        // A counter that would overflow: decided again, it is looked at first and refused.
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
    ]
    .contains(code)
}

/// Any other failure: what happened, and whether it may pass.
pub(crate) fn unavailable(error: &Error) -> StoreError {
    let Some(db) = error.as_db_error() else {
        return StoreError::Unavailable(match error.source() {
            Some(source) => format!("PostgreSQL: {error}: {source}"),
            None => format!("PostgreSQL: {error}"),
        });
    };
    let text =
        format!("PostgreSQL: {}{}", db.message(), advice(db).map_or(String::new(), |advice| format!("; {advice}")));
    if is_lasting(db.code()) { StoreError::Broken(text) } else { StoreError::Unavailable(text) }
}

fn advice(db: &DbError) -> Option<&'static str> {
    let code = db.code();
    Some(match () {
        () if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            "this is a read-only replica, or it takes no writes for now; give the URL of the primary"
        }
        // No conflict: deciding again would only wait for it again.
        () if *code == SqlState::LOCK_NOT_AVAILABLE => "another session keeps what is wanted locked",
        () if *code == SqlState::DISK_FULL => "its disk is full",
        () if *code == SqlState::TOO_MANY_CONNECTIONS => {
            "raise its max_connections, or lower `pool` in the store's URL"
        }
        () if *code == SqlState::OUT_OF_MEMORY => "raise its max_locks_per_transaction",
        () if *code == SqlState::INSUFFICIENT_PRIVILEGE => "the role may not do this; see the guide on roles",
        () if *code == SqlState::UNDEFINED_TABLE => {
            "the tables are gone; restart Tally to make them, or restore a backup"
        }
        () if db.constraint() == Some("sequence_has_numbers") => "a sequence has no more numbers",
        () => return None,
    })
}

/// Whether somebody has to do something about it.
fn is_lasting(code: &SqlState) -> bool {
    [
        SqlState::CHECK_VIOLATION,
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        SqlState::INVALID_CATALOG_NAME,
        SqlState::INSUFFICIENT_PRIVILEGE,
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_COLUMN,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::DATA_CORRUPTED,
        SqlState::INDEX_CORRUPTED,
    ]
    .contains(code)
}

/// A value in a table that no Tally wrote.
pub(crate) fn unreadable(what: &str) -> StoreError {
    StoreError::Broken(format!("{what} cannot be read"))
}
