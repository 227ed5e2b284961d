//! Every row and total asked for, in one statement: one question, one moment.

use std::sync::OnceLock;

use tally_core::rows::{Key, Row, TotalKey};
use tally_core::view::Wants;
use tally_engine::{Loaded, Mark, StoreError};
use tokio_postgres::types::ToSql;

use crate::cells::{self, Cells, TABLES, columns, key_cells, table_of};
use crate::connection::{Connection, within};
use crate::edges::{self, Keys};
use crate::time::At;
use crate::totals::{ObjectTotals, SubjectTotals};
use crate::{Postgres, materialize};

/// Parts of a question, as bits: which of them it has makes its statement.
const EDGES: u8 = 1;
const FIRST_TABLE: u8 = 2;
const OBJECT_TOTALS: u8 = 64;
const SUBJECT_TOTALS: u8 = 128;

/// What is wanted, by the table in which it is, and where in the answer it goes.
#[derive(Default)]
struct Question<'a> {
    edges: Keys<'a>,
    edge_places: Vec<usize>,
    tables: [Vec<Cells>; TABLES.len()],
    table_places: [Vec<usize>; TABLES.len()],
    objects: ObjectTotals<'a>,
    object_places: Vec<usize>,
    subjects: SubjectTotals<'a>,
    subject_places: Vec<usize>,
}

impl<'a> Question<'a> {
    fn new(wants: &'a Wants) -> Self {
        let mut question = Self::default();
        for (place, key) in wants.rows.iter().enumerate() {
            match (key, table_of(key)) {
                (_, Some(table)) => {
                    question.tables[table].push(key_cells(key));
                    question.table_places[table].push(place);
                }
                (Key::Edge(key), _) => {
                    question.edges.push(key);
                    question.edge_places.push(place);
                }
                _ => {}
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
        question
    }

    fn parts(&self) -> u8 {
        let mut parts = if self.edges.is_empty() { 0 } else { EDGES };
        for (table, keys) in self.tables.iter().enumerate().filter(|(_, keys)| !keys.is_empty()) {
            debug_assert!(!keys.is_empty());
            parts |= FIRST_TABLE << table;
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
fn sql(parts: u8) -> &'static str {
    static STATEMENTS: [OnceLock<String>; 256] = [const { OnceLock::new() }; 256];
    STATEMENTS[usize::from(parts)].get_or_init(|| {
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
        for (number, table) in TABLES.iter().enumerate() {
            if parts & (FIRST_TABLE << number) != 0 {
                let (rows, shown) = (table.rows(table.keys(), next), table.shown());
                asked.push(format!(
                    "ARRAY(SELECT w.i || ' ' || {shown} FROM {rows} JOIN {} t ON {})",
                    table.name,
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
        }
        format!("SELECT {} {from}", asked.join(", "))
    })
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
    let statement = connection.statement(sql(question.parts())).await?;
    let keys: Vec<Vec<Vec<Option<&str>>>> =
        question.tables.iter().zip(&TABLES).map(|(rows, table)| columns(rows, table.keys())).collect();
    let mut values: Vec<&(dyn ToSql + Sync)> = Vec::new();
    if !question.edges.is_empty() {
        values.extend(question.edges.values());
    }
    for (rows, columns) in question.tables.iter().zip(&keys) {
        if !rows.is_empty() {
            values.extend(columns.iter().map(|column| column as &(dyn ToSql + Sync)));
        }
    }
    if !question.objects.is_empty() {
        values.extend(question.objects.keys());
    }
    if !question.subjects.is_empty() {
        values.extend(question.subjects.keys());
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
    for (table, keys) in question.tables.iter().enumerate() {
        if keys.is_empty() {
            continue;
        }
        for text in row.get::<_, Vec<&str>>(next) {
            let (place, shown) = text.split_once(' ').unwrap_or_default();
            let place: usize = place.parse().unwrap_or(1);
            rows[question.table_places[table][place - 1]] = Some(cells::read(table, shown)?.1);
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
    }
    let ranks = vec![0; wants.ranks.len()];
    Ok((Loaded { rows, totals, ranks, now: Some(now.0), ..Loaded::default() }, uncounted))
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
