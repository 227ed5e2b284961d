//! Many commands in one request.

use serde::Deserialize;
use serde_json::{Value, json};
use tally_core::command::ScoreChange;
use tally_core::{Command, Reply};

use crate::attendance::day_text;
use crate::{Call, Client, Error, Problem};

/// The answer to a batch: one for each command, in order.
#[derive(Debug, Clone, Deserialize)]
pub struct BatchAnswer {
    /// What became of each.
    pub results: Vec<BatchItem>,
}

/// What became of one command.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum BatchItem {
    /// It was decided.
    Reply(Box<Reply>),
    /// It was refused.
    Problem(Problem),
}

impl Client {
    /// Does all of these commands or none.
    pub fn batch(&self, commands: &[Command]) -> Call<BatchAnswer> {
        self.send_batch(commands, true, false)
    }

    /// Does each of these commands on its own.
    pub fn batch_each(&self, commands: &[Command]) -> Call<BatchAnswer> {
        self.send_batch(commands, false, false)
    }

    /// Says what would become of each of these commands, and does nothing.
    pub fn rehearse(&self, commands: &[Command]) -> Call<BatchAnswer> {
        self.send_batch(commands, false, true)
    }

    fn send_batch(&self, commands: &[Command], atomic: bool, dry_run: bool) -> Call<BatchAnswer> {
        let call = self.post(&["v1", "batch"]);
        match commands.iter().map(written).collect::<Result<Vec<_>, _>>() {
            Ok(commands) => call.json(&json!({"atomic": atomic, "dry_run": dry_run, "commands": commands})),
            Err(error) => call.refused(error),
        }
    }
}

/// A command as a client writes it.
fn written(command: &Command) -> Result<Value, Error> {
    Ok(match command {
        Command::Relate { relation, object, subject, kind, meta } => json!({
            "op": "relate", "relation": relation, "object": object, "subject": subject, "kind": kind, "meta": meta,
        }),
        Command::Unrelate { relation, object, subject } => {
            json!({"op": "unrelate", "relation": relation, "object": object, "subject": subject})
        }
        Command::Toggle { relation, object, subject, kind, meta } => json!({
            "op": "toggle", "relation": relation, "object": object, "subject": subject, "kind": kind, "meta": meta,
        }),
        Command::Count { counter, key, by } => json!({"op": "count", "counter": counter, "key": key, "by": by}),
        Command::Observe { unique, key, members } => {
            json!({"op": "observe", "unique": unique, "key": key, "members": members})
        }
        Command::Attend { sheet, day, subject, present } => json!({
            "op": "attend", "sheet": sheet, "day": day_text(*day), "subject": subject, "present": present,
        }),
        Command::Score { board, member, change: ScoreChange::By(by) } => {
            json!({"op": "score", "board": board, "member": member, "by": by})
        }
        Command::Score { board, member, change: ScoreChange::To(score) } => {
            json!({"op": "score", "board": board, "member": member, "score": score})
        }
        Command::Take { limit, key, cost } => json!({"op": "take", "limit": limit, "key": key, "cost": cost}),
        Command::Score { change: ScoreChange::Leave, .. } => return Err(not_here("leaving a board")),
        Command::PutObject { .. } | Command::DeleteObject { .. } => return Err(not_here("objects")),
        Command::Forget { .. } | Command::Suspend { .. } | Command::Restore { .. } => {
            return Err(not_here("whole subjects"));
        }
        Command::PutApiKey { .. } | Command::RevokeApiKey { .. } => return Err(not_here("API keys")),
        Command::Batch { .. } | Command::Rehearse { .. } => return Err(not_here("another batch")),
        Command::Verify { .. }
        | Command::Declare
        | Command::RankAnew { .. }
        | Command::Sweep { .. }
        | Command::Recount { .. }
        | Command::Repair { .. }
        | Command::PutRight { .. }
        | Command::Expire { .. }
        | Command::ExpireJobs { .. }
        | Command::ExpireLimits { .. } => return Err(not_here("what a server does by itself")),
    })
}

fn not_here(what: &str) -> Error {
    Error::NotInABatch(what.to_owned())
}

#[cfg(test)]
mod tests {
    use tally_core::{Day, KeyId, Name, ObjectId, SubjectId};

    use super::*;

    #[test]
    fn what_is_written_is_what_a_server_reads() {
        let name = || Name::new("x").unwrap();
        let (object, subject) = (ObjectId::new("post:1").unwrap(), SubjectId::new("alice").unwrap());
        let key = KeyId::new("post:1").unwrap();
        let meta = json!({"memo": "later"}).as_object().cloned().map(std::sync::Arc::new);
        let (o, s) = (|| object.clone(), || subject.clone());
        for command in [
            Command::Relate { relation: name(), object: o(), subject: s(), kind: Some(name()), meta: meta.clone() },
            Command::Relate { relation: name(), object: o(), subject: s(), kind: None, meta: None },
            Command::Unrelate { relation: name(), object: o(), subject: s() },
            Command::Toggle { relation: name(), object: o(), subject: s(), kind: None, meta },
            Command::Count { counter: name(), key: key.clone(), by: -3 },
            Command::Observe { unique: name(), key: key.clone(), members: vec!["a".into()] },
            Command::Attend { sheet: name(), day: None, subject: s(), present: true },
            Command::Attend { sheet: name(), day: "2026-01-31".parse::<Day>().ok(), subject: s(), present: false },
            Command::Score { board: name(), member: s(), change: ScoreChange::By(5) },
            Command::Score { board: name(), member: s(), change: ScoreChange::To(-5) },
            Command::Take { limit: name(), key, cost: 2 },
        ] {
            let read: Command = serde_json::from_value(written(&command).unwrap()).unwrap();
            assert_eq!(read, command);
        }
        assert!(matches!(written(&Command::Verify { repair: true }), Err(Error::NotInABatch(_))));
    }

    #[test]
    fn replies_and_problems_are_told_apart() {
        let text = r#"{"results": [
            {"counter": "views", "key": "post:1", "value": 3, "changed": true},
            {"type": "urn:tally:problem:forbidden", "title": "Not allowed", "status": 403, "detail": "no", "code": "forbidden"}
        ]}"#;
        let answer: BatchAnswer = serde_json::from_str(text).unwrap();
        assert!(matches!(&answer.results[0], BatchItem::Reply(reply) if matches!(**reply, Reply::Count(_))));
        assert!(matches!(&answer.results[1], BatchItem::Problem(problem) if problem.code == "forbidden"));
    }
}
