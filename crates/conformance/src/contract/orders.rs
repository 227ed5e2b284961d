//! Orders: rows that begin to stand in one, move in it, and cease to, next to a plain sorted list.

use std::collections::BTreeMap;

use tally_core::rows::{
    Among, BoardKey, Key, OrderKey, Place, Row, Score, ScoreKey, Seq, Standing, Ticket, TicketKey, TicketState,
};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_engine::{CommitError, Committed, Engine, OrderFrom, Range, Seen};

use crate::EngineFactory;
use crate::random::Random;
use crate::sample::{name, subject};
use crate::stand::Stand;

/// Names that begin alike, and of which one is also a board's.
const ROOMS: [&str; 3] = ["sale", "sale-2", "points"];

fn key(room: &str, seq: u64) -> TicketKey {
    TicketKey { room: name(room), seq: Seq::Given(seq) }
}

fn ticket(room: &str, seq: u64, state: TicketState, alive_until: u64) -> (Key, Option<Row>) {
    let (subject, token) = (subject(&format!("s{seq}")), format!("tab {seq}"));
    let row = Ticket::new(subject, &token, state, Timestamp(seq), Timestamp(alive_until));
    (Key::Ticket(key(room, seq)), Some(Row::Ticket(row)))
}

fn waiting(room: &str, seq: u64) -> (Key, Option<Row>) {
    ticket(room, seq, TicketState::Waiting, 1)
}

fn queue(room: &str) -> OrderKey {
    OrderKey::Queue(name(room))
}

fn board(levels: bool) -> BoardKey {
    BoardKey { board: name("points"), season: Timestamp(0), levels }
}

fn score(levels: bool, member: u64, score: i64, reached: u64) -> (Key, Option<Row>) {
    let key = ScoreKey { board: board(levels), member: subject(&format!("m{member}")) };
    (Key::Score(key), Some(Row::Score(Score { score, reached: Stamp(reached) })))
}

/// Every row, and what follows from them by sorting.
#[derive(Default)]
struct Model(BTreeMap<Key, Row>);

impl Model {
    /// Written out by hand, so that it is not what the stores go by.
    fn sorted(&self, order: &OrderKey) -> Vec<(Place, Key)> {
        let mut found: Vec<((i64, u64, String), Key)> = Vec::new();
        for (key, row) in &self.0 {
            match (order, key, row) {
                (OrderKey::Queue(room), Key::Ticket(at), Row::Ticket(ticket))
                    if at.room == *room && ticket.state == TicketState::Waiting =>
                {
                    let seq = at.seq.given(0);
                    found.push(((0, seq, seq.to_string()), key.clone()));
                }
                (OrderKey::Board(board), Key::Score(at), Row::Score(score)) if at.board == *board => {
                    found.push(((-score.score, score.reached.0, at.member.to_string()), key.clone()));
                }
                _ => {}
            }
        }
        found.sort();
        let place = |(down, reached, id): (i64, u64, String)| Place { score: -down, reached, id: id.into() };
        found.into_iter().map(|(at, key)| (place(at), key)).collect()
    }
}

/// Commits rows on what is there, and has the commit tell some ranks.
async fn commit<E: Engine>(
    engine: &E,
    rows: &[(Key, Option<Row>)],
    told: &[Standing],
) -> (View, Result<Committed, CommitError>) {
    let wants = Wants { rows: rows.iter().map(|(key, _)| key.clone()).collect(), ranks: told.to_vec(), totals: vec![] };
    let loaded = engine.load(&wants).await.expect("a load works");
    let mut view = View::default();
    wants.rows.into_iter().zip(loaded.rows).for_each(|(key, row)| view.fill_row(key, row));
    wants.ranks.into_iter().zip(loaded.ranks).for_each(|(standing, before)| view.fill_rank(standing, before));
    for (key, row) in rows {
        view.set(key.clone(), row.clone()).expect("it is loaded");
    }
    told.iter().for_each(|standing| view.tell_rank(standing));
    let outcome = engine.commit(Seen { mark: loaded.mark, view: &view }, &view.changes(Stamp(1))).await;
    (view, outcome)
}

