//! An order that does not agree with its scores is found and put right, also while others score.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tally_core::command::{Call, Command, ScoreChange};
use tally_core::rows::{Among, BoardKey, Standing};
use tally_core::view::Wants;
use tally_core::{SubjectId, Timestamp};
use tally_engine::{Engine, Finding, Mend};

use crate::mend::write;
use crate::support::{Store, name, shared, shared_cluster};

const MEMBERS: i64 = 2_500;

fn points() -> BoardKey {
    BoardKey { board: name("points"), season: Timestamp(0), levels: false }
}

fn score(member: i64, to: i64) -> Command {
    let member = SubjectId::new(&format!("m{member}")).unwrap();
    Command::Score { board: name("points"), member, change: ScoreChange::To(to) }
}

/// Boards whose orders are off. Nothing else is.
async fn off(store: &Store) -> Vec<(BoardKey, String)> {
    let mut found = Vec::new();
    let mut tell = |finding| match finding {
        Finding::Progress(_) => {}
        Finding::Order { found: why, board } => found.push((board, why)),
        other => panic!("{other:?}"),
    };
    store.engine.audit(&mut tell).await.unwrap();
    found
}

async fn filled(url: &str) -> Store {
    let store = Store::open(url).await;
    let all: Vec<Command> = (0..MEMBERS).map(|member| score(member, member % 50)).collect();
    for commands in all.chunks(500) {
        store.apply(Command::Batch { atomic: false, commands: commands.to_vec() }).await.unwrap();
    }
    assert_eq!(off(&store).await, []);
    store
}

async fn ranks(store: &Store) -> Vec<u64> {
    let at = |score| Standing { board: points(), score, among: Among::First };
    let wants = Wants { ranks: (-1..50).map(at).collect(), ..Wants::default() };
    store.engine.load(&wants).await.unwrap().ranks
}

async fn is_found_and_put_right(url: &str) {
    let store = filled(url).await;
    let right = ranks(&store).await;
    let order = format!("{}:score:{{points}}:1970-01-01T00:00:00.000Z:false:order", store.engine.options().prefix);
    // Somebody is lost; somebody is there who never scored; the same in place of another; and all of it is lost.
    let ghost = format!("{:016x}ghost", 5);
    let (lose, haunt): (&[&str], &[&str]) = (&["ZREMRANGEBYRANK", &order, "7", "7"], &["ZADD", &order, "-3", &ghost]);
    let damages: [&[&[&str]]; 4] = [&[lose], &[haunt], &[lose, haunt], &[&["DEL", &order]]];
    for damage in damages {
        for words in damage {
            write(url, words).await;
        }
        let found = off(&store).await;
        assert_eq!(found.iter().map(|(board, _)| board).collect::<Vec<_>>(), [&points()], "{damage:?}: {found:?}");
        assert!(store.engine.mend(&Mend::Order(points())).await.unwrap());
        assert_eq!(off(&store).await, [], "{damage:?}");
        assert_eq!(ranks(&store).await, right, "{damage:?}");
        assert!(!store.engine.mend(&Mend::Order(points())).await.unwrap(), "what is right is left alone");
    }
    // And while everybody moves.
    let over = Arc::new(AtomicBool::new(false));
    let mut hands = tokio::task::JoinSet::new();
    for hand in 0..6_i64 {
        let (runner, over) = (store.runner.clone(), over.clone());
        hands.spawn(async move {
            let mut turn = hand;
            while !over.load(Ordering::SeqCst) {
                let decided = runner.apply(Call::system(score(turn * 37 % MEMBERS, turn * 13 % 50))).await;
                assert!(decided.unwrap().reply.is_ok());
                turn += 6;
            }
        });
    }
    for round in 0..4 {
        assert_eq!(off(&store).await, [], "round {round}");
        write(url, &["ZADD", &order, "-3", &ghost]).await;
        assert_eq!(off(&store).await.len(), 1);
        assert!(store.engine.mend(&Mend::Order(points())).await.unwrap());
    }
    over.store(true, Ordering::SeqCst);
    hands.join_all().await;
    assert_eq!(off(&store).await, []);
    store.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_does_not_agree_with_its_scores_is_found_and_put_right() {
    is_found_and_put_right(&shared("")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_on_a_cluster_that_does_not_agree_with_its_scores_is_found_and_put_right() {
    is_found_and_put_right(&shared_cluster("")).await;
}
