//! Members of a board in order, with their ranks: a page, or the neighbours of one.

use super::read::{BoardAnswer, BoardItem, BoardQuery, StandingAnswer, StandingQuery};
use super::{BoardDef, Ties, board_key, check_ties, rank_standing};
use crate::cursor::BoardCursor;
use crate::error::Refusal;
use crate::id::{Name, SubjectId};
use crate::limits::{AROUND_MAX, PAGE_ITEMS_MAX};
use crate::range::{OrderFrom, Range};
use crate::read::{Halt, Page, Sight, TRIES_MAX};
use crate::rows::{BoardKey, Key, Row, Score, ScoreKey, Standing};
use crate::time::Timestamp;
use crate::view::Wants;

type Member = (SubjectId, Score);

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

/// A page of a board, the best first.
pub(super) fn page(query: &BoardQuery, sight: &mut Sight<'_>) -> Result<BoardAnswer, Halt> {
    let (def, key) = board_of(&query.board, query.season, sight)?;
    let limit = query.limit;
    if limit == 0 || limit > PAGE_ITEMS_MAX {
        return Err(Refusal::bad_request(format!("limit is 1 to {PAGE_ITEMS_MAX}")).into());
    }
    let from = match (query.rank, query.cursor.as_deref()) {
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
        let page = sight.scan(|| Range::Order { order: key.clone().into(), from: from.on(&key) }, limit as usize)?;
        let rows = members(&page);
        let last = rows.last().filter(|_| page.more);
        let next_cursor =
            last.map(|(member, score)| BoardCursor { member: member.clone(), score: *score }.encode(&key));
        if let Some((items, members)) = ranked(def, &key, rows, Some(&from), Some(page.more), sight)? {
            return Ok(BoardAnswer { season: shown_season(def, &key), members, items, next_cursor });
        }
    }
    Err(Halt::Moving)
}

/// Where a member stands, and next to whom.
pub(super) fn standing(query: &StandingQuery, sight: &mut Sight<'_>) -> Result<StandingAnswer, Halt> {
    let (def, board) = board_of(&query.board, query.season, sight)?;
    let (member, around) = (query.member.clone(), query.around);
    if around > AROUND_MAX {
        return Err(Refusal::bad_request(format!("around is at most {AROUND_MAX}")).into());
    }
    let season = shown_season(def, &board);
    for _ in 0..TRIES_MAX {
        let found = sight.load(|| {
            let key = Key::Score(score_key(&board, &member));
            Wants { rows: vec![key], ranks: vec![Standing::end(board.clone().into())], ..Wants::default() }
        })?;
        let Some(score) = found.rows.first().and_then(|row| row.as_ref()?.score()).copied() else {
            let members = found.ranks.first().copied().unwrap_or(0);
            return Ok(StandingAnswer { member, score: None, rank: None, season, members, around: None });
        };
        let [mut rows, behind] = neighbours(&board, &member, score, around, sight)?;
        let place = rows.len();
        // Where there are fewer than asked for, there are no more.
        let from = (place < around as usize).then_some(Begin::Rank(0));
        let more = (behind.len() < around as usize).then_some(false);
        rows.push((member.clone(), score));
        rows.extend(behind);
        let Some((items, members)) = ranked(def, &board, rows, from.as_ref(), more, sight)? else { continue };
        let rank = items.get(place).map(|item| item.rank);
        let around = (around > 0).then_some(items);
        return Ok(StandingAnswer { member, score: Some(score.score), rank, season, members, around });
    }
    Err(Halt::Moving)
}

fn board_of<'a>(
    name: &Name,
    season: Option<Timestamp>,
    sight: &mut Sight<'a>,
) -> Result<(&'a BoardDef, BoardKey), Halt> {
    let def = &**sight.catalog.board(name)?;
    let now = match (&def.season, season) {
        (Some(_), None) => sight.store_time()?,
        (Some(_), Some(_)) | (None, _) => sight.now,
    };
    let now = board_key(def, now);
    match season {
        Some(_) if def.season.is_none() => Err(Refusal::bad_request(format!("`{name}` has no seasons")).into()),
        Some(season) => Ok((def, BoardKey { season, ..now })),
        None => Ok((def, now)),
    }
}