async fn put<E: Engine>(engine: &E, model: &mut Model, rows: Vec<(Key, Option<Row>)>) {
    commit(engine, &rows, &[]).await.1.expect("nobody else writes");
    for (key, row) in rows {
        match row {
            Some(row) => _ = model.0.insert(key, row),
            None => _ = model.0.remove(&key),
        }
    }
}

/// Every rank of an order, and pages of it from everywhere.
async fn check<E: Engine>(engine: &E, model: &Model, order: &OrderKey, said: &str) {
    let sorted = model.sorted(order);
    let mut ranks: Vec<Standing> = sorted.iter().map(|(place, _)| Standing::at(order.clone(), place.clone())).collect();
    for score in [-SCORES, -1, 0, 1, SCORES] {
        ranks.extend([Among::First, Among::Last].map(|among| Standing { order: order.clone(), score, among }));
        // Where nobody stands, or somebody has stood.
        for (reached, id) in [(0, "0"), (3, "3"), (130, "130"), (200, "2"), (1 << 40, "1099511627776")] {
            let place = Place { score, reached, id: id.into() };
            ranks.push(Standing::at(order.clone(), place));
        }
    }
    ranks.push(Standing::end(order.clone()));
    let found = engine.load(&Wants { ranks: ranks.clone(), ..Wants::default() }).await.expect("a load works").ranks;
    for (standing, found) in ranks.iter().zip(found) {
        let expected = sorted.iter().filter(|(place, _)| standing.is_behind(place)).count() as u64;
        assert_eq!(found, expected, "{said}: {standing:?}");
    }
    let rows: Vec<(Key, Row)> = sorted.iter().map(|(_, key)| (key.clone(), model.0[key].clone())).collect();
    let step = 1 + sorted.len() / 9;
    for number in (0..=sorted.len()).step_by(step).chain([sorted.len() + 5]) {
        let limit = 1 + number % 70;
        let page = async |from| {
            let page = engine.scan(&Range::Order { order: order.clone(), from }, limit).await.expect("a scan works");
            (page.items, page.more)
        };
        let cut = |mut rows: Vec<(Key, Row)>| {
            let more = rows.len() > limit;
            rows.truncate(limit);
            (rows, more)
        };
        let rest = rows.get(number..).unwrap_or_default();
        assert_eq!(page(OrderFrom::Rank(number as u64)).await, cut(rest.to_vec()), "{said}: {order:?} from {number}");
        if let Some((place, _)) = sorted.get(number) {
            let behind = page(OrderFrom::Behind(place.clone())).await;
            assert_eq!(behind, cut(rest[1..].to_vec()), "{said}: {order:?} behind {place:?}");
            let ahead = page(OrderFrom::Ahead(place.clone())).await;
            let expected = cut(rows[..number].iter().rev().cloned().collect());
            assert_eq!(ahead, expected, "{said}: {order:?} ahead of {place:?}");
        }
    }
}

const SCORES: i64 = 5;

fn all_orders() -> Vec<OrderKey> {
    ROOMS.map(queue).into_iter().chain([board(false).into(), board(true).into()]).collect()
}

/// A row may be there without standing, begin to stand, cease to and begin again.
pub(super) async fn rows_stand_in_an_order_only_while_they_say_so<F: EngineFactory>(stand: Stand<F>) {
    use TicketState::{BeforeOpen, Expired, Ready, Waiting};
    let (engine, mut model) = (stand.open().await, Model::default());
    let gone = |seq| (Key::Ticket(key("sale", seq)), None);
    for (said, rows) in [
        ("nobody", vec![]),
        ("early ones", vec![ticket("sale", 1, BeforeOpen, 1), ticket("sale", 2, BeforeOpen, 1)]),
        ("the doors open", vec![waiting("sale", 1), waiting("sale", 2)]),
        ("others join", vec![waiting("sale", 9), waiting("sale", 10), waiting("sale", 11), waiting("sale-2", 3)]),
        ("a sign of life", vec![ticket("sale", 2, Waiting, 99), ticket("sale", 10, Waiting, 98)]),
        ("the first is let in", vec![ticket("sale", 1, Ready, 99)]),
        ("one leaves from the middle", vec![ticket("sale", 9, Expired, 0)]),
        ("what does not stand changes", vec![ticket("sale", 1, Expired, 100)]),
        ("one goes while it waits, one that has not waited", vec![gone(10), gone(1)]),
        ("one waits again, and one is new", vec![waiting("sale", 9), waiting("sale", 10)]),
        ("one comes and another goes", vec![waiting("sale", 12), ticket("sale", 2, Ready, 1)]),
        ("all go", (9..=12).map(gone).collect()),
        ("and one comes back", vec![waiting("sale", 11)]),
    ] {
        put(&*engine, &mut model, rows).await;
        stand.drain(&engine).await;
        for order in all_orders() {
            check(&*engine, &model, &order, said).await;
        }
    }
}

