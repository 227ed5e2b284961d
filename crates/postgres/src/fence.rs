//! Guards for what a row lock cannot hold: a row that is not there.
//!
//! Every key that may be looked at without being written falls into one of 256 advisory locks. Who
//! decided on it holds the lock with others until its commit; who changes it holds it alone. In tables
//! whose rows come and go all the time it is the other way round. They are taken before any row, in
//! order, so they cannot deadlock.

use std::collections::BTreeMap;

use tally_core::SubjectId;
use tally_core::hash::fingerprint;
use tally_core::rows::Key;
use tokio_postgres::types::ToSql;

use crate::rows::key_cells;

const FENCES: u64 = 256;
/// Behind those of keys come those of orders.
const ORDERS: u64 = 256;
/// And behind those the turns of totals that are spread, and of orders, see [`turn`].
const TURNS: u64 = 1 << 20;

/// Takes the locks, in the order of the arrays.
pub(crate) const TAKE: &str = "
SELECT count(*) FROM (
    SELECT CASE WHEN alone THEN pg_advisory_xact_lock($1, fence) ELSE pg_advisory_xact_lock_shared($1, fence) END
    FROM unnest($2::int4[], $3::bool[]) AS f(fence, alone) OFFSET 0) taken";

/// The locks that a transaction takes.
#[derive(Default)]
pub(crate) struct Fences {
    /// By number, so that everybody takes them in one order; true for alone.
    taken: BTreeMap<i32, bool>,
}

impl Fences {
    /// Keeps others from changing it.
    pub(crate) fn look_at(&mut self, key: &Key) {
        self.taken.entry(fence(key)).or_insert(false);
    }

    /// Keeps others from looking at it.
    pub(crate) fn change(&mut self, key: &Key) {
        self.taken.insert(fence(key), true);
    }

    /// Keeps others from counting this subject's edges.
    pub(crate) fn add_to(&mut self, subject: &SubjectId) {
        self.look_at(&Key::Subject(subject.clone()));
    }

    /// Keeps others from adding edges to these subjects.
    pub(crate) fn count(&mut self, subject: &SubjectId) {
        self.change(&Key::Subject(subject.clone()));
    }

    /// Keeps others from cutting the tree of an order.
    pub(crate) fn count_on(&mut self, order: &str) {
        self.taken.entry(fence_of_order(order)).or_insert(false);
    }

    /// Keeps others from adding to the tree of an order.
    pub(crate) fn cut(&mut self, order: &str) {
        self.taken.insert(fence_of_order(order), true);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    pub(crate) fn split(&self) -> (Vec<i32>, Vec<bool>) {
        self.taken.iter().map(|(fence, alone)| (*fence, *alone)).unzip()
    }
}

/// The parameters of [`TAKE`].
pub(crate) fn values<'a>(space: &'a i32, split: &'a (Vec<i32>, Vec<bool>)) -> Vec<&'a (dyn ToSql + Sync)> {
    vec![space, &split.0, &split.1]
}

fn fence(key: &Key) -> i32 {
    let cells = key_cells(key);
    let table = [key.kind().declared().letter];
    let mut parts: Vec<&[u8]> = vec![&table];
    parts.extend(cells.iter().map(|cell| cell.as_deref().unwrap_or("").as_bytes()));
    // The low bits of this hash are good enough on their own.
    (fingerprint(&parts) % FENCES) as i32
}

fn fence_of_order(order: &str) -> i32 {
    (FENCES + fingerprint(&[order.as_bytes()]) % ORDERS) as i32
}

/// The lock of an order whose ranks are told or changed, as that of a total.
pub(crate) fn turn_of_order(order: &str) -> i32 {
    turn(&[b"order", order.as_bytes()])
}

/// The lock of a total that is spread. Taken behind all rows, in order, and held by who needs nothing but to commit.
pub(crate) fn turn(name: &[&[u8]]) -> i32 {
    (FENCES + ORDERS + fingerprint(name) % TURNS) as i32
}