/// Gives each its rank, from that of the first; and says how many members there are. All of it is loaded once more, at one
/// moment: nothing if somebody has moved since, or came in between, or if they do not follow `from` any more, or if it is not
/// so that there are `more` behind them, where that is known.
fn ranked(
    def: &BoardDef,
    board: &BoardKey,
    shown: Vec<Member>,
    from: Option<&Begin>,
    more: Option<bool>,
    sight: &mut Sight<'_>,
) -> Result<Option<(Vec<BoardItem>, u64)>, Halt> {
    let key = |member: &SubjectId| score_key(board, member);
    let place = |(member, score): &Member| key(member).standing(*score);
    let behind = match from {
        Some(Begin::Behind(member, score)) => Some((member.clone(), *score)),
        Some(Begin::Rank(_)) | None => None,
    };
    let first = shown.first().map(|first| rank_standing(def.ties, &key(&first.0), first.1));
    let found = sight.load(|| {
        let mut ranks = vec![Standing::end(board.clone().into())];
        ranks.extend(behind.iter().map(place));
        if let (Some((standing, _)), Some(leader)) = (&first, shown.first()) {
            ranks.extend([standing.clone(), place(leader)]);
        }
        ranks.extend(shown.last().map(place));
        let listed = behind.iter().chain(&shown).map(|(member, _)| Key::Score(key(member)));
        let rows = listed.chain([Key::Board(def.name.clone())]).collect();
        Wants { rows, ranks, ..Wants::default() }
    })?;
    let (known, listed) = match found.rows.split_last() {
        Some((known, listed)) => (known.as_ref().and_then(Row::board), listed),
        None => return Ok(None),
    };
    let (mut listed, mut counts) = (listed.iter(), found.ranks.iter().copied());
    let mut count = || counts.next().unwrap_or(0);
    let members = count();
    let begins = match (&behind, from) {
        (Some((_, score)), _) => {
            let is_there = listed.next().is_some_and(|row| *row == Some(Row::Score(*score)));
            Some(count() + u64::from(is_there))
        }
        (None, Some(Begin::Rank(rank))) => Some(*rank),
        (None, Some(Begin::Behind(..)) | None) => None,
    };
    let Some((_, from_zero)) = first else {
        return Ok(begins.is_none_or(|begins| members <= begins).then_some((Vec::new(), members)));
    };
    if known.is_some() {
        check_ties(def, known)?;
    }
    let (before, place, last_place) = (count(), count(), count());
    let stand = shown.iter().zip(listed).all(|((_, score), row)| *row == Some(Row::Score(*score)));
    let follow = last_place.checked_sub(place) == Some(shown.len() as u64 - 1);
    let ends = more.is_none_or(|more| more == (last_place + 1 < members));
    if !stand || !follow || !ends || begins.is_some_and(|begins| begins != place) {
        return Ok(None);
    }
    Ok(Some((items(def.ties, shown, before + from_zero, place), members)))
}

/// Each with its rank: from the first one's on, and from its place.
fn items(ties: Ties, shown: Vec<Member>, first: u64, place: u64) -> Vec<BoardItem> {
    let (mut rank, mut last) = (first, None);
    let ranked = shown.into_iter().enumerate().map(|(index, (member, score))| {
        let moved = last.is_some_and(|last| last != score.score);
        rank = match ties {
            Ties::FirstToReach => first + index as u64,
            Ties::Shared if moved => place + 1 + index as u64,
            Ties::Dense if moved => rank + 1,
            Ties::Shared | Ties::Dense => rank,
        };
        last = Some(score.score);
        BoardItem { member, score: score.score, rank }
    });
    ranked.collect()
}

/// Who stands right ahead of a member, and who right behind it.
fn neighbours(
    board: &BoardKey,
    member: &SubjectId,
    score: Score,
    around: u32,
    sight: &mut Sight<'_>,
) -> Result<[Vec<Member>; 2], Halt> {
    if around == 0 {
        return Ok([Vec::new(), Vec::new()]);
    }
    let mut page = |from| {
        let page = sight.scan(|| Range::Order { order: board.clone().into(), from }, around as usize)?;
        Ok::<Vec<Member>, Halt>(members(&page))
    };
    let place = score_key(board, member).place(score);
    let mut ahead = page(OrderFrom::Ahead(place.clone()))?;
    ahead.reverse();
    Ok([ahead, page(OrderFrom::Behind(place))?])
}

fn shown_season(def: &BoardDef, key: &BoardKey) -> Option<Timestamp> {
    def.season.as_ref().map(|_| key.season)
}

fn members(page: &Page) -> Vec<Member> {
    let member = |(key, row): &(Key, Row)| {
        let (Key::Score(key), Row::Score(score)) = (key, row) else { return None };
        Some((key.member.clone(), *score))
    };
    page.items.iter().filter_map(member).collect()
}
