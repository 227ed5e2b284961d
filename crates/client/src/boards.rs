//! Boards: who leads? A season that is left out is the one of now.

use serde_json::json;
use tally_core::command::{ChangeScore, ScoreChange};
use tally_core::query::{BoardAnswer, BoardQuery, SeasonsAnswer, SeasonsQuery, StandingAnswer, StandingQuery};
use tally_core::reply::ScoreReply;
use tally_core::{Name, SubjectId, Timestamp};

use crate::request::requests;
use crate::{Call, Client};

/// Which page of a board.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoardPage {
    /// Members on it. Default: the server's.
    pub limit: Option<u32>,
    /// The rank that it begins with. Default: the first.
    pub rank: Option<u64>,
    /// When the season began. Default: the one of now.
    pub season: Option<Timestamp>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl Client {
    /// Adds to a member's score, sets it, or takes the member off the board.
    pub fn score(&self, board: &Name, member: &SubjectId, change: ScoreChange) -> Call<ScoreReply> {
        let path = ["v1", "boards", board.as_str(), member.as_str()];
        match change {
            ScoreChange::By(by) => self.post(&path).json(&json!({"by": by})),
            ScoreChange::To(score) => self.put(&path).json(&json!({"score": score})),
            ScoreChange::Leave => self.delete(&path),
        }
    }

    /// A page of a board, the best first.
    pub fn board(&self, board: &Name, page: &BoardPage) -> Call<BoardAnswer> {
        let query = [
            ("limit", page.limit.map(|limit| limit.to_string())),
            ("rank", page.rank.map(|rank| rank.to_string())),
            ("season", page.season.map(|season| season.to_string())),
            ("cursor", page.cursor.clone()),
        ];
        self.get_with(&["v1", "boards", board.as_str()], &query)
    }

    /// Where a member stands, with so many around it.
    pub fn standing(
        &self,
        board: &Name,
        member: &SubjectId,
        around: u32,
        season: Option<Timestamp>,
    ) -> Call<StandingAnswer> {
        let query = [("around", Some(around.to_string())), ("season", season.map(|season| season.to_string()))];
        self.get_with(&["v1", "boards", board.as_str(), member.as_str()], &query)
    }

    /// The seasons that a board has had.
    pub fn seasons(&self, board: &Name) -> Call<SeasonsAnswer> {
        self.get(&["v1", "seasons", board.as_str()])
    }
}

requests! {
    ChangeScore => ScoreReply: |ask, client| client.score(&ask.board, &ask.member, ask.change);
    BoardQuery => BoardAnswer: |ask, client| {
        let BoardQuery { board, season, rank, limit, cursor } = ask;
        let page = BoardPage { limit: Some(*limit), rank: *rank, season: *season, cursor: cursor.clone() };
        client.board(board, &page)
    };
    StandingQuery => StandingAnswer: |ask, client| client.standing(&ask.board, &ask.member, ask.around, ask.season);
    SeasonsQuery => SeasonsAnswer: |ask, client| client.seasons(&ask.board);
}
