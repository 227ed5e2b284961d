//! Putting right what a recount found: an edge that stands on one side alone, as after a node took over that had
//! not heard of the last writes of the one before.

use tally_core::rows::{EdgeKey, Key, Row};
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_engine::{CommitError, StoreError};

use crate::Redis;
use crate::plan::Plan;

/// How often to try again while others change the same edge.
const TRIES: usize = 32;

impl Redis {
    /// Makes the subject's side of an edge what the object's side is.
    pub(crate) async fn mend_edge(&self, key: &EdgeKey) -> Result<bool, StoreError> {
        for _ in 0..TRIES {
            let wants = Wants::rows(vec![Key::Edge(key.clone())]);
            let edge = self.read(&wants).await?.rows.pop().flatten().and_then(Row::into_edge);
            let plan = Plan::mend(&self.keys, key, edge.as_ref())?;
            match self.write_plan(&plan, Stamp::default(), &mut []).await {
                Ok(_) => return Ok(true),
                Err(CommitError::Conflict) => {}
                Err(CommitError::Store(error)) => return Err(error),
            }
        }
        Ok(false)
    }
}
