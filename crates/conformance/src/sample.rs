//! Short ways to name things.

use std::sync::Arc;

use serde_json::Value;
use tally_core::catalog::{BoardDef, LimitDef, ReadPolicy, Ties};
use tally_core::command::{Add, Batch, Call, Command, PutObject, Relate, Toggle, Unrelate};
use tally_core::meta::Meta;
use tally_core::rows::{CountKey, Edge, EdgeKey, ListKey, ReplayKey, Side, TotalKey};
use tally_core::time::Stamp;
use tally_core::{Catalog, KeyId, Name, ObjectId, RelationDef, SubjectId};

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a sample is a valid name")
}

pub(crate) fn object(text: &str) -> ObjectId {
    ObjectId::new(text).expect("a sample is a valid object")
}

pub(crate) fn subject(text: &str) -> SubjectId {
    SubjectId::new(text).expect("a sample is a valid subject")
}

pub(crate) fn meta(value: &Value) -> Meta {
    Arc::new(value.as_object().expect("a sample of meta is an object").clone())
}

pub(crate) fn edge_key(relation: &str, to: &str, who: &str) -> EdgeKey {
    EdgeKey { object: object(to), relation: name(relation), subject: subject(who) }
}

pub(crate) fn edge(created: u64) -> Edge {
    Edge { created: Stamp(created), kind: None, meta: None, hidden: false }
}

pub(crate) fn list(side: Side, id: &str, relation: Option<&str>, hidden: bool) -> ListKey {
    ListKey { side, id: id.into(), relation: relation.map(name), hidden }
}

pub(crate) fn count_of(relation: &str, to: &str) -> TotalKey {
    TotalKey::Object { object: object(to), relation: name(relation) }
}

pub(crate) fn total_of(relation: &str, who: &str) -> TotalKey {
    TotalKey::Subject { subject: subject(who), relation: name(relation) }
}

pub(crate) fn replay_key(caller: &str, key: &str) -> ReplayKey {
    ReplayKey { caller: caller.into(), key: key.into() }
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

pub(crate) fn react(relation: &str, to: &str, who: &str, kind: &str) -> Command {
    let kind = Some(name(kind));
    Command::from(Relate { relation: name(relation), object: object(to), subject: subject(who), kind, meta: None })
}

pub(crate) fn unrelate(relation: &str, to: &str, who: &str) -> Command {
    Command::from(Unrelate { relation: name(relation), object: object(to), subject: subject(who) })
}

pub(crate) fn toggle(relation: &str, to: &str, who: &str) -> Command {
    let (object, subject) = (object(to), subject(who));
    Command::from(Toggle { relation: name(relation), object, subject, kind: None, meta: None })
}

fn key(text: &str) -> KeyId {
    KeyId::new(text).expect("a sample is a valid key")
}

/// Adds to a counter of views.
pub(crate) fn add(to: &str, by: i64) -> Command {
    Command::from(Add { counter: name("views"), key: key(to), by })
}

/// What that adds to.
pub(crate) fn counter(of: &str) -> TotalKey {
    TotalKey::Counter(CountKey { name: name("views"), key: key(of) })
}

pub(crate) fn put(id: &str, status: &str) -> Command {
    Command::from(PutObject { object: object(id), status: Some(status.into()), attributes: Meta::default() })
}

pub(crate) fn batch(commands: impl IntoIterator<Item = Command>) -> Command {
    Command::from(Batch { atomic: true, commands: commands.into_iter().collect() })
}

pub(crate) fn call(command: Command) -> Call {
    Call::system(command)
}

/// One relation for each thing that an engine can notice.
pub(crate) fn catalog() -> Arc<Catalog> {
    let mut catalog = Catalog::default();
    let mut declare = |text: &str, configure: fn(&mut RelationDef)| {
        let mut relation = RelationDef::new(name(text), ReadPolicy::Public);
        configure(&mut relation);
        catalog.declare(relation);
    };
    declare("note", |relation| relation.mutable_meta = true);
    declare("mark", |relation| relation.requires_object = true);
    declare("pin", |relation| relation.limit_per_subject = Some(1));
    declare("pair", |relation| relation.limit_per_subject = Some(2));
    declare("shelf", |relation| relation.limit_per_subject = Some(3));
    declare("reaction", |relation| relation.one_of = ["like", "love", "wow"].map(name).to_vec());
    let door = LimitDef::parse("door", "100/10min", None).expect("a sample is a valid rate");
    catalog.declare_limit(name("door"), door);
    let dense = BoardDef { ties: Ties::Dense, ..BoardDef::new(name("dense")) };
    catalog.declare_board(name("dense"), dense);
    let shared = BoardDef { ties: Ties::Shared, ..BoardDef::new(name("shared")) };
    catalog.declare_board(name("shared"), shared);
    Arc::new(catalog)
}
