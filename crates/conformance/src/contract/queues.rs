//! Queues: rows that stand in an order by the number that their own commit gives them, next to a plain list.

use std::collections::{BTreeMap, BTreeSet};

use tally_core::rows::{BoardKey, Key, OrderKey, Place, Row, Score, ScoreKey, Seq, Standing};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::Wants;
use tally_engine::{CommitError, Engine, OrderFrom, Range};

use crate::EngineFactory;
use crate::joins::{Joins, queue_order, stands_at, ticket, ticket_key};
use crate::random::Random;
use crate::sample::{name, subject};
use crate::stand::Stand;

/// Names that begin alike, and one that no other has anything to do with.
const ROOMS: [&str; 3] = ["sale", "sale-2", "gate"];

fn board() -> OrderKey {
    BoardKey { board: name("sale"), season: Timestamp(0), levels: false }.into()
}

fn score_key(member: &str) -> Key {
    let OrderKey::Board(board) = board() else { panic!("it is a board") };
    Key::Score(ScoreKey { board, member: subject(member) })
}

/// Who waits in each room: numbers and subjects.
#[derive(Default)]
struct Model {
    waiting: BTreeMap<&'static str, BTreeMap<u64, String>>,
    lasts: BTreeMap<&'static str, u64>,
}

impl Model {
    fn rank(&self, room: &str, seq: u64) -> u64 {
        self.waiting.get(room).map_or(0, |waiting| waiting.range(..seq).count() as u64)
    }

    fn seqs(&self, room: &str) -> Vec<u64> {
        self.waiting.get(room).map_or_else(Vec::new, |waiting| waiting.keys().copied().collect())
    }

