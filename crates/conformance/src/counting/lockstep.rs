//! One history on the engine and on the oracle: answers, every row, every board and every rank.

use std::collections::BTreeMap;

use tally_core::Timestamp;
use tally_core::rows::{Among, BoardKey, Key, Row, RowKind, Standing};
use tally_core::view::Wants;
use tally_engine::memory::Memory;
use tally_engine::{BoardFrom, Engine, Range};

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
    let mut boards: BTreeMap<BoardKey, Vec<Standing>> = BTreeMap::new();
    for (key, row) in &expected {
        if let (Key::Score(key), Row::Score(score)) = (key, row) {
            boards.entry(key.board.clone()).or_default().push(Standing::of(key, *score));
        }
    }
    for (board, standings) in boards {
        same_board(engine, oracle, &board, standings, said).await;
    }
}

async fn same_board<E: Engine>(engine: &E, oracle: &Memory, board: &BoardKey, standings: Vec<Standing>, said: &str) {
    let members = standings.len() as u64;
    for rank in 0..=members {
        same_page(engine, oracle, &Range::Board { board: board.clone(), from: BoardFrom::Rank(rank) }, said).await;
    }
    let mut ranks = Vec::new();
    for standing in standings {
        for among in [Among::First, Among::Last] {
            ranks.push(Standing { among, ..standing.clone() });
        }
        if let Among::At { reached, member } = &standing.among {
            let score = tally_core::rows::Score { score: standing.score, reached: *reached };
            for from in [BoardFrom::Behind(member.clone(), score), BoardFrom::Ahead(member.clone(), score)] {
                same_page(engine, oracle, &Range::Board { board: board.clone(), from }, said).await;
            }
        }
        ranks.push(standing);
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
