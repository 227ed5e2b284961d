//! Reading how a limit stands.

use serde::{Deserialize, Serialize};

use super::{limit_key, peek};
use crate::id::{KeyId, Name};
use crate::permission::Permission;
use crate::query::{Ask, Question, questions};
use crate::read::{Halt, Sight};
use crate::rows::Key;
use crate::view::Wants;

/// How does this limit stand?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitQuery {
    /// The limit.
    pub limit: Name,
    /// Whose use of the limit is asked for.
    pub key: KeyId,
}

questions!(Limit: Limit(LimitQuery) -> LimitAnswer);

impl Question for LimitQuery {
    type Answer = LimitAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadLimit));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<LimitAnswer, Halt> {
        let def = sight.catalog.limit(&self.limit)?.clone();
        let found = sight.load(|| Wants::rows(vec![Key::Limit(limit_key(&def, self.key.as_str()))]))?;
        let used = found.rows.first().and_then(|row| row.as_ref()?.limit());
        let room = peek(&def, used, found.now);
        Ok(LimitAnswer {
            remaining: room.remaining,
            reset_ms: room.reset_us.div_ceil(1_000),
            amount: def.amount,
            window_ms: def.window_us.div_ceil(1_000),
        })
    }
}

/// How a limit stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitAnswer {
    /// How much is left.
    pub remaining: u64,
    /// In how many milliseconds all of it is there again.
    pub reset_ms: u64,
    /// How much there is in all.
    pub amount: u64,
    /// In how many milliseconds it is given.
    pub window_ms: u64,
}