/// Queues that are long and go from the front, and a board, all in the same commits.
pub(super) async fn queues_and_boards_change_in_one_commit<F: EngineFactory>(stand: Stand<F>) {
    let (mut engine, mut model, mut random) = (stand.open().await, Model::default(), Random(7));
    let mut next = 1;
    for round in 0..14 {
        let mut rows: BTreeMap<Key, Option<Row>> = BTreeMap::new();
        for _ in 0..if round < 7 { 60 } else { 5 } {
            // Several at once, in different rooms.
            rows.extend([waiting("sale", next), waiting(ROOMS[random.below(3)], next + 1)]);
            next += 1 + random.below(3) as u64;
        }
        for order in ROOMS.map(queue) {
            let line = model.sorted(&order);
            // Whoever stands first is let in, and some leave from anywhere.
            for (number, (_, key)) in line.iter().enumerate() {
                let is_let_in = round >= 6 && number < line.len() / 2;
                if !is_let_in && !random.percent(8) {
                    continue;
                }
                let Some(Row::Ticket(ticket)) = model.0.get(key) else { continue };
                let ready = Ticket { state: TicketState::Ready, ..ticket.clone() };
                rows.insert(key.clone(), random.percent(50).then_some(Row::Ticket(ready)));
            }
        }
        for _ in 0..30 {
            let (member, value) = (random.below(90), random.below(11) as i64 - SCORES);
            rows.extend([score(random.percent(25), member as u64, value, 1 + random.below(200) as u64)]);
        }
        rows.extend([(score(false, random.below(90) as u64, 0, 0).0, None)]);
        put(&*engine, &mut model, rows.into_iter().collect()).await;
        stand.drain(&engine).await;
        if round == 8 {
            engine = stand.reopen(engine).await;
        }
        for order in all_orders() {
            check(&*engine, &model, &order, &format!("round {round}")).await;
        }
    }
    assert!(next > 400, "long enough to be cut");
}

/// What a commit tells of a queue is what stands there right after it, its own changes and all.
pub(super) async fn a_commit_tells_where_in_an_order_something_stands<F: EngineFactory>(stand: Stand<F>) {
    let (engine, mut model) = (stand.open().await, Model::default());
    put(&*engine, &mut model, (1..=20).map(|seq| waiting("sale", seq)).collect()).await;
    put(&*engine, &mut model, (1..=5).map(|member| score(false, member, 3, member)).collect()).await;
    let told = [
        Standing::at(queue("sale"), key("sale", 21).place()),
        Standing::at(queue("sale"), key("sale", 8).place()),
        Standing::end(queue("sale")),
        Standing::end(queue("sale-2")),
        Standing { order: board(false).into(), score: 3, among: Among::First },
    ];
    let rows = [
        waiting("sale", 21),
        ticket("sale", 1, TicketState::Ready, 1),
        ticket("sale", 7, TicketState::Waiting, 77),
        (Key::Ticket(key("sale", 9)), None),
        waiting("sale-2", 1),
        score(false, 5, 4, 30),
    ];
    let (view, outcome) = commit(&*engine, &rows, &told).await;
    let committed = outcome.expect("nobody else writes");
    let ranks = committed.ranks.unwrap_or_else(|| told.iter().map(|standing| view.final_rank(standing)).collect());
    assert_eq!(ranks, [18, 6, 19, 1, 1]);
    let found = engine.load(&Wants { ranks: told.to_vec(), ..Wants::default() }).await.expect("a load works").ranks;
    assert_eq!(found, ranks);
}

