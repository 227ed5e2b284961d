//! A board of some size: read while it changes, right afterwards, and there again after an opening.

use std::collections::BTreeMap;
use std::sync::Arc;

use tally_core::rows::{BoardKey, Change, Changes, Key, Row, Score, ScoreKey, Standing};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_core::{Name, SubjectId};
use tally_embedded::{Embedded, Options};
use tally_engine::{Engine, OrderFrom, Range, Seen};

const MEMBERS: u64 = 20_000;

fn board() -> BoardKey {
    BoardKey { board: Name::new("points").expect("it works"), season: Timestamp(0), levels: false }
}

fn member(number: u64) -> SubjectId {
    SubjectId::new(&format!("m{number}")).expect("it works")
}

fn score(number: u64, turn: u64) -> Score {
    let score = (number * 2_654_435_761 + turn * 40_503) % 500;
    // A few share even the moment.
    Score { score: score as i64 - 250, reached: Stamp(1 + turn * MEMBERS + number / 3) }
}

async fn put(engine: &Embedded, rows: impl Iterator<Item = (u64, Option<Score>, Score)>) {
    let rows = rows.map(|(number, before, after)| {
        let key = Key::Score(ScoreKey { board: board(), member: member(number) });
        (key, Change { before: before.map(Row::Score), after: Some(Row::Score(after)) })
    });
    let changes = Changes { rows: rows.collect(), stamp: Stamp(1), ..Changes::default() };
    let mark = engine.load(&Wants::default()).await.expect("it works").mark;
    engine.commit(Seen { mark, view: &View::default() }, &changes).await.expect("it works");
}

/// Every rank is that of a plain sort.
async fn check(engine: &Embedded, model: &BTreeMap<u64, Score>) {
    let mut sorted: Vec<(u64, Score)> = model.iter().map(|(number, score)| (*number, *score)).collect();
    sorted.sort_by_key(|(number, score)| (-score.score, score.reached, member(*number)));
    let standing =
        |(number, score): &(u64, Score)| ScoreKey { board: board(), member: member(*number) }.standing(*score);
    let ranks = sorted.iter().map(standing).collect();
    let found = engine.load(&Wants { ranks, ..Wants::default() }).await.expect("it works").ranks;
    assert_eq!(found, (0..sorted.len() as u64).collect::<Vec<_>>());
    for rank in [0, 1, 777, 9_999, MEMBERS - 1] {
        let range = Range::Order { order: board().into(), from: OrderFrom::Rank(rank) };
        let page = engine.scan(&range, 1).await.expect("it works");
        let Some((Key::Score(key), _)) = page.items.first() else { panic!("nobody at {rank}") };
        assert_eq!(key.member, member(sorted[rank as usize].0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_board_is_right_while_it_is_read_and_changed() {
    let folder = tempfile::tempdir().expect("it works");
    let engine = Embedded::open(folder.path(), Options::default()).expect("it works");
    let mut model = BTreeMap::new();
    for first in (0..MEMBERS).step_by(2_000) {
        put(&engine, (first..first + 2_000).map(|number| (number, None, score(number, 0)))).await;
    }
    model.extend((0..MEMBERS).map(|number| (number, score(number, 0))));
    check(&engine, &model).await;
    engine.store().close();
    drop(engine);

    // Not in memory yet: it is asked about by several while somebody changes it.
    let engine = Arc::new(Embedded::open(folder.path(), Options::default()).expect("it works"));
    let all = Standing::end(board().into());
    let asking: Vec<_> = (0..4)
        .map(|_| {
            let (engine, ranks) = (engine.clone(), vec![all.clone()]);
            tokio::spawn(async move {
                for _ in 0..50 {
                    let found =
                        engine.load(&Wants { ranks: ranks.clone(), ..Wants::default() }).await.expect("it works");
                    assert_eq!(found.ranks, [MEMBERS], "nobody comes or goes");
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for turn in 1..=40 {
        let changed = (0..100).map(|step| (turn * 7_919 + step * 131) % MEMBERS);
        let numbers: std::collections::BTreeSet<u64> = changed.collect();
        put(&engine, numbers.iter().map(|number| (*number, Some(model[number]), score(*number, turn)))).await;
        model.extend(numbers.iter().map(|number| (*number, score(*number, turn))));
    }
    for task in asking {
        task.await.expect("it works");
    }
    check(&engine, &model).await;
}
