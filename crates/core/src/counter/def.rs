//! What can be declared of a counter.

use crate::condition::Condition;
use crate::id::Name;
use crate::limit::RateLimit;

/// A declared counter.
#[derive(Clone, Debug)]
pub struct CounterDef {
    /// Its name.
    pub name: Name,
    /// Asked before it is added to. The key is the object.
    pub requires: Option<Condition>,
    /// Whether it keeps when it was last added to, to the second.
    pub last_at: bool,
    /// A limit to pass first.
    pub rate_limit: Option<RateLimit>,
}

impl CounterDef {
    /// One with everything at its default.
    pub fn new(name: Name) -> Self {
        Self { name, requires: None, last_at: false, rate_limit: None }
    }

    /// The limit that it has to pass.
    pub(crate) fn passes(&self) -> Option<&RateLimit> {
        self.rate_limit.as_ref()
    }
}
