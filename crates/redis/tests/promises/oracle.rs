//! Counting on Redis next to the same in plain maps: whatever is written, both show the same.

use std::collections::{BTreeMap, BTreeSet};

use tally_core::rows::{
    Among, Attendee, Bits, Board, BoardKey, Change, Changes, ChunkKey, CountKey, Key, LimitKey, OrderKey, Place, Row,
    RowKind, Score, ScoreKey, Sketch, Standing, Ticket, TicketKey, TicketState, TotalKey, Used, UsedState,
};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{Reading, View, Wants};
use tally_core::{Day, KeyId, SubjectId};
use tally_engine::memory::Memory;
use tally_engine::{CommitError, Engine, Finding, Mark, OrderFrom, Range, Seen};
use tally_redis::Redis;

use crate::support::{engine, name, shared, shared_cluster};

/// Ids that meet each other in every way that keys could.
const IDS: [&str; 12] = ["a", "}", "%", "", "a}b", "{", "é", "z", "Z", "a:b", "post:42", "👍"];

/// Numbers that only look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn id(&mut self) -> &'static str {
        IDS[self.roll(IDS.len() as u64) as usize]
    }

    fn name(&mut self) -> tally_core::Name {
        name(["a", "b", "a-b"][self.roll(3) as usize])
    }

    /// One that is not empty.
    fn subject(&mut self) -> SubjectId {
        SubjectId::new(self.id()).unwrap_or_else(|_| SubjectId::new("someone").unwrap())
    }

    fn count_key(&mut self) -> CountKey {
        CountKey { name: self.name(), key: KeyId::new(self.subject().as_str()).unwrap() }
    }

    fn board(&mut self) -> BoardKey {
        let season = [0, 1_000, 1 << 43][self.roll(3) as usize];
        BoardKey { board: self.name(), season: Timestamp(season), levels: self.roll(4) == 0 }
    }

    /// Few of them, so that many are equal.
    fn score(&mut self) -> Score {
        let score = [0, 7, -7, 1 << 53, -(1 << 53)][self.roll(5) as usize];
        Score { score, reached: Stamp([0, 9, 10, u64::MAX][self.roll(4) as usize]) }
    }

    fn key(&mut self) -> Key {
        let day = Day(self.roll(3) as u32 * 10_000);
        match self.roll(11) {
            0 => Key::Touched(self.count_key()),
            1 => Key::Unique(self.count_key()),
            2 => Key::Limit(LimitKey {
                name: ["a", "relations.like"][self.roll(2) as usize].into(),
                key: self.id().into(),
            }),
            3 => Key::Sheet(self.name()),
            4 => Key::Day((self.name(), day)),
            5 => Key::Chunk(ChunkKey { sheet: self.name(), day, chunk: self.roll(3) << 30 }),
            6 => Key::Attendee((self.name(), self.subject())),
            7 => Key::Board(self.name()),
            8 | 9 => Key::Ticket(TicketKey { room: self.name(), seq: tally_core::rows::Seq::Given(self.seq()) }),
            _ => Key::Score(ScoreKey { board: self.board(), member: self.subject() }),
        }
    }

    fn bits(&mut self) -> Bits {
        let mut bits = Bits::default();
        (0..self.roll(20)).for_each(|_| bits.set(self.roll(60_000) as u32, true));
        bits
    }

    fn row(&mut self, key: &Key) -> Row {
        let at = Timestamp(self.roll(1_000));
        match key {
            Key::Touched(_) => Row::Touched(at),
            Key::Unique(_) => {
                let mut sketch = Sketch::default();
                (0..self.roll(300)).for_each(|number| sketch.add(&number.to_string()));
                Row::Unique(sketch)
            }
            Key::Limit(_) => Row::Limit(Used {
                state: match self.roll(3) {
                    0 => UsedState::Log(vec![(self.roll(1_000), 1), (u64::MAX, 7)]),
                    1 => UsedState::Window { start: 1, current: self.roll(9), previous: u64::MAX },
                    _ => UsedState::Bucket { full_at: self.roll(1_000) },
                },
                look_at: at,
            }),
            Key::Sheet(_) => Row::Sheet(u64::MAX - self.roll(9)),
            Key::Day(..) => Row::Day(vec![self.roll(9), u64::MAX]),
            Key::Chunk(_) => Row::Chunk(self.bits()),
            Key::Attendee(..) => {
                Row::Attendee(Attendee { number: u64::MAX - self.roll(9), days: self.bits(), forgotten: self.bits() })
            }
            Key::Board(_) => Row::Board(Board { seasons: vec![Timestamp(0), at], dense: true }),
            Key::Score(_) => Row::Score(self.score()),
            Key::Ticket(_) => {
                let state = [TicketState::Waiting, TicketState::Waiting, TicketState::Ready][self.roll(3) as usize];
                let (subject, token) = (self.subject(), self.id().to_owned());
                Row::Ticket(Ticket::new(subject, &token, state, at, at))
            }
            other => panic!("{other:?}"),
        }
    }

    fn total(&mut self) -> TotalKey {
        match self.roll(2) {
            0 => TotalKey::Counter(self.count_key()),
            _ => TotalKey::Present { sheet: self.name(), day: Day(self.roll(3) as u32) },
        }
    }

    fn seq(&mut self) -> u64 {
        [0, 1, 9, 10, 11, 99, 100, u64::MAX][self.roll(8) as usize]
    }

    fn place(&mut self) -> (OrderKey, Place) {
        if self.roll(2) == 0 {
            let key = TicketKey { room: self.name(), seq: tally_core::rows::Seq::Given(self.seq()) };
            return (OrderKey::Queue(key.room.clone()), key.place());
        }
        let key = ScoreKey { board: self.board(), member: self.subject() };
        (key.board.clone().into(), key.place(self.score()))
    }

    fn standing(&mut self) -> Standing {
        let (order, place) = self.place();
        let score = place.score;
        match self.roll(4) {
            0 => Standing { order, score, among: Among::First },
            1 => Standing { order, score, among: Among::Last },
            _ => Standing::at(order, place),
        }
    }
}

