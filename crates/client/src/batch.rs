//! Many commands in one request.

use serde::Deserialize;
use serde_json::{Value, json};
use tally_core::{Command, Reply};

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
    command.written().ok_or_else(|| Error::NotInABatch(format!("{command:?}")))
}

#[cfg(test)]
mod tests {
    use tally_core::command::{Add, Attend, ChangeScore, Observe, Relate, ScoreChange, Take, Toggle, Unrelate, Verify};
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
            Command::from(Relate {
                relation: name(),
                object: o(),
                subject: s(),
                kind: Some(name()),
                meta: meta.clone(),
            }),
            Command::from(Relate { relation: name(), object: o(), subject: s(), kind: None, meta: None }),
            Command::from(Unrelate { relation: name(), object: o(), subject: s() }),
            Command::from(Toggle { relation: name(), object: o(), subject: s(), kind: None, meta }),
            Command::from(Add { counter: name(), key: key.clone(), by: -3 }),
            Command::from(Observe { unique: name(), key: key.clone(), members: vec!["a".into()] }),
            Command::from(Attend { sheet: name(), day: None, subject: s(), present: true }),
            Command::from(Attend {
                sheet: name(),
                day: "2026-01-31".parse::<Day>().ok(),
                subject: s(),
                present: false,
            }),
            Command::from(ChangeScore { board: name(), member: s(), change: ScoreChange::By(5) }),
            Command::from(ChangeScore { board: name(), member: s(), change: ScoreChange::To(-5) }),
            Command::from(Take { limit: name(), key, cost: 2 }),
        ] {
            let read: Command = serde_json::from_value(written(&command).unwrap()).unwrap();
            assert_eq!(read, command);
        }
        assert!(matches!(written(&Command::from(Verify { repair: true })), Err(Error::NotInABatch(_))));
    }

    #[test]
    fn replies_and_problems_are_told_apart() {
        let text = r#"{"results": [
            {"counter": "views", "key": "post:1", "value": 3, "changed": true},
            {"type": "urn:tally:problem:forbidden", "title": "Not allowed", "status": 403, "detail": "no", "code": "forbidden"}
        ]}"#;
        let answer: BatchAnswer = serde_json::from_str(text).unwrap();
        assert!(matches!(&answer.results[0], BatchItem::Reply(reply) if matches!(**reply, Reply::Counter(_))));
        assert!(matches!(&answer.results[1], BatchItem::Problem(problem) if problem.code == "forbidden"));
    }
}
