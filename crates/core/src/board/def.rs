//! What can be declared of a board.

use crate::id::Name;
use crate::limit::RateLimit;
use crate::schedule::Schedule;

/// Which rank members with equal scores have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ties {
    /// Whoever reached the score first stands first: 1, 2, 3, 4.
    #[default]
    FirstToReach,
    /// They share a rank, and the next one is as many lower: 1, 2, 2, 4.
    Shared,
    /// They share a rank, and the next one follows: 1, 2, 2, 3.
    Dense,
}

/// A declared board.
#[derive(Clone, Debug)]
pub struct BoardDef {
    /// Its name.
    pub name: Name,
    /// Ranks of equal scores.
    pub ties: Ties,
    /// When it begins anew.
    pub season: Option<Schedule>,
    /// A score is set only where it is higher than the one there is.
    pub best_of: bool,
    /// A limit to pass first.
    pub rate_limit: Option<RateLimit>,
}

impl BoardDef {
    /// One with everything at its default.
    pub fn new(name: Name) -> Self {
        Self { name, ties: Ties::default(), season: None, best_of: false, rate_limit: None }
    }

    /// The limit that it has to pass.
    pub(crate) fn passes(&self) -> Option<&RateLimit> {
        self.rate_limit.as_ref()
    }
}
