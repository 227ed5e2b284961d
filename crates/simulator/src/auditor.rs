//! Says at the end of a run what cannot have been.
//!
//! The rule: every answer, also a refusal and a "nothing changed", is one that could have been true at one moment; what
//! was answered is there; what was promised has happened.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tally::core::command::{Add, Command, Forget, Relate, Take, Toggle, Unrelate};
use tally::core::reply::{EdgeReply, Reply};
use tally::core::rows::{Key, Row, TotalKey};
use tally::core::{KeyId, Refusal, counter, limit, relation, subject};
use tally::engine::{Engine, Finding};
use tally_conformance::linear::{Action, Answer, Op, State, is_linearizable};

use crate::fleet::Fleet;
use crate::history::Asked;
use crate::names::{DOOR, name};
use crate::now;

/// Operations on one edge that are looked at together.
const OPS_MAX: usize = 100;

/// Everything that is wrong.
pub(crate) fn audit(fleet: &Fleet) -> Vec<String> {
    let (store, history) = (&fleet.world.store, fleet.history.all());
    let mut problems = std::mem::take(&mut store.record().problems);
    let (rows, totals) = store.memory.dump();
    let mut tell = |finding| match finding {
        Finding::Progress(_) => {}
        Finding::Drift { total, stored, counted } => {
            problems.push(format!("{total:?} is {stored}, and its rows are {counted}"));
        }
        Finding::Stray { found, .. } | Finding::Leftover { found, .. } | Finding::Order { found, .. } => {
            problems.push(found);
        }
        Finding::Wrong(wrong) => problems.push(wrong.words()),
    };
    now(store.memory.audit(&mut tell)).expect("memory does not fail");
    problems.extend(refusals(&history));
    problems.extend(edges(&history, &rows));
    problems.extend(alone(&history));
    problems.extend(counters(&history, &totals));
    problems.extend(remembered(&history));
    problems.extend(limits(&history));
    problems.extend(order(fleet, &history, &rows));
    problems.extend(jobs(fleet, &history, &rows));
    problems
}

/// Nobody here asks for what must be refused, but for the limit.
fn refusals(history: &[Asked]) -> Vec<String> {
    let unjust = |asked: &&Asked| match asked.reply() {
        Some(Err(Refusal::RateLimited(_))) => {
            !matches!(asked.command, Command::Limit(limit::Command::Take(Take { .. })))
        }
        Some(Err(_)) => true,
        Some(Ok(_)) | None => false,
    };
    history.iter().filter(unjust).map(|asked| format!("refused without cause: {asked:?}")).collect()
}

fn edge_of(asked: &Asked) -> Option<(String, Action)> {
    let (relation, object, subject, action) = match &asked.command {
        Command::Relation(relation::Command::Relate(Relate { relation, object, subject, .. })) => {
            (relation, object, subject, Action::Relate(None))
        }
        Command::Relation(relation::Command::Unrelate(Unrelate { relation, object, subject })) => {
            (relation, object, subject, Action::Unrelate)
        }
        Command::Relation(relation::Command::Toggle(Toggle { relation, object, subject, .. })) => {
            (relation, object, subject, Action::Toggle(None))
        }
        _ => return None,
    };
    Some((format!("{relation} {object} {subject}"), action))
}

fn edge_reply(asked: &Asked) -> Option<&EdgeReply> {
    if let Some(Ok(Reply::Relation(edge))) = asked.reply() { Some(edge) } else { None }
}

fn state(active: bool) -> State {
    if active { State::Present(None) } else { State::Absent }
}

