//! Reading boards: pages, ranks, neighbours, seasons.

use tally_core::board;
use tally_core::catalog::{BoardDef, Ties};
use tally_core::limits::{AROUND_MAX, PAGE_ITEMS_MAX};
use tally_core::query::{BoardAnswer, BoardItem, SeasonItem, SeasonsAnswer, StandingAnswer};
use tally_core::rows::{BoardKey, Key, Row, Score, ScoreKey, Standing};
use tally_core::view::Wants;
use tally_core::{BoardCursor, Name, Refusal, SubjectId, Timestamp};
use tally_engine::{Engine, OrderFrom, Range};

use super::{Reader, TRIES_MAX};
use crate::Error;

/// Where a page of a board begins.
enum Begin {
    /// With the member before whom so many stand.
    Rank(u64),
    /// Right behind where a member stands, or would.
    Behind(SubjectId, Score),
}

impl Begin {
    fn on(&self, board: &BoardKey) -> OrderFrom {
        match self {
            Self::Rank(rank) => OrderFrom::Rank(*rank),
            Self::Behind(member, score) => OrderFrom::Behind(score_key(board, member).place(*score)),
        }
    }
}

fn score_key(board: &BoardKey, member: &SubjectId) -> ScoreKey {
    ScoreKey { board: board.clone(), member: member.clone() }
}

