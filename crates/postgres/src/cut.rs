//! Nodes of an order's tree are cut and joined behind the answer, while nobody adds to the tree.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use tally_core::rows::OrderKey;
use tally_engine::StoreError;
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::Postgres;
use crate::error::unavailable;
use crate::fence::{self, Fences};
use crate::ordered::{self, InOrder};
use crate::tree::{END, NODE_HALF, NODE_MAX, TOP, at};

/// Cuts what lies between two places into nodes of a height: new ones, and the first as it is then. Nodes of height 0 are
/// made of rows; the parts of their order are in the parameters from 6 on.
pub(crate) fn cut(height: i16, standing: InOrder) -> String {
    let (from, to) = (["$2::int8", "$3::int8"], ["$4::int8", "$5::int8"]);
    // Rows that share a place stay together: two servers may have used one stamp.
    let (table, [down, reached], n, inside) = match height {
        0 => {
            let place = |[down, reached]: [&str; 2]| {
                let place = standing.place(down, reached, "''");
                format!("({})", place.join(", "))
            };
            let columns = format!("({})", standing.columns("s").join(", "));
            (
                standing.table().name(),
                standing.begins("s"),
                "count(*)",
                format!(
                    "{} AND {columns} >= {} AND {columns} < {}",
                    standing.is_in("s", &standing.part_values(6)),
                    place(from),
                    place(to)
                ),
            )
        }
        _ => {
            let place = at("s");
            (
                "order_node",
                ["s.down".to_owned(), "s.reached".to_owned()],
                "sum(s.n)",
                format!(
                    "s.in_order = $1 AND s.height = {} AND {place} >= ({}) AND {place} < ({})",
                    height - 1,
                    from.join(", "),
                    to.join(", ")
                ),
            )
        }
    };
    format!(
        "WITH inside AS (
             SELECT {down} AS down, {reached} AS reached, {n} AS n FROM {table} s WHERE {inside} GROUP BY 1, 2),
         pieces AS (
             SELECT i.down, i.reached, i.n, (row_number() OVER places - 1) / {NODE_HALF} AS piece,
                    (row_number() OVER places - 1) % {NODE_HALF} AS place
             FROM inside i WINDOW places AS (ORDER BY i.down, i.reached)),
         sums AS (SELECT piece, sum(n)::int8 AS n FROM pieces GROUP BY piece),
         first AS (
             UPDATE order_node t SET n = coalesce((SELECT n FROM sums WHERE piece = 0), 0)
             WHERE t.in_order = $1 AND t.height = {height} AND t.down = $2 AND t.reached = $3)
         INSERT INTO order_node (in_order, height, down, reached, n)
         SELECT $1, {height}, p.down, p.reached, s.n
         FROM pieces p JOIN sums s USING (piece) WHERE p.place = 0 AND p.piece > 0"
    )
}

/// The node of a height at or before a place, where the next one begins, and how many rows or nodes it has.
fn around(height: i16) -> String {
    let inside = match height {
        0 => "t.n".to_owned(),
        _ => format!(
            "(SELECT count(*) FROM order_node s
              WHERE s.in_order = t.in_order AND s.height = {} AND {} >= {} AND {} < (next.down, next.reached))",
            height - 1,
            at("s"),
            at("t"),
            at("s")
        ),
    };
    format!(
        "SELECT t.down, t.reached, next.down, next.reached, {inside}
         FROM (SELECT * FROM order_node t WHERE t.in_order = $1 AND t.height = {height} AND {at_t} <= ($2, $3)
               ORDER BY t.down DESC, t.reached DESC LIMIT 1) AS t
         CROSS JOIN LATERAL (
             SELECT coalesce(min(n.down), {END}) AS down, coalesce(min(n.reached), {END}) AS reached
             FROM (SELECT * FROM order_node n WHERE n.in_order = t.in_order AND n.height = t.height AND {at_n} > {at_t}
                   ORDER BY n.down, n.reached LIMIT 1) AS n) AS next",
        at_t = at("t"),
        at_n = at("n"),
    )
}

