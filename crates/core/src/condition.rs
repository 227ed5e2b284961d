//! Conditions: small CEL expressions that decide whether something may happen.
//!
//! A condition that is false, not a boolean, or in error denies. Comprehensions (`all`, `exists`,
//! `map`, `filter`) are refused when the condition is read, so that none can run for long; and so is what can never be
//! true.

mod types;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::{Context, ExecutionError, Program, Value};

use crate::error::Refusal;
use crate::limits::CONDITION_CHARS_MAX;

/// The names that a condition may use.
pub const VARIABLES: [&str; 5] = ["auth", "object", "subject", "meta", "now"];

/// Conditions of rows that are kept.
const KNOWN_MAX: usize = 64;

/// A condition that was checked when it was read.
#[derive(Clone)]
pub struct Condition {
    text: Arc<str>,
    program: Arc<Program>,
    reads_object: bool,
    reads_now: bool,
    reads_subject: bool,
    reads_meta: bool,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.text).finish()
    }
}

/// What a condition is asked about.
pub struct Facts<'a> {
    /// Who calls: `kind`, `subject`, `role`, `claims`.
    pub auth: &'a serde_json::Value,
    /// The object: `id`, `type`, `exists`, and what it was registered with.
    pub object: serde_json::Value,
    /// Whose edge it is.
    pub subject: Option<&'a str>,
    /// The edge's meta.
    pub meta: Option<&'a serde_json::Map<String, serde_json::Value>>,
    /// The stamped time.
    pub now: crate::time::Timestamp,
}

impl Condition {
    /// Reads a condition that stands in a row, where it is read again and again: the last ones are kept.
    pub fn compile_once(text: &str) -> Result<Self, String> {
        static KNOWN: Mutex<Vec<Condition>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.iter().find(|condition| *condition.text == *text) {
            return Ok(found.clone());
        }
        let condition = Self::compile(text)?;
        if known.len() >= KNOWN_MAX {
            known.remove(0);
        }
        known.push(condition.clone());
        Ok(condition)
    }

    /// Reads a condition, and says what is wrong with one that cannot be used.
    pub fn compile(text: &str) -> Result<Self, String> {
        if text.chars().count() > CONDITION_CHARS_MAX {
            return Err(format!("a condition has at most {CONDITION_CHARS_MAX} characters"));
        }
        let program = Program::compile(text).map_err(|error| error.to_string())?;
        if has_comprehension(program.expression()) {
            return Err("a condition may not loop (all, exists, exists_one, map, filter)".into());
        }
        let references = program.references();
        let unknown: Vec<&str> = references.variables().into_iter().filter(|name| !VARIABLES.contains(name)).collect();
        if !unknown.is_empty() {
            return Err(format!("unknown name `{}`; a condition knows {}", unknown.join("`, `"), VARIABLES.join(", ")));
        }
        let reads = |name| references.has_variable(name);
        let (reads_object, reads_now) = (reads("object"), reads("now"));
        let (reads_subject, reads_meta) = (reads("subject"), reads("meta"));
        types::check(program.expression())?;
        let (text, program) = (text.into(), Arc::new(program));
        let condition = Self { text, program, reads_object, reads_now, reads_subject, reads_meta };
        condition.try_out()?;
        Ok(condition)
    }

    /// Asks it about one thing and another. What fails whatever it is asked about can never be true; that something is
    /// not there, such as a claim, says nothing.
    fn try_out(&self) -> Result<(), String> {
        let user = json!({"kind": "user", "subject": "alice", "claims": {}});
        let key = json!({"kind": "key", "role": "service"});
        let object = |exists: bool| {
            let status = exists.then_some("published");
            json!({"id": "1", "type": "post", "exists": exists, "status": status, "attributes": {}})
        };
        let mut failure = None;
        for (auth, exists) in [(&user, true), (&user, false), (&key, true), (&key, false)] {
            let now = crate::time::Timestamp(1_767_225_600_000);
            let facts = Facts { auth, object: object(exists), subject: Some("alice"), meta: None, now };
            match self.run(facts) {
                Some(Ok(Value::Bool(_)) | Err(ExecutionError::NoSuchKey(_))) => return Ok(()),
                Some(Ok(_)) | None => failure = Some("it is neither true nor false".to_owned()),
                Some(Err(error)) => failure = Some(error.to_string()),
            }
        }
        failure.map_or(Ok(()), |why| Err(format!("a condition that always fails: {why}")))
    }

