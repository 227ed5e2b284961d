//! Reading what is counted.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use tally_core::limits::{ATTENDANCE_DAYS_MAX, UNION_KEYS_MAX};
use tally_core::query::{
    CountedDay, CounterAnswer, CountingAnswer, CountingQuery, DayAnswer, DaysAnswer, LimitAnswer, Matching,
    PresenceAnswer, SubjectDaysAnswer, UniqueAnswer,
};
use tally_core::rows::{Attendee, ChunkKey, CountKey, Key, Row, SKETCH_ERROR, Sketch, TotalKey};
use tally_core::view::Wants;
use tally_core::{Day, KeyId, Name, Refusal, Stamp, SubjectId, Timestamp};
use tally_core::{attendance, limit};
use tally_engine::Engine;

use super::{Reader, TRIES_MAX};
use crate::Error;

/// Chunks that are loaded at once: a few megabytes at most.
const CHUNKS_AT_ONCE: usize = 2_048;

impl<E: Engine> Reader<'_, E> {
    /// What time it is where writes are stamped: the store's, where it has one.
    pub(super) async fn store_time(&self) -> Result<Timestamp, Error> {
        let loaded = self.load(&Wants::default()).await?;
        Ok(loaded.now.map_or(self.now, Stamp::time))
    }

    pub(super) async fn counting(&self, query: CountingQuery) -> Result<CountingAnswer, Error> {
        match query {
            CountingQuery::Counter { counter, key } => self.counter(counter, key).await.map(CountingAnswer::Counter),
            CountingQuery::Unique { unique, keys } => self.unique(unique, keys).await.map(CountingAnswer::Unique),
            CountingQuery::Day { sheet, day } => self.day(&sheet, day).await.map(CountingAnswer::Day),
            CountingQuery::Days { sheet, days, matching } => {
                self.days(&sheet, days, matching).await.map(CountingAnswer::Days)
            }
            CountingQuery::Presence { sheet, day, subject } => {
                let day = self.day_or_today(&sheet, day).await?;
                let present = self.attendee(sheet, subject).await?.days.contains(day.0);
                Ok(CountingAnswer::Presence(PresenceAnswer { day, present }))
            }
            CountingQuery::SubjectDays { sheet, subject, from, to } => {
                self.subject_days(sheet, subject, from, to).await.map(CountingAnswer::SubjectDays)
            }
            CountingQuery::Board { board, season, rank, limit, cursor } => {
                self.board(&board, season, rank, limit, cursor.as_deref()).await.map(CountingAnswer::Board)
            }
            CountingQuery::Standing { board, season, member, around } => {
                self.standing(&board, season, member, around).await.map(CountingAnswer::Standing)
            }
            CountingQuery::Seasons { board } => self.seasons(&board).await.map(CountingAnswer::Seasons),
            CountingQuery::Limit { limit, key } => self.limit(&limit, &key).await.map(CountingAnswer::Limit),
        }
    }

    async fn counter(&self, name: Name, key: KeyId) -> Result<CounterAnswer, Error> {
        let keeps_time = self.catalog.counter(&name)?.last_at;
        let key = CountKey { name, key };
        let rows = if keeps_time { vec![Key::Touched(key.clone())] } else { Vec::new() };
        let wants = Wants { rows, totals: vec![TotalKey::Counter(key)], ..Wants::default() };
        let loaded = self.load(&wants).await?;
        let last_at = match loaded.rows.first() {
            Some(Some(Row::Touched(at))) => Some(*at),
            _ => None,
        };
        let as_of = loaded.now.map_or(self.now, Stamp::time);
        Ok(CounterAnswer { value: loaded.totals.first().copied().unwrap_or(0), as_of, last_at })
    }

    async fn unique(&self, name: Name, keys: Vec<KeyId>) -> Result<UniqueAnswer, Error> {
        self.catalog.unique(&name)?;
        if keys.is_empty() || keys.len() > UNION_KEYS_MAX {
            return Err(Refusal::bad_request(format!("keys are 1 to {UNION_KEYS_MAX}")).into());
        }
        let rows = keys.into_iter().map(|key| Key::Unique(CountKey { name: name.clone(), key }));
        let loaded = self.load(&Wants::rows(rows.collect())).await?;
        let sketches: Vec<&Sketch> = loaded.rows.iter().filter_map(|row| as_sketch(row.as_ref())).collect();
        let estimate = match *sketches {
            [] => 0,
            [alone] => alone.estimate(),
            _ => Sketch::union_estimate(sketches.into_iter()),
        };
        Ok(UniqueAnswer { estimate, error: SKETCH_ERROR })
    }

    async fn day_or_today(&self, sheet: &Name, day: Option<Day>) -> Result<Day, Error> {
        let def = self.catalog.sheet(sheet)?;
        match day {
            Some(day) => Ok(day),
            None => Ok(attendance::today(def, self.store_time().await?)),
        }
    }

    async fn day(&self, sheet: &Name, day: Option<Day>) -> Result<DayAnswer, Error> {
        let day = self.day_or_today(sheet, day).await?;
        let loaded = self.load(&Wants::totals(vec![TotalKey::Present { sheet: sheet.clone(), day }])).await?;
        Ok(DayAnswer { day, count: loaded.totals.first().copied().unwrap_or(0) })
    }

    async fn attendee(&self, sheet: Name, subject: SubjectId) -> Result<Attendee, Error> {
        Ok(match self.row(Key::Attendee(sheet, subject)).await? {
            Some(Row::Attendee(attendee)) => attendee,
            _ => Attendee { number: 0, days: Default::default(), forgotten: Default::default() },
        })
    }

    async fn subject_days(
        &self,
        sheet: Name,
        subject: SubjectId,
        from: Option<Day>,
        to: Option<Day>,
    ) -> Result<SubjectDaysAnswer, Error> {
        let today = self.day_or_today(&sheet, None).await?;
        let all = self.attendee(sheet, subject).await?.days;
        let (from, to) = (from.unwrap_or(Day(0)), to.unwrap_or(Day::LAST));
        if from > to {
            return Err(Refusal::bad_request("from is later than to").into());
        }
        let days: Vec<u32> = all.bitmap().range(from.0..=to.0).collect();
        Ok(SubjectDaysAnswer {
            count: days.len() as u64,
            // Only today may be missing still.
            current_streak: match to < today {
                true => attendance::run_up_to(all.bitmap(), to),
                false => attendance::current_streak(all.bitmap(), today),
            },
            longest_streak: attendance::longest_streak(days.iter().copied()),
            days: days.into_iter().map(Day).collect(),
        })
    }

    /// Chunk by chunk: those of one number hold the same subjects on every day.
    async fn days(&self, sheet: &Name, days: Vec<Day>, matching: Matching) -> Result<DaysAnswer, Error> {
        self.catalog.sheet(sheet)?;
        if days.is_empty() || days.len() > ATTENDANCE_DAYS_MAX {
            return Err(Refusal::bad_request(format!("days are 1 to {ATTENDANCE_DAYS_MAX}")).into());
        }
        let mut days = days;
        days.sort_unstable();
        days.dedup();
        let lists: Vec<Key> = days.iter().map(|day| Key::Day(sheet.clone(), *day)).collect();
        let totals = days.iter().map(|day| TotalKey::Present { sheet: sheet.clone(), day: *day }).collect();
        let mut wants = Wants { rows: lists.clone(), totals, ..Wants::default() };
        let mut loaded = self.load(&wants).await?;
        for _ in 0..TRIES_MAX {
            let listed = loaded.rows[..lists.len()].to_vec();
            let chunks = chunks_of(sheet, &days, &listed, matching);
            let keys: Vec<Key> = chunks.iter().flatten().cloned().collect();
            // What was loaded last holds the lists, the totals and the chunks that are in these lists, all of one moment.
            if wants.rows[lists.len()..] == keys {
                let mut rows = loaded.rows.drain(lists.len()..);
                let count = chunks.iter().map(|keys| counted(rows.by_ref().take(keys.len()), matching)).sum();
                drop(rows);
                return Ok(days_answer(count, matching, days, loaded.totals));
            }
            if keys.len() > CHUNKS_AT_ONCE {
                let count = self.counted_in_parts(&chunks, matching).await?;
                return Ok(days_answer(count, matching, days, loaded.totals));
            }
            wants.rows = lists.iter().cloned().chain(keys).collect();
            loaded = self.load(&wants).await?;
        }
        Err(Error::Overloaded)
    }

    /// So many chunks are not loaded at once, so each of these loads is of its own moment.
    async fn counted_in_parts(&self, chunks: &[Vec<Key>], matching: Matching) -> Result<u64, Error> {
        let widest = chunks.iter().map(Vec::len).max().unwrap_or(1).max(1);
        let mut count = 0;
        for some in chunks.chunks((CHUNKS_AT_ONCE / widest).max(1)) {
            let loaded = self.load(&Wants::rows(some.iter().flatten().cloned().collect())).await?;
            let mut rows = loaded.rows.into_iter();
            count += some.iter().map(|keys| counted(rows.by_ref().take(keys.len()), matching)).sum::<u64>();
        }
        Ok(count)
    }

    async fn limit(&self, name: &Name, key: &KeyId) -> Result<LimitAnswer, Error> {
        let def = self.catalog.limit(name)?.clone();
        let wants = Wants::rows(vec![Key::Limit(limit::limit_key(&def, key.as_str()))]);
        let loaded = self.load(&wants).await?;
        let used = match loaded.rows.first() {
            Some(Some(Row::Limit(used))) => Some(used),
            _ => None,
        };
        let room = limit::peek(&def, used, loaded.now.unwrap_or(Stamp::at(self.now)));
        Ok(LimitAnswer {
            remaining: room.remaining,
            reset_ms: room.reset_us.div_ceil(1_000),
            amount: def.amount,
            window_ms: def.window_us.div_ceil(1_000),
        })
    }
}

