//! Reading what is counted.

use roaring::RoaringBitmap;
use tally_core::catalog::{BoardDef, Ties};
use tally_core::limits::{AROUND_MAX, ATTENDANCE_DAYS_MAX, PAGE_ITEMS_MAX, SCORE_MAX, UNION_KEYS_MAX};
use tally_core::query::{
    BoardAnswer, BoardItem, CountedDay, CounterAnswer, CountingAnswer, CountingQuery, DayAnswer, DaysAnswer,
    LimitAnswer, Matching, PresenceAnswer, SeasonItem, SeasonsAnswer, StandingAnswer, SubjectDaysAnswer, UniqueAnswer,
};
use tally_core::rows::{
    Among, Attendee, BoardKey, CHUNK_BITS, ChunkKey, CountKey, Key, Row, SKETCH_ERROR, Score, ScoreKey, Sketch,
    Standing, TotalKey,
};
use tally_core::rules::{attendance, board, limit};
use tally_core::view::Wants;
use tally_core::{BoardCursor, Day, KeyId, Name, Refusal, Stamp, SubjectId, Timestamp};
use tally_engine::{BoardFrom, Engine, Range};

use super::Reader;
use crate::Error;

impl<E: Engine> Reader<'_, E> {
    pub(super) async fn counting(&self, query: CountingQuery) -> Result<CountingAnswer, Error> {
        match query {
            CountingQuery::Counter { counter, key } => self.counter(counter, key).await.map(CountingAnswer::Counter),
            CountingQuery::Unique { unique, keys } => self.unique(unique, keys).await.map(CountingAnswer::Unique),
            CountingQuery::Day { sheet, day } => self.day(&sheet, day).await.map(CountingAnswer::Day),
            CountingQuery::Days { sheet, days, matching } => {
                self.days(&sheet, days, matching).await.map(CountingAnswer::Days)
            }
            CountingQuery::Presence { sheet, day, subject } => {
                let day = self.day_or_today(&sheet, day)?;
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
        let keeps_time = self.catalog.counting.counter(&name)?.last_at;
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
        self.catalog.counting.unique(&name)?;
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

    fn day_or_today(&self, sheet: &Name, day: Option<Day>) -> Result<Day, Refusal> {
        let def = self.catalog.counting.sheet(sheet)?;
        Ok(day.unwrap_or_else(|| attendance::today(def, self.now)))
    }

    async fn day(&self, sheet: &Name, day: Option<Day>) -> Result<DayAnswer, Error> {
        let day = self.day_or_today(sheet, day)?;
        let loaded = self.load(&Wants::totals(vec![TotalKey::Present { sheet: sheet.clone(), day }])).await?;
        Ok(DayAnswer { day, count: loaded.totals.first().copied().unwrap_or(0) })
    }

    async fn attendee(&self, sheet: Name, subject: SubjectId) -> Result<Attendee, Error> {
        Ok(match self.row(Key::Attendee(sheet, subject)).await? {
            Some(Row::Attendee(attendee)) => attendee,
            _ => Attendee { number: 0, days: Default::default() },
        })
    }

    async fn subject_days(
        &self,
        sheet: Name,
        subject: SubjectId,
        from: Option<Day>,
        to: Option<Day>,
    ) -> Result<SubjectDaysAnswer, Error> {
        let today = self.day_or_today(&sheet, None)?;
        let all = self.attendee(sheet, subject).await?.days;
        let (from, to) = (from.unwrap_or(Day(0)), to.unwrap_or(Day::LAST));
        if from > to {
            return Err(Refusal::bad_request("from is later than to").into());
        }
        let days: Vec<u32> = all.bitmap().range(from.0..=to.0).collect();
        Ok(SubjectDaysAnswer {
            count: days.len() as u64,
            current_streak: attendance::current_streak(all.bitmap(), today.min(to)),
            longest_streak: attendance::longest_streak(days.iter().copied()),
            days: days.into_iter().map(Day).collect(),
        })
    }

    /// Chunk by chunk: those of one number hold the same subjects on every day.
    async fn days(&self, sheet: &Name, days: Vec<Day>, matching: Matching) -> Result<DaysAnswer, Error> {
        self.catalog.counting.sheet(sheet)?;
        if days.is_empty() || days.len() > ATTENDANCE_DAYS_MAX {
            return Err(Refusal::bad_request(format!("days are 1 to {ATTENDANCE_DAYS_MAX}")).into());
        }
        let mut days = days;
        days.sort_unstable();
        days.dedup();
        let lists = days.iter().map(|day| Key::Day(sheet.clone(), *day)).collect();
        let totals = days.iter().map(|day| TotalKey::Present { sheet: sheet.clone(), day: *day }).collect();
        let loaded = self.load(&Wants { rows: lists, totals, ..Wants::default() }).await?;
        let chunks_of = |row: &Option<Row>| if let Some(Row::Day(chunks)) = row { chunks.clone() } else { Vec::new() };
        let lists: Vec<Vec<u64>> = loaded.rows.iter().map(chunks_of).collect();
        let mut chunks: Vec<u64> = lists.iter().flatten().copied().collect();
        chunks.sort_unstable();
        chunks.dedup();
        let mut count = 0;
        for chunk in chunks {
            let on = days.iter().zip(&lists).filter(|(_, list)| list.binary_search(&chunk).is_ok());
            let keys: Vec<Key> =
                on.map(|(day, _)| Key::Chunk(ChunkKey { sheet: sheet.clone(), day: *day, chunk })).collect();
            if matching == Matching::All && keys.len() < days.len() {
                continue;
            }
            let rows = self.load(&Wants::rows(keys)).await?.rows;
            let bits = rows.iter().map(|row| match row {
                Some(Row::Chunk(bits)) => bits.bitmap().clone(),
                _ => RoaringBitmap::new(),
            });
            let both = match matching {
                Matching::Any => bits.reduce(|a, b| a | b),
                Matching::All => bits.reduce(|a, b| a & b),
            };
            debug_assert!(both.as_ref().and_then(RoaringBitmap::max).is_none_or(|bit| bit >> CHUNK_BITS == 0));
            count += both.map_or(0, |both| both.len());
        }
        let counted = days.into_iter().zip(loaded.totals).map(|(day, count)| CountedDay { day, count });
        Ok(DaysAnswer { count, matching, days: counted.collect() })
    }

    fn board_of(&self, name: &Name, season: Option<Timestamp>) -> Result<(&BoardDef, BoardKey), Refusal> {
        let def = self.catalog.counting.board(name)?;
        let now = board::board_key(def, self.now);
        match season {
            Some(_) if def.season.is_none() => Err(Refusal::bad_request(format!("`{name}` has no seasons"))),
            Some(season) => Ok((def, BoardKey { season, ..now })),
            None => Ok((def, now)),
        }
    }

    async fn board(
        &self,
        name: &Name,
        season: Option<Timestamp>,
        rank: Option<u64>,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<BoardAnswer, Error> {
        let (def, key) = self.board_of(name, season)?;
        if limit == 0 || limit > PAGE_ITEMS_MAX {
            return Err(Refusal::bad_request(format!("limit is 1 to {PAGE_ITEMS_MAX}")).into());
        }
        let from = match (rank, cursor) {
            (Some(_), Some(_)) => return Err(Refusal::bad_request("take either rank or cursor").into()),
            (Some(0), _) => return Err(Refusal::bad_request("ranks begin with 1").into()),
            (Some(rank), None) => BoardFrom::Rank(rank - 1),
            (None, Some(text)) => {
                let last = BoardCursor::decode(text, &key)?;
                BoardFrom::Behind(last.member, last.score)
            }
            (None, None) => BoardFrom::Rank(0),
        };
        let page = self.scan(&Range::Board { board: key.clone(), from }, limit as usize).await?;
        let rows: Vec<(SubjectId, Score)> = page.items.into_iter().filter_map(as_score).collect();
        let last = rows.last().filter(|_| page.more);
        let cursor = last.map(|(member, score)| BoardCursor { member: member.clone(), score: *score }.encode(&key));
        let (items, members) = self.ranked(def, &key, rows).await?;
        Ok(BoardAnswer { season: shown_season(def, &key), members, items, next_cursor: cursor })
    }

    /// Gives each its rank, from that of the first; and says how many members there are.
    async fn ranked(
        &self,
        def: &BoardDef,
        board: &BoardKey,
        rows: Vec<(SubjectId, Score)>,
    ) -> Result<(Vec<BoardItem>, u64), Error> {
        let all = Standing { board: board.clone(), score: -SCORE_MAX - 1, among: Among::Last };
        let mut ranks = vec![all];
        let first = rows.first().map(|(member, score)| {
            let key = ScoreKey { board: board.clone(), member: member.clone() };
            let (standing, more) = board::rank_standing(def.ties, &key, *score);
            ranks.extend([standing, Standing::of(&key, *score)]);
            more
        });
        let loaded = self.load(&Wants { ranks, ..Wants::default() }).await?.ranks;
        let members = loaded.first().copied().unwrap_or(0);
        let (Some(more), [_, before, place]) = (first, &loaded[..]) else { return Ok((Vec::new(), members)) };
        let (mut rank, mut last) = (before + more, None);
        let ranked = rows.into_iter().enumerate().map(|(index, (member, score))| {
            let moved = last.is_some_and(|last| last != score.score);
            rank = match def.ties {
                Ties::FirstToReach => before + more + index as u64,
                Ties::Shared if moved => place + 1 + index as u64,
                Ties::Dense if moved => rank + 1,
                Ties::Shared | Ties::Dense => rank,
            };
            last = Some(score.score);
            BoardItem { member, score: score.score, rank }
        });
        Ok((ranked.collect(), members))
    }

    async fn standing(
        &self,
        name: &Name,
        season: Option<Timestamp>,
        member: SubjectId,
        around: u32,
    ) -> Result<StandingAnswer, Error> {
        let (def, board) = self.board_of(name, season)?;
        if around > AROUND_MAX {
            return Err(Refusal::bad_request(format!("around is at most {AROUND_MAX}")).into());
        }
        let season = shown_season(def, &board);
        let key = ScoreKey { board: board.clone(), member: member.clone() };
        let Some(Row::Score(score)) = self.row(Key::Score(key)).await? else {
            let (_, members) = self.ranked(def, &board, Vec::new()).await?;
            return Ok(StandingAnswer { member, score: None, rank: None, season, members, around: None });
        };
        let mut rows = Vec::new();
        if around > 0 {
            let ahead = BoardFrom::Ahead(member.clone(), score);
            let page = self.scan(&Range::Board { board: board.clone(), from: ahead }, around as usize).await?;
            rows.extend(page.items.into_iter().rev().filter_map(as_score));
        }
        let place = rows.len();
        rows.push((member.clone(), score));
        if around > 0 {
            let behind = BoardFrom::Behind(member.clone(), score);
            let page = self.scan(&Range::Board { board: board.clone(), from: behind }, around as usize).await?;
            rows.extend(page.items.into_iter().filter_map(as_score));
        }
        let (items, members) = self.ranked(def, &board, rows).await?;
        let rank = items.get(place).map(|item| item.rank);
        let around = (around > 0).then_some(items);
        Ok(StandingAnswer { member, score: Some(score.score), rank, season, members, around })
    }

    async fn seasons(&self, name: &Name) -> Result<SeasonsAnswer, Error> {
        let def = self.catalog.counting.board(name)?.clone();
        let Some(schedule) = &def.season else {
            return Err(Refusal::bad_request(format!("`{name}` has no seasons")).into());
        };
        let seasons = match self.row(Key::Board(name.clone())).await? {
            Some(Row::Board(seasons)) => seasons,
            _ => Vec::new(),
        };
        let items = seasons.into_iter().rev().map(|season| {
            let ends_at = schedule.next(season);
            SeasonItem { season, ends_at, closed: ends_at.is_some_and(|end| end <= self.now) }
        });
        Ok(SeasonsAnswer { items: items.collect() })
    }

    async fn limit(&self, name: &Name, key: &KeyId) -> Result<LimitAnswer, Error> {
        let def = self.catalog.counting.limit(name)?.clone();
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

fn shown_season(def: &BoardDef, key: &BoardKey) -> Option<Timestamp> {
    def.season.as_ref().map(|_| key.season)
}

fn as_sketch(row: Option<&Row>) -> Option<&Sketch> {
    if let Some(Row::Unique(sketch)) = row { Some(sketch) } else { None }
}

fn as_score((key, row): (Key, Row)) -> Option<(SubjectId, Score)> {
    match (key, row) {
        (Key::Score(key), Row::Score(score)) => Some((key.member, score)),
        _ => None,
    }
}
