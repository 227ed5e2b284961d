//! The oracle: a store so plain that it is right at a glance. Other engines are compared with it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tally_core::rows::{
    self, Changes, Edge, EdgeKey, Key, ListKey, OrderKey, Row, RowKind, SequenceKey, Standing, TotalKey,
};
use tally_core::time::Stamp;
use tally_core::view::{Reading, Wants};

use crate::{
    Audited, CommitError, Committed, Engine, Finding, Loaded, Mark, Nature, OrderFrom, Page, Place, Range, Seen,
    StoreError, recount,
};

/// Rows in ordered maps behind one lock.
#[derive(Default)]
pub struct Memory {
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    rows: BTreeMap<Key, Row>,
    totals: BTreeMap<TotalKey, i64>,
    stamp: Stamp,
    mark: Mark,
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held leaves the maps as they were before the last insert or
        // after it; either is a consistent map.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every row and every total that is not zero: what a full scan of any engine must equal.
    pub fn dump(&self) -> (BTreeMap<Key, Row>, BTreeMap<TotalKey, i64>) {
        let state = self.state();
        let totals = state.totals.iter().filter(|(_, value)| **value != 0).map(|(key, value)| (key.clone(), *value));
        (state.rows.clone(), totals.collect())
    }

    /// Overwrites a total behind the rules' back, so that tests of verify have something to find.
    pub fn tamper(&self, key: TotalKey, value: i64) {
        self.state().totals.insert(key, value);
    }
}

impl State {
    fn list(&self, list: &ListKey) -> Vec<(EdgeKey, Edge)> {
        let mut edges: Vec<(EdgeKey, Edge)> = self
            .rows
            .iter()
            .filter_map(|(key, row)| {
                let Key::Edge(key) = key else { return None };
                Some((key.clone(), row.edge()?.clone()))
            })
            .filter(|(key, edge)| key.end(list.side) == list.id && edge.hidden == list.hidden)
            .filter(|(key, _)| list.relation.as_ref().is_none_or(|relation| key.relation == *relation))
            .collect();
        edges.sort_by(|(a, x), (b, y)| place_order(&Place::of(list, a, x), &Place::of(list, b, y)));
        edges
    }
}

impl State {
    /// Who stands in an order, the first one first.
    fn order(&self, order: &OrderKey) -> Vec<(rows::Place, Key)> {
        let stands = |(key, row): (&Key, &Row)| {
            let (_, place) = row.stands(key).filter(|(of, _)| of == order)?;
            Some((place, key.clone()))
        };
        let mut all: Vec<_> = self.rows.iter().filter_map(stands).collect();
        all.sort();
        all
    }

    fn before(&self, standing: &Standing) -> u64 {
        self.order(&standing.order).iter().filter(|(place, _)| standing.is_behind(place)).count() as u64
    }

    fn order_page(&self, order: &OrderKey, from: &OrderFrom) -> Vec<(Key, Row)> {
        let all = self.order(order).into_iter();
        let found: Vec<_> = match from {
            OrderFrom::Rank(rank) => all.skip(usize::try_from(*rank).unwrap_or(usize::MAX)).collect(),
            OrderFrom::Behind(place) => all.filter(|(other, _)| other > place).collect(),
            OrderFrom::Ahead(place) => all.filter(|(other, _)| other < place).rev().collect(),
        };
        found.into_iter().filter_map(|(_, key)| Some((key.clone(), self.rows.get(&key)?.clone()))).collect()
    }

    /// Counters are totals, and are listed as rows.
    fn all_rows(&self) -> BTreeMap<Key, Row> {
        let counter = |(key, value): (&TotalKey, &i64)| match key {
            TotalKey::Counter(key) if *value != 0 => Some((Key::Counter(key.clone()), Row::Counter(*value))),
            _ => None,
        };
        let mut rows = self.rows.clone();
        rows.extend(self.totals.iter().filter_map(counter));
        rows
    }
}

/// The order of a list: relation by relation, newest first, then by the id across.
pub fn place_order(a: &Place, b: &Place) -> std::cmp::Ordering {
    a.relation.cmp(&b.relation).then(b.cursor.stamp.cmp(&a.cursor.stamp)).then(a.cursor.other.cmp(&b.cursor.other))
}

