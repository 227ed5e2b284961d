//! What can be declared of a relation.

use crate::condition::Condition;
use crate::id::Name;
use crate::limit::RateLimit;
use crate::meta::MetaShape;

/// Who may read the edges of a relation, apart from servers with an API key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReadPolicy {
    /// Everyone who is signed in.
    Public,
    /// Each subject its own; counts are for all.
    #[default]
    Own,
    /// No user reads it; API keys do.
    None,
}

/// Optional conditions, each a CEL expression.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Asked before an edge is made.
    pub relate: Option<Condition>,
    /// Asked before an edge is removed.
    pub unrelate: Option<Condition>,
    /// Asked before an edge, a count or a list is shown.
    pub read: Option<Condition>,
}

/// One declared relation.
#[derive(Clone, Debug)]
pub struct RelationDef {
    /// Its name.
    pub name: Name,
    /// Who may read it.
    pub read: ReadPolicy,
    /// Whether the object must be registered.
    pub requires_object: bool,
    /// How many edges a subject may have at once.
    pub limit_per_subject: Option<u32>,
    /// The kinds of which an edge has exactly one; empty when the relation has none.
    pub one_of: Vec<Name>,
    /// The shape of `meta`; without one, any bounded map is taken.
    pub meta: Option<MetaShape>,
    /// Whether `meta` of an existing edge may be replaced.
    pub mutable_meta: bool,
    /// Whether a subject may relate to an object that it owns.
    pub allow_self: bool,
    /// Conditions that reading and writing must meet.
    pub when: Conditions,
    /// A limit that every change has to pass first.
    pub rate_limit: Option<RateLimit>,
}

impl RelationDef {
    /// A relation with everything at its default.
    pub fn new(name: Name, read: ReadPolicy) -> Self {
        Self {
            name,
            read,
            requires_object: false,
            limit_per_subject: None,
            one_of: Vec::new(),
            meta: None,
            mutable_meta: false,
            allow_self: true,
            when: Conditions::default(),
            rate_limit: None,
        }
    }

    /// The limit that it has to pass.
    pub(crate) fn passes(&self) -> Option<&RateLimit> {
        self.rate_limit.as_ref()
    }
}
