//! What can be declared of a unique count.

use crate::id::Name;
use crate::limit::RateLimit;

/// A declared unique count.
#[derive(Clone, Debug)]
pub struct UniqueDef {
    /// Its name.
    pub name: Name,
    /// A limit to pass first.
    pub rate_limit: Option<RateLimit>,
}

impl UniqueDef {
    /// One with everything at its default.
    pub fn new(name: Name) -> Self {
        Self { name, rate_limit: None }
    }

    /// The limit that it has to pass.
    pub(crate) fn passes(&self) -> Option<&RateLimit> {
        self.rate_limit.as_ref()
    }
}
