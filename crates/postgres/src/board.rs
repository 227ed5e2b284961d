//! Pages of a board: by place, which is a lookup in its index, or by rank, which the tree finds first.

use tally_core::SubjectId;
use tally_core::rows::{BoardKey, Key, Row, RowKind, Score};
use tally_engine::{BoardFrom, StoreError};

use crate::Postgres;
use crate::tree;

/// The board of parameters 2 to 4, and the place of its members.
const ON_IT: &str = "t.board = $2 AND t.season = $3 AND t.levels = $4 AND (~t.score, t.reached_us, t.member)";
const IN_ORDER: &str = "ORDER BY ~t.score, t.reached_us, t.member";

impl Postgres {
    pub(crate) async fn board_page(
        &self,
        board: &BoardKey,
        from: &BoardFrom,
        limit: i64,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        match from {
            BoardFrom::Rank(rank) => {
                let rank = i64::try_from(*rank).unwrap_or(i64::MAX);
                self.page_of_rank(board, rank, limit).await
            }
            BoardFrom::Behind(member, score) => {
                let condition = format!("{ON_IT} > ($5, $6, $7) {IN_ORDER} LIMIT $1");
                self.page_at(board, &condition, member, *score, limit).await
            }
            BoardFrom::Ahead(member, score) => {
                let upwards = "ORDER BY ~t.score DESC, t.reached_us DESC, t.member DESC";
                let condition = format!("{ON_IT} < ($5, $6, $7) {upwards} LIMIT $1");
                self.page_at(board, &condition, member, *score, limit).await
            }
        }
    }

    async fn page_at(
        &self,
        board: &BoardKey,
        condition: &str,
        member: &SubjectId,
        score: Score,
        limit: i64,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let (name, season, (down, reached)) = (board.board.as_str(), tree::season(board), tree::place(score));
        let member = member.as_str();
        self.rows_where(RowKind::Score, condition, &[&limit, &name, &season, &board.levels, &down, &reached, &member])
            .await
    }

    /// One statement, so that the tree and the rows are of one moment. What is skipped is less than a node.
    async fn page_of_rank(&self, board: &BoardKey, rank: i64, limit: i64) -> Result<Vec<(Key, Row)>, StoreError> {
        let (name, season) = (board.board.as_str(), tree::season(board));
        let condition = format!(
            "{ON_IT} >= ((SELECT down FROM node), (SELECT reached_us FROM node), '')
             {IN_ORDER} LIMIT $1 OFFSET (SELECT skipped FROM node)"
        );
        let with = format!("WITH node (down, reached_us, skipped) AS ({})", tree::node_of_rank());
        self.rows_with(&with, RowKind::Score, &condition, &[&limit, &name, &season, &board.levels, &rank]).await
    }
}
