//! One history on the engine and on the oracle: answers, every row, every board and every rank.

use std::collections::BTreeMap;

use tally_core::Timestamp;
use tally_core::rows::{Among, Key, OrderKey, Place, Row, RowKind, Standing};
use tally_core::view::Wants;
use tally_engine::memory::Memory;
use tally_engine::{Engine, OrderFrom, Range};

use super::generate::{catalog, steps};
use crate::EngineFactory;
use crate::driver::apply;
use crate::stand::Stand;

/// The whole store is compared after so many steps.
const COMPARE_EVERY: usize = 25;
/// It is closed and opened again after so many.
const REOPEN_EVERY: usize = 70;

/// Runs the history of a seed.
pub(super) async fn run<F: EngineFactory>(stand: &Stand<F>, seed: u64, length: usize) {
    let (catalog, steps, oracle) = (catalog(), steps(seed, length), Memory::default());
    let mut engine = stand.open().await;
    for (number, step) in steps.iter().enumerate() {
        let expected = apply(&oracle, &catalog, step).await;
        let found = apply(&*engine, &catalog, step).await;
        assert_eq!(found, expected, "seed {seed}, step {number}: {:?}", step.call);
        if number % REOPEN_EVERY == REOPEN_EVERY - 1 {
            engine = stand.reopen(engine).await;
        }
        if number % COMPARE_EVERY == COMPARE_EVERY - 1 || number + 1 == steps.len() {
            stand.drain(&engine).await;
            let said = format!("seed {seed}, after step {number}");
            same(&*engine, &oracle, 1 + number % 7, &said).await;
        }
    }
}

/// Every row that a scan of all of them gives, in pages of a size.
pub(crate) async fn all_rows<E: Engine>(engine: &E, limit: usize) -> BTreeMap<Key, Row> {
    let mut rows = BTreeMap::new();
    let mut after = None;
    loop {
        let page = engine.scan(&Range::Rows { after: after.take() }, limit).await.expect("a scan works");
        after = page.items.last().map(|(key, _)| key.clone());
        for (key, row) in page.items {
            assert!(rows.insert(key.clone(), row).is_none(), "{key:?} is listed twice");
        }
        if !page.more {
            return rows;
        }
    }
}

async fn same<E: Engine>(engine: &E, oracle: &Memory, limit: usize, said: &str) {
    let expected = all_rows(oracle, 1_000).await;
    let found = all_rows(engine, limit).await;
    assert_eq!(found, expected, "{said}: the rows");
    let keys: Vec<Key> = expected.keys().filter(|key| !matches!(key, Key::Counter(_))).cloned().collect();
    let loaded = engine.load(&Wants::rows(keys.clone())).await.expect("a load works");
    for (key, row) in keys.iter().zip(loaded.rows) {
        assert_eq!(row.as_ref(), expected.get(key), "{said}: {key:?}, loaded");
    }
    let totals: Vec<_> = oracle.dump().1.into_iter().collect();
    let wants = Wants::totals(totals.iter().map(|(key, _)| key.clone()).collect());
    let loaded = engine.load(&wants).await.expect("a load works");
    for ((key, expected), found) in totals.iter().zip(loaded.totals) {
        assert_eq!(found, *expected, "{said}: {key:?}");
    }
    for before in [0, 1_001_000, 1_010_000, u64::MAX] {
        same_page(engine, oracle, &Range::due(RowKind::Limit, Timestamp(before)), said).await;
    }
    assert_eq!(crate::auditor::findings(engine).await, Vec::<String>::new(), "{said}: the audit");
    let mut orders: BTreeMap<OrderKey, Vec<Place>> = BTreeMap::new();
    for (order, place) in expected.iter().filter_map(|(key, row)| row.stands(key)) {
        orders.entry(order).or_default().push(place);
    }
    for (order, places) in orders {
        same_order(engine, oracle, &order, places, said).await;
    }
}

/// Every page of an order and every rank in it.
pub(crate) async fn same_order<E: Engine>(
    engine: &E,
    oracle: &Memory,
    order: &OrderKey,
    places: Vec<Place>,
    said: &str,
) {
    let range = |from| Range::Order { order: order.clone(), from };
    for rank in 0..=places.len() as u64 {
        same_page(engine, oracle, &range(OrderFrom::Rank(rank)), said).await;
    }
    let mut ranks = Vec::new();
    for place in places {
        for among in [Among::First, Among::Last] {
            ranks.push(Standing { order: order.clone(), score: place.score, among });
        }
        for from in [OrderFrom::Behind(place.clone()), OrderFrom::Ahead(place.clone())] {
            same_page(engine, oracle, &range(from), said).await;
        }
        ranks.push(Standing::at(order.clone(), place));
    }
    let wants = Wants { ranks, ..Wants::default() };
    let expected = oracle.load(&wants).await.expect("the oracle answers").ranks;
    let found = engine.load(&wants).await.expect("a load works").ranks;
    assert_eq!(found, expected, "{said}: {:?}", wants.ranks);
}

async fn same_page<E: Engine>(engine: &E, oracle: &Memory, range: &Range, said: &str) {
    for limit in [1, 3, 100] {
        let expected = oracle.scan(range, limit).await.expect("the oracle answers");
        let found = engine.scan(range, limit).await.expect("a scan works");
        assert_eq!((found.items, found.more), (expected.items, expected.more), "{said}: {range:?}, {limit} of it");
    }
}
