//! The rows of counters.

use serde::{Deserialize, Serialize};

use crate::id::{KeyId, Name};

/// Names a counter or a unique count: a declared name, and what is counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct CountKey {
    /// The declared name.
    pub name: Name,
    /// What is counted.
    pub key: KeyId,
}
