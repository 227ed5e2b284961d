//! Pages of an order: by place, which is a lookup in its index, or by rank, which the tree finds first.

use tally_core::rows::{Key, OrderKey, Place, Row};
use tally_engine::{OrderFrom, StoreError};
use tokio_postgres::types::ToSql;

use crate::ordered::{self, InOrder};
use crate::{Postgres, tree};

impl Postgres {
    pub(crate) async fn order_page(
        &self,
        order: &OrderKey,
        from: &OrderFrom,
        limit: i64,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        match from {
            OrderFrom::Rank(rank) => {
                let rank = i64::try_from(*rank).unwrap_or(i64::MAX);
                self.page_of_rank(order, rank, limit).await
            }
            OrderFrom::Behind(place) => self.page_at(order, [">", ""], place, limit).await,
            OrderFrom::Ahead(place) => self.page_at(order, ["<", " DESC"], place, limit).await,
        }
    }

    /// Rows that compare with a place in one way, the nearest first.
    async fn page_at(
        &self,
        order: &OrderKey,
        [than, way]: [&str; 2],
        place: &Place,
        limit: i64,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let kind = order.kind();
        let Some(standing) = InOrder::of(kind) else { return Ok(Vec::new()) };
        let (down, reached) = ordered::stored(place);
        let (parts, id) = (ordered::parts(order), &*place.id);
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&limit, &down, &reached];
        if standing.has_id() {
            values.push(&id);
        }
        let condition = format!(
            "{} AND ({}) {than} ({}) ORDER BY {} LIMIT $1",
            standing.is_in("t", &standing.part_values(values.len() + 1)),
            standing.columns("t").join(", "),
            standing.place("$2::int8", "$3::int8", "$4::text").join(", "),
            in_order(standing, way)
        );
        values.extend(parts.iter().map(|part| part as &(dyn ToSql + Sync)));
        self.rows_where(kind, &condition, &values).await
    }

    /// One statement, so that the tree and the rows are of one moment. What is skipped is less than a node.
    async fn page_of_rank(&self, order: &OrderKey, rank: i64, limit: i64) -> Result<Vec<(Key, Row)>, StoreError> {
        let kind = order.kind();
        let Some(standing) = InOrder::of(kind) else { return Ok(Vec::new()) };
        let (name, parts) = (ordered::name(order), ordered::parts(order));
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&limit, &name, &rank];
        let condition = format!(
            "{} AND ({}) >= ({}) ORDER BY {} LIMIT $1 OFFSET (SELECT skipped FROM node)",
            standing.is_in("t", &standing.part_values(values.len() + 1)),
            standing.columns("t").join(", "),
            standing.place("(SELECT down FROM node)", "(SELECT reached FROM node)", "''").join(", "),
            in_order(standing, "")
        );
        values.extend(parts.iter().map(|part| part as &(dyn ToSql + Sync)));
        let with = format!("WITH node (down, reached, skipped) AS ({})", tree::node_of_rank());
        self.rows_with(&with, kind, &condition, &values).await
    }
}

fn in_order(standing: InOrder, way: &str) -> String {
    let columns: Vec<String> = standing.columns("t").iter().map(|column| format!("{column}{way}")).collect();
    columns.join(", ")
}