impl<E: Engine> Reader<'_, E> {
    async fn board_of(&self, name: &Name, season: Option<Timestamp>) -> Result<(&BoardDef, BoardKey), Error> {
        let def = self.catalog.board(name)?;
        let now = match (&def.season, season) {
            (Some(_), None) => self.store_time().await?,
            _ => self.now,
        };
        let now = board::board_key(def, now);
        match season {
            Some(_) if def.season.is_none() => Err(Refusal::bad_request(format!("`{name}` has no seasons")).into()),
            Some(season) => Ok((def, BoardKey { season, ..now })),
            None => Ok((def, now)),
        }
    }

    pub(super) async fn board(
        &self,
        name: &Name,
        season: Option<Timestamp>,
        rank: Option<u64>,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<BoardAnswer, Error> {
        let (def, key) = self.board_of(name, season).await?;
        if limit == 0 || limit > PAGE_ITEMS_MAX {
            return Err(Refusal::bad_request(format!("limit is 1 to {PAGE_ITEMS_MAX}")).into());
        }
        let from = match (rank, cursor) {
            (Some(_), Some(_)) => return Err(Refusal::bad_request("take either rank or cursor").into()),
            (Some(0), _) => return Err(Refusal::bad_request("ranks begin with 1").into()),
            (Some(rank), None) => Begin::Rank(rank - 1),
            (None, Some(text)) => {
                let last = BoardCursor::decode(text, &key)?;
                Begin::Behind(last.member, last.score)
            }
            (None, None) => Begin::Rank(0),
        };
        for _ in 0..TRIES_MAX {
            let page =
                self.scan(&Range::Order { order: key.clone().into(), from: from.on(&key) }, limit as usize).await?;
            let rows: Vec<(SubjectId, Score)> = page.items.into_iter().filter_map(as_score).collect();
            let last = rows.last().filter(|_| page.more);
            let cursor = last.map(|(member, score)| BoardCursor { member: member.clone(), score: *score }.encode(&key));
            if let Some((items, members)) = self.ranked(def, &key, rows, Some(&from), Some(page.more)).await? {
                return Ok(BoardAnswer { season: shown_season(def, &key), members, items, next_cursor: cursor });
            }
        }
        Err(Error::Overloaded)
    }

    /// Gives each its rank, from that of the first; and says how many members there are. All of it is loaded once more, at one
    /// moment: nothing if somebody has moved since, or came in between, or if they do not follow `from` any more, or if it is not
    /// so that there are `more` behind them, where that is known.
    async fn ranked(
        &self,
        def: &BoardDef,
        board: &BoardKey,
        shown: Vec<(SubjectId, Score)>,
        from: Option<&Begin>,
        more: Option<bool>,
    ) -> Result<Option<(Vec<BoardItem>, u64)>, Error> {
        let key = |member: &SubjectId| score_key(board, member);
        let place = |(member, score): &(SubjectId, Score)| key(member).standing(*score);
        let behind = match from {
            Some(Begin::Behind(member, score)) => Some((member.clone(), *score)),
            Some(Begin::Rank(_)) | None => None,
        };
        let all = Standing::end(board.clone().into());
        let mut ranks = vec![all];
        ranks.extend(behind.iter().map(place));
        let first = shown.first().map(|first| {
            let (standing, more) = board::rank_standing(def.ties, &key(&first.0), first.1);
            ranks.extend([standing, place(first)]);
            more
        });
        ranks.extend(shown.last().map(place));
        let listed = behind.iter().chain(&shown).map(|(member, _)| Key::Score(key(member)));
        let listed = listed.chain([Key::Board(def.name.clone())]);
        let mut loaded = self.load(&Wants { rows: listed.collect(), ranks, ..Wants::default() }).await?;
        let known = loaded.rows.pop().flatten();
        let (mut found, mut counts) = (loaded.rows.into_iter(), loaded.ranks.into_iter());
        let mut count = || counts.next().unwrap_or(0);
        let members = count();
        let begins = match (&behind, from) {
            (Some((_, score)), _) => {
                let is_there = found.next().flatten() == Some(Row::Score(*score));
                Some(count() + u64::from(is_there))
            }
            (None, Some(Begin::Rank(rank))) => Some(*rank),
            (None, Some(Begin::Behind(..)) | None) => None,
        };
        let Some(from_zero) = first else {
            return Ok(begins.is_none_or(|begins| members <= begins).then_some((Vec::new(), members)));
        };
        if let Some(Row::Board(known)) = &known {
            board::check_ties(def, Some(known))?;
        }
        let (before, place, last_place) = (count(), count(), count());
        let stand = shown.iter().zip(found).all(|((_, score), row)| row == Some(Row::Score(*score)));
        let follow = last_place.checked_sub(place) == Some(shown.len() as u64 - 1);
        let ends = more.is_none_or(|more| more == (last_place + 1 < members));
        if !stand || !follow || !ends || begins.is_some_and(|begins| begins != place) {
            return Ok(None);
        }
        let (mut rank, mut last) = (before + from_zero, None);
        let ranked = shown.into_iter().enumerate().map(|(index, (member, score))| {
            let moved = last.is_some_and(|last| last != score.score);
            rank = match def.ties {
                Ties::FirstToReach => before + from_zero + index as u64,
                Ties::Shared if moved => place + 1 + index as u64,
                Ties::Dense if moved => rank + 1,
                Ties::Shared | Ties::Dense => rank,
            };
            last = Some(score.score);
            BoardItem { member, score: score.score, rank }
        });
        Ok(Some((ranked.collect(), members)))
    }

    pub(super) async fn standing(
        &self,
        name: &Name,
        season: Option<Timestamp>,
        member: SubjectId,
        around: u32,
    ) -> Result<StandingAnswer, Error> {
        let (def, board) = self.board_of(name, season).await?;
        if around > AROUND_MAX {
            return Err(Refusal::bad_request(format!("around is at most {AROUND_MAX}")).into());
        }
        let season = shown_season(def, &board);
        let key = Key::Score(score_key(&board, &member));
        let all = Standing::end(board.clone().into());
        let wants = Wants { rows: vec![key], ranks: vec![all], ..Wants::default() };
        for _ in 0..TRIES_MAX {
            let loaded = self.load(&wants).await?;
            let Some(Some(Row::Score(score))) = loaded.rows.first() else {
                let members = loaded.ranks.first().copied().unwrap_or(0);
                return Ok(StandingAnswer { member, score: None, rank: None, season, members, around: None });
            };
            let score = *score;
            let [mut rows, behind] = self.neighbours(&board, &member, score, around).await?;
            let place = rows.len();
            // Where there are fewer than asked for, there are no more.
            let from = (place < around as usize).then_some(Begin::Rank(0));
            let more = (behind.len() < around as usize).then_some(false);
            rows.push((member.clone(), score));
            rows.extend(behind);
            let Some((items, members)) = self.ranked(def, &board, rows, from.as_ref(), more).await? else { continue };
            let rank = items.get(place).map(|item| item.rank);
            let around = (around > 0).then_some(items);
            return Ok(StandingAnswer { member, score: Some(score.score), rank, season, members, around });
        }
        Err(Error::Overloaded)
    }

    /// Who stands right ahead of a member, and who right behind it.
    async fn neighbours(
        &self,
        board: &BoardKey,
        member: &SubjectId,
        score: Score,
        around: u32,
    ) -> Result<[Vec<(SubjectId, Score)>; 2], Error> {
        if around == 0 {
            return Ok([Vec::new(), Vec::new()]);
        }
        let page = |from| async move {
            let page = self.scan(&Range::Order { order: board.clone().into(), from }, around as usize).await?;
            Ok::<Vec<(SubjectId, Score)>, Error>(page.items.into_iter().filter_map(as_score).collect())
        };
        let place = score_key(board, member).place(score);
        let mut ahead = page(OrderFrom::Ahead(place.clone())).await?;
        ahead.reverse();
        Ok([ahead, page(OrderFrom::Behind(place)).await?])
    }

    pub(super) async fn seasons(&self, name: &Name) -> Result<SeasonsAnswer, Error> {
        let def = self.catalog.board(name)?.clone();
        let Some(schedule) = &def.season else {
            return Err(Refusal::bad_request(format!("`{name}` has no seasons")).into());
        };
        let seasons = match self.row(Key::Board(name.clone())).await? {
            Some(Row::Board(board)) => board.seasons,
            _ => Vec::new(),
        };
        let now = self.store_time().await?;
        let items = seasons.into_iter().rev().map(|season| {
            let ends_at = schedule.next(season);
            SeasonItem { season, ends_at, closed: ends_at.is_some_and(|end| end <= now) }
        });
        Ok(SeasonsAnswer { items: items.collect() })
    }
}

fn shown_season(def: &BoardDef, key: &BoardKey) -> Option<Timestamp> {
    def.season.as_ref().map(|_| key.season)
}

fn as_score((key, row): (Key, Row)) -> Option<(SubjectId, Score)> {
    match (key, row) {
        (Key::Score(key), Row::Score(score)) => Some((key.member, score)),
        _ => None,
    }
}
