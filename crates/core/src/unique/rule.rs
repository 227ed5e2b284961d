//! How many different ones: members go into a sketch, which forgets who they were.

use super::{Observe, UniqueReply};
use crate::decide::Context;
use crate::error::Refusal;
use crate::limit;
use crate::limits::{ID_BYTES_MAX, UNIQUE_MEMBERS_MAX};
use crate::rows::{CountKey, Key, Row};
use crate::view::{Stop, View};

/// Notes who was seen.
pub(crate) fn observe(command: &Observe, context: &Context<'_>, view: &mut View) -> Result<UniqueReply, Stop> {
    let Observe { unique, key, members } = command;
    let def = context.catalog.unique(unique)?;
    check_members(members)?;
    let row = Key::Unique(CountKey { name: unique.clone(), key: key.clone() });
    let mut rows = vec![row.clone()];
    rows.extend(limit::row(def.rate_limit.as_ref(), None, key.as_str()));
    view.want(&rows, &[])?;
    let before = view.kept_counted(&row, Row::into_unique)?.unwrap_or_default();
    let mut after = before.clone();
    members.iter().for_each(|member| after.add(member));
    let changed = after != before;
    let estimate = after.estimate();
    if changed {
        limit::pass(def.rate_limit.as_ref(), None, key.as_str(), context, view)?;
        view.set(row, Some(Row::Unique(after)))?;
    }
    Ok(UniqueReply { unique: unique.clone(), key: key.clone(), changed, estimate })
}

fn check_members(members: &[String]) -> Result<(), Refusal> {
    if members.is_empty() {
        return Err(Refusal::bad_request("members is empty"));
    }
    if members.len() > UNIQUE_MEMBERS_MAX {
        return Err(Refusal::TooLarge(format!("at most {UNIQUE_MEMBERS_MAX} members are added at once")));
    }
    if members.iter().any(|member| member.is_empty() || member.len() > ID_BYTES_MAX) {
        return Err(Refusal::bad_request(format!("a member has 1 to {ID_BYTES_MAX} bytes")));
    }
    Ok(())
}
