//! What is declared: the relations that exist and how each behaves, and what is counted.

mod counting;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::condition::Condition;
use crate::error::Refusal;
use crate::id::Name;
use crate::meta::MetaShape;

pub use counting::{Algorithm, BoardDef, CounterDef, Counting, LimitDef, Per, RateLimit, SheetDef, Ties, UniqueDef};

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
}

/// Everything that is declared.
#[derive(Clone, Debug)]
pub struct Catalog {
    relations: BTreeMap<Name, Arc<RelationDef>>,
    /// Counters, unique counts, attendance, boards, limits.
    pub counting: Counting,
    /// How long an idempotency key is remembered.
    pub idempotency_ttl_ms: u64,
    /// How long a job that has ended can be asked for.
    pub jobs_ttl_ms: u64,
}

/// How long a job that has ended can be asked for by default: a week.
pub const JOBS_TTL_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// How long an idempotency key is remembered by default: a day.
pub const IDEMPOTENCY_TTL_MS: u64 = 24 * 60 * 60 * 1000;

impl Default for Catalog {
    fn default() -> Self {
        let built_in = [("like", ReadPolicy::Public), ("bookmark", ReadPolicy::Own), ("favorite", ReadPolicy::Own)];
        let mut catalog = Self {
            relations: BTreeMap::new(),
            counting: Counting::built_in(),
            idempotency_ttl_ms: IDEMPOTENCY_TTL_MS,
            jobs_ttl_ms: JOBS_TTL_MS,
        };
        for (name, read) in built_in {
            catalog.declare(RelationDef::new(Name::new(name).expect("built-in names are valid"), read));
        }
        catalog
    }
}

impl Catalog {
    /// Adds a relation, or replaces the one of the same name.
    pub fn declare(&mut self, relation: RelationDef) {
        self.relations.insert(relation.name.clone(), Arc::new(relation));
    }

    /// The relation of this name, or a refusal with the nearest name there is.
    pub fn relation(&self, name: &Name) -> Result<&Arc<RelationDef>, Refusal> {
        self.relations.get(name).ok_or_else(|| Refusal::RelationNotFound {
            name: name.clone(),
            near: nearest(name.as_str(), self.relations.keys().map(Name::as_str)).and_then(|near| Name::new(near).ok()),
        })
    }

    /// The limit of this name, whether it is declared by itself or with what has to pass it.
    pub fn limit_named(&self, name: &str) -> Option<&LimitDef> {
        let counting = &self.counting;
        let alone = counting.limits().map(|limit| &**limit);
        let with = (self.relations.values().filter_map(|def| def.rate_limit.as_ref()))
            .chain(counting.counters().filter_map(|def| def.rate_limit.as_ref()))
            .chain(counting.uniques().filter_map(|def| def.rate_limit.as_ref()))
            .chain(counting.sheets().filter_map(|def| def.rate_limit.as_ref()))
            .chain(counting.boards().filter_map(|def| def.rate_limit.as_ref()));
        alone.chain(with.map(|limit| &*limit.limit)).find(|limit| limit.name == name)
    }

    /// Every declared relation, by name.
    pub fn relations(&self) -> impl Iterator<Item = &Arc<RelationDef>> {
        self.relations.values()
    }

    /// Whether what may be read depends on the time.
    pub fn reads_by_time(&self) -> bool {
        self.relations.values().any(|relation| relation.when.read.as_ref().is_some_and(Condition::reads_now))
    }
}

/// The candidate that differs from `word` by at most a third of its letters, and least.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(apart, _)| *apart <= word.chars().count().div_ceil(3))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replace = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_gets_a_hint() {
        let catalog = Catalog::default();
        let near = |name: &str| match catalog.relation(&Name::new(name).unwrap()) {
            Err(Refusal::RelationNotFound { near, .. }) => near.map(|near| near.to_string()),
            other => panic!("{other:?}"),
        };
        assert_eq!(near("lik").as_deref(), Some("like"));
        assert_eq!(near("favourite").as_deref(), Some("favorite"));
        assert_eq!(near("zebra"), None);
    }
}
