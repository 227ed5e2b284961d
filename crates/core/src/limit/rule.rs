//! May this happen now: so much in so long, counted at the stamped time.
//!
//! The time is that of the store where several servers share one, and that of the runner where they do not. So clocks
//! that differ do not widen a limit.

use super::{Take, TakeReply};
use crate::catalog::{Algorithm, LimitDef, Per, RateLimit};
use crate::decide::Context;
use crate::error::{Exhausted, Refusal};
use crate::hash::digest_text;
use crate::id::SubjectId;
use crate::reply::Done;
use crate::rows::{Key, LimitKey, Row, Used, UsedState};
use crate::time::{AHEAD_US_MAX, Stamp, Timestamp};
use crate::view::{Stop, View};

/// Uses some of a limit.
pub(crate) fn take(command: &Take, context: &Context<'_>, view: &mut View) -> Result<TakeReply, Stop> {
    let Take { limit, key, cost } = command;
    let cost = *cost;
    let def = context.catalog.limit(limit)?;
    if cost == 0 || cost > def.amount {
        return Err(
            Refusal::bad_request(format!("cost is between 1 and {}, all that `{limit}` has", def.amount)).into()
        );
    }
    let room = spend(def, &limit_key(def, key.as_str()), cost, context, view)?;
    Ok(TakeReply {
        limit: limit.clone(),
        key: key.clone(),
        allowed: true,
        remaining: room.remaining,
        reset_ms: room.reset_us.div_ceil(1_000),
        amount: def.amount,
        window_ms: def.window_us.div_ceil(1_000),
    })
}

/// The row of a limit that another capability's write has to pass, for whoever names rows at once.
pub(crate) fn row(limit: Option<&RateLimit>, subject: Option<&SubjectId>, object: &str) -> Option<Key> {
    limit.map(|limit| Key::Limit(limit_key(&limit.limit, whose(limit, subject, object))))
}

/// Uses a limit once, for a write of another capability that is about to take effect.
pub(crate) fn pass(
    limit: Option<&RateLimit>,
    subject: Option<&SubjectId>,
    object: &str,
    context: &Context<'_>,
    view: &mut View,
) -> Result<(), Stop> {
    if let Some(limit) = limit {
        spend(&limit.limit, &limit_key(&limit.limit, whose(limit, subject, object)), 1, context, view)?;
    }
    Ok(())
}

fn whose<'a>(limit: &RateLimit, subject: Option<&'a SubjectId>, object: &'a str) -> &'a str {
    match limit.per {
        Per::Subject => subject.map_or(object, SubjectId::as_str),
        Per::Object => object,
        Per::All => "",
    }
}

/// Names what is used of a limit. Whose it is is not written down: it outlives who is forgotten, since forgetting oneself
/// is no way round a limit.
pub fn limit_key(def: &LimitDef, key: &str) -> LimitKey {
    key_of(&def.name, key)
}

/// The same by the limit's name.
pub fn key_of(name: &str, key: &str) -> LimitKey {
    let key = if key.is_empty() { String::new() } else { digest_text(&[key]) };
    LimitKey { name: name.to_owned(), key }
}

fn spend(def: &LimitDef, key: &LimitKey, cost: u64, context: &Context<'_>, view: &mut View) -> Result<Room, Stop> {
    let row = Key::Limit(key.clone());
    let used = view.kept(&row, Row::into_limit)?;
    let now = context.time.0;
    let (state, room) = decide(def, used.as_ref().map(|used| &used.state), now, cost);
    let Some(state) = state else {
        return Err(Refusal::RateLimited(Box::new(exhausted(def, &room))).into());
    };
    let look_at = used.map_or_else(|| Stamp(idle_at(def, &state)).time().plus_ms(1), |used| used.look_at);
    view.set_uncounted(row, Some(Row::Limit(Used { state, look_at })))?;
    Ok(room)
}

