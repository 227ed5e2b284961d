//! Rows of a kind in their order, as SQL: by the columns that are declared. The table has an index of just these.

use tally_core::rows::{Cells, OrderKey, Ordered, Place, RowKind, Type};

use crate::cells::{Table, table_of, to_text, typed};
use crate::tree::END;

/// The score of rows that have none, as it is stored.
const NO_SCORE: &str = "(-1)::int8";

/// A table whose rows stand in orders.
#[derive(Clone, Copy)]
pub(crate) struct InOrder {
    table: Table,
    by: Ordered,
}

/// Every such table.
pub(crate) fn ordered() -> impl Iterator<Item = RowKind> {
    RowKind::ALL.into_iter().filter(|kind| InOrder::of(*kind).is_some())
}

impl InOrder {
    pub(crate) fn of(kind: RowKind) -> Option<Self> {
        Some(Self { table: table_of(kind)?, by: kind.declared().order? })
    }

    pub(crate) fn table(self) -> Table {
        self.table
    }

    /// How many columns name an order.
    pub(crate) fn parts(self) -> usize {
        self.table.keys() - 1
    }

    /// The columns of `row` that name its order.
    pub(crate) fn part_names(self, row: &str) -> impl Iterator<Item = String> {
        self.table.columns().take(self.parts()).map(move |(name, _)| format!("{row}.{name}"))
    }

    /// The parameters from `$first` on, each a text, as the parts of an order.
    pub(crate) fn part_values(self, first: usize) -> Vec<String> {
        self.table.key_values(first).into_iter().take(self.parts()).collect()
    }

    /// The texts `w.part0`, `w.part1` and so on, as the parts of an order.
    pub(crate) fn typed_parts(self) -> Vec<String> {
        let columns = self.table.columns().take(self.parts()).enumerate();
        columns.map(|(number, (_, of))| typed(*of, &format!("w.part{number}"))).collect()
    }

    /// `row` stands in the order with these parts.
    pub(crate) fn is_in(self, row: &str, parts: &[String]) -> String {
        let names = self.table.columns().zip(parts).map(|((name, _), part)| format!("{row}.{name} = {part}"));
        let only = self.by.only.map(|(column, value)| format!("{row}.{column} = '{value}'"));
        names.chain(only).collect::<Vec<_>>().join(" AND ")
    }

    /// Where the node of `row` would begin.
    pub(crate) fn begins(self, row: &str) -> [String; 2] {
        let down = self.by.score.map_or_else(|| NO_SCORE.to_owned(), |score| format!("~{row}.{score}"));
        [down, format!("{row}.{}", self.by.reached)]
    }

    /// Whether rows differ in their scores.
    pub(crate) fn has_score(self) -> bool {
        self.by.score.is_some()
    }

    /// What the index goes by, behind what names the order. An id that is what was reached says nothing more.
    pub(crate) fn columns(self, row: &str) -> Vec<String> {
        let [down, reached] = self.begins(row);
        let mut columns = if self.has_score() { vec![down, reached] } else { vec![reached] };
        columns.extend(self.id(row));
        columns
    }

    fn id(self, row: &str) -> Option<String> {
        let (name, of) = self.table.columns().nth(self.parts())?;
        let column = format!("{row}.{name}");
        let text = if *of == Type::Text { column } else { format!("({} COLLATE \"C\")", to_text(*of, &column)) };
        self.has_id().then_some(text)
    }

    pub(crate) fn has_id(self) -> bool {
        self.table.columns().nth(self.parts()).is_some_and(|(name, _)| *name != self.by.reached)
    }

    /// A place to compare [`Self::columns`] with.
    pub(crate) fn place(self, down: &str, reached: &str, id: &str) -> Vec<String> {
        let mut place = if self.has_score() {
            vec![down.to_owned(), reached.to_owned()]
        } else {
            // Whatever has another score is before all of them, or behind.
            vec![format!(
                "CASE WHEN {down} < {NO_SCORE} THEN -1 WHEN {down} > {NO_SCORE} THEN {END} ELSE {reached} END"
            )]
        };
        if self.has_id() {
            place.push(id.to_owned());
        }
        place
    }
}

/// What an order is called in the tree: the table, and what the keys of its rows begin with.
pub(crate) fn name(order: &OrderKey) -> String {
    let mut name = order.kind().declared().name.to_owned();
    for part in parts(order) {
        name.push(':');
        name.push_str(&part.replace('%', "%25").replace(':', "%3a"));
    }
    name
}

/// The order that is called so.
pub(crate) fn read_name(name: &str) -> Option<OrderKey> {
    let (table, parts) = name.split_once(':')?;
    let kind = ordered().find(|kind| kind.declared().name == table)?;
    let parts = parts.split(':').map(|part| part.replace("%3a", ":").replace("%25", "%"));
    let cells = parts.zip(kind.declared().key).map(|(part, (_, of))| crate::rows::cell(*of, Some(part)));
    let order = OrderKey::from_cells(kind, &mut Cells::new(cells.collect::<Option<_>>()?))?;
    (self::name(&order) == name).then_some(order)
}

/// The parts of an order, as the texts that travel.
pub(crate) fn parts(order: &OrderKey) -> Vec<String> {
    // No key holds a number that is too large: those are counted from 0.
    order.to_cells().into_iter().map(|cell| crate::rows::text(cell).ok().flatten().unwrap_or_default()).collect()
}

/// A place as it is stored: where a node would begin.
pub(crate) fn stored(place: &Place) -> (i64, i64) {
    (!place.score, stored_reached(place.reached))
}

pub(crate) fn stored_reached(reached: u64) -> i64 {
    i64::try_from(reached).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use tally_core::Name;
    use tally_core::rows::BoardKey;
    use tally_core::time::Timestamp;

    use super::*;

    #[test]
    fn orders_are_called_as_the_migration_calls_them() {
        let word = |text| Name::new(text).unwrap();
        let board = BoardKey { board: word("weekly"), season: Timestamp(1_767_571_200_000), levels: false };
        let (board, queue) = (OrderKey::from(board), OrderKey::Queue(word("sale")));
        for (order, called) in [(board, "score:weekly:1767571200000:false"), (queue, "ticket:sale")] {
            assert_eq!(name(&order), called);
            assert_eq!(read_name(called), Some(order));
        }
        for called in ["", "score", "score:weekly:0", "score:weekly:0:maybe", "ticket:sale:1", "job:1", "ticket:a b"] {
            assert_eq!(read_name(called), None, "{called}");
        }
    }

    #[test]
    fn rows_are_compared_by_no_more_than_they_differ_in() {
        let score = InOrder::of(RowKind::Score).unwrap();
        assert_eq!(score.columns("t"), ["~t.score", "t.reached_us", "t.member"]);
        let ticket = InOrder::of(RowKind::Ticket).unwrap();
        assert_eq!(ticket.columns("t"), ["~t.score", "t.seq"]);
        assert_eq!(ticket.is_in("t", &ticket.part_values(2)), "t.room = $2::text AND t.state = 'WAITING'");
    }
}
