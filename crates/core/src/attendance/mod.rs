//! Who was there on each day.

pub(crate) mod audit;
mod days;
mod def;
mod forget;
pub mod read;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::batch::{InBatch, Written, need};
use crate::day::Day;
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{Name, SubjectId};
use crate::operation::{About, Operation, operations};
use crate::permission::Permission;
use crate::reply::{Answered, NamesMut, Told};
use crate::rows::TotalKey;
use crate::view::{Stop, View};

pub use audit::Fact;
pub use def::SheetDef;
pub use read::{Answer, Query};
pub use rule::{current_streak, longest_streak, run_up_to, today};

/// Days in one question.
pub const DAYS_MAX: usize = 400;

/// Says that a subject was there on a day, or was not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attend {
    /// The sheet.
    pub sheet: Name,
    /// The day; none is today, where the sheet's days end.
    pub day: Option<Day>,
    /// Who was there, or was not.
    pub subject: SubjectId,
    /// Whether it was there.
    pub present: bool,
}

operations!(Attendance: Attend; counts);

impl Operation for Attend {
    type Reply = AttendReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<AttendReply, Stop> {
        rule::attend(self, context, view)
    }

    fn about(&self) -> About<'_> {
        let about = About::caller(Permission::Attend).subject(&self.subject).making(self.present);
        // Subjects of a sheet share its bitmaps.
        about.counted(self.sheet.as_str(), "")
    }

    fn acting_mut(&mut self) -> Option<&mut SubjectId> {
        Some(&mut self.subject)
    }

    fn written(&self) -> Option<serde_json::Value> {
        let day = self.day.map_or_else(|| "today".to_owned(), |day| day.to_string());
        let Self { sheet, subject, present, .. } = self;
        Some(json!({"op": "attend", "sheet": sheet, "day": day, "subject": subject, "present": present}))
    }
}

impl InBatch for Attend {
    const TAKES: &'static [&'static str] = &["sheet", "subject", "day", "present"];

    fn read(written: Written) -> Result<Self, Refusal> {
        let (day, present) = (written.day.and_then(|day| day.0), written.present.unwrap_or(true));
        Ok(Self { sheet: need!(written.sheet), day, subject: need!(written.subject), present })
    }
}

/// A subject on a day, after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttendReply {
    /// The sheet.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub sheet: Name,
    /// The day.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub day: Day,
    /// Who was there, or was not.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub subject: SubjectId,
    /// Whether it was there.
    pub present: bool,
    /// Whether this write altered anything.
    pub changed: bool,
    /// How many were there on that day.
    pub count: i64,
    /// How many days in a row it was there, up to that day.
    pub streak: u32,
}

impl Answered for AttendReply {
    fn correct(&mut self, told: &mut Told<'_>) {
        self.count += (told.off)(&TotalKey::Present { sheet: self.sheet.clone(), day: self.day });
    }

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut { subject: Some(&mut self.subject), ..NamesMut::default() }
    }
}
