//! Trees against the rows under them, and a tree made anew.
//!
//! The rows of an order are read as they stand, and its nodes beside them: each node must have as many rows as there are from
//! where it begins up to the next one of its height, and must begin where a lower one does.

use std::collections::{BTreeMap, BTreeSet};

use tally_core::rows::{OrderKey, RowKind};
use tally_engine::{Finding, StoreError};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement, Transaction};

use crate::Postgres;
use crate::agree::each;
use crate::audit::{Tell, unreadable};
use crate::cut::cut;
use crate::error::unavailable;
use crate::fence::{self, Fences};
use crate::ordered::{self, InOrder};
use crate::rows;
use crate::tree::{self, TOP};

/// Rows and nodes that are held at once.
const ROWS_AT_ONCE: i32 = 5_000;

/// The lower ones first, so that the upper ones find that they begin where those do.
const NODES: &str = "
SELECT down, reached, height, n FROM order_node WHERE in_order = $1 ORDER BY down, reached, height";

const CLEAR: &str = "DELETE FROM order_node WHERE in_order = $1";

/// Where the rows of an order stand, from the index that has this order.
fn places(standing: InOrder) -> String {
    format!(
        "SELECT {} FROM {} s WHERE {} ORDER BY {}",
        standing.begins("s").join(", "),
        standing.table().name(),
        standing.is_in("s", &standing.part_values(1)),
        standing.columns("s").join(", ")
    )
}

/// A row of each order in which any stand.
fn one_of_each(standing: InOrder) -> String {
    let parts: Vec<String> = standing.part_names("t").collect();
    let (parts, table) = (parts.join(", "), standing.table());
    let only = standing.is_in("t", &[]);
    let only = if only.is_empty() { "true" } else { &only };
    format!("SELECT DISTINCT ON ({parts}) {} FROM {} t WHERE {only} ORDER BY {parts}", table.shown(), table.name())
}

/// Where a node begins, or a row stands.
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
    async fn start(
        transaction: &'a Transaction<'a>,
        statement: &Statement,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Self, Error> {
        let portal = transaction.bind(statement, values).await?;
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

    fn place(&self) -> Option<Place> {
        self.next.as_ref().map(|row| (row.get(0), row.get(1)))
    }
}

/// A node that has begun.
#[derive(Clone, Copy, Default)]
struct Open {
    said: i64,
    counted: i64,
    begins: Option<Place>,
}

/// The tree of one order.
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

    fn row(&mut self) {
        if self.heights.iter().any(|open| open.begins.is_none()) {
            self.is_wrong("a row is in no node".into());
        }
        self.heights.iter_mut().for_each(|open| open.counted += 1);
    }

    fn close(&mut self, height: usize) {
        let Open { said, counted, begins } = self.heights[height];
        if begins.is_some() && said != counted {
            self.is_wrong(format!("a node of height {height} says that it has {said} rows, and has {counted}"));
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

/// Every order that has rows or nodes. There are few of them, however many rows stand in each.
async fn all(transaction: &Transaction<'_>, tell: Tell<'_>) -> Result<BTreeSet<OrderKey>, Error> {
    let mut orders = BTreeSet::new();
    let names = "SELECT DISTINCT in_order FROM order_node";
    each(transaction, names, &[], |row| match ordered::read_name(row.get(0)) {
        Some(order) => _ = orders.insert(order),
        None => unreadable(tell, "order_node", &[row.get(0)]),
    })
    .await?;
    for (kind, standing) in standing() {
        // What cannot be read was told of when everything was read.
        each(transaction, &one_of_each(standing), &[], |row| {
            orders.extend(rows::read(kind, row.get(0)).ok().and_then(|(key, _)| key.order()));
        })
        .await?;
    }
    Ok(orders)
}

fn standing() -> impl Iterator<Item = (RowKind, InOrder)> {
    ordered::ordered().filter_map(|kind| Some((kind, InOrder::of(kind)?)))
}

/// Compares every tree with its rows, in the snapshot of the audit.
pub(crate) async fn orders(transaction: &Transaction<'_>, tell: Tell<'_>) -> Result<(), Error> {
    let nodes = transaction.prepare(NODES).await?;
    let mut rows = BTreeMap::new();
    for (kind, standing) in standing() {
        rows.insert(kind, transaction.prepare(&places(standing)).await?);
    }
    for order in all(transaction, tell).await? {
        let Some(rows) = rows.get(&order.kind()) else { continue };
        if let Some(why) = compare(transaction, &order, rows, &nodes).await? {
            let found = format!("the tree of an order does not agree with its rows: {order:?}: {why}");
            tell(Finding::Order { found, order });
        }
    }
    Ok(())
}

/// What is wrong with the tree of an order, if anything is.
async fn compare(
    transaction: &Transaction<'_>,
    order: &OrderKey,
    rows: &Statement,
    nodes: &Statement,
) -> Result<Option<String>, Error> {
    let (name, parts) = (ordered::name(order), ordered::parts(order));
    let parts: Vec<&(dyn ToSql + Sync)> = parts.iter().map(|part| part as &(dyn ToSql + Sync)).collect();
    let mut rows = Reading::start(transaction, rows, &parts).await?;
    let mut nodes = Reading::start(transaction, nodes, &[&name]).await?;
    let mut tree = Tree::default();
    loop {
        match (rows.place(), nodes.place()) {
            // Whoever stands where a node begins is in it.
            (row, Some(place)) if row.is_none_or(|row| place <= row) => {
                if let Some(node) = nodes.step().await? {
                    tree.node(node.get(2), place, node.get(3));
                }
            }
            (Some(_), _) => {
                rows.step().await?;
                tree.row();
            }
            (None, _) => return Ok(tree.end()),
        }
    }
}

impl Postgres {
    /// Makes the tree of an order anew, while nobody adds to it.
    pub(crate) async fn mend_order(&self, order: &OrderKey) -> Result<bool, StoreError> {
        let Some(standing) = InOrder::of(order.kind()) else { return Ok(false) };
        let (name, parts) = (ordered::name(order), ordered::parts(order));
        let mut fences = Fences::default();
        fences.cut(&name);
        let (space, split) = (self.lock_space(), fences.split());
        let (first, end): (Place, Place) = ((i64::MIN, -1), (i64::MAX, i64::MAX));
        let whole: [&(dyn ToSql + Sync); 5] = [&name, &first.0, &first.1, &end.0, &end.1];
        let mut connection = self.connector().connect(Box::new(|_| {})).await?;
        let mending = async {
            let transaction = connection.client.transaction().await?;
            transaction.query(fence::TAKE, &fence::values(&space, &split)).await?;
            transaction.execute(CLEAR, &[&name]).await?;
            transaction.query(&tree::put_roots(), &[&vec![&name]]).await?;
            for height in 0..=TOP {
                let mut values = whole.to_vec();
                if height == 0 {
                    values.extend(parts.iter().map(|part| part as &(dyn ToSql + Sync)));
                }
                transaction.execute(&cut(height, standing), &values).await?;
            }
            transaction.commit().await
        };
        mending.await.map(|()| true).map_err(|error: Error| unavailable(&error))
    }
}
