//! The recount of rows that are no edges: it finds nothing in what the rules have written, also while they write; what is damaged
//! behind their back it names, and that is put right.

mod beside;
mod damage;
mod filled;

use tally_core::Command;
use tally_core::command::{PutRight, Repair};
use tally_core::verify::Wrong;
use tally_engine::{Engine, Finding, Mend};

use crate::{Case, EngineFactory, cases};

/// Every case.
pub(crate) fn cases<F: EngineFactory>() -> Vec<Case<F>> {
    cases![
        filled:
            rows_of_every_kind_agree_and_are_counted;
        damage:
            what_is_damaged_is_named_and_put_right,
            everything_that_is_damaged_at_once_comes_right;
        beside:
            a_recount_beside_writers_finds_nothing,
            what_is_put_right_beside_writers_does_no_harm;
    ]
}

/// What an audit finds.
pub(crate) async fn findings<E: Engine>(engine: &E) -> Vec<Finding> {
    let mut found = Vec::new();
    engine.audit(&mut |finding| found.push(finding)).await.expect("an audit works");
    found.retain(|finding| !matches!(finding, Finding::Progress(_)));
    found
}

/// How a finding is told to people.
pub(crate) fn words(finding: &Finding) -> String {
    match finding {
        Finding::Wrong(wrong) => wrong.words(),
        Finding::Stray { found, .. } | Finding::Leftover { found, .. } | Finding::Order { found, .. } => found.clone(),
        Finding::Drift { total, stored, counted } => format!("{total:?} is {stored} and should be {counted}"),
        Finding::Progress(_) => String::new(),
    }
}

/// The commands that put right what was found, in their order. What only the store can mend, it does.
pub(crate) async fn repairs<E: Engine>(engine: &E, found: Vec<Finding>) -> Vec<Command> {
    let (mut totals, mut first, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for finding in found {
        match finding {
            Finding::Drift { total, stored, counted } => {
                totals.push(Command::from(Repair { found_in: None, total, by: counted - stored }));
            }
            Finding::Wrong(Wrong { fact, who, .. }) => {
                let to = if fact.comes_first() { &mut first } else { &mut others };
                to.push(Command::from(PutRight { found_in: None, fact, who }));
            }
            Finding::Order { order, .. } => _ = engine.mend(&Mend::Order(order)).await.expect("it can be mended"),
            Finding::Stray { .. } | Finding::Leftover { .. } | Finding::Progress(_) => {}
        }
    }
    totals.into_iter().chain(first).chain(others).collect()
}