/// The chunks that are listed for these days, those of one number together.
fn chunks_of(sheet: &Name, days: &[Day], lists: &[Option<Row>], matching: Matching) -> Vec<Vec<Key>> {
    let mut chunks: BTreeMap<u64, Vec<Key>> = BTreeMap::new();
    for (day, list) in days.iter().zip(lists) {
        let Some(Row::Day(list)) = list else { continue };
        for chunk in list {
            let key = Key::Chunk(ChunkKey { sheet: sheet.clone(), day: *day, chunk: *chunk });
            chunks.entry(*chunk).or_default().push(key);
        }
    }
    let mut chunks: Vec<Vec<Key>> = chunks.into_values().collect();
    if matching == Matching::All {
        chunks.retain(|keys| keys.len() == days.len());
    }
    chunks
}

/// How many subjects are in any or in all of these chunks.
fn counted(rows: impl Iterator<Item = Option<Row>>, matching: Matching) -> u64 {
    let bits = rows.map(|row| match row {
        Some(Row::Chunk(bits)) => bits.bitmap().clone(),
        _ => RoaringBitmap::new(),
    });
    let together = match matching {
        Matching::Any => bits.reduce(|a, b| a | b),
        Matching::All => bits.reduce(|a, b| a & b),
    };
    together.map_or(0, |together| together.len())
}

fn days_answer(count: u64, matching: Matching, days: Vec<Day>, totals: Vec<i64>) -> DaysAnswer {
    let counted = days.into_iter().zip(totals).map(|(day, count)| CountedDay { day, count });
    DaysAnswer { count, matching, days: counted.collect() }
}

fn as_sketch(row: Option<&Row>) -> Option<&Sketch> {
    if let Some(Row::Unique(sketch)) = row { Some(sketch) } else { None }
}