/// Redis, and the maps.
struct Both {
    redis: std::sync::Arc<Redis>,
    memory: Memory,
    dice: Dice,
}

impl Both {
    async fn on(url: &str, seed: u64) -> Self {
        let redis = engine(url);
        redis.prepare().await.unwrap();
        Self { redis, memory: Memory::default(), dice: Dice(seed) }
    }

    /// Some rows and totals change, on what was seen of them. Says whether both took it; they agree on that.
    async fn commit(&mut self) -> bool {
        let keys: BTreeSet<Key> = (0..self.dice.roll(6)).map(|_| self.dice.key()).collect();
        let totals: BTreeSet<TotalKey> = (0..self.dice.roll(4)).map(|_| self.dice.total()).collect();
        let (keys, totals): (Vec<Key>, Vec<TotalKey>) = (keys.into_iter().collect(), totals.into_iter().collect());
        let wants = Wants { rows: keys.clone(), totals: totals.clone(), ranks: Vec::new() };
        let there = self.redis.load(&wants).await.unwrap();
        let (mut view, mut changes) = (View::new(Reading::Whole, 1, 7), Changes::default());
        let wrong = self.dice.roll(8) == 0;
        for (key, before) in keys.into_iter().zip(there.rows) {
            let before = if wrong && self.dice.roll(2) == 0 { Some(self.dice.row(&key)) } else { before };
            view.fill_row(key.clone(), before.clone());
            let after = (self.dice.roll(3) > 0).then(|| self.dice.row(&key));
            if before != after && self.dice.roll(4) > 0 {
                changes.rows.push((key, Change { before, after }));
            }
        }
        for (total, value) in totals.into_iter().zip(there.totals) {
            view.fill_total(total.clone(), if wrong { value + 1 } else { value });
            if self.dice.roll(3) == 0 {
                view.total_decided(&total).unwrap();
            }
            let by = if self.dice.roll(2) == 0 { -value } else { self.dice.roll(5) as i64 - 2 };
            if by != 0 {
                changes.adds.push((total, by));
            }
        }
        let taken = self.redis.commit(Seen { mark: Mark::default(), view: &view }, &changes).await;
        let expected = self.memory.commit(Seen { mark: Mark::default(), view: &view }, &changes).await;
        match (taken, expected) {
            (Ok(taken), Ok(expected)) => assert_eq!(taken.totals, expected.totals, "{changes:?}"),
            (Err(CommitError::Conflict), Err(CommitError::Conflict)) => return false,
            other => panic!("{other:?} for {changes:?}"),
        }
        true
    }

