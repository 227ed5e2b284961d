//! Reading unique counts.

use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::id::{KeyId, Name};
use crate::limits::UNION_KEYS_MAX;
use crate::permission::Permission;
use crate::query::{Ask, Question, questions};
use crate::read::{Halt, Sight};
use crate::rows::{CountKey, Key, Row, SKETCH_ERROR, Sketch};
use crate::view::Wants;

/// How many different ones, in one key or in several together?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UniqueQuery {
    /// The unique count.
    pub unique: Name,
    /// The keys.
    pub keys: Vec<KeyId>,
}

questions!(Unique: Unique(UniqueQuery) -> UniqueAnswer);

impl Question for UniqueQuery {
    type Answer = UniqueAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadUnique));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<UniqueAnswer, Halt> {
        sight.catalog.unique(&self.unique)?;
        if self.keys.is_empty() || self.keys.len() > UNION_KEYS_MAX {
            return Err(Refusal::bad_request(format!("keys are 1 to {UNION_KEYS_MAX}")).into());
        }
        let found = sight.load(|| {
            let keys = self.keys.iter().map(|key| CountKey { name: self.unique.clone(), key: key.clone() });
            Wants::rows(keys.map(Key::Unique).collect())
        })?;
        let sketches: Vec<&Sketch> = found.rows.iter().flatten().filter_map(Row::unique).collect();
        let estimate = match *sketches {
            [] => 0,
            [alone] => alone.estimate(),
            _ => Sketch::union_estimate(sketches.into_iter()),
        };
        Ok(UniqueAnswer { estimate, error: SKETCH_ERROR })
    }
}

/// How many different ones.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UniqueAnswer {
    /// About how many.
    pub estimate: u64,
    /// The standard error of that, as a part of it: 0.0081 is 0.81 %.
    pub error: f64,
}