    /// Whether the edge itself must be known to answer: who acts, or what is attached.
    pub fn reads_subject(&self) -> bool {
        self.reads_subject
    }

    /// Whether it asks for what is attached to an edge.
    pub fn reads_meta(&self) -> bool {
        self.reads_meta
    }

    /// Whether the object's row must be loaded to answer.
    pub fn reads_object(&self) -> bool {
        self.reads_object
    }

    /// Whether the answer depends on the time.
    pub fn reads_now(&self) -> bool {
        self.reads_now
    }

    /// Whether it holds.
    pub fn holds(&self, facts: Facts<'_>) -> bool {
        matches!(self.run(facts), Some(Ok(Value::Bool(true))))
    }

    /// Passes, or refuses. The refusal knows the condition's text, for the log, and does not tell it.
    pub fn check(&self, facts: Facts<'_>) -> Result<(), Refusal> {
        if self.holds(facts) { Ok(()) } else { Err(Refusal::ConditionFailed(self.text.to_string())) }
    }

    fn run(&self, facts: Facts<'_>) -> Option<Result<Value, ExecutionError>> {
        let mut context = Context::default();
        context.add_variable_from_value("auth", to_cel(facts.auth));
        context.add_variable_from_value("object", to_cel(&facts.object));
        context
            .add_variable_from_value("subject", facts.subject.map_or(Value::Null, |text| Value::from(text.to_owned())));
        let meta = facts.meta.map_or_else(|| to_cel(&serde_json::json!({})), map_to_cel);
        context.add_variable_from_value("meta", meta);
        context.add_variable("now", cel::Timestamp(to_chrono(facts.now)?)).ok()?;
        Some(self.program.execute(&context))
    }
}

fn to_chrono(time: crate::time::Timestamp) -> Option<chrono::DateTime<chrono::FixedOffset>> {
    Some(chrono::DateTime::from_timestamp_millis(i64::try_from(time.0).ok()?)?.fixed_offset())
}

/// JSON to CEL, with every whole number an `int`: `object.price > 5` must not fail on `uint`.
fn to_cel(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(held) => Value::Bool(*held),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::from(text.clone()),
        serde_json::Value::Array(items) => Value::from(items.iter().map(to_cel).collect::<Vec<_>>()),
        serde_json::Value::Object(map) => map_to_cel(map),
    }
}

fn map_to_cel(map: &serde_json::Map<String, serde_json::Value>) -> Value {
    Value::from(
        map.iter().map(|(key, value)| (key.clone(), to_cel(value))).collect::<std::collections::HashMap<_, _>>(),
    )
}

fn has_comprehension(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Comprehension(_) => true,
        Expr::Call(call) => {
            call.target.iter().any(|target| has_comprehension(target)) || call.args.iter().any(has_comprehension)
        }
        Expr::List(list) => list.elements.iter().any(has_comprehension),
        Expr::Select(select) => has_comprehension(&select.operand),
        Expr::Map(map) => map.entries.iter().any(|entry| entry_has_comprehension(&entry.expr)),
        Expr::Struct(fields) => fields.entries.iter().any(|entry| entry_has_comprehension(&entry.expr)),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => false,
    }
}

