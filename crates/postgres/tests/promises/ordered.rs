//! A tree that does not agree with the rows under it is found and made anew, also while others write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tally_core::command::{Call, ChangeScore, Command, ScoreChange};
use tally_core::rows::{Among, BoardKey, OrderKey, Standing};
use tally_core::view::Wants;
use tally_core::{SubjectId, Timestamp};
use tally_engine::{Engine, Finding, Mend};

use crate::support::{Outsider, Store, name, shared};

fn points() -> OrderKey {
    BoardKey { board: name("points"), season: Timestamp(0), levels: false }.into()
}

fn queue() -> OrderKey {
    OrderKey::Queue(name("sale"))
}

fn score(member: &str, to: i64) -> Command {
    let change = ScoreChange::To(to);
    Command::from(ChangeScore { board: name("points"), member: SubjectId::new(member).unwrap(), change })
}

/// Orders whose trees are off, and why.
async fn off(store: &Store) -> Vec<(OrderKey, String)> {
    let mut found = Vec::new();
    let mut tell = |finding| match finding {
        Finding::Progress(_) => {}
        Finding::Order { found: why, order } => found.push((order, why)),
        other => panic!("{other:?}"),
    };
    store.engine.audit(&mut tell).await.unwrap();
    found
}

/// A board of some thousand members whose tree has been cut, next to one that is left alone.
async fn filled(url: &str) -> (Store, Outsider) {
    let (store, outside) = (Store::open(url).await, Outsider::of(url).await);
    store.apply(score("first", 5)).await.unwrap();
    outside
        .run(
            "INSERT INTO score SELECT 'points', 'epoch', false, 'm' || n, n / 7, n FROM generate_series(1, 9000) n;
             UPDATE order_node SET n = 9001 WHERE in_order = 'score:points:0:false';
             INSERT INTO score VALUES ('best', 'epoch', false, 'ann', 1, 1);
             INSERT INTO order_node SELECT 'score:best:0:false', h, -9223372036854775808, -1, 1
                 FROM generate_series(0, 2) AS h;
             INSERT INTO board VALUES ('best', '{}', false)",
        )
        .await;
    assert_eq!(off(&store).await, []);
    assert!(store.engine.mend(&Mend::Order(points())).await.unwrap(), "and is cut as it should be");
    assert_eq!(off(&store).await, []);
    for (height, least) in [(0, 100), (1, 2), (2, 1)] {
        let nodes =
            format!("SELECT count(*) FROM order_node WHERE in_order = 'score:points:0:false' AND height = {height}");
        assert!(outside.number(&nodes).await >= least, "nodes of height {height}");
    }
    (store, outside)
}

