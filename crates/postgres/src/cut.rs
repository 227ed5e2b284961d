//! Nodes of a board's tree are cut and joined behind the answer, while nobody adds to the tree.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tally_engine::StoreError;
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::Postgres;
use crate::error::unavailable;
use crate::fence::{self, Fences};
use crate::time::At;
use crate::tree::{END, NODE_HALF, NODE_MAX, PLACE, TOP, at, on};

/// Cuts what lies between two places into nodes of a height: new ones, and the first as it is then.
pub(crate) fn cut(height: i16) -> String {
    let from = match height {
        0 => "score s WHERE true".to_owned(),
        _ => format!("score_node s WHERE s.height = {}", height - 1),
    };
    // Members that share a place stay together: two servers may have used one stamp.
    let (down, n, place) = match height {
        0 => ("~s.score", "count(*)", PLACE.to_owned()),
        _ => ("s.down", "sum(s.n)", at("s")),
    };
    format!(
        "WITH inside AS (
             SELECT {down} AS down, s.reached_us, {n} AS n
             FROM {from} AND s.board = $1 AND s.season = $2 AND s.levels = $3
               AND {place} >= ($4::int8, $5::int8) AND {place} < ($6::int8, $7::int8) GROUP BY 1, 2),
         pieces AS (
             SELECT i.down, i.reached_us, i.n, (row_number() OVER places - 1) / {NODE_HALF} AS piece,
                    (row_number() OVER places - 1) % {NODE_HALF} AS place
             FROM inside i WINDOW places AS (ORDER BY i.down, i.reached_us)),
         sums AS (SELECT piece, sum(n)::int8 AS n FROM pieces GROUP BY piece),
         first AS (
             UPDATE score_node t SET n = coalesce((SELECT n FROM sums WHERE piece = 0), 0)
             WHERE t.board = $1 AND t.season = $2 AND t.levels = $3 AND t.height = {height}
               AND t.down = $4 AND t.reached_us = $5)
         INSERT INTO score_node (board, season, levels, height, down, reached_us, n)
         SELECT $1, $2, $3, {height}, p.down, p.reached_us, s.n
         FROM pieces p JOIN sums s USING (piece) WHERE p.place = 0 AND p.piece > 0"
    )
}

/// The node of a height at or before a place, where the next one begins, and how many members or nodes it has.
fn around(height: i16) -> String {
    let inside = match height {
        0 => "t.n".to_owned(),
        _ => format!(
            "(SELECT count(*) FROM score_node s WHERE {} AND s.height = {} AND {} >= {} AND {} < (next.down, next.reached))",
            on("s", "t"),
            height - 1,
            at("s"),
            at("t"),
            at("s")
        ),
    };
    format!(
        "SELECT t.down, t.reached_us, next.down, next.reached, {inside}
         FROM (SELECT * FROM score_node t WHERE t.board = $1 AND t.season = $2 AND t.levels = $3 AND t.height = {height}
                 AND {at_t} <= ($4, $5)
               ORDER BY t.down DESC, t.reached_us DESC LIMIT 1) AS t
         CROSS JOIN LATERAL (
             SELECT coalesce(min(n.down), {END}) AS down, coalesce(min(n.reached_us), {END}) AS reached
             FROM (SELECT * FROM score_node n WHERE {on} AND n.height = t.height AND {at_n} > {at_t}
                   ORDER BY n.down, n.reached_us LIMIT 1) AS n) AS next",
        at_t = at("t"),
        at_n = at("n"),
        on = on("n", "t"),
    )
}

/// Joins an empty node to the one before, unless a node of the upper height begins with it.
const JOIN: &str = "
DELETE FROM score_node t WHERE t.board = $1 AND t.season = $2 AND t.levels = $3 AND t.height = 0
  AND t.down = $4 AND t.reached_us = $5 AND t.n = 0
  AND NOT EXISTS (SELECT FROM score_node u WHERE u.board = t.board AND u.season = t.season AND u.levels = t.levels
      AND u.height = 1 AND u.down = t.down AND u.reached_us = t.reached_us)";

/// A node that is to be cut or joined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    pub(crate) board: String,
    season: At,
    levels: bool,
    down: i64,
    reached: i64,
}

impl Node {
    /// From the answer of [`add_to_nodes`].
    pub(crate) fn read(row: &tokio_postgres::Row) -> Vec<Self> {
        let Some(boards) = row.get::<_, Option<Vec<String>>>(0) else { return Vec::new() };
        let (seasons, levels): (Vec<At>, Vec<bool>) = (row.get(1), row.get(2));
        let (down, reached): (Vec<i64>, Vec<i64>) = (row.get(3), row.get(4));
        let nodes = boards.into_iter().zip(seasons).zip(levels).zip(down.into_iter().zip(reached));
        nodes
            .map(|(((board, season), levels), (down, reached))| Self { board, season, levels, down, reached })
            .collect()
    }

    fn values(&self) -> [&(dyn ToSql + Sync); 5] {
        [&self.board, &self.season, &self.levels, &self.down, &self.reached]
    }
}

/// Boards whose trees this server is tending.
#[derive(Default)]
pub(crate) struct Tended(Mutex<HashSet<String>>);

impl Tended {
    fn with<T>(&self, change: impl FnOnce(&mut HashSet<String>) -> T) -> T {
        // A set of names; whatever a panic left is as good as any.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Postgres {
    /// Cuts and joins nodes behind the answer, for one board at a time. What is not tended now is seen again by the next
    /// commit that adds to it.
    pub(crate) fn tend(&self, nodes: Vec<Node>) {
        let Some(board) = nodes.first().map(|node| node.board.clone()) else { return };
        if !self.tended.with(|boards| boards.insert(board.clone())) {
            return;
        }
        let store = self.clone();
        tokio::spawn(async move {
            if let Err(error) = store.tend_now(&board, &nodes).await {
                tracing::warn!(%error, board, "a board's tree could not be tended; it is tried again");
            }
            store.tended.with(|boards| boards.remove(&board));
        });
    }

    async fn tend_now(&self, board: &str, nodes: &[Node]) -> Result<(), StoreError> {
        let mut fences = Fences::default();
        fences.cut(board);
        let (space, split) = (self.lock_space(), fences.split());
        let mut connection = self.connector().connect(Box::new(|_| {})).await?;
        let tending = async {
            let transaction = connection.client.transaction().await?;
            transaction.query(fence::TAKE, &fence::values(&space, &split)).await?;
            for node in nodes.iter().filter(|node| node.board == board) {
                tend_node(&transaction, node).await?;
            }
            transaction.commit().await
        };
        match tokio::time::timeout(self.timeout(), tending).await {
            Ok(done) => done.map_err(|error| unavailable(&error)),
            Err(_) => Err(StoreError::Unavailable("it took too long".into())),
        }
    }
}

async fn tend_node(transaction: &Transaction<'_>, node: &Node) -> Result<(), tokio_postgres::Error> {
    // Others may have been here meanwhile, so nothing but the place is believed.
    for height in 0..=TOP {
        let Some(row) = transaction.query_opt(&around(height), &node.values()).await? else { return Ok(()) };
        let (down, reached): (i64, i64) = (row.get(0), row.get(1));
        let next: (i64, i64) = (row.get(2), row.get(3));
        if row.get::<_, i64>(4) > NODE_MAX {
            let first = Node { down, reached, ..node.clone() };
            let mut values = first.values().to_vec();
            values.extend([&next.0 as &(dyn ToSql + Sync), &next.1]);
            transaction.execute(&cut(height), &values).await?;
        }
    }
    transaction.execute(JOIN, &node.values()).await?;
    Ok(())
}
