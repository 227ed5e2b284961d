//! Every row and total asked for, in one statement: one question, one moment.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

use tally_core::rows::{Key, Row, RowKind, TotalKey};
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_engine::{Loaded, Mark, StoreError};
use tokio_postgres::types::ToSql;

use crate::cells::{Cells, columns, table_of, tables};
use crate::connection::{Connection, within};
use crate::edges::{self, Keys};
use crate::ordered::{InOrder, ordered};
use crate::points::Asked;
use crate::rows::key_cells;
use crate::time::At;
use crate::totals::{ObjectTotals, SubjectTotals};
use crate::{Postgres, materialize, tree};

/// Parts of a question, as bits: which of them it has makes its statement.
const EDGES: u32 = 1;
const OBJECT_TOTALS: u32 = 1 << 1;
const SUBJECT_TOTALS: u32 = 1 << 2;
const RANKS: u32 = 1 << 3;

/// The part of a kind of rows. What relations need comes first, so that its statements are found by number. Rows of one
/// capability are mostly asked for together, and are one part: there are as many statements as there are mixtures of parts.
fn part_of(kind: RowKind) -> u32 {
    static PARTS: LazyLock<[u32; RowKind::COUNT]> = LazyLock::new(|| {
        let mut capabilities: Vec<&str> = Vec::new();
        RowKind::ALL.map(|kind| {
            let capability = kind.declared().capability;
            let known = capabilities.iter().position(|known| *known == capability);
            let number = known.unwrap_or_else(|| {
                capabilities.push(capability);
                capabilities.len() - 1
            });
            // The first is that of edges, which are asked for in a way of their own.
            if number == 0 { EDGES } else { RANKS << number }
        })
    });
    PARTS[kind as usize]
}

/// The part of ranks among rows of a kind. There are few such kinds: the first has a number that is found fast, the others come
/// from the far end.
fn ranks_of(kind: RowKind) -> u32 {
    match ordered().position(|known| known == kind) {
        Some(0) | None => RANKS,
        Some(number) => 1 << (32 - number),
    }
}

/// What is wanted, by the table in which it is, and where in the answer it goes.
#[derive(Default)]
struct Question<'a> {
    edges: Keys<'a>,
    edge_places: Vec<usize>,
    tables: [Vec<Cells>; RowKind::COUNT],
    table_places: [Vec<usize>; RowKind::COUNT],
    objects: ObjectTotals<'a>,
    object_places: Vec<usize>,
    subjects: SubjectTotals<'a>,
    subject_places: Vec<usize>,
    ranks: Asked<'a>,
}

impl<'a> Question<'a> {
    fn new(wants: &'a Wants) -> Self {
        let mut question = Self::default();
        for (place, key) in wants.rows.iter().enumerate() {
            if let Key::Edge(key) = key {
                question.edges.push(key);
                question.edge_places.push(place);
            } else if let kind = key.kind()
                && table_of(kind).is_some()
            {
                question.tables[kind as usize].push(key_cells(key));
                question.table_places[kind as usize].push(place);
            }
        }
        for (place, total) in wants.totals.iter().enumerate() {
            if let TotalKey::Subject { subject, relation } = total {
                question.subjects.push(subject, relation, 0, None);
                question.subject_places.push(place);
            } else {
                question.objects.push(total, 0);
                question.object_places.push(place);
            }
        }
        question.ranks = Asked::wanted(&wants.ranks);
        question
    }

    fn parts(&self) -> u32 {
        let mut parts = if self.edges.is_empty() { 0 } else { EDGES };
        for (kind, _) in RowKind::ALL.into_iter().zip(&self.tables).filter(|(_, keys)| !keys.is_empty()) {
            parts |= part_of(kind);
        }
        for (kind, _) in self.ranks.kinds() {
            parts |= ranks_of(kind);
        }
        if !self.objects.is_empty() {
            parts |= OBJECT_TOTALS;
        }
        if !self.subjects.is_empty() {
            parts |= SUBJECT_TOTALS;
        }
        parts
    }
}

