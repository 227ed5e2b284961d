//! Reads the lines of a script, and writes answers down as a script has them.

use std::sync::Arc;

use super::world::World;
use crate::catalog::RelationDef;
use crate::command::{
    Batch, Command, Decided, DeleteObject, ExpireReplays, Forget, Once, PutObject, Relate, Repair, Restore, Suspend,
    Sweep, Toggle, Unrelate,
};
use crate::error::Refusal;
use crate::hash::fingerprint;
use crate::id::{Name, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::relation::edge_key;
use crate::reply::{Done, Reply};
use crate::rows::{Edge, EdgeKey, JobId, Key, ReplayKey, Row, Side, TotalKey};

/// Runs every line, and compares the answer with what stands behind the arrow.
pub(crate) fn run(world: &mut World, text: &str) {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (command, expected) = line.split_once("->").map_or((line, ""), |(left, right)| (left.trim(), right.trim()));
        assert_eq!(answer(world, command), expected, "{line}");
    }
}

/// The answer to one line: a question about the world, something done to it, or a command.
fn answer(world: &mut World, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["clock", ms] => {
            world.now_ms = ms.parse().unwrap();
            String::new()
        }
        ["as", who] => {
            world.auth = Arc::new(serde_json::from_str(who).unwrap());
            String::new()
        }
        ["limit", relation, limit] => {
            let relation = world.catalog.relation(&name(relation)).unwrap();
            let limit_per_subject = Some(limit.parse().unwrap());
            world.catalog.declare(RelationDef { limit_per_subject, ..RelationDef::clone(relation) });
            String::new()
        }
        ["drift", relation, id, by] => {
            world.drifted = true;
            *world.totals.entry(count_key(relation, id)).or_default() += by.parse::<i64>().unwrap();
            String::new()
        }
        ["count", relation, id] => world.total(&count_key(relation, id)).to_string(),
        ["kind", relation, id, kind] => {
            let (object, relation, kind) = (object(id), name(relation), name(kind));
            world.total(&TotalKey::Kind { object, relation, kind }).to_string()
        }
        ["total", relation, id] => {
            let (subject, relation) = (subject(id), name(relation));
            world.total(&TotalKey::Subject { subject, relation }).to_string()
        }
        ["subjects", relation, id] => list(world, Side::Object, relation, id, false),
        ["objects", relation, id] => list(world, Side::Subject, relation, id, false),
        ["hidden", relation, id] => list(world, Side::Subject, relation, id, true),
        ["edge", relation, id, who] => show_edge(world, &edge_key(&name(relation), &object(id), &subject(who))),
        ["cost", ..] => show_cost(&apply(world, &words[1..])),
        _ => {
            let decided = apply(world, &words);
            show(world, decided)
        }
    }
}

fn apply(world: &mut World, words: &[&str]) -> Decided {
    let (once, words) = match words {
        ["once", key, rest @ ..] => (Some(once(key, rest)), rest),
        rest => (None, rest),
    };
    let command = read(world, words);
    world.apply(command, once)
}

/// A key of the caller `app`, with one field for each word of the command.
fn once(key: &str, words: &[&str]) -> Once {
    let fields = ["op", "relation", "object", "subject", "first", "second"];
    let fields = fields.iter().zip(words).map(|(field, word)| ((*field).to_owned(), fingerprint(&[word.as_bytes()])));
    let key = ReplayKey { caller: "app".into(), key: key.into() };
    Once { key, fields: Arc::new(fields.collect()) }
}

/// Reads a command.
pub(crate) fn read(world: &World, words: &[&str]) -> Command {
    match words {
        ["relate", relation, id, who, options @ ..] => Command::from(Relate {
            relation: name(relation),
            object: object(id),
            subject: subject(who),
            kind: option(options, "kind").map(name),
            meta: option(options, "meta").map(meta),
        }),
        ["toggle", relation, id, who, options @ ..] => Command::from(Toggle {
            relation: name(relation),
            object: object(id),
            subject: subject(who),
            kind: option(options, "kind").map(name),
            meta: option(options, "meta").map(meta),
        }),
        ["unrelate", relation, id, who] => {
            Command::from(Unrelate { relation: name(relation), object: object(id), subject: subject(who) })
        }
        ["put", id, options @ ..] => Command::from(PutObject {
            object: object(id),
            status: option(options, "status").map(str::to_owned),
            attributes: option(options, "attributes").map(meta).unwrap_or_default(),
        }),
        ["delete", id] => Command::from(DeleteObject { object: object(id) }),
        ["forget", who] => Command::from(Forget { subject: subject(who) }),
        ["suspend", who] => Command::from(Suspend { subject: subject(who) }),
        ["restore", who] => Command::from(Restore { subject: subject(who) }),
        ["sweep", job, edges @ ..] => {
            let edges = edges.iter().map(|text| edge(text)).collect();
            Command::from(Sweep { job: job_id(world, job), before: crate::time::Stamp(u64::MAX), edges })
        }
        ["repair", relation, id, by] => {
            Command::from(Repair { found_in: None, total: count_key(relation, id), by: by.parse().unwrap() })
        }
        ["expire", keys @ ..] => {
            let replay = |key: &&str| ReplayKey { caller: "app".into(), key: (*key).into() };
            Command::from(ExpireReplays { replays: keys.iter().map(replay).collect() })
        }
        ["batch", how, rest @ ..] => {
            let commands = rest.split(|word| *word == ";").map(|words| read(world, words)).collect();
            Command::from(Batch { atomic: *how == "atomic", commands })
        }
        other => panic!("not a line of a script: {other:?}"),
    }
}