/// A position that an answer stands on: whoever begins or ceases to wait before it is in its way, and nobody else is.
pub(super) async fn conflict_on_a_rank_that_was_decided_on<F: EngineFactory>(stand: Stand<F>) {
    let (engine, mut model) = (stand.open().await, Model::default());
    put(&*engine, &mut model, (1..=9).map(|seq| waiting("sale", seq)).collect()).await;
    put(&*engine, &mut model, vec![ticket("sale", 10, TicketState::BeforeOpen, 1), waiting("sale", 30)]).await;
    let standing = Standing::at(queue("sale"), key("sale", 20).place());
    for (moved, conflicts, said) in [
        (vec![ticket("sale", 3, TicketState::Ready, 1)], true, "one before it ceases to wait"),
        (vec![ticket("sale", 10, TicketState::Waiting, 1)], true, "one before it begins to"),
        (vec![(Key::Ticket(key("sale", 4)), None)], true, "one before it goes"),
        (vec![ticket("sale", 5, TicketState::Waiting, 55)], false, "one before it gives a sign of life"),
        (vec![ticket("sale", 3, TicketState::Done, 1)], false, "one that does not wait changes"),
        (vec![(Key::Ticket(key("sale", 30)), None)], false, "one behind it goes"),
        (vec![waiting("sale-2", 1), score(false, 1, 1, 1)], false, "somebody elsewhere comes"),
    ] {
        let wants = Wants { rows: vec![waiting("sale", 20).0], ranks: vec![standing.clone()], ..Wants::default() };
        let loaded = engine.load(&wants).await.expect("a load works");
        let mut view = View::default();
        view.fill_row(wants.rows[0].clone(), loaded.rows[0].clone());
        view.fill_rank(standing.clone(), loaded.ranks[0]);
        view.hold_rank(&standing);
        let state = if loaded.rows[0].is_some() { TicketState::Ready } else { TicketState::BeforeOpen };
        let (own, row) = ticket("sale", 20, state, loaded.ranks[0]);
        view.set(own.clone(), row.clone()).expect("it is loaded");
        put(&*engine, &mut model, moved).await;
        let outcome = engine.commit(Seen { mark: loaded.mark, view: &view }, &view.changes(Stamp(1))).await;
        assert_eq!(outcome.map(|_| ()), if conflicts { Err(CommitError::Conflict) } else { Ok(()) }, "{said}");
        if !conflicts {
            model.0.extend(row.map(|row| (own, row)));
        }
        check(&*engine, &model, &queue("sale"), said).await;
    }
}

/// A store may keep its orders beside its rows: they are there again, and follow what changes then.
pub(super) async fn orders_survive_a_reopening<F: EngineFactory>(stand: Stand<F>) {
    let (mut engine, mut model) = (stand.open().await, Model::default());
    for round in 0..3 {
        let first = 1 + round * 10;
        let mut rows: Vec<_> = (first..first + 10).map(|seq| waiting("sale", seq)).collect();
        rows.extend((0..6).map(|member| score(member % 2 == 0, member, (member * round) as i64 % 3, 9 - member)));
        put(&*engine, &mut model, rows).await;
        put(&*engine, &mut model, vec![ticket("sale", first, TicketState::Ready, 1)]).await;
        let mark = engine.load(&Wants::default()).await.expect("a load works").mark;
        engine.settle(mark).await.expect("it becomes durable");
        engine = stand.reopen(engine).await;
        stand.drain(&engine).await;
        put(&*engine, &mut model, vec![ticket("sale", first + 1, TicketState::Left, 1), waiting("sale-2", first)])
            .await;
        for order in all_orders() {
            check(&*engine, &model, &order, &format!("round {round}")).await;
        }
    }
}
