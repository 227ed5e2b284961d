//! Damage behind the rules' back, one thing at a time.

use tally_core::Command;
use tally_core::command::{Attend, ChangeScore, ScoreChange};
use tally_core::rows::{BoardKey, CHUNK_BITS, ChunkKey, Key, Row, Score, ScoreKey, TotalKey};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::Wants;
use tally_engine::Engine;

use super::filled::{DAY, Filled, SCORE, WHO};
use super::{findings, repairs, words};
use crate::EngineFactory;
use crate::driver::write;
use crate::sample::{name, subject};
use crate::stand::Stand;

/// What is damaged, and what the finding says.
pub(super) const DAMAGES: [(Damage, &str); 12] = [
    (Damage::Total(2), "Present"),
    (Damage::Total(-3), "Present"),
    (Damage::Bit("eve"), "eve, number"),
    (Damage::Bit("8"), "8, number 8"),
    (Damage::Day("fay"), "fay, number"),
    (Damage::Forgotten, "by the day's bitmap, and by the days of 0 subjects"),
    (Damage::List(false), "the list names it 0 times"),
    (Damage::List(true), "its list names chunk 999"),
    (Damage::Chunk, "which is not there"),
    (Damage::Level(Some(9)), "3 members have the score 700, and its level says 9"),
    (Damage::Level(None), "3 members have the score 700, and its level says 0"),
    (Damage::Levels, "0 members have the score 12345"),
];

#[derive(Clone, Copy, Debug)]
pub(super) enum Damage {
    /// A day's total is off by so many.
    Total(i64),
    /// A day loses somebody's bit.
    Bit(&'static str),
    /// Somebody loses a day.
    Day(&'static str),
    /// Somebody who is being forgotten loses a day that is still to be taken back.
    Forgotten,
    /// A day's list has a chunk too many, or one too few.
    List(bool),
    /// A whole chunk is lost.
    Chunk,
    /// A level says that it has so many members, or is lost.
    Level(Option<u64>),
    /// There is a level that nobody has.
    Levels,
}

async fn row<E: Engine>(engine: &E, key: &Key) -> Row {
    let found = engine.load(&Wants::rows(vec![key.clone()])).await.expect("a load works").rows.pop().flatten();
    found.unwrap_or_else(|| panic!("{key:?} is not there"))
}

fn level(score: i64) -> Key {
    let board = BoardKey { board: name("dense"), season: Timestamp(0), levels: true };
    Key::Score(ScoreKey { board, member: subject(&score.to_string()) })
}

impl Damage {
    pub(super) async fn on<E: Engine>(self, engine: &E) {
        let daily = name("daily");
        let attendee = |who: &str| Key::Attendee((name("daily"), subject(who)));
        let of = async |who: &str| match row(engine, &attendee(who)).await {
            Row::Attendee(attendee) => attendee,
            other => panic!("{other:?}"),
        };
        let chunk_of = async |who: &str| {
            let number = of(who).await.number;
            let chunk = ChunkKey { sheet: name("daily"), day: DAY, chunk: number >> CHUNK_BITS };
            (Key::Chunk(chunk), (number & ((1 << CHUNK_BITS) - 1)) as u32)
        };
        let changed = match self {
            Self::Total(by) => {
                return write(engine, [], [(TotalKey::Present { sheet: daily, day: DAY }, by)]).await;
            }
            Self::Bit(who) => {
                let (key, bit) = chunk_of(who).await;
                let Row::Chunk(mut bits) = row(engine, &key).await else { panic!("a chunk is a chunk") };
                bits.set(bit, false);
                (key, Some(Row::Chunk(bits)))
            }
            Self::Day(who) => {
                let mut row = of(who).await;
                row.days.set(DAY.0, false);
                (attendee(who), Some(Row::Attendee(row)))
            }
            Self::Forgotten => {
                let mut row = of(WHO[4]).await;
                assert!(row.days.is_empty(), "it is being forgotten");
                row.forgotten.set(DAY.0, false);
                (attendee(WHO[4]), Some(Row::Attendee(row)))
            }
            Self::List(more) => {
                let key = Key::Day((daily, DAY));
                let Row::Day(mut chunks) = row(engine, &key).await else { panic!("a day is a day") };
                if more {
                    let place = chunks.partition_point(|chunk| *chunk < 999);
                    chunks.insert(place, 999);
                } else {
                    chunks.pop();
                }
                (key, Some(Row::Day(chunks)))
            }
            Self::Chunk => (chunk_of("eve").await.0, None),
            Self::Level(members) => {
                let score = |members| Row::Score(Score { score: SCORE, reached: Stamp(members) });
                (level(SCORE), members.map(score))
            }
            Self::Levels => (level(12_345), Some(Row::Score(Score { score: 12_345, reached: Stamp(1) }))),
        };
        write(engine, [changed], []).await;
    }
}

pub(super) async fn what_is_damaged_is_named_and_put_right<F: EngineFactory>(stand: Stand<F>) {
    for (seed, (damage, expected)) in DAMAGES.into_iter().enumerate() {
        let stand = stand.another();
        let engine = stand.open().await;
        let mut filled = Filled::new(&*engine, seed as u64).await;
        damage.on(&*engine).await;
        let found = findings(&*engine).await;
        let said: Vec<String> = found.iter().map(words).collect();
        assert!(said.iter().any(|said| said.contains(expected)), "{damage:?}: {said:?}");
        for repair in repairs(&*engine, found).await {
            filled.run(repair).await;
        }
        let left: Vec<String> = findings(&*engine).await.iter().map(words).collect();
        assert_eq!(left, Vec::<String>::new(), "{damage:?}, after it was put right");
        // What was put right works: everybody can come and go.
        for who in WHO {
            for present in [false, true] {
                let (sheet, day, subject) = (name("daily"), Some(DAY), subject(who));
                filled.run(Command::from(Attend { sheet, day, subject, present })).await;
            }
            let change = ScoreChange::To(SCORE + 1);
            filled.run(Command::from(ChangeScore { board: name("dense"), member: subject(who), change })).await;
        }
        assert_eq!(findings(&*engine).await, []);
    }
}

pub(super) async fn everything_that_is_damaged_at_once_comes_right<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut filled = Filled::new(&*engine, 99).await;
    let damages = [Damage::Total(5), Damage::Day("fay"), Damage::Forgotten, Damage::List(true), Damage::Bit("8")];
    for damage in damages.into_iter().chain([Damage::Chunk, Damage::Level(Some(4)), Damage::Levels]) {
        damage.on(&*engine).await;
    }
    // A total of a day whose list is wrong may be told of only once that is right.
    for _ in 0..3 {
        for repair in repairs(&*engine, findings(&*engine).await).await {
            filled.run(repair).await;
        }
    }
    let left: Vec<String> = findings(&*engine).await.iter().map(words).collect();
    assert_eq!(left, Vec::<String>::new());
}