impl Engine for Memory {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        Ok(self.state().stamp)
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        let state = self.state();
        let total = |key: &TotalKey| state.totals.get(key).copied().unwrap_or(0);
        let counts = wants.rows.iter().filter(|key| state.rows.contains_key(key)).filter_map(|key| {
            let Key::Edge(edge) = key else { return None };
            Some(TotalKey::Object { object: edge.object.clone(), relation: edge.relation.clone() })
        });
        Ok(Loaded {
            also: counts.map(|key| (key.clone(), total(&key))).collect(),
            rows: wants.rows.iter().map(|key| state.rows.get(key).cloned()).collect(),
            totals: wants.totals.iter().map(total).collect(),
            ranks: wants.ranks.iter().map(|standing| state.before(standing)).collect(),
            mark: state.mark,
            ..Loaded::default()
        })
    }

    /// As a store that is shared, so that the rules are held to it here too.
    fn nature(&self) -> Nature {
        Nature { reading: Reading::Lean, ..Nature::default() }
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        let mut state = self.state();
        let moved = seen.view.seen().any(|(key, row)| state.rows.get(key) != row.as_ref())
            || seen.view.seen_totals().any(|(key, value)| state.totals.get(key).copied().unwrap_or(0) != value)
            || seen.view.seen_ranks().any(|(standing, before)| state.before(standing) != before);
        if moved {
            return Err(CommitError::Conflict);
        }
        let overflows =
            |(key, by): &(TotalKey, i64)| state.totals.get(key).is_some_and(|n| n.checked_add(*by).is_none());
        if changes.adds.iter().any(overflows) {
            return Err(CommitError::Conflict);
        }
        let (mut numbers, mut lasts) = (Vec::new(), Vec::new());
        for (sequence, count) in &changes.numbers {
            let last = SequenceKey::last(state.rows.get(&sequence.key()));
            let taken = SequenceKey::take(last, *count);
            let (first, after) = taken.ok_or_else(|| StoreError::Broken(sequence.exhausted()))?;
            numbers.push(first);
            lasts.push((sequence.key(), after));
        }
        let given = changes.given(&numbers).map_err(StoreError::from)?;
        state.rows.extend(lasts);
        for (key, change) in given.as_ref().map_or(&changes.rows, |given| &given.rows) {
            match &change.after {
                Some(row) => state.rows.insert(key.clone(), row.clone()),
                None => state.rows.remove(key),
            };
        }
        let totals = changes.adds.iter().map(|(key, by)| {
            if *by == 0 {
                return state.totals.get(key).copied().unwrap_or(0);
            }
            let total = state.totals.entry(key.clone()).or_default();
            *total += by;
            *total
        });
        let totals = totals.collect();
        state.stamp = state.stamp.max(changes.stamp);
        state.mark = Mark(state.mark.0 + 1);
        let ranks = changes.standings(seen.view.told_ranks(), &numbers);
        let ranks = ranks.iter().map(|standing| state.before(standing)).collect();
        Ok(Committed { mark: state.mark, totals: Some(totals), ranks: Some(ranks), numbers })
    }

    async fn settle(&self, _mark: Mark) -> Result<(), StoreError> {
        Ok(())
    }

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        let state = self.state();
        let mut items: Vec<(Key, Row)> = match range {
            Range::List { list, after } => state
                .list(list)
                .into_iter()
                .filter(|(key, edge)| {
                    after.as_ref().is_none_or(|after| place_order(&Place::of(list, key, edge), after).is_gt())
                })
                .map(|(key, edge)| (Key::Edge(key), Row::Edge(edge)))
                .collect(),
            Range::Due { kind, partitions, from, before } => {
                let is_due = |row: &Row| row.due().is_some_and(|at| at >= *from && at < *before);
                let mut due = pick(&state.rows, |row| row.kind() == *kind && is_due(row));
                due.retain(|(key, _)| partitions.contains(key.partition()));
                due.sort_by_key(|(key, row)| (row.due(), key.clone()));
                due
            }
            Range::Few(kind) => pick(&state.rows, |row| row.kind() == *kind),
            Range::Order { order, from } => state.order_page(order, from),
            Range::Rows { after } => {
                let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
                let all = state.all_rows();
                let rows = all.range((from, Bound::Unbounded)).take(limit.saturating_add(1));
                rows.map(|(key, row)| (key.clone(), row.clone())).collect()
            }
        };
        let more = items.len() > limit;
        items.truncate(limit);
        Ok(Page { items, more, mark: state.mark })
    }

    async fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send)) -> Result<Audited, StoreError> {
        let state = self.state().clone();
        let wrong = recount::at_one_moment(|ledger| {
            for kind in ledger.kinds() {
                let rows = state.rows.iter().filter(|(key, _)| key.kind() == kind);
                rows.for_each(|(key, row)| ledger.row(key, row));
            }
            state.totals.iter().for_each(|(total, stored)| _ = ledger.total(total, *stored));
            Ok(())
        })?;
        recount::tell(wrong, tell);
        let mut counted: HashMap<TotalKey, i64> = HashMap::new();
        let mut edges = 0;
        for (key, row) in &state.rows {
            edges += u64::from(row.kind() == RowKind::Edge);
            row.counts(key, |total, by| {
                if total.counts_edges() {
                    *counted.entry(total).or_default() += by;
                }
            });
        }
        for (total, stored) in state.totals.iter().filter(|(total, _)| total.counts_edges()) {
            let counted = counted.remove(total).unwrap_or(0);
            if counted != *stored {
                tell(Finding::Drift { total: total.clone(), stored: *stored, counted });
            }
        }
        for (total, counted) in counted {
            tell(Finding::Drift { total, stored: 0, counted });
        }
        let rows = state.rows.len() as u64;
        tell(Finding::Progress(rows));
        let totals = state.totals.keys().filter(|total| !matches!(total, TotalKey::Counter(_))).count() as u64;
        Ok(Audited { rows, edges, totals })
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn pick(rows: &BTreeMap<Key, Row>, wanted: impl Fn(&Row) -> bool) -> Vec<(Key, Row)> {
    rows.iter().filter(|(_, row)| wanted(row)).map(|(key, row)| (key.clone(), row.clone())).collect()
}
