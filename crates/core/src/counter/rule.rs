//! How many times: a number that is added to.

use super::{Add, CounterReply};
use crate::condition::Facts;
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{KeyId, Name, ObjectId};
use crate::rows::{CountKey, Key, Row, TotalKey};
use crate::time::Timestamp;
use crate::view::{Stop, View};
use crate::{limit, object};

/// `last_at` moves when it is this much behind: a counter that is added to all the time is not written twice as often.
const LAST_AT_MS: u64 = 1_000;

/// Adds to a counter.
pub(crate) fn add(command: &Add, context: &Context<'_>, view: &mut View) -> Result<CounterReply, Stop> {
    let Add { counter, key, by } = command;
    let by = *by;
    let def = context.catalog.counter(counter)?;
    let count_key = CountKey { name: counter.clone(), key: key.clone() };
    let total = TotalKey::Counter(count_key.clone());
    let object = def.requires.as_ref().map(|_| as_object(counter, key)).transpose()?;
    let mut rows: Vec<Key> = object.iter().cloned().map(Key::Object).collect();
    if def.last_at {
        rows.push(Key::Touched(count_key.clone()));
    }
    rows.extend(limit::row(def.rate_limit.as_ref(), None, key.as_str()));
    view.want(&rows, std::slice::from_ref(&total))?;
    if let (Some(condition), Some(id)) = (&def.requires, &object) {
        let found = object::read(id, view)?;
        let facts = Facts {
            auth: context.auth,
            object: object::facts(id, found.as_ref()),
            subject: None,
            meta: None,
            now: context.now(),
        };
        condition.check(facts)?;
    }
    let last_at = if def.last_at { touch(&count_key, by, context, view)? } else { None };
    if by != 0 {
        limit::pass(def.rate_limit.as_ref(), None, key.as_str(), context, view)?;
        view.add(&total, by)?;
        view.charge_total();
    }
    let value = view.total(&total)?;
    Ok(CounterReply { counter: counter.clone(), key: key.clone(), value, changed: by != 0, last_at })
}

fn as_object(counter: &Name, key: &KeyId) -> Result<ObjectId, Refusal> {
    ObjectId::new(key.as_str()).map_err(|_| {
        Refusal::bad_request(format!("`{counter}` has a condition, so its key is an object, written type:id"))
    })
}

fn touch(key: &CountKey, by: i64, context: &Context<'_>, view: &mut View) -> Result<Option<Timestamp>, Stop> {
    let row = Key::Touched(key.clone());
    let last = view.kept(&row, Row::into_touched)?;
    let now = context.now();
    if by == 0 || last.is_some_and(|last| now.0 < last.0 + LAST_AT_MS) {
        return Ok(last);
    }
    view.set_uncounted(row, Some(Row::Touched(now)))?;
    Ok(Some(now))
}