fn entry_has_comprehension(entry: &EntryExpr) -> bool {
    match entry {
        EntryExpr::StructField(field) => has_comprehension(&field.value),
        EntryExpr::MapEntry(entry) => has_comprehension(&entry.key) || has_comprehension(&entry.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use serde_json::json;

    fn holds(text: &str) -> bool {
        let auth = json!({"kind": "user", "subject": "alice", "claims": {"age": 20, "verified": true}});
        let facts = Facts {
            auth: &auth,
            object: json!({"id": "1", "type": "post", "exists": true, "status": "published", "attributes": {"owner": "bob"}}),
            subject: Some("alice"),
            meta: None,
            now: Timestamp(1_700_000_000_000),
        };
        Condition::compile(text).unwrap().check(facts).is_ok()
    }

    #[test]
    fn a_condition_that_is_not_plainly_true_denies() {
        for (text, expected) in [
            ("true", true),
            ("object.status == 'published'", true),
            ("auth.subject == subject && auth.claims.verified", true),
            ("auth.claims.age >= 18", true),
            ("now > timestamp('2020-01-01T00:00:00Z')", true),
            ("object.attributes.owner != subject", true),
            ("has(meta.memo)", false),
            ("false", false),
            ("object.attributes.missing == 1", false),
            ("auth.claims.age", false),
            ("auth.claims.age / 0 == 1", false),
            ("auth.claims.age > 'a'", false),
        ] {
            assert_eq!(holds(text), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_when_it_is_read() {
        for bad in ["object.", "[1].all(x, x > 0)", "{'a': [1].map(x, x)} == {}", "request.auth != null", ""] {
            assert!(Condition::compile(bad).is_err(), "{bad}");
        }
        // What can never be true, with what is wrong with it.
        for (bad, why) in [
            ("1 + 1", "a number"),
            ("1", "a number"),
            ("'published'", "a text"),
            ("auth.subject", "a text"),
            ("object.attributes", "a map"),
            ("now", "a time"),
            ("[true]", "a list"),
            ("frobnicate(auth)", "unknown function `frobnicate`"),
            ("auth.kind == 'user' && isAdmin(subject)", "unknown function `isAdmin`"),
            ("object.status.lowerCase() == 'open'", "unknown function `lowerCase`"),
            ("object.owner == subject", "unknown field `owner`"),
            ("auth.email_verified", "unknown field `email_verified`"),
            ("user.id == 1", "unknown name `user`"),
            ("auth.kind == 'user' && 1 + 1", "not a number"),
            ("!subject", "not a text"),
            ("'a' > 1", "between a text and a number"),
            ("subject == 5", "between a text and a number"),
            ("object.exists + 1 == 2", "between true or false and a number"),
            ("subject in 'alice'", "not in a text"),
            ("true ? 1 : 2", "a number"),
            ("now > timestamp('yesterday')", "always fails"),
            ("subject.matches('(')", "always fails"),
            ("1 / 0 == 1", "always fails"),
            ("size(1) == 1", "always fails"),
        ] {
            let told = Condition::compile(bad).err().unwrap_or_default();
            assert!(told.contains(why), "{bad}: {told:?}");
        }
        for good in [
            "true",
            "false",
            "auth.kind == 'key' || auth.claims.email_verified",
            "object.status != null && object.status == 'published'",
            "auth.claims.groups.contains('staff')",
            "'staff' in auth.claims.groups",
            "has(meta.memo) && size(meta.memo) < 10",
            "now - timestamp('2020-01-01T00:00:00Z') > duration('24h')",
            "now.getHours() >= 9",
            "object.id.startsWith('a') ? auth.kind == 'key' : true",
            "object.attributes['owner'] == subject",
            "auth.claims.level + 1 > 3",
            "subject == auth.subject",
            "auth.role in ['admin', 'service']",
            "string(auth.claims.age) == '5'",
        ] {
            assert!(Condition::compile(good).is_ok(), "{good}: {:?}", Condition::compile(good));
        }
        assert!(Condition::compile(&"!".repeat(3_000)).is_err());
    }
}