/// The statement of a question with these parts.
fn sql(parts: u32) -> &'static str {
    static STATEMENTS: [OnceLock<String>; 512] = [const { OnceLock::new() }; 512];
    static OTHERS: RwLock<Option<HashMap<u32, &'static str>>> = RwLock::new(None);
    if let Some(statement) = STATEMENTS.get(parts as usize) {
        return statement.get_or_init(|| write_sql(parts));
    }
    // Only ever added to, whole entries at a time.
    let known = OTHERS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(statement) = known.as_ref().and_then(|known| known.get(&parts)) {
        return statement;
    }
    drop(known);
    let mut known = OTHERS.write().unwrap_or_else(PoisonError::into_inner);
    known.get_or_insert_default().entry(parts).or_insert_with(|| write_sql(parts).leak())
}

fn write_sql(parts: u32) -> String {
    let mut asked = vec!["clock_timestamp()".to_owned()];
    let mut from = String::new();
    let mut next = 1;
    if parts & EDGES != 0 {
        asked.push("e.i, e.created_at, e.kind, e.meta, e.hidden".into());
        from = "FROM (SELECT array_agg(w.i) i, array_agg(t.created_at) created_at, array_agg(t.kind) kind,
                                 array_agg(t.meta::text) meta, array_agg(t.hidden) hidden
                          FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w(object, relation, subject, i)
                          JOIN edge t ON t.object = w.object AND t.relation = w.relation AND t.subject = w.subject) e"
                .into();
        next = 4;
    }
    for (kind, table) in tables() {
        if parts & part_of(kind) != 0 {
            let (rows, shown) = (table.rows(table.keys(), next), table.shown());
            asked.push(format!(
                "ARRAY(SELECT w.i || ' ' || {shown} FROM {rows} JOIN {} t ON {})",
                table.name(),
                table.same_key()
            ));
            next += table.keys();
        }
    }
    if parts & OBJECT_TOTALS != 0 {
        asked.push(ObjectTotals::sums(next));
        next += 3;
    }
    if parts & SUBJECT_TOTALS != 0 {
        asked.push(SubjectTotals::stored(next));
        next += 2;
    }
    for standing in ordered().filter(|kind| parts & ranks_of(*kind) != 0).filter_map(InOrder::of) {
        asked.push(tree::ranks(standing, next));
        next += 4 + standing.parts();
    }
    if parts & part_of(RowKind::Job) != 0 {
        asked.push("(SELECT max(stamp) FROM lane)".into());
    }
    format!("SELECT {} {from}", asked.join(", "))
}

impl Postgres {
    /// Everything that is wanted. A subject's total that nobody has asked for before is counted
    /// first, once and for all.
    pub(crate) async fn read(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        let question = Question::new(wants);
        loop {
            let mut connection = self.connection().await?;
            let asked = within(self.timeout(), ask(&mut connection, &question)).await;
            let (mut loaded, uncounted) = match asked {
                Ok(row) => answer(&row, &question, wants)?,
                Err(error) => {
                    self.discard(connection);
                    return Err(error);
                }
            };
            if uncounted.is_empty() {
                loaded.mark = Mark::default();
                return Ok(loaded);
            }
            drop(connection);
            materialize::count(self, &uncounted).await?;
        }
    }
}