fn exhausted(def: &LimitDef, room: &Room) -> Exhausted {
    Exhausted {
        limit: def.name.clone(),
        amount: def.amount,
        window_ms: def.window_us.div_ceil(1_000),
        remaining: room.remaining,
        reset_ms: room.reset_us.div_ceil(1_000),
        retry_after_ms: room.retry_us.div_ceil(1_000).max(1),
    }
}

/// How a limit stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// How much is left.
    pub remaining: u64,
    /// In how many microseconds all of it is there again.
    pub reset_us: u64,
    /// In how many microseconds a use that was refused would pass.
    pub retry_us: u64,
}

/// How a limit stands, without using it.
pub fn peek(def: &LimitDef, used: Option<&Used>, now: Stamp) -> Room {
    decide(def, used.map(|used| &used.state), now.0, 0).1
}

/// Decides a use at a time. A state of another algorithm, from before the limit was declared anew, counts as none.
fn decide(def: &LimitDef, state: Option<&UsedState>, now: u64, cost: u64) -> (Option<UsedState>, Room) {
    match def.algorithm {
        Algorithm::SlidingLog => {
            let log: &[(u64, u64)] = if let Some(UsedState::Log(log)) = state { log } else { &[] };
            log_decide(def, log, now, cost)
        }
        Algorithm::SlidingWindow => {
            let window = match state {
                Some(UsedState::Window { start, current, previous }) if *start <= now + AHEAD_US_MAX => {
                    (*start, *current, *previous)
                }
                _ => (now, 0, 0),
            };
            window_decide(def, window, now, cost)
        }
        Algorithm::TokenBucket => {
            let full_at = if let Some(UsedState::Bucket { full_at }) = state { *full_at } else { 0 };
            bucket_decide(def, full_at, now, cost)
        }
    }
}

fn log_decide(def: &LimitDef, log: &[(u64, u64)], now: u64, cost: u64) -> (Option<UsedState>, Room) {
    // What a clock that was far ahead wrote down is held against nobody.
    let log: Vec<(u64, u64)> = log.iter().filter(|(at, _)| *at <= now + AHEAD_US_MAX).copied().collect();
    // Never before the last use, should the store's clock have been set back.
    let now = log.last().map_or(now, |(last, _)| now.max(*last));
    let mut log: Vec<(u64, u64)> = log.iter().filter(|(at, _)| at + def.window_us > now).copied().collect();
    let used: u64 = log.iter().map(|(_, cost)| cost).sum();
    let left = def.amount.saturating_sub(used);
    let ends = |at: u64| (at + def.window_us).saturating_sub(now);
    if cost > left {
        let mut freed = left;
        let enough = log.iter().find(|(_, cost_then)| {
            freed += cost_then;
            freed >= cost
        });
        let retry_us = enough.map_or(def.window_us, |(at, _)| ends(*at));
        return (None, Room { remaining: left, reset_us: log.last().map_or(0, |(at, _)| ends(*at)), retry_us });
    }
    if cost > 0 {
        log.push((now, cost));
    }
    let reset_us = log.last().map_or(0, |(at, _)| ends(*at));
    (Some(UsedState::Log(log)), Room { remaining: left - cost, reset_us, retry_us: 0 })
}

fn window_decide(
    def: &LimitDef,
    (start, current, previous): (u64, u64, u64),
    now: u64,
    cost: u64,
) -> (Option<UsedState>, Room) {
    let window = def.window_us;
    let now = now.max(start);
    let (start, current, previous) = match (now - start) / window {
        0 => (start, current, previous),
        1 => (start + window, 0, current),
        _ => (now, 0, 0),
    };
    // In units of one use for a whole window, so that nothing is rounded.
    let wide = |value: u64| u128::from(value);
    let left_of = |now: u64| wide(window - (now - start).min(window));
    let used = wide(previous) * left_of(now) + wide(current) * wide(window);
    let all = wide(def.amount) * wide(window);
    let remaining = |used: u128| u64::try_from(all.saturating_sub(used) / wide(window)).unwrap_or(0);
    let reset_us = |current: u64| match (current, previous) {
        (0, 0) => 0,
        (0, _) => start + window - now,
        _ => start + 2 * window - now,
    };
    if used + wide(cost) * wide(window) > all {
        let retry_us = window_retry(def, (start, current, previous), now, cost);
        return (None, Room { remaining: remaining(used), reset_us: reset_us(current), retry_us });
    }
    let current = current + cost;
    let room =
        Room { remaining: remaining(used + wide(cost) * wide(window)), reset_us: reset_us(current), retry_us: 0 };
    (Some(UsedState::Window { start, current, previous }), room)
}