/// Joins empty nodes of a height to the ones before them, unless they are the first or a node of the upper height begins with them.
/// Not the one alone that was seen to be empty, but those that lie before it as well: nobody comes back to where a queue has been.
fn join() -> String {
    format!(
        "DELETE FROM order_node t USING (
             SELECT n.down, n.reached FROM order_node n
             WHERE n.in_order = $1 AND n.height = $4 AND {at_n} <= ($2, $3)
             ORDER BY n.down DESC, n.reached DESC LIMIT {NODE_MAX}) AS near
         WHERE t.in_order = $1 AND t.height = $4 AND t.down = near.down AND t.reached = near.reached
           AND t.n = 0 AND t.reached >= 0
           AND NOT EXISTS (SELECT FROM order_node u WHERE u.in_order = t.in_order
               AND u.height = t.height + 1 AND u.down = t.down AND u.reached = t.reached)",
        at_n = at("n"),
    )
}

/// A node that is to be cut or joined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    order: OrderKey,
    name: String,
    down: i64,
    reached: i64,
}

impl Node {
    /// From the answer of [`crate::tree::add_to_nodes`].
    pub(crate) fn read(row: &tokio_postgres::Row, orders: &BTreeMap<String, OrderKey>) -> Vec<Self> {
        let Some(names) = row.get::<_, Option<Vec<String>>>(0) else { return Vec::new() };
        let (down, reached): (Vec<i64>, Vec<i64>) = (row.get(1), row.get(2));
        let nodes = names.into_iter().zip(down.into_iter().zip(reached));
        let node = |(name, (down, reached)): (String, (i64, i64))| {
            Some(Self { order: orders.get(&name)?.clone(), name, down, reached })
        };
        nodes.filter_map(node).collect()
    }

    fn values(&self) -> [&(dyn ToSql + Sync); 3] {
        [&self.name, &self.down, &self.reached]
    }
}

/// Orders whose trees this server is tending, by name.
#[derive(Default)]
pub(crate) struct Tended(Mutex<HashSet<String>>);

impl Tended {
    fn with<T>(&self, change: impl FnOnce(&mut HashSet<String>) -> T) -> T {
        // A set of names; whatever a panic left is as good as any.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Postgres {
    /// Cuts and joins nodes behind the answer, for one order at a time. What is not tended now is seen again by the next
    /// commit that adds to it.
    pub(crate) fn tend(&self, nodes: Vec<Node>) {
        let Some(name) = nodes.first().map(|node| node.name.clone()) else { return };
        if !self.tended.with(|names| names.insert(name.clone())) {
            return;
        }
        let store = self.clone();
        tokio::spawn(async move {
            if let Err(error) = store.tend_now(&name, &nodes).await {
                tracing::warn!(%error, name, "the tree of an order could not be tended; it is tried again");
            }
            store.tended.with(|names| names.remove(&name));
        });
    }

    async fn tend_now(&self, name: &str, nodes: &[Node]) -> Result<(), StoreError> {
        let mut fences = Fences::default();
        fences.cut(name);
        let (space, split) = (self.lock_space(), fences.split());
        let mut connection = self.connector().connect(Box::new(|_| {})).await?;
        let tending = async {
            let transaction = connection.client.transaction().await?;
            transaction.query(fence::TAKE, &fence::values(&space, &split)).await?;
            for node in nodes.iter().filter(|node| node.name == name) {
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
    let Some(standing) = InOrder::of(node.order.kind()) else { return Ok(()) };
    let parts = ordered::parts(&node.order);
    // Others may have been here meanwhile, so nothing but the place is believed.
    for height in 0..=TOP {
        let Some(row) = transaction.query_opt(&around(height), &node.values()).await? else { return Ok(()) };
        let first = Node { down: row.get(0), reached: row.get(1), ..node.clone() };
        let next: (i64, i64) = (row.get(2), row.get(3));
        if row.get::<_, i64>(4) > NODE_MAX {
            let mut values = first.values().to_vec();
            values.extend([&next.0 as &(dyn ToSql + Sync), &next.1]);
            if height == 0 {
                values.extend(parts.iter().map(|part| part as &(dyn ToSql + Sync)));
            }
            transaction.execute(&cut(height, standing), &values).await?;
        }
    }
    // From the top, since a node stays as long as an upper one begins with it.
    for height in (0..=TOP).rev() {
        let mut values = node.values().to_vec();
        values.push(&height);
        transaction.execute(&join(), &values).await?;
    }
    Ok(())
}