fn option<'a>(options: &[&'a str], field: &str) -> Option<&'a str> {
    options.iter().find_map(|option| option.strip_prefix(field)?.strip_prefix('='))
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn object(text: &str) -> ObjectId {
    ObjectId::new(text).unwrap()
}

fn subject(text: &str) -> SubjectId {
    SubjectId::new(text).unwrap()
}

fn meta(text: &str) -> Meta {
    Arc::new(serde_json::from_str(text).unwrap())
}

fn count_key(relation: &str, id: &str) -> TotalKey {
    TotalKey::Object { object: object(id), relation: name(relation) }
}

/// `like/post:1/alice`.
fn edge(text: &str) -> EdgeKey {
    let parts: Vec<&str> = text.split('/').collect();
    edge_key(&name(parts[0]), &object(parts[1]), &subject(parts[2]))
}

/// `job1` is the first job that the script began.
fn job_id(world: &World, text: &str) -> JobId {
    let number: usize = text.strip_prefix("job").unwrap().parse().unwrap();
    world.jobs.get(number - 1).copied().unwrap_or(JobId(0))
}

/// Newest first, as both lists are.
fn list(world: &World, side: Side, relation: &str, id: &str, hidden: bool) -> String {
    let mut found: Vec<(&EdgeKey, &Edge)> = world
        .edges()
        .filter(|(key, edge)| key.end(side) == id && key.relation == name(relation) && edge.hidden == hidden)
        .collect();
    found.sort_by_key(|(_, edge)| std::cmp::Reverse(edge.created));
    found.iter().map(|(key, _)| key.other(side)).collect::<Vec<_>>().join(" ")
}

fn show_edge(world: &World, key: &EdgeKey) -> String {
    match world.rows.get(&Key::Edge(key.clone())) {
        Some(Row::Edge(edge)) => {
            let hidden = if edge.hidden { " hidden" } else { "" };
            format!("at={}{hidden}{}{}", edge.created.time().0, kind_text(edge.kind.as_ref()), meta_text(&edge.meta))
        }
        _ => "none".into(),
    }
}

fn show(world: &mut World, decided: Decided) -> String {
    let replayed = if decided.replayed { "replayed " } else { "" };
    format!("{replayed}{}", show_reply(world, &decided.reply))
}

fn show_reply(world: &mut World, reply: &Result<Reply, Refusal>) -> String {
    match reply {
        Ok(Reply::Relation(edge)) => {
            let state = if edge.active { "active" } else { "inactive" };
            let changed = if edge.changed { " changed" } else { "" };
            let meta = edge.meta.clone().flatten();
            format!("{state}{changed} count={}{}{}", edge.count, kind_text(edge.kind.as_ref()), meta_text(&meta))
        }
        Ok(Reply::Batch(replies)) => {
            let replies: Vec<String> = replies.iter().map(|reply| show_reply(world, reply)).collect();
            format!("[{}]", replies.join("; "))
        }
        Ok(Reply::Object(object)) => format!(
            "object{} status={} attributes={} at={}..{}",
            if object.changed == Some(true) { " changed" } else { "" },
            object.status.as_deref().unwrap_or("-"),
            serde_json::to_string(&*object.attributes).unwrap(),
            object.created_at.0,
            object.updated_at.0,
        ),
        Ok(Reply::Job(job)) => {
            let id = JobId::parse(&job.job).unwrap();
            if !world.jobs.contains(&id) {
                world.jobs.push(id);
            }
            let number = world.jobs.iter().position(|known| *known == id).unwrap() + 1;
            format!("job{number} {} {} edges={}", job.kind, job.state, job.edges)
        }
        Ok(
            reply @ (Reply::Counter(_)
            | Reply::Unique(_)
            | Reply::Attendance(_)
            | Reply::Board(_)
            | Reply::Limit(_)
            | Reply::Ticket(_)
            | Reply::Admit(_)
            | Reply::Room(_)),
        ) => serde_json::to_string(reply).unwrap(),
        Ok(Reply::Done(Done { changed })) => if *changed { "changed" } else { "same" }.into(),
        Err(Refusal::BatchRefused { index, cause }) => format!("batch_refused {index} {}", cause.code()),
        Err(Refusal::IdempotencyKeyReused { field }) => format!("idempotency_key_reused {field}"),
        Err(Refusal::Suspended(_)) => "forbidden suspended".into(),
        Err(refusal) => refusal.code().name().into(),
    }
}

fn kind_text(kind: Option<&Name>) -> String {
    kind.map(|kind| format!(" kind={kind}")).unwrap_or_default()
}

fn meta_text(meta: &Option<Meta>) -> String {
    meta.as_ref().map(|meta| format!(" meta={}", serde_json::to_string(&**meta).unwrap())).unwrap_or_default()
}

fn show_cost(decided: &Decided) -> String {
    format!("reads={} writes={}", decided.cost.reads, decided.cost.writes)
}