async fn ask(
    connection: &mut Connection,
    question: &Question<'_>,
) -> Result<tokio_postgres::Row, tokio_postgres::Error> {
    let parts = question.parts();
    let statement = connection.statement(sql(parts)).await?;
    let asked = tables().filter(|(kind, _)| parts & part_of(*kind) != 0);
    let keys: Vec<Vec<Vec<Option<&str>>>> =
        asked.map(|(kind, table)| columns(&question.tables[kind as usize], table.keys())).collect();
    let mut values: Vec<&(dyn ToSql + Sync)> = Vec::new();
    if !question.edges.is_empty() {
        values.extend(question.edges.values());
    }
    for columns in &keys {
        values.extend(columns.iter().map(|column| column as &(dyn ToSql + Sync)));
    }
    if !question.objects.is_empty() {
        values.extend(question.objects.keys());
    }
    if !question.subjects.is_empty() {
        values.extend(question.subjects.keys());
    }
    for (_, points) in question.ranks.kinds() {
        values.extend(points.values());
    }
    connection.client.query_one(&statement, &values).await
}

type Uncounted<'a> = SubjectTotals<'a>;

fn answer<'a>(
    row: &tokio_postgres::Row,
    question: &Question<'a>,
    wants: &'a Wants,
) -> Result<(Loaded, Uncounted<'a>), StoreError> {
    let now: At = row.get(0);
    let mut rows: Vec<Option<Row>> = vec![None; wants.rows.len()];
    let mut totals = vec![0; wants.totals.len()];
    let mut next = 1;
    if !question.edges.is_empty() {
        for (place, edge) in read_edges(row)? {
            rows[question.edge_places[place]] = Some(Row::Edge(edge));
        }
        next += 5;
    }
    let parts = question.parts();
    for (kind, _) in tables().filter(|(kind, _)| parts & part_of(*kind) != 0) {
        for text in row.get::<_, Vec<&str>>(next) {
            let (place, shown) = text.split_once(' ').unwrap_or_default();
            let place: usize = place.parse().unwrap_or(1);
            rows[question.table_places[kind as usize][place - 1]] = Some(crate::rows::read(kind, shown)?.1);
        }
        next += 1;
    }
    if !question.objects.is_empty() {
        for (place, total) in question.object_places.iter().zip(row.get::<_, Vec<i64>>(next)) {
            totals[*place] = total;
        }
        next += 1;
    }
    let mut uncounted = SubjectTotals::default();
    if !question.subjects.is_empty() {
        for (place, total) in question.subject_places.iter().zip(row.get::<_, Vec<Option<i64>>>(next)) {
            match (total, &wants.totals[*place]) {
                (Some(total), _) => totals[*place] = total,
                (None, TotalKey::Subject { subject, relation }) => uncounted.push(subject, relation, 0, None),
                (None, _) => {}
            }
        }
        next += 1;
    }
    let mut ranks = vec![0; wants.ranks.len()];
    for (_, points) in question.ranks.kinds() {
        for (place, rank) in points.places.iter().zip(row.get::<_, Vec<i64>>(next)) {
            ranks[*place] = rank.unsigned_abs();
        }
        next += 1;
    }
    let newest = (parts & part_of(RowKind::Job) != 0).then(|| row.get::<_, Option<i64>>(next)).flatten();
    let newest = newest.map(|stamp| Stamp(stamp.unsigned_abs()));
    Ok((Loaded { rows, totals, ranks, now: Some(now.0), newest, ..Loaded::default() }, uncounted))
}

/// The edges that are there, each with its place among those asked for.
fn read_edges(row: &tokio_postgres::Row) -> Result<Vec<(usize, tally_core::rows::Edge)>, StoreError> {
    let places: Option<Vec<i64>> = row.get(1);
    let Some(places) = places else { return Ok(Vec::new()) };
    let created: Vec<At> = row.get(2);
    let kinds: Vec<Option<&str>> = row.get(3);
    let metas: Vec<Option<&str>> = row.get(4);
    let hidden: Vec<bool> = row.get(5);
    let edges = places.into_iter().zip(created).zip(kinds).zip(metas).zip(hidden);
    edges
        .map(|((((place, created), kind), meta), hidden)| {
            let place = usize::try_from(place - 1).unwrap_or(0);
            Ok((place, edges::parse(created, kind, meta, hidden)?))
        })
        .collect()
}
