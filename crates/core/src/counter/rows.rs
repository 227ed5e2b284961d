//! The rows of counters.

use serde::{Deserialize, Serialize};

use crate::id::{KeyId, Name};
use crate::rows::{Kind, NumberOf, RowKind, TotalKey, columns, declare, kind};

/// Names a counter or a unique count: a declared name, and what is counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct CountKey {
    /// The declared name.
    pub name: Name,
    /// What is counted.
    pub key: KeyId,
}

/// Counters, as totals.
pub(crate) const COUNTER: NumberOf =
    NumberOf { table: "counter", letter: b'n', mark: "#", with_key: true, listed: Some(RowKind::Counter) };

columns!(CountKey { name, key });

impl Kind for kind::Counter {
    declare!(Counter = b'n' "counter" in "counter"
        ("counter" Text, "key" Text) => ("value" Signed)
        Key With(1));

    fn counts(key: &CountKey, value: &i64, mut add: impl FnMut(TotalKey, i64)) {
        add(TotalKey::Counter(key.clone()), *value);
    }
}

impl Kind for kind::Touched {
    declare!(Touched = b'l' "counter_last" in "counter"
        ("counter" Text, "key" Text) => ("last_at" Time)
        Absent With(1));
}
