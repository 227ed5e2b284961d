//! What can be declared of an attendance sheet.

use jiff::tz::TimeZone;

use crate::id::Name;
use crate::limit::RateLimit;

/// A declared attendance sheet.
#[derive(Clone, Debug)]
pub struct SheetDef {
    /// Its name.
    pub name: Name,
    /// Where its days end.
    pub time_zone: TimeZone,
    /// A limit to pass first.
    pub rate_limit: Option<RateLimit>,
}

impl SheetDef {
    /// One with everything at its default: its days are those of UTC.
    pub fn new(name: Name) -> Self {
        Self { name, time_zone: TimeZone::UTC, rate_limit: None }
    }

    /// The limit that it has to pass.
    pub(crate) fn passes(&self) -> Option<&RateLimit> {
        self.rate_limit.as_ref()
    }
}
