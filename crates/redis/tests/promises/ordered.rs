//! An order that does not agree with its rows is found and put right, also while others score.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tally_core::command::{Batch, Call, ChangeScore, Command, ScoreChange};
use tally_core::rows::{
    Among, BoardKey, Change, Changes, Key, OrderKey, Row, Standing, Ticket, TicketKey, TicketState,
};
use tally_core::time::Stamp;
use tally_core::view::{Reading, View, Wants};
use tally_core::{SubjectId, Timestamp};
use tally_engine::{Engine, Finding, Mend, Seen};

use crate::mend::write;
use crate::support::{Store, name, shared, shared_cluster};

const MEMBERS: i64 = 2_500;

fn points() -> OrderKey {
    BoardKey { board: name("points"), season: Timestamp(0), levels: false }.into()
}

fn queue() -> OrderKey {
    OrderKey::Queue(name("sale"))
}

fn score(member: i64, to: i64) -> Command {
    let member = SubjectId::new(&format!("m{member}")).unwrap();
    Command::from(ChangeScore { board: name("points"), member, change: ScoreChange::To(to) })
}

/// Orders that are off. Nothing else is.
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

async fn filled(url: &str) -> Store {
    let store = Store::open(url).await;
    let all: Vec<Command> = (0..MEMBERS).map(|member| score(member, member % 50)).collect();
    for commands in all.chunks(500) {
        store.apply(Command::from(Batch { atomic: false, commands: commands.to_vec() })).await.unwrap();
    }
    assert_eq!(off(&store).await, []);
    store
}

async fn ranks(store: &Store) -> Vec<u64> {
    let at = |score| Standing { order: points(), score, among: Among::First };
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
        assert_eq!(found.iter().map(|(order, _)| order).collect::<Vec<_>>(), [&points()], "{damage:?}: {found:?}");
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

fn ticket(seq: u64, state: TicketState, alive: u64) -> (Key, Row) {
    let ticket = Ticket::new(SubjectId::new("ann").unwrap(), "t", state, Timestamp(1), Timestamp(alive));
    (Key::Ticket(TicketKey { room: name("sale"), seq: tally_core::rows::Seq::Given(seq) }), Row::Ticket(ticket))
}

/// Writes a row as it is, past the rules.
async fn put(engine: &impl Engine, key: Key, row: Row) {
    let loaded = engine.load(&Wants::rows(vec![key.clone()])).await.unwrap();
    let before = loaded.rows.into_iter().next().flatten();
    let mut view = View::new(Reading::Whole, 1, 0);
    view.fill_row(key.clone(), before.clone());
    let changes =
        Changes { rows: vec![(key, Change { before, after: Some(row) })], stamp: Stamp(1), ..Changes::default() };
    engine.commit(Seen { mark: loaded.mark, view: &view }, &changes).await.unwrap();
}

/// Rows of which only some stand, and which change without a move.
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_compared_with_those_who_wait() {
    let url = shared("");
    let store = Store::open(&url).await;
    for seq in 1..=60 {
        let state = if seq % 3 == 0 { TicketState::Left } else { TicketState::Waiting };
        let (key, row) = ticket(seq, state, 1);
        put(&*store.engine, key, row).await;
    }
    assert_eq!(off(&store).await, []);
    let order = format!("{}:ticket:{{sale}}:order", store.engine.options().prefix);
    let element = |seq: u64| format!("{seq:016x}{seq}");
    // Somebody is lost; somebody who left is there; so is a number that nobody has; and somebody is where he is not.
    let (left, ghost, moved) = (element(3), element(99), element(4));
    let damages: [&[&str]; 4] = [
        &["ZREMRANGEBYRANK", &order, "7", "7"],
        &["ZADD", &order, "0", &left],
        &["ZADD", &order, "0", &ghost],
        &["ZADD", &order, "5", &moved],
    ];
    for damage in damages {
        write(&url, damage).await;
        let found = off(&store).await;
        assert_eq!(found.iter().map(|(order, _)| order).collect::<Vec<_>>(), [&queue()], "{damage:?}: {found:?}");
        assert!(store.engine.mend(&Mend::Order(queue())).await.unwrap());
        assert_eq!(off(&store).await, [], "{damage:?}");
        let wants = Wants { ranks: vec![Standing::end(queue())], ..Wants::default() };
        assert_eq!(store.engine.load(&wants).await.unwrap().ranks, [40], "{damage:?}");
        assert!(!store.engine.mend(&Mend::Order(queue())).await.unwrap(), "what is right is left alone");
    }
    // And while everybody shows that they are alive, where they are.
    let over = Arc::new(AtomicBool::new(false));
    let mut hands = tokio::task::JoinSet::new();
    for hand in 0..4_u64 {
        let (engine, over) = (store.engine.clone(), over.clone());
        hands.spawn(async move {
            for turn in 2.. {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                let (key, row) = ticket(1 + hand * 3, TicketState::Waiting, turn);
                put(&*engine, key, row).await;
            }
        });
    }
    for round in 0..10 {
        assert_eq!(off(&store).await, [], "round {round}");
        assert!(!store.engine.mend(&Mend::Order(queue())).await.unwrap());
        write(&url, &["ZREM", &order, &element(1)]).await;
        assert!(store.engine.mend(&Mend::Order(queue())).await.unwrap());
    }
    over.store(true, Ordering::SeqCst);
    hands.join_all().await;
    assert_eq!(off(&store).await, []);
    store.stop().await;
}
