//! The minutes of a room: for charts and for looking back.

use serde::{Deserialize, Serialize};

use super::read::room_of;
use crate::error::Refusal;
use crate::id::Name;
use crate::permission::Permission;
use crate::query::{Ask, Question};
use crate::read::{Halt, Sight};
use crate::rows::{Key, Minute, MinuteKey, Row};
use crate::time::Timestamp;
use crate::view::Wants;

/// Minutes in one question: a day.
const MINUTES_MAX: u64 = 24 * 60;
const MINUTE_MS: u64 = 60_000;

/// How were the minutes of a room?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MinutesQuery {
    /// The room.
    pub room: Name,
    /// From when on; none is an hour ago.
    pub from: Option<Timestamp>,
    /// Until when; none is now.
    pub to: Option<Timestamp>,
}

impl Question for MinutesQuery {
    type Answer = MinutesAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ManageRoom));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<MinutesAnswer, Halt> {
        let name = &self.room;
        let first = sight.load(|| Wants::rows(vec![Key::Room(name.clone())]))?;
        room_of(name, &first)?;
        let to = self.to.unwrap_or(first.now.time()).0 / MINUTE_MS;
        let from = self.from.map_or(to.saturating_sub(60), |from| from.0 / MINUTE_MS);
        if from > to || to - from > MINUTES_MAX {
            return Err(Refusal::bad_request(format!("from is before to, and at most {MINUTES_MAX} minutes")).into());
        }
        let minutes: Vec<Timestamp> = (from..=to).map(|minute| Timestamp(minute * MINUTE_MS)).collect();
        let key = |minute: &Timestamp| Key::Minute(MinuteKey { room: name.clone(), minute: *minute });
        let found = sight.load_loosely(|| Wants::rows(minutes.iter().map(key).collect()))?;
        let rows = found.rows.iter().cloned().map(|row| row.and_then(Row::into_minute));
        let items = minutes.iter().zip(rows).filter_map(|(minute, row)| Some(MinuteItem::new(*minute, row?)));
        Ok(MinutesAnswer { items: items.collect() })
    }
}

/// Minutes of a room in which anything happened, oldest first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MinutesAnswer {
    /// The minutes.
    pub items: Vec<MinuteItem>,
}

/// A minute of a room.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MinuteItem {
    /// When it began.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub minute: Timestamp,
    /// How many joined.
    pub joined: u64,
    /// How many were let in.
    pub admitted: u64,
    /// How many left.
    pub left: u64,
    /// How many were given up.
    pub expired: u64,
    /// The longest wait of those who were let in.
    pub longest_wait_ms: u64,
}

impl MinuteItem {
    fn new(minute: Timestamp, row: Minute) -> Self {
        let Minute { joined, admitted, left, expired, longest_wait_ms, .. } = row;
        Self { minute, joined, admitted, left, expired, longest_wait_ms }
    }
}
