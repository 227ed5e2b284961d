//! Totals of subjects are stored only once somebody asks: until then the edges are the count.
//!
//! Most relations have no limit per subject, and their likes need not carry a row that nobody reads.

use tally_core::SubjectId;
use tally_engine::StoreError;

use crate::Postgres;
use crate::connection::within;
use crate::error::{unavailable, unreadable};
use crate::fence::{self, Fences};
use crate::plan::distinct;
use crate::totals::{COUNT_SUBJECTS, SubjectTotals};

/// Counts these totals and stores them, while nobody adds to them.
pub(crate) async fn count(postgres: &Postgres, totals: &SubjectTotals<'_>) -> Result<(), StoreError> {
    let mut fences = Fences::default();
    for subject in distinct(totals) {
        fences.count(&SubjectId::new(subject).map_err(|_| unreadable("a subject"))?);
    }
    let (space, split) = (postgres.lock_space(), fences.split());
    let mut connection = postgres.connection().await?;
    let counting = async {
        let (take, count) = (connection.statement(fence::TAKE).await?, connection.statement(COUNT_SUBJECTS).await?);
        let transaction = connection.client.transaction().await?;
        transaction.query(&take, &fence::values(&space, &split)).await?;
        transaction.execute(&count, &totals.keys()).await?;
        transaction.commit().await
    };
    let counted = tokio::time::timeout(postgres.timeout(), counting).await;
    match counted {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            postgres.discard(connection);
            Err(unavailable(&error))
        }
        Err(_) => {
            postgres.discard(connection);
            within(postgres.timeout(), std::future::pending::<Result<(), _>>()).await
        }
    }
}