    /// These join and those leave, in one commit. What it tells is what is there right after it.
    async fn commit<E: Engine>(
        &mut self,
        engine: &E,
        who: &[(&'static str, String)],
        leave: &[(&'static str, u64)],
    ) -> Result<(), CommitError> {
        let joining: Vec<(&str, &str)> = who.iter().map(|(room, who)| (*room, who.as_str())).collect();
        let mut joins = Joins::new(engine, &joining).await?;
        for (room, seq) in leave {
            let whose = self.waiting.get_mut(room).and_then(|waiting| waiting.remove(seq)).expect("it waits");
            joins.leave(room, *seq, &whose);
        }
        // One who waited before, the end of the queue, and what is behind it.
        let old: Vec<(&str, u64)> =
            ROOMS.iter().filter_map(|room| Some((*room, *self.seqs(room).iter().rev().nth(1)?))).collect();
        let mut others: Vec<Standing> =
            old.iter().map(|(room, seq)| Standing::at(queue_order(room), Place::of_number(Seq::Given(*seq)))).collect();
        others.extend(ROOMS.map(|room| Standing::end(queue_order(room))));
        joins.show(engine, &others).await?;
        let (numbers, ranks) = joins.commit_told(engine).await?;
        for ((room, who), seq) in who.iter().zip(&numbers) {
            let last = self.lasts.entry(room).or_default();
            *last += 1;
            assert_eq!(seq, last, "dense");
            self.waiting.entry(room).or_default().insert(*seq, who.clone());
        }
        let mut expected: Vec<u64> = who.iter().zip(&numbers).map(|((room, _), seq)| self.rank(room, *seq)).collect();
        expected.extend(old.iter().map(|(room, seq)| self.rank(room, *seq)));
        expected.extend(ROOMS.map(|room| self.rank(room, u64::MAX)));
        assert_eq!(ranks, expected, "{who:?} join, {leave:?} leave");
        Ok(())
    }

    /// Every rank and every page.
    async fn check<E: Engine>(&self, engine: &E) {
        for room in ROOMS {
            let (order, seqs) = (queue_order(room), self.seqs(room));
            let until = self.lasts.get(room).copied().unwrap_or(0) + 3;
            let ranks = (1..=until).map(|seq| stands_at(room, Seq::Given(seq))).collect();
            let found = engine.load(&Wants { ranks, ..Wants::default() }).await.expect("a load works").ranks;
            let expected: Vec<u64> = (1..=until).map(|seq| self.rank(room, seq)).collect();
            assert_eq!(found, expected, "{room}");
            let row = |seq: &u64| (ticket_key(room, Seq::Given(*seq)), ticket(&self.waiting[room][seq]));
            let rows: Vec<(Key, Row)> = seqs.iter().map(row).collect();
            for from in (0..=seqs.len()).step_by(1 + seqs.len() / 5) {
                let page = async |from| {
                    let range = Range::Order { order: order.clone(), from };
                    engine.scan(&range, 500).await.expect("a scan works").items
                };
                assert_eq!(page(OrderFrom::Rank(from as u64)).await, rows[from..], "{room} from {from}");
                if let Some(seq) = seqs.get(from) {
                    let place = Place::of_number(Seq::Given(*seq));
                    assert_eq!(page(OrderFrom::Behind(place.clone())).await, rows[from + 1..], "{room} behind {seq}");
                    let ahead: Vec<(Key, Row)> = rows[..from].iter().rev().cloned().collect();
                    assert_eq!(page(OrderFrom::Ahead(place)).await, ahead, "{room} ahead of {seq}");
                }
            }
        }
    }
}

fn people(room: &'static str, round: usize, count: usize) -> Vec<(&'static str, String)> {
    (0..count).map(|number| (room, format!("r{round}n{number}"))).collect()
}

/// A position is how many wait before, right after the commit that gave the number.
pub(super) async fn who_joins_is_told_its_position<F: EngineFactory>(stand: Stand<F>) {
    let (engine, mut model) = (stand.open().await, Model::default());
    for (round, (count, leave)) in [
        (1, vec![]),
        (2, vec![]),
        (4, vec![2]),
        (0, vec![1, 7]),
        (1, vec![3, 4, 5, 6]),
        (3, vec![]),
        (2, vec![8, 9, 10, 11]),
        (30, vec![12]),
    ]
    .into_iter()
    .enumerate()
    {
        let leave: Vec<(&str, u64)> = leave.into_iter().map(|seq| ("sale", seq)).collect();
        model.commit(&*engine, &people("sale", round, count), &leave).await.expect("nobody else writes");
        stand.drain(&engine).await;
        model.check(&*engine).await;
    }
}

/// Long queues of several rooms, which go from the front and from the middle.
pub(super) async fn positions_in_several_rooms_of_one_commit<F: EngineFactory>(stand: Stand<F>) {
    let (mut engine, mut model, mut random) = (stand.open().await, Model::default(), Random(11));
    for round in 0..16 {
        let mut who: Vec<(&str, String)> = Vec::new();
        for _ in 0..1 + random.below(if round < 8 { 70 } else { 6 }) {
            let room = if random.percent(60) { ROOMS[0] } else { ROOMS[random.below(3)] };
            who.push((room, format!("r{round}n{}", who.len())));
        }
        let mut leave: BTreeSet<(&str, u64)> = BTreeSet::new();
        for room in ROOMS {
            let seqs = model.seqs(room);
            let let_in = if round > 7 { seqs.len() / 2 } else { 0 };
            leave.extend(seqs.iter().take(let_in).map(|seq| (room, *seq)));
            leave.extend(seqs.iter().filter(|_| random.percent(7)).map(|seq| (room, *seq)));
        }
        let leave: Vec<(&str, u64)> = leave.into_iter().collect();
        model.commit(&*engine, &who, &leave).await.expect("nobody else writes");
        if round == 9 {
            engine = stand.reopen(engine).await;
        }
        stand.drain(&engine).await;
        model.check(&*engine).await;
    }
    assert!(model.lasts["sale"] > 150, "long enough to be cut");
}

/// A board is an order as well, without numbers that are taken.
pub(super) async fn a_queue_and_a_board_of_one_commit<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    for round in 0..3_u64 {
        let names = [0, 1].map(|number| format!("r{round}n{number}"));
        let mut joins = Joins::new(&*engine, &[("sale", &names[0]), ("gate", &names[0]), ("sale", &names[1])])
            .await
            .expect("a load works");
        let (member, reached) = (format!("m{round}"), Stamp(1 << 60));
        joins.view.fill_row(score_key(&member), None);
        let row = Score { score: 7, reached };
        joins.view.set(score_key(&member), Some(Row::Score(row))).expect("it was loaded");
        // Behind everybody with that score, and far behind the numbers of any sequence.
        let last = Standing::at(board(), Place { score: 7, reached: reached.0, id: "n".into() });
        joins.show(&*engine, &[last]).await.expect("a load works");
        let (numbers, ranks) = joins.commit_told(&*engine).await.expect("nobody else writes");
        assert_eq!(numbers, [2 * round + 1, round + 1, 2 * round + 2]);
        assert_eq!(ranks, [2 * round, round, 2 * round + 1, round + 1]);
    }
}

/// A commit that was decided on a position which is not so any more.
pub(super) async fn conflict_on_a_position_that_was_decided_on<F: EngineFactory>(stand: Stand<F>) {
    let (engine, mut model) = (stand.open().await, Model::default());
    model.commit(&*engine, &people("sale", 0, 5), &[]).await.expect("nobody else writes");
    let hold = async |who: &str| {
        let mut joins = Joins::new(&*engine, &[("sale", "first"), ("sale", who)]).await.expect("a load works");
        joins.hold(&*engine).await.expect("a load works");
        joins
    };
    // Decided on the fifth and sixth place, and one of the five leaves.
    let late = hold("late").await;
    model.commit(&*engine, &[], &[("sale", 3)]).await.expect("nobody else writes");
    assert_eq!(late.commit(&*engine).await, Err(CommitError::Conflict));
    let late = hold("late").await;
    model.commit(&*engine, &people("sale", 1, 1), &[]).await.expect("nobody else writes");
    assert_eq!(late.commit(&*engine).await, Err(CommitError::Conflict), "somebody joined meanwhile");
    let joins = hold("late").await;
    model.commit(&*engine, &people("gate", 0, 1), &[]).await.expect("nobody else writes");
    assert_eq!(joins.commit(&*engine).await, Ok(vec![7, 8]), "nobody was in its way");
}
