//! What a verification found, as it is kept with its job and shown.

use serde::{Deserialize, Serialize};

use crate::rows::TotalKey;

/// What a verification found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VerifyReport {
    /// Edges that were counted.
    pub edges: u64,
    /// Totals that were compared.
    pub totals: u64,
    /// Totals that did not equal their edges.
    pub drifted: u64,
    /// Totals that were mended, and edges whose lists were.
    pub repaired: u64,
    /// Each of them, up to a thousand.
    pub drift: Vec<DriftItem>,
    /// Edges and list entries that do not belong together, up to a thousand.
    pub strays: Vec<String>,
}

/// A total that does not equal its edges.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DriftItem {
    /// The relation.
    pub relation: String,
    /// The object, when the total is an object's.
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
    /// What its edges say.
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
        };
        Self { relation: relation.to_string(), object, kind, subject, stored, counted }
    }
}
