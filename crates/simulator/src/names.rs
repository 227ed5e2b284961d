//! What is acted on, and by whom.

use std::sync::Arc;

use tally::core::catalog::{CounterDef, LimitDef};
use tally::core::command::{Add, Command, Forget, Once, PutApiKey, Relate, RevokeApiKey, Take, Toggle, Unrelate};
use tally::core::rows::{ApiKey, ReplayKey, Role};
use tally::core::{Catalog, KeyId, Name, ObjectId, ReadPolicy, RelationDef, SubjectId, Timestamp};

/// How often the limit may be used, and in how many seconds.
pub(crate) const DOOR: (u64, u64) = (3, 10);

/// How long a job that has ended is kept.
const JOBS_TTL_MS: u64 = 8_000;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

pub(crate) fn object(text: &str) -> ObjectId {
    ObjectId::new(text).expect("a valid object")
}

pub(crate) fn subject(text: &str) -> SubjectId {
    SubjectId::new(text).expect("a valid subject")
}

fn key(text: &str) -> KeyId {
    KeyId::new(text).expect("a valid key")
}

/// What is declared on every server.
pub(crate) fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    // Shorter than a clock may be wrong.
    catalog.idempotency_ttl_ms = 10 * 60_000;
    // So short that jobs are dropped while others are begun.
    catalog.jobs_ttl_ms = JOBS_TTL_MS;
    let mut shelf = RelationDef::new(name("shelf"), ReadPolicy::Public);
    shelf.limit_per_subject = Some(2);
    catalog.declare(shelf);
    let rate = format!("{}/{}s", DOOR.0, DOOR.1);
    catalog.declare_limit(name("door"), LimitDef::parse("door", &rate, None).expect("a valid rate"));
    catalog.declare_counter(name("twin"), CounterDef::new(name("twin")));
    catalog
}

/// Whose counts somebody watches on every server.
pub(crate) fn watched() -> (Vec<ObjectId>, Vec<Name>) {
    (["post:0", "post:1", "post:2"].map(object).to_vec(), vec![name("like")])
}

pub(crate) fn relate(relation: &str, to: &str, who: &str) -> Command {
    Command::from(Relate {
        relation: name(relation),
        object: object(to),
        subject: subject(who),
        kind: None,
        meta: None,
    })
}

pub(crate) fn unrelate(relation: &str, to: &str, who: &str) -> Command {
    Command::from(Unrelate { relation: name(relation), object: object(to), subject: subject(who) })
}

pub(crate) fn toggle(relation: &str, to: &str, who: &str) -> Command {
    Command::from(Toggle {
        relation: name(relation),
        object: object(to),
        subject: subject(who),
        kind: None,
        meta: None,
    })
}

pub(crate) fn count(counter: &str, what: &str) -> Command {
    Command::from(Add { counter: name(counter), key: key(what), by: 1 })
}

pub(crate) fn take(what: &str) -> Command {
    Command::from(Take { limit: name("door"), key: key(what), cost: 1 })
}

pub(crate) fn forget(who: &str) -> Command {
    Command::from(Forget { subject: subject(who) })
}

pub(crate) fn put_key(id: &str) -> Command {
    let key = ApiKey {
        hash: "0".repeat(64),
        role: Role::Read,
        name: String::new(),
        created_at: Timestamp(1),
        revoked_at: None,
    };
    Command::from(PutApiKey { id: id.into(), key })
}

/// A request that is to be done once.
pub(crate) fn once(key: &str) -> Once {
    Once { key: ReplayKey { caller: "client".into(), key: key.into() }, fields: Arc::new(Vec::new()) }
}

pub(crate) fn revoke_key(id: &str) -> Command {
    Command::from(RevokeApiKey { id: id.into() })
}