/// The answers about each edge fit one order, and so does what is there at the end. Edges of subjects that are forgotten
/// have rules of their own.
fn edges(history: &[Asked], rows: &BTreeMap<Key, Row>) -> Vec<String> {
    let mut ops: BTreeMap<String, Vec<Op>> = BTreeMap::new();
    let mut keys: BTreeMap<String, Key> = BTreeMap::new();
    for asked in history {
        let Some((edge, action)) = edge_of(asked).filter(|(edge, _)| !edge.ends_with(" f0") && !edge.ends_with(" f1"))
        else {
            continue;
        };
        let answer = |reply: &EdgeReply| Answer { state: state(reply.active), changed: reply.changed };
        let moment = asked.answered.as_ref().map_or(u64::MAX, |answered| answered.moment);
        let answered = edge_reply(asked).map(|reply| (moment, answer(reply)));
        if let Some(reply) = edge_reply(asked) {
            let key = tally::core::relation::edge_key(&reply.relation, &reply.object, &reply.subject);
            keys.insert(edge.clone(), Key::Edge(key));
        }
        ops.entry(edge).or_default().push(Op { asked: asked.asked, answered, action });
    }
    let mut problems = Vec::new();
    for (edge, mut ops) in ops {
        if let Some(key) = keys.get(&edge) {
            let last = (u64::MAX, Answer { state: state(rows.contains_key(key)), changed: false });
            ops.push(Op { asked: u64::MAX - 1, answered: Some(last), action: Action::Read });
        }
        if ops.len() <= OPS_MAX && !is_linearizable(&ops) {
            problems.push(format!("no order explains the answers about {edge}: {ops:#?}"));
        }
    }
    problems
}

/// An object that one subject alone ever touches has one edge or none, and is counted so.
fn alone(history: &[Asked]) -> Vec<String> {
    let replies = history.iter().filter_map(edge_reply).filter(|edge| edge.object.as_str().starts_with("solo:"));
    let wrong = replies.filter(|edge| edge.count != i64::from(edge.active));
    wrong.map(|edge| format!("a count that never was: {edge:?}")).collect()
}

/// Each addition counts once and tells a value of its own, and two counters that always move together are told alike.
fn counters(history: &[Asked], totals: &BTreeMap<TotalKey, i64>) -> Vec<String> {
    let mut problems = Vec::new();
    for (counter, key) in [("views", "plain"), ("views", "once")] {
        let mut told: BTreeSet<i64> = BTreeSet::new();
        let (mut sure, mut perhaps) = (BTreeSet::new(), BTreeSet::new());
        for asked in history {
            let Command::Counter(counter::Command::Add(Add { counter: name, key: what, .. })) = &asked.command else {
                continue;
            };
            if name.as_str() != counter || what.as_str() != key {
                continue;
            }
            let request = asked.once.clone().unwrap_or_else(|| asked.asked.to_string());
            match asked.reply() {
                Some(Ok(Reply::Counter(count))) => {
                    if sure.insert(request) && !told.insert(count.value) {
                        problems.push(format!("{counter} {key} told {} twice", count.value));
                    }
                }
                Some(_) => {}
                None => _ = perhaps.insert(request),
            }
        }
        let total = TotalKey::Counter(tally::core::rows::CountKey {
            name: name(counter),
            key: KeyId::new(key).expect("a valid key"),
        });
        let (value, sure_count) = (totals.get(&total).copied().unwrap_or(0), sure.len() as i64);
        let most = sure_count + perhaps.difference(&sure).count() as i64;
        if value < sure_count || value > most {
            problems.push(format!("{counter} {key} is {value}, and was added to {sure_count} to {most} times"));
        }
    }
    for asked in history {
        if let Some(Ok(Reply::Batch(replies))) = asked.reply()
            && let [Ok(Reply::Counter(one)), Ok(Reply::Counter(other))] = replies.as_slice()
            && one.value != other.value
        {
            problems.push(format!("two that move together were told apart: {} and {}", one.value, other.value));
        }
    }
    problems
}

/// A request with a key is answered the same however often it is sent.
fn remembered(history: &[Asked]) -> Vec<String> {
    let mut first: BTreeMap<&str, &Result<Reply, Refusal>> = BTreeMap::new();
    let mut problems = Vec::new();
    for asked in history {
        if let (Some(key), Some(reply)) = (&asked.once, asked.reply()) {
            let remembered = *first.entry(key).or_insert(reply);
            if remembered != reply {
                problems.push(format!("request {key} was answered {remembered:?}, then {reply:?}"));
            }
        }
    }
    problems
}

