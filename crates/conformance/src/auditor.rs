//! Says whether a store adds up: by the engine's own audit, and by a recount that does not trust it.

use std::collections::BTreeMap;

use tally_core::rows::{EdgeKey, Key, ListKey, Row, TotalKey};
use tally_engine::{Engine, Finding};

use crate::universe::{Dump, Universe};
use crate::walk;

/// What the engine's audit finds wrong, in a fixed order.
pub(crate) async fn findings<E: Engine>(engine: &E) -> Vec<String> {
    let mut found = Vec::new();
    let mut tell = |finding: Finding| match finding {
        Finding::Progress(_) => {}
        other => found.push(format!("{other:?}")),
    };
    engine.audit(&mut tell).await.expect("an audit works");
    found.sort();
    found
}

/// The engine's audit finds nothing, and neither do we.
pub(crate) async fn assert_sound<E: Engine>(engine: &E, universe: &Universe) {
    assert_eq!(findings(engine).await, Vec::<String>::new(), "the audit found something");
    assert_adds_up(engine, universe).await;
}

/// Every edge stands once in each of its lists, the lists hold nothing else, and every total is
/// the number of its edges.
pub(crate) async fn assert_adds_up<E: Engine>(engine: &E, universe: &Universe) -> Dump {
    let dump = universe.dump(engine).await;
    let mut totals = dump.totals.clone();
    // Nothing stands behind a counter.
    totals.retain(|total, _| !matches!(total, TotalKey::Counter(_)));
    assert_eq!(totals, recount(&dump), "totals on the left, edges and days on the right");
    for list in universe.lists() {
        let listed: BTreeMap<EdgeKey, _> = walk::all(engine, &list, 7).await.into_iter().collect();
        assert_eq!(listed, expected_in(&list, &dump), "{list:?} on the left, its edges on the right");
    }
    dump
}

fn recount(dump: &Dump) -> BTreeMap<TotalKey, i64> {
    let mut counted = BTreeMap::new();
    for (key, edge) in edges(dump) {
        for total in key.totals(edge) {
            *counted.entry(total).or_default() += 1;
        }
    }
    for (key, row) in &dump.rows {
        if let (Key::Attendee((sheet, _)), Row::Attendee(attendee)) = (key, row) {
            for day in attendee.counted().bitmap() {
                let total = TotalKey::Present { sheet: sheet.clone(), day: tally_core::Day(day) };
                *counted.entry(total).or_default() += 1;
            }
        }
    }
    counted
}

fn expected_in(list: &ListKey, dump: &Dump) -> BTreeMap<EdgeKey, tally_core::rows::Edge> {
    edges(dump)
        .filter(|(key, edge)| key.end(list.side) == list.id && edge.hidden == list.hidden)
        .filter(|(key, _)| list.relation.as_ref().is_none_or(|relation| *relation == key.relation))
        .map(|(key, edge)| (key.clone(), edge.clone()))
        .collect()
}

/// The edges of a dump.
pub(crate) fn edges(dump: &Dump) -> impl Iterator<Item = (&EdgeKey, &tally_core::rows::Edge)> {
    dump.rows.iter().filter_map(|(key, row)| match (key, row) {
        (Key::Edge(key), Row::Edge(edge)) => Some((key, edge)),
        _ => None,
    })
}
