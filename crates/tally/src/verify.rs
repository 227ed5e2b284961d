//! Verification: recount everything as of one moment, report, and mend if asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tally_core::command::{Call, Command};
use tally_core::rows::{EdgeKey, TotalKey};
use tally_engine::{Engine, Finding, Runner, StoreError};

use crate::Error;

/// Drifts and strays that a report spells out; the rest are counted.
const REPORTED_MAX: usize = 1_000;

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
    fn new(total: &TotalKey, stored: i64, counted: i64) -> Self {
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

pub(crate) async fn verify<E: Engine>(
    engine: Arc<E>,
    runner: &Runner,
    repair: bool,
    mut progress: impl FnMut(u64) + Send + 'static,
) -> Result<VerifyReport, Error> {
    // Reading a whole store is long work on the processor and the disk: not for the event loop.
    let runtime = tokio::runtime::Handle::current();
    let audited_engine = engine.clone();
    let auditing = tokio::task::spawn_blocking(move || {
        let mut report = VerifyReport::default();
        let mut drifts: Vec<(TotalKey, i64)> = Vec::new();
        let mut strays: BTreeSet<EdgeKey> = BTreeSet::new();
        let mut tell = |finding| match finding {
            Finding::Progress(rows) => progress(rows),
            Finding::Drift { total, stored, counted } => {
                report.drifted += 1;
                if report.drift.len() < REPORTED_MAX {
                    report.drift.push(DriftItem::new(&total, stored, counted));
                }
                drifts.push((total, counted - stored));
            }
            Finding::Stray { found, edge } => {
                if report.strays.len() < REPORTED_MAX {
                    report.strays.push(found);
                }
                // Both sides of one edge may have been found.
                strays.extend(edge);
            }
        };
        let audited = runtime.block_on(audited_engine.audit(&mut tell))?;
        report.edges = audited.edges;
        report.totals = audited.totals;
        Ok::<_, StoreError>((report, drifts, strays))
    });
    let joined = auditing.await.map_err(|error| StoreError::Broken(format!("the audit stopped: {error}")))?;
    let (mut report, drifts, strays) = joined?;
    if repair {
        for (total, by) in drifts {
            runner.apply(Call::system(Command::Repair { total, by })).await?.reply?;
            report.repaired += 1;
        }
        for edge in strays {
            report.repaired += u64::from(engine.mend(&edge).await?);
        }
    }
    Ok(report)
}
