//! A dry run asks Tally what would become of the edges, in parts. A part knows nothing of the parts before it, so what
//! they would have made for the same subjects goes along: otherwise nobody would come to a limit.

use std::collections::{HashMap, HashSet};

use tally::core::{ObjectId, SubjectId};

use super::edges::{BATCH_EDGES, Edges, Outcome};
use crate::failure::Failure;

/// Edges of one subject that go along. Limits above this are not foreseen over several parts.
const ALONG_MAX: usize = 50;
/// Edges that are remembered in all.
const REMEMBERED_MAX: usize = 2_000_000;

/// What a dry run would have made so far.
#[derive(Default)]
pub(super) struct Rehearsed {
    made: HashMap<SubjectId, Vec<ObjectId>>,
    remembered: usize,
}

impl Rehearsed {
    /// What would become of these edges; an outcome for each, in order.
    pub(super) async fn relate(
        &mut self,
        edges: &Edges<'_>,
        wanted: &[(ObjectId, SubjectId)],
    ) -> Result<Vec<Outcome>, Failure> {
        let mut outcomes = Vec::with_capacity(wanted.len());
        while outcomes.len() < wanted.len() {
            let (part, own) = self.part(&wanted[outcomes.len()..]);
            for ((outcome, edge), own) in edges.relate(&part).await?.into_iter().zip(&part).zip(own) {
                if own {
                    self.remember(&outcome, edge);
                    outcomes.push(outcome);
                }
            }
        }
        Ok(outcomes)
    }

    /// As many edges as fit, each subject's first behind what it would have by then; and which of them are new.
    fn part(&self, wanted: &[(ObjectId, SubjectId)]) -> (Vec<(ObjectId, SubjectId)>, Vec<bool>) {
        let (mut part, mut own, mut met) = (Vec::new(), Vec::new(), HashSet::new());
        for (object, subject) in wanted {
            let before = if met.insert(subject) { self.made.get(subject) } else { None };
            let before = before.map(Vec::as_slice).unwrap_or_default();
            if part.len() + before.len() >= BATCH_EDGES {
                break;
            }
            part.extend(before.iter().map(|object| (object.clone(), subject.clone())));
            own.resize(part.len(), false);
            part.push((object.clone(), subject.clone()));
            own.push(true);
        }
        (part, own)
    }

    fn remember(&mut self, outcome: &Outcome, (object, subject): &(ObjectId, SubjectId)) {
        if outcome.as_ref().is_ok_and(|edge| edge.changed) && self.remembered < REMEMBERED_MAX {
            let made = self.made.entry(subject.clone()).or_default();
            if made.len() < ALONG_MAX {
                made.push(object.clone());
                self.remembered += 1;
            }
        }
    }
}
