//! The recount of everything that counts no edges: what rows of every kind say of each other, as it is declared, in the snapshot of
//! the audit.

use tally_core::Name;
use tally_core::rows::{Number, TotalKey};
use tally_core::verify::Ledger;
use tally_engine::{Audited, Finding, recount};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Transaction};

use crate::audit::{Tell, unreadable};
use crate::cells::table_of;
use crate::rows;

/// Rows that are held at once.
const ROWS_AT_ONCE: i32 = 5_000;

/// Totals of one kind, as everybody reads them.
const NUMBERS: &str = "
SELECT relation, object,
       coalesce(CASE WHEN bool_or(shard = 0 AND shards > 1) THEN sum(n) ELSE sum(n) FILTER (WHERE shard = 0) END, 0)::int8
FROM object_total WHERE kind = $1 GROUP BY 1, 2";

/// The rows of a statement, some at a time.
pub(crate) async fn each(
    transaction: &Transaction<'_>,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
    mut take: impl FnMut(&Row),
) -> Result<(), Error> {
    let statement = transaction.prepare(sql).await?;
    let portal = transaction.bind(&statement, values).await?;
    loop {
        let rows = transaction.query_portal(&portal, ROWS_AT_ONCE).await?;
        rows.iter().for_each(&mut take);
        if rows.len() < ROWS_AT_ONCE as usize {
            return Ok(());
        }
    }
}

/// Gives every row and every number to whoever adds up what they say.
pub(crate) async fn rows_of_every_kind(
    transaction: &Transaction<'_>,
    tell: Tell<'_>,
    audited: &mut Audited,
) -> Result<(), Error> {
    let mut ledger = Ledger::default();
    audited.rows = audited.edges;
    let mut is_first = true;
    loop {
        for kind in ledger.kinds() {
            let Some(table) = table_of(kind) else { continue };
            let sql = format!("SELECT {} FROM {} t", table.shown(), table.name());
            let mut read = 0;
            let taking = each(transaction, &sql, &[], |row| {
                read += 1;
                if read % ROWS_AT_ONCE as u64 == 0 {
                    tell(Finding::Progress(audited.rows + read));
                }
                match rows::read(kind, row.get(0)) {
                    Ok((key, row)) => ledger.row(&key, &row),
                    Err(_) if is_first => unreadable(tell, table.name(), &[row.get(0)]),
                    Err(_) => {}
                }
            });
            taking.await?;
            audited.rows += if is_first { read } else { 0 };
        }
        for (_, _, mark) in Number::UNLISTED {
            let of: [&(dyn ToSql + Sync); 1] = [&mark];
            let taking = each(transaction, NUMBERS, &of, |row| {
                let (name, key): (&str, &str) = (row.get(0), row.get(1));
                match Name::new(name).ok().and_then(|name| TotalKey::from_number(mark, name, key)) {
                    Some(total) => {
                        let is_compared = ledger.total(&total, row.get(2));
                        audited.totals += u64::from(is_first && is_compared);
                    }
                    None if is_first => unreadable(tell, "object_total", &[name, key]),
                    None => {}
                }
            });
            taking.await?;
        }
        is_first = false;
        if !ledger.again() {
            recount::tell(ledger.into_wrong(), tell);
            return Ok(());
        }
    }
}