    async fn same_load(&mut self) {
        let ranks: Vec<Standing> = (0..60).map(|_| self.dice.standing()).collect();
        let totals = (0..20).map(|_| self.dice.total()).collect();
        let wants = Wants { rows: (0..40).map(|_| self.dice.key()).collect(), totals, ranks };
        let (found, expected) = (self.redis.load(&wants).await.unwrap(), self.memory.load(&wants).await.unwrap());
        assert_eq!(
            (found.rows, found.totals, found.ranks),
            (expected.rows, expected.totals, expected.ranks),
            "{wants:?}"
        );
    }

    async fn same_pages(&mut self) {
        let limit = 1 + self.dice.roll(9) as usize;
        let (order, place) = self.dice.place();
        let ranges = [
            OrderFrom::Rank(self.dice.roll(9)),
            OrderFrom::Rank(u64::MAX),
            OrderFrom::Behind(place.clone()),
            OrderFrom::Ahead(place),
        ]
        .map(|from| Range::Order { order: order.clone(), from });
        let due = [0, 500, u64::MAX].map(|before| Range::due(RowKind::Limit, Timestamp(before)));
        for range in ranges.iter().chain(&due) {
            let found = self.redis.scan(range, limit).await.unwrap();
            let expected = self.memory.scan(range, limit).await.unwrap();
            assert_eq!((found.items, found.more), (expected.items, expected.more), "{range:?}");
        }
    }

    /// Every row once, however long the pages are, and from any key on the same ones as before.
    async fn same_rows(&mut self) {
        let all = self.memory.scan(&Range::Rows { after: None }, usize::MAX - 1).await.unwrap().items;
        let mut orders = Vec::new();
        for limit in [1, 7, 1_000] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let page = self.redis.scan(&Range::Rows { after }, limit).await.unwrap();
                after = page.items.last().map(|(key, _)| key.clone());
                found.extend(page.items);
                if !page.more {
                    break;
                }
            }
            assert_eq!(found.len(), all.len(), "each once");
            let by_key = |rows: &[(Key, Row)]| rows.iter().cloned().collect::<BTreeMap<Key, Row>>();
            assert_eq!(by_key(&found), by_key(&all), "{limit}");
            orders.push(found);
        }
        assert!(orders.windows(2).all(|two| two[0] == two[1]), "the order is one");
    }
}

async fn agree(url: &str, seed: u64, commits: usize) {
    let mut both = Both::on(url, seed).await;
    let mut taken = 0;
    for number in 0..commits {
        taken += usize::from(both.commit().await);
        if number % 10 == 0 {
            both.same_load().await;
            both.same_pages().await;
        }
        if number % 100 == 99 {
            both.same_rows().await;
        }
    }
    assert!(taken > commits / 2 && taken < commits, "{taken} of {commits} were taken");
    // Rows that no rule has made need not agree with each other; but orders are those of their scores.
    let mut tell = |finding| match finding {
        Finding::Progress(_) | Finding::Wrong(_) => {}
        Finding::Drift { total, .. } if !total.counts_edges() => {}
        other => panic!("{other:?}"),
    };
    assert_eq!(both.redis.audit(&mut tell).await.unwrap().edges, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_shows_what_the_oracle_shows() {
    for seed in 0..3 {
        agree(&shared(""), seed, 400).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_shows_what_the_oracle_shows() {
    agree(&shared_cluster(""), 99, 300).await;
}
