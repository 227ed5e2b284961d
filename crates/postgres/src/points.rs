//! Places that a load or a commit names, as arrays.

use std::collections::BTreeMap;

use tally_core::rows::{Among, Changes, OrderKey, Place, RowKind, Standing};
use tally_core::view::View;
use tokio_postgres::types::ToSql;

use crate::ordered;

/// Points of which is asked how many stand before them, for each kind of rows.
#[derive(Default)]
pub(crate) struct Asked<'a>(BTreeMap<RowKind, Points<'a>>);

/// Points in orders of one kind of rows.
#[derive(Default)]
pub(crate) struct Points<'a> {
    names: Vec<String>,
    down: Vec<i64>,
    reached: Vec<i64>,
    ids: Vec<&'a str>,
    /// A list for each part of an order.
    parts: Vec<Vec<String>>,
    expected: Vec<Option<i64>>,
    /// Of a point whose number the commit takes, how many of those taken come after it.
    after: Vec<Option<i64>>,
    /// Where in the answer each goes.
    pub(crate) places: Vec<usize>,
}

impl<'a> Asked<'a> {
    /// What a load asks for.
    pub(crate) fn wanted(standings: &'a [Standing]) -> Self {
        let mut asked = Self::default();
        standings.iter().enumerate().for_each(|(place, standing)| asked.push(standing, place, [None; 2]));
        asked
    }

    /// The ranks that a commit tells, and behind them those that it checks, as they must be after it.
    pub(crate) fn shown(view: &'a View, changes: &Changes) -> Self {
        let mut asked = Self::default();
        let told = view.told_ranks().iter().map(|standing| (standing, None));
        let checked = view.seen_ranks().map(|(standing, _)| (standing, i64::try_from(view.final_rank(standing)).ok()));
        for (place, (standing, expected)) in told.chain(checked).enumerate() {
            let after = changes.taken_at(standing).map(|(_, count, at)| i64::from(count - 1 - at));
            asked.push(standing, place, [expected, after]);
        }
        asked
    }

    fn push(&mut self, standing: &'a Standing, place: usize, at_commit: [Option<i64>; 2]) {
        self.0.entry(standing.order.kind()).or_default().push(standing, place, at_commit);
    }

    pub(crate) fn kinds(&self) -> impl DoubleEndedIterator<Item = (RowKind, &Points<'a>)> {
        self.0.iter().map(|(kind, points)| (*kind, points))
    }

    /// The names of their orders.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.values().flat_map(|points| points.names.iter().map(String::as_str))
    }
}

impl<'a> Points<'a> {
    /// Where nobody stands before it who does not stand before it in the order.
    fn push(&mut self, standing: &'a Standing, place: usize, [expected, after]: [Option<i64>; 2]) {
        let (reached, id) = match &standing.among {
            Among::First => (-1, ""),
            Among::Last => (i64::MAX, ""),
            Among::At { reached, id } => (ordered::stored_reached(*reached), &**id),
        };
        self.names.push(ordered::name(&standing.order));
        self.down.push(!standing.score);
        self.reached.push(reached);
        self.ids.push(id);
        let parts = ordered::parts(&standing.order);
        self.parts.resize_with(parts.len(), Vec::new);
        self.parts.iter_mut().zip(parts).for_each(|(list, part)| list.push(part));
        self.expected.push(expected);
        self.after.push(after);
        self.places.push(place);
    }

    /// The arrays of [`crate::tree::ranks`].
    pub(crate) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&self.names, &self.down, &self.reached, &self.ids];
        values.extend(self.parts.iter().map(|part| part as &(dyn ToSql + Sync)));
        values
    }

    /// The arrays of [`crate::tree::tell_ranks`].
    pub(crate) fn at_commit(&self, kind: RowKind) -> Vec<&(dyn ToSql + Sync)> {
        let mut values = self.values();
        values.push(&self.expected);
        if kind.sequence().is_some() {
            values.push(&self.after);
        }
        values
    }
}

/// What a commit takes from trees and adds to them.
#[derive(Default)]
pub(crate) struct Moves {
    orders: BTreeMap<String, OrderKey>,
    names: Vec<String>,
    down: Vec<i64>,
    reached: Vec<i64>,
    by: Vec<i64>,
}

impl Moves {
    pub(crate) fn new(changes: &Changes) -> Self {
        let mut moves = Self::default();
        for moved in changes.rows.iter().filter_map(|(key, change)| change.moves(key)) {
            let name = ordered::name(&moved.order);
            moved.before.iter().for_each(|place| moves.push(&name, place, -1));
            moved.after.iter().for_each(|place| moves.push(&name, place, 1));
            moves.orders.entry(name).or_insert(moved.order);
        }
        moves
    }

    fn push(&mut self, name: &str, place: &Place, by: i64) {
        let (down, reached) = ordered::stored(place);
        self.names.push(name.to_owned());
        self.down.push(down);
        self.reached.push(reached);
        self.by.push(by);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The orders, by their names.
    pub(crate) fn orders(&self) -> &BTreeMap<String, OrderKey> {
        &self.orders
    }

    /// The array that names their orders.
    pub(crate) fn names(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![&self.names]
    }

    /// What is added to the nodes that they are in, which know no ids.
    pub(crate) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![&self.names, &self.down, &self.reached, &self.by]
    }
}
