//! Reading a counter.

use serde::{Deserialize, Serialize};

use crate::id::{KeyId, Name};
use crate::permission::Permission;
use crate::query::{Ask, Question, questions};
use crate::read::{Halt, Sight};
use crate::rows::{CountKey, Key, TotalKey};
use crate::time::Timestamp;
use crate::view::Wants;

/// How many times?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CounterQuery {
    /// The counter.
    pub counter: Name,
    /// What is counted.
    pub key: KeyId,
}

questions!(Counter: Counter(CounterQuery) -> CounterAnswer);

impl Question for CounterQuery {
    type Answer = CounterAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadCounter));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<CounterAnswer, Halt> {
        let keeps_time = sight.catalog.counter(&self.counter)?.last_at;
        let found = sight.load(|| {
            let key = CountKey { name: self.counter.clone(), key: self.key.clone() };
            let rows = if keeps_time { vec![Key::Touched(key.clone())] } else { Vec::new() };
            Wants { rows, totals: vec![TotalKey::Counter(key)], ..Wants::default() }
        })?;
        let last_at = found.rows.first().and_then(|row| row.as_ref()?.touched());
        Ok(CounterAnswer { value: found.totals.first().copied().unwrap_or(0), as_of: found.now.time(), last_at })
    }
}

/// A counter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CounterAnswer {
    /// Its value.
    pub value: i64,
    /// As of when.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub as_of: Timestamp,
    /// When it was last added to, to the second, where it keeps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_at: Option<Timestamp>,
}
