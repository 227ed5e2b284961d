//! Reading boards: pages, ranks, neighbours, seasons.

use tally_core::catalog::{BoardDef, Ties};
use tally_core::limits::{AROUND_MAX, PAGE_ITEMS_MAX, SCORE_MAX};
use tally_core::query::{BoardAnswer, BoardItem, SeasonItem, SeasonsAnswer, StandingAnswer};
use tally_core::rows::{Among, BoardKey, Key, Row, Score, ScoreKey, Standing};
use tally_core::rules::board;
use tally_core::view::Wants;
use tally_core::{BoardCursor, Name, Refusal, SubjectId, Timestamp};
use tally_engine::{BoardFrom, Engine, Range};

use super::Reader;
use crate::Error;

impl<E: Engine> Reader<'_, E> {
    async fn board_of(&self, name: &Name, season: Option<Timestamp>) -> Result<(&BoardDef, BoardKey), Error> {
        let def = self.catalog.counting.board(name)?;
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

    pub(super) async fn seasons(&self, name: &Name) -> Result<SeasonsAnswer, Error> {
        let def = self.catalog.counting.board(name)?.clone();
        let Some(schedule) = &def.season else {
            return Err(Refusal::bad_request(format!("`{name}` has no seasons")).into());
        };
        let seasons = match self.row(Key::Board(name.clone())).await? {
            Some(Row::Board(seasons)) => seasons,
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