/// A limit lets as many through as it says, and refuses only when it is used up.
fn limits(history: &[Asked]) -> Vec<String> {
    let (amount, window) = (DOOR.0 as usize, Duration::from_secs(DOOR.1));
    let slack = Duration::from_secs(1);
    let takes: Vec<&Asked> = history
        .iter()
        .filter(|asked| {
            matches!(&asked.command, Command::Limit(limit::Command::Take(Take { key, .. })) if key.as_str() == "door")
        })
        .collect();
    let is_taken = |asked: &&&Asked| matches!(asked.reply(), Some(Ok(_)));
    let mut problems = Vec::new();
    for begin in takes.iter().filter(is_taken) {
        let inside = |asked: &&&Asked| {
            let end = asked.answered.as_ref().map(|answered| answered.at);
            asked.asked_at >= begin.asked_at && end.is_some_and(|end| end + slack < begin.asked_at + window)
        };
        let passed = takes.iter().filter(is_taken).filter(inside).count();
        if passed > amount {
            problems.push(format!("{passed} passed a limit of {amount} in {window:?}"));
        }
    }
    for refused in takes.iter().filter(|asked| matches!(asked.reply(), Some(Err(Refusal::RateLimited(_))))) {
        let Some(end) = refused.answered.as_ref().map(|answered| answered.at) else { continue };
        let may_count = |asked: &&&Asked| {
            let left = asked.answered.as_ref().map(|answered| answered.at);
            let refused_too = matches!(asked.reply(), Some(Err(_)));
            !refused_too
                && asked.asked_at <= end
                && left.is_none_or(|left| asked.reply().is_none() || left + window + slack >= refused.asked_at)
        };
        let used = takes.iter().filter(may_count).count();
        if used < amount {
            problems.push(format!("a limit of {amount} refused when at most {used} were used"));
        }
    }
    problems
}

/// What was made later is stamped later, whatever the clocks say.
fn order(fleet: &Fleet, history: &[Asked], rows: &BTreeMap<Key, Row>) -> Vec<String> {
    // Of each edge that is there: before what moment it was not asked for, and after what moment it was answered.
    let mut made: BTreeMap<Key, (u64, u64)> = BTreeMap::new();
    for asked in history {
        let (Some(reply), Some(answered)) = (edge_reply(asked), &asked.answered) else { continue };
        let key = Key::Edge(tally::core::relation::edge_key(&reply.relation, &reply.object, &reply.subject));
        let at = fleet.world.store.record().edges.get(&key).copied();
        // Several may have changed it at about the time at which it was made.
        if reply.changed && reply.active && at.is_some_and(|at| asked.asked_at <= at && at <= answered.at) {
            let moments = made.entry(key).or_insert((asked.asked, answered.moment));
            *moments = (moments.0.min(asked.asked), moments.1.max(answered.moment));
        }
    }
    // An edge that somebody else may have made since is left out.
    for asked in history.iter().filter(|asked| edge_reply(asked).is_none()) {
        if let Command::Relation(relation::Command::Relate(Relate { relation, object, subject, .. }))
        | Command::Relation(relation::Command::Toggle(Toggle { relation, object, subject, .. })) = &asked.command
        {
            made.remove(&Key::Edge(tally::core::relation::edge_key(relation, object, subject)));
        }
    }
    let stamped: Vec<_> = made
        .iter()
        .filter_map(|(key, moments)| match rows.get(key) {
            Some(Row::Edge(edge)) => Some((key, moments, edge.created)),
            _ => None,
        })
        .collect();
    let mut problems = Vec::new();
    for (first, (_, answered), stamp) in &stamped {
        for (second, (asked, _), later) in &stamped {
            if answered < asked && stamp >= later {
                problems.push(format!("{first:?} was answered before {second:?} was asked, and is stamped later"));
            }
        }
    }
    problems
}

/// Every job has ended, and of who was forgotten nothing is left that was there before.
fn jobs(fleet: &Fleet, history: &[Asked], rows: &BTreeMap<Key, Row>) -> Vec<String> {
    let mut problems = Vec::new();
    for (key, row) in rows {
        if matches!(row, Row::Job(job) if job.finished_at.is_none()) {
            problems.push(format!("{key:?} has not ended: {row:?}"));
        }
    }
    let record = fleet.world.store.record();
    for asked in history {
        let Command::Subject(subject::Command::Forget(Forget { subject })) = &asked.command else { continue };
        if !matches!(asked.reply(), Some(Ok(_))) {
            continue;
        }
        for (key, made) in &record.edges {
            if let Key::Edge(edge) = key
                && edge.subject == *subject
                && *made < asked.asked_at
            {
                problems
                    .push(format!("{key:?} is there, and {subject} was forgotten {:?} later", asked.asked_at - *made));
            }
        }
    }
    problems
}
