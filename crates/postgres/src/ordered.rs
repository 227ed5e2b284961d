//! The trees of boards against the scores under them, and a tree made anew.
//!
//! Scores are read in the order of their boards, and nodes beside them: each node must have as many members as there are scores from
//! where it begins up to the next one of its height, and must begin where a lower one does.

use tally_core::Name;
use tally_core::rows::BoardKey;
use tally_engine::{Finding, StoreError};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Transaction};

use crate::Postgres;
use crate::audit::{Tell, unreadable};
use crate::cut::cut;
use crate::error::unavailable;
use crate::fence::{self, Fences};
use crate::time::At;
use crate::tree::{self, TOP};

/// Scores and nodes that are held at once.
const ROWS_AT_ONCE: i32 = 5_000;

/// Read from the index that has this order.
const SCORES: &str = "
SELECT board, season, levels, ~score, reached_us FROM score ORDER BY board, season, levels, ~score, reached_us";

/// The lower ones first, so that the upper ones find that they begin where those do.
const NODES: &str = "
SELECT board, season, levels, down, reached_us, height, n FROM score_node
ORDER BY board, season, levels, down, reached_us, height";

const CLEAR: &str = "DELETE FROM score_node WHERE board = $1 AND season = $2 AND levels = $3";

/// A board as it is stored, in the order of the index.
type OfBoard = (String, u64, bool);
/// A place on it.
type Place = (i64, i64);

/// Rows of a portal, one by one.
struct Reading<'a> {
    transaction: &'a Transaction<'a>,
    portal: tokio_postgres::Portal,
    page: std::vec::IntoIter<Row>,
    next: Option<Row>,
    ended: bool,
}

impl<'a> Reading<'a> {
    async fn start(transaction: &'a Transaction<'a>, sql: &str) -> Result<Self, Error> {
        let statement = transaction.prepare(sql).await?;
        let portal = transaction.bind(&statement, &[]).await?;
        let mut reading = Self { transaction, portal, page: Vec::new().into_iter(), next: None, ended: false };
        reading.step().await?;
        Ok(reading)
    }

    async fn step(&mut self) -> Result<Option<Row>, Error> {
        if self.page.len() == 0 && !self.ended {
            let rows = self.transaction.query_portal(&self.portal, ROWS_AT_ONCE).await?;
            self.ended = rows.len() < ROWS_AT_ONCE as usize;
            self.page = rows.into_iter();
        }
        Ok(std::mem::replace(&mut self.next, self.page.next()))
    }

    fn place(&self) -> Option<(OfBoard, Place)> {
        self.next.as_ref().map(|row| {
            let season: At = row.get(1);
            ((row.get(0), season.0.0, row.get(2)), (row.get(3), row.get(4)))
        })
    }
}

/// A node that has begun.
#[derive(Clone, Copy, Default)]
struct Open {
    said: i64,
    counted: i64,
    begins: Option<Place>,
}

/// The tree of one board.
#[derive(Default)]
struct Tree {
    heights: [Open; TOP as usize + 1],
    wrong: Option<String>,
}

impl Tree {
    fn node(&mut self, height: i16, place: Place, said: i64) {
        let Some(at) = usize::try_from(height).ok().filter(|at| *at < self.heights.len()) else {
            return self.is_wrong(format!("a node has the height {height}"));
        };
        self.close(at);
        if at > 0 && self.heights[at - 1].begins != Some(place) {
            self.is_wrong(format!("a node of height {height} begins where no lower one does"));
        }
        self.heights[at] = Open { said, counted: 0, begins: Some(place) };
    }

    fn score(&mut self) {
        if self.heights.iter().any(|open| open.begins.is_none()) {
            self.is_wrong("a score is in no node".into());
        }
        self.heights.iter_mut().for_each(|open| open.counted += 1);
    }

    fn close(&mut self, height: usize) {
        let Open { said, counted, begins } = self.heights[height];
        if begins.is_some() && said != counted {
            self.is_wrong(format!("a node of height {height} says that it has {said} members, and has {counted}"));
        }
    }

    fn is_wrong(&mut self, why: String) {
        self.wrong.get_or_insert(why);
    }

    /// What is wrong with it, if anything is.
    fn end(mut self) -> Option<String> {
        (0..self.heights.len()).for_each(|height| self.close(height));
        self.wrong
    }
}

/// Compares every tree with its scores, in the snapshot of the audit.
pub(crate) async fn orders(transaction: &Transaction<'_>, tell: Tell<'_>) -> Result<(), Error> {
    let (mut scores, mut nodes) =
        (Reading::start(transaction, SCORES).await?, Reading::start(transaction, NODES).await?);
    let (mut board, mut tree): (Option<OfBoard>, Tree) = (None, Tree::default());
    loop {
        let (score, node) = (scores.place(), nodes.place());
        // Whoever stands where a node begins is in it.
        let is_node = match (&score, &node) {
            (Some(score), Some(node)) => node <= score,
            (score, _) => score.is_none(),
        };
        let next = if is_node { node } else { score };
        if board.is_some() && board.as_ref() != next.as_ref().map(|(board, _)| board) {
            end(board.take(), std::mem::take(&mut tree), tell);
        }
        let Some((of, place)) = next else { return Ok(()) };
        board.get_or_insert(of);
        if is_node {
            if let Some(row) = nodes.step().await? {
                tree.node(row.get(5), place, row.get(6));
            }
        } else {
            scores.step().await?;
            tree.score();
        }
    }
}

fn end(board: Option<OfBoard>, tree: Tree, tell: Tell<'_>) {
    let (Some((name, season, levels)), Some(why)) = (board, tree.end()) else { return };
    match Name::new(&name) {
        Ok(board) => {
            let board = BoardKey { board, season: tally_core::time::Stamp(season).time(), levels };
            let found = format!("the tree of a board does not agree with its scores: {board:?}: {why}");
            tell(Finding::Order { found, board });
        }
        Err(_) => unreadable(tell, "score_node or score", &[&name]),
    }
}

impl Postgres {
    /// Makes the tree of a board anew, while nobody adds to it.
    pub(crate) async fn mend_order(&self, board: &BoardKey) -> Result<bool, StoreError> {
        let mut fences = Fences::default();
        fences.cut(board.board.as_str());
        let (space, split) = (self.lock_space(), fences.split());
        let (name, season) = (board.board.as_str(), tree::season(board));
        let (first, end): (Place, Place) = ((i64::MIN, -1), (i64::MAX, i64::MAX));
        let of: [&(dyn ToSql + Sync); 3] = [&name, &season, &board.levels];
        let whole: [&(dyn ToSql + Sync); 4] = [&first.0, &first.1, &end.0, &end.1];
        let mut connection = self.connector().connect(Box::new(|_| {})).await?;
        let mending = async {
            let transaction = connection.client.transaction().await?;
            transaction.query(fence::TAKE, &fence::values(&space, &split)).await?;
            transaction.execute(CLEAR, &of).await?;
            let roots: [&(dyn ToSql + Sync); 3] = [&vec![name], &vec![season], &vec![board.levels]];
            transaction.query(&tree::put_roots(), &roots).await?;
            for height in 0..=TOP {
                let values: Vec<_> = of.into_iter().chain(whole).collect();
                transaction.execute(&cut(height), &values).await?;
            }
            transaction.commit().await
        };
        mending.await.map(|()| true).map_err(|error: Error| unavailable(&error))
    }
}
