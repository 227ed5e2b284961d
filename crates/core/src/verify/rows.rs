//! What a verification found, as it is kept with its job and shown.

use serde::{Deserialize, Serialize};

use crate::rows::TotalKey;

/// What a verification found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VerifyReport {
    /// Rows of every kind that were read, edges among them.
    #[serde(default)]
    pub rows: u64,
    /// Edges that were counted.
    pub edges: u64,
    /// Totals that were compared.
    pub totals: u64,
    /// Totals that did not equal the rows behind them.
    pub drifted: u64,
    /// How much was mended: totals, lists of edges, rows that did not agree with others, orders of boards.
    pub repaired: u64,
    /// Each of the totals, up to a thousand.
    pub drift: Vec<DriftItem>,
    /// How many rows, list entries and orders do not belong together.
    #[serde(default)]
    pub strayed: u64,
    /// Each of them, up to a thousand.
    pub strays: Vec<String>,
}

/// A total that does not equal the rows behind it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DriftItem {
    /// The relation, or the sheet.
    pub relation: String,
    /// The object, when the total is an object's; the day, when it is a sheet's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The kind, when the total is of one kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The subject, when the total is a subject's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What the total said.
    pub stored: i64,
    /// What the rows behind it say.
    pub counted: i64,
}

impl DriftItem {
    /// Shows a total that is off.
    pub fn new(total: &TotalKey, stored: i64, counted: i64) -> Self {
        let (relation, object, kind, subject) = match total {
            TotalKey::Object { object, relation } => (relation, Some(object.to_string()), None, None),
            TotalKey::Kind { object, relation, kind } => {
                (relation, Some(object.to_string()), Some(kind.to_string()), None)
            }
            TotalKey::Subject { subject, relation } => (relation, None, None, Some(subject.to_string())),
            TotalKey::Counter(key) => (&key.name, Some(key.key.to_string()), None, None),
            TotalKey::Present { sheet, day } => (sheet, Some(day.to_string()), None, None),
            TotalKey::Room { room, count } => (room, Some(count.name().to_owned()), None, None),
        };
        Self { relation: relation.to_string(), object, kind, subject, stored, counted }
    }
}
