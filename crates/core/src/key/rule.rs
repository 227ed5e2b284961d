//! API keys: made once, revoked once, never shown again.

use crate::decide::Context;
use crate::error::Refusal;
use crate::limits::LABEL_BYTES_MAX;
use crate::reply::Done;
use crate::rows::{ApiKey, Key, Row};
use crate::view::{Stop, View};

/// Whether a key can be called so: stores take no other ids, and nobody is asked for one.
fn is_id(id: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Stores a key, made at the stamped time.
pub(super) fn put(id: &str, key: &ApiKey, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
    if !is_id(id) {
        return Err(
            Refusal::bad_request(format!("a key's id has 1 to {LABEL_BYTES_MAX} visible ASCII characters")).into()
        );
    }
    if key.name.len() > LABEL_BYTES_MAX {
        return Err(Refusal::bad_request(format!("a key's name has at most {LABEL_BYTES_MAX} bytes")).into());
    }
    if key.name.chars().any(char::is_control) {
        return Err(Refusal::bad_request("a key's name has no control characters").into());
    }
    let row_key = Key::ApiKey(id.to_owned());
    if view.row(&row_key)?.is_some() {
        return Err(Refusal::Conflict(format!("there is a key `{id}` already")).into());
    }
    view.set(row_key, Some(Row::ApiKey(ApiKey { created_at: context.now(), ..key.clone() })))?;
    Ok(Done { changed: true })
}

/// Ends a key. It stays listed, so that it is known what it was.
pub(super) fn revoke(id: &str, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
    if !is_id(id) {
        return Err(Refusal::NotFound("there is no key with such an id".into()).into());
    }
    let row_key = Key::ApiKey(id.to_owned());
    let Some(Row::ApiKey(key)) = view.row(&row_key)? else {
        return Err(Refusal::NotFound(format!("there is no key `{id}`")).into());
    };
    if key.revoked_at.is_some() {
        return Ok(Done { changed: false });
    }
    let revoked = ApiKey { revoked_at: Some(context.now()), ..key };
    view.set(row_key, Some(Row::ApiKey(revoked)))?;
    Ok(Done { changed: true })
}