async fn ranks(store: &Store) -> Vec<u64> {
    let at = |score| Standing { order: points(), score, among: Among::First };
    let wants = Wants { ranks: (0..1_300).step_by(50).map(at).collect(), ..Wants::default() };
    store.engine.load(&wants).await.unwrap().ranks
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_does_not_agree_with_its_rows_is_found_and_made_anew() {
    let url = shared("");
    let (store, outside) = filled(&url).await;
    let right = ranks(&store).await;
    let one = "(in_order, height, down, reached) IN (
        SELECT in_order, height, down, reached FROM order_node
        WHERE in_order = 'score:points:0:false' AND height = $ ORDER BY down OFFSET 1 LIMIT 1)";
    let node = |height: i16| one.replace('$', &height.to_string());
    let damages = [
        format!("UPDATE order_node SET n = n + 1 WHERE {}", node(0)),
        format!("UPDATE order_node SET n = n - 3 WHERE {}", node(1)),
        "UPDATE order_node SET n = n + 7 WHERE in_order = 'score:points:0:false' AND height = 2".into(),
        format!("DELETE FROM order_node WHERE {}", node(0)),
        format!("DELETE FROM order_node WHERE {}", node(1)),
        "DELETE FROM order_node WHERE in_order = 'score:points:0:false'".into(),
        // Sums that are right at every height, and a node that begins in the midst of a lower one.
        "WITH behind AS (SELECT count(*) AS n FROM score
             WHERE board = 'points' AND (~score, reached_us) >= (~600::int8, 0)),
         less AS (UPDATE order_node t SET n = t.n - behind.n FROM behind
             WHERE in_order = 'score:points:0:false' AND height = 2)
         INSERT INTO order_node SELECT 'score:points:0:false', 2, ~600::int8, 0, n FROM behind"
            .into(),
    ];
    for damage in damages {
        outside.run(&damage).await;
        let found = off(&store).await;
        assert_eq!(found.iter().map(|(order, _)| order).collect::<Vec<_>>(), [&points()], "{damage}: {found:?}");
        assert!(store.engine.mend(&Mend::Order(points())).await.unwrap());
        assert_eq!(off(&store).await, [], "{damage}");
        assert_eq!(ranks(&store).await, right, "{damage}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_is_made_anew_while_others_score() {
    let url = shared("");
    let (store, outside) = filled(&url).await;
    let over = Arc::new(AtomicBool::new(false));
    let mut hands = tokio::task::JoinSet::new();
    for hand in 0..6_i64 {
        let (runner, over) = (store.runner.clone(), over.clone());
        hands.spawn(async move {
            let mut turn = hand;
            while !over.load(Ordering::SeqCst) {
                let member = format!("m{}", turn * 37 % 9_000);
                let decided = runner.apply(Call::system(score(&member, turn * 13 % 1_500))).await;
                assert!(decided.unwrap().reply.is_ok());
                turn += 6;
            }
        });
    }
    for round in 0..4 {
        for _ in 0..15 {
            assert!(store.engine.mend(&Mend::Order(points())).await.unwrap());
        }
        assert_eq!(off(&store).await, [], "round {round}");
        outside.run("UPDATE order_node SET n = n + 1 WHERE in_order = 'score:points:0:false' AND height = 1").await;
        assert_eq!(off(&store).await.len(), 1);
        assert!(store.engine.mend(&Mend::Order(points())).await.unwrap());
    }
    over.store(true, Ordering::SeqCst);
    hands.join_all().await;
    assert_eq!(off(&store).await, []);
}

/// A score that moves within a node writes no node, so that nothing but the fence keeps both apart.
#[tokio::test(flavor = "multi_thread")]
async fn a_tree_is_not_made_anew_in_the_midst_of_a_commit() {
    let application = format!("ordered_{}", std::process::id());
    let url = shared(&format!("&application_name={application}&timeout_ms=20000"));
    let (store, outside) = filled(&url).await;
    let watching = Outsider::of(&url).await;
    outside.run("BEGIN; SELECT FROM score WHERE member = 'm7' FOR UPDATE").await;
    let runner = store.runner.clone();
    let scoring = tokio::spawn(async move { runner.apply(Call::system(score("m7", 900))).await });
    watching.until_waiting(&application, 1).await;
    let engine = store.engine.clone();
    let mending = tokio::spawn(async move { engine.mend(&Mend::Order(points())).await });
    watching.until_waiting(&application, 2).await;
    outside.run("ROLLBACK").await;
    assert!(scoring.await.unwrap().unwrap().reply.is_ok());
    assert!(mending.await.unwrap().unwrap());
    assert_eq!(off(&store).await, []);
}

/// Rows of which only some stand, and a tree that is named after no rows.
#[tokio::test(flavor = "multi_thread")]
async fn the_tree_of_a_queue_is_compared_with_those_who_wait() {
    let url = shared("");
    let (store, outside) = (Store::open(&url).await, Outsider::of(&url).await);
    outside
        .run(
            "INSERT INTO ticket SELECT 'sale', n, 'ann', 't', CASE WHEN n % 3 = 0 THEN 'LEFT' ELSE 'WAITING' END, 0,
                    'epoch', 'epoch', '2100-01-01', NULL, 0
                 FROM generate_series(1, 900) n;
             INSERT INTO ticket VALUES ('over', 1, 'ann', 't', 'DONE', 0, 'epoch', 'epoch', '2100-01-01', NULL, 0)",
        )
        .await;
    let waiting = async || {
        let wants = Wants { ranks: vec![Standing::end(queue())], ..Wants::default() };
        store.engine.load(&wants).await.unwrap().ranks[0]
    };
    let damages = [
        "SELECT 1",
        "UPDATE order_node SET n = n + 1 WHERE in_order = 'ticket:sale' AND height = 2",
        "UPDATE ticket SET state = 'EXPIRED' WHERE seq = 7",
        "UPDATE ticket SET state = 'WAITING' WHERE seq = 7",
        "UPDATE ticket SET state = 'LEFT' WHERE room = 'sale'",
    ];
    for (damage, right) in damages.into_iter().zip([600, 600, 599, 600, 0]) {
        outside.run(damage).await;
        let found = off(&store).await;
        assert_eq!(found.iter().map(|(order, _)| order).collect::<Vec<_>>(), [&queue()], "{damage}: {found:?}");
        assert!(store.engine.mend(&Mend::Order(queue())).await.unwrap());
        assert_eq!((off(&store).await, waiting().await), (Vec::new(), right), "{damage}");
    }
}