/// When there is room again: while the last window moves out of reach, or while this one does.
fn window_retry(def: &LimitDef, (start, current, previous): (u64, u64, u64), now: u64, cost: u64) -> u64 {
    let window = u128::from(def.window_us);
    let until = |from: u64, fading: u64, fixed: u64| {
        let free = u128::from(def.amount.checked_sub(fixed + cost)?) * window;
        // fading * (window - elapsed) <= free
        let elapsed = match u128::from(fading) {
            0 => 0,
            fading => (fading * window).saturating_sub(free).div_ceil(fading),
        };
        (elapsed <= window).then(|| (u128::from(from) + elapsed).saturating_sub(u128::from(now)) as u64)
    };
    until(start, previous, current).or_else(|| until(start + def.window_us, current, 0)).unwrap_or(2 * def.window_us)
}

fn bucket_decide(def: &LimitDef, full_at: u64, now: u64, cost: u64) -> (Option<UsedState>, Room) {
    // In nanoseconds; what one costs is rounded up, so that never more than the amount passes in a window.
    let each = (def.window_us * 1_000).div_ceil(def.amount);
    let (now, whole) = (now * 1_000, each * def.amount);
    // Never emptier than empty, should the limit have been declared anew.
    let full_at = full_at.clamp(now, now + whole);
    let after = full_at.saturating_add(each.saturating_mul(cost));
    let left = |full_at: u64| (whole - (full_at - now).min(whole)) / each;
    if after - now > whole {
        let room = Room {
            remaining: left(full_at),
            reset_us: (full_at - now).div_ceil(1_000),
            retry_us: (after - now - whole).div_ceil(1_000),
        };
        return (None, room);
    }
    let room = Room { remaining: left(after), reset_us: (after - now).div_ceil(1_000), retry_us: 0 };
    (Some(UsedState::Bucket { full_at: after }), room)
}

/// From when on a state says no more than none would, in microseconds.
fn idle_at(def: &LimitDef, state: &UsedState) -> u64 {
    match state {
        UsedState::Log(log) => log.last().map_or(0, |(at, _)| at + def.window_us),
        UsedState::Window { start, .. } => start + 2 * def.window_us,
        UsedState::Bucket { full_at } => full_at.div_ceil(1_000),
    }
}

/// Drops what says nothing any more; of the others, says when to look again.
pub(super) fn expire(limits: &[LimitKey], context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
    let keys: Vec<Key> = limits.iter().cloned().map(Key::Limit).collect();
    view.want(&keys, &[])?;
    let mut changed = false;
    for (limit, key) in limits.iter().zip(keys) {
        let Some(Row::Limit(used)) = view.row_uncounted(&key)? else { continue };
        if used.look_at > context.now() {
            continue;
        }
        let idle = Stamp(idle_at_whatever(&limit.name, &used.state, context)).time().plus_ms(1);
        let next = (idle > context.now()).then_some(Row::Limit(Used { look_at: idle, ..used }));
        view.set_uncounted(key, next)?;
        changed = true;
    }
    Ok(Done { changed })
}

/// A limit that is not declared any more is idle.
fn idle_at_whatever(name: &str, state: &UsedState, context: &Context<'_>) -> u64 {
    context.catalog.limit_named(name).map_or(0, |def| idle_at(def, state))
}

/// When a row of a limit is due to be looked at.
pub fn look_at(row: &Row) -> Option<Timestamp> {
    if let Row::Limit(used) = row { Some(used.look_at) } else { None }
}
